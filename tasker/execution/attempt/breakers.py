"""The circuit breakers around handlers, in this process: one for each step that asks for it (H-82..H-86).

A failure that may be retried counts, a timeout with it. A permanent one says nothing: what refuses a request answers.
"""

from __future__ import annotations

import math

from tasker.contracts.clock import Clock
from tasker.execution.attempt import log
from tasker.execution.attempt.values import Attempt, AttemptEnd, Deferred, Finished
from tasker.lifecycle.breaker import Breaker, BreakerState

Key = tuple[str, str, str]


class StepBreakers:
    """Asked before every attempt, told after it. Steps without a `circuit_breaker` cost one look."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._breakers: dict[Key, Breaker] = {}

    def states(self) -> dict[str, BreakerState]:
        """The state of every breaker by `namespace/template/step`, as far as this process has used them."""
        now = self._clock.monotonic()
        return {breaker.name: breaker.state(now) for breaker in self._breakers.values()}

    def refusal(self, attempt: Attempt) -> Deferred | None:
        """None when the attempt may be made, else for how long it is put off."""
        if attempt.step.circuit_breaker is None:
            return None
        breaker, now = self._breaker(attempt), self._clock.monotonic()
        if breaker.allow(now):
            return None
        delay = max(1, math.ceil(breaker.retry_after(now) * 1000))
        return Deferred(attempt.claim, f"the circuit breaker of {breaker.name} is open", delay)

    def learn(self, attempt: Attempt, end: AttemptEnd) -> AttemptEnd:
        """Take in what became of an attempt that was allowed; returns `end`."""
        if attempt.step.circuit_breaker is None:
            return end
        breaker, now = self._breaker(attempt), self._clock.monotonic()
        before = breaker.state(now)
        _tell(breaker, end, now)
        if (after := breaker.state(now)) is not before:
            log.warning("circuit_breaker", step_uuid=attempt.claim.step_uuid, name=breaker.name, state=str(after))
        return end

    def _breaker(self, attempt: Attempt) -> Breaker:
        key = (attempt.plan.namespace, attempt.plan.name, attempt.step.name)
        breaker = self._breakers.get(key)
        if breaker is None or breaker.policy != attempt.step.circuit_breaker:
            breaker = self._breakers[key] = Breaker("/".join(key), attempt.step.circuit_breaker)
        return breaker


def _tell(breaker: Breaker, end: AttemptEnd, now: float) -> None:
    if not isinstance(end, Finished):
        breaker.abandoned()
    elif end.outcome.failure is None:
        breaker.succeeded(now)
    elif end.outcome.failure.retryable:
        breaker.failed(now)
    else:
        breaker.abandoned()
