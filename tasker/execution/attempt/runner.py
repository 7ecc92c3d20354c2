"""Run of one attempt from claim to result, over checkpoints and circuit breakers.

A retryable failure counts as a failure of the breaker, a timeout included. A permanent failure is not counted: a
service that refuses a request is reachable.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from tasker.clock import Clock
from tasker.engine.exchange import Result
from tasker.engine.retry import classified
from tasker.errors import ResolutionError
from tasker.execution.attempt import listeners
from tasker.execution.attempt.attempt import (
    Attempt,
    AttemptEnd,
    Checkpoint,
    ClaimDeferred,
    ClaimLost,
    ClaimReleased,
    ClaimSnoozed,
    Ending,
    Snooze,
    UnreportedEnd,
)
from tasker.execution.attempt.capacity import CapacityWaits, HandlerCapacity
from tasker.execution.attempt.checkpoints import CheckpointProgress, save
from tasker.execution.attempt.forked_copies import guard_forked_loop
from tasker.execution.attempt.settle import (
    TIMED_OUT,
    OutcomeRedactor,
    has_not_run,
    isolate_failure,
    make_storable,
    mode_mismatch,
    past_deadline,
    role_mismatch,
    too_near,
)
from tasker.execution.modes.event_loop import run_async
from tasker.execution.modes.threads import ThreadExecutor
from tasker.handlers.claims import Claim, Failure, Success
from tasker.handlers.registry.invocation import ResolvedHandler
from tasker.json_values import WARN_BYTES
from tasker.metrics import Histogram, summed
from tasker.resilience.breaker import GuardedCircuit, Permit
from tasker.resilience.breakers import Breakers
from tasker.settings.queues import HandlerDispatch
from tasker.template.error_rules import ErrorOverride
from tasker.template.plan import ForEach, StepBreaker

if TYPE_CHECKING:
    from tasker.execution.modes.subprocess_pool import SubprocessExecutor
    from tasker.handlers.registry.registry import HandlerRegistry


async def behind_breaker(
    breakers: Breakers, attempt: Attempt, policy: StepBreaker, run: Callable[[Attempt], Awaitable[AttemptEnd]]
) -> AttemptEnd:
    """Run the attempt and record its outcome on the step's breaker; return `ClaimDeferred` while it is open."""
    default_name = f"{attempt.plan.namespace}/{attempt.plan.name}/{attempt.step.name}"
    breaker = breakers.of_handler(policy.name or default_name, policy)
    permit = breaker.should_allow()
    if permit is None:
        delay = max(1, math.ceil(breaker.retry_after * 1000))
        return ClaimDeferred(attempt.claim, f"the circuit breaker of {breaker.name} is open", delay)
    try:
        end = await run(attempt)
    except BaseException:
        breaker.abandoned(permit)
        raise
    _report_to_breaker(breaker, permit, end)
    return end


def _report_to_breaker(breaker: GuardedCircuit, permit: Permit, end: AttemptEnd) -> None:
    if isinstance(end, UnreportedEnd):
        breaker.abandoned(permit)
    elif end.failure is None:
        breaker.record_success(permit)
    elif end.failure.retryable:
        breaker.record_failure(permit, end.failure.message)
    else:
        breaker.abandoned(permit)


class HandlerExecutor(Protocol):
    """A way to run a handler."""

    def __call__(self, attempt: Attempt, handler: ResolvedHandler, limit: float) -> Awaitable[Ending]:
        """Call the handler once, for at most `limit` seconds."""
        ...


