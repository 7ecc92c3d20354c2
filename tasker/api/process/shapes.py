"""What the port of a process answers, in the published shapes of a worker."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel


class HealthCheck(BaseModel):
    """One part of the process."""

    status: str
    message: str | None = None
    duration_ms: int
    last_checked: datetime


class BasicHealthResponse(BaseModel):
    """Whether the process does well."""

    status: str
    timestamp: datetime
    worker_id: str


class ReadinessChecks(BaseModel):
    """What must hold before it can work."""

    database: HealthCheck
    command_processor: HealthCheck
    queue_processing: HealthCheck


class DetailedChecks(ReadinessChecks):
    """Everything that is looked at."""

    event_system: HealthCheck
    step_processing: HealthCheck
    circuit_breakers: HealthCheck


class SystemInfo(BaseModel):
    """What process this is."""

    version: str
    environment: str
    uptime_seconds: int
    worker_type: str
    database_pool_size: int
    command_processor_active: bool
    supported_namespaces: list[str]


class ReadinessResponse(BasicHealthResponse):
    """Whether it works."""

    checks: ReadinessChecks
    system_info: SystemInfo


class DetailedHealthResponse(BasicHealthResponse):
    """Everything that it knows of how it does."""

    checks: DetailedChecks
    system_info: SystemInfo


class TemplateListResponse(BaseModel):
    """What it serves."""

    supported_namespaces: list[str]
    template_count: int
    worker_capabilities: list[str]
    templates: list[str]


class HandlerMetadata(BaseModel):
    """What a template's first step is run by."""

    namespace: str
    name: str
    version: str
    handler_class: str
    registered_at: datetime


class TemplateResponse(BaseModel):
    """A template that was found at the start of the process."""

    template: dict[str, Any]
    handler_metadata: HandlerMetadata
    cached: bool


class TemplateValidationResponse(BaseModel):
    """Whether every step of it has a handler here."""

    valid: bool
    errors: list[str]
    required_capabilities: list[str]
    step_handlers: list[str]


class HandlersResponse(BaseModel):
    """The handlers that are loaded."""

    worker_id: str
    handlers: list[str]


class ConfigResponse(BaseModel):
    """What the process was configured with, without secrets."""

    metadata: dict[str, Any]
    worker_id: str
    worker_type: str
    auth: dict[str, Any]
    messaging: dict[str, Any]
