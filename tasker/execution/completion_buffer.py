"""Results to be written and claims to be released, between the worker and its completer.

A result is never dropped: one whose write failed returns to the buffer. While the buffer is full nothing is claimed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from tasker.engine.exchange import Result
from tasker.execution.in_flight import ReleasedClaim
from tasker.execution.slots import Slots
from tasker.handlers.claims import Success
from tasker.resilience.pressure import BufferLevel, BufferLimits

BATCH_BYTES = 16_000_000
"""Approximate size limit of one write: PostgreSQL reads hundreds of megabytes completely before it refuses them."""
BUFFER = "completion_buffer"
"""Reason under which a full buffer throttles claims."""

_log = logging.getLogger("tasker.execution")


class CompletionBuffer:
    """Buffer of results and releases waiting to be written. While it is full, it throttles the `slots`."""

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
        """Return the number of results that are not stored yet, those being written included."""
        return len(self._results) + len(self._again) + self._writing

    @property
    def size(self) -> int:
        return self._limits.size

    @property
    def has_results(self) -> bool:
        return bool(self._results or self._again)

    @property
    def has_releases(self) -> bool:
        return bool(self._given_back)

    def add(self, result: Result) -> None:
        self._results.append(result)
        self._slots.reserved_for_results = len(self._results)
        self._watch_fill()
        self._empty.clear()
        self._filled.set()

    def add_again(self, result: Result) -> None:
        """Add a result that was not stored because its task was locked."""
        self._again.append(result)

    def add_release(self, given_back: ReleasedClaim) -> None:
        self._given_back[given_back.claim.step_uuid] = given_back
        self._empty.clear()
        self._filled.set()

    async def flushed(self) -> None:
        """Return when everything that was added so far is stored."""
        await self._empty.wait()

    async def filled(self) -> None:
        """Return when there is something to write. Call it again after `settle`."""
        await self._filled.wait()
        self._filled.clear()

    def resume(self) -> None:
        """Wake the completer at its start or restart: the buffer may have results."""
        self._filled.set()

    def settle(self) -> None:
        """End a round of writes, successful or not, and wake those who wait for the buffer's state."""
        self._watch_fill()
        (self._filled if self.has_results or self._given_back else self._empty).set()

    @contextmanager
    def write(self, most: int) -> Iterator[tuple[list[Result], list[Result]]]:
        """Take the results of one write, and put them back when it fails.

        Yields up to `most` new results, and up to `most` that were skipped because their tasks were locked.
        """
        new, self._results = _cut(self._results, most)
        again, self._again = _cut(self._again, most)
        self._writing, self._slots.reserved_for_results = len(new) + len(again), len(self._results)
        try:
            yield new, again
        except BaseException:
            self._results, self._again = new + self._results, again + self._again
            self._slots.reserved_for_results = len(self._results)
            raise
        finally:
            self._writing = 0

    @contextmanager
    def release(self) -> Iterator[list[ReleasedClaim]]:
        """Take all claims to be released, and put them back when the release fails."""
        given_back, self._given_back = self._given_back, {}
        try:
            yield list(given_back.values())
        except BaseException:
            self._given_back = given_back | self._given_back
            raise

    def describe(self) -> str:
        return f"buffer {self._fill}: {self.waiting} of {self._limits.size}"

    def _watch_fill(self) -> None:
        """Throttle claims while the buffer is full."""
        before, self._fill = self._fill, self._limits.fill(self.waiting, self._fill)
        if self._fill is before:
            return
        self._slots.throttle(BUFFER) if self._fill is BufferLevel.FULL else self._slots.unthrottle(BUFFER)
        level = logging.INFO if self._fill is BufferLevel.NORMAL else logging.WARNING
        _log.log(level, "completion_buffer fill=%s waiting=%s size=%s", self._fill, self.waiting, self._limits.size)


def _cut(results: list[Result], most: int) -> tuple[list[Result], list[Result]]:
    """Split off the results of one write, at least one if there is any; return them and the rest."""
    size = 0
    for number, result in enumerate(results[:most]):
        size += len(result.outcome.encoded.text) if isinstance(result.outcome, Success) else 0
        if number and size > BATCH_BYTES:
            return results[:number], results[number:]
    return results[:most], results[most:]
