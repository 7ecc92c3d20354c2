"""Results of dependents that are stored together with the result above them, in one write (`tasker.refuse_ahead`).

These are steps without a handler, which the worker evaluates itself, and chains of pure steps: the worker that
completes one runs the next one at once. What fails here, or is refused, becomes ready with the write of the result
above it and runs as usual. The first result of a chain waits meanwhile, so only steps that were quick here before run
ahead, for at most `HOLD_SECONDS`.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from tasker.engine.exchange import Result
from tasker.engine.task_graph import Growths, step_number
from tasker.execution.attempt.attempt import Attempt, AttemptCancelFlag, AttemptEnd
from tasker.template.effects import PURE

if TYPE_CHECKING:
    from tasker.execution.attempt.runner import AttemptRunner
    from tasker.execution.in_flight import InFlightClaim
    from tasker.execution.inputs import InputCache
    from tasker.execution.report_buffer import ReportBuffer
    from tasker.settings.execution import WorkerExecution
    from tasker.template.plan import StepPlan

QUICK_MS = 50
"""Longest duration of the last attempt of a step that runs ahead."""
HOLD_SECONDS = 1.0
"""Longest time for which a result waits for those of the steps below it."""


class DependentResults:
    """Dependents of the steps of one worker, if it stores its results itself."""

    def __init__(
        self, runner: AttemptRunner, reports: ReportBuffer, inputs: InputCache, settings: WorkerExecution
    ) -> None:
        self._runner, self._reports, self._inputs = runner, reports, inputs
        self._inline = settings.result_path == "inline"
        self._durations_ms: dict[tuple[int, str], int] = {}
        """Duration of the last attempt here, by template and step; steps of chains only."""
        self._runs = set[asyncio.Future[AttemptEnd]]()

    def with_evaluated(self, attempt: Attempt, end: Result) -> Result:
        """Return the result with what is known of the task's graph, and with those of dependents without a handler."""
        step = attempt.step
        if end.ahead or end.stored is not None:
            return end
        folds = self._inline and step.name in attempt.plan.evaluated_below
        if not (folds or step.type.expands) or (growths := self._inputs.growths(end.claim.task_uuid)) is None:
            return end
        if not folds:
            return replace(end, growths=growths)
        from tasker.execution.attempt.folding import with_evaluated_dependents  # for steps with expressions only

        return with_evaluated_dependents(attempt, end, growths)

    async def with_chain(self, running: InFlightClaim, attempt: Attempt, end: Result) -> Result:
        """Return the result of a step of a chain with those of the steps below it that run ahead here."""
        if not self._inline or not self._is_pure(attempt):
            return end
        self._learn(end)
        if end.success is None or (growths := self._inputs.growths(end.claim.task_uuid)) is None:
            return end
        loop, ahead = asyncio.get_running_loop(), list[Result]()
        until, last = loop.time() + HOLD_SECONDS, (attempt, end)
        while (following := self._following(*last, growths)) is not None and not running.cancel.is_set():
            output = self._reports.held(following.claim)
            following = replace(following, reporter=output)
            result = await self._run(running, following, until - loop.time())
            if not isinstance(result, Result) or result.success is None or result.success.events:
                break  # its own attempt reports a failure, and publishes events
            self._learn(result)
            ahead.append(replace(result, on_stored=output.release))
            last = following, result
        if ahead:
            ahead += self.with_evaluated(*last).ahead
        return replace(end, ahead=tuple(ahead), growths=growths) if ahead else end

    def _learn(self, result: Result) -> None:
        if result.success is None or result.success.memoized is None:  # a stored result says nothing of its handler
            self._durations_ms[result.claim.template, result.claim.name] = result.duration_ms

    def _following(self, attempt: Attempt, result: Result, growths: Growths) -> Attempt | None:
        """Return the attempt of the next step of the chain, or None if it does not run ahead."""
        from tasker.execution.attempt.folding import claim_ahead, with_result  # for chains only

        plan, claim = attempt.plan, result.claim
        step = plan.chains.get(attempt.step.name)
        if step is None or result.success is None or not self._is_quick(claim.template, step):
            return None
        number = step_number(plan, step.name, growths)
        if number is None or self._runner.is_saturated:
            return None
        next_claim = claim_ahead(claim, step, number)
        following = replace(
            attempt,
            claim=next_claim,
            step=step,
            dependency_results=with_result(attempt, result.success),
            inputs=None,
            cancel=AttemptCancelFlag(),
        )
        return following if self._is_pure(following) else None

    def _is_pure(self, attempt: Attempt) -> bool:
        return self._runner.effect_of(attempt.plan, attempt.step) == PURE

    def _is_quick(self, template: int, step: StepPlan) -> bool:
        return self._durations_ms.get((template, step.name), QUICK_MS + 1) <= QUICK_MS

    async def _run(self, running: InFlightClaim, attempt: Attempt, seconds: float) -> AttemptEnd | None:
        """Run one attempt; what stops the step above it stops this one.

        Return None when it takes longer: it is stopped, and nobody waits for a thread that does not notice.
        """
        run = asyncio.ensure_future(self._runner.run(attempt))
        self._runs.add(run)
        run.add_done_callback(self._runs.discard)
        running.cancel.wake = attempt.cancel.set
        try:
            await asyncio.wait({run}, timeout=max(0.0, seconds))
            return run.result() if run.done() else None
        finally:
            running.cancel.wake = None
            attempt.cancel.set()
