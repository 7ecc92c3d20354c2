"""Process that answers HTTP, and the port that a worker or orchestrator serves."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

from tasker.app.app import App
from tasker.app.configured import Configured
from tasker.app.serving import Service
from tasker.dataclasses import dataclass
from tasker.db.startup_wait import with_servers
from tasker.errors import TaskerError, UsageError
from tasker.plugins.contributions import metrics_of
from tasker.plugins.host import plugins_of
from tasker.process.connections import PROCESSES_VARIABLE, Resources, log_capacity, purposes_of
from tasker.process.http_settings import DEFAULT_ADDRESS, chosen_address, host_and_port
from tasker.process.metrics import PROCESS_CATALOGUE
from tasker.process.observed import ProcessSnapshot
from tasker.process.reloading import Reloading
from tasker.process.serving import ServedProcess
from tasker.process.stopping import Stop, grace_of
from tasker.server.application import DescribedRoute, NotReady, Options, application, paths
from tasker.server.auth.authenticator import Authenticator
from tasker.server.auth.gate import ClosedGate, Gate, open_gate
from tasker.server.auth.tokens import ALGORITHM
from tasker.server.connection_limits import ConnectionLimits, default_connections
from tasker.server.envelope import RequestLimits
from tasker.server.plugin_routes import offered_routers
from tasker.server.process_port import PortOptions, port_application
from tasker.server.sockets import HttpServer, TlsFiles, listen, require_loopback, tls_files
from tasker.services.fleet.metric_catalogue import CATALOGUE
from tasker.settings.execution import Execution
from tasker.settings.http import Auth, OrchestrationWeb, WorkerWeb

SOON_SECONDS = 1.0
"""If the app starts within this time, requests wait in the socket, where another server of the same address may answer
them. After it, the server answers that it is not ready.
"""
_log = logging.getLogger("tasker.process")
LIVE = ("common.circuit_breakers", "orchestration.web.auth")
"""Settings that a running server applies at a reload."""


@dataclass(frozen=True, slots=True)
class HttpService:
    """Service and socket of a server. The server owns `listening` from its start on."""

    service: Service
    listening: socket.socket
    authenticator: Authenticator | None = None
    """Authenticator of callers; None: every caller may do everything."""
    tls: TlsFiles | None = None


class _ServedApp(App):
    """App whose process answers requests while the app starts."""

    async def _prepared(self) -> Resources:
        preparing = asyncio.ensure_future(asyncio.to_thread(self.prepare))
        try:
            return await asyncio.shield(preparing)
        except asyncio.CancelledError:  # a thread cannot be cancelled, so what it opens must be closed
            with suppress(TaskerError):
                (await preparing).close()
            raise


async def serve_http(given: HttpService, ready: Callable[[str], None]) -> None:
    """Answer requests until SIGTERM or SIGINT; a second signal ends the process at once.

    The server waits for an unreachable database like a worker; until then it answers that it is alive but not ready.
    `ready` gets a line with the listening address.
    """
    service = given.service
    stop = Stop(service.stop_limit)
    configuration = with_own_pool(service.configuration)
    app = _ServedApp(configuration=configuration, data_dir=service.data_dir, work=False)
    wait_seconds, options = configuration.database.connect_wait_seconds, options_of(configuration)
    where, hint = "the database and the broker", "see whether they run"
    interface = NotReady(options.limits, options.root_path, options.answering)
    server = HttpServer(
        interface,
        given.listening,
        grace_seconds=grace_of(service.stop_limit),
        tls=given.tls,
        limits=ConnectionLimits(per_client=configuration.http.max_connections_per_client),
    )
    starting = asyncio.ensure_future(stop.interrupted(with_servers(where, wait_seconds, hint, app.start)))
    try:
        soon, _ = await asyncio.wait([starting], timeout=SOON_SECONDS)
        if not soon:
            await server.start()
        if await starting:
            return
        gate = ClosedGate(given.authenticator) if given.authenticator else open_gate
        if gate is open_gate:
            options = replace(options, hosts=(*configuration.http.trusted_hosts, given.listening.getsockname()[0]))
        interface.become(application(app, options, gate))
        if soon:
            await server.start()

        def change(configured: Configured) -> None:
            change_access(gate, server, configured.http.auth)
            app.breakers.change(configured.breakers)

        service.hangups.answer(Reloading(service.configuration, service.reread, change, LIVE))
        service.status.answer_with(lambda: _status(server, app))
        purposes = purposes_of(("app",) * configuration.database.pool.max_connections + ("listen",), app.messaging)
        together = int(os.environ.get(PROCESSES_VARIABLE, "1"))
        await log_capacity(app.database_url, purposes, together, is_alike=False)
        ready(
            f"server {os.getpid()} listens on {server.address} {_access_text(given.authenticator)}"
            f"{_where(options, server)}"
        )
        await stop.requested()
        _log.info("Initiating graceful shutdown: stopping the server on %s", server.address)
    finally:
        await server.stop()
        await app.stop()


def change_access(gate: Gate, server: HttpServer, auth: Auth) -> None:
    """Apply new authentication settings and a renewed certificate. Authentication itself is not switched on or off.

    Raises `UsageError` for unusable settings, and then nothing has changed.
    """
    authenticator = Authenticator(auth) if isinstance(gate, ClosedGate) else None
    server.renew()
    if authenticator is not None and isinstance(gate, ClosedGate):
        gate.change(authenticator)


def authenticator_of(auth: Auth) -> Authenticator | None:
    """Return the authenticator, or None without authentication. Raises `UsageError` for unusable settings."""
    return Authenticator(auth) if auth.enabled else None


def tls_of(http: OrchestrationWeb | WorkerWeb) -> TlsFiles | None:
    """Return the TLS files, or None without TLS. Raises `UsageError` if certificate and key do not match."""
    return tls_files(http.tls_certificate_path, http.tls_key_path)


def _status(server: HttpServer, app: App) -> dict[str, object]:
    """Return the server's status for one line of the log."""
    health = app.breakers.health()
    status = health.status if health.status == "healthy" else health.message
    return {"process": "server", "pid": os.getpid(), "address": server.address, "health": status}


