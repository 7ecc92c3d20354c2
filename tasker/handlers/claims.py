"""Values of one attempt: the claim that it gets, the success or failure that it ends with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import field
from enum import StrEnum
from typing import Any, Protocol, Self

from tasker.dataclasses import dataclass
from tasker.json_values import JsonText
from tasker.logging.trace_context import TraceContext, TraceOf

AGAIN_KEY = "again"
"""Key of a checkpoint under which the state of a handler that is called again is stored, and its event."""
KEPT_EVENTS = "events"
"""Key of a checkpoint under which the events published before it are stored."""
MOST_EVENTS = 100
"""Maximum number of events that a handler may publish with one result."""
MOST_BYTES = 1024 * 1024
"""Maximum total size of their payloads as JSON, in bytes."""


@dataclass(frozen=True, slots=True)
class HandlerEvent:
    """Event published by a handler itself, in addition to the events that its template declares."""

    name: str
    payload: JsonText | None
    condition: str = "success"
    """Outcome of the attempt with which the event is published."""
    delivery_mode: str = "durable"
    withheld: str | None = None
    """Reason why the event is not published; it then has no payload."""
    carried: bool = False
    """True if the event was published before a checkpoint of its step."""

    def to_json(self) -> dict[str, Any]:
        """Return the form stored in a checkpoint and sent from a child process to its parent."""
        return {
            "name": self.name,
            "payload": self.payload and self.payload.text,
            "condition": self.condition,
            "delivery_mode": self.delivery_mode,
            "withheld": self.withheld,
            "carried": self.carried,
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any], **changed: Any) -> Self:
        """Restore an event from `to_json`; `changed` replaces fields."""
        text = fields["payload"]
        return cls(**{**fields, "payload": None if text is None else JsonText(text), **changed})


class HandlerEvents(Protocol):
    """Receiver of the events that one handler call publishes; thread-safe."""

    def publish(self, name: str, payload: Mapping[str, Any], condition: str, delivery_mode: str) -> bool:
        """Accept an event. Return False, and never raise, if it will not be published."""
        ...


publishing: ContextVar[HandlerEvents | None] = ContextVar("tasker_publishing", default=None)
"""Receiver of the step whose handler runs in this context."""


@dataclass(frozen=True, slots=True)
class RetryTimes:
    """Times, in milliseconds, that may exclude a further attempt: None where there is no limit to compare with."""

    left_ms: int | None = None
    """Time until the deadline of the task."""
    ran_ms: int | None = None
    """Time since the first attempt began; known for steps with `max_elapsed`."""


NO_LIMITS = RetryTimes()


@dataclass(frozen=True, slots=True)
class StepFailure:
    """Failure after which a task went on."""

    step: str
    error_type: str
    message: str
    error_code: str | None = None
    attempt: int | None = None
    """Number of its last attempt; None for a skipped step."""

    @classmethod
    def parse(cls, step: str, error: Mapping[str, Any]) -> StepFailure:
        """Parse an error of `tasker.failures_of`."""
        kind, message = error.get("error_type") or "error", error.get("message") or ""
        return cls(step, kind, message, error.get("error_code"), error.get("attempt"))


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """End of a task without its steps of `finally`."""

    state: str
    """`complete`, `error` or `cancelled`: the state in which the task ends unless a step of `finally` fails."""
    outcome: str | None = None
    """`partial` if the task went on without some of its steps; None otherwise."""
    failures: tuple[StepFailure, ...] = ()
    """Failures of its steps, and steps that were skipped because of one."""
    reason: str | None = None
    """Reason of a cancel."""

    @classmethod
    def parse(cls, outcome: Mapping[str, Any], failures: Mapping[str, Mapping[str, Any]]) -> TaskOutcome:
        """Parse the answer of `tasker.outcome_at_rest`, and the errors of `tasker.failures_of`."""
        failed = tuple(StepFailure.parse(step, error) for step, error in sorted(failures.items()))
        return cls(outcome["state"], outcome.get("outcome"), failed, outcome.get("reason"))


@dataclass(frozen=True, slots=True)
class Claim:
    """Right of one worker to run one attempt of a step. `token` and `worker` fence every write about the attempt.

    `template` is the identifier of the step's plan, `ordinal` the step's position in the plan.
    """

    step_uuid: str
    task_uuid: str
    name: str
    template: int
    ordinal: int
    namespace: str
    token: int
    attempt: int
    """Number of this execution, from 1."""
    max_attempts: int
    correlation_id: str
    inputs: Mapping[str, Any] | None = field(default=None, repr=False)
    checkpoint: Mapping[str, Any] | None = field(default=None, repr=False)
    worker: str = ""
    """Incarnation that owns the claim. If it is fenced before it stored results, its successor reports them."""
    isolated: bool = False
    """True if the step has lost its worker twice: it then runs in a child process where possible."""
    trace: TraceContext | None = None
    """Trace context that the task was submitted with."""
    ends_at: float | None = None
    """Deadline of the task by the monotonic clock of this machine; None without one."""
    began_at: float | None = None
    """Start of the first attempt by that clock; known for steps with `max_elapsed`."""
    failures: Mapping[str, Mapping[str, Any]] | None = field(default=None, repr=False)
    """Errors of the steps that the task goes on without, by name; None: each failure ends the task."""
    outcome: Mapping[str, Any] | None = field(default=None, repr=False)
    """Outcome of the task without the steps of `finally`; None while others run."""
    trace_of: TraceOf | None = field(default=None, compare=False, repr=False)
    """Plugin callback for the trace context of the handler; called only when the context is needed."""

    @property
    def key(self) -> str:
        """Return the key of the template's step, as workers report the steps that they do not serve."""
        return f"{self.template}:{self.ordinal}"

    def seconds_left(self, now: float) -> float | None:
        """Return the seconds until the deadline of the task, negative after it, or None without a deadline.

        `now` is the time of the monotonic clock.
        """
        return None if self.ends_at is None else self.ends_at - now

    def times(self, now: float) -> RetryTimes:
        """Return the times that decide whether a further attempt is possible."""
        if self.ends_at is None and self.began_at is None:
            return NO_LIMITS
        left = self.seconds_left(now)
        ran = None if self.began_at is None else round((now - self.began_at) * 1000)
        return RetryTimes(None if left is None else round(left * 1000), ran)

    @property
    def checkpoint_data(self) -> dict[str, Any] | None:
        """Return the checkpoint as the handler sees it, or None: without stored events, and state of later calls."""
        hidden = (KEPT_EVENTS, AGAIN_KEY)
        return {name: value for name, value in (self.checkpoint or {}).items() if name not in hidden} or None

    @property
    def propagated_trace(self) -> TraceContext | None:
        """Return the trace context for the handler: that of the submission, or the one that a plugin returns."""
        if self.trace_of is None:
            return self.trace
        return self.trace_of(self.task_uuid, self.step_uuid, self.token, self.trace)


