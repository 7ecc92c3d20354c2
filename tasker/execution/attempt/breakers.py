"""The circuit breakers around handlers, in this process: one for each step that asks for it, or by name.

A failure that may be retried counts, a timeout with it. A permanent one says nothing: what refuses a request answers.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

from tasker.contracts.plan import StepBreaker
from tasker.execution.attempt.values import Attempt, AttemptEnd, ClaimDeferred, UnreportedEnd
from tasker.lifecycle.breaker import Permit
from tasker.resilience.guard import GuardedCircuit
from tasker.resilience.registry import Breakers


async def behind_breaker(
    breakers: Breakers, attempt: Attempt, policy: StepBreaker, run: Callable[[Attempt], Awaitable[AttemptEnd]]
) -> AttemptEnd:
    """What `run` makes of the attempt, of which its breaker hears; `ClaimDeferred` while that is open."""
    own = f"{attempt.plan.namespace}/{attempt.plan.name}/{attempt.step.name}"
    breaker = breakers.of_handler(policy.name or own, policy)
    permit = breaker.should_allow()
    if permit is None:
        delay = max(1, math.ceil(breaker.retry_after * 1000))
        return ClaimDeferred(attempt.claim, f"the circuit breaker of {breaker.name} is open", delay)
    try:
        end = await run(attempt)
    except BaseException:
        breaker.abandoned(permit)
        raise
    _tell(breaker, permit, end)
    return end


def _tell(breaker: GuardedCircuit, permit: Permit, end: AttemptEnd) -> None:
    if isinstance(end, UnreportedEnd):
        breaker.abandoned(permit)
    elif end.failure is None:
        breaker.record_success(permit)
    elif end.failure.retryable:
        breaker.record_failure(permit, end.failure.message)
    else:
        breaker.abandoned(permit)