def _access_text(authenticator: Authenticator | None) -> str:
    return f"for callers with {authenticator.methods}" if authenticator else "without authentication"


def _where(options: Options, server: HttpServer) -> str:
    """Return the address of the web UI for the start message."""
    return f"; the page: {server.address}/ui" if options.pages else ""


def listening_socket(
    http: OrchestrationWeb, host: str | None, port: int | None, inherited: int | None
) -> socket.socket:
    """Return the server's socket: that of its parent process, else a new one at the address of options and settings.

    Raises `UsageError` if the address is in use, if other machines can reach it without authentication, and if HTTP is
    disabled.
    """
    if inherited is not None:
        return socket.socket(fileno=inherited)
    if not http.enabled:
        raise UsageError("HTTP is turned off", hint="set orchestration.web.enabled = true")
    own_host, own_port = host_and_port(chosen_address(http) or DEFAULT_ADDRESS)
    host, port = host or own_host, own_port if port is None else port
    if not http.auth.enabled:
        require_loopback(host)
    return listen(host, port)


def with_own_pool(configuration: Configured) -> Configured:
    """Return the configuration with the server's connection pool in place of a program's."""
    database, pools = configuration.database, configuration.http.database_pools
    pool = database.pool.replace(
        max_connections=pools.web_api_max_connections,
        min_connections=pools.web_api_pool_size,
        acquire_timeout_seconds=pools.web_api_connection_timeout_seconds,
        idle_timeout_seconds=pools.web_api_idle_timeout_seconds,
    )
    return replace(configuration, database=database.replace(pool=pool))


def options_of(configuration: Configured) -> Options:
    """Return the options of the HTTP interface."""
    http, plugins = configuration.http, plugins_of(configuration.plugins)
    root_path = http.root_path.rstrip("/")
    return Options(
        limits=RequestLimits(body_bytes=http.max_body_bytes, seconds=http.request_timeout_ms / 1000),
        streams=http.max_streams,
        requests_per_second=http.requests_per_second,
        request_burst=http.request_burst,
        hooks=configuration.hooks,
        root_path=root_path,
        cors_origins=http.cors_origins,
        key_header=http.auth.api_key_header,
        environment=configuration.environment or Execution.environment,
        metrics=metrics_of(plugins, CATALOGUE),
        routers=offered_routers(plugins, paths()),
        on_answered=plugins.listener("tasker_request_answered"),
        configuration=_shown(configuration) if http.config_endpoint_enabled else None,
        **_pages(root_path),
        shown=partial(_set_up, configuration),
    )


def _set_up(configuration: Configured) -> DescribedRoute:
    """Return the configuration with the origin of each value, and the plugins."""
    from tasker.services.configuration.effective import effective_settings
    from tasker.services.configuration.plugins import plugin_reports_of

    settings = configuration.settings
    values = effective_settings(settings, configuration.origin) if settings else ()
    return DescribedRoute(values, plugin_reports_of(configuration.plugins, plugins_of(configuration.plugins)))


def _pages(root_path: str) -> dict[str, Any]:
    """The options of the web page, where the extra `web` is installed."""
    if find_spec("jinja2") is None:
        return {}
    from tasker.server.web.error_pages import answer_below
    from tasker.server.web.site import add_pages

    return {"pages": add_pages, "answering": answer_below(root_path)}


