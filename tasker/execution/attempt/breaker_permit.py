"""The circuit breaker of a step around one attempt."""

from __future__ import annotations

import math

from tasker.engine.exchange import Result
from tasker.execution.attempt.attempt import Attempt, AttemptEnd, ClaimDeferred
from tasker.resilience.breakers import Breakers
from tasker.template.plan import StepBreaker


class BreakerPermit:
    """Permission of the step's circuit breaker for one attempt; `refusal` says that the breaker is open."""

    def __init__(self, breakers: Breakers, attempt: Attempt, policy: StepBreaker) -> None:
        default_name = f"{attempt.plan.namespace}/{attempt.plan.name}/{attempt.step.name}"
        self._breaker = breaker = breakers.of_handler(policy.name or default_name, policy)
        self._permit, self.refusal = breaker.should_allow(), None
        if self._permit is None:
            delay = max(1, math.ceil(breaker.retry_after * 1000))
            self.refusal = ClaimDeferred(attempt.claim, f"the circuit breaker of {breaker.name} is open", delay)

    def record(self, end: AttemptEnd | None) -> None:
        """Record how the attempt ended; None: not at all, it raised."""
        if self._permit is None:
            return
        if not isinstance(end, Result) or (end.failure is not None and not end.failure.retryable):
            self._breaker.abandoned(self._permit)
        elif end.failure is None:
            self._breaker.record_success(self._permit)
        else:
            self._breaker.record_failure(self._permit, end.failure.message)
