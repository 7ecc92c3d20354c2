"""Steps of a simulated task, and the outcomes of their attempts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from tasker.dataclasses import dataclass
from tasker.engine.states.step import StepState
from tasker.handlers.claims import Failure, Suspension
from tasker.template.plan import StepPlan

_S = StepState
DONE = frozenset({_S.COMPLETE, _S.RESOLVED_MANUALLY})
MOST_SNOOZES = 100
"""Times that a mocked handler may ask to be called again."""


@dataclass(frozen=True, slots=True)
class Again:
    """A handler asks to be called again after `delay_ms`, at most `limit` times."""

    delay_ms: int
    limit: int = MOST_SNOOZES
    state: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A handler waits for an event, which comes after `after_ms`; None: it does not come in time."""

    suspension: Suspension
    after_ms: int | None
    event: Mapping[str, Any] | None = None

    @property
    def ends_ms(self) -> int | None:
        """Time until the wait ends; None: never."""
        return self.suspension.timeout_ms if self.after_ms is None else self.after_ms


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """Outcome of an attempt: a result, a failure or a request to be called again, after `takes_ms`."""

    value: Any
    """The result as stored, a `Failure`, an `Again`, or a `Waiting`."""
    takes_ms: int = 0


@dataclass(frozen=True, slots=True)
class SimulatedFailure:
    """Failure of one attempt. `retry_in_ms` is None for the last one."""

    attempt: int
    failure: Failure
    retry_in_ms: int | None
    final: str | None


@dataclass(slots=True)
class SimulatedStep:
    """Step of a simulated task. Times are milliseconds since the start of the task."""

    name: str
    plan: StepPlan = field(repr=False)
    parents: tuple[str, ...]
    batch: Mapping[str, Any] | None = None
    """Inputs of the instance of a batch_worker: its part of the work."""
    state: StepState = _S.PENDING
    attempts: int = 0
    result: Any = None
    failures: list[SimulatedFailure] = field(default_factory=list)
    path: list[StepState] = field(default_factory=lambda: [_S.PENDING])
    ready_ms: int | None = None
    started_ms: int | None = None
    """Start of the first attempt."""
    ended_ms: int | None = None
    busy_ms: int = 0
    """Total time of its attempts."""
    first_attempt: int = field(default=0, repr=False)
    """Number of the first attempt among those of the task."""
    unmet: int = field(default=0, repr=False)
    calls: int = field(default=0, repr=False)
    snoozes: int = field(default=0, repr=False)
    again: dict[str, Any] = field(default_factory=dict, repr=False)
    """State and event that the next call of its handler reads."""
    events: int = field(default=0, repr=False)
    """Mocked events that its handler has got."""
    children: list[SimulatedStep] = field(default_factory=list, repr=False)
    settled: str | None = None
    """Letter of a step without which the task went on (`tasker.template.failure_words`)."""
    number: int = field(default=0, repr=False)
    """Changes with each attempt, so that what was scheduled for an earlier one is recognized."""

    def snooze(self, again: Again) -> None:
        """Record that the handler asks to be called again, which is no attempt."""
        self.again |= {} if again.state is None else {"state": again.state}
        self.snoozes += 1
        self.attempts -= 1

    def suspend(self, waiting: Waiting) -> None:
        """Record that the handler waits for an event."""
        state = waiting.suspension.state
        self.again |= {"event": None, "timed_out": False} | ({} if state is None else {"state": state})

    def resume(self, waiting: Waiting) -> None:
        """Record the end of the handler's wait: its next call belongs to the same attempt."""
        self.again |= {"timed_out": True} if waiting.event is None else {"event": waiting.event}
        self.events += waiting.event is not None
        self.attempts -= 1

    @property
    def is_satisfied(self) -> bool:
        """True if the steps that depend on it do not wait for it any more."""
        return self.settled is not None or self.state in DONE

    @property
    def error_type(self) -> str | None:
        """Type of the last failure."""
        return self.failures[-1].failure.error_type if self.failures else None

    @property
    def error_code(self) -> str | None:
        """Code of the last failure."""
        return self.failures[-1].failure.error_code if self.failures else None
