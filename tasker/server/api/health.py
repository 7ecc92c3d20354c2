"""Routes of health, readiness and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from fastapi import Request
from starlette.responses import PlainTextResponse, Response

from tasker.server.errors import answer, problem
from tasker.server.program import program_of
from tasker.server.rendering import Json
from tasker.server.routes import router
from tasker.server.shapes.health import DetailedHealthResponse, HealthResponse, ReadinessResponse
from tasker.services.fleet.health import DEGRADED, HEALTHY, UNHEALTHY, Check, ServerHealth
from tasker.services.fleet.metric_catalogue import CONTENT_TYPE, families
from tasker.version import __version__

routes = router("health")
READY = ("web_database", "orchestration_database", "circuit_breaker", "orchestration_system", "command_processor")
NEEDED = ("web_database", "circuit_breaker")
"""Checks without which no request can be answered. Without workers, tasks are still accepted and wait."""


@routes.get("/health", response_model=HealthResponse)
async def health(request: Request) -> Json:
    """Return whether the database and messaging are reachable."""
    checks = await program_of(request).health.checks()
    database, messaging = (checks[name].status != UNHEALTHY for name in ("database", "messaging"))
    return Json(
        {
            "status": HEALTHY if database and messaging else UNHEALTHY,
            "timestamp": datetime.now(UTC),
            "database": "connected" if database else "disconnected",
            "message_queue": "operational" if messaging else "unavailable",
        }
    )


@routes.get("/live", response_model=HealthResponse, response_model_exclude_none=True)
@routes.get("/health/live", response_model=HealthResponse, include_in_schema=False)
async def live() -> Json:
    """Confirm that the process is alive. It checks nothing else: an unreachable database is no reason to restart it."""
    return Json({"status": "alive", "timestamp": datetime.now(UTC)})


@routes.get("/ready", response_model=ReadinessResponse, responses={503: {"description": "not ready"}})
@routes.get("/health/ready", response_model=ReadinessResponse, include_in_schema=False)
async def ready(request: Request) -> Response:
    """Return whether the server accepts requests: 503 while the database is unreachable."""
    checks = published(await program_of(request).health.checks())
    if ill := [name for name in NEEDED if checks[name]["status"] == UNHEALTHY]:
        ready_checks = {name: checks[name] for name in READY}
        message = f"not ready: {', '.join(ill)}"
        return answer(
            problem(503, message, kind="not_ready", code="SERVICE_UNAVAILABLE", checks=ready_checks), request.scope
        )
    return Json({**_standing(request, checks), "status": "ready", "checks": {name: checks[name] for name in READY}})


@routes.get("/health/detailed", response_model=DetailedHealthResponse)
async def detailed(request: Request) -> Json:
    """Return the complete health of the process."""
    program = program_of(request)
    checks = published(await program.health.checks())
    states = {check["status"] for check in checks.values()}
    status = next((state for state in (UNHEALTHY, DEGRADED) if state in states), HEALTHY)
    breakers = {reading.name: str(reading.state) for reading in program.breakers.readings()}
    return Json({**_standing(request, checks), "status": status, "checks": checks, "circuit_breakers": breakers})


def published(checks: Mapping[str, Check]) -> dict[str, dict[str, Any]]:
    """Return the checks under their published names.

    There is one database for both database checks, and the server itself is the command processor.
    """
    database, pool = asdict(checks["database"]), asdict(checks["pool"])
    return {
        "web_database": database,
        "orchestration_database": database,
        "circuit_breaker": asdict(checks["breaker"]),
        "orchestration_system": asdict(checks["fleet"]),
        "command_processor": {"status": HEALTHY, "message": "requests are answered by this process", "duration_ms": 0},
        "pool_utilization": pool,
        "channel_saturation": pool,
        "queue_depth": asdict(checks["queues"]),
        "messaging": asdict(checks["messaging"]),
    }


def _standing(request: Request, checks: Mapping[str, Any]) -> dict[str, Any]:
    health = program_of(request).health
    pool = _pool(health)
    ill = checks["web_database"]["status"] == UNHEALTHY
    return {
        "timestamp": datetime.now(UTC),
        "info": {
            "version": __version__,
            "environment": request.app.state.options.environment,
            "operational_state": "degraded" if ill else "normal",
            "web_database_pool_size": health.pool["max"],
            "orchestration_database_pool_size": health.pool["max"],
            "circuit_breaker_state": health.breaker_state,
            "pool_utilization": {"tasker_pool": pool, "pgmq_pool": pool},
        },
    }


def _pool(health: ServerHealth) -> dict[str, Any]:
    pool = health.pool
    counts, waited_ms = health.waits.counted()
    return {
        "active_connections": pool["lent"],
        "idle_connections": pool["made"] - pool["lent"],
        "max_connections": pool["max"],
        "utilization_percent": round(100 * pool["lent"] / pool["max"], 1),
        "total_acquires": pool["acquires"],
        "slow_acquires": pool["slow_acquires"],
        "acquire_errors": pool["exhausted"],
        "average_acquire_time_ms": round(waited_ms / max(1, sum(counts)), 3),
        "max_acquire_time_ms": round(health.longest_wait_ms, 3),
    }


@routes.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> PlainTextResponse:
    """Return the metrics of the fleet and this process in the Prometheus text format."""
    program = program_of(request)
    text = await program.metrics.text(program.breakers.readings()) + families(request.app.state.options.metrics)
    return PlainTextResponse(text, media_type=CONTENT_TYPE)
