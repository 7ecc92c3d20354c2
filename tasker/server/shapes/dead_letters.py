"""Schemas of dead letters, in the published names and words."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from tasker.server.shapes.texts import Moment, storable_text

Reason = Literal[
    "StalenessTimeout",
    "MaxRetriesExceeded",
    "PermanentFailure",
    "DependencyCycleDetected",
    "WorkerUnavailable",
    "ManualDlq",
]
Status = Literal["Pending", "ManuallyResolved", "PermanentlyFailed", "Cancelled"]


class DlqEntry(BaseModel):
    """Dead letter: a task that needed an operator, with the time, the reason, its state then and the investigation."""

    dlq_entry_uuid: str
    task_uuid: str
    original_state: str
    dlq_reason: Reason
    dlq_timestamp: datetime
    resolution_status: Status
    resolution_timestamp: datetime | None = None
    resolved_at: datetime | None = None
    resolution_notes: str | None = None
    resolved_by: str | None = None
    task_snapshot: Any
    metadata: Any = None
    fingerprints: list[str]
    current_state: str | None = None
    created_at: datetime
    updated_at: datetime


class DlqStats(BaseModel):
    """Counts of the entries with one reason."""

    dlq_reason: Reason
    total_entries: int
    pending: int
    manually_resolved: int
    permanent_failures: int
    cancelled: int
    oldest_entry: datetime | None = None
    newest_entry: datetime | None = None
    avg_resolution_time_minutes: float | None = None


class DlqInvestigationQueueEntry(BaseModel):
    """Pending entry with its urgency."""

    dlq_entry_uuid: str
    task_uuid: str
    dlq_reason: Reason
    original_state: str
    current_state: str | None = None
    namespace_name: str | None = None
    task_name: str | None = None
    dlq_timestamp: datetime
    minutes_in_dlq: float
    priority_score: float
    time_in_state_minutes: int | None = None
    fingerprints: list[str]


class StalenessMonitoring(BaseModel):
    """Open task and its distance to the staleness limit."""

    task_uuid: str
    namespace_name: str | None = None
    task_name: str | None = None
    current_state: str
    time_in_state_minutes: int
    staleness_threshold_minutes: int
    health_status: Literal["healthy", "warning", "stale"]
    priority: int
    task_age_minutes: int
    excuse: str | None = None


class OpenInvestigationRequest(BaseModel):
    """Task to investigate and the reason."""

    model_config = ConfigDict(extra="forbid")

    task_uuid: str = Field(max_length=64)
    reason: str = Field("manual_dlq", max_length=64)
    notes: Annotated[str, Field(max_length=100_000), AfterValidator(storable_text)] | None = None
    actor: Annotated[str, Field(max_length=255), AfterValidator(storable_text)] | None = None
    metadata: dict[str, Any] | None = None


class UpdateInvestigationRequest(BaseModel):
    """Result of an investigation; omitted fields stay unchanged."""

    model_config = ConfigDict(extra="forbid")

    resolution_status: str | None = Field(None, description="`ManuallyResolved` or `manually_resolved`, and so on.")
    resolution_notes: Annotated[str, Field(max_length=100_000), AfterValidator(storable_text)] | None = None
    resolved_by: Annotated[str, Field(max_length=255), AfterValidator(storable_text)] | None = None
    metadata: dict[str, Any] | None = None


class UpdateInvestigationResponse(BaseModel):
    """Confirmation that the update is stored."""

    success: bool
    message: str
    dlq_entry_uuid: str


class BeginReplayRequest(BaseModel):
    """Selection of pending entries to replay and the rate; omitted filters match everything. `all` selects every
    entry."""

    model_config = ConfigDict(extra="forbid")

    fingerprint: str | None = Field(None, max_length=64, description="Only the steps that failed so run again.")
    namespace: str | None = Field(None, max_length=255)
    template: str | None = Field(None, max_length=255)
    reason: str | None = Field(None, max_length=64)
    since: Moment | None = None
    all: bool = False
    limit: int = Field(100_000, ge=1, le=100_000)
    rate_per_second: float = Field(10.0, ge=0.001, le=1000.0, description="Tasks per second.")
    note: Annotated[str, Field(max_length=100_000), AfterValidator(storable_text)] = ""
    actor: Annotated[str, Field(max_length=255), AfterValidator(storable_text)] | None = None
    dry_run: bool = False


class SteerReplayRequest(BaseModel):
    """Requested state of a replay."""

    model_config = ConfigDict(extra="forbid")

    state: Literal["running", "paused", "cancelled"]
