"""A circuit breaker at work: it asks the clock, and names every change of its state in the log."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tasker.contracts.clock import Clock
from tasker.contracts.hook_arguments import BreakerChanged
from tasker.contracts.plan import BreakerPolicy
from tasker.lifecycle.breaker import BreakerCounts, BreakerReading, BreakerState, CircuitBreaker, Permit
from tasker.resilience.outage import is_outage

T = TypeVar("T")
_log = logging.getLogger("tasker.breakers")


class GuardedCircuit:
    """One breaker of this process. It never changes another one. `on_change` hears of every state it tells."""

    def __init__(
        self, breaker: CircuitBreaker, clock: Clock, on_change: Callable[[BreakerChanged], None] = lambda changed: None
    ) -> None:
        self._breaker, self._clock, self._on_change = breaker, clock, on_change
        self._told = BreakerState.CLOSED
        self._error = ""
        self.sees_outage = False
        """True when the failure seen last was that of a server that is away, which is told by itself."""
        self.listeners: list[Callable[[], None]] = []
        """Called after every change of the state that was told."""
        self.notes: list[Callable[[], str]] = []
        """What else there is to say when somebody asks how it stands."""

    def change(self, policy: BreakerPolicy, settle_seconds: float) -> None:
        """Open and close by this policy from now on; what was counted stays."""
        self._breaker.policy, self._breaker.settle_seconds = policy, settle_seconds

    @property
    def name(self) -> str:
        """The breaker's name, as in the log."""
        return self._breaker.name

    @property
    def state(self) -> BreakerState:
        """Where it stands now."""
        return self._breaker.state(self._clock.monotonic())

    @property
    def retry_after(self) -> float:
        """Seconds until it lets a call pass; 0 when it would now."""
        return self._breaker.retry_after(self._clock.monotonic())

    def should_allow(self) -> Permit | None:
        """The permit of a call that may be made now, None for one that may not. It must be recorded, or abandoned."""
        now = self._clock.monotonic()
        permit = self._breaker.allow(now)
        self._tell(now)
        return permit

    def record_success(self, permit: Permit) -> None:
        """The call of this permit has succeeded."""
        now = self._clock.monotonic()
        self._breaker.succeeded(permit, now)
        self._tell(now)

    def record_failure(self, permit: Permit, error: object = "") -> None:
        """The call of this permit has failed; `error` is told to whoever asks for the reason."""
        self._error, self.sees_outage = str(error).partition("\n")[0], is_outage(error)
        now = self._clock.monotonic()
        self._breaker.failed(permit, now)
        self._tell(now)

    def abandoned(self, permit: Permit) -> None:
        """The call of this permit says nothing about what is guarded."""
        self._breaker.abandoned(permit)

    def encouraged(self) -> None:
        """Something else shows that it may work again: a trial may pass now."""
        self._breaker.encouraged(self._clock.monotonic())

    def is_healthy(self) -> bool:
        """True while it is closed."""
        return self._breaker.is_healthy(self._clock.monotonic())

    def force_open(self) -> None:
        """Open it for its timeout from now."""
        now = self._clock.monotonic()
        self._breaker.force_open(now)
        self._tell(now)

    def force_closed(self) -> None:
        """Close it, with nothing counted."""
        self._breaker.force_closed()
        self._tell(self._clock.monotonic())

    def metrics(self) -> BreakerCounts:
        """Counts since the start."""
        return self._breaker.metrics()

    def reading(self) -> BreakerReading:
        """How it stands, for the health of the process."""
        return BreakerReading(
            self.name, self.state, self.metrics(), self._error, "; ".join(note() for note in self.notes)
        )

    async def call(
        self,
        call: Callable[[], Awaitable[T]],
        refusal: Callable[[float], Exception],
        counts: Callable[[Exception], bool],
    ) -> T:
        """What `call` returns. Raises `refusal(seconds until the next trial)` while it is open.

        `counts` tells the errors that are failures of what is guarded from those that say nothing about it.
        """
        permit = self.should_allow()
        if permit is None:
            raise refusal(self.retry_after)
        try:
            answer = await call()
        except Exception as error:
            self.record_failure(permit, error) if counts(error) else self.abandoned(permit)
            raise
        except BaseException:  # cancelled
            self.abandoned(permit)
            raise
        self.record_success(permit)
        return answer

    def _tell(self, now: float) -> None:
        if (state := self._breaker.state(now)) is self._told:
            return
        level = logging.WARNING if state is BreakerState.OPEN else logging.INFO
        level = logging.DEBUG if self.sees_outage else level
        _log.log(
            level, "circuit_breaker name=%s from=%s to=%s error=%s", self.name, self._told, state, self._error or "-"
        )
        before, self._told = self._told, state
        self._on_change(BreakerChanged(self.name, str(before), str(state), self._error))
        for listener in self.listeners:
            listener()


class SlowCalls:
    """Tells a breaker of calls that succeed too slowly as of failures."""

    def __init__(self, guard: GuardedCircuit, clock: Clock, slow_seconds: float) -> None:
        self.guard = guard
        self.slow_seconds = slow_seconds
        self.now = clock.monotonic
        self.count = 0
        """Slow calls since the start."""

    def record_success(self, permit: Permit, seconds: float) -> None:
        """The call of this permit has succeeded, and took so long."""
        if seconds <= self.slow_seconds:
            self.guard.record_success(permit)
            return
        self.count += 1
        slow = f"slow: {seconds * 1000:.0f} ms, more than {self.slow_seconds * 1000:.0f} ms"
        self.guard.record_failure(permit, slow)