def _shown(configuration: Configured) -> dict[str, Any]:
    """Return the answer of `/config`, which contains no secrets."""
    pools, breaker = configuration.http.database_pools, configuration.breakers.database
    names = configuration.queue_names
    return {
        "auth": auth_shown(configuration.http.auth),
        "circuit_breakers": {
            "enabled": True,
            "failure_threshold": breaker.failure_threshold,
            "success_threshold": breaker.success_threshold,
            "timeout_seconds": round(breaker.timeout_seconds),
        },
        "database_pools": {
            "web_api_pool_size": pools.web_api_pool_size,
            "web_api_max_connections": pools.web_api_max_connections,
        },
        "deployment_mode": str(configuration.orchestrator_events.deployment_mode),
        "messaging": {"backend": configuration.backend, "queues": list(names.orchestration())},
    }


def auth_shown(auth: Auth) -> dict[str, Any]:
    """Return the authentication settings in their published form."""
    tokens = auth.enabled and bool(auth.jwt_public_key or auth.jwt_public_key_path or auth.jwks_url)
    keys = (len(auth.api_keys) if auth.api_keys_enabled else 0) + bool(auth.api_key)
    return {
        "enabled": auth.enabled,
        "verification_method": auth.jwt_verification_method if tokens else "none",
        "jwt_issuer": auth.jwt_issuer if tokens else "",
        "jwt_audience": auth.jwt_audience if tokens else "",
        "api_key_header": auth.api_key_header if auth.enabled else "",
        "api_key_count": keys if auth.enabled else 0,
        "strict_validation": tokens and auth.strict_validation,
        "allowed_algorithms": [ALGORITHM] if tokens else [],
    }


BODY_BYTES = 65_536
CONNECTIONS = 100
"""Maximum number of concurrent connections of probes and scrapers."""
STOP_SECONDS = 1.0
"""Time for open requests after the process has stopped."""


class WithPort:
    """Server process with an HTTP port that is open from before its start until after its stop."""

    def __init__(self, server: ServedProcess, port: HttpServer, gate: Gate) -> None:
        self._server, self._port, self._gate = server, port, gate
        self._open = False

    def change(self, auth: Auth) -> None:
        """Apply new authentication settings and a renewed certificate; see `change_access`."""
        change_access(self._gate, self._port, auth)

    async def start(self) -> None:
        """Open the port and start the process; may be called again if the start failed."""
        if not self._open:
            await self._port.start()
            self._open = True
        await self._server.start()

    async def stop(self) -> None:
        """Stop the process, then close the port."""
        try:
            await self._server.stop()
        finally:
            await self._port.stop()


def with_port(
    server: ServedProcess,
    observed: ProcessSnapshot,
    port: OrchestrationWeb | WorkerWeb,
    configuration: Configured,
    connections: Sequence[str],
) -> tuple[WithPort, str]:
    """Return the server with its port, and the port's address.

    Raises `UsageError` for an unavailable address and for certificate files that do not match.
    """
    tls = tls_of(port)
    listening = _listening(port, observed.kind)
    options = PortOptions(
        limits=RequestLimits(body_bytes=BODY_BYTES, seconds=port.request_timeout_ms / 1000),
        environment=configuration.environment or Execution.environment,
        connections=len(connections),
        metrics=metrics_of(observed.process.plugins, PROCESS_CATALOGUE),
        configuration=_shown_port(port, configuration) if port.config_endpoint_enabled else None,
    )
    authenticator = authenticator_of(port.auth)
    gate = ClosedGate(authenticator) if authenticator else open_gate
    application = port_application(observed, options, gate)
    limits = ConnectionLimits(connections=min(CONNECTIONS, default_connections()))
    answering = HttpServer(application, listening, grace_seconds=STOP_SECONDS, tls=tls, limits=limits)
    return WithPort(server, answering, gate), answering.address


def _listening(port: OrchestrationWeb | WorkerWeb, kind: str) -> socket.socket:
    """Return a socket on the configured port, or on the next free one for processes started together."""
    host, first = host_and_port(port.bind_address)
    if not port.auth.enabled:
        require_loopback(host, f"{'worker' if kind == 'worker' else 'orchestration'}.web.auth")
    together = int(os.environ.get(PROCESSES_VARIABLE, "1")) if first else 1
    for number in range(first, first + together - 1):
        try:
            return listen(host, number)
        except UsageError:
            continue  # a sibling process has the port
    return listen(host, first + together - 1)


def _shown_port(port: OrchestrationWeb | WorkerWeb, configuration: Configured) -> dict[str, Any]:
    queues = list(configuration.queue_names.orchestration())
    return {"auth": auth_shown(port.auth), "messaging": {"backend": configuration.backend, "queues": queues}}
