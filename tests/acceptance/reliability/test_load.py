"""Many steps at once: they overlap up to the limit, and dynamic graphs stay exact."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path

import tasker
from tasker.services.submission.submit import Submission, SubmissionResult
from tasker.template.plan import HandlerRef
from tests.acceptance.examples.workflow_case import WORKFLOWS
from tests.support.fleets.mixture import CSV
from tests.support.fleets.oracle import Oracle
from tests.support.random_plans import Spec, build_plan
from tests.support.worker_settings import worker_settings

HANDLERS = Path(__file__).parent / "steps"
SLOTS, STEPS = 7, 30


def test_independent_steps_overlap_and_never_more_of_them_than_the_worker_has_slots(database_url: str) -> None:
    plan = build_plan(*(Spec(f"s{n}") for n in range(STEPS)), namespace="meeting", name="meeting")
    plan = replace(plan, steps=tuple(replace(step, handler=HandlerRef("steps.meet")) for step in plan.steps))

    async def run() -> dict[str, int]:
        settings = worker_settings(concurrency=SLOTS)
        async with tasker.App(database_url, handlers=[HANDLERS], settings=settings) as app:
            outcome = await app.run(plan, {"guests": SLOTS})
            return {name: step.result["most"] for name, step in outcome.steps.items()}

    most = asyncio.run(run())

    assert most == dict.fromkeys(most, SLOTS)
    assert len(most) == STEPS


def test_batches_of_many_tasks_at_once_each_have_their_workers_and_one_aggregate(
    database_url: str, oracle: Oracle
) -> None:
    """Twenty imports of 1,000 rows side by side, on 60 slots: five batches each, and every edge of the graph."""

    async def run() -> list[str]:
        async with tasker.App(database_url, settings=worker_settings(concurrency=60)) as app:
            requests = [Submission(CSV.input, idempotency_key=str(n)) for n in range(20)]
            answers = await app.submit_many(WORKFLOWS / CSV.folder, requests)
            tasks = [answer.task_uuid for answer in answers if isinstance(answer, SubmissionResult)]
            await asyncio.gather(*(app.wait(task) for task in tasks))
            return tasks

    tasks = asyncio.run(run())

    edges = Counter(
        oracle.rows(
            """select f.name, t.name from tasker.workflow_step_edges e
               join tasker.workflow_steps f on f.workflow_step_uuid = e.from_step_uuid
               join tasker.workflow_steps t on t.workflow_step_uuid = e.to_step_uuid"""
        )
    )
    first, *batches, last = CSV.steps
    assert edges == {pair: len(tasks) for batch in batches for pair in ((first, batch), (batch, last))}
    for found in oracle.found(tasks).values():
        assert sorted(found.states) == sorted(CSV.steps)
        assert found.results[last]["worker_count"] == 5
    oracle.check(dict.fromkeys(tasks, "complete"))
    assert not +oracle.repairs()
