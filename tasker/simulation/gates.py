"""Limits and circuit breakers, which keep a ready step from its next attempt within one task.

Of limits only the steps of the simulated task use the permits. There is one worker, so a breaker sees all attempts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tasker.dataclasses import dataclass
from tasker.handlers.claims import Failure
from tasker.resilience.breaker import CircuitBreaker, Permit
from tasker.simulation.steps import SimulatedStep
from tasker.simulation.times import value_at
from tasker.template.names import BREAKER_SETTLE_SECONDS
from tasker.template.plan import Plan, StepLimit, StepPlan

Key = tuple[str, str]
"""Name of a limit and the value of its key."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a step does not begin now."""

    until_ms: int | None
    """Time at which it may; None: once a permit is free."""
    deferred: bool = False
    """True: it was claimed, and an open breaker put it off."""
    failure: Failure | None = None
    """Why it never begins: the key of a limit has no value."""


def gates_of(plan: Plan, values: Mapping[str, Any]) -> Gates | None:
    """Return the gates of a task; None for a template without limits and breakers."""
    gated = any(step.limits or step.circuit_breaker for step in plan.steps)
    return Gates(plan, values) if gated else None


class Gates:
    """Limits and circuit breakers of one simulated task. Times are milliseconds of its clock."""

    def __init__(self, plan: Plan, values: Mapping[str, Any]) -> None:
        self._plan, self._values = plan, values
        self._running: Counter[Key] = Counter()
        self._full_at: dict[Key, float] = {}
        """Time at which the permits of a rate are complete again, by its key."""
        self._breakers: dict[Any, CircuitBreaker] = {}
        self._permits: dict[str, Permit] = {}
        self._held: dict[str, list[Key]] = {}

    def refusal(self, step: SimulatedStep, steps: Mapping[str, SimulatedStep], now: int) -> Refusal | None:
        """Return why the step does not begin; None: it begins, and has its permits from now on."""
        keys = [(limit, self._key(limit, steps)) for limit in step.plan.limits if not limit.is_named]
        for limit, key in keys:
            if key is None:
                return Refusal(
                    None, failure=Failure(f"the key of {limit.name} has no value", "limit_key_missing", False)
                )
            if limit.max_running is not None and self._running[key] >= limit.max_running:
                return Refusal(None)
            if limit.rate is not None and (wait := self._wait_ms(limit, key, now)) > 0:
                return Refusal(now + wait)
        if (breaker := self._breaker(step.plan)) is not None:
            permit = breaker.allow(now / 1000)
            if permit is None:
                return Refusal(now + max(1, math.ceil(breaker.retry_after(now / 1000) * 1000)), deferred=True)
            self._permits[step.name] = permit
        held = [(limit, key) for limit, key in keys if key is not None]
        for limit, key in held:
            self._running[key] += 1
            if limit.rate is not None:
                self._full_at[key] = max(self._full_at.get(key, 0.0), float(now)) + 1000 / limit.rate
        self._held[step.name] = [key for _, key in held]
        return None

    def ended(self, step: SimulatedStep, outcome: Any, now: int) -> None:
        """Take the permits of an attempt back, and tell the breaker how it ended."""
        for key in self._held.pop(step.name, ()):
            self._running[key] -= 1
        breaker, permit = self._breaker(step.plan), self._permits.pop(step.name, None)
        if breaker is None or permit is None:
            return
        if isinstance(outcome, Failure) and outcome.retryable:
            breaker.failed(permit, now / 1000)
        elif isinstance(outcome, Failure) or not isinstance(outcome, Mapping):
            breaker.abandoned(permit)
        else:
            breaker.succeeded(permit, now / 1000)

    def _key(self, limit: StepLimit, steps: Mapping[str, SimulatedStep]) -> Key | None:
        """Return the key of a limit; None if its value is missing."""
        if limit.key is None:
            return limit.name, ""
        value = value_at(limit.key, self._values, steps)[0]
        return None if value is None else (limit.name, str(value))

    def _wait_ms(self, limit: StepLimit, key: Key, now: int) -> int:
        """Return the time until a rate has a permit."""
        assert limit.rate is not None
        interval = 1000 / limit.rate
        burst = limit.burst or 1
        missing = max(self._full_at.get(key, 0.0), float(now)) + interval - (now + burst * interval)
        return math.ceil(missing) if missing > 1e-6 else 0

    def _breaker(self, step: StepPlan) -> CircuitBreaker | None:
        policy = step.circuit_breaker
        if policy is None:
            return None
        name = policy.name or f"{self._plan.namespace}/{self._plan.name}/{step.name}"
        if (name, policy) not in self._breakers:
            self._breakers[name, policy] = CircuitBreaker(name, policy, settle_seconds=BREAKER_SETTLE_SECONDS)
        return self._breakers[name, policy]
