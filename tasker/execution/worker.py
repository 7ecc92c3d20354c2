"""The worker: claims steps, runs their handlers and reports the results until it is stopped.

Claims come from the queue (`Claimer`), from the answers to results (hand-offs) and from the promotion of retries; all
of them go through `accept`. Results that end during a write go into the next one (group commit without a timer). Every
claimed step produces a result or is released.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from tasker.engine.calls import Engine
from tasker.engine.exchange import AdvanceResult, ClaimRow, CompletingWorker, Inputs, Result, TaskInputs, TooLarge
from tasker.engine.plans import PlanStore
from tasker.engine.task_log import read_task_ids
from tasker.errors import PlanUnreadable
from tasker.execution.attempt.attempt import (
    Attempt,
    AttemptEnd,
    AttemptTask,
    ClaimDeferred,
    ClaimReleased,
    ClaimSnoozed,
    ClaimSuspended,
    NoCapacity,
    UnreportedEnd,
)
from tasker.execution.attempt.call import context_of
from tasker.execution.attempt.listeners import AttemptListener, failed_here, log_failure
from tasker.execution.attempt.runner import AttemptRunner
from tasker.execution.attempt.worker_calls import WorkerCalls
from tasker.execution.event_making import EventFactory
from tasker.execution.fast.local_tasks import LocalTaskTracker
from tasker.execution.in_flight import FencedWrites, InFlightClaim, InFlightClaims, ReleasedClaim
from tasker.execution.input_reads import InputReader, failed_of
from tasker.execution.inputs import InputCache
from tasker.execution.report_buffer import ReportBuffer
from tasker.execution.run_ahead import DependentResults
from tasker.execution.settings import WorkerSettings
from tasker.execution.slots import Slots
from tasker.execution.step_metrics import StepMetrics
from tasker.handlers.claims import Claim
from tasker.handlers.copies import CopyOnRead
from tasker.handlers.starting import TaskStarter
from tasker.logging.lines import ids_of, log_line
from tasker.logging.trace_context import TraceOf
from tasker.template.plan import Plan, StepPlan

if TYPE_CHECKING:
    from tasker.execution.completer import CompletionBuffer

_log = logging.getLogger("tasker.execution")
Answered = TypeVar("Answered", bound=AdvanceResult)
LEAST_TOGETHER, MOST_TOGETHER = 32, 100
"""Bounds of the number of claims started in one turn of the loop.

