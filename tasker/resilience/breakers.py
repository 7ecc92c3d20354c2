"""All circuit breakers of a process, by the resource they guard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import cached_property

from tasker.clock import Clock
from tasker.dataclasses import dataclass
from tasker.plugins.hook_arguments import BreakerChanged
from tasker.resilience.breaker import BreakerHealth, BreakerReading, CircuitBreaker, GuardedCircuit, SlowCalls, health
from tasker.settings.breakers import CompletionSend
from tasker.template.names import (
    BREAKER_SETTLE_SECONDS,
    COMPLETION_TIMEOUT_SECONDS,
    READINESS_FAILURES,
    READINESS_SUCCESSES,
)
from tasker.template.plan import BreakerPolicy

_READINESS = BreakerPolicy(READINESS_FAILURES, success_threshold=READINESS_SUCCESSES)
_COMPLETION = BreakerPolicy(timeout_seconds=COMPLETION_TIMEOUT_SECONDS)


@dataclass(frozen=True, slots=True)
class BreakerPolicies:
    """Policies of a process's circuit breakers."""

    messaging: BreakerPolicy = field(default_factory=BreakerPolicy)
    """Sending and receiving, if messages are not part of the engine's transactions."""
    database: BreakerPolicy = field(default_factory=BreakerPolicy)
    """Database calls of clients: submitting, reading, operating. Never the engine's own work."""
    task_readiness: BreakerPolicy = _READINESS
    """Promotion and sweeps."""
    completion: BreakerPolicy = _COMPLETION
    """Storing of results."""
    slow_completion_ms: int = CompletionSend.for_single_process().slow_send_threshold_ms
    """Duration above which storing a result counts as a failure of `completion`."""
    settle_seconds: float = BREAKER_SETTLE_SECONDS
    """Minimum time from the opening of a breaker until it closes."""


class Breakers:
    """Circuit breakers of one process, each created on first use. `on_change` is called at every change of state."""

    def __init__(
        self,
        clock: Clock,
        policies: BreakerPolicies | None = None,
        on_change: Callable[[BreakerChanged], None] = lambda changed: None,
    ) -> None:
        self._clock, self._policies, self._on_change = clock, policies or BreakerPolicies(), on_change
        self._guards: list[GuardedCircuit] = []
        self._of_handlers: dict[tuple[str, BreakerPolicy], GuardedCircuit] = {}
        self._slow_calls: list[SlowCalls] = []

    def change(self, policies: BreakerPolicies) -> None:
        """Apply other policies to all breakers from now on; states and counts are kept."""
        self._policies = policies
        for guard in self._guards:
            guard.change(getattr(policies, guard.name), policies.settle_seconds)
        for slow in self._slow_calls:
            slow.slow_seconds = policies.slow_completion_ms / 1000

    @cached_property
    def messaging(self) -> GuardedCircuit:
        """Breaker of the messaging provider."""
        return self._made("messaging", self._policies.messaging)

    @cached_property
    def database(self) -> GuardedCircuit:
        """Breaker of clients' database calls."""
        return self._made("database", self._policies.database)

    @cached_property
    def task_readiness(self) -> GuardedCircuit:
        """Breaker of promotion and sweeps."""
        return self._made("task_readiness", self._policies.task_readiness)

    @cached_property
    def completion(self) -> SlowCalls:
        """Breaker of storing results."""
        guard = self._made("completion", self._policies.completion)
        self._slow_calls.append(SlowCalls(guard, self._clock, self._policies.slow_completion_ms / 1000))
        return self._slow_calls[-1]

    def of_handler(self, name: str, policy: BreakerPolicy) -> GuardedCircuit:
        """Return the breaker for step handlers with this name and policy.

        The policy comes from the template: `change` does not affect it.
        """
        if (name, policy) not in self._of_handlers:
            self._of_handlers[name, policy] = GuardedCircuit(CircuitBreaker(name, policy), self._clock, self._on_change)
        return self._of_handlers[name, policy]

    def readings(self) -> list[BreakerReading]:
        """Return the reading of each breaker, including those of handlers."""
        return [guard.reading() for guard in (*self._guards, *self._of_handlers.values())]

    @property
    def slow_results(self) -> int:
        """Number of results since the start that were stored so slowly that `completion` counted a failure."""
        return sum(slow.count for slow in self._slow_calls)

    def health(self) -> BreakerHealth:
        """Return the combined health of all breakers, including those of handlers."""
        return health(self.readings())

    def _made(self, name: str, policy: BreakerPolicy) -> GuardedCircuit:
        breaker = CircuitBreaker(name, policy, settle_seconds=self._policies.settle_seconds)
        guard = GuardedCircuit(breaker, self._clock, self._on_change)
        self._guards.append(guard)
        return guard
