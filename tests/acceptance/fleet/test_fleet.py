"""Several real processes: nothing is lost or doubled when they are killed, frozen or stopped."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from pathlib import Path

import pytest

import tasker
from tasker.services.submission.submit import Submission, SubmissionResult
from tests.support.fleets.fleet import ROOT, Fleet
from tests.support.fleets.freezing import freeze_with_results, kill_busiest
from tests.support.fleets.oracle import Oracle
from tests.support.waiting import until

pytestmark = pytest.mark.slow

SLOW = ROOT / "tests" / "chaos" / "workflow"
ATTEMPTS = [("first", 1), ("flaky", 2), ("last", 1), ("left", 1), ("right", 1)]
"""Without faults: `flaky` fails at its first attempt."""


def submit(url: str, tasks: int, seconds: float) -> list[str]:
    """Tasks of five steps each, most of which take `seconds`."""

    async def create() -> list[str]:
        async with tasker.App(url, work=False) as app:
            requests = [Submission({"seconds": seconds, "n": number}) for number in range(tasks)]
            answers = await app.submit_many(SLOW, requests)
            return [answer.task_uuid for answer in answers if isinstance(answer, SubmissionResult)]

    return asyncio.run(create())


@pytest.mark.parametrize("path", ["inline", pytest.param("queued", marks=pytest.mark.servers)])
def test_a_killed_worker_loses_nothing_and_its_steps_run_again(
    database_url: str, fleet: Fleet, oracle: Oracle, path: str
) -> None:
    if path == "queued":
        fleet.orchestrator("orchestrator")
    for name in ("one", "two"):
        fleet.worker(name, str(SLOW), "--result-path", path, "--concurrency", "10")
    tasks = submit(database_url, 40, 0.3)
    until(lambda: oracle.finished() > 0, "work is under way")
    kill_busiest(fleet, oracle, database_url)

    oracle.wait_for_the_end(tasks)
    oracle.check(dict.fromkeys(tasks, "complete"))
    assert oracle.failures("worker_lost") == oracle.repairs()["lost_worker"] > 0


@pytest.mark.servers
def test_a_killed_orchestrator_is_replaced_by_the_next(database_url: str, fleet: Fleet, oracle: Oracle) -> None:
    fleet.orchestrator("first")
    fleet.worker("worker", str(SLOW), "--result-path", "queued", "--concurrency", "5")
    tasks = submit(database_url, 40, 0.05)
    until(lambda: oracle.ended_from_the_queue() > 0, "work is under way")
    fleet.kill("first")
    before = oracle.ended_from_the_queue()
    fleet.orchestrator("second")

    oracle.wait_for_the_end(tasks)
    oracle.check(dict.fromkeys(tasks, "complete"))
    assert oracle.ended_from_the_queue() > before, "the worker's sweeps alone have ended the results"


def test_a_frozen_workers_late_results_are_refused(database_url: str, fleet: Fleet, oracle: Oracle) -> None:
    fleet.orchestrator("sweeping")
    for name in ("one", "two"):
        fleet.worker(name, str(SLOW), "--concurrency", "10")
    tasks = submit(database_url, 60, 0.3)
    until(lambda: oracle.finished() > 0, "work is under way")

    def again() -> None:
        tasks.extend(
            submit(database_url, 60, 0.3 + len(tasks) / 10_000)
        )  # another time: the same would be no new tasks

    freeze_with_results(fleet, oracle, database_url, ["one", "two"], again)

    oracle.wait_for_the_end(tasks)
    oracle.check(dict.fromkeys(tasks, "complete"))
    assert oracle.rows("select distinct verdict from tasker.refused_results") == [("stale",)]
    more = submit(database_url, 10, 0.0)
    oracle.wait_for_the_end(more)
    oracle.check(dict.fromkeys(more, "complete"))


def test_a_rolling_restart_uses_no_attempt_and_repairs_nothing(database_url: str, fleet: Fleet, oracle: Oracle) -> None:
    for name in ("one", "two"):
        fleet.worker(name, str(SLOW), "--shutdown-timeout", "5", "--concurrency", "5")
    tasks = submit(database_url, 40, 0.3)
    for name in ("one", "two"):
        pid = fleet.processes[name].pid
        until(lambda pid=pid: pid in oracle.busy_pids(), f"{name} runs steps")
        fleet.signal(name, signal.SIGTERM)
        assert fleet.processes[name].wait(30) == 0, fleet.log(name)
        fleet.restart(name)

    oracle.wait_for_the_end(tasks)
    oracle.check(dict.fromkeys(tasks, "complete"))
    assert oracle.rows("select distinct name, attempts from tasker.workflow_steps order by 1, 2") == ATTEMPTS
    assert oracle.failures("worker_lost") == 0
    assert not +oracle.repairs()


@pytest.mark.servers
def test_lost_doubled_and_late_messages_are_explained_by_repairs(
    database_url: str, tmp_path: Path, oracle: Oracle
) -> None:
    """Every result and every step that becomes ready is a message: about 300 of them."""
    fleet = Fleet(database_url, tmp_path, chaos="drop:0.04,dup:0.1,delay:0.1")
    try:
        fleet.orchestrator("orchestrator")
        for name in ("one", "two"):
            fleet.worker(name, str(SLOW), "--result-path", "queued")
        tasks = submit(database_url, 20, 0.01)
        oracle.wait_for_the_end(tasks)
        oracle.check(dict.fromkeys(tasks, "complete"))
        assert oracle.rows("select distinct name, attempts from tasker.workflow_steps order by 1, 2") == ATTEMPTS
        faults = Counter[str]()
        for (fault, _), number in fleet.faults().items():
            faults[fault] += number
        assert {*faults} == {"drop", "dup", "delay"}
        repairs = +oracle.repairs()
        assert {*repairs} <= {"hint_lost", "result_message_lost"}
        assert 0 < repairs.total() <= faults["drop"] + faults["delay"], (repairs, faults)
    finally:
        fleet.stop()