A smaller write costs more than it gains from the database working meanwhile; a larger one is hardly cheaper per result.
"""
NO_PLACE = "no_place"
"""Reason under which claims are throttled after a step was released for lack of a thread or child process."""
LEFT_TO_OTHERS_SECONDS = 5.0
"""Time for which such steps are left to other workers; not longer, since async handlers need no thread or process."""


class Worker:
    """Executor of claimed steps in this process. `identity` is the uuid text of this registration.

    `completed` gets every finished attempt and every claim to release; `teller` is notified of attempts before that;
    `events` builds the events that attempts publish, `reports` gets handler output, `trace_of` returns a claim's
    position in its trace, `starter` creates the tasks that handlers start.
    """

    def __init__(
        self,
        identity: str,
        slots: Slots,
        completed: CompletionBuffer,
        *,
        engine: Engine,
        plans: PlanStore,
        runner: AttemptRunner,
        settings: WorkerSettings,
        events: EventFactory,
        reports: ReportBuffer,
        teller: AttemptListener | None = None,
        trace_of: TraceOf | None = None,
        starter: TaskStarter | None = None,
    ) -> None:
        self.identity, self.slots, self.settings, self.reports = identity, slots, settings, reports
        self.inputs, self.claims, self.whole_runs = InputCache(), InFlightClaims(), LocalTaskTracker()
        self.namespace_ids, self.unserved = list[int](), set[str]()
        self.metrics, self.starter, self.released_count = StepMetrics(), starter, 0  # claims released since the start
        self._completed, self._engine, self.plans, self._around = completed, engine, plans, copy_context()
        self._runner, self.events, self._teller, self._trace_of = runner, events, teller, trace_of
        self._reader, self._writes = InputReader(engine), FencedWrites(engine, settings, self.whole_runs.saved)
        self._left_to_others: asyncio.TimerHandle | None = None
        self._dependents = DependentResults(runner, reports, self.inputs, settings.execution)

    def begin_as(self, identity: str) -> None:
        """Continue as a new incarnation that is not registered yet; state of the former one is dropped."""
        self.identity = identity
        self.forget()

    def forget(self) -> None:
        """Drop cached database state: another server may answer next, or one that has lost its latest writes."""
        self.inputs.clear()
        self.whole_runs.forget()
        self.plans.forget()

    def registered(self, namespace_ids: Sequence[int]) -> None:
        """Record the registration with these namespaces: handlers that could not be resolved before are tried again."""
        self.namespace_ids, self.unserved = list(namespace_ids), set()

    def caller(self, slots: int = 0) -> CompletingWorker:
        """Return this worker as an argument of the engine's calls."""
        settings = self.settings
        return CompletingWorker(
            self.identity,
            slots,
            self.namespace_ids,
            sorted(self.unserved),
            settings.limits.enqueue_window,
            settings.dispatch.handler_timeout_ms,
            settings.lease.grace_ms,
        )

    def claim_tokens(self) -> list[tuple[str, int]]:
        """Return the (step, token) pairs in flight. May be called from any thread."""
        return self.claims.pairs()

    @property
    def start_batch_size(self) -> int:
        """Return how many claims are started in one turn of the loop.

        Of a larger group, the first half's results are written while the other half runs.
        """
        return min(max(self.slots.concurrency // 2, LEAST_TOGETHER), MOST_TOGETHER)

    @property
    def busy(self) -> int:
        return len(self.claims)

    async def offer(self, ask: Callable[[int], Awaitable[Answered]], limit: int | None = None) -> Answered:
        """Call `ask` with up to `limit` reserved slots, and start the claims of its answer.

        Without a limit, the slots are those that a claim may reserve.
        """
        reserved = self.slots.reserve(self.slots.claimable_slots if limit is None else limit)
        used = 0
        try:
            answer = await ask(reserved)
            used = len(answer.claims)
        finally:
            self.slots.settle(reserved, used)
        if used:
            await self.accept(answer)
        return answer

    async def accept(self, answer: AdvanceResult) -> None:
        """Start every claim of an answer that does not run here; read the inputs that are not cached.

        A database that went back to an earlier moment may return a claim again: its handler runs on, and not twice.
        When this raises, no worker runs the remaining claims: their slots are free, and reconciliation finds and
        releases them.
        """
        rows, started, generation = answer.claims, 0, self.inputs.kept_since
        try:
            plans = await self._readable(rows)
            readable = [row for row in rows if row.template in plans]
            for first in range(0, len(readable), self.start_batch_size):
                if first:
                    await asyncio.sleep(0)
                inputs = answer.inputs if self.inputs.kept_since == generation else None
                part = readable[first : first + self.start_batch_size]
                for row in await self._prepared(part, inputs, answer.too_large, plans):
                    self._start(row, plans[row.template])
                    started += 1
        finally:
            if started < len(rows):
                self.slots.finish(len(rows) - started)

    async def _readable(self, rows: Sequence[ClaimRow]) -> dict[int, Plan]:
        """Return the plans of the claims by template, and release claims whose plan only a newer version can read."""
        plans: dict[int, Plan] = {}
        for template in {row.template for row in rows}:
            try:
                plans[template] = await self.plans.get(template)
            except PlanUnreadable as error:
                left = [row for row in rows if row.template == template]
                for row in left:
                    self._release_to_newer_worker(row, error)
                await self._log_unreadable_plan(left, error)
        return plans

    async def _log_unreadable_plan(self, rows: Sequence[ClaimRow], error: PlanUnreadable) -> None:
        tasks = await read_task_ids(self._engine.connection, {row.task for row in rows})
        for row in rows:
            ids = {"step_uuid": row.step, "step_name": row.name, "attempt": row.attempt}
            log_line(
                _log, logging.WARNING, "step_needs_newer_release", {**tasks[row.task], **ids, "error": error.message}
            )

    def _release_to_newer_worker(self, row: ClaimRow, error: PlanUnreadable) -> None:
        where, attempt = (row.step, row.task, row.name, row.template, row.ordinal), row.attempt
        claim = Claim(*where, "", row.token, attempt, attempt, "", worker=self.identity)
        self.claims.take(InFlightClaim(claim, row.name, ended=True))
        self.unserved.add(claim.key)
        self._completed.add_release(ReleasedClaim(claim, {"reason": error.message, "unreadable": claim.key}))

    async def _prepared(
        self,
        rows: Sequence[ClaimRow],
        inputs: Inputs | None,
        too_large: Mapping[str, TooLarge],
        plans: Mapping[int, Plan],
    ) -> Sequence[ClaimRow]:
        """Return the claims that do not run here yet, after caching all that their handlers read.

        Inputs come from the answer or, for tasks that the claim named as known, from the cache; missing ones are read.
        A step whose inputs are too large to be returned fails, unless they are cached.
        """
        rows, received_inputs = [row for row in rows if not self.claims.has(row.step, row.token)], inputs or {}
        self.inputs.learn({row.task: received_inputs[row.task] for row in rows if row.task in received_inputs})
        untold = [
            row for row in rows if row.task not in received_inputs and not self._inputs_known(row, plans[row.template])
        ]
        too_large = {row.step: too_large[row.step] for row in untold if row.step in too_large}
        missing = [row.step for row in untold if row.step not in too_large]
        later_steps = [row.step for row in rows if row.later]
        while missing or later_steps:
            generation = self.inputs.kept_since
            read = await self._reader.read(missing, later_steps)
            for shared in read.shared:
                self.inputs.learn(shared)
            too_large |= read.too_large
            rows, later_steps = (
                [row._replace(**read.own[row.step]) if row.step in read.own else row for row in rows],
                [],
            )
            fresh = self.inputs.kept_since == generation
            missing = [] if fresh else [row.step for row in rows if row.step not in too_large]
        for row in rows:
            if row.step in too_large:
                self._fail_unread(row, plans[row.template], too_large[row.step])
        return [row for row in rows if row.step not in too_large] if too_large else rows

    def _fail_unread(self, row: ClaimRow, plan: Plan, oversized: TooLarge) -> None:
        step, failure = plan.steps[row.ordinal], failed_of(oversized)
        claim = self._claim(row, plan, step, TaskInputs({}, oversized.correlation_id, oversized.trace))
        self.claims.take(InFlightClaim(claim, step.handler.callable, ended=True))
        log_failure(claim, step, failure)
        self._completed.add(Result(claim, plan, 0, failure))

    def _inputs_known(self, row: ClaimRow, plan: Plan) -> bool:
        return self.inputs.knows(row.task, plan, plan.steps[row.ordinal])

    def _start(self, row: ClaimRow, plan: Plan) -> None:
        step, task = plan.steps[row.ordinal], self.inputs.require(row.task)
        running = InFlightClaim(claim := self._claim(row, plan, step, task), step.handler.callable)
        read = CopyOnRead.of(task.context), self.inputs.dependency_results(task, plan, step)
        limit, reporter = self.settings.limits.result_limit_bytes, self.reports.of(claim)
        calls = partial(WorkerCalls, asyncio.get_running_loop())
        more: dict[str, Any] = {"lists": task.lists, "calls": calls, "starter": self.starter}
        attempt = Attempt(claim, plan, step, *read, running.cancel, self._writes, limit, reporter, **more)
        if row.waited_ms is not None:
            self.metrics.claimed(plan, step, row.waited_ms)
        self.claims.take(running)  # not earlier: a claim without an attempt would never be released
        if _log.isEnabledFor(logging.DEBUG):
            log_line(_log, logging.DEBUG, f"Step claimed: step_uuid={row.step}", ids_of(claim))
        # in the context of who started the worker: not in that of a request, which may have made the claim
        running.task = AttemptTask(self._run(running, attempt), context=self._around.copy())

    def _claim(self, row: ClaimRow, plan: Plan, step: StepPlan, task: TaskInputs) -> Claim:
        return Claim(
            step_uuid=row.step,
            task_uuid=row.task,
            name=row.name,
            template=row.template,
            ordinal=row.ordinal,
            namespace=plan.namespace,
            token=row.token,
            attempt=row.attempt,
            max_attempts=max(1, step.retry.max_attempts),
            correlation_id=task.correlation_id,
            inputs=row.inputs,
            checkpoint=row.checkpoint,
            worker=self.identity,
            isolated=row.apart,
            trace=task.trace,
            ends_at=task.ends_at,
            began_at=_first_attempt(row, step),
            trace_of=self._trace_of,
            failures=task.failures,
            outcome=task.outcome,
        )

    async def _run(self, running: InFlightClaim, attempt: Attempt) -> None:
        try:
            end = await self._run_attempt(attempt)
            if isinstance(end, Result) and attempt.step.name in attempt.plan.in_chains:
                end = await self._dependents.with_chain(running, attempt, end)
            self._end_attempt(running, attempt, end)
        except BaseException as error:  # a defect, or this task was cancelled: claim and slot must not be lost
            if not running.ended:
                failure = failed_here(error, self.claims.canceller_of(running))
                failed = Result(attempt.claim, attempt.plan, 0, failure)
                self._end_attempt(running, attempt, attempt.cancel.end_of(attempt.claim) or failed)
            raise

    async def _run_attempt(self, attempt: Attempt) -> AttemptEnd:
        if attempt.step.requires and (missing := set(attempt.step.requires) - self.settings.tags):
            return ClaimReleased(attempt.claim, f"the worker lacks the tag {', '.join(sorted(missing))}")
        start_event = None if self._teller is None else self._teller.started(attempt.claim, attempt.plan)
        try:
            run = self._runner.run if attempt.step.slots == 1 else self._runner.run_in_slots
            end = await run(attempt)
        except Exception as error:  # a defect must not lose a claimed step
            end = Result(attempt.claim, attempt.plan, 0, failed_here(error))
        if self._teller is not None and start_event is not None:
            self._teller.ended(start_event, end)
        return await self.with_events(attempt, end) if isinstance(end, Result) and end.stored is None else end

    async def with_events(self, attempt: Attempt, result: Result) -> Result:
        """Return the result with the events that its step and its handler publish."""
        if not (attempt.step.publishes_events or result.outcome.events):
            return result
        return await self.events.with_events(result, attempt.step, partial(context_of, attempt))

    def _end_attempt(self, running: InFlightClaim, attempt: Attempt, end: AttemptEnd) -> None:
        running.ended = True
        self.slots.finish()
        if self._left_to_others is not None and not self._runner.is_saturated:
            self._lift_no_place()
        if not isinstance(end, Result):
            return self._end_unreported(running, end, attempt)
        self.metrics.ended(attempt.plan, attempt.step, end.duration_ms, failed=end.failure is not None)
        if end.failure is not None:
            log_failure(attempt.claim, attempt.step, end.failure)
        self._completed.add(self._dependents.with_evaluated(attempt, end))

    def folded(self, result: Result) -> None:
        """Notify plugins of a step that was stored with the result of the step above it, without a claim."""
        step = result.plan.steps[result.claim.ordinal]
        self.metrics.ended(result.plan, step, result.duration_ms, failed=False)
        if result.on_stored is not None:
            result.on_stored()
        if self._teller is not None:
            self._teller.ended(self._teller.started(result.claim, result.plan), result)

    def _end_unreported(self, running: InFlightClaim, end: UnreportedEnd, attempt: Attempt) -> None:
        if isinstance(end, ClaimReleased):
            return self._give_back(running, end, attempt)
        if isinstance(end, ClaimDeferred):
            note = {"reason": end.reason} if end.reason else {}
            if not isinstance(end, ClaimSnoozed):
                return self._completed.add_release(ReleasedClaim(end.claim, note, end.delay_ms))
            self.metrics.snoozed(attempt.plan, attempt.step)
            return self._completed.add_release(ReleasedClaim(end.claim, note, end.delay_ms, end.limit, end.state))
        if isinstance(end, ClaimSuspended):
            return self._completed.add_release(ReleasedClaim(end.claim, {}, suspension=end.suspension))
        self.claims.discard([end.claim])

    def _give_back(self, running: InFlightClaim, end: ClaimReleased, attempt: Attempt) -> None:
        """Release a claim. If its handler cannot be resolved here, never claim such steps again."""
        note = {"reason": end.reason}
        if isinstance(end, NoCapacity):
            self._leave_to_others()
        if not running.cancel.is_set():
            self.unserved.add(running.claim.key)
            note["unserved"] = attempt.step.served_by
        self._completed.add_release(ReleasedClaim(running.claim, note))

    def _leave_to_others(self) -> None:
        """Run no further steps for a while or until a thread or process is free: the step would come right back."""
        if not self.slots.is_throttled(NO_PLACE):
            self.slots.throttle(NO_PLACE, at_most=max(0, self.slots.running - self._runner.waiting))
            loop = asyncio.get_running_loop()
            self._left_to_others = loop.call_later(LEFT_TO_OTHERS_SECONDS, self._lift_no_place)

    def _lift_no_place(self) -> None:
        if self._left_to_others is not None:
            self._left_to_others.cancel()
            self._left_to_others = None
            self.slots.unthrottle(NO_PLACE)

    def released(self, claims: Sequence[Claim]) -> None:
        """Record claims that were released without using an attempt."""
        self.released_count += len(claims)
        self.claims.discard(claims)


def _first_attempt(row: ClaimRow, step: StepPlan) -> float | None:
    """Return when the step's first attempt began by the monotonic clock, if its policy limits the time of all."""
    return None if step.retry.max_elapsed_ms is None else monotonic() - (row.ran_ms or 0) / 1000
