"""Handlers that ask to be called again later (`again_in`)."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import pytest

import tasker
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.step_handler import again_in, step_handler
from tasker.template import compile_text

TEMPLATE = """
name: NAME
namespace: asking
version: 1.0.0
steps:
  - {name: look, handler: look, retry: {max_attempts: 1}}
"""


async def test_a_handler_that_asks_is_called_again_and_beyond_its_limit_the_step_fails(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tasker")
    registry, calls = HandlerRegistry(), Counter[str]()

    @step_handler("look")
    def look(context: Any) -> dict[str, int]:
        calls[name := context.get_input("name")] += 1
        if name == "never" or calls[name] < 3:
            again_in(0.01, reason="the payment is pending", limit=2)
        return {"calls": calls[name]}

    registry.register("look", look)
    (plan,) = compile_text(TEMPLATE.replace("NAME", "payment")).plans
    async with tasker.App(database_url, registry=registry) as app:
        paid, never = [await app.run(plan, {"name": name}, timeout=60) for name in ("paid", "never")]
        reports = [await app.tasks.report(outcome.task_uuid) for outcome in (paid, never)]
    step, failed = (report.steps["look"] for report in reports)

    assert paid.results == {"look": {"calls": 3}}
    assert step.attempts == 1, "asking uses no attempt"
    assert (calls["never"], failed.attempts) == (3, 1)
    assert failed.error is not None
    assert failed.error["type"] == "snoozed_too_often"
    assert [line for line in caplog.messages if line.startswith(f"Step completed: step_uuid={step.step_uuid} ")]
    assert not [line for line in caplog.messages if line.startswith(f"Step completed: step_uuid={failed.step_uuid} ")]
