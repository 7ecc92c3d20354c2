"""Rows of lists: tasks, their transitions, refused messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from tasker.dataclasses import dataclass
from tasker.views.model import published


@published("PaginationInfo", omitted=("page", "total_count", "total_is_minimum", "total_pages", "has_previous"))
@dataclass(frozen=True, slots=True)
class Pagination:
    """Position of a page. Pages count from 0; requests with a `cursor` return no counts.

    `total_is_minimum`: there may be more than `total_count`.
    """

    per_page: int
    has_next: bool
    page: int | None = None
    total_count: int | None = None
    total_is_minimum: bool | None = None
    total_pages: int | None = None
    has_previous: bool | None = None
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """Task in a list, with the counts of its steps.

    `unserved` is the handler of a waiting step that no worker has, `paused` the pause that keeps a step from starting,
    `waits_until` the time at which the task continues on its own, while all of it waits, `waiting_for` what its steps
    wait for without a worker: `time` or `event`.
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
    waiting_for: Sequence[str] = ()
    outcome: str | None = None
    """`partial`: the task is complete without some of its steps; or how far its compensation is."""


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


@published("HistoryEntry")
@dataclass(frozen=True, slots=True)
class TransitionDetail(HistoryItem):
    """State change of a task (`kind` is `task`) or one of its steps, with its author and reason."""

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
