"""The completer: writes results in batches; results that end during a write go into the next one (group commit).

Results that cannot be stored stay in the `CompletionBuffer`. While writes are slow or fail, the breaker `completion`
stops new claims; results are still written.
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
"""Pauses in seconds after failed writes, while the breaker names no time."""
BREAKER = "completion_breaker"
"""Reason under which the breaker throttles claims."""
_log = logging.getLogger("tasker.execution")
_make_stored = maker_of(StoredAttempt)


class Completer:
    """Writer of the worker's buffer in batches, which starts the claims of hand-offs at once.

    Call `apply_breaker` when the breaker has changed.

    Parameters: `sink` stores results; `release` releases claims; `breaker` records how long writes took; `on_advanced`
    gets every answer (tasks that ended, retries to come); `on_lost` is called when an answer of the database was lost;
    `bus` publishes the events of accepted results; `on_stored` gets the attempts with a final verdict.
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
        """Write until cancelled. After a crash, a new call first writes what the crash left."""
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
        await asyncio.sleep(0)  # lets claims run between two writes, which otherwise reserve every free slot

    def apply_breaker(self) -> None:
        """Throttle claims while the breaker is open; half-open, allow one more step, whose result tests writes soon."""
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
        finally:  # the hand-offs have their slots already
            if advanced.claims:
                await self._start(advanced)

    async def _start(self, advanced: AdvanceResult) -> None:
        """Start the hand-offs: during the next write where enough results wait for one or the start takes long.

        With few results waiting, the next write waits for the steps started now, and stores their results as well.
        """
        together = self._worker.start_batch_size
        if self._buffer.waiting * 2 >= together or len(advanced.claims) > together:
            self._handed_over.begin(advanced)
        else:
            await self._worker.accept(advanced)

    async def _flush_batch(self, new: list[Result], again: list[Result], slots: int) -> AdvanceResult:
        """Store results whatever the state of the breaker, and report the time per result to it.

        New results skip tasks that are locked; results that were skipped before wait for the lock.
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
            if advanced.has_completed(result.claim):  # only now: a result that was refused is no input
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
        except LockTimeout:  # a task is locked: results do not wait for releases
            return
        self._worker.released([each.claim for each in given_back])

    async def _wait_for_database(self) -> None:
        """Wait before the next write: a short time, or the breaker's time once it is open."""
        self._on_lost()
        self._worker.forget()  # the server that answers next may lack the latest writes of this one
        await asyncio.sleep(self._breaker.guard.retry_after or FAILED.pause(self._failures))
        self._failures += 1


def _accepted(results: list[Result], advanced: AdvanceResult) -> list[Result]:
    """Return the accepted results; of two claims of one step the newer counts.

    Those of an earlier write whose answer was lost are included.
    """
    newest = {result.claim.step_uuid: result for result in sorted(results, key=lambda result: result.claim.token)}
    verdicts = advanced.verdicts
    return [each for step, each in newest.items() if verdicts.get(step) in (None, Verdict.ALREADY_ACCEPTED)]


def _stored(results: list[Result], advanced: AdvanceResult) -> tuple[StoredAttempt, ...]:
    """Return the attempts with the verdict of this write; results that will be written again are left out."""
    said = [(each, advanced.verdicts.get(each.claim.step_uuid)) for each in results]
    return tuple([_attempt(each, verdict) for each, verdict in said if verdict is None or not verdict.is_retryable])


def _attempt(result: Result, verdict: Verdict | None) -> StoredAttempt:
    error_type = result.outcome.error_type if isinstance(result.outcome, Failure) else None
    accepted = verdict in (None, Verdict.ALREADY_ACCEPTED)
    return _make_stored(result.claim.namespace, error_type, result.duration_ms, accepted)
