"""Slots of a step that uses several: it waits for them in its worker, which claims nothing meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tasker.execution.attempt.attempt import Attempt, AttemptEnd, ClaimReleased
from tasker.execution.attempt.capacity import CapacityWaits, report_start
from tasker.execution.slots import Slots


@asynccontextmanager
async def several_slots(
    slots: Slots, attempt: Attempt, limit: float, waits: CapacityWaits
) -> AsyncIterator[AttemptEnd | None]:
    """Occupy the slots that the step needs; if they do not become free, yield how the attempt ends.

    A step that no worker of this size can run is released as unserved. One step at a time waits for slots; others are
    released at once, for workers that have free ones. `limit` is the time that the handler will have, in seconds.
    """
    count = attempt.step.slots
    if count > slots.concurrency:
        reason = f"the step needs {count} slots, the worker has {slots.concurrency}"
        yield ClaimReleased(attempt.claim, reason)
        return
    slots.add(count - 1)
    try:
        yield await _end_without_slots(slots, attempt, limit, waits)
    finally:
        slots.finish(count - 1)


async def _end_without_slots(slots: Slots, attempt: Attempt, limit: float, waits: CapacityWaits) -> AttemptEnd | None:
    """Wait until the slots are free; return None then, otherwise how the attempt ends."""
    flag, lacking = attempt.cancel, f"{attempt.step.slots} slots of the worker were not free for it"
    if slots.has_room or flag.is_set():
        return flag.end_of(attempt.claim)
    if slots.awaited:
        flag.set(ClaimReleased, lacking)
        return flag.end_of(attempt.claim)
    loop = asyncio.get_running_loop()
    since, slots.awaited = loop.time(), True
    waiting = asyncio.ensure_future(slots.wait_room())
    timer = loop.call_later(waits.patience(limit), flag.set, ClaimReleased, f"{lacking} in time")
    flag.wake = lambda _: waiting.cancel()
    try:
        await asyncio.wait({waiting})
    finally:
        flag.wake, slots.awaited = None, False
        timer.cancel()
        waiting.cancel()
    if not flag.is_set() and loop.time() - since > waits.grace / 2:
        await report_start(attempt)
    return flag.end_of(attempt.claim)
