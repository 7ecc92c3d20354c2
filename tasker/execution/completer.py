"""Path of a result to its row: buffered, written in batches, finished, and the next steps handed off.

`CompletionBuffer` has the results and releases that wait, and throttles claims while it is full. `Completer` writes
them (`run`, `_flush`, `_write`), drops the claims and notifies those who listen (`_finish`), and starts the steps that
come back already claimed (`_hand_off`, `HandOffStarter`). While writes are slow or fail, the breaker `completion` stops
new claims; results are still written, and none is dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

from tasker.clock import BackoffPolicy
from tasker.engine.exchange import AdvanceResult, OnAdvanced, Result, ResultSink
from tasker.errors import DatabaseError, LockTimeout
from tasker.execution.event_bus import AcceptedEventBus
from tasker.execution.in_flight import ReleasedClaim
from tasker.execution.slots import Slots
from tasker.execution.worker import Worker
from tasker.handlers.claims import Claim, Failure, Success, Verdict
from tasker.plugins.hook_arguments import StoredAttempt
from tasker.resilience.breaker import BreakerState, SlowCalls
from tasker.resilience.outage import Failing
from tasker.resilience.pressure import BufferLevel, buffer_level
from tasker.settings.queues import HandlerDispatch, OverflowPolicy

BATCH_BYTES = 16_000_000
"""Approximate size limit of one write: PostgreSQL reads hundreds of megabytes completely before it refuses them."""
BUFFER = "completion_buffer"
"""Reason under which a full buffer throttles claims."""
_log = logging.getLogger("tasker.execution")


class CompletionBuffer:
    """Buffer of results and releases waiting to be written. While it is full, it throttles the `slots`."""

    def __init__(
        self, slots: Slots, dispatch: HandlerDispatch | None = None, overflow: OverflowPolicy | None = None
    ) -> None:
        self._slots, self._dispatch = slots, dispatch or HandlerDispatch()
        self._overflow = overflow or OverflowPolicy()
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
        return self._dispatch.completion_buffer_size

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
        return f"buffer {self._fill}: {self.waiting} of {self.size}"

    def _watch_fill(self) -> None:
        """Throttle claims while the buffer is full."""
        before, share = self._fill, self._overflow.log_warning_threshold
        self._fill = buffer_level(self.size, share, self.waiting, before)
        if self._fill is before:
            return
        self._slots.throttle(BUFFER) if self._fill is BufferLevel.FULL else self._slots.unthrottle(BUFFER)
        level = logging.INFO if self._fill is BufferLevel.NORMAL else logging.WARNING
        _log.log(level, "completion_buffer fill=%s waiting=%s size=%s", self._fill, self.waiting, self.size)


def _cut(results: list[Result], most: int) -> tuple[list[Result], list[Result]]:
    """Split off the results of one write, at least one if there is any; return them and the rest."""
    size = 0
    for number, result in enumerate(results[:most]):
        size += len(result.outcome.encoded.text) if isinstance(result.outcome, Success) else 0
        if number and size > BATCH_BYTES:
            return results[:number], results[number:]
    return results[:most], results[most:]


class HandOffStarter:
    """Background start of the claims of answers in `worker`, one answer after another.

    `on_failed` is called when an answer could not be started: no worker runs its claims then. Later answers still
    start.
    """

    def __init__(self, worker: Worker, on_failed: Callable[[], None]) -> None:
        self._worker, self._on_failed = worker, on_failed
        self._waiting: deque[AdvanceResult] = deque()
        self._failure: Exception | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self, answer: AdvanceResult) -> None:
        """Start the claims of the answer in the next turn of the loop, after the pending write was sent."""
        self._waiting.append(answer)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        await asyncio.sleep(0)
        while self._waiting:
            try:
                await self._worker.accept(self._waiting.popleft())
            except Exception as error:
                self._failure = error
                self._on_failed()

    def raise_failure(self) -> None:
        """Raise the error of the last failed start since the previous call, if any."""
        error, self._failure = self._failure, None
        if error is not None:
            raise error

    async def stop(self) -> bool:
        """Stop starting claims and free their slots; return True when claims were dropped."""
        task, waiting = self._task, len(self._waiting)
        while self._waiting:
            self._worker.slots.finish(len(self._waiting.popleft().claims))
        if task is None or task.done():
            return waiting > 0
        task.cancel()
        await asyncio.wait([task])
        return True


OnStored = Callable[[Sequence[StoredAttempt]], None]
Release = Callable[[list[ReleasedClaim]], Awaitable[None]]
FAILED = BackoffPolicy(0.05, 2.0)
"""Pauses in seconds after failed writes, while the breaker names no time."""
BREAKER = "completion_breaker"
"""Reason under which the breaker throttles claims."""


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
        """Flush until cancelled; what is added during one flush goes into the next.

        After a crash, a new call first writes what the crash left.
        """
        self._buffer.resume()
        try:
            while True:
                await self._buffer.filled()
                try:
                    await self._flush()
                    self._failing.succeeded()
                    self._failures = 0
                except DatabaseError as error:
                    self._failing.failed(error)
                    await self._wait_for_database()
                self._buffer.settle()
                await asyncio.sleep(0)  # lets claims run between two writes, which otherwise reserve every free slot
        finally:
            if await self._handed_over.stop():
                self._on_lost()

    def apply_breaker(self) -> None:
        """Throttle claims while the breaker is open; half-open: allow one step, whose result is a trial write."""
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
        """Release claims, write one batch of results, finish it, and hand off the steps that came back claimed."""
        self._handed_over.raise_failure()
        if self._buffer.has_releases:
            await self._release_claims()
        if not self._buffer.has_results:
            return
        with (
            self._buffer.write(self._worker.settings.batch) as (new, again),
            self._worker.slots.reserve_for_flush(len(new) + len(again), waits=bool(again)) as reservation,
        ):
            advanced = await self._write(new, again, reservation.slots)
            reservation.used = len(advanced.claims)
        try:
            self._finish(new + again, advanced)
        finally:  # the hand-offs have their slots already
            if advanced.claims:
                await self._hand_off(advanced)

    async def _hand_off(self, advanced: AdvanceResult) -> None:
        """Start the hand-offs: during the next write where enough results wait for one or the start takes long.

        With few results waiting, the next write waits for the steps started now, and stores their results as well.
        """
        together = self._worker.start_batch_size
        if self._buffer.waiting * 2 >= together or len(advanced.claims) > together:
            self._handed_over.begin(advanced)
        else:
            await self._worker.accept(advanced)

    async def _write(self, new: list[Result], again: list[Result], slots: int) -> AdvanceResult:
        """Store results in every state of the breaker, and report the time per result to it.

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
        """Drop the claims of written results, cache these, and notify; buffer again those of locked tasks."""
        worker, over = self._worker, list[Claim]()
        ahead = [other for result in results for other in result.ahead if advanced.has_completed(other.claim)]
        for result in ahead:
            worker.folded(result)
        results = results + ahead
        for result in results:
            if advanced.comes_again(result.claim.step_uuid):
                self._buffer.add_again(result)
                continue
            over.append(result.claim)
            if advanced.has_completed(result.claim):  # only now: a result that was refused is no input
                worker.inputs.add_result(result, advanced.grown.get(result.claim.step_uuid))
        worker.claims.discard(over)
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
        self._worker.released([release.claim for release in given_back])

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
    return [
        newest_result
        for step, newest_result in newest.items()
        if verdicts.get(step) in (None, Verdict.ALREADY_ACCEPTED)
    ]


def _stored(results: list[Result], advanced: AdvanceResult) -> tuple[StoredAttempt, ...]:
    """Return the attempts with the verdict of this write; results that will be written again are left out."""
    result_verdicts = [(result, advanced.verdicts.get(result.claim.step_uuid)) for result in results]
    return tuple(
        [
            _attempt(result, verdict)
            for result, verdict in result_verdicts
            if verdict is None or not verdict.is_retryable
        ]
    )


def _attempt(result: Result, verdict: Verdict | None) -> StoredAttempt:
    error_type = result.outcome.error_type if isinstance(result.outcome, Failure) else None
    accepted = verdict in (None, Verdict.ALREADY_ACCEPTED)
    return StoredAttempt(result.claim.namespace, error_type, result.duration_ms, accepted)
