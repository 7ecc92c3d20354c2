"""Rows of lists: tasks, their transitions, refused messages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

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
