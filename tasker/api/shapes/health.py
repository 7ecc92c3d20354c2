"""How a process says how it does."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel


class HealthResponse(BaseModel):
    """Whether the process and what it needs answer."""

    status: str
    timestamp: datetime
    database: str | None = None
    message_queue: str | None = None


class HealthCheck(BaseModel):
    """One thing that was looked at."""

    status: str
    message: str | None = None
    duration_ms: int


class ReadinessChecks(BaseModel):
    """What must answer before requests are sent here."""

    web_database: HealthCheck
    orchestration_database: HealthCheck
    circuit_breaker: HealthCheck
    orchestration_system: HealthCheck
    command_processor: HealthCheck


class DetailedHealthChecks(ReadinessChecks):
    """Everything that is looked at."""

    pool_utilization: HealthCheck
    queue_depth: HealthCheck
    channel_saturation: HealthCheck
    messaging: HealthCheck


class PoolDetail(BaseModel):
    """A pool of connections, since the start of the process. Who found one free has waited for 0 ms."""

    active_connections: int
    idle_connections: int
    max_connections: int
    utilization_percent: float
    total_acquires: int
    slow_acquires: int
    acquire_errors: int
    average_acquire_time_ms: float = 0.0
    max_acquire_time_ms: float = 0.0


class PoolUtilizationInfo(BaseModel):
    """Both are the one pool of this process."""

    tasker_pool: PoolDetail
    pgmq_pool: PoolDetail


class HealthInfo(BaseModel):
    """What the process is."""

    version: str
    environment: str
    operational_state: str
    web_database_pool_size: int
    orchestration_database_pool_size: int
    circuit_breaker_state: str
    pool_utilization: PoolUtilizationInfo | None = None


class ReadinessResponse(BaseModel):
    """Whether requests may be sent here."""

    status: str
    timestamp: datetime
    checks: ReadinessChecks
    info: HealthInfo


class DetailedHealthResponse(BaseModel):
    """How the process does, in detail."""

    status: str
    timestamp: datetime
    checks: DetailedHealthChecks
    info: HealthInfo
    circuit_breakers: dict[str, str]
