"""The HTTP application: its routes, and what holds for each request, also before it is ready."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tasker.dataclasses import dataclass
from tasker.metrics import Metric
from tasker.server import openapi
from tasker.server.api import (
    analytics,
    approvals,
    domain_events,
    fleet,
    health,
    hooks,
    observing,
    operators,
    schedules,
    steps,
    task_events,
    tasks,
    templates,
)
from tasker.server.api import configuration as config
from tasker.server.auth.caller import RefusedCallers
from tasker.server.auth.gate import Gate, open_gate
from tasker.server.envelope import Envelope, KnownHosts, OnAnswered, RateLimit, RequestLimits
from tasker.server.errors import Answering, answer, answer_failures, problem
from tasker.server.openapi import description_of
from tasker.server.plugin_routes import OfferedRouters
from tasker.server.program import ServerServices
from tasker.server.rendering import Json
from tasker.server.streams import Streams
from tasker.settings.defaults import KEY_HEADER
from tasker.settings.execution import Execution
from tasker.settings.hooks import IncomingHook
from tasker.settings.http import OrchestrationWeb
from tasker.version import __version__

if TYPE_CHECKING:
    from tasker.services.configuration.effective import EffectiveSetting
    from tasker.services.configuration.plugins import PluginReport

SUBJECTS = (
    health,
    tasks,
    steps,
    task_events,
    domain_events,
    hooks,
    observing,
    templates,
    schedules,
    approvals,
    fleet,
    operators,
    analytics,
    openapi,
)
"""Route modules; each has `routes`."""
COMPRESSED_BYTES, COMPRESSION = 2048, 4
CORS: dict[str, Any] = {
    "allow_methods": ["GET", "POST", "PATCH", "DELETE"],
    "allow_headers": [
        "Authorization",
        "Content-Type",
        "If-None-Match",
        "Last-Event-ID",
        "X-Request-ID",
        "traceparent",
        "tracestate",
    ],
    "expose_headers": ["ETag", "Location", "Retry-After", "X-Request-ID"],
}
DESCRIPTION = (
    "Durable workflows: tasks, their steps, templates, and the fleet that works on them. "
    "A path answers 405 with `Allow` to a method that it does not have."
)


@dataclass(frozen=True, slots=True)
class DescribedRoute:
    """Configuration of a server as pages show it, without secrets."""

    settings: Sequence[EffectiveSetting]
    plugins: Sequence[PluginReport]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the HTTP interface. `root_path` is the path under which a proxy publishes it."""

    hosts: Sequence[str] | None = None
    """Host names that requests may use in addition to those of this machine; None allows any name."""

    limits: RequestLimits = field(default_factory=RequestLimits)
    streams: int = OrchestrationWeb.max_streams
    """Maximum number of clients that may follow tasks at the same time."""
    root_path: str = ""
    cors_origins: Sequence[str] = ()
    key_header: str = KEY_HEADER
    """Header of API keys, which pages of `cors_origins` may send."""
    environment: str = Execution.environment
    requests_per_second: int = 0
    """Average number of requests per second allowed to each client; 0 means unlimited. `request_burst` are allowed at
    once."""
    request_burst: int = OrchestrationWeb.request_burst
    metrics: Sequence[Metric] = ()
    """Metrics of plugins, exposed with those of the server."""
    routers: Sequence[OfferedRouters] = ()
    """Routers of plugins, served in addition to those of the server."""
    on_answered: OnAnswered | None = None
    """Callback that receives every answer."""
    configuration: Mapping[str, Any] | None = None
    """Content of `/config`; None leaves the path out."""
    pages: Callable[[FastAPI], None] | None = None
    """Adds the web page; None: there is none."""
    hooks: Mapping[str, IncomingHook] = field(default_factory=dict)
    """Hooks that receive requests of other systems, by name."""
    answering: Answering = answer
    """Answers what no route can, such as a request that comes when the server stops."""
    shown: Callable[[], DescribedRoute] | None = None
    """Source of the configuration and the plugins that pages show; None shows neither."""


def application(program: ServerServices, options: Options | None = None, gate: Gate = open_gate) -> Envelope:
    """Return the HTTP interface of a server as an ASGI application."""
    options = options or Options()
    app = described()
    if options.configuration is not None:
        app.include_router(config.routes)
    for plugin_router in options.routers:
        app.include_router(plugin_router.router, prefix=plugin_router.prefix)
    if options.pages is not None:
        options.pages(app)
    app.add_middleware(GZipMiddleware, minimum_size=COMPRESSED_BYTES, compresslevel=COMPRESSION)
    if options.cors_origins:
        headers = [*CORS["allow_headers"], options.key_header]
        app.add_middleware(CORSMiddleware, allow_origins=options.cors_origins, **{**CORS, "allow_headers": headers})
    if options.hosts is not None:
        app.add_middleware(KnownHosts, names=options.hosts)
    app.root_path = options.root_path
    app.state.program, app.state.gate, app.state.options = program, gate, options
    app.state.rate_limit, app.state.access = _rate_limit(options), program.metrics.access
    app.state.streams, app.state.refused = streams, refused = Streams(options.streams), RefusedCallers()

    def close() -> None:
        streams.close()
        refused.close()

    return Envelope(app, options.limits, close, options.on_answered, options.answering)


def _rate_limit(options: Options) -> RateLimit | None:
    rate = options.requests_per_second
    return RateLimit(rate, options.request_burst) if rate else None


def paths() -> list[str]:
    """Return the paths of the server's own routes."""
    return [route.path for module in (*SUBJECTS, config) for route in module.routes.routes if isinstance(route, Route)]


def described() -> FastAPI:
    """Return an application with routes and schemas but without services behind them."""
    app = FastAPI(
        title="Tasker",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        swagger_ui_oauth2_redirect_url=None,
    )
    for module in SUBJECTS:  # `include_router` would match each request twice, router by router
        app.router.routes.extend(module.routes.routes)
    answer_failures(app)
    app.openapi = cache(partial(description_of, app))  # type: ignore[method-assign]  # as the framework documents it
    return app


LIVE = ("/live", "/health/live")
AGAIN_SECONDS = 5
"""Retry delay sent to clients; as long as the longest pause between two attempts to reach the database."""


class NotReady:
    """HTTP interface of a server from the moment it listens; `become` replaces it by the one with services."""

    def __init__(self, limits: RequestLimits, root_path: str = "", answering: Answering = answer) -> None:
        self._root_path, self._answering = root_path, answering
        self._interface = Envelope(self._early, limits, lambda: None, answering=answering)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._interface(scope, receive, send)

    def become(self, interface: Envelope) -> None:
        """Answer with this interface from now on."""
        self._interface = interface

    def close(self) -> None:
        """End endless streams."""
        self._interface.close()

    async def _early(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].removeprefix(self._root_path) in LIVE and scope["method"] == "GET":
            alive = Json({"status": "alive", "timestamp": datetime.now(UTC)})
            await alive(scope, receive, send)
            return
        message = "not ready: the server starts, or waits for its database"
        details = problem(503, message, kind="not_ready", code="SERVICE_UNAVAILABLE", retry_after=AGAIN_SECONDS)
        await self._answering(details, scope)(scope, receive, send)
