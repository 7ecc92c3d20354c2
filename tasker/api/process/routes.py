"""How a worker or an orchestrator does, and what it serves, under the published paths of a worker."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from fastapi import Request
from starlette.responses import PlainTextResponse, Response

from tasker.api.json_response import Json
from tasker.api.permissions import needs, require_namespace
from tasker.api.problems import answer, problem
from tasker.api.process import shapes
from tasker.api.process.metrics import CATALOGUE, samples
from tasker.api.process.observed import Observed
from tasker.api.routes.route import router
from tasker.api.shapes.problems import refusals
from tasker.contracts.plan import Plan
from tasker.contracts.rules.permissions import Permission
from tasker.errors import TemplateNotFound
from tasker.lifecycle.deployment import Health, HealthStatus
from tasker.services.server.exposition import CONTENT_TYPE, exposition, families
from tasker.version import __version__

routes = router("process")
configuration_routes = router("configuration")
CHECKED = {
    "database": "events",
    "command_processor": "services",
    "queue_processing": "events",
    "event_system": "events",
    "step_processing": "steps",
    "circuit_breakers": "breakers",
}
"""The published checks, and the part of the process that each is about. Whether the database answers shows in how it
learns of work: nothing here asks the database."""
NEEDED = ("database", "command_processor", "queue_processing")
TEMPLATES = needs(Permission.WORKER_TEMPLATES_READ)


def observed(request: Request) -> Observed:
    """The process that answers."""
    found: Observed = request.app.state.observed
    return found


@routes.get("/health", response_model=shapes.BasicHealthResponse)
async def health(request: Request) -> Json:
    """The worst of its parts: `healthy`, `degraded` or `unhealthy`."""
    return Json(_basic(observed(request), str(observed(request).process.health().status).lower()))


@routes.get("/health/live", response_model=shapes.BasicHealthResponse)
@routes.get("/live", response_model=shapes.BasicHealthResponse, include_in_schema=False)
async def live(request: Request) -> Json:
    """The process answers. A database that is away is no reason to start it again."""
    return Json(_basic(observed(request), "alive"))


@routes.get("/health/ready", response_model=shapes.ReadinessResponse, responses={503: {"description": "not ready"}})
@routes.get("/ready", response_model=shapes.ReadinessResponse, include_in_schema=False)
async def ready(request: Request) -> Response:
    """Whether it works: 503 while it starts, stops, or cannot learn of work."""
    process, checks = observed(request), _checks(observed(request), NEEDED)
    ill = [name for name, check in checks.items() if check["status"] in ("unhealthy", "critical")]
    if ill or not process.running:
        message = f"not ready: {', '.join(ill)}" if ill else "not ready: it starts or stops"
        return answer(problem(503, message, kind="not_ready", code="SERVICE_UNAVAILABLE", checks=checks), request.scope)
    return Json({**_basic(process, "ready"), "checks": checks, "system_info": _info(request)})


@routes.get("/health/detailed", response_model=shapes.DetailedHealthResponse)
async def detailed(request: Request) -> Json:
    """Every part, and why it does not do better."""
    process = observed(request)
    told = _basic(process, str(process.process.health().status).lower())
    return Json({**told, "checks": _checks(process, CHECKED), "system_info": _info(request)})


@routes.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> PlainTextResponse:
    """How this process does, in the text format of Prometheus."""
    found = [*samples(observed(request)), *request.app.state.access.samples()]
    text = exposition(CATALOGUE, found) + families(request.app.state.metrics)
    return PlainTextResponse(text, media_type=CONTENT_TYPE)


@routes.get("/v1/templates", response_model=shapes.TemplateListResponse, responses=refusals(), **TEMPLATES)
@routes.get("/templates", response_model=shapes.TemplateListResponse, include_in_schema=False, **TEMPLATES)
async def templates(request: Request, namespace: str | None = None, include_cache_stats: bool = False) -> Json:
    """The namespaces that it serves, the templates that it found at its start, and its handlers. Nothing is cached."""
    process = observed(request)
    plans = [plan for plan in process.plans if namespace in (None, plan.namespace)]
    return Json(
        {
            "supported_namespaces": list(process.namespaces()),
            "template_count": len(plans),
            "worker_capabilities": list(process.handlers()),
            "templates": [str(plan.id) for plan in plans],
        }
    )


@routes.get(
    "/v1/templates/{namespace}/{name}/{version}",
    response_model=shapes.TemplateResponse,
    responses=refusals(404),
    **TEMPLATES,
)
async def template(request: Request, namespace: str, name: str, version: str) -> Json:
    """A template that it found at its start, as it was compiled."""
    plan = _plan(request, namespace, name, version)
    metadata = {
        "namespace": namespace,
        "name": name,
        "version": version,
        "handler_class": plan.steps[0].handler.callable,
        "registered_at": observed(request).started_at,
    }
    return Json({"template": json.loads(plan.to_json()), "handler_metadata": metadata, "cached": True})


@routes.post(
    "/v1/templates/{namespace}/{name}/{version}/validate",
    response_model=shapes.TemplateValidationResponse,
    responses=refusals(404),
    **TEMPLATES,
)
async def validate(request: Request, namespace: str, name: str, version: str) -> Json:
    """Whether each of its steps has a handler in this process."""
    plan = _plan(request, namespace, name, version)
    handlers = sorted({step.handler.callable for step in plan.steps})
    errors = [f"no handler {callable}" for callable in observed(request).missing(plan)]
    return Json({"valid": not errors, "errors": errors, "required_capabilities": handlers, "step_handlers": handlers})


@routes.get(
    "/handlers",
    response_model=shapes.HandlersResponse,
    responses=refusals(),
    **needs(Permission.SYSTEM_HANDLERS_READ),
)
async def handlers(request: Request) -> Json:
    """The handlers that are loaded."""
    process = observed(request)
    return Json({"worker_id": process.identity(), "handlers": list(process.handlers())})


@configuration_routes.get(
    "/config", response_model=shapes.ConfigResponse, responses=refusals(), **needs(Permission.WORKER_CONFIG_READ)
)
async def config(request: Request) -> Json:
    """What it was configured with. Never a secret."""
    process, state = observed(request), request.app.state
    metadata = {"version": __version__, "environment": state.environment, "timestamp": datetime.now(UTC)}
    told = {"metadata": metadata, "worker_id": process.identity(), "worker_type": process.kind}
    return Json({**told, **state.configuration})


def _plan(request: Request, namespace: str, name: str, version: str) -> Plan:
    require_namespace(request, namespace)
    for plan in observed(request).plans:
        if (plan.namespace, plan.name, plan.version) == (namespace, name, version):
            return plan
    raise TemplateNotFound(f"this process found no template {namespace}/{name}:{version}", hint="see /v1/templates")


def _basic(process: Observed, status: str) -> dict[str, Any]:
    return {"status": status, "timestamp": datetime.now(UTC), "worker_id": process.identity()}


def _checks(process: Observed, names: Collection[str]) -> dict[str, dict[str, Any]]:
    areas, now = process.areas(), datetime.now(UTC)
    return {name: _check(areas[CHECKED[name]], now) for name in names}


def _check(health: Health, now: datetime) -> dict[str, Any]:
    status = "healthy" if health.status is HealthStatus.HEALTHY else str(health.status).lower()
    return {"status": status, "message": health.reason or None, "duration_ms": 0, "last_checked": now}


def _info(request: Request) -> dict[str, Any]:
    process = observed(request)
    return {
        "version": __version__,
        "environment": request.app.state.environment,
        "uptime_seconds": max(0, round((datetime.now(UTC) - process.started_at).total_seconds())),
        "worker_type": process.kind,
        "database_pool_size": request.app.state.connections,
        "command_processor_active": process.running,
        "supported_namespaces": list(process.namespaces()),
    }
