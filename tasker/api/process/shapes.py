"""Schemas of the port of a process, in the published form of a worker."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel


class WorkerHealthCheck(BaseModel):
    """Status of one part of the process."""

    status: str
    message: str | None = None
    duration_ms: int
    last_checked: datetime


class BasicHealthResponse(BaseModel):
    """Status of the process."""

    status: str
    timestamp: datetime
    worker_id: str


class WorkerReadinessChecks(BaseModel):
    """Checks that must pass before the process can work."""

    database: WorkerHealthCheck
    command_processor: WorkerHealthCheck
    queue_processing: WorkerHealthCheck


class DetailedChecks(WorkerReadinessChecks):
    """All checks."""

    event_system: WorkerHealthCheck
    step_processing: WorkerHealthCheck
    circuit_breakers: WorkerHealthCheck


class SystemInfo(BaseModel):
    """Version, environment and configuration of the process."""

    version: str
    environment: str
    uptime_seconds: int
    worker_type: str
    database_pool_size: int
    command_processor_active: bool
    supported_namespaces: list[str]
    pool_utilization: None = None
    """Always null: a process has a few dedicated connections and no pool."""


class WorkerReadinessResponse(BasicHealthResponse):
    """Readiness of the process for work."""

    checks: WorkerReadinessChecks
    system_info: SystemInfo


class WorkerDetailedHealthResponse(BasicHealthResponse):
    """Health of the process in detail."""

    checks: DetailedChecks
    system_info: SystemInfo
    distributed_cache: None = None
    """Always null: there is no distributed cache."""


class PlanCacheStatus(BaseModel):
    """Statistics of the template cache."""

    total_cached: int
    cache_hits: int
    cache_misses: int
    cache_evictions: int
    oldest_entry_age_seconds: int
    average_access_count: float
    supported_namespaces: list[str]


class EventRouterStats(BaseModel):
    """Domain events by delivery mode.

    `fast_delivery_errors` counts events that subscribers failed to process, `routing_errors` events that could not be
    stored.
    """

    total_routed: int
    durable_routed: int
    fast_routed: int
    broadcast_routed: int
    fast_delivery_errors: int
    routing_errors: int


class InProcessEventBusStats(BaseModel):
    """Domain events delivered to subscribers of the same process."""

    total_events_dispatched: int
    rust_handler_dispatches: int
    """Always 0: every subscriber is written in Python."""
    ffi_channel_dispatches: int


class DomainEventStats(BaseModel):
    """Delivery counts of the domain events of a process since its start."""

    router: EventRouterStats
    in_process_bus: InProcessEventBusStats
    captured_at: datetime
    worker_id: str


class ServedTemplatesResponse(BaseModel):
    """Namespaces, templates and handlers that the process serves."""

    supported_namespaces: list[str]
    template_count: int
    worker_capabilities: list[str]
    templates: list[str]
    cache_stats: PlanCacheStatus | None = None


class HandlerMetadata(BaseModel):
    """Handler of the first step of a template."""

    namespace: str
    name: str
    version: str
    handler_class: str
    registered_at: datetime
    config_schema: None = None
    default_dependent_system: None = None


class TemplateResponse(BaseModel):
    """Template found at the start of the process."""

    template: dict[str, Any]
    handler_metadata: HandlerMetadata
    cached: bool
    access_count: int | None = None
    cache_age_seconds: int | None = None


class ServedTemplateValidation(BaseModel):
    """Result of checking that this process has a handler for every step."""

    valid: bool
    errors: list[str]
    required_capabilities: list[str]
    step_handlers: list[str]


class HandlersResponse(BaseModel):
    """Loaded handlers."""

    worker_id: str
    handlers: list[str]


class ConfigMetadata(BaseModel):
    """Version and environment of the process, and the time of the answer."""

    version: str
    environment: str
    timestamp: datetime


class SafeAuthConfig(BaseModel):
    """Authentication of callers."""

    enabled: bool
    verification_method: str
    jwt_issuer: str
    jwt_audience: str
    api_key_header: str
    api_key_count: int
    strict_validation: bool
    allowed_algorithms: list[str]


class SafeMessagingConfig(BaseModel):
    """Messaging backend."""

    backend: str
    queues: list[str]


class WorkerConfigResponse(BaseModel):
    """Configuration of the process, without secrets."""

    metadata: ConfigMetadata
    worker_id: str
    worker_type: str
    auth: SafeAuthConfig
    messaging: SafeMessagingConfig
