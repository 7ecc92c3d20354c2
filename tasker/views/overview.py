"""Views of the fleet as a whole: its overview, and its recent activity by namespace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from tasker.dataclasses import dataclass
from tasker.views.progress import ReportedProgress


@dataclass(frozen=True, slots=True)
class NamespaceActivity:
    """Activity of a namespace: tasks per slice, oldest first, its open tasks, and dead letters that need an operator.

    A task is `running` while one of its steps is enqueued or claimed by a worker, else `waiting`.
    """

    namespace: str
    submitted: Sequence[int]
    ended: Sequence[int]
    failed: Sequence[int]
    running: int
    waiting: int
    dead_letters: int


@dataclass(frozen=True, slots=True)
class Unserved:
    """Handler that workers lack although they received its steps; `steps` wait for it, the first `since` then."""

    callable: str
    namespace: str
    steps: int
    since: datetime


@dataclass(frozen=True, slots=True)
class Activity:
    """The last `seconds` in equal `slices`, with those `namespaces` first in which something happens.

    Waits are from the queue to a worker; None: no step has waited.
    `retries_due`: steps that run again within the next hour, counted to 10,000.
    """

    at: datetime
    seconds: float
    slices: int
    namespaces: Sequence[NamespaceActivity]
    steps_ended: int
    wait_p50_ms: float | None
    wait_p95_ms: float | None
    retries_due: int
    unserved: Sequence[Unserved]
    waits_p50_ms: Sequence[float | None] = ()
    waits_p95_ms: Sequence[float | None] = ()
    """Of each slice, from the oldest on."""
    submitted: Sequence[int] = ()
    ended: Sequence[int] = ()
    failed: Sequence[int] = ()
    """Tasks of all namespaces in each slice."""

    @property
    def steps_per_second(self) -> float:
        """Average rate of successfully ended steps, for tasks of this period."""
        return self.steps_ended / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Queue:
    """Ready steps of a namespace: `enqueued`, `held` because the queue is full, and `paused`.

    `taken` is the total number of steps that left the queue; `processes` is the number of live workers that serve it.
    """

    namespace: str
    enqueued: int
    held: int
    paused: int
    taken: int
    processes: int


@dataclass(frozen=True, slots=True)
class Process:
    """Worker or orchestrator: `live`, `draining` or `lost`.

    `in_hand` of its `slots` were in use at its last heartbeat.
    """

    worker: str
    name: str
    kind: str
    host: str
    pid: int
    state: str
    namespaces: Sequence[str]
    slots: int
    in_hand: int
    asleep: bool
    beat_age_ms: int


@dataclass(frozen=True, slots=True)
class OpenBreaker:
    """Circuit breaker that defers `steps` steps, the last of them `until` that time."""

    breaker: str
    steps: int
    until: datetime


@dataclass(frozen=True, slots=True)
class TemplatePace:
    """Tasks of a template in the window. Durations are milliseconds from submission to end; None if none has ended."""

    namespace: str
    template: str
    tasks: int
    running: int
    failed: int
    mean_ms: int | None
    p95_ms: int | None


@dataclass(frozen=True, slots=True)
class RunningStep(ReportedProgress):
    """Step whose handler reports progress."""

    task: str
    step: str
    template: str


@dataclass(frozen=True, slots=True)
class Overview:
    """State of the fleet at the moment `at`. `submitted` and `failed_attempts` are counts of the last minute.

    Of `open` tasks, and of pending `dead_letters`, at most 100,000 are counted. There are so many
    `namespaces`, of which `unworked` have waiting steps and no live worker; `unworked_queues` are the five fullest of
    these.
    """

    at: datetime
    queues: Sequence[Queue]
    processes: Sequence[Process]
    breakers: Sequence[OpenBreaker]
    templates: Sequence[TemplatePace]
    running: Sequence[RunningStep]
    pauses: int
    open: int
    dead_letters: int
    submitted: int
    failed_attempts: int
    namespaces: int = 0
    unworked: int = 0
    unworked_queues: Sequence[Queue] = ()

    def taken_per_second(self, before: Overview | None) -> dict[str, float]:
        """Return the rate of steps that left the queue since `before`, by namespace; empty if `before` is None."""
        seconds = (self.at - before.at).total_seconds() if before else 0.0
        if before is None or seconds <= 0:
            return {}
        earlier = {queue.namespace: queue.taken for queue in before.queues}
        return {
            queue.namespace: max(0, queue.taken - earlier.get(queue.namespace, queue.taken)) / seconds
            for queue in self.queues
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the overview as a mapping of plain values (`tasker top --format json`)."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Backlog:
    """Ready steps of one priority outside of the queue: `held` because it is full, `paused` by a pause."""

    namespace: str
    priority: int
    held: int
    paused: int


@dataclass(frozen=True, slots=True)
class InFlightStep:
    """Step that a process runs."""

    task: str
    step: str
    template: str
    attempt: int
    started_at: datetime | None
    deadline_at: datetime | None
