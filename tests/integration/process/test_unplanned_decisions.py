"""Decisions that cannot be planned, as those of a task that a fail-over has lost: no other result waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, LiteralString

import psycopg
import pytest

import tasker
from tasker.app.configured import UNCONFIGURED
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.messaging.listening_modes import DeploymentMode
from tasker.orchestration import results as expansion
from tasker.template import compile_text
from tests.integration.process.programs import plan, runtime_of, settings

DECIDES = """
name: decides
namespace_name: ears
version: "1.0.0"
steps:
  - {name: route, type: decision, handler: ears.route}
  - {name: left, handler: ears.work, dependencies: [route]}
"""
GONE: Sequence[LiteralString] = (
    "delete from tasker.step_moves",
    "delete from tasker.workflow_steps",
    "delete from tasker.task_moves",
    "delete from tasker.task_details",
    "delete from tasker.tasks",
)


@pytest.mark.parametrize("result_path", ["inline", "queued"])
async def test_what_a_task_that_is_gone_has_decided_holds_up_no_other_result(
    database_url: str, result_path: str
) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def route(context: Any) -> dict[str, Any]:
        begun.set()
        await may_end.wait()
        return {"decision_point_outcome": {"type": "create_steps", "step_names": ["left"]}}

    async def work(context: Any) -> dict[str, Any]:
        return {"done": True}

    registry = HandlerRegistry()
    registry.register("ears.route", route)
    registry.register("ears.work", work)
    chosen = settings(DeploymentMode.HYBRID, result_path=result_path)
    (decides,) = compile_text(DECIDES).plans
    async with tasker.App(database_url, registry=registry, settings=chosen, configuration=UNCONFIGURED) as app:
        await app.submit(decides)
        await asyncio.wait_for(begun.wait(), 60)
        with psycopg.connect(database_url) as connection:
            for statement in GONE:
                connection.execute(statement)
        may_end.set()
        report = await app.run(plan(), timeout=30)

        assert report.succeeded
        assert not runtime_of(app).supervisor.crashes
        assert not runtime_of(app).worker.busy


async def test_a_decision_that_a_defect_of_ours_does_not_understand_fails_its_step_alone(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*args: Any) -> None:
        raise RuntimeError("a defect")

    async def handler(context: Any) -> dict[str, Any]:
        return {"decision_point_outcome": {"type": "create_steps", "step_names": ["left"]}}

    async def work(context: Any) -> dict[str, Any]:
        return {}

    monkeypatch.setattr(expansion, "plan_growth", broken)
    registry = HandlerRegistry()
    registry.register("ears.route", handler)
    registry.register("ears.work", work)
    (decides,) = compile_text(DECIDES).plans
    async with tasker.App(database_url, registry=registry, configuration=UNCONFIGURED) as app:
        decided, other = await asyncio.gather(app.run(decides, timeout=30), app.run(plan(), timeout=30))

        assert other.succeeded
        assert not runtime_of(app).supervisor.crashes
    assert decided.error is not None
    assert (decided.error["type"], decided.error["step"]) == ("result_unusable", "route")
    assert "a defect" in decided.error["message"]
    assert (decided.error["retryable"], decided.steps["route"].attempts) == (False, 1)
