"""A circuit breaker as a state machine: calls and times in, decisions out; it knows no clock.

Closed, it lets everything pass and counts failures in a row. Open, it refuses until its timeout has passed. Half-open,
it lets one call at a time pass as a trial: a failure opens it again, enough successes in a row close it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NewType

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.plan import BreakerPolicy

Permit = NewType("Permit", int)
"""The number of a call that was allowed, from 1. Its report gives it back, so that late ones are known as such."""


class BreakerState(StrEnum):
    """Where a breaker stands."""

    CLOSED = "closed"
    HALF_OPEN = "half_open"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class BreakerCounts:
    """What has become of the calls since the start."""

    calls: int = 0
    failures: int = 0
    refused: int = 0
    opened: int = 0


@dataclass(frozen=True, slots=True)
class BreakerReading:
    """How a breaker stands at one moment; `error` is the failure that it saw last, `note` what else is to say."""

    name: str
    state: BreakerState
    counts: BreakerCounts
    error: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class BreakerHealth:
    """What several breakers together say: `healthy`, `degraded` (one is half-open) or `unhealthy` (one is open)."""

    status: str
    message: str


def health(readings: Sequence[BreakerReading]) -> BreakerHealth:
    """The health of a process by its breakers: the worst of them counts, and the open ones say why."""
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
    """One breaker. `now` is always a monotonic time in seconds, which never goes back.

    Every call is asked for with `allow` and, if allowed, reported with its permit: by `succeeded` or `failed` - or by
    `abandoned` when it says nothing about what the breaker guards. A call that began before the last opening says
    nothing of the time after it: its report is counted and moves nothing. The breaker closes `settle_seconds` after it
    opened at the earliest, so that it does not flutter; opening and forcing are never put off.
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
        """Where it stands at that time: an open breaker becomes half-open by itself."""
        if self._open_until is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if now < self._open_until else BreakerState.HALF_OPEN

    def retry_after(self, now: float) -> float:
        """Seconds until it lets a call pass; 0 when it would now."""
        until = max(self._open_until or now, now if self._trial is None else self._trial_until)
        return max(0.0, until - now)

    def allow(self, now: float) -> Permit | None:
        """The permit of a call that may be made now, None for one that may not; half-open, that call is the trial."""
        if self.retry_after(now) > 0:
            self._refused += 1
            return None
        self._calls += 1
        permit = Permit(self._calls)
        if self._open_until is not None:
            self._trial, self._trial_until = permit, now + self.policy.timeout_seconds
        return permit

    def succeeded(self, permit: Permit, now: float) -> None:
        """A call succeeded. A trial that is overdue counts as well, and leaves the next one its place."""
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
        """A call failed. That of a trial opens the breaker again."""
        self._failed += 1
        if self._is_late(permit):
            return
        self._failures += 1
        if self._open_until is not None or self._failures >= self.policy.failure_threshold:
            self.force_open(now)

    def abandoned(self, permit: Permit) -> None:
        """A call ended without saying anything (it was cancelled): if it was the trial, the next one may be."""
        if permit == self._trial:
            self._trial = None

    def _is_late(self, permit: Permit) -> bool:
        return permit <= self._last_before_opening

    def encouraged(self, now: float) -> None:
        """Something else shows that it may work again: an open breaker lets a trial pass now."""
        if self._open_until is not None:
            self._open_until = min(self._open_until, now)

    def force_open(self, now: float) -> None:
        """Open it, for its timeout from now."""
        self._opened_at, self._open_until = now, now + self.policy.timeout_seconds
        self._trial, self._successes = None, 0
        self._last_before_opening = self._calls
        self._opened += 1

    def force_closed(self) -> None:
        """Close it, with nothing counted."""
        self._open_until = self._trial = None
        self._failures = self._successes = 0

    def is_healthy(self, now: float) -> bool:
        """True while it is closed."""
        return self.state(now) is BreakerState.CLOSED

    def metrics(self) -> BreakerCounts:
        """Counts since the start."""
        return BreakerCounts(self._calls, self._failed, self._refused, self._opened)
