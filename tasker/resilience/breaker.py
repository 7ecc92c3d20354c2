"""Circuit breaker: its state machine, with a clock and a log.

When closed, it allows all calls and counts consecutive failures. When open, it refuses calls until its timeout has
passed. When half-open, it allows one call at a time as a trial: a failure opens it again, enough consecutive successes
close it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import NewType, TypeVar

from tasker.clock import Clock
from tasker.dataclasses import dataclass
from tasker.plugins.hook_arguments import BreakerChanged
from tasker.resilience.outage import is_outage
from tasker.template.plan import BreakerPolicy

Permit = NewType("Permit", int)
"""Number of an allowed call, from 1. The report of the call returns it, so that late reports are recognized."""


class BreakerState(StrEnum):
    """State of a breaker."""

    CLOSED = "closed"
    HALF_OPEN = "half_open"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class BreakerCounts:
    """Counts of calls since the start."""

    calls: int = 0
    failures: int = 0
    refused: int = 0
    opened: int = 0


@dataclass(frozen=True, slots=True)
class BreakerReading:
    """State of a breaker at one moment. `error` is its latest failure, `note` an additional remark."""

    name: str
    state: BreakerState
    counts: BreakerCounts
    error: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class BreakerHealth:
    """Combined state of several breakers: `healthy`, `degraded` (one is half-open) or `unhealthy` (one is open)."""

    status: str
    message: str


def health(readings: Sequence[BreakerReading]) -> BreakerHealth:
    """Return the health of a process by its worst breaker, with the reasons of the open ones."""
    states = [reading.state for reading in readings]
    status = "healthy"
    if BreakerState.OPEN in states:
        status = "unhealthy"
    elif BreakerState.HALF_OPEN in states:
        status = "degraded"
    names = (("closed", BreakerState.CLOSED), ("open", BreakerState.OPEN), ("half-open", BreakerState.HALF_OPEN))
    counts = ", ".join(f"{states.count(state)} {name}" for name, state in names)
    details = "; ".join(map(_line, readings)) or "none in use"
    return BreakerHealth(status, f"{len(states)} circuit breakers: {counts}. Details: {details}")


def _line(reading: BreakerReading) -> str:
    counts = f"{reading.counts.calls} calls, {reading.counts.failures} failures"
    why = reading.error if reading.state is not BreakerState.CLOSED else ""
    return f"{reading.name}: {reading.state} ({', '.join(filter(None, (counts, why, reading.note)))})"


class CircuitBreaker:
    """Circuit breaker. `now` is always a monotonic time in seconds.

    Each call is requested with `allow` and, if allowed, reported with its permit: by `succeeded` or `failed`, or by
    `abandoned` if it shows nothing about the guarded resource. A call that began before the last opening shows nothing
    about the time after it: its report is counted but does not change the state. The breaker closes no earlier than
    `settle_seconds` after it opened, to avoid flapping; opening and forcing are immediate.
    """

    def __init__(self, name: str, policy: BreakerPolicy | None = None, *, settle_seconds: float = 0.0) -> None:
        self.name = name
        self.policy = policy or BreakerPolicy()
        self.settle_seconds = settle_seconds
        self._opened_at = 0.0
        self._open_until: float | None = None
        self._trial: Permit | None = None
        self._trial_until = 0.0
        self._last_before_opening = 0
        self._failures = self._successes = 0
        self._calls = self._failed = self._refused = self._opened = 0

    def state(self, now: float) -> BreakerState:
        """Return the state at `now`: an open breaker becomes half-open when its timeout has passed."""
        if self._open_until is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if now < self._open_until else BreakerState.HALF_OPEN

    def retry_after(self, now: float) -> float:
        """Return the seconds until it allows a call; 0 if it would allow one now."""
        until = max(self._open_until or now, now if self._trial is None else self._trial_until)
        return max(0.0, until - now)

    def allow(self, now: float) -> Permit | None:
        """Return a permit for a call now, or None if it is refused. When half-open, the permitted call is the trial."""
        if self.retry_after(now) > 0:
            self._refused += 1
            return None
        self._calls += 1
        permit = Permit(self._calls)
        if self._open_until is not None:
            self._trial, self._trial_until = permit, now + self.policy.timeout_seconds
        return permit

    def succeeded(self, permit: Permit, now: float) -> None:
        """Report that a call succeeded. An overdue trial counts as well; the next trial is then allowed."""
        self.abandoned(permit)
        if self._is_late(permit):
            return
        if self._open_until is None:
            self._failures = 0
            return
        self._successes += 1
        if self._successes >= self.policy.success_threshold and now >= self._opened_at + self.settle_seconds:
            self.force_closed()

    def failed(self, permit: Permit, now: float) -> None:
        """Report that a call failed. A failed trial opens the breaker again."""
        self._failed += 1
        if self._is_late(permit):
            return
        self._failures += 1
        if self._open_until is not None or self._failures >= self.policy.failure_threshold:
            self.force_open(now)

    def abandoned(self, permit: Permit) -> None:
        """Report that a call ended without a result (it was cancelled). After a trial, another trial is allowed."""
        if permit == self._trial:
            self._trial = None

    def _is_late(self, permit: Permit) -> bool:
        return permit <= self._last_before_opening

    def encouraged(self, now: float) -> None:
        """Allow a trial now if the breaker is open, since other evidence suggests that the resource works again."""
        if self._open_until is not None:
            self._open_until = min(self._open_until, now)

    def force_open(self, now: float) -> None:
        """Open the breaker for its timeout from now."""
        self._opened_at, self._open_until = now, now + self.policy.timeout_seconds
        self._trial, self._successes = None, 0
        self._last_before_opening = self._calls
        self._opened += 1

    def force_closed(self) -> None:
        """Close the breaker and reset the counts of consecutive failures and successes."""
        self._open_until = self._trial = None
        self._failures = self._successes = 0

    def is_healthy(self, now: float) -> bool:
        """Return whether the breaker is closed."""
        return self.state(now) is BreakerState.CLOSED

    def metrics(self) -> BreakerCounts:
        """Return the counts since the start."""
        return BreakerCounts(self._calls, self._failed, self._refused, self._opened)


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
        self._notify_change(now)
        return permit

    def record_success(self, permit: Permit) -> None:
        """Record that the call of this permit succeeded."""
        now = self._clock.monotonic()
        self._breaker.succeeded(permit, now)
        self._notify_change(now)

    def record_failure(self, permit: Permit, error: object = "") -> None:
        """Record that the call of this permit failed; `error` is shown as the reason."""
        self._error, self.sees_outage = str(error).partition("\n")[0], is_outage(error)
        now = self._clock.monotonic()
        self._breaker.failed(permit, now)
        self._notify_change(now)

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
        self._notify_change(now)

    def force_closed(self) -> None:
        """Close the breaker and reset its counts."""
        self._breaker.force_closed()
        self._notify_change(self._clock.monotonic())

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

    def _notify_change(self, now: float) -> None:
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