class AttemptRunner:
    """Runner of the handlers of one worker: on the loop, in threads, in child processes.

    Parameters: `breakers` are the process's circuit breakers, those of handlers included; `default_timeout` is the
    limit in seconds of a call whose step names none; `threads` and `processes` bound how many handlers run in each
    (processes: by default the number of processors); `on_leaked_thread` is called with the claim whenever a thread is
    leaked, `leaked_threads` counts them; `checkpoint_timeout` is the limit in seconds for saving a checkpoint;
    `stop_grace` is how many seconds a stopped handler has left: between SIGTERM and SIGKILL, and after `close` has
    stopped it; `waits` says how long steps wait for a thread or a child; `error_rules` are those of the configuration,
    which may be replaced at any time.
    """

    def __init__(
        self,
        *,
        registry: HandlerRegistry,
        clock: Clock,
        breakers: Breakers,
        threads: int,
        processes: int | None = None,
        default_timeout: float = HandlerDispatch.handler_timeout_ms / 1000,
        checkpoint_timeout: float = 10.0,
        stop_grace: float = 2.0,
        waits: CapacityWaits | None = None,
        on_leaked_thread: Callable[[Claim], None] = lambda _: None,
        error_rules: Sequence[ErrorOverride] = (),
    ) -> None:
        self._registry, self._clock, self._breakers = registry, clock, breakers
        self._default_timeout, self._checkpoint_timeout = default_timeout, checkpoint_timeout
        self._stop_grace, self.error_rules = stop_grace, error_rules
        self._waits = waits or CapacityWaits()
        self._threads = ThreadExecutor(threads, stop_grace, self._waits, on_leaked_thread)
        self._process_count = processes or os.cpu_count() or 1
        self._processes: SubprocessExecutor | None = None
        self._running: set[Attempt] = set()
        self._idle, self._closing, self._guarded = asyncio.Event(), False, False

    @property
    def leaked_threads(self) -> int:
        """Return the number of threads that still run a handler whose attempt has ended."""
        return self._threads.leaked

    @property
    def starved(self) -> int:
        """Return how many steps have waited too long for a thread or a child process."""
        return sum(places.starved for places in self._places())

    @property
    def waiting(self) -> int:
        """Return the number of steps that wait for a thread or a child process."""
        return sum(places.waiting for places in self._places())

    @property
    def waiting_since(self) -> dict[str, float]:
        """Return the start of each wait by step, in monotonic seconds. May be called from any thread."""
        return {step: since for places in self._places() for step, since in list(places.since.items())}

    def waits(self) -> Histogram:
        """Return a histogram of the waits for a thread or a child process, zero for the steps that did not wait."""
        places = self._places()
        return summed(*(capacity.waited for capacity in places), zeros=sum(capacity.at_once for capacity in places))

    @property
    def is_saturated(self) -> bool:
        """Return True when a step may have to wait: all threads or all child processes are busy."""
        return any(places.full for places in self._places())

    def _places(self) -> list[HandlerCapacity]:
        return [mode.places for mode in (self._threads, self._processes) if mode is not None]

    async def run(self, attempt: Attempt) -> AttemptEnd:
        """Run the step's handler until it has a result, over as many checkpoints as it yields.

        Never raises for anything a handler does. Returns the `Result` that must be reported, or an `UnreportedEnd` when
        there is nothing to report: `ClaimLost` (a checkpoint was refused), `AttemptCancelled`, `ClaimReleased` (this
        worker has no such handler, closes, or has no thread or child process for it), or `ClaimDeferred` (the step's
        circuit breaker is open).
        """
        if self._closing:
            return ClaimReleased(attempt.claim, "the worker is closing")
        if not self._guarded:
            guard_forked_loop()
            self._guarded = True
        self._running.add(attempt)
        try:
            if attempt.step.circuit_breaker is None:
                return await self._run(attempt)
            return await behind_breaker(self._breakers, attempt, attempt.step.circuit_breaker, self._run)
        finally:
            self._running.discard(attempt)
            if not self._running:
                self._idle.set()

    async def close(self, grace: float) -> None:
        """Refuse further attempts, wait `grace` seconds for the running ones, then stop and release the rest."""
        self._closing = True
        await self._until_idle(grace)
        for attempt in list(self._running):
            attempt.cancel.set(ClaimReleased)
        await self._until_idle(2 * self._stop_grace)
        self._threads.close()
        if self._processes is not None:
            await self._processes.close()
        await asyncio.sleep(0)  # attempts whose threads were left behind end now

    async def _run(self, attempt: Attempt) -> AttemptEnd:
        if stopped := attempt.cancel.end_of(attempt.claim):
            return stopped
        started = self._clock.monotonic()
        if not attempt.step.has_handler:
            from tasker.execution.attempt.evaluated import evaluate  # needed for steps with expressions only

            return self._end(attempt, evaluate(attempt), started)
        try:
            handler = self._registry.of_step(attempt.step, attempt.plan.id)
        except ResolutionError as error:  # another worker may have the handler (design rule 16)
            return ClaimReleased(attempt.claim, str(error))
        if problem := handler.problem(attempt.step):
            return self._end(attempt, role_mismatch(handler.name, *problem), started)
        call = partial(self._call, mode=self._mode(attempt, handler), handler=handler)
        if attempt.step.for_each is not None:
            ending = await self._call_for_each(attempt, attempt.step.for_each, call, handler.name)
            return attempt.cancel.end_of(attempt.claim) or self._end(attempt, ending, started)
        if attempt.step.inputs is not None:
            from tasker.handlers.step_inputs import mapped_inputs  # needed for steps with expressions only

            inputs = mapped_inputs(
                attempt.plan, attempt.step, attempt.claim, attempt.task_context, attempt.dependency_results
            )
            if isinstance(inputs, Failure):
                return self._end(attempt, make_storable(replace(inputs, handler=handler.name)), started)
            attempt = replace(attempt, inputs=inputs)
        ending = await self._called(attempt, call, handler.name)
        # The return value of a handler that was stopped may be half of its work.
        return attempt.cancel.end_of(attempt.claim) or self._end(attempt, ending, started)

    async def _called(
        self, attempt: Attempt, call: Callable[[Attempt], Awaitable[Ending]], handler: str
    ) -> Ending | None:
        """Call the handler until it has a result; return None if the claim was lost."""
        ending = await call(attempt)
        if isinstance(ending, Checkpoint):
            return await self._resume_from_checkpoint(attempt, ending, call, handler)
        return ending

    async def _call_for_each(
        self, attempt: Attempt, each: ForEach, call: Callable[[Attempt], Awaitable[Ending]], handler: str
    ) -> Ending | None:
        from tasker.execution.attempt.evaluated import ItemCalls  # needed for steps with `for_each` only

        def judged(failure: Failure) -> Failure:
            return OutcomeRedactor(attempt).failure(self._classified(attempt, failure))

        call_item = partial(self._called, call=call, handler=handler) if each.batch_size == 1 else call
        save_position = partial(save, limit=self._checkpoint_timeout, handler=handler)
        return await ItemCalls(attempt, each, handler, call_item, save_position, judged).run()

    async def _call(self, attempt: Attempt, mode: HandlerExecutor, handler: ResolvedHandler) -> Ending:
        """Call the handler, at most for its timeout and until the deadline of its task."""
        timeout = attempt.step.timeout_seconds
        limit = self._default_timeout if timeout is None else timeout
        left = attempt.claim.seconds_left(monotonic())
        if left is None or left >= limit:
            return await mode(attempt, handler, limit)
        if left <= 0:
            return past_deadline(handler.name)
        ending = await mode(attempt, handler, left)
        overran = isinstance(ending, Failure) and ending.error_type == TIMED_OUT
        return past_deadline(handler.name, left) if overran else ending

    async def _resume_from_checkpoint(
        self, attempt: Attempt, ending: Ending, again: Callable[[Attempt], Awaitable[Ending]], handler: str
    ) -> Ending | None:
        """Save the position and call the handler again, as often as it yields; return None if the claim was lost."""
        progress = CheckpointProgress()
        while isinstance(ending, Checkpoint) and attempt.cancel.may_save():
            if failure := progress.failure(ending, handler):
                return failure
            saved = await save(attempt, ending, self._checkpoint_timeout, handler)
            if not isinstance(saved, Attempt):
                return saved
            if saved.cancel.is_set():
                return ending
            attempt, ending = saved, await again(saved)
        return ending

    def _mode(self, attempt: Attempt, handler: ResolvedHandler) -> HandlerExecutor:
        """Return the function that calls the handler: on the loop, in a thread, or in a child process."""
        if not _needs_isolation(attempt, handler):
            return self._chosen_mode(attempt, handler)
        listeners.warning("step_isolated", attempt.claim)
        return self._isolated

    def _chosen_mode(self, attempt: Attempt, handler: ResolvedHandler) -> HandlerExecutor:
        match attempt.step.execution or handler.kind:
            case "async":
                return run_async if handler.kind == "async" else _not_async
            case "process":
                return self._in_subprocess
            case _:
                return self._threads.run

    async def _isolated(self, attempt: Attempt, handler: ResolvedHandler, limit: float) -> Ending:
        """Run the handler in a child process, or in its usual mode if no child can load its code."""
        ending = await self._in_subprocess(attempt, handler, limit)
        if has_not_run(ending):
            return await self._chosen_mode(attempt, handler)(attempt, handler, limit)
        return isolate_failure(ending)

    async def _in_subprocess(self, attempt: Attempt, handler: ResolvedHandler, limit: float) -> Ending:
        if self._processes is None:
            from tasker.execution.modes.subprocess_pool import SubprocessExecutor

            self._processes = SubprocessExecutor(self._process_count, self._stop_grace, self._waits)
        return await self._processes.run(attempt, handler, limit)

    def _end(self, attempt: Attempt, ending: Ending | None, started: float) -> AttemptEnd:
        if isinstance(ending, Snooze):
            return self._snoozed(attempt, ending, started)
        milliseconds = round((self._clock.monotonic() - started) * 1000)
        if not isinstance(ending, (Success, Failure)):
            return ClaimLost(attempt.claim, "its checkpoint was refused")
        if isinstance(ending, Failure):
            ending = OutcomeRedactor(attempt).failure(self._classified(attempt, ending))
        elif ending.encoded.size > WARN_BYTES:
            listeners.warning("step_result_large", attempt.claim, size=len(ending.encoded.text))
        return Result(attempt.claim, attempt.plan, milliseconds, ending)

    def _classified(self, attempt: Attempt, failure: Failure) -> Failure:
        plan = attempt.plan
        rules = [rule for rule in self.error_rules if rule.applies_to(plan.namespace, plan.name)]
        return classified(failure, attempt.step.retry, rules)

    def _snoozed(self, attempt: Attempt, snooze: Snooze, started: float) -> AttemptEnd:
        left = attempt.claim.seconds_left(monotonic())
        if left is not None and snooze.delay_ms >= left * 1000:
            return self._end(attempt, too_near(snooze, left, attempt.step.handler.callable), started)
        reason = OutcomeRedactor(attempt).over(snooze.reason)
        return ClaimSnoozed(attempt.claim, reason, snooze.delay_ms, snooze.limit)

    async def _until_idle(self, limit: float) -> None:
        if self._running:
            self._idle.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), limit)


async def _not_async(attempt: Attempt, handler: ResolvedHandler, limit: float) -> Ending:
    return mode_mismatch(handler.name)


def _needs_isolation(attempt: Attempt, handler: ResolvedHandler) -> bool:
    """Return True for a step that may have crashed two workers, if its author chose no mode and a child can load it."""
    return attempt.claim.isolated and attempt.step.execution is None and handler.made_here and handler.source.loadable
