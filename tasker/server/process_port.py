"""HTTP port of a worker or orchestrator: health, metrics, configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI, Request
from pydantic import BaseModel
from starlette.responses import PlainTextResponse, Response

from tasker.dataclasses import dataclass
from tasker.metrics import Metric
from tasker.operations.permissions import Permission
from tasker.process.observed import ProcessSnapshot
from tasker.process.status import ProcessStatus
from tasker.server.auth.caller import RefusedCallers
from tasker.server.auth.gate import Gate, needs, open_gate, require_namespace
from tasker.server.envelope import Envelope, RequestLimits
from tasker.server.errors import answer, answer_failures, problem
from tasker.server.rendering import Json
from tasker.server.routes import router
from tasker.server.shapes.problems import refusals
from tasker.services.fleet.metric_catalogue import CONTENT_TYPE
from tasker.services.fleet.metrics import AccessCounts
from tasker.settings.execution import Execution
from tasker.version import __version__


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


routes = router("process")
configuration_routes = router("configuration")
TEMPLATES = needs(Permission.WORKER_TEMPLATES_READ)


def status_of(request: Request) -> ProcessStatus:
    """Return the status service of this process."""
    status: ProcessStatus = request.app.state.process_status
    return status


@routes.get("/health", response_model=BasicHealthResponse)
async def health(request: Request) -> Json:
    """Return the worst status of the process's parts: `healthy`, `degraded` or `unhealthy`."""
    return Json(status_of(request).basic())


@routes.get("/health/live", response_model=BasicHealthResponse)
@routes.get("/live", response_model=BasicHealthResponse, include_in_schema=False)
async def live(request: Request) -> Json:
    """Confirm that the process is alive. An unreachable database is no reason to restart it."""
    return Json(status_of(request).basic("alive"))


@routes.get("/health/ready", response_model=WorkerReadinessResponse, responses={503: {"description": "not ready"}})
@routes.get("/ready", response_model=WorkerReadinessResponse, include_in_schema=False)
async def ready(request: Request) -> Response:
    """Return whether the process is ready: 503 while it starts, stops, or cannot learn of work."""
    report, reason = status_of(request).ready()
    if reason:
        kind, code = "not_ready", "SERVICE_UNAVAILABLE"
        return answer(problem(503, reason, kind=kind, code=code, checks=report["checks"]), request.scope)
    return Json(report)


@routes.get("/health/detailed", response_model=WorkerDetailedHealthResponse)
async def detailed(request: Request) -> Json:
    """Return the status of every part, with the reason if it is not healthy."""
    return Json(status_of(request).detailed())


@routes.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> PlainTextResponse:
    """Return the metrics of this process in the Prometheus text format."""
    text = status_of(request).numbers(request.app.state.access)
    return PlainTextResponse(text, media_type=CONTENT_TYPE)


@routes.get("/metrics/events", response_model=DomainEventStats)
async def domain_event_stats(request: Request) -> Json:
    """Return delivery counts of the domain events of this process since its start."""
    return Json(status_of(request).events())


@routes.get("/v1/templates", response_model=ServedTemplatesResponse, responses=refusals(), **TEMPLATES)
@routes.get("/templates", response_model=ServedTemplatesResponse, include_in_schema=False, **TEMPLATES)
async def templates(request: Request, namespace: str | None = None, include_cache_stats: bool = False) -> Json:
    """Return the served namespaces, the templates found at the start, and the handlers."""
    return Json(status_of(request).templates(namespace, include_cache_stats=include_cache_stats))


@routes.get(
    "/v1/templates/{namespace}/{name}/{version}",
    response_model=TemplateResponse,
    responses=refusals(404),
    **TEMPLATES,
)
async def template(request: Request, namespace: str, name: str, version: str) -> Json:
    """Return the compiled form of a template found at the start."""
    require_namespace(request, namespace)
    return Json(status_of(request).template(namespace, name, version))


@routes.post(
    "/v1/templates/{namespace}/{name}/{version}/validate",
    response_model=ServedTemplateValidation,
    responses=refusals(404),
    **TEMPLATES,
)
async def validate(request: Request, namespace: str, name: str, version: str) -> Json:
    """Return whether each step of the template has a handler in this process."""
    require_namespace(request, namespace)
    return Json(status_of(request).validation(namespace, name, version))


@routes.get(
    "/handlers",
    response_model=HandlersResponse,
    responses=refusals(),
    **needs(Permission.SYSTEM_HANDLERS_READ),
)
async def handlers(request: Request) -> Json:
    """Return the loaded handlers."""
    process = status_of(request).observed
    return Json({"worker_id": process.identity(), "handlers": list(process.handlers())})


@configuration_routes.get(
    "/config", response_model=WorkerConfigResponse, responses=refusals(), **needs(Permission.WORKER_CONFIG_READ)
)
async def config(request: Request) -> Json:
    """Return the configuration of the process, without secrets."""
    process, state = status_of(request).observed, request.app.state
    metadata = {"version": __version__, "environment": status_of(request).environment, "timestamp": datetime.now(UTC)}
    summary = {"metadata": metadata, "worker_id": process.identity(), "worker_type": process.kind}
    return Json({**summary, **state.configuration})


@dataclass(frozen=True, slots=True)
class PortOptions:
    """Options of the port. `connections` is the maximum number of database connections of the process."""

    limits: RequestLimits = field(default_factory=RequestLimits)
    environment: str = Execution.environment
    connections: int = 0
    metrics: Sequence[Metric] = ()
    """Metrics of plugins, exposed with those of the process."""
    configuration: Mapping[str, Any] | None = None
    """Content of `/config`; None leaves the path out."""


def port_application(observed: ProcessSnapshot, options: PortOptions, gate: Gate = open_gate) -> Envelope:
    """Return the ASGI application of the port of a process."""
    app = FastAPI(title=f"Tasker {observed.kind}", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)
    app.router.routes.extend(routes.routes)
    if options.configuration is not None:
        app.router.routes.extend(configuration_routes.routes)
    answer_failures(app)
    state = app.state
    state.process_status = ProcessStatus(observed, options.environment, options.connections, options.metrics)
    state.gate, state.rate_limit = gate, None
    state.configuration, state.access = options.configuration, AccessCounts()
    state.refused = refused = RefusedCallers()
    return Envelope(app, options.limits, refused.close)
