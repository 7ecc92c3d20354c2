"""`circuit_breaker:` in a template, with a real worker."""

from __future__ import annotations

from pathlib import Path

from tasker.app import App
from tests.support.command_line import write_workflow

TEMPLATE = """
    name: remote
    namespace: breaker
    version: 1.0.0
    steps:
      - name: call
        handler: call
        retry: {max_attempts: 3, backoff: fixed, backoff_base_ms: 1, jitter: 0}
        circuit_breaker: {failure_threshold: 2, timeout_seconds: 2, success_threshold: 1}
"""
HANDLERS = """
    from tasker.errors import RetryableError
    from tasker.handlers.decorators import step_handler

    CALLS = []

    @step_handler("call")
    async def call():
        CALLS.append(1)
        if len(CALLS) < 3:
            raise RetryableError("no answer")
        return {"calls": len(CALLS)}
"""


async def test_a_step_is_put_off_while_its_breaker_is_open_and_has_all_its_attempts_then(
    tmp_path: Path, database_url: str
) -> None:
    folder = write_workflow(tmp_path / "remote", TEMPLATE, HANDLERS)
    async with App(database_url) as app:
        report = await app.run(folder, timeout=60)
        history = await app.tasks.history(report.task_uuid)
        health = app.breakers.health()

    assert report.status == "complete"
    assert report.steps["call"].attempts == 3
    assert report.results == {"call": {"calls": 3}}
    assert "breaker/remote/call: closed (3 calls, 2 failures)" in health.message
    deferred = [row for row in history if (row.from_state, row.to_state) == ("in_progress", "waiting_for_retry")]
    assert deferred, "it was claimed while the breaker was open, and put off"
    assert deferred[0].metadata["reason"] == "the circuit breaker of breaker/remote/call is open"
