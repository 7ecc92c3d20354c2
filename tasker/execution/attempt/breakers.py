"""Circuit breakers around handlers, local to this process: one per step that asks for it, or shared by name.

A retryable failure counts as a failure of the breaker, a timeout included. A permanent failure is not counted: a
service that refuses a request is reachable.
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
    """Run the attempt and record its outcome on the step's breaker; return `ClaimDeferred` while it is open."""
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
