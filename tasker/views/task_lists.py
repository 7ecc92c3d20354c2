"""Rows of lists: tasks, their transitions, refused messages, processes, pauses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Self

from tasker.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """Task in a list, with the counts of its steps.

    `unserved` is the handler of a waiting step that no worker has, `paused` the pause that keeps a step from starting,
    `waits_until` the time at which the task continues on its own, while all of it waits.
    """

    task_uuid: str
    namespace: str
    template: str
    version: str
    status: str
    priority: int
    total: int
    done: int
    failed: int
    created_at: datetime
    completed_at: datetime | None
    unserved: str | None
    paused: Mapping[str, Any] | None
    waits_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class HistoryItem:
    """Entry in the history of a task (`step` is None) or of one of its steps."""

    kind: str
    step: str | None
    from_state: str | None
    to_state: str
    at: datetime
    sort_key: int
    worker: str | None
    attempt: int | None


@dataclass(frozen=True, slots=True)
class TransitionDetail(HistoryItem):
    """Change of state, with all its recorded details."""

    metadata: Mapping[str, Any] | None
    execution_time_ms: int | None


@dataclass(frozen=True, slots=True)
class StepExtras:
    """Data of a step beside its result: its `batch` and its last checkpoint; None if there is none."""

    batch: Any
    checkpoint: Any
    checkpointed_at: datetime | None


@dataclass(frozen=True, slots=True)
class RefusedMessage:
    """Quarantined message that no process could use."""

    at: datetime
    queue: str
    reason: str
    message: Any


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """Worker or orchestrator: host, served namespaces and handlers, and state.

    `in_hand` is the number of its claims at its last heartbeat, `beat_age_ms` ago; `lease_left_ms` may be negative.
    """

    worker: str
    kind: str
    name: str | None
    host: str
    pid: int
    version: str
    state: str
    namespaces: Sequence[str]
    callables: Sequence[str]
    concurrency: int
    in_hand: int
    started_at: datetime
    beat_at: datetime
    lease_left_ms: int | None
    beat_age_ms: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Pause of a queue, a task, a namespace, or a template or step of it, with its actor, reason and start.

    `held` is the number of ready steps, or of messages of a queue, that wait for its end; None if the broker does not
    answer.
    """

    namespace: str | None
    template: str | None
    step: str | None
    task: str | None
    queue: str | None
    actor: str
    reason: str
    paused_at: str
    held: int | None


@dataclass(frozen=True, slots=True)
class PauseChange:
    """Entry in the log of pauses: the `action` (pause or resume), its target and its actor."""

    action: str
    target: str
    actor: str
    reason: str
    created_at: str


@dataclass(frozen=True, slots=True)
class PauseList:
    """Current pauses, the oldest first, and the log of pauses, the newest first."""

    pauses: Sequence[Pause]
    log: Sequence[PauseChange]

    @classmethod
    def parse(cls, answer: Mapping[str, Any]) -> Self:
        """Parse the answer of `tasker.paused_v1`."""
        return cls(
            tuple(Pause(**pause) for pause in answer["pauses"]),
            tuple(PauseChange(**change) for change in answer["log"]),
        )
