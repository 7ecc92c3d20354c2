"""Domain events as a subscriber in the same process receives them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from pydantic import Field

from tasker.types.model import Model


class DomainEventMetadata(Model):
    """Origin of an event; `fired_at` is ISO 8601 in UTC."""

    task_uuid: UUID
    step_uuid: UUID | None = None
    step_name: str | None = None
    namespace: str | None = None
    correlation_id: UUID
    fired_at: str
    fired_by: str


class ExecutionResult(Model):
    """Execution that an event reports."""

    success: bool
    result: dict[str, Any] | None = None
    error_message: str | None = None
    error_type: str | None = None
    execution_time_ms: int | None = None


class InProcessDomainEvent(Model):
    """Event delivered inside the process (modes `fast` and `broadcast`)."""

    event_id: UUID
    event_name: str
    event_version: str
    metadata: DomainEventMetadata
    payload: dict[str, Any] = Field(default_factory=dict)
    execution_result: ExecutionResult | None = None
