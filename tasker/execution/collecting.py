"""Bringing results: what finished while the previous write was under way goes in the next one (group commit).

A result is never dropped (A-44). While they cannot be stored, or only slowly, nothing more is claimed: the breaker
`completion` and the bound of the buffer hold the worker's slots, not the results.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from tasker.errors import DatabaseError, LockTimeout
from tasker.execution.held import GivenBack
from tasker.execution.worker import Worker
from tasker.lifecycle.breaker import BreakerState
from tasker.lifecycle.pressure import Fill
from tasker.resilience.guard import SlowCalls
from tasker.services.engine.exchange import AdvanceResult, Result, ResultSink

Release = Callable[[list[GivenBack]], Awaitable[None]]
BACKOFF_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
BATCH_BYTES = 16_000_000
"""About how long the results of one write are together: of hundreds of megabytes the database reads all, and refuses
them then."""
BREAKER, BUFFER = "completion_breaker", "completion_buffer"
"""Reasons for which nothing more is claimed."""

_log = logging.getLogger("tasker.execution")


class Collector:
    """Takes finished attempts and writes them in batches; what the engine hands back starts at once.

    Parameters: `sink` stores results; `release` gives claims back; `breaker` is told how long storing took;
    `on_advanced` sees every answer (tasks that ended, retries to come); `on_lost` hears that an answer of the database
    was lost.
    """

    def __init__(
        self,
        sink: ResultSink,
        release: Release,
        breaker: SlowCalls,
        *,
        on_advanced: Callable[[AdvanceResult], None],
        on_lost: Callable[[], None],
    ) -> None:
        self.worker: Worker | None = None
        self._sink, self._release, self._breaker = sink, release, breaker
        self._on_advanced, self._on_lost = on_advanced, on_lost
        self._results: list[Result] = []
        self._given_back: dict[str, GivenBack] = {}
        self._again: list[Result] = []
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._failures = 0
        self._fill = Fill.NORMAL
        self._writing = 0
        self._timer: asyncio.TimerHandle | None = None
        breaker.guard.listeners.append(self._obey_breaker)
        breaker.guard.notes.append(self._buffer)

    @property
    def waiting(self) -> int:
        """Results that are not stored yet, those that are being written among them."""
        return len(self._results) + len(self._again) + self._writing

    def add(self, result: Result) -> None:
        """A finished attempt."""
        self._results.append(result)
        self._watch_fill()
        self._idle.clear()
        self._wake.set()

    def give_back(self, given_back: GivenBack) -> None:
        """A claim that must be released."""
        self._given_back[given_back.claim.step_uuid] = given_back
        self._idle.clear()
        self._wake.set()

    async def flushed(self) -> None:
        """Return when everything that was added so far is stored."""
        await self._idle.wait()

    async def run(self) -> None:
        """Write until cancelled. Begun again after a crash, it first writes what the crash left."""
        self._wake.set()
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._flush()
                self._failures = 0
            except DatabaseError:
                await self._wait_for_database()
            self._watch_fill()
            if self._results or self._again or self._given_back:
                self._wake.set()
            else:
                self._idle.set()

    def _obey_breaker(self) -> None:
        """Open: claim nothing. Half-open: one step more than now, so that there is a result to try with soon."""
        guard, slots = self._breaker.guard, self._worker().slots
        level = logging.DEBUG if guard.sees_outage else logging.WARNING
        if guard.state is BreakerState.OPEN:
            slots.hold(BREAKER, level=level)
            if self._timer is not None:
                self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_later(guard.retry_after + 0.001, self._obey_breaker)
        elif guard.state is BreakerState.HALF_OPEN:
            slots.hold(BREAKER, at_most=slots.running + 1, level=level)
        else:
            slots.lift(BREAKER)

    def _buffer(self) -> str:
        return f"buffer {self._fill}: {self.waiting} of {self._worker().settings.completion_buffer.size}"

    def _watch_fill(self) -> None:
        """Full: claim nothing until there is room again."""
        limits, slots = self._worker().settings.completion_buffer, self._worker().slots
        before, self._fill = self._fill, limits.fill(self.waiting, self._fill)
        if self._fill is before:
            return
        slots.hold(BUFFER) if self._fill is Fill.FULL else slots.lift(BUFFER)
        level = logging.INFO if self._fill is Fill.NORMAL else logging.WARNING
        _log.log(level, "completion_buffer fill=%s waiting=%s size=%s", self._fill, self.waiting, limits.size)

    async def _flush(self) -> None:
        worker = self._worker()
        if self._given_back:
            await self._release_claims(worker)
        batch, self._results = _cut(self._results, worker.settings.batch)
        again, self._again = _cut(self._again, worker.settings.batch)
        if not batch and not again:
            return
        self._writing = len(batch) + len(again)
        reserved = worker.slots.reserve()
        used = 0
        try:
            advanced = await self._watched(worker, batch, again, reserved)
            used = len(advanced.claims)
        except BaseException:
            self._results, self._again = batch + self._results, again + self._again
            raise
        finally:
            self._writing = 0
            worker.slots.settle(reserved, used)
        self._finish(worker, batch + again, advanced)
        if advanced.claims:
            await worker.accept({}, advanced.claims)

    async def _watched(self, worker: Worker, batch: list[Result], again: list[Result], slots: int) -> AdvanceResult:
        """Store, whatever the breaker says, and tell it how that went: what each result took of a write's time."""
        guard, began = self._breaker.guard, self._breaker.now()
        permit = guard.should_allow()
        try:
            advanced = await self._process(worker, batch, again, slots)
        except BaseException as error:
            if permit is not None:
                guard.record_failure(permit, error) if isinstance(error, DatabaseError) else guard.abandoned(permit)
            raise
        if permit is not None:
            self._breaker.record_success(permit, (self._breaker.now() - began) / (len(batch) + len(again)))
        return advanced

    async def _process(self, worker: Worker, batch: list[Result], again: list[Result], slots: int) -> AdvanceResult:
        """New results skip tasks that others hold; those that had to wait once now wait in the queue for the lock."""
        advanced = AdvanceResult()
        if again:
            advanced = await self._sink.process(again, worker.caller(slots))
        if batch:
            more = await self._sink.process(batch, worker.caller(slots - len(advanced.claims)), wait=False)
            advanced = _merged(advanced, more)
        return advanced

    def _finish(self, worker: Worker, results: list[Result], advanced: AdvanceResult) -> None:
        waiting = {result.outcome.claim.step_uuid for result in advanced.again}
        self._again += advanced.again
        worker.let_go([r.outcome.claim for r in results if r.outcome.claim.step_uuid not in waiting])
        for result in advanced.complete:  # only now: a result that was refused is nobody's input
            worker.inputs.add_result(result)
        worker.inputs.forget(advanced.finished)
        self._on_advanced(advanced)

    async def _release_claims(self, worker: Worker) -> None:
        given_back, self._given_back = self._given_back, {}
        try:
            await self._release(list(given_back.values()))
        except LockTimeout:  # somebody keeps one of the tasks: results do not wait for that
            self._given_back = given_back | self._given_back
            return
        except BaseException:
            self._given_back = given_back | self._given_back
            raise
        worker.given_back += len(given_back)
        worker.let_go([each.claim for each in given_back.values()])

    async def _wait_for_database(self) -> None:
        """Try again soon, and at the breaker's pace once it is open."""
        self._on_lost()
        backoff = BACKOFF_SECONDS[min(self._failures, len(BACKOFF_SECONDS) - 1)]
        await asyncio.sleep(self._breaker.guard.retry_after or backoff)
        self._failures += 1

    def _worker(self) -> Worker:
        assert self.worker is not None, "the worker is set before `run`"
        return self.worker


def _cut(results: list[Result], most: int) -> tuple[list[Result], list[Result]]:
    """Those that go in one write, at least one if there is any, and the rest."""
    size = 0
    for number, result in enumerate(results[:most]):
        size += len(result.text or "")
        if number and size > BATCH_BYTES:
            return results[:number], results[number:]
    return results[:most], results[most:]


def _merged(first: AdvanceResult, second: AdvanceResult) -> AdvanceResult:
    second.claims = first.claims + second.claims
    second.finished |= first.finished
    second.again = first.again + second.again
    second.refused |= first.refused
    second.sent = _sum(first.sent, second.sent)
    second.complete = first.complete + second.complete
    delays = [ms for ms in (first.retry_in_ms, second.retry_in_ms) if ms is not None]
    second.retry_in_ms = min(delays) if delays else None
    return second


def _sum(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return {key: first.get(key, 0) + second.get(key, 0) for key in {*first, *second}}
