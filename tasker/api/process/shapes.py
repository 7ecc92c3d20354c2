"""What the port of a process answers, in the published shapes of a worker."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel


class WorkerHealthCheck(BaseModel):
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


class WorkerReadinessChecks(BaseModel):
    """What must hold before it can work."""

    database: WorkerHealthCheck
    command_processor: WorkerHealthCheck
    queue_processing: WorkerHealthCheck


class DetailedChecks(WorkerReadinessChecks):
    """Everything that is looked at."""

    event_system: WorkerHealthCheck
    step_processing: WorkerHealthCheck
    circuit_breakers: WorkerHealthCheck


class SystemInfo(BaseModel):
    """What process this is."""

    version: str
    environment: str
    uptime_seconds: int
    worker_type: str
    database_pool_size: int
    command_processor_active: bool
    supported_namespaces: list[str]
    pool_utilization: None = None
    """A process has a fixed few connections, and no pool of them."""


class WorkerReadinessResponse(BasicHealthResponse):
    """Whether it works."""

    checks: WorkerReadinessChecks
    system_info: SystemInfo


class WorkerDetailedHealthResponse(BasicHealthResponse):
    """Everything that it knows of how it does."""

    checks: DetailedChecks
    system_info: SystemInfo
    distributed_cache: None = None
    """There is none."""


class PlanCacheStatus(BaseModel):
    """How the templates in its memory fare."""

    total_cached: int
    cache_hits: int
    cache_misses: int
    cache_evictions: int
    oldest_entry_age_seconds: int
    average_access_count: float
    supported_namespaces: list[str]


class EventRouterStats(BaseModel):
    """Domain events by the way they went. Errors of fast delivery are those of subscribers, the other ones those of
    events of which nothing could be kept."""

    total_routed: int
    durable_routed: int
    fast_routed: int
    broadcast_routed: int
    fast_delivery_errors: int
    routing_errors: int


class InProcessEventBusStats(BaseModel):
    """What went to subscribers of the same process."""

    total_events_dispatched: int
    rust_handler_dispatches: int
    """None: every subscriber is Python."""
    ffi_channel_dispatches: int


class DomainEventStats(BaseModel):
    """Where the domain events of a process went since its start."""

    router: EventRouterStats
    in_process_bus: InProcessEventBusStats
    captured_at: datetime
    worker_id: str


class ServedTemplatesResponse(BaseModel):
    """What it serves."""

    supported_namespaces: list[str]
    template_count: int
    worker_capabilities: list[str]
    templates: list[str]
    cache_stats: PlanCacheStatus | None = None


class HandlerMetadata(BaseModel):
    """What a template's first step is run by."""

    namespace: str
    name: str
    version: str
    handler_class: str
    registered_at: datetime
    config_schema: None = None
    default_dependent_system: None = None


class TemplateResponse(BaseModel):
    """A template that was found at the start of the process."""

    template: dict[str, Any]
    handler_metadata: HandlerMetadata
    cached: bool
    access_count: int | None = None
    cache_age_seconds: int | None = None


class ServedTemplateValidation(BaseModel):
    """Whether every step of it has a handler here."""

    valid: bool
    errors: list[str]
    required_capabilities: list[str]
    step_handlers: list[str]


class HandlersResponse(BaseModel):
    """The handlers that are loaded."""

    worker_id: str
    handlers: list[str]


class ConfigMetadata(BaseModel):
    """Which process said it, and when."""

    version: str
    environment: str
    timestamp: datetime


class SafeAuthConfig(BaseModel):
    """How callers are known."""

    enabled: bool
    verification_method: str
    jwt_issuer: str
    jwt_audience: str
    api_key_header: str
    api_key_count: int
    strict_validation: bool
    allowed_algorithms: list[str]


class SafeMessagingConfig(BaseModel):
    """The messaging backend."""

    backend: str
    queues: list[str]


class WorkerConfigResponse(BaseModel):
    """What the process was configured with, without secrets."""

    metadata: ConfigMetadata
    worker_id: str
    worker_type: str
    auth: SafeAuthConfig
    messaging: SafeMessagingConfig
