"""An app belongs to the event loop in which it was started: other loops are refused, and hurt nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import tasker
from tasker.errors import UsageError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.step_handler import step_handler
from tasker.template import compile_text

TEXT = "name: one\nnamespace: loops\nversion: 1.0.0\nsteps:\n  - {name: a, handler: loops.a}\n"
(PLAN,) = compile_text(TEXT).plans

Call = Callable[[tasker.App, str], Awaitable[Any]]
CALLS: dict[str, Call] = {
    "list": lambda app, task: app.tasks.list(limit=1),
    "submit": lambda app, task: app.submit(PLAN, {"n": 1}),
    "run": lambda app, task: app.run(PLAN, {"n": 1}),
    "wait": lambda app, task: app.wait(task),
    "finished": lambda app, task: app.finished(task),
}


@step_handler("loops.a")
async def a(context: Any) -> None:
    """Nothing."""


@pytest.mark.parametrize("call", CALLS)
async def test_a_call_from_another_loop_is_refused_and_hurts_nobody(database_url: str, call: str) -> None:
    registry = HandlerRegistry()
    registry.register("loops.a", a._handler_class)
    async with tasker.App(database_url, registry=registry) as app:
        task = (await app.run(PLAN, {"n": 0}, timeout=60)).task_uuid

        def elsewhere() -> None:
            async def asked() -> None:
                await CALLS[call](app, task)

            with pytest.raises(UsageError, match="another event loop") as refused:
                asyncio.run(asked())
            assert "SyncApp" in str(refused.value.hint)

        await asyncio.to_thread(elsewhere)
        for _ in range(4):
            await CALLS[call](app, task) if call != "submit" else await app.tasks.list(limit=1)
        assert len(await app.tasks.list(limit=10)) == (5 if call == "run" else 1)
