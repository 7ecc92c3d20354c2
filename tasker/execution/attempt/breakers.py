"""The circuit breakers around handlers, in this process: one for each step that asks for it, or by name (H-82..H-88).

A failure that may be retried counts, a timeout with it. A permanent one says nothing: what refuses a request answers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tasker.execution.attempt.values import Attempt, AttemptEnd, Deferred, Unreported
from tasker.lifecycle.breaker import Permit
from tasker.resilience.guard import Guard
from tasker.resilience.registry import Breakers


@dataclass(frozen=True, slots=True)
class Allowed:
    """An attempt that its breaker lets through, and wants to hear of."""

    breaker: Guard
    permit: Permit


def ask(breakers: Breakers, attempt: Attempt) -> Allowed | Deferred | None:
    """May the attempt be made? `Deferred`: for how long it is put off. None: its step has no breaker."""
    policy = attempt.step.circuit_breaker
    if policy is None:
        return None
    own = f"{attempt.plan.namespace}/{attempt.plan.name}/{attempt.step.name}"
    breaker = breakers.of_handler(policy.name or own, policy)
    permit = breaker.should_allow()
    if permit is not None:
        return Allowed(breaker, permit)
    delay = max(1, math.ceil(breaker.retry_after * 1000))
    return Deferred(attempt.claim, f"the circuit breaker of {breaker.name} is open", delay)


def abandon(allowed: Allowed | None) -> None:
    """The attempt has come to nothing."""
    if allowed is not None:
        allowed.breaker.abandoned(allowed.permit)


def tell(allowed: Allowed | None, end: AttemptEnd) -> AttemptEnd:
    """Let the breaker know what became of the attempt; returns `end`."""
    if allowed is None:
        return end
    breaker, permit = allowed.breaker, allowed.permit
    if isinstance(end, Unreported):
        breaker.abandoned(permit)
    elif end.outcome.failure is None:
        breaker.record_success(permit)
    elif end.outcome.failure.retryable:
        breaker.record_failure(permit, end.outcome.failure.message)
    else:
        breaker.abandoned(permit)
    return end
