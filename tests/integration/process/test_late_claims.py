"""Claims that are answered when everything that runs was told to end: no handler begins with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import psycopg
import pytest

import tasker
from tasker.app.configured import UNCONFIGURED
from tasker.engine.answers import ClaimAnswer
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.messaging.listening_modes import DeploymentMode
from tasker.process.runtime import Runtime
from tests.integration.process.programs import plan, runtime_of, settings, submitting


class Late:
    """The first claim of a worker is answered when `told` is set; `committed` says that it is made."""

    def __init__(self, runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
        self.committed, self.told = asyncio.Event(), asyncio.Event()
        self._claim: Callable[..., Any] = runtime.execution.claimer._engine.claim
        monkeypatch.setattr(runtime.execution.claimer._engine, "claim", self._late)

    async def _late(self, args: Mapping[str, Any]) -> ClaimAnswer:
        answer: ClaimAnswer = await self._claim(args)
        if answer.claims and not self.committed.is_set():
            self.committed.set()
            await self.told.wait()
        return answer


class Work:
    """A handler that takes until `may_end` is set, and counts how often it began."""

    def __init__(self) -> None:
        self.began, self.may_end = 0, asyncio.Event()

    def registry(self) -> HandlerRegistry:
        async def work(context: Any) -> dict[str, Any]:
            self.began += 1
            await self.may_end.wait()
            return {}

        found = HandlerRegistry()
        found.register("ears.work", work)
        return found


def step(url: str) -> tuple[Any, ...]:
    with psycopg.connect(url) as connection:
        row = connection.execute("select state, attempts from tasker.workflow_steps where name = 'first'").fetchone()
    assert row is not None
    return row


@pytest.fixture
def work() -> Work:
    return Work()


async def test_a_claim_that_is_answered_while_a_worker_stops_is_given_back(
    database_url: str, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = settings(DeploymentMode.HYBRID)
    async with (
        submitting(database_url) as other,
        tasker.App(database_url, registry=work.registry(), settings=chosen, configuration=UNCONFIGURED) as app,
    ):
        runtime = runtime_of(app)
        late = Late(runtime, monkeypatch)
        stop_all = runtime.worker.claims.stop_all

        def stopped(*args: Any) -> None:
            stop_all(*args)
            late.told.set()

        monkeypatch.setattr(runtime.worker.claims, "stop_all", stopped)
        await runtime.serve("ears")
        await other.submit(plan())
        await asyncio.wait_for(late.committed.wait(), 60)
        await runtime.stop(0)

    assert work.began == 0
    assert step(database_url) == ("enqueued", 0)


async def test_a_claim_that_is_answered_after_the_lease_was_lost_begins_under_a_new_one_alone(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another handler does not end when it is told to, so that the worker cannot begin anew at once."""
    begun, may_end, accepted = asyncio.Event(), asyncio.Event(), asyncio.Event()
    by: list[str] = []

    async def work(context: Any) -> dict[str, Any]:
        if context.get_input("stubborn") and not begun.is_set():
            begun.set()
            while not may_end.is_set():
                with suppress(asyncio.CancelledError):
                    await may_end.wait()
        elif not context.get_input("stubborn"):
            by.append(runtime.worker.identity)
        return {}

    async def accept(answer: Any) -> None:
        await accepts(answer)
        accepted.set()

    registry = HandlerRegistry()
    registry.register("ears.work", work)
    async with (
        submitting(database_url) as other,
        tasker.App(
            database_url, registry=registry, settings=settings(DeploymentMode.HYBRID), configuration=UNCONFIGURED
        ) as app,
    ):
        runtime = runtime_of(app)
        await runtime.serve("ears")
        former, accepts = runtime.worker.identity, runtime.worker.accept
        await app.submit(plan(), {"stubborn": True})
        await asyncio.wait_for(begun.wait(), 60)
        late = Late(runtime, monkeypatch)
        task = await other.submit(plan(), {"stubborn": False})
        await asyncio.wait_for(late.committed.wait(), 60)
        monkeypatch.setattr(runtime.worker, "accept", accept)
        runtime.fenced()
        late.told.set()
        await asyncio.wait_for(accepted.wait(), 60)
        may_end.set()
        report = await app.wait(task.task_uuid, timeout=60)

    assert report.status == "complete"
    assert len(by) == 2, "each of the two steps began once"
    assert former not in by
