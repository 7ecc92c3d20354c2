"""Arguments of the hooks in `tasker.plugins.hooks`. All classes are frozen."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal, TypeAlias

from tasker.dataclasses import dataclass

End: TypeAlias = Literal["succeeded", "failed", "released", "deferred", "cancelled", "lost"]
"""`released`: given back without an attempt; `deferred`: its circuit breaker is open; `lost`: another worker has it."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Placeholder time of values that tests create without one."""


@dataclass(frozen=True, slots=True)
class AttemptStarted:
    """Start of one attempt of a step that this process claimed.

    `token` distinguishes all attempts of a step, including released ones. `attempt` counts from 1; `worker` is the UUID
    of the incarnation that owns the claim, as text. `started_at` is in UTC by this process's clock. `traceparent` and
    `tracestate` are the W3C trace context that the task was submitted with; None without one.
    """

    task_uuid: str
    step_uuid: str
    namespace: str
    template: str
    step: str
    handler: str
    attempt: int
    max_attempts: int
    token: int
    worker: str
    correlation_id: str
    started_at: datetime = EPOCH
    traceparent: str | None = None
    tracestate: str | None = None


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """Outcome of an attempt, reported before it is stored.

    `duration_ms` is the handler's time in milliseconds. It and the error fields are None unless the attempt succeeded
    or failed. `ended_at` is in UTC by this process's clock.
    """

    attempt: AttemptStarted
    end: End
    duration_ms: int | None = None
    error_type: str | None = None
    error_message: str | None = None
    retryable: bool | None = None
    ended_at: datetime = EPOCH


@dataclass(frozen=True, slots=True)
class StateTransition:
    """Transition to `to_state`, written by this process, of a step, or of a task if `step_uuid` is None.

    `token` is that of the claim concerned, as in `AttemptStarted`; `worker` is the incarnation that has or had the
    claim. Both are None if the write knew of no claim. The error fields are those of the failure that caused the
    transition. `asked_at` and `answered_at` are the times of the write's request and answer in UTC by this process's
    clock.
    """

    task_uuid: str
    step_uuid: str | None
    to_state: str
    worker: str | None = None
    token: int | None = None
    error_type: str | None = None
    error_message: str | None = None
    asked_at: datetime = EPOCH
    answered_at: datetime = EPOCH


Counts: TypeAlias = tuple[tuple[str, int], ...]
"""Pairs of (name, count) for each name with a count above zero."""


@dataclass(frozen=True, slots=True)
class TaskSubmitted:
    """Created task. `traceparent` and `tracestate` are as in `AttemptStarted`."""

    task_uuid: str
    correlation_id: str
    traceparent: str | None = None
    tracestate: str | None = None


@dataclass(frozen=True, slots=True)
class TasksSubmitted:
    """Tasks of one template that this process created in one transaction.

    `duration_ms` is the duration of the submission in milliseconds, including the lookup of the template; `answered_at`
    is its end in UTC by this process's clock.
    """

    namespace: str
    template: str
    created: int
    duration_ms: float
    tasks: tuple[TaskSubmitted, ...] = ()
    answered_at: datetime = EPOCH


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """Attempt of this worker whose result was processed by a write.

    `error_type` is None for a success. `accepted` is False if another worker has the step, so that the result is
    discarded. `duration_ms` is the handler's time in milliseconds.
    """

    namespace: str
    error_type: str | None
    duration_ms: int
    accepted: bool


@dataclass(frozen=True, slots=True)
class WriteCommitted:
    """Committed write of the engine. `function` is its name (`submit`, `claim`, `advance`, `park`, ...).

    `duration_ms` is the time until its answer in milliseconds. `queued` counts the steps that it enqueued, by
    namespace; `claimed` is the number of steps that it claimed. `results` counts the accepted results of attempts by
    kind (`success`, `error`, `timeout`, `worker_lost`); `own` is the number of those that this worker ran. `ended`
    counts the tasks that it ended, by state; `lasted` has the state of each such task and the milliseconds from its
    creation, by the submitter's clock, to this answer, by this process's clock. `unsent` counts the steps whose
    messages a provider did not accept after the commit; sweeps send them.
    """

    function: str
    duration_ms: float
    queued: Counts = ()
    claimed: int = 0
    results: Counts = ()
    own: int = 0
    ended: Counts = ()
    lasted: tuple[tuple[str, float], ...] = ()
    unsent: int = 0


@dataclass(frozen=True, slots=True)
class QueuePolled:
    """Poll of a queue by this process. `duration_ms` includes taking the messages, in milliseconds.

    `found` is the number of messages and steps; `announced` is False if no notification preceded the poll. `failed` is
    True if the database or the provider did not answer or answered with an error.
    """

    found: int
    announced: bool
    failed: bool
    duration_ms: float


@dataclass(frozen=True, slots=True)
class EventPublished:
    """Domain event that this process published or failed to create (`failed`: the step's result is stored regardless).

    `duration_ms` is the time to create the event in milliseconds, mostly that of a custom publisher.
    """

    name: str
    namespace: str
    delivery_mode: str
    failed: bool
    duration_ms: float


@dataclass(frozen=True, slots=True)
class RequestAnswered:
    """Request that this server has begun to answer, `duration_ms` milliseconds after its arrival.

    `endpoint` is the path with parameter names in place of values, empty for an unknown path; `problem` is the
    published code of the error in the answer, or None. `traceparent` and `tracestate` are those of the request's
    headers if they are valid W3C trace context. `answered_at` is in UTC by this process's clock.
    """

    method: str
    endpoint: str
    status: int
    problem: str | None
    duration_ms: float
    answered_at: datetime = EPOCH
    traceparent: str | None = None
    tracestate: str | None = None


@dataclass(frozen=True, slots=True)
class BatchDelivered:
    """Delivery of all pending notifications to a plugin, in `calls` hook calls (at least one) since the last one."""

    calls: int


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """Task that a write of this process brought to `state`: `complete`, `error` or `cancelled`."""

    task_uuid: str
    state: str


@dataclass(frozen=True, slots=True)
class TaskClosed:
    """Task that ended in `state` without a result of this process, with the fields that an attempt of it would have.

    `ended_at` is in UTC by the database's clock; `traceparent` and `tracestate` are as in `AttemptStarted`.
    """

    task_uuid: str
    state: str
    namespace: str
    template: str
    correlation_id: str
    ended_at: datetime
    traceparent: str | None = None
    tracestate: str | None = None


@dataclass(frozen=True, slots=True)
class BreakerChanged:
    """State change of a circuit breaker (`closed`, `open`, `half_open`)."""

    name: str
    before: str
    after: str
    error: str
    """The latest failure; empty if there was none."""


@dataclass(frozen=True, slots=True)
class ClaimsThrottled:
    """Reason for which this process claims at most `at_most` steps in total; `at_most` None: the reason is gone."""

    reason: str
    at_most: int | None


@dataclass(frozen=True, slots=True)
class SweepRepaired:
    """Repairs of one sweep: (kind, number) for each kind that occurred."""

    counts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """Running process. `identity` is its UUID in the registry as text; an orchestrator has no namespaces."""

    kind: Literal["worker", "orchestrator"]
    identity: str
    namespaces: tuple[str, ...]
