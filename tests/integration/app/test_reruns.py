"""A task runs again from one of its steps, as a new task that reuses what is done and decides the rest anew."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import tasker
from tasker.errors import InputInvalid, StepNotFound, TaskNotFound
from tasker.views.tasks import TaskReport

GRAPH = Path(__file__).parents[3] / "workflows" / "diamond_decision_batch"
BY = {"actor": "ada", "reason": "wrong numbers"}


async def rerun(app: tasker.App, task: str, step: str, context: Mapping[str, Any] | None = None) -> TaskReport:
    begun = await app.reruns.start(task, step, context=context, **BY)
    return await app.wait(begun.task_uuid, timeout=60)


def ran(report: TaskReport) -> set[str]:
    return {step.name for step in report.steps.values() if step.attempts}


def edges(report: TaskReport) -> dict[str, set[str]]:
    return {step.name: set(step.depends_on) for step in report.steps.values()}


@pytest.fixture
def numbers() -> dict[str, Any]:
    """Of each test its own: the same input twice would be the same task."""
    return {"numbers": [*range(1, 8), 10 + uuid4().int % 10**6 * 2], "batch_size": 2}


async def test_steps_below_run_again_and_what_they_created_is_decided_anew(
    module_database_url: str, numbers: dict[str, Any]
) -> None:
    async with tasker.App(module_database_url) as app:
        first = await app.run(GRAPH, numbers)
        before = await app.tasks.report(first.task_uuid)
        whole = await rerun(app, first.task_uuid, "routing_decision")
        finer = await rerun(app, first.task_uuid, "routing_decision", {**numbers, "batch_size": 1})
        worker = await rerun(app, finer.task_uuid, "process_evens_002")
        history = await app.tasks.history(whole.task_uuid)

        assert whole.results == before.results
        assert edges(whole) == edges(before)
        reused = {step.name for step in whole.steps.values() if step.reused_from == first.task_uuid}
        assert reused == {"diamond_start", "branch_evens", "branch_odds"}
        assert ran(whole) == set(before.steps) - {"diamond_start", "branch_evens", "branch_odds"}
        assert {name for name in finer.results if name.startswith("process_")} == {
            f"process_evens_{n:03}" for n in range(1, 5)
        }
        assert finer.results["aggregate_results"]["batches"] == 4
        assert ran(worker) == {"process_evens_002", "aggregate_results"}
        assert edges(worker) == edges(finer)
        assert (whole.status, finer.status, worker.status) == ("complete",) * 3
        assert await app.tasks.report(first.task_uuid) == before
        told = {"rerun_of": first.task_uuid, "from": "routing_decision", **BY}
        assert next(row.metadata for row in history if row.metadata) == told
        view = await app.views.task(whole.task_uuid)
        assert view.parent_correlation_id == (await app.views.task(first.task_uuid)).correlation_id
        assert [finding for finding in await app.checks.run() if finding.is_broken] == []


async def test_a_task_that_was_cancelled_runs_again_with_all_that_is_not_done(
    module_database_url: str, numbers: dict[str, Any]
) -> None:
    async with tasker.App(module_database_url, work=False) as idle:
        submitted = await idle.submit(GRAPH, numbers)
        await idle.steps.complete(submitted.task_uuid, "diamond_start", {"numbers": [1, 3]}, **BY)
        await idle.tasks.cancel(submitted.task_uuid, **BY)
    async with tasker.App(module_database_url) as app:
        await app.plan(GRAPH)
        again = await rerun(app, submitted.task_uuid, "branch_odds")

        assert again.status == "complete"
        assert ran(again) >= {"branch_odds", "branch_evens", "routing_decision"}
        assert again.results["diamond_start"] == {"numbers": [1, 3]}
        assert [finding for finding in await app.checks.run() if finding.is_broken] == []


async def test_what_cannot_run_again_is_refused_and_nothing_begins(
    module_database_url: str, numbers: dict[str, Any]
) -> None:
    async with tasker.App(module_database_url, work=False) as app:
        task = (await app.submit(GRAPH, numbers)).task_uuid
        count = len(await app.tasks.list())
        with pytest.raises(StepNotFound, match="no step 'route'"):
            await app.reruns.start(task, "route", **BY)
        with pytest.raises(TaskNotFound):
            await app.reruns.start(str(uuid4()), "route", **BY)
        with pytest.raises(InputInvalid, match="numbers"):
            await app.reruns.start(task, "diamond_start", context={"numbers": "none"}, **BY)
        assert len(await app.tasks.list()) == count
