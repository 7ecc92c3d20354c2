"""HTTP port of a worker or an orchestrator. Imported only if the process has a port."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Any

from tasker.api.connection_limits import ConnectionLimits, default_connections
from tasker.api.envelope import RequestLimits
from tasker.api.gate import ClosedGate
from tasker.api.http_server import HttpServer
from tasker.api.permissions import Gate, open_gate
from tasker.api.process.application import PortOptions, port_application
from tasker.api.process.metrics import CATALOGUE
from tasker.api.process.observed import ProcessSnapshot
from tasker.api.sockets import listen, require_loopback
from tasker.app.configured import Configured
from tasker.app.http_serving import auth_shown, authenticator_of, change_access, tls_of
from tasker.contracts.defaults import ENVIRONMENT
from tasker.errors import UsageError
from tasker.plugins.offers import metrics_of
from tasker.process.connections.capacity import PROCESSES_VARIABLE
from tasker.process.http import PortSettings, host_and_port
from tasker.process.serving import ServedProcess
from tasker.services.authentication.settings import AuthSettings

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

    def change(self, auth: AuthSettings) -> None:
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
    port: PortSettings,
    configuration: Configured,
    connections: Sequence[str],
) -> tuple[WithPort, str]:
    """Return the server with its port, and the port's address.

    Raises `UsageError` for an unavailable address and for certificate files that do not match.
    """
    tls = tls_of(port)
    listening = _listening(port, observed.kind)
    options = PortOptions(
        limits=RequestLimits(body_bytes=BODY_BYTES, seconds=port.request_seconds),
        environment=configuration.environment or ENVIRONMENT,
        connections=len(connections),
        metrics=metrics_of(observed.process.plugins, CATALOGUE),
        configuration=_shown(port, configuration) if port.config_endpoint else None,
    )
    authenticator = authenticator_of(port.auth)
    gate = ClosedGate(authenticator) if authenticator else open_gate
    application = port_application(observed, options, gate)
    limits = ConnectionLimits(connections=min(CONNECTIONS, default_connections()))
    answering = HttpServer(application, listening, grace_seconds=STOP_SECONDS, tls=tls, limits=limits)
    return WithPort(server, answering, gate), answering.address


def _listening(port: PortSettings, kind: str) -> socket.socket:
    """Return a socket on the configured port, or on the next free one for processes started together."""
    assert port.bind_address is not None
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


def _shown(port: PortSettings, configuration: Configured) -> dict[str, Any]:
    queues = list(configuration.queue_names.orchestration())
    return {"auth": auth_shown(port.auth), "messaging": {"backend": configuration.backend, "queues": queues}}
