"""Circuit breaker that reads the clock and logs every change of its state."""

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
    """One circuit breaker of this process. `on_change` is called at every logged change of state."""

    def __init__(
        self, breaker: CircuitBreaker, clock: Clock, on_change: Callable[[BreakerChanged], None] = lambda changed: None
    ) -> None:
        self._breaker, self._clock, self._on_change = breaker, clock, on_change
        self._told = BreakerState.CLOSED
        self._error = ""
        self.sees_outage = False
        """True if the last failure was an outage of a server, which is logged separately."""
        self.listeners: list[Callable[[], None]] = []
        """Callbacks after every logged change of state."""
        self.notes: list[Callable[[], str]] = []
        """Callbacks that return additional text for `reading`."""

    def change(self, policy: BreakerPolicy, settle_seconds: float) -> None:
        """Apply another policy from now on; counts are kept."""
        self._breaker.policy, self._breaker.settle_seconds = policy, settle_seconds

    @property
    def name(self) -> str:
        """Name of the breaker, as in the log."""
        return self._breaker.name

    @property
    def state(self) -> BreakerState:
        """Current state."""
        return self._breaker.state(self._clock.monotonic())

    @property
    def retry_after(self) -> float:
        """Seconds until the breaker permits a call; 0 if it permits one now."""
        return self._breaker.retry_after(self._clock.monotonic())

    def should_allow(self) -> Permit | None:
        """Return the permit of a call that may be made now, or None. A permit must be recorded or abandoned."""
        now = self._clock.monotonic()
        permit = self._breaker.allow(now)
        self._tell(now)
        return permit

    def record_success(self, permit: Permit) -> None:
        """Record that the call of this permit succeeded."""
        now = self._clock.monotonic()
        self._breaker.succeeded(permit, now)
        self._tell(now)

    def record_failure(self, permit: Permit, error: object = "") -> None:
        """Record that the call of this permit failed; `error` is shown as the reason."""
        self._error, self.sees_outage = str(error).partition("\n")[0], is_outage(error)
        now = self._clock.monotonic()
        self._breaker.failed(permit, now)
        self._tell(now)

    def abandoned(self, permit: Permit) -> None:
        """Return the permit of a call whose outcome says nothing about the guarded resource."""
        self._breaker.abandoned(permit)

    def encouraged(self) -> None:
        """Permit a trial call now, because of other evidence that the resource works again."""
        self._breaker.encouraged(self._clock.monotonic())

    def is_healthy(self) -> bool:
        """Return True while the breaker is closed."""
        return self._breaker.is_healthy(self._clock.monotonic())

    def force_open(self) -> None:
        """Open the breaker for its timeout from now."""
        now = self._clock.monotonic()
        self._breaker.force_open(now)
        self._tell(now)

    def force_closed(self) -> None:
        """Close the breaker and reset its counts."""
        self._breaker.force_closed()
        self._tell(self._clock.monotonic())

    def metrics(self) -> BreakerCounts:
        """Return the counts since the start."""
        return self._breaker.metrics()

    def reading(self) -> BreakerReading:
        """Return the state, counts and last error, for the health of the process."""
        return BreakerReading(
            self.name, self.state, self.metrics(), self._error, "; ".join(note() for note in self.notes)
        )

    async def call(
        self,
        call: Callable[[], Awaitable[T]],
        refusal: Callable[[float], Exception],
        counts: Callable[[Exception], bool],
    ) -> T:
        """Await `call` and return its result. Raises `refusal(seconds until the next trial)` while the breaker is open.

        `counts` returns True for errors that are failures of the guarded resource, and False for unrelated ones.
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
    """Recorder that reports successful but slow calls to a breaker as failures."""

    def __init__(self, guard: GuardedCircuit, clock: Clock, slow_seconds: float) -> None:
        self.guard = guard
        self.slow_seconds = slow_seconds
        self.now = clock.monotonic
        self.count = 0
        """Slow calls since the start."""

    def record_success(self, permit: Permit, seconds: float) -> None:
        """Record that the call of this permit succeeded after that many seconds."""
        if seconds <= self.slow_seconds:
            self.guard.record_success(permit)
            return
        self.count += 1
        slow = f"slow: {seconds * 1000:.0f} ms, more than {self.slow_seconds * 1000:.0f} ms"
        self.guard.record_failure(permit, slow)
