"""Circuit breaker of a step around its attempts."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

from tasker.execution.attempt.attempt import Attempt, AttemptEnd, ClaimDeferred, UnreportedEnd
from tasker.resilience.breaker import GuardedCircuit, Permit
from tasker.resilience.breakers import Breakers
from tasker.template.plan import StepBreaker


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
