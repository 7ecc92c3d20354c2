"""A worker without a free slot keeps nothing that others could work on, and sweeps miss nothing that somebody holds."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

import tasker
from tasker.services.submission.submit import Submission, SubmissionResult
from tests.support.fleets.fleet import ROOT, Fleet
from tests.support.fleets.oracle import Oracle
from tests.support.servers import brokers
from tests.support.waiting import until

pytestmark = pytest.mark.slow

HANDLERS = ROOT / "tests" / "chaos" / "workflow"
ONE_STEP = """
name: one
namespace_name: chaos
version: "1.0.0"
steps:
  - {name: only, handler: chaos.slow}
"""


class Bench:
    """Workers of a fleet on a broker that nobody else uses, and tasks of one slow step."""

    def __init__(self, url: str, folder: Path, backend: str, broker: str) -> None:
        self._url, self._backend = url, backend
        self._settings = {"url": broker} if broker else {}
        self.fleet = Fleet(url, folder, backend=backend, broker=broker)
        self._workflow = folder / "one.yaml"
        self._workflow.write_text(ONE_STEP)

    def worker(self, name: str, slots: int) -> None:
        """Start one."""
        self.fleet.worker(name, str(self._workflow), "--handlers", str(HANDLERS), "--concurrency", str(slots), lease=15)

    def submit(self, tasks: int, seconds: float) -> list[str]:
        """New tasks, all at once."""

        async def create() -> list[str]:
            app = tasker.App(self._url, work=False, backend=self._backend, backend_settings=self._settings)
            async with app:
                answers = await app.submit_many(
                    self._workflow, [Submission({"seconds": seconds, "n": n}) for n in range(tasks)]
                )
                return [answer.task_uuid for answer in answers if isinstance(answer, SubmissionResult)]

        return asyncio.run(create())


@pytest.fixture(params=[brokers.on(name) for name in brokers.ENGINE_BACKENDS if name != "memory"])
def bench(request: pytest.FixtureRequest, database_url: str, tmp_path: Path) -> Iterator[Bench]:
    kind = brokers.KIND_OF.get(request.param)
    with brokers.private_server(kind) if kind else nullcontext() as server:
        made = Bench(database_url, tmp_path, request.param, server.url if server else "")
        try:
            yield made
        finally:
            made.fleet.stop()


def results_of(oracle: Oracle) -> Counter[int]:
    """How many results each process has brought, by its id."""
    rows = oracle.rows(
        """select w.pid, count(*) from tasker.workflow_step_result_audit
           join tasker.workers w using (worker_uuid) group by w.pid"""
    )
    return Counter(dict(rows))


def test_an_idle_worker_gets_what_waits_beside_a_busy_one(bench: Bench, oracle: Oracle) -> None:
    bench.worker("busy", 1)
    tasks = bench.submit(120, 0.4)
    until(lambda: oracle.finished() > 0, "it works")
    bench.worker("idle", 60)
    before = results_of(oracle)  # a process may take long to start where others are busy
    oracle.wait_for_the_end(tasks)

    busy = bench.fleet.processes["busy"].pid
    since = results_of(oracle) - before
    assert since.pop(busy, 0) < 30 < since.total()
    assert not +oracle.repairs()


@pytest.mark.servers
def test_a_fleet_that_is_slower_than_the_grace_of_its_sweeps_repairs_nothing(bench: Bench, oracle: Oracle) -> None:
    for name in ("one", "two"):
        bench.worker(name, 1)
    tasks = bench.submit(24, 1.0)
    oracle.wait_for_the_end(tasks)

    oracle.check(dict.fromkeys(tasks, "complete"))
    assert not +oracle.repairs()
