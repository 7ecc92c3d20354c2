"""Starts and stops that are cancelled, at any of their moments: they come to their end, and leave nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import tasker
from tasker.app.app import App
from tasker.engine.process_registry import ProcessRegistry
from tasker.errors import UsageError
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.template.plan import Plan
from tests.integration.app.life.left import WORKERS, leases, nothing_is_open
from tests.integration.app.program import value

ENDS: dict[str, Callable[[App], tuple[Any, str]]] = {
    "gives back": lambda app: (runtime(app).actors, "drain"),
    "ends its services": lambda app: (runtime(app).supervisor, "stop"),
    "leaves the registry": lambda app: (runtime(app)._membership, "leave"),
    "closes the engines": lambda app: (runtime(app)._context.engines, "close"),
    "lets go of the database": lambda app: (app._connection.pool, "close"),
}
"""Moments of a stop: what has the method that is called then."""


def runtime(app: App) -> Any:
    assert app.runtime is not None
    return app.runtime


def at(
    monkeypatch: pytest.MonkeyPatch, owner: Any, method: str, call: Callable[[], object], *, behind: bool = False
) -> None:
    """Call this when the method is called, or `behind` what it does."""
    original = getattr(owner, method)

    async def called(*args: Any) -> Any:
        answer = await original(*args) if behind else None
        call()
        await asyncio.sleep(0)  # here a cancellation arrives
        return answer if behind else await original(*args)

    monkeypatch.setattr(owner, method, called)


@pytest.mark.parametrize("moment", ENDS)
async def test_a_stop_that_is_cancelled_at_its_end_comes_to_its_end(
    database_url: str, registry: HandlerRegistry, plan: Plan, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    before, app = asyncio.all_tasks(), tasker.App(database_url, registry=registry)
    await app.start()
    await app.run(plan, {"name": "Ada"})
    stopping = asyncio.create_task(app.stop())
    at(monkeypatch, *ENDS[moment](app), stopping.cancel)
    with pytest.raises(asyncio.CancelledError):
        await stopping

    nothing_is_open(database_url, before)
    assert (value(database_url, WORKERS), leases()) == (0, [])
    await app.stop()


async def test_a_stop_that_is_cancelled_again_and_again_comes_to_its_end(
    database_url: str, registry: HandlerRegistry, plan: Plan
) -> None:
    """As cancel scopes of anyio do."""
    before, app = asyncio.all_tasks(), tasker.App(database_url, registry=registry)
    await app.start()
    await app.run(plan, {"name": "Ada"})
    stopping = asyncio.create_task(app.stop())
    await asyncio.sleep(0)
    while not stopping.done():
        stopping.cancel()
        await asyncio.sleep(0)

    nothing_is_open(database_url, before)
    assert (value(database_url, WORKERS), leases()) == (0, [])


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("times", [1, 1000])
async def test_a_start_that_is_cancelled_as_its_worker_is_registered_leaves_nothing(
    database_url: str, registry: HandlerRegistry, plan: Plan, monkeypatch: pytest.MonkeyPatch, times: int, behind: bool
) -> None:
    before, app = asyncio.all_tasks(), tasker.App(database_url, registry=registry)
    starting, registering = asyncio.create_task(app.start()), asyncio.Event()
    at(monkeypatch, ProcessRegistry, "start", registering.set, behind=behind)
    await registering.wait()
    for _ in range(times):
        starting.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await starting

    nothing_is_open(database_url, before)
    assert (value(database_url, WORKERS), leases()) == (0, [])
    monkeypatch.undo()
    async with app:
        assert (await app.run(plan, {"name": "Ada"})).succeeded


async def test_a_stop_beside_a_start_waits_for_it(database_url: str, registry: HandlerRegistry) -> None:
    before, app = asyncio.all_tasks(), tasker.App(database_url, registry=registry)
    starting = asyncio.create_task(app.start())
    await asyncio.sleep(0)
    await app.stop()

    assert starting.done()
    nothing_is_open(database_url, before)
    assert value(database_url, WORKERS) == 0


async def test_a_second_start_beside_a_start_is_refused(database_url: str) -> None:
    app = tasker.App(database_url, work=False)
    starting = asyncio.create_task(app.start())
    await asyncio.sleep(0)
    with pytest.raises(UsageError, match="started already"):
        await app.start()
    await starting
    assert await app.tasks.list() == []
    await app.stop()


async def test_a_stop_beside_a_start_that_fails_is_nothing(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = tasker.App(database_url, registry=HandlerRegistry())
    starting, stopping = asyncio.create_task(app.start()), list[asyncio.Task[None]]()

    def fail() -> None:
        stopping.append(asyncio.create_task(app.stop()))
        starting.cancel()

    at(monkeypatch, ProcessRegistry, "start", fail)
    with pytest.raises(asyncio.CancelledError):
        await starting
    await asyncio.gather(*stopping)
