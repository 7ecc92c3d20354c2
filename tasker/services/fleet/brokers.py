"""Queues of the broker, compared with the rows of the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace

from tasker.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.db.sql_files import query
from tasker.engine.calls import Engine
from tasker.messaging.messages import POINTED_AT
from tasker.messaging.port import QueueStats
from tasker.messaging.service import MessagingService
from tasker.views.fleet import BrokerReport, QueueInfo


@dataclass(frozen=True, slots=True)
class LiveProcess:
    """Process with a valid lease, and the provider it receives messages from."""

    kind: str
    """`worker` or `orchestrator`."""
    backend: str
    host: str
    pid: int
    namespaces: Sequence[str]

    def __str__(self) -> str:
        return f"{self.kind} {self.pid} on {self.host}"


async def broker_report(
    messaging: MessagingService, connection: Statements, only: Sequence[str] | None = None
) -> BrokerReport:
    """Return how the provider stands, with the queues of all namespaces or of these `only`.

    Raises `MessagingError` and `DatabaseError` when either cannot be asked.
    """
    provider, names = messaging.provider_name(), messaging.names
    running = await live_processes(connection)
    same_provider = [process for process in running if process.backend == provider]
    serving = Counter(namespace for process in same_provider for namespace in process.namespaces)
    orchestrators = sum(process.kind == "orchestrator" for process in same_provider)
    waiting = dict.fromkeys(serving, 0) | dict(await namespaces(connection))
    queues = {namespace: names.step_queue(namespace) for namespace in sorted(waiting if only is None else only)}
    stats = await messaging.all_stats([*queues.values(), *names.orchestration()])
    reports = [
        _queue_info(queue, stats.get(queue), waiting.get(namespace, 0), serving[namespace])
        for namespace, queue in queues.items()
    ]
    paused = await _paused(connection)
    for queue in names.orchestration():
        parked = await _parked(connection) if queue == names.step_results else None
        per_message = POINTED_AT if queue == names.step_results else 1
        info = _queue_info(queue, stats.get(queue), parked, orchestrators)
        reports.append(replace(info, paused=paused.get(queue), per_message=per_message))
    return BrokerReport(
        provider=provider,
        healthy=await messaging.health_check(),
        capabilities=asdict(messaging.capabilities),
        processes=dict(Counter(process.backend for process in running)),
        queues=tuple(
            report for report in reports if report.exists or report.in_database or report.readers or report.paused
        ),
    )


def _queue_info(queue: str, stats: QueueStats | None, in_database: int | None, readers: int) -> QueueInfo:
    if stats is None:
        return QueueInfo(queue, 0, None, None, None, None, readers, in_database)
    return QueueInfo(
        queue, stats.depth, stats.in_flight, stats.unseen, stats.oldest_seconds, stats.consumers, readers, in_database
    )


async def namespaces(connection: Statements) -> list[tuple[str, int]]:
    """Return every namespace with its number of enqueued steps, from the database, since AMQP cannot list queues."""
    return [(name, enqueued) for name, enqueued in await connection.execute(query("brokers", "namespaces"))]


async def live_processes(connection: Statements) -> list[LiveProcess]:
    """Return the processes with a valid lease."""
    return [LiveProcess(*row) for row in await connection.execute(query("brokers", "processes"))]


async def _parked(connection: Statements) -> int:
    ((parked,),) = await connection.execute(query("brokers", "parked"))
    return int(parked)


async def _paused(connection: Statements) -> dict[str, str]:
    """Return the paused orchestration queues, each with a text about its pause."""
    rows = await connection.execute(query("brokers", "paused"))
    return {
        queue: f"since {at:%Y-%m-%d %H:%M:%S} by {actor}" + (f" ({reason})" if reason else "")
        for queue, at, actor, reason in rows
    }


class Queues:
    """Reports about the provider that this process uses."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def report(self, namespaces: Sequence[str] | None = None) -> BrokerReport:
        """Return the provider, the queues of all or of these namespaces, and what the database says of them.

        Raises `MessagingError`, `DatabaseError`.
        """
        return await broker_report(self._engine.messaging, self._engine.connection, namespaces)
