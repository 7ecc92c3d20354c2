"""Views of dead letters, their statistics and groups, and replays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, get_args

from tasker.dataclasses import dataclass
from tasker.views.model import CAMEL_CASE, published

Reason = Annotated[
    Literal[
        "staleness_timeout",
        "max_retries_exceeded",
        "permanent_failure",
        "dependency_cycle_detected",
        "worker_unavailable",
        "manual_dlq",
        "compensation_failed",
    ],
    CAMEL_CASE,
]
Status = Annotated[Literal["pending", "manually_resolved", "permanently_failed", "cancelled"], CAMEL_CASE]
REASONS: Sequence[str] = get_args(get_args(Reason)[0])
"""Reasons for which a task becomes a dead letter."""
STATUSES: Sequence[str] = get_args(get_args(Status)[0])
"""States of an investigation."""


@published("DlqEntry", derived={"resolution_timestamp": "resolved_at"})
@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Dead letter: when and why its task needed an operator, the task's state then, and the result of the
    investigation.

    `fingerprints` are those of its steps' final failures; `current_state` is the state of the task now, if it still
    exists.
    """

    dlq_entry_uuid: str
    task_uuid: str
    original_state: str
    dlq_reason: Reason
    dlq_timestamp: datetime
    task_snapshot: Mapping[str, Any] | None
    fingerprints: Sequence[str]
    resolution_status: Status
    resolution_notes: str | None
    resolved_at: datetime | None
    resolved_by: str | None
    metadata: Mapping[str, Any] | None
    created_at: datetime
    updated_at: datetime
    current_state: str | None


@published("DlqStats")
@dataclass(frozen=True, slots=True)
class ReasonStats:
    """Number of entries of a reason, and their resolution times."""

    dlq_reason: Reason
    total_entries: int
    pending: int
    manually_resolved: int
    permanent_failures: int
    cancelled: int
    oldest_entry: datetime | None
    newest_entry: datetime | None
    avg_resolution_time_minutes: float | None


@published("DlqInvestigationQueueEntry")
@dataclass(frozen=True, slots=True)
class QueuedInvestigation:
    """Pending entry with its urgency."""

    dlq_entry_uuid: str
    task_uuid: str
    dlq_reason: Reason
    original_state: str
    current_state: str | None
    namespace_name: str | None
    task_name: str | None
    dlq_timestamp: datetime
    minutes_in_dlq: float
    priority_score: float
    time_in_state_minutes: int | None
    fingerprints: Sequence[str]


@published("StalenessMonitoring")
@dataclass(frozen=True, slots=True)
class TaskHealth:
    """Open task, and how close it is to its staleness limit; `excuse` is the reason why its clock is stopped."""

    task_uuid: str
    namespace_name: str
    task_name: str
    current_state: str
    time_in_state_minutes: int
    staleness_threshold_minutes: int
    health_status: Literal["healthy", "warning", "stale"]
    priority: int
    task_age_minutes: int
    excuse: str | None


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Pending entries with the same failure, with the newest of these failures."""

    fingerprint: str
    entries: int
    oldest: datetime
    newest: datetime
    namespaces: Sequence[str]
    error_type: str | None
    message: str | None
    step: str | None


@published("UpdateInvestigationResponse")
@dataclass(frozen=True, slots=True)
class InvestigationUpdated:
    """Confirmation that the update is stored."""

    success: bool
    message: str
    dlq_entry_uuid: str


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """Effect of a replay: the numbers of tasks and steps.

    `once` counts lost steps that are not reset because they may run only once. `replay_uuid` is None if there is
    nothing to do, or for a dry run.
    """

    replay_uuid: str | None
    tasks: int
    steps: int
    once: int
    templates: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Replay:
    """Progress of a replay: `replayed` and `skipped` of `total` tasks.

    `state` is `running`, `paused`, `complete` or `cancelled`.
    """

    replay_uuid: str
    state: str
    fingerprint: str | None
    filter: Mapping[str, Any]
    rate_per_second: float
    actor: str
    reason: str
    total: int
    replayed: int
    skipped: int
    created_at: datetime
    finished_at: datetime | None
