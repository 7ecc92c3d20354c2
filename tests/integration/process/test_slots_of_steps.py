"""Steps that use several slots: together no more than the worker has, and small ones that come later wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg

import tasker
from tasker.app.configured import UNCONFIGURED
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.messaging.listening_modes import DeploymentMode
from tasker.template import compile_text
from tasker.template.plan import Plan
from tests.integration.process.programs import eventually, runtime_of, settings
from tests.support.command_line import invoke

TEMPLATE = """
name: {name}
namespace_name: ears
version: "1.0.0"
steps:
  - {{name: only, handler: ears.{name}, slots: {slots}}}
"""


def plan(name: str, slots: int) -> Plan:
    (compiled,) = compile_text(TEMPLATE.format(name=name, slots=slots)).plans
    return compiled


HEAVY, LIGHT = plan("heavy", 3), plan("light", 1)


class Load:
    """What runs at the same time, in slots; `gate` holds the light steps."""

    def __init__(self) -> None:
        self.used, self.most, self.begun = 0, 0, list[str]()
        self.gate = asyncio.Event()

    async def run(self, name: str, slots: int) -> dict[str, Any]:
        self.begun.append(name)
        self.used += slots
        self.most = max(self.most, self.used)
        try:
            await (self.gate.wait() if slots == 1 else asyncio.sleep(0.01))
        finally:
            self.used -= slots
        return {}


@asynccontextmanager
async def working(url: str, load: Load, concurrency: int = 4) -> AsyncIterator[tasker.App]:
    async def heavy(context: Any) -> dict[str, Any]:
        return await load.run("heavy", 3)

    async def light(context: Any) -> dict[str, Any]:
        return await load.run("light", 1)

    registry = HandlerRegistry()
    registry.register("ears.heavy", heavy)
    registry.register("ears.light", light)
    chosen = settings(DeploymentMode.HYBRID, concurrency=concurrency)
    async with tasker.App(url, registry=registry, settings=chosen, configuration=UNCONFIGURED) as app:
        await runtime_of(app).serve("ears")
        try:
            yield app
        finally:
            load.gate.set()


def ended(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute("select count(*) from tasker.tasks where state = 'complete'").fetchone()
    assert found is not None
    return int(found[0])


def is_set_aside(url: str) -> bool:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute("select from tasker.ready_backlog where unserved is not null").fetchone() is not None


def attempts(url: str) -> set[int]:
    with psycopg.connect(url, autocommit=True) as connection:
        return {row[0] for row in connection.execute("select attempts from tasker.workflow_steps")}


async def test_no_more_slots_are_used_than_the_worker_has(database_url: str) -> None:
    load = Load()
    load.gate.set()
    async with working(database_url, load) as app:
        for n in range(10):
            await app.submit(HEAVY, {"n": n})
            await app.submit(LIGHT, {"n": n})
        await eventually(lambda: ended(database_url) == 20, "all have ended")
        assert runtime_of(app).worker.slots.running == 0

    assert 3 <= load.most <= 4
    assert attempts(database_url) == {1}


async def test_a_large_step_starts_before_small_ones_that_come_later(database_url: str) -> None:
    load = Load()
    async with working(database_url, load) as app:
        for n in range(2):
            await app.submit(LIGHT, {"n": n})
        await eventually(lambda: load.begun == ["light"] * 2, "both run")
        await app.submit(HEAVY, {})
        await eventually(lambda: runtime_of(app).worker.slots.awaited, "it waits for its slots")
        for n in range(2, 8):
            await app.submit(LIGHT, {"n": n})
        load.gate.set()
        await eventually(lambda: ended(database_url) == 9, "all have ended")

    assert load.begun[2] == "heavy"
    assert load.most <= 4


async def test_a_step_larger_than_any_worker_waits_for_a_larger_one(database_url: str) -> None:
    load = Load()
    async with working(database_url, load, concurrency=2) as app:
        task = (await app.submit(HEAVY, {})).task_uuid
        await eventually(lambda: is_set_aside(database_url), "it is refused")
        explained = await asyncio.to_thread(invoke, "task", "explain", task, database=database_url)
        said = "needs 3 slots, and no live worker of the namespace ears has more than 2"
        assert said in explained.stdout
        assert "--concurrency 3" in explained.stdout

        async with working(database_url, load, concurrency=3):
            await eventually(lambda: ended(database_url) == 1, "the larger worker has run it")
