"""Values exchanged by the worker's runtime and the engine: claimed steps, outcomes, verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.events.publishing import KEPT_EVENTS, HandlerEvent
from tasker.contracts.json_text import JsonText
from tasker.contracts.tracing import TraceContext, TraceOf


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
    trace_of: TraceOf | None = field(default=None, compare=False, repr=False)
    """Plugin callback for the trace context of the handler; called only when the context is needed."""

    @property
    def key(self) -> str:
        """Return the key of the template's step, as workers report the steps that they do not serve."""
        return f"{self.template}:{self.ordinal}"

    @property
    def checkpoint_data(self) -> dict[str, Any] | None:
        """Return the checkpoint as the handler sees it, without stored events, or None if there is no checkpoint."""
        return {name: value for name, value in (self.checkpoint or {}).items() if name != KEPT_EVENTS} or None

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
