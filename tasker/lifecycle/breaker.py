"""Circuit breaker as a state machine that gets calls and times as arguments and reads no clock.

When closed, it allows all calls and counts consecutive failures. When open, it refuses calls until its timeout has
passed. When half-open, it allows one call at a time as a trial: a failure opens it again, enough consecutive successes
close it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NewType

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.plan import BreakerPolicy

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
