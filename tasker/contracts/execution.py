"""What passes between the worker's runtime and the engine: claimed steps, outcomes, verdicts."""

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
    """The right of one worker to run one attempt of a step. `token` and worker fence everything written about it.

    `template` is its plan's identifier, `ordinal` its place in the plan.
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
    """The incarnation that has the claim; what it could not store before it was fenced, its successor brings."""
    isolated: bool = False
    """True when the step has lost its worker twice: it runs in a child process, where it can."""
    trace: TraceContext | None = None
    """The place in a trace that its task was submitted at."""
    trace_of: TraceOf | None = field(default=None, compare=False, repr=False)
    """What says where its handler is, where a plugin does; asked only when somebody wants to know."""

    @property
    def key(self) -> str:
        """The step of the template, as callers name those that they do not serve."""
        return f"{self.template}:{self.ordinal}"

    @property
    def checkpoint_data(self) -> dict[str, Any] | None:
        """The checkpoint as its handler sees it: without the events that are kept with it. None: there is none."""
        return {name: value for name, value in (self.checkpoint or {}).items() if name != KEPT_EVENTS} or None

    @property
    def propagated_trace(self) -> TraceContext | None:
        """The place in a trace that its handler carries on: where its task was submitted, or what a plugin says."""
        if self.trace_of is None:
            return self.trace
        return self.trace_of(self.task_uuid, self.step_uuid, self.token, self.trace)


@dataclass(frozen=True, slots=True)
class Success:
    """What a handler returned, as it is stored: checked, and encoded once, for all uses.

    The value itself is not kept: the handler's author may hold it, too, and change it.
    """

    encoded: JsonText
    metadata: Mapping[str, Any] = field(default_factory=dict)
    events: Sequence[HandlerEvent] = ()
    """What the handler published itself."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed. `retry_after` is seconds asked for by the failure itself."""

    message: str
    error_type: str
    retryable: bool
    error_code: str | None = None
    retry_after: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    handler: str | None = None
    events: Sequence[HandlerEvent] = ()
    """What the handler published itself, where it came back."""


class Verdict(StrEnum):
    """The engine's answer to one change or hint (design: each is answered on its own)."""

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
    """The step is paused, and waits until it is resumed."""

    @property
    def is_retryable(self) -> bool:
        """The same change may be accepted another time: somebody kept the task, or its graph had changed."""
        return self in (Verdict.BUSY, Verdict.REPLAN)

    @property
    def is_refusal(self) -> bool:
        """It will never be accepted, and what it says does not count."""
        return self in (Verdict.STALE, Verdict.CANCELLED, Verdict.NOT_STORABLE)
