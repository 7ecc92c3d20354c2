"""A process that stops ends the sweep that is under way: what it has committed is told, to plugins for instance."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import pytest

from tasker.messaging.listening_modes import DeploymentMode
from tasker.orchestration.sweep import Sweeper
from tasker.orchestration.upkeep import Upkeep
from tests.integration.process.programs import runtime_of, settings, working
from tests.integration.process.test_orchestrator import orchestrating

LastSweep: TypeAlias = Callable[[Callable[[], Awaitable[None]]], Awaitable[list[str]]]


@pytest.fixture
def last_sweep(monkeypatch: pytest.MonkeyPatch) -> LastSweep:
    """What becomes of sweeps that last until the process drains, one of which is under way when it is told to stop."""
    began, drains, became = asyncio.Event(), asyncio.Event(), list[str]()

    async def sweep(*_: object) -> Counter[str]:
        began.set()
        try:
            await drains.wait()
        except asyncio.CancelledError:
            became.append("cut off")
            raise
        became.append("ended")
        return Counter()

    async def drain(upkeep: Upkeep) -> None:
        drains.set()
        await drain_as_always(upkeep)

    drain_as_always = Upkeep.drain
    monkeypatch.setattr(Upkeep, "drain", drain)
    monkeypatch.setattr(Sweeper, "sweep", sweep)

    async def stopped(stop: Callable[[], Awaitable[None]]) -> list[str]:
        await asyncio.wait_for(began.wait(), 60)
        await stop()
        return became

    return stopped


async def test_an_orchestrator_ends_its_sweep(database_url: str, last_sweep: LastSweep) -> None:
    async with orchestrating(database_url) as orchestrator:
        assert await last_sweep(orchestrator.stop) == ["ended"]


async def test_a_worker_ends_its_sweep(database_url: str, last_sweep: LastSweep) -> None:
    async with working(database_url, settings(DeploymentMode.HYBRID)) as app:
        assert await last_sweep(runtime_of(app).stop) == ["ended"]
