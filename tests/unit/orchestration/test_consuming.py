"""The loop of an orchestrator's actor: when it looks, how long it rests, and how it stops."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tasker.engine.exchange import CompletingWorker
from tasker.engine.polling import QueuePoll, QueuePoller
from tasker.errors import DatabaseUnavailable
from tasker.orchestration.queue_actors import QueueActor


class Announced:
    """A process that does not poll: it waits for announcements."""

    def longest_pause(self) -> float | None:
        return None

    @contextmanager
    def poll(self, *, polled: bool) -> Iterator[QueuePoll]:
        yield QueuePoll()


class Box:
    """An inbox. Unless a test says otherwise, nothing is due in it."""

    pause = 3600.0

    def longest_pause(self) -> float:
        return self.pause


class Slow(Box):
    """An inbox whose looks end when the test says so."""

    def __init__(self) -> None:
        self.looks, self.ended = 0, 0
        self.began, self.go_on = asyncio.Event(), asyncio.Event()

    async def receive(self, caller: CompletingWorker, limit: int) -> int:
        self.looks += 1
        self.began.set()
        await self.go_on.wait()
        self.ended += 1
        return 1


def poller() -> QueuePoller:
    return QueuePoller(Announced(), random.Random(1))


class Empty(Box):
    """An inbox without messages."""

    def __init__(self, enough: int = 1) -> None:
        self.looks, self.enough = 0, enough
        self.looked = asyncio.Event()

    async def receive(self, caller: CompletingWorker, limit: int) -> int:
        self.looks += 1
        if self.looks >= self.enough:
            self.looked.set()
        return 0


async def test_an_actor_that_is_drained_ends_its_look_and_begins_no_other() -> None:
    inbox = Slow()
    actor = QueueActor(inbox, lambda: CompletingWorker("me"), poller(), random.Random(1))
    running = asyncio.create_task(actor.run())
    await inbox.began.wait()

    draining = asyncio.create_task(actor.drain())
    await asyncio.sleep(0)
    assert not draining.done()
    inbox.go_on.set()
    await draining
    await running

    assert (inbox.looks, inbox.ended) == (1, 1)


async def test_a_drain_ends_the_rest_of_an_actor_that_waits() -> None:
    inbox = Empty()
    actor = QueueActor(inbox, lambda: CompletingWorker("me"), poller(), random.Random(1))
    running = asyncio.create_task(actor.run())
    await inbox.looked.wait()

    await actor.drain()
    await running


async def test_what_becomes_visible_again_is_looked_for_although_nobody_announces_it() -> None:
    inbox = Empty(enough=3)
    inbox.pause = 0.0
    actor = QueueActor(inbox, lambda: CompletingWorker("me"), poller(), random.Random(1))
    running = asyncio.create_task(actor.run())

    async with asyncio.timeout(60):
        await inbox.looked.wait()

    await actor.drain()
    await running


async def test_while_looks_fail_announcements_do_not_make_them_more_frequent(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given back is announced again: looking at once would use up its deliveries during an outage."""
    pauses: list[float] = []
    enough = asyncio.Event()

    class Failing(Box):
        async def receive(self, caller: CompletingWorker, limit: int) -> int:
            actor.wake()
            raise DatabaseUnavailable("gone")

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 1100:
            enough.set()
            await asyncio.Event().wait()

    actor = QueueActor(Failing(), lambda: CompletingWorker("me"), poller(), random.Random(1))
    monkeypatch.setattr("tasker.orchestration.queue_actors.asyncio.sleep", sleep)
    running = asyncio.create_task(actor.run())
    async with asyncio.timeout(30):
        await enough.wait()
    running.cancel()
    about = [0.5, 1.0, 2.0, 4.0, 8.0] + [10.0] * 1095
    assert all(middle / 2 <= pause <= middle * 1.5 for pause, middle in zip(pauses, about, strict=True))
    assert len({*pauses}) > 1000, "actors that failed together do not come back together"
