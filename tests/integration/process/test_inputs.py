"""What a handler reads are results that the engine has accepted, whoever else has worked on the step meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg

import tasker
from tasker.app.configured import UNCONFIGURED
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.messaging.listening_modes import DeploymentMode
from tasker.template import compile_text
from tests.integration.process.programs import eventually, settings

TEMPLATE = """
name: diamond
namespace_name: ears
version: "1.0.0"
steps:
  - {name: a, handler: ears.a}
  - {name: x, handler: ears.x}
  - {name: d, handler: ears.d, dependencies: [a, x]}
"""


class Handlers:
    """`a` and `x` begin and wait until they may end; `d` keeps what it reads."""

    def __init__(self) -> None:
        self.begun = {"a": asyncio.Event(), "x": asyncio.Event()}
        self.may_end = {"a": asyncio.Event(), "x": asyncio.Event()}
        self.read: dict[str, Any] = {}

    def registry(self) -> HandlerRegistry:
        async def reads(context: Any) -> dict[str, Any]:
            self.read = {name: context.get_dependency_result(name) for name in ("a", "x")}
            return {"done": True}

        found = HandlerRegistry()
        for name in self.begun:
            found.register(f"ears.{name}", self._waits(name))
        found.register("ears.d", reads)
        return found

    def _waits(self, name: str) -> Callable[[Any], Awaitable[dict[str, Any]]]:
        async def waits(context: Any) -> dict[str, Any]:
            self.begun[name].set()
            await self.may_end[name].wait()
            return {"by": "the handler"}

        return waits


def refused(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("select count(*) from tasker.refused_results").fetchone()
        assert row is not None
        return int(row[0])


async def test_a_result_that_was_refused_is_nobodys_input(database_url: str) -> None:
    handlers = Handlers()
    (plan,) = compile_text(TEMPLATE).plans
    chosen = settings(DeploymentMode.HYBRID)
    async with tasker.App(
        database_url, registry=handlers.registry(), settings=chosen, configuration=UNCONFIGURED
    ) as app:
        task = (await app.submit(plan)).task_uuid
        for begun in handlers.begun.values():
            await asyncio.wait_for(begun.wait(), 60)
        await app.steps.complete(task, "a", {"by": "the operator"}, actor="ops", reason="known already")
        handlers.may_end["a"].set()
        await eventually(lambda: refused(database_url) == 1, "the late result is refused")
        handlers.may_end["x"].set()
        report = await app.wait(task, timeout=60)
    assert report.status == "complete"
    assert handlers.read == {"a": {"by": "the operator"}, "x": {"by": "the handler"}}
