"""Rows of dead letters, their statistics and groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from tasker.dataclasses import dataclass

REASONS = (
    "staleness_timeout",
    "max_retries_exceeded",
    "permanent_failure",
    "dependency_cycle_detected",
    "worker_unavailable",
    "manual_dlq",
)
"""Reasons for which a task becomes a dead letter."""
STATUSES = ("pending", "manually_resolved", "permanently_failed", "cancelled")
"""States of an investigation."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Dead letter: when and why its task needed an operator, the task's state then, and the result of the
    investigation.

    `fingerprints` are those of its steps' final failures; `current_state` is the task's state now, None if the task was
    deleted.
    """

    dlq_entry_uuid: str
    task_uuid: str
    original_state: str
    dlq_reason: str
    dlq_timestamp: datetime
    task_snapshot: Mapping[str, Any] | None
    fingerprints: Sequence[str]
    resolution_status: str
    resolution_notes: str | None
    resolved_at: datetime | None
    resolved_by: str | None
    metadata: Mapping[str, Any] | None
    created_at: datetime
    updated_at: datetime
    current_state: str | None


@dataclass(frozen=True, slots=True)
class ReasonStats:
    """Number of entries of a reason, and their resolution times."""

    dlq_reason: str
    total_entries: int
    pending: int
    manually_resolved: int
    permanent_failures: int
    cancelled: int
    oldest_entry: datetime | None
    newest_entry: datetime | None
    avg_resolution_time_minutes: float | None


@dataclass(frozen=True, slots=True)
class QueuedInvestigation:
    """Pending entry with its urgency."""

    dlq_entry_uuid: str
    task_uuid: str
    dlq_reason: str
    original_state: str
    current_state: str | None
    namespace_name: str | None
    task_name: str | None
    dlq_timestamp: datetime
    minutes_in_dlq: float
    priority_score: float
    time_in_state_minutes: int | None
    fingerprints: Sequence[str]


@dataclass(frozen=True, slots=True)
class TaskHealth:
    """Open task, and how close it is to its staleness limit; `excuse` is the reason why its clock is stopped."""

    task_uuid: str
    namespace_name: str
    task_name: str
    current_state: str
    time_in_state_minutes: int
    staleness_threshold_minutes: int
    health_status: str
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
