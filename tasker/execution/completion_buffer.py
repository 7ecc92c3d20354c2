"""What has ended and is not stored yet: results to bring, claims to give back, between the worker and its collector.

A result is never dropped: one whose write failed is here again. While it is full nothing more is claimed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from tasker.contracts.execution import Success
from tasker.execution.claims_in_hand import ReleasedClaim
from tasker.execution.slots import Slots
from tasker.lifecycle.pressure import BufferLevel, BufferLimits
from tasker.services.engine.exchange import Result

BATCH_BYTES = 16_000_000
"""About how long the results of one write are together: of hundreds of megabytes the database reads all, and refuses
them then."""
BUFFER = "completion_buffer"
"""Reason for which nothing more is claimed."""

_log = logging.getLogger("tasker.execution")


class CompletionBuffer:
    """Takes what ends, and hands it out by writes. Full, it holds the `slots` until there is room again."""

    def __init__(self, slots: Slots, limits: BufferLimits) -> None:
        self._slots, self._limits = slots, limits
        self._results: list[Result] = []
        self._again: list[Result] = []
        self._given_back: dict[str, ReleasedClaim] = {}
        self._writing = 0
        self._fill = BufferLevel.NORMAL
        self._filled, self._empty = asyncio.Event(), asyncio.Event()
        self._empty.set()

    @property
    def waiting(self) -> int:
        """Results that are not stored yet, those that are being written among them."""
        return len(self._results) + len(self._again) + self._writing

    @property
    def size(self) -> int:
        """So many may wait."""
        return self._limits.size

    @property
    def has_results(self) -> bool:
        """True when there is something to write."""
        return bool(self._results or self._again)

    @property
    def has_releases(self) -> bool:
        """True when there is something to release."""
        return bool(self._given_back)

    def add(self, result: Result) -> None:
        """A finished attempt."""
        self._results.append(result)
        self._slots.promised = len(self._results)
        self._watch_fill()
        self._empty.clear()
        self._filled.set()

    def add_again(self, result: Result) -> None:
        """A result that was brought and could not be stored yet, because others held its task."""
        self._again.append(result)

    def add_release(self, given_back: ReleasedClaim) -> None:
        """A claim that must be released."""
        self._given_back[given_back.claim.step_uuid] = given_back
        self._empty.clear()
        self._filled.set()

    async def flushed(self) -> None:
        """Return when everything that was added so far is stored."""
        await self._empty.wait()

    async def filled(self) -> None:
        """Return when there is something to do; to be called again after `settle`."""
        await self._filled.wait()
        self._filled.clear()

    def resume(self) -> None:
        """Somebody begins to empty it, perhaps anew: there may be something left."""
        self._filled.set()

    def settle(self) -> None:
        """A round of writes is over, well or not: whoever waits learns what is left."""
        self._watch_fill()
        (self._filled if self.has_results or self._given_back else self._empty).set()

    @contextmanager
    def write(self, most: int) -> Iterator[tuple[list[Result], list[Result]]]:
        """The results of one write, which wait again when it fails: up to `most` that are new, and up to `most` that
        waited for tasks which others held."""
        new, self._results = _cut(self._results, most)
        again, self._again = _cut(self._again, most)
        self._writing, self._slots.promised = len(new) + len(again), len(self._results)
        try:
            yield new, again
        except BaseException:
            self._results, self._again = new + self._results, again + self._again
            self._slots.promised = len(self._results)
            raise
        finally:
            self._writing = 0

    @contextmanager
    def release(self) -> Iterator[list[ReleasedClaim]]:
        """All claims to be released; they wait again when that fails."""
        given_back, self._given_back = self._given_back, {}
        try:
            yield list(given_back.values())
        except BaseException:
            self._given_back = given_back | self._given_back
            raise

    def describe(self) -> str:
        """How full it is, for the health of the process."""
        return f"buffer {self._fill}: {self.waiting} of {self._limits.size}"

    def _watch_fill(self) -> None:
        """Full: claim nothing until there is room again."""
        before, self._fill = self._fill, self._limits.fill(self.waiting, self._fill)
        if self._fill is before:
            return
        self._slots.throttle(BUFFER) if self._fill is BufferLevel.FULL else self._slots.unthrottle(BUFFER)
        level = logging.INFO if self._fill is BufferLevel.NORMAL else logging.WARNING
        _log.log(level, "completion_buffer fill=%s waiting=%s size=%s", self._fill, self.waiting, self._limits.size)


def _cut(results: list[Result], most: int) -> tuple[list[Result], list[Result]]:
    """Those that go in one write, at least one if there is any, and the rest."""
    size = 0
    for number, result in enumerate(results[:most]):
        size += len(result.outcome.encoded.text) if isinstance(result.outcome, Success) else 0
        if number and size > BATCH_BYTES:
            return results[:number], results[number:]
    return results[:most], results[most:]
