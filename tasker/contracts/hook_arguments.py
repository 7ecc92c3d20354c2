"""What the hooks of `tasker.hookspecs` are called with. All of it is frozen."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal, TypeAlias

from tasker.contracts.dataclasses import dataclass

End: TypeAlias = Literal["succeeded", "failed", "released", "deferred", "cancelled", "lost"]
"""`released`: given back without an attempt; `deferred`: its circuit breaker is open; `lost`: it is others' now."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""In place of a time: of a value that a test has made without one."""


@dataclass(frozen=True, slots=True)
class AttemptStarted:
    """One attempt of a step, claimed by this process. `token` tells attempts of one step apart, also those given back.

    `attempt` counts from 1; `worker` is the uuid text of the incarnation that has the claim. `started_at` is the time
    of this process's clock in UTC. `traceparent` and `tracestate` are the place in a trace that the task was submitted
    at, as the W3C Trace Context writes it; None without one.
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
    """What an attempt came to, before that is stored. `duration_ms` and what follows up to `ended_at` is None unless it
    succeeded or failed.

    `duration_ms` is the time of the handler in milliseconds, `ended_at` the time of this process's clock in UTC.
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
    """A step, or where `step_uuid` is None a task, that a write of this process brought to `to_state`.

    `token` is that of the claim that it is about, as in `AttemptStarted`; `worker` the incarnation that has or had it.
    Both are None where the write knew of none. The error is that of the failure that led there. `asked_at` and
    `answered_at` are when the write was asked for and answered, by this process's clock in UTC.
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
"""(what, how many) of each of which there were any."""


@dataclass(frozen=True, slots=True)
class TaskSubmitted:
    """A task that was created. `traceparent` and `tracestate` are as in `AttemptStarted`."""

    task_uuid: str
    correlation_id: str
    traceparent: str | None = None
    tracestate: str | None = None


@dataclass(frozen=True, slots=True)
class TasksSubmitted:
    """Tasks of one template that this process created in one transaction.

    `duration_ms` is the time of the submission in milliseconds, from before its template was looked up; `answered_at`
    its end, by this process's clock in UTC.
    """

    namespace: str
    template: str
    created: int
    duration_ms: float
    tasks: tuple[TaskSubmitted, ...] = ()
    answered_at: datetime = EPOCH


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """An attempt of this worker whose result a write has dealt with.

    `error_type` is None for a success; `accepted` is False where the step is others' now, so that the result counts for
    nothing. `duration_ms` is the time of the handler in milliseconds.
    """

    namespace: str
    error_type: str | None
    duration_ms: int
    accepted: bool


@dataclass(frozen=True, slots=True)
class WriteCommitted:
    """One answered write of the engine. `function` is its name (`submit`, `claim`, `advance`, `park`, ...).

    `duration_ms` is the time until its answer in milliseconds; `queued` are the steps that it put into queues, by
    namespace, `claimed` those that it claimed; `results` are the results of attempts that it accepted, by what they are
    (`success`, `error`, `timeout`, `worker_lost`), `own` how many of them this worker has run itself; `ended` are the
    tasks that it ended, by state, and `lasted` says of each of them its state and how many milliseconds there were from
    its creation, by the clock of who submitted it, to this answer, by that of this process. `unsent` are the steps
    whose messages a provider did not take behind the commit; sweeps send them.
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
    """A look at a queue by this process, which took `duration_ms` milliseconds with the taking of what was there.

    `found` is how many messages and steps there were; `announced` is False where nothing had announced any. `failed`:
    the database or the provider did not answer, or with an error.
    """

    found: int
    announced: bool
    failed: bool
    duration_ms: float


@dataclass(frozen=True, slots=True)
class EventPublished:
    """A domain event that was told here, or could not be made (`failed`: the step's result is stored all the same).

    `duration_ms` is the time of making it in milliseconds, that of a publisher of the author's own above all.
    """

    name: str
    namespace: str
    delivery_mode: str
    failed: bool
    duration_ms: float


@dataclass(frozen=True, slots=True)
class RequestAnswered:
    """A request that this server has begun to answer, `duration_ms` milliseconds after it came.

    `endpoint` is the path with names in place of values, empty where there is no such path; `problem` the published
    code of the error that it was answered with, None without one. `traceparent` and `tracestate` are those of the
    request's headers, where they are as the W3C Trace Context has them. `answered_at` is the time of this process's
    clock in UTC.
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
    """A plugin has heard all that happened so far, in so many `calls` since the last time; at least one."""

    calls: int


@dataclass(frozen=True, slots=True)
class TaskFinished:
    """A task that a write of this process brought to `state`: `complete`, `error` or `cancelled`."""

    task_uuid: str
    state: str


@dataclass(frozen=True, slots=True)
class TaskClosed:
    """A task that ended in `state` without a result that this process had run, and what an attempt of it would tell.

    `ended_at` is the time of the database's clock in UTC; `traceparent` and `tracestate` are as in `AttemptStarted`.
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
    """A circuit breaker that went from one state (`closed`, `open`, `half_open`) to another one."""

    name: str
    before: str
    after: str
    error: str
    """The failure that was seen last; empty when there was none."""


@dataclass(frozen=True, slots=True)
class ClaimsThrottled:
    """A reason for which this process takes on no more than `at_most` steps in all; `at_most` None: it is gone."""

    reason: str
    at_most: int | None


@dataclass(frozen=True, slots=True)
class SweepRepaired:
    """How many things one sweep has repaired: (kind, number) of each kind of which there were any."""

    counts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """A process that works. `identity` is its uuid text in the registry; an orchestrator has no namespaces."""

    kind: Literal["worker", "orchestrator"]
    identity: str
    namespaces: tuple[str, ...]
