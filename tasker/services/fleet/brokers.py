"""Queues of the broker, compared with the rows of the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tasker.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.db.sql_files import query
from tasker.engine.calls import Engine
from tasker.messaging.messages import POINTED_AT
from tasker.messaging.port import QueueStats
from tasker.messaging.service import MessagingService

TOLERANCE = 20
"""Number of messages in transit at any time; a smaller difference is ignored."""


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


@dataclass(frozen=True, slots=True)
class QueueReport:
    """State of one queue. `expected` is the number of messages according to the database, or None if unknown."""

    queue: str
    stats: QueueStats | None
    """None if the provider has no such queue."""
    expected: int | None
    readers: int
    """Live processes that receive messages from it."""
    paused: str | None = None
    """Time, actor and reason of a pause; None if the queue is not paused."""
    per_message: int = 1
    """Maximum number of database entries that one message stands for."""

    def remark(self) -> str | None:
        """Return a remark if the queue is paused, or if provider and database differ significantly."""
        if self.paused is not None:
            return f"{self.queue} is paused {self.paused}. To resume: tasker resume --queue {self.queue}"
        if self.expected is None:
            return None
        depth, unseen = (self.stats.depth, self.stats.unseen) if self.stats else (0, 0)
        tolerance = max(TOLERANCE, self.expected // 10)
        if (missing := self.expected - (depth + unseen) * self.per_message) > tolerance:
            return (
                f"{self.queue}: {missing} of {self.expected} steps enqueued in the database have no message here. "
                f"Sweeps resend them; if the number does not drop, processes use another provider (tasker broker "
                f"migrate)"
            )
        if (extra := depth - self.expected) > tolerance:
            return f"{self.queue}: {extra} messages too many. They are doubled or outdated, and dropped when received"
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values; without a queue, depth is 0 and the other numbers are null."""
        empty = {"depth": 0, **dict.fromkeys(("in_flight", "unseen", "oldest_seconds", "consumers"))}
        numbers = {**empty, **(asdict(self.stats) if self.stats else {})}
        return {
            **numbers,
            "queue": self.queue,
            "readers": self.readers,
            "in_database": self.expected,
            "paused": self.paused,
            "per_message": self.per_message,
        }


@dataclass(frozen=True, slots=True)
class BrokerReport:
    """State of the provider and every queue of the deployment."""

    provider: str
    healthy: bool
    capabilities: dict[str, bool]
    processes: dict[str, int]
    """Live processes by the provider that they use."""
    queues: tuple[QueueReport, ...]

    def remarks(self) -> list[str]:
        """Return all remarks for the operator as sentences."""
        strangers = [
            f"processes that use {name}, not {self.provider}: {number}. They see no message of this provider"
            for name, number in self.processes.items()
            if name not in ("", self.provider)
        ]
        return [*strangers, *(remark for queue in self.queues if (remark := queue.remark()))]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a mapping of plain values."""
        return {
            "provider": self.provider,
            "healthy": self.healthy,
            "capabilities": self.capabilities,
            "processes": self.processes,
            "queues": [queue.to_dict() for queue in self.queues],
            "remarks": self.remarks(),
        }


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
        QueueReport(queue, stats.get(queue), waiting.get(namespace, 0), serving[namespace])
        for namespace, queue in queues.items()
    ]
    paused = await _paused(connection)
    for queue in names.orchestration():
        parked = await _parked(connection) if queue == names.step_results else None
        per_message = POINTED_AT if queue == names.step_results else 1
        reports.append(QueueReport(queue, stats.get(queue), parked, orchestrators, paused.get(queue), per_message))
    return BrokerReport(
        provider=provider,
        healthy=await messaging.health_check(),
        capabilities=asdict(messaging.capabilities),
        processes=dict(Counter(process.backend for process in running)),
        queues=tuple(
            report for report in reports if report.stats or report.expected or report.readers or report.paused
        ),
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
