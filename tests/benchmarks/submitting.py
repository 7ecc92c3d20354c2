"""Many programs that submit at the same time, one task in each transaction: what a commit holds up of the others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

import psycopg

from tasker.clock import new_task_uuid
from tasker.db.connection import Connection
from tasker.db.embedded import EmbeddedServer
from tasker.engine.calls import Engine
from tasker.engine.plans import PlanStore
from tasker.messaging.backends import load_backend
from tasker.messaging.service import MessagingService
from tasker.services.submission.submit import Submission, Submitter
from tests.benchmarks.conditions import Conditions, Figure
from tests.benchmarks.shapes import SHAPES

SUBMITTERS = 8
DISKS: Mapping[str, Mapping[str, str]] = {
    "submitters": {},
    "submitters_slow_disk": {"commit_delay": "20000", "commit_siblings": "0"},  # as if it took 20 ms to be written
}
NAMES = tuple(DISKS)


def measure(conditions: Conditions, names: Mapping[str, None], tell: Callable[[str], None]) -> Iterator[Figure]:
    """Tasks per second on each disk while nobody sleeps, and while somebody does; on servers of its own."""
    for name in (name for name in NAMES if name in names):
        with ExitStack() as stack:
            server = EmbeddedServer.start(conditions.folder / name, settings=DISKS[name], linger_seconds=2)
            stack.callback(server.stop)
            url = stack.enter_context(Conditions(server.url, conditions.folder).database(name))
            for asleep in (False, True):
                tell(f"{name}, {'somebody sleeps' if asleep else 'nobody sleeps'}")
                rate = asyncio.run(_rate(url, conditions.fewer(2000, 40), asleep))
                yield Figure(f"{name}{'_asleep' if asleep else ''}", "tasks/s", rate)


async def _rate(url: str, tasks: int, asleep: bool) -> float:
    plan, messaging = SHAPES["linear4"](), MessagingService(load_backend("pgmq", {}))
    connections = [Connection(url) for _ in range(SUBMITTERS)]
    submitters = [Submitter(Engine(one, messaging), PlanStore(one), new_task_uuid) for one in connections]
    with psycopg.connect(url, autocommit=True) as registry:
        registry.execute(
            "insert into tasker.workers (worker_uuid, kind, host, pid, version, namespaces, concurrency, beat_at,"
            " lease_until, asleep, started_at) select gen_random_uuid(), 'worker', '', 0, '', %s, 1, now(),"
            " now() + interval '1 hour', %s, now()",
            ([plan.namespace], asleep),
        )

    async def work(submitter: Submitter, times: int) -> None:
        for _ in range(times):
            await submitter.submit(plan, Submission({}, idempotency_key=new_task_uuid()))

    with psycopg.connect(url) as database:
        (created,) = database.execute("select count(*) from tasker.tasks").fetchone() or (0,)
    await asyncio.gather(*(work(submitter, 1) for submitter in submitters))
    started = time.perf_counter()
    await asyncio.gather(*(work(submitter, tasks // SUBMITTERS) for submitter in submitters))
    seconds = time.perf_counter() - started
    await asyncio.gather(*(connection.close() for connection in connections))
    with psycopg.connect(url) as database:
        assert database.execute("select count(*) from tasker.tasks").fetchone() == (created + tasks + SUBMITTERS,)
    return tasks / seconds
