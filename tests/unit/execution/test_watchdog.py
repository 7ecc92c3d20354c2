"""The watchdog over the event loop: it names who blocks it, once, and says when it is over."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import FrameType

import pytest

from tasker.clock import SystemClock
from tasker.execution.step_execution import LoopWatchdog
from tests.support.waiting import until


class Hand:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


@asynccontextmanager
async def watched(dog: LoopWatchdog) -> AsyncIterator[LoopWatchdog]:
    task = asyncio.create_task(dog.run())
    await asyncio.sleep(0)
    yield dog
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def block_until_noticed(dog: LoopWatchdog) -> None:
    until(lambda: dog.stalls > 0, "the watchdog has seen it")


async def test_a_blocked_loop_is_told_with_who_blocks_it_where_and_for_how_long(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with watched(LoopWatchdog(SystemClock(), 50, lambda: "step pay of task 7")) as dog:
        block_until_noticed(dog)
        while not any(message.startswith("event_loop_recovered") for message in caplog.messages):
            await asyncio.sleep(0.01)

    told = [message for message in caplog.messages if message.startswith("event_loop_blocked ms=")]
    (blocked,) = [message for message in told if "in block_until_noticed" in message]  # others are the machine's doing
    assert "by step pay of task 7" in blocked


async def test_one_standstill_is_told_once_however_often_it_is_looked_at(caplog: pytest.LogCaptureFixture) -> None:
    clock = Hand()
    dog = LoopWatchdog(clock, 1000, lambda: None)  # type: ignore[arg-type]
    for seconds in (0.9, 1.1, 1.9, 2.8, 3.7):
        clock.seconds = seconds
        dog.check()

    assert dog.stalls == 1


async def test_a_process_that_stood_still_as_a_whole_accuses_nobody_of_blocking_the_loop(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Hand()
    dog = LoopWatchdog(clock, 1000, lambda: None)  # type: ignore[arg-type]
    dog.check()
    clock.seconds = 60.0
    dog.check()
    dog.check()

    assert dog.stalls == 0
    assert [message.split()[:2] for message in caplog.messages] == [["process_stood_still", "ms=60000:"]]


async def test_a_loop_that_turns_while_its_stack_is_taken_is_told_with_how_long_it_stood_still(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Hand()
    dog = LoopWatchdog(clock, 1000, lambda: None)  # type: ignore[arg-type]

    def turns() -> dict[int, FrameType]:
        dog._turned = clock.seconds = 1.2
        return {}

    monkeypatch.setattr(sys, "_current_frames", turns)
    for seconds in (0.9, 1.1, 1.3):
        clock.seconds = seconds
        dog.check()

    assert [message.split()[:2] for message in caplog.messages] == [
        ["event_loop_blocked", "ms=1100:"],
        ["event_loop_recovered", "after_ms=1200"],
    ]


async def test_a_loop_that_turns_is_not_spoken_of(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "tasker.worker")
    clock = Hand()
    dog = LoopWatchdog(clock, 1000, lambda: None)  # type: ignore[arg-type]
    for _ in range(20):
        clock.seconds += 0.2
        dog._turned = clock.seconds
        dog.check()

    assert not caplog.messages
