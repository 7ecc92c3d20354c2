"""A worker that takes nothing more leaves the messages where they are, and another one takes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import tasker
from tasker.app.configured import UNCONFIGURED
from tasker.resilience.breakers import BreakerPolicies
from tasker.template.plan import BreakerPolicy
from tests.support.command_line import write_workflow

TEMPLATE = """
    name: short
    namespace: held
    version: 1.0.0
    steps: [{name: only, handler: only}]
"""
HANDLERS = """
    from tasker.handlers.decorators import step_handler

    @step_handler("only")
    async def only():
        return {"done": True}
"""
PATIENT = replace(UNCONFIGURED, breakers=BreakerPolicies(completion=BreakerPolicy(timeout_seconds=300)))


async def test_what_a_worker_with_an_open_breaker_leaves_another_one_does_at_its_first_attempt(
    tmp_path: Path, database_url: str
) -> None:
    folder = write_workflow(tmp_path / "short", TEMPLATE, HANDLERS)
    async with tasker.App(database_url, configuration=PATIENT) as held, tasker.App(database_url) as other:
        assert held.runtime
        assert other.runtime
        held.breakers.completion.guard.force_open()
        tasks = [(await held.submit(folder, {}, idempotency_key=str(n))).task_uuid for n in range(5)]
        assert held.runtime.worker.busy == 0
        await other.plan(folder)
        reports = [await other.wait(task, timeout=60) for task in tasks]
        history = [row for task in tasks for row in await other.tasks.history(task)]

    assert {step.attempts for report in reports for step in report.steps.values()} == {1}
    claims = [row for row in history if row.to_state == "in_progress"]
    assert {str(row.worker) for row in claims} == {other.runtime.worker.identity}
