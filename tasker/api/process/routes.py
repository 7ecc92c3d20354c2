"""Routes for the health of a worker or an orchestrator and for what it serves, under the published paths of a
worker."""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import Request
from starlette.responses import PlainTextResponse, Response

from tasker.api.json_response import Json
from tasker.api.permissions import needs, require_namespace
from tasker.api.problems import answer, problem
from tasker.api.process import shapes
from tasker.api.process.telling import ProcessStatus
from tasker.api.routes.route import router
from tasker.api.shapes.problems import refusals
from tasker.contracts.rules.permissions import Permission
from tasker.services.server.exposition import CONTENT_TYPE
from tasker.version import __version__

routes = router("process")
configuration_routes = router("configuration")
TEMPLATES = needs(Permission.WORKER_TEMPLATES_READ)


def telling(request: Request) -> ProcessStatus:
    """Return the status service of this process."""
    found: ProcessStatus = request.app.state.telling
    return found


@routes.get("/health", response_model=shapes.BasicHealthResponse)
async def health(request: Request) -> Json:
    """Return the worst status of the process's parts: `healthy`, `degraded` or `unhealthy`."""
    return Json(telling(request).basic())


@routes.get("/health/live", response_model=shapes.BasicHealthResponse)
@routes.get("/live", response_model=shapes.BasicHealthResponse, include_in_schema=False)
async def live(request: Request) -> Json:
    """Confirm that the process is alive. An unreachable database is no reason to restart it."""
    return Json(telling(request).basic("alive"))


@routes.get(
    "/health/ready", response_model=shapes.WorkerReadinessResponse, responses={503: {"description": "not ready"}}
)
@routes.get("/ready", response_model=shapes.WorkerReadinessResponse, include_in_schema=False)
async def ready(request: Request) -> Response:
    """Return whether the process is ready: 503 while it starts, stops, or cannot learn of work."""
    told, reason = telling(request).ready()
    if reason:
        kind, code = "not_ready", "SERVICE_UNAVAILABLE"
        return answer(problem(503, reason, kind=kind, code=code, checks=told["checks"]), request.scope)
    return Json(told)


@routes.get("/health/detailed", response_model=shapes.WorkerDetailedHealthResponse)
async def detailed(request: Request) -> Json:
    """Return the status of every part, with the reason if it is not healthy."""
    return Json(telling(request).detailed())


@routes.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> PlainTextResponse:
    """Return the metrics of this process in the Prometheus text format."""
    text = telling(request).numbers(request.app.state.access)
    return PlainTextResponse(text, media_type=CONTENT_TYPE)


@routes.get("/metrics/events", response_model=shapes.DomainEventStats)
async def domain_event_stats(request: Request) -> Json:
    """Return delivery counts of the domain events of this process since its start."""
    return Json(telling(request).events())


@routes.get("/v1/templates", response_model=shapes.ServedTemplatesResponse, responses=refusals(), **TEMPLATES)
@routes.get("/templates", response_model=shapes.ServedTemplatesResponse, include_in_schema=False, **TEMPLATES)
async def templates(request: Request, namespace: str | None = None, include_cache_stats: bool = False) -> Json:
    """Return the served namespaces, the templates found at the start, and the handlers."""
    return Json(telling(request).templates(namespace, include_cache_stats=include_cache_stats))


@routes.get(
    "/v1/templates/{namespace}/{name}/{version}",
    response_model=shapes.TemplateResponse,
    responses=refusals(404),
    **TEMPLATES,
)
async def template(request: Request, namespace: str, name: str, version: str) -> Json:
    """Return the compiled form of a template found at the start."""
    require_namespace(request, namespace)
    return Json(telling(request).template(namespace, name, version))


@routes.post(
    "/v1/templates/{namespace}/{name}/{version}/validate",
    response_model=shapes.ServedTemplateValidation,
    responses=refusals(404),
    **TEMPLATES,
)
async def validate(request: Request, namespace: str, name: str, version: str) -> Json:
    """Return whether each step of the template has a handler in this process."""
    require_namespace(request, namespace)
    return Json(telling(request).validation(namespace, name, version))


@routes.get(
    "/handlers",
    response_model=shapes.HandlersResponse,
    responses=refusals(),
    **needs(Permission.SYSTEM_HANDLERS_READ),
)
async def handlers(request: Request) -> Json:
    """Return the loaded handlers."""
    process = telling(request).observed
    return Json({"worker_id": process.identity(), "handlers": list(process.handlers())})


@configuration_routes.get(
    "/config", response_model=shapes.WorkerConfigResponse, responses=refusals(), **needs(Permission.WORKER_CONFIG_READ)
)
async def config(request: Request) -> Json:
    """Return the configuration of the process, without secrets."""
    process, state = telling(request).observed, request.app.state
    metadata = {"version": __version__, "environment": telling(request).environment, "timestamp": datetime.now(UTC)}
    told = {"metadata": metadata, "worker_id": process.identity(), "worker_type": process.kind}
    return Json({**told, **state.configuration})
