"""How far a running step is, told to whoever follows its task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

import tasker
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.step_handler import checkpoint_yield, step_handler
from tasker.template import compile_text
from tests.integration.api.program import registered
from tests.integration.api.test_events import Event, events, http_server, remote
from tests.support.waiting import LIMIT_SECONDS

__all__ = ["http_server", "remote"]

FOLLOWED = """
name: followed
namespace: shop
version: 1.0.0
identity_strategy: always_unique
steps: [{name: long, handler: shop.long, retry: {max_attempts: 1}}]
"""


@pytest.fixture(scope="module")
def ended() -> Iterator[asyncio.Event]:
    """Until it is set the step runs."""
    event = asyncio.Event()
    yield event
    event.set()


@pytest.fixture(scope="module")
def registry(ended: asyncio.Event) -> HandlerRegistry:
    @step_handler("shop.long")
    async def long(context: Any) -> dict[str, Any]:
        if context.checkpoint is None:
            checkpoint_yield(3, 3)
        context.report_progress(done=1, total=4, message="reading b.csv")
        await ended.wait()
        return {}

    found = registered()
    found.register("shop.long", long)
    return found


async def until_told(stream: AsyncIterator[Event], wanted: set[str]) -> dict[str, Event]:
    """The first event of progress that has each of these."""
    found: dict[str, Event] = {}
    async with asyncio.timeout(LIMIT_SECONDS):
        async for event in stream:
            if event.kind == "progress":
                found |= dict.fromkeys(wanted & set(event.data) - set(found), event)
            if wanted == set(found):
                return found
    raise AssertionError(f"the task has ended, and of {wanted} there was {set(found)}")


async def test_who_follows_a_task_is_told_how_far_a_step_says_that_it_is_and_of_its_checkpoints(
    app: tasker.App, remote: httpx.AsyncClient, ended: asyncio.Event
) -> None:
    (plan,) = compile_text(FOLLOWED).plans
    await app.plans.register(plan)
    await app.plan(plan)
    created = await remote.post("/v1/tasks", json={"namespace": "shop", "name": "followed"})
    task = created.json()["task_uuid"]
    stream = events(remote, task)

    found = await until_told(stream, {"percent", "items_processed"})

    assert found["items_processed"].data["items_processed"] == 3
    told = found["percent"]
    assert (told.place, told.data["step"]) == (None, "long"), "a client that was cut is not sent it again"
    assert (told.data["percent"], told.data["done"], told.data["total"]) == (25, 1, 4)
    assert told.data["message"] == "reading b.csv"
    (step,) = (await remote.get(f"/v1/tasks/{task}/progress")).json()["steps"]
    assert (step["reported"]["percent"], step["reported"]["message"]) == (25, "reading b.csv")
    ended.set()
    assert [event async for event in stream][-1] == Event("end", None, {"status": "complete"})
