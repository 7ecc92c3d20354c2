"""Two orchestrators and two workers as one system: requests by message, shared work, one truth."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import psycopg
import pytest

import tasker
from tasker.app import App, TaskRequester
from tasker.services.workflows.files import load_plans
from tests.support.fleets.fleet import ROOT, Fleet
from tests.support.fleets.oracle import Oracle

pytestmark = pytest.mark.slow

SLOW = ROOT / "tests" / "chaos" / "workflow"
NAME = "chaos/slow_diamond"
T = TypeVar("T")


def start_cluster(fleet: Fleet) -> None:
    for number in (1, 2):
        fleet.orchestrator(f"orchestrator{number}")
        fleet.worker(f"worker{number}", str(SLOW), "--result-path", "queued", "--concurrency", "4")


def requested(url: str, tasks: int, **context: Any) -> list[str]:
    """Ask for so many tasks at once, through two connections to the broker in turn; their identifiers."""

    async def ask() -> list[str]:
        async with TaskRequester("pgmq", database_url=url) as one, TaskRequester("pgmq", database_url=url) as two:
            asked = [
                (one, two)[number % 2].request(NAME, {"seconds": 0.05, "n": number, **context})
                for number in range(tasks)
            ]
            return await asyncio.gather(*asked)

    return asyncio.run(ask())


def with_app(url: str, use: Callable[[App], Coroutine[Any, Any, T]]) -> T:
    async def connect() -> T:
        async with tasker.App(url, work=False) as app:
            return await use(app)

    return asyncio.run(connect())


async def register(app: App) -> None:
    for plan in load_plans(str(SLOW), None):
        await app.plans.register(plan)


async def views(app: App, tasks: list[str]) -> dict[str, tuple[Any, ...]]:
    """What an application of its own sees of each task."""
    reports = [await app.tasks.report(task) for task in tasks]
    return {
        report.task_uuid: (
            report.status,
            {name: step.state for name, step in report.steps.items()},
            {name: step.attempts for name, step in report.steps.items()},
            {name: step.result for name, step in report.steps.items() if step.result is not None},
        )
        for report in reports
    }


def steps_by_worker(url: str) -> Counter[str]:
    query = "select worker_uuid::text from tasker.step_transition_log where success"
    with psycopg.connect(url) as connection:
        return Counter(worker for (worker,) in connection.execute(query))


def test_tasks_asked_for_before_anybody_is_there_and_in_a_burst_all_complete_once_and_everybody_sees_the_same(
    database_url: str, fleet: Fleet, oracle: Oracle
) -> None:
    with_app(database_url, register)
    early = requested(database_url, 5)
    start_cluster(fleet)

    tasks = early + requested(database_url, 25, late=True)

    oracle.wait_for_the_end(tasks)
    oracle.check(dict.fromkeys(tasks, "complete"))
    assert not +oracle.repairs()
    assert len(set(tasks)) == oracle.finished() == 30
    shares = steps_by_worker(database_url)
    assert len(shares) == 2, "both workers have a part of it"
    assert min(shares.values()) > sum(shares.values()) / 10, shares
    one, two = (with_app(database_url, lambda app: views(app, tasks)) for _ in range(2))
    assert (
        one
        == two
        == {
            task: (found.state, found.states, found.attempts, found.results)
            for task, found in oracle.found(tasks).items()
        }
    )


def test_the_registry_knows_who_is_there_and_requests_survive_the_orchestrator_that_dies_with_them(
    database_url: str, fleet: Fleet, oracle: Oracle
) -> None:
    start_cluster(fleet)
    fleet.signal("worker2", 15)
    fleet.processes["worker2"].wait(30)

    rows = with_app(database_url, lambda app: app.workers.list())
    everybody = with_app(database_url, lambda app: app.workers.list(stopped=True))

    assert [(row.kind, row.state) for row in rows] == [("worker", "live"), *[("orchestrator", "live")] * 2]
    assert {row.pid for row in rows} == {fleet.processes[name].pid for name in fleet.processes if name != "worker2"}
    assert rows[0].namespaces == ["chaos"]
    assert [name for name in rows[0].callables if not name.startswith("tasker.")] == [
        "chaos.flaky",
        "chaos.slow",
        "chaos.slow_sync",
    ]
    assert rows[0].concurrency == 4
    assert rows[0].version == tasker.__version__
    assert [row.state for row in everybody] == [*["live"] * 3, "stopped"]

    tasks = requested(database_url, 30)
    fleet.kill("orchestrator1")
    tasks += requested(database_url, 10, more=True)

    oracle.wait_for_the_end(tasks)
    oracle.check(dict.fromkeys(tasks, "complete"))
    assert oracle.finished() == 40
