"""Public models of a worker: its start, state, health and settings."""

from __future__ import annotations

from enum import Enum
from typing import Any
from uuid import UUID

from pydantic import ConfigDict, Field

from tasker.handlers.results import Model
from tasker.settings.queues import HandlerDispatch


class WorkerState(str, Enum):  # noqa: UP042 (its text is published as `WorkerState.RUNNING`)
    """States of a worker."""

    STARTING = "starting"
    RUNNING = "running"
    SHUTTING_DOWN = "shutting_down"
    STOPPED = "stopped"
    ERROR = "error"


class BootstrapConfig(Model):
    """Options of a worker's start, unknown ones are refused; all other settings come from the TOML configuration."""

    model_config = ConfigDict(extra="forbid")

    worker_id: str | None = None
    namespace: str = "default"
    config_path: str | None = None
    log_level: str = Field(default="info", pattern="^(trace|debug|info|warn|error)$")


class BootstrapResult(Model):
    """Result of a worker's start."""

    success: bool
    handle_id: str
    worker_id: str
    status: str
    message: str | None = None
    error_message: str | None = None


class WorkerStatus(Model):
    """Current status of the worker; `running` is False if none was started."""

    running: bool
    environment: str | None = None
    worker_core_status: str | None = None
    web_api_enabled: bool | None = None
    supported_namespaces: list[str] | None = None
    database_pool_size: int | None = None
    database_pool_idle: int | None = None
    error: str | None = None


class FfiDispatchMetrics(Model):
    """Steps that wait for a free slot: their number and ages in milliseconds."""

    pending_count: int
    oldest_pending_age_ms: int | None = None
    newest_pending_age_ms: int | None = None
    oldest_event_id: str | None = None
    starvation_detected: bool = False
    starving_event_count: int = 0


class StarvationWarning(Model):
    """Step that has waited for a free slot longer than the threshold (milliseconds)."""

    event_id: UUID
    step_uuid: UUID
    pending_duration_ms: int
    threshold_ms: int


class ComponentHealth(Model):
    """Health of one part of the worker."""

    name: str
    status: str
    pool_size: int | None = None
    pool_idle: int | None = None


class HealthCheck(Model):
    """Health of the worker; `rust` exists for compatibility and stays empty."""

    status: str
    is_running: bool
    components: dict[str, ComponentHealth] = Field(default_factory=dict)
    rust: dict[str, Any] = Field(default_factory=dict)
    python: dict[str, Any] = Field(default_factory=dict)


class WorkerMetrics(Model):
    """Counters and pending work of the worker; ages in milliseconds."""

    dispatch_channel_pending: int = 0
    oldest_pending_age_ms: int | None = None
    newest_pending_age_ms: int | None = None
    starvation_detected: bool = False
    starving_event_count: int = 0
    database_pool_size: int = 0
    database_pool_idle: int = 0
    environment: str | None = None
    steps_processed: int = 0
    steps_succeeded: int = 0
    steps_failed: int = 0
    steps_in_progress: int = 0


class WorkerConfig(Model):
    """Settings that a worker runs with; durations in milliseconds."""

    environment: str | None = None
    supported_namespaces: list[str] = Field(default_factory=list)
    web_api_enabled: bool = False
    database_pool_size: int = 0
    polling_interval_ms: int = 10
    starvation_threshold_ms: int = 1000
    max_concurrent_handlers: int = 10
    handler_timeout_ms: int = HandlerDispatch.handler_timeout_ms
