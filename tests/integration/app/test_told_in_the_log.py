"""The lines of steps that go to the queue, and of tasks that end without a result."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import tasker
from tasker import App

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
OPTIONS = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01", "correlation_id": "0199c1f4-8a52-7000-8000-00000000c0de"}
HELD = """
name: held
namespace_name: told
version: 1.0.0
steps:
  - {name: first, handler: {callable: nobody_has_it}}
  - {name: second, handler: {callable: nobody_has_it}, depends_on: [first]}
"""


def begun(task: str) -> str:
    """With what each line about this task begins."""
    return f"correlation_id={OPTIONS['correlation_id']} task_uuid={task}"


def lines(caplog: pytest.LogCaptureFixture, phrase: str) -> list[str]:
    return [message for message in caplog.messages if message.startswith(phrase)]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "held.yaml").write_text(HELD)
    return tmp_path / "held.yaml"


@pytest.mark.parametrize("backend", ["pgmq", "memory"])
async def test_each_step_that_goes_to_the_queue_is_a_line(
    module_database_url: str, target: Path, caplog: pytest.LogCaptureFixture, backend: str
) -> None:
    async with tasker.App(module_database_url, work=False, backend=backend) as app:
        with caplog.at_level(logging.DEBUG, "tasker.engine"):
            task = (await app.submit(target, {}, idempotency_key=backend, **OPTIONS)).task_uuid
            await app.steps.complete(task, "first", {}, actor="operator", reason="done by hand")
        steps = (await app.tasks.report(task)).steps

    told = lines(caplog, "Step enqueued: step_uuid=")
    assert len(told) == 2
    for name, line in zip(("first", "second"), told, strict=True):
        step = steps[name].step_uuid
        assert line.startswith(
            f"Step enqueued: step_uuid={step} {begun(task)} namespace=told operation=step_enqueued duration_ms="
        )
        assert line.endswith(
            f" step_name={name} attempt=1 queue=worker_told_queue trace_id={TRACE} span_id=00f067aa0ba902b7"
        )


async def test_tasks_that_a_person_ends_are_finalized_in_the_log(
    module_database_url: str, target: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with tasker.App(module_database_url, work=False) as app:
        cancelled, completed = [(await app.submit(target, {"n": n}, **OPTIONS)).task_uuid for n in "ab"]
        with caplog.at_level(logging.INFO, "tasker"):
            await app.tasks.cancel(cancelled, actor="operator", reason="not needed")
            await mended(app, completed)

    assert lines(caplog, "Task finalized: task_uuid=") == [
        f"Task finalized: task_uuid={task} correlation_id={OPTIONS['correlation_id']} namespace=told state={state} "
        f"trace_id={TRACE} span_id=00f067aa0ba902b7"
        for task, state in ((cancelled, "cancelled"), (completed, "complete"))
    ]


async def mended(app: App, task: str) -> None:
    for step in ("first", "second"):
        await app.steps.resolve(task, step, actor="operator", reason="not needed")
