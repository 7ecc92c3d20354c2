"""A retry that goes straight to the process that promotes it, and whose claim is not answered: it is not waited for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import tasker
from tasker.app.configured import UNCONFIGURED
from tasker.errors import ConnectionLost, RetryableError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.messaging.listening_modes import DeploymentMode
from tests.integration.process.programs import NEVER_MS, plan, runtime_of, settings


async def test_a_promotion_whose_answer_is_lost_costs_neither_an_attempt_nor_the_steps_time(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its claims are committed, and nobody has them: they would last as long as the step may."""
    lost = 0

    async def work(context: Any) -> dict[str, Any]:
        if context.retry_count == 0:
            raise RetryableError("not yet", retry_after=0)
        return {"tries": context.retry_count}

    registry = HandlerRegistry()
    registry.register("ears.work", work)
    chosen = settings(DeploymentMode.HYBRID, timeout_ms=NEVER_MS)
    async with tasker.App(database_url, registry=registry, settings=chosen, configuration=UNCONFIGURED) as app:
        engine = runtime_of(app).upkeep._engine
        move = engine.call_typed

        async def loses(function: str, args: Mapping[str, Any], answer: Any) -> Any:
            nonlocal lost
            found = await move(function, args, answer)
            if function == "due" and found.claims and not lost:
                lost += 1
                raise ConnectionLost("the answer did not come")
            return found

        monkeypatch.setattr(engine, "call_typed", loses)
        report = await app.run(plan(), timeout=30)

    assert lost == 1
    assert report.succeeded
    assert [step.attempts for step in report.steps.values()] == [2, 2]
    assert report.results == {"first": {"tries": 1}, "second": {"tries": 1}}
