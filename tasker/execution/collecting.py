"""Bringing results: what finished while the previous write was under way goes in the next one (group commit).

What cannot be stored stays in the `CompletionBuffer`. While that takes long, nothing more is claimed: the breaker
`completion` holds the worker's slots, not the results.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from tasker.contracts.backoff import BackoffPolicy
from tasker.contracts.dataclasses import maker_of
from tasker.contracts.execution import Claim, Failure, Verdict
from tasker.contracts.hook_arguments import StoredAttempt
from tasker.errors import DatabaseError, LockTimeout
from tasker.execution.claims_in_hand import ReleasedClaim
from tasker.execution.completion_buffer import CompletionBuffer
from tasker.execution.handed_over import HandOffStarter
from tasker.execution.publishing.bus import AcceptedEventBus
from tasker.execution.worker import Worker
from tasker.lifecycle.breaker import BreakerState
from tasker.resilience.guard import SlowCalls
from tasker.resilience.outage import Failing
from tasker.services.engine.exchange import AdvanceResult, OnAdvanced, Result, ResultSink

OnStored = Callable[[Sequence[StoredAttempt]], None]
Release = Callable[[list[ReleasedClaim]], Awaitable[None]]
FAILED = BackoffPolicy(0.05, 2.0)
"""Seconds to wait after writes that failed, while the breaker does not say how long."""
BREAKER = "completion_breaker"
"""Reason for which nothing more is claimed."""
_log = logging.getLogger("tasker.execution")
_make_stored = maker_of(StoredAttempt)


class Completer:
    """Empties the worker's buffer in batches; what the engine hands back starts at once.

    `obey_breaker` is to be called when the breaker has changed.

    Parameters: `sink` stores results; `release` gives claims back; `breaker` is told how long storing took;
    `on_advanced` sees every answer (tasks that ended, retries to come); `on_lost` is called when an answer of the
    database was lost; `bus` is told of accepted results, for their events, `on_stored` of all that were dealt with.
    """

    def __init__(
        self,
        buffer: CompletionBuffer,
        worker: Worker,
        sink: ResultSink,
        release: Release,
        breaker: SlowCalls,
        *,
        on_advanced: OnAdvanced,
        on_lost: Callable[[], None],
        bus: AcceptedEventBus,
        on_stored: OnStored | None = None,
    ) -> None:
        self._buffer, self._worker, self._sink, self._release = buffer, worker, sink, release
        self._breaker, self._on_advanced, self._on_lost, self._bus = breaker, on_advanced, on_lost, bus
        self._on_stored, self._failures, self._failing = on_stored, 0, Failing("storing_results", _log)
        self._handed_over = HandOffStarter(worker, buffer.resume)
        self._timer: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Write until cancelled. Begun again after a crash, it first writes what the crash left."""
        self._buffer.resume()
        try:
            while True:
                await self._buffer.filled()
                await self._round()
        finally:
            if await self._handed_over.stop():
                self._on_lost()

    async def _round(self) -> None:
        try:
            await self._flush()
            self._failing.succeeded()
            self._failures = 0
        except DatabaseError as error:
            self._failing.failed(error)
            await self._wait_for_database()
        self._buffer.settle()
        await asyncio.sleep(0)  # a turn for claims between two writes, which else set aside every slot that is free

    def apply_breaker(self) -> None:
        """Open: claim nothing. Half-open: one step more than now, so that there is a result to try with soon."""
        guard, slots = self._breaker.guard, self._worker.slots
        level = logging.DEBUG if guard.sees_outage else logging.WARNING
        if guard.state is BreakerState.OPEN:
            slots.throttle(BREAKER, level=level)
            if self._timer is not None:
                self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_later(guard.retry_after + 0.001, self.apply_breaker)
        elif guard.state is BreakerState.HALF_OPEN:
            slots.throttle(BREAKER, at_most=slots.running + 1, level=level)
        else:
            slots.unthrottle(BREAKER)

    async def _flush(self) -> None:
        self._handed_over.raise_failure()
        if self._buffer.has_releases:
            await self._release_claims()
        if not self._buffer.has_results:
            return
        with (
            self._buffer.write(self._worker.settings.batch) as (new, again),
            self._worker.slots.reserve_for_flush(len(new) + len(again), waits=bool(again)) as reservation,
        ):
            advanced = await self._flush_batch(new, again, reservation.slots)
            reservation.used = len(advanced.claims)
        try:
            self._finish(new + again, advanced)
        finally:  # they have their slots already
            if advanced.claims:
                await self._start(advanced)

    async def _start(self, advanced: AdvanceResult) -> None:
        """Start what was handed over: behind the next write where enough waits for one, and beside writes where it
        takes long. Few results wait for those that are started now, and go in one write with them."""
        together = self._worker.start_batch_size
        if self._buffer.waiting * 2 >= together or len(advanced.claims) > together:
            self._handed_over.begin(advanced)
        else:
            await self._worker.accept(advanced)

    async def _flush_batch(self, new: list[Result], again: list[Result], slots: int) -> AdvanceResult:
        """Store, whatever the breaker says, and tell it how that went: what each result took of a write's time.

        New results skip tasks that others hold; those that had to wait once now wait in the queue for the lock.
        """
        guard, began, answers = self._breaker.guard, self._breaker.now(), list[AdvanceResult]()
        permit = guard.should_allow()
        try:
            for results, wait in ((again, True), (new, False)):
                if results:
                    answers.append(await self._sink.process(results, self._worker.caller(slots), wait=wait))
                    slots -= len(answers[-1].claims)
        except BaseException as error:
            if permit is not None:
                guard.record_failure(permit, error) if isinstance(error, DatabaseError) else guard.abandoned(permit)
            raise
        if permit is not None:
            self._breaker.record_success(permit, (self._breaker.now() - began) / (len(new) + len(again)))
        return AdvanceResult.merged(answers)

    def _finish(self, results: list[Result], advanced: AdvanceResult) -> None:
        worker, over = self._worker, list[Claim]()
        for result in results:
            if advanced.comes_again(result.claim.step_uuid):
                self._buffer.add_again(result)
                continue
            over.append(result.claim)
            if advanced.has_completed(result.claim):  # only now: a result that was refused is nobody's input
                worker.inputs.add_result(result, advanced.grown.get(result.claim.step_uuid))
        worker.claims.let_go(over)
        worker.whole_runs.written(results, advanced)
        worker.inputs.forget(advanced.finished)
        if any(result.events for result in results):
            self._bus.accepted(_accepted(results, advanced))
        self._on_advanced(advanced)
        if self._on_stored is not None and (stored := _stored(results, advanced)):
            self._on_stored(stored)

    async def _release_claims(self) -> None:
        try:
            with self._buffer.release() as given_back:
                await self._release(given_back)
        except LockTimeout:  # somebody keeps one of the tasks: results do not wait for that
            return
        self._worker.released([each.claim for each in given_back])

    async def _wait_for_database(self) -> None:
        """Try again soon, and at the breaker's pace once it is open."""
        self._on_lost()
        self._worker.forget()  # the server that answers next may have forgotten what this one has said
        await asyncio.sleep(self._breaker.guard.retry_after or FAILED.pause(self._failures))
        self._failures += 1


def _accepted(results: list[Result], advanced: AdvanceResult) -> list[Result]:
    """Those that are their steps' now, also by a write whose answer was lost. Of two claims the newer counts."""
    newest = {result.claim.step_uuid: result for result in sorted(results, key=lambda result: result.claim.token)}
    verdicts = advanced.verdicts
    return [each for step, each in newest.items() if verdicts.get(step) in (None, Verdict.ALREADY_ACCEPTED)]


def _stored(results: list[Result], advanced: AdvanceResult) -> tuple[StoredAttempt, ...]:
    """What the write said of these attempts; those that are brought again are left out."""
    said = [(each, advanced.verdicts.get(each.claim.step_uuid)) for each in results]
    return tuple([_attempt(each, verdict) for each, verdict in said if verdict is None or not verdict.is_retryable])


def _attempt(result: Result, verdict: Verdict | None) -> StoredAttempt:
    error_type = result.outcome.error_type if isinstance(result.outcome, Failure) else None
    accepted = verdict in (None, Verdict.ALREADY_ACCEPTED)
    return _make_stored(result.claim.namespace, error_type, result.duration_ms, accepted)