@dataclass(frozen=True, slots=True)
class Success:
    """Return value of a handler in its stored form: checked, and encoded once.

    The value itself is not retained, since the handler may still reference and change it.
    """

    encoded: JsonText
    metadata: Mapping[str, Any] = field(default_factory=dict)
    events: Sequence[HandlerEvent] = ()
    """Events that the handler published itself."""
    memoized: Mapping[str, Any] | None = None
    """Task and time of the attempt that computed the result; None: this one did."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Reason why an attempt failed. `retry_after` is the delay in seconds that the failure itself requests."""

    message: str
    error_type: str
    retryable: bool
    error_code: str | None = None
    retry_after: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    handler: str | None = None
    events: Sequence[HandlerEvent] = ()
    """Events that the handler published itself, if they were received."""
    names: tuple[str, ...] = ()
    """Class of the exception and its base classes, each with and without its module."""
    http_status: int | None = None
    sqlstate: str | None = None
    why: str | None = None
    """Rule that made it permanent or retryable; None: the handler said so."""


class Verdict(StrEnum):
    """Answer of the engine to one change or message; each gets its own answer."""

    ACCEPTED = "accepted"
    ALREADY_ACCEPTED = "already_accepted"
    STALE = "stale"
    CANCELLED = "cancelled"
    BUSY = "busy"
    REPLAN = "replan"
    NOT_STORABLE = "not_storable"
    UNKNOWN = "unknown"
    """This database has never had the step."""
    SETTLED = "settled"
    """The task has gone on without the step."""
    UNDONE = "undone"
    """The task is or was compensated: only its compensations may be changed."""
    HELD = "held"
    """The step is paused until it is resumed."""

    @property
    def is_retryable(self) -> bool:
        """Return whether the same change may be accepted later: the task was locked or its graph had changed."""
        return self in (Verdict.BUSY, Verdict.REPLAN)

    @property
    def is_refusal(self) -> bool:
        """Return whether the change will never be accepted and is discarded."""
        return self in (Verdict.STALE, Verdict.CANCELLED, Verdict.NOT_STORABLE)


@dataclass(frozen=True, slots=True)
class Suspension:
    """Request of a handler to be called again with an event. Everything in it is storable JSON."""

    event: str
    key: str
    timeout_ms: int | None
    on_timeout: str
    state: Mapping[str, Any] | None = None
    """What the next call reads as `context.state`; None keeps what is stored."""
    schema: Mapping[str, Any] | None = None
    """JSON Schema of the payload."""
    events: Sequence[HandlerEvent] = ()
    """Events that the handler published before: they are not kept, because it is called again from the top."""
