"""Fleets that are measured: real processes on a database and a broker of their own, and the CPU that they use."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

import tasker
from tasker.services.submission.submit import Submission, SubmissionResult
from tests.benchmarks.conditions import ROOT, Conditions
from tests.benchmarks.cpu import seconds_of, server_of
from tests.support.fleets.fleet import Fleet
from tests.support.servers import brokers
from tests.support.waiting import until

WORKFLOWS = ROOT / "tests" / "benchmarks" / "workflows"
BACKENDS = [name for name in brokers.ENGINE_BACKENDS if name != "memory"]
"""Those that processes can share."""
_KINDS = {"rabbitmq": brokers.RABBITMQ, "redis": brokers.REDIS, "nats": brokers.NATS}
LIMIT_SECONDS = 300.0


@dataclass(frozen=True)
class Bench:
    """A fleet, the database that tells what it has done, and a way to submit to it."""

    fleet: Fleet
    database: psycopg.Connection[Any]
    url: str
    backend: str
    broker: brokers.PrivateServer | None

    def rows(self, query: str, *params: Any) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return self.database.execute(query.encode(), params or None).fetchall()

    def value(self, query: str, *params: Any) -> Any:
        """The first column of its first row."""
        return self.rows(query, *params)[0][0]

    def submit(self, workflow: str, count: int, **context: Any) -> list[str]:
        """New tasks, all at once."""
        settings = {"url": self.broker.url} if self.broker else {}

        async def create() -> list[str]:
            async with tasker.App(self.url, work=False, backend=self.backend, backend_settings=settings) as app:
                stamp = time.time_ns()
                requests = [Submission(context, idempotency_key=f"{stamp}-{number}") for number in range(count)]
                answers = await app.submit_many(WORKFLOWS / workflow, requests)
                return [answer.task_uuid for answer in answers if isinstance(answer, SubmissionResult)]

        return asyncio.run(create())

    def finish(self, tasks: Sequence[str]) -> float:
        """Wait until all have ended; seconds from the first one's creation to the last one's end, by the database."""
        mine = "from tasker.tasks where task_uuid = any (%s::uuid[])"
        until(lambda: self.value(f"select bool_and(complete) {mine}", tasks), "all tasks ended", limit=LIMIT_SECONDS)
        assert self.value(f"select bool_and(state = 'complete') {mine}", tasks), "not every task completed"
        return float(self.value(f"select extract(epoch from max(completed_at) - min(created_at)) {mine}", tasks))

    def end(self, name: str) -> None:
        """Stop one process of the fleet, for good."""
        process = self.fleet.processes[name]
        process.terminate()
        process.wait()
        del self.fleet.processes[name]

    def cpu(self) -> dict[str, float]:
        """CPU seconds so far: of the fleet's processes, of the database, of the broker. 0: not seen from here."""
        used = {
            "workers": sum(seconds_of(p.pid) for name, p in self.fleet.processes.items() if name.startswith("worker")),
            "orchestrators": sum(seconds_of(p.pid) for name, p in self.fleet.processes.items() if name[0] == "o"),
            "postgresql": seconds_of(server_of(self.database)),
        }
        return used | ({"broker": seconds_of(self.broker.pid)} if self.broker else {})


@contextmanager
def broker_of(backend: str) -> Iterator[brokers.PrivateServer | None]:
    """A server for the backend, which nobody else uses; None when messages are in the database."""
    if backend == "pgmq":
        yield None
        return
    with brokers.private_server(_KINDS[backend]) as server:
        yield server


@contextmanager
def bench(conditions: Conditions, name: str, backend: str, broker: brokers.PrivateServer | None) -> Iterator[Bench]:
    """An empty database and no process yet; everything is stopped at the end."""
    folder = conditions.folder / name
    folder.mkdir()
    with conditions.database(f"bench_{name}") as url, psycopg.connect(url, autocommit=True) as database:
        fleet = Fleet(
            url,
            folder,
            backend=backend,
            broker=broker.url if broker else "",
            environment={"TASKER_LOG_LEVEL": "WARNING"},
        )
        try:
            yield Bench(fleet, database, url, backend, broker)
        finally:
            fleet.stop()
