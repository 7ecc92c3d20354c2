"""Schemas of the health of a server."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel


class HealthResponse(BaseModel):
    """Reachability of the database and the messaging provider."""

    status: str
    timestamp: datetime
    database: str | None = None
    message_queue: str | None = None


class HealthCheck(BaseModel):
    """Result of one check."""

    status: str
    message: str | None = None
    duration_ms: int


class ReadinessChecks(BaseModel):
    """Checks that must pass before the server gets requests."""

    web_database: HealthCheck
    orchestration_database: HealthCheck
    circuit_breaker: HealthCheck
    orchestration_system: HealthCheck
    command_processor: HealthCheck


class DetailedHealthChecks(ReadinessChecks):
    """All checks."""

    pool_utilization: HealthCheck
    queue_depth: HealthCheck
    channel_saturation: HealthCheck
    messaging: HealthCheck


class PoolDetail(BaseModel):
    """Connection pool figures since the start of the process; getting a free connection at once counts as 0 ms."""

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
    """Utilization of the one pool of this process, given under both published names."""

    tasker_pool: PoolDetail
    pgmq_pool: PoolDetail


class HealthInfo(BaseModel):
    """Version, environment and configuration of the process."""

    version: str
    environment: str
    operational_state: str
    web_database_pool_size: int
    orchestration_database_pool_size: int
    circuit_breaker_state: str
    pool_utilization: PoolUtilizationInfo | None = None


class ReadinessResponse(BaseModel):
    """Readiness of the server for requests."""

    status: str
    timestamp: datetime
    checks: ReadinessChecks
    info: HealthInfo


class DetailedHealthResponse(BaseModel):
    """Health of the process in detail."""

    status: str
    timestamp: datetime
    checks: DetailedHealthChecks
    info: HealthInfo
    circuit_breakers: dict[str, str]
