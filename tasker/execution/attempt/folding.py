"""Evaluation of the dependents of a step that need no handler, together with its result.

The result is stored with theirs in one write (`tasker.refuse_ahead`), which costs them no claim and no round trip. What
is not evaluated here, or refused, becomes ready with the write of the result and runs as usual.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from time import monotonic
from typing import Any

from tasker.engine.exchange import Result
from tasker.engine.task_graph import Growths, step_number
from tasker.execution.attempt.attempt import Attempt
from tasker.execution.attempt.evaluated import evaluate
from tasker.handlers.claims import Claim, Success
from tasker.handlers.copies import CopyOnRead
from tasker.json_values import as_stored
from tasker.template.plan import StepPlan


def with_evaluated_dependents(attempt: Attempt, result: Result, growths: Growths) -> Result:
    """Return the result with those of dependents that could be evaluated. `growths` are the task's known expansions."""
    return replace(result, ahead=tuple(_evaluated(attempt, result, growths)), growths=growths)


def _evaluated(attempt: Attempt, result: Result, growths: Growths) -> Iterator[Result]:
    if result.success is None:
        return
    results = with_result(attempt, result.success)
    for step in attempt.plan.evaluated_below[attempt.step.name]:
        if (number := step_number(attempt.plan, step.name, growths)) is None:
            continue
        claim, started = claim_ahead(attempt.claim, step, number), monotonic()
        try:
            outcome = evaluate(replace(attempt, claim=claim, step=step, dependency_results=results, inputs=None))
        except Exception:  # a defect: the step fails by itself, and not with it the step above
            continue
        if isinstance(outcome, Success):  # a failure is reported by an attempt of the step itself
            yield Result(claim, attempt.plan, round((monotonic() - started) * 1000), outcome)


def with_result(attempt: Attempt, success: Success) -> CopyOnRead:
    """Return the results that the dependents read: those above the step, and its own as it will be stored."""
    above, name, own = attempt.dependency_results, attempt.claim.name, list[Any]()

    def read(wanted: str) -> Any:
        if wanted != name:
            return above.original(wanted) if isinstance(above, CopyOnRead) else above[wanted]
        if not own:
            own.append(as_stored(success.encoded))
        return own[0]

    return CopyOnRead(dict.fromkeys((*above, name)), read)


def claim_ahead(claim: Claim, step: StepPlan, number: int) -> Claim:
    """Return the claim that the dependent would have at its first attempt."""
    return replace(
        claim,
        step_uuid=f"{claim.task_uuid[:-6]}{number:06x}",
        name=step.name,
        ordinal=step.ordinal,
        token=1,
        attempt=1,
        max_attempts=max(1, step.retry.max_attempts),
        inputs=None,
        checkpoint=None,
        isolated=False,
        began_at=None,
    )
