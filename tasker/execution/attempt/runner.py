"""Run of one attempt from claim to result, over checkpoints and circuit breakers.

A retryable failure counts as a failure of the breaker, a timeout included. A permanent failure is not counted: a
service that refuses a request is reachable.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from tasker.clock import Clock
from tasker.engine.exchange import Result
from tasker.engine.retry import UNKNOWN_OUTCOMES, classified, with_unknown_outcome
from tasker.errors import ResolutionError
from tasker.execution.attempt import listeners
from tasker.execution.attempt.attempt import (
    Attempt,
    AttemptEnd,
    Checkpoint,
    ClaimLost,
    ClaimReleased,
    ClaimSnoozed,
    ClaimSuspended,
    Ending,
    Snooze,
    UnreportedEnd,
)
from tasker.execution.attempt.breaker_permit import BreakerPermit
from tasker.execution.attempt.capacity import CapacityWaits, HandlerCapacity
from tasker.execution.attempt.checkpoints import CheckpointProgress, save
from tasker.execution.attempt.forked_copies import guard_forked_loop
from tasker.execution.attempt.memos import memoized
from tasker.execution.attempt.settle import (
    TIMED_OUT,
    OutcomeRedactor,
    has_not_run,
    interrupted,
    isolate_failure,
    make_storable,
    past_deadline,
    role_mismatch,
    too_near,
)
from tasker.execution.attempt.slot_share import several_slots
from tasker.execution.modes.event_loop import refuse_plain_function, run_async
from tasker.execution.modes.threads import ThreadExecutor
from tasker.handlers.claims import Claim, Failure, Success, Suspension
from tasker.handlers.registry.invocation import ResolvedHandler
from tasker.json_values import WARN_BYTES
from tasker.metrics import Histogram, summed
from tasker.resilience.breakers import Breakers
from tasker.settings.queues import HandlerDispatch
from tasker.template.condition_plans import ForEach
from tasker.template.effects import ONCE, TRANSACTIONAL
from tasker.template.error_rules import ErrorOverride

if TYPE_CHECKING:
    from tasker.execution.attempt.transactions import HandlerTransactions
    from tasker.execution.modes.subprocess_pool import SubprocessExecutor
    from tasker.execution.slots import Slots
    from tasker.handlers.registry.registry import HandlerRegistry
    from tasker.resources.registry import ResourceRegistry
    from tasker.template.plan import Plan, StepPlan


REFUSED = "its checkpoint was refused"


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
    which may be replaced at any time; `slots` are those of the worker, for steps that use several.
    """

    resources: ResourceRegistry | None = None
    """Resources that handlers use; None without any."""
    make_transactions: Callable[[], HandlerTransactions] | None = None
    """Returns the transactions of handlers; None where steps are run without an engine."""

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
        slots: Slots | None = None,
    ) -> None:
        self._registry, self._clock, self._breakers = registry, clock, breakers
        self._default_timeout, self._checkpoint_timeout = default_timeout, checkpoint_timeout
        self._stop_grace, self.error_rules = stop_grace, error_rules
        self._waits, self._slots = waits or CapacityWaits(), slots
        self._threads = ThreadExecutor(threads, stop_grace, self._waits, on_leaked_thread)
        self._process_count = processes or os.cpu_count() or 1
        self._processes: SubprocessExecutor | None = None
        self._running: set[Attempt] = set()
        self._idle, self._closing, self._guarded = asyncio.Event(), False, False

    def effect_of(self, plan: Plan, step: StepPlan) -> str | None:
        """Return the effect of a step: that of the template, or what its handler declares here."""
        with contextlib.suppress(ResolutionError):
            return step.effect or self._registry.of_step(step, plan.id).effect
        return None

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

        Never raises for anything a handler does. Returns the `Result` that must be reported, or an `UnreportedEnd`,
        such as `ClaimReleased` if this worker has no such handler, closes, or has no thread or child process for it.
        """
        if self._closing:
            return ClaimReleased(attempt.claim, "the worker is closing")
        if stopped := attempt.cancel.end_of(attempt.claim):
            return stopped
        policy, end = attempt.step.circuit_breaker, None
        breaker = None if policy is None else BreakerPermit(self._breakers, attempt, policy)
        if breaker is not None and breaker.refusal is not None:
            return breaker.refusal
        if self.resources is not None:
            attempt = replace(attempt, resources=self.resources.for_attempt())
        self._begin(attempt)
        started = self._clock.monotonic()
        try:
            resolved = self._resolve(attempt)
            ending = await self._call(*resolved) if isinstance(resolved, tuple) else resolved
            transaction = resolved[0].transaction if isinstance(resolved, tuple) else None
            # The return value of a handler that was stopped may be half of its work.
            stopped = attempt.cancel.end_of(attempt.claim)
            if isinstance(stopped, ClaimReleased) and attempt.cancel.began and attempt.step.effect == ONCE:
                ending, stopped = interrupted(attempt), None
            end = stopped or self._settle(attempt, ending, started)
            if transaction is not None:
                end = await transaction.settled(end)
            return end
        finally:
            if breaker is not None:
                breaker.record(end)
            self._end(attempt)

    async def run_in_slots(self, attempt: Attempt) -> AttemptEnd:
        """Run a step that uses several slots as `run` does, once it has them; otherwise it ends as `ClaimReleased`."""
        if self._slots is None:
            return await self.run(attempt)
        self._begin(attempt)
        try:
            async with several_slots(self._slots, attempt, self._limit(attempt)[0], self._waits) as end:
                return end or await self.run(attempt)
        finally:
            self._end(attempt)

    def _begin(self, attempt: Attempt) -> None:
        if not self._guarded:
            guard_forked_loop()
            self._guarded = True
        self._running.add(attempt)

    def _end(self, attempt: Attempt) -> None:
        if attempt.resources is not None:
            attempt.resources.release()
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
        if self.resources is not None:
            await asyncio.to_thread(self.resources.close)
        await asyncio.sleep(0)  # attempts whose threads were left behind end now

    def _resolve(self, attempt: Attempt) -> tuple[Attempt, ResolvedHandler] | Success | Failure | ClaimReleased:
        """Return the attempt with its evaluated inputs and its handler, or how an attempt without a handler ends."""
        if not attempt.step.has_handler:
            from tasker.execution.attempt.evaluated import evaluate  # needed for steps with expressions only

            return evaluate(attempt)
        try:
            handler = self._registry.of_step(attempt.step, attempt.plan.id)
        except ResolutionError as error:  # another worker may have the handler (design rule 16)
            return ClaimReleased(attempt.claim, str(error))
        if problem := handler.problem(attempt.step):
            return role_mismatch(handler.name, *problem)
        if attempt.step.inputs is None or attempt.step.for_each is not None:  # each item has its own inputs
            return self._in_transaction(attempt, handler), handler
        from tasker.handlers.step_inputs import mapped_inputs  # needed for steps with expressions only

        read = attempt.claim, attempt.task_context, attempt.dependency_results
        inputs = mapped_inputs(attempt.plan, attempt.step, *read)
        if isinstance(inputs, Failure):
            return make_storable(replace(inputs, handler=handler.name))
        return self._in_transaction(replace(attempt, inputs=inputs), handler), handler

    def _in_transaction(self, attempt: Attempt, handler: ResolvedHandler) -> Attempt:
        """Return the attempt with the transaction of its handler, if its effect is `transactional`."""
        if (attempt.step.effect or handler.effect) != TRANSACTIONAL or self.make_transactions is None:
            return attempt
        return replace(attempt, transaction=self.make_transactions().of(attempt, handler))

    async def _call(self, attempt: Attempt, handler: ResolvedHandler) -> Ending | ClaimLost:
        """Call the handler until it has an outcome, over as many checkpoints as it yields.

        Each call takes at most the step's timeout, and ends at the deadline of its task.
        """
        mode = self._mode(attempt, handler)
        if attempt.step.for_each is not None:
            return await self._call_for_items(attempt, attempt.step.for_each, handler, mode)
        call = partial(self._call_again, attempt, handler, mode)
        return await (call() if attempt.step.memoize is None else memoized(attempt, attempt.step.memoize, call))

    async def _call_for_items(
        self, attempt: Attempt, each: ForEach, handler: ResolvedHandler, mode: HandlerExecutor
    ) -> Ending | ClaimLost:
        from tasker.execution.attempt.evaluated import ItemCalls  # needed for steps with `for_each` only

        def judged(failure: Failure) -> Failure:
            return OutcomeRedactor(attempt).failure(self._classified(attempt, failure))

        call = self._call_again if each.batch_size == 1 else self._call_once
        save_position = partial(save, limit=self._checkpoint_timeout, handler=handler.name)
        calls = ItemCalls(attempt, each, handler.name, partial(call, handler=handler, mode=mode), save_position, judged)
        return await calls.run() or ClaimLost(attempt.claim, REFUSED)

    async def _call_once(self, attempt: Attempt, handler: ResolvedHandler, mode: HandlerExecutor) -> Ending:
        limit, ends_task = self._limit(attempt)
        if limit <= 0 and ends_task:
            return past_deadline(handler.name)
        ending = await mode(attempt, handler, limit)
        overran = ends_task and isinstance(ending, Failure) and ending.error_type == TIMED_OUT
        return past_deadline(handler.name, limit) if overran else ending

    async def _call_again(
        self, attempt: Attempt, handler: ResolvedHandler, mode: HandlerExecutor
    ) -> Ending | ClaimLost:
        """Call the handler until it does not yield a checkpoint."""
        progress = CheckpointProgress()
        while True:
            ending = await self._call_once(attempt, handler, mode)
            if not isinstance(ending, Checkpoint) or not attempt.cancel.may_save():
                return ending
            if failure := progress.failure(ending, handler.name):
                return failure
            saved = await save(attempt, ending, self._checkpoint_timeout, handler.name)
            if not isinstance(saved, Attempt):
                return saved or ClaimLost(attempt.claim, REFUSED)
            if saved.cancel.is_set():
                return ending
            attempt = saved

    def _limit(self, attempt: Attempt) -> tuple[float, bool]:
        """Return how many seconds a call may take, and whether the deadline of the task ends it before its timeout."""
        timeout = attempt.step.timeout_seconds
        limit = self._default_timeout if timeout is None else timeout
        left = attempt.claim.seconds_left(monotonic())
        return (limit, False) if left is None or left >= limit else (left, True)

    def _mode(self, attempt: Attempt, handler: ResolvedHandler) -> HandlerExecutor:
        """Return the function that calls the handler: on the loop, in a thread, or in a child process."""
        if attempt.transaction is not None or not _needs_isolation(attempt, handler):
            return self._chosen_mode(attempt, handler)
        listeners.warning("step_isolated", attempt.claim)
        return self._isolated

    def _chosen_mode(self, attempt: Attempt, handler: ResolvedHandler) -> HandlerExecutor:
        match attempt.step.execution or handler.kind:
            case "async":
                return run_async if handler.kind == "async" else refuse_plain_function
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

    def _settle(self, attempt: Attempt, ending: Ending | UnreportedEnd, started: float) -> AttemptEnd:
        """Return the result to report, with a failure classified and redacted, or the end of an attempt without one."""
        if isinstance(ending, UnreportedEnd):
            return ending
        if isinstance(ending, Snooze):
            return self._snoozed(attempt, ending, started)
        if isinstance(ending, Suspension):
            return ClaimSuspended(attempt.claim, "", ending)
        if isinstance(ending, Checkpoint):
            return ClaimLost(attempt.claim, REFUSED)
        milliseconds = round((self._clock.monotonic() - started) * 1000)
        if isinstance(ending, Failure):
            if attempt.step.effect == ONCE and attempt.cancel.began and ending.error_type in UNKNOWN_OUTCOMES:
                ending = with_unknown_outcome(ending, {"worker": attempt.claim.worker})
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
            return self._settle(attempt, too_near(snooze, left, attempt.step.handler.callable), started)
        reason = OutcomeRedactor(attempt).over(snooze.reason)
        return ClaimSnoozed(attempt.claim, reason, snooze.delay_ms, snooze.limit, snooze.state)

    async def _until_idle(self, limit: float) -> None:
        if self._running:
            self._idle.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), limit)


def _needs_isolation(attempt: Attempt, handler: ResolvedHandler) -> bool:
    """Return True for a step that may have crashed two workers, if its author chose no mode and a child can load it."""
    return attempt.claim.isolated and attempt.step.execution is None and handler.made_here and handler.source.loadable
