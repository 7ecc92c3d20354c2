"""A step with checkpoints goes on where it was saved, whatever ended it; what cannot be saved in time fails for now."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

import tasker
from tasker.execution.attempt.runner import AttemptRunner
from tasker.template.plan import HandlerRef, Plan, RetryPolicy
from tests.support.fleets.fleet import Fleet
from tests.support.fleets.oracle import Oracle
from tests.support.random_plans import Spec, build_plan
from tests.support.waiting import until
from tests.support.worker_settings import worker_settings

HANDLERS = Path(__file__).parent / "steps"
RETRY = RetryPolicy(max_attempts=20, backoff="fixed", backoff_base_ms=1)


def plan() -> Plan:
    """One step of a thousand items, with a checkpoint after each 250."""
    made = build_plan(Spec("items"), namespace="items", name="items")
    (step,) = made.steps
    return replace(made, steps=(replace(step, handler=HandlerRef("steps.items"), retry=RETRY),))


def run(url: str, fails: str, **options: Any) -> Any:
    async def end() -> Any:
        async with tasker.App(url, handlers=[HANDLERS], **options) as app:
            return await app.run(plan(), {"seconds": 0.0, "fails": fails})

    return asyncio.run(end())


def test_a_step_that_fails_between_checkpoints_repeats_only_what_came_after_the_last(database_url: str) -> None:
    step = run(database_url, "once").steps["items"]

    assert (step.state, step.attempts, step.result) == ("complete", 2, {"began": [0, 250, 500, 750]})


def test_a_step_that_fails_for_good_keeps_its_checkpoint(database_url: str, oracle: Oracle) -> None:
    step = run(database_url, "permanent").steps["items"]

    assert (step.state, step.attempts) == ("error", 1)
    assert oracle.value("select checkpoint->'cursor' from tasker.step_checkpoints") == 750


@pytest.mark.slow
def test_a_step_whose_worker_is_killed_goes_on_at_its_checkpoint(
    database_url: str, fleet: Fleet, oracle: Oracle
) -> None:
    arguments = ("--namespace", "items", "--handlers", str(HANDLERS))
    fleet.worker("doomed", *arguments, lease=1)

    async def submit() -> str:
        async with tasker.App(database_url, work=False) as app:
            return (await app.submit(plan(), {"seconds": 0.5, "fails": ""})).task_uuid

    task = asyncio.run(submit())
    saved = "select coalesce(max((checkpoint->>'cursor')::int), 0) from tasker.step_checkpoints"
    until(lambda: oracle.value(saved) >= 250, "a checkpoint is saved")
    fleet.kill("doomed")
    cursor = oracle.value(saved)
    until(lambda: oracle.is_given_up(fleet.processes["doomed"].pid), "the worker is given up")
    fleet.worker("another", *arguments)

    oracle.wait_for_the_end([task])
    oracle.check({task: "complete"})
    result = oracle.value("select result from tasker.step_results")
    assert result == {"began": [0, 250, 500, 750]}
    assert cursor >= 250
    assert oracle.value("select attempts from tasker.workflow_steps") == 2
    oracle.check_repairs()


def test_a_checkpoint_that_the_database_does_not_take_in_time_fails_the_attempt_and_frees_its_place(
    database_url: str,
) -> None:
    """The table is locked until the first attempt has failed; with one slot the second one needs the first one's."""

    async def run_locked() -> Any:
        settings = worker_settings(concurrency=1)
        runner = partial(AttemptRunner, checkpoint_timeout=0.2)
        async with tasker.App(database_url, handlers=[HANDLERS], settings=settings, runner=runner) as app:
            with psycopg.connect(database_url) as locker:
                locker.execute("lock table tasker.step_checkpoints in share mode")
                submitted = await app.submit(plan(), {"seconds": 0.0, "fails": ""})
                with psycopg.connect(database_url, autocommit=True) as observer:
                    async with asyncio.timeout(60):
                        while not observer.execute("select 1 from tasker.step_failures").fetchone():
                            await asyncio.sleep(0.02)
            return await app.wait(submitted.task_uuid)

    step = asyncio.run(run_locked()).steps["items"]

    assert (step.state, step.result["began"][-1]) == ("complete", 750)
    assert {failure["error_type"] for failure in step.failures} == {"checkpoint_save_failed"}
    assert {failure["retryable"] for failure in step.failures} == {True}
