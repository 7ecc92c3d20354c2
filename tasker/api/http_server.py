"""HTTP server on a listening socket, run inside an existing event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator
from typing import Protocol

import uvicorn
from starlette.types import Receive, Scope, Send

from tasker.api.accepting import Acceptor
from tasker.api.connection_limits import ConnectionLimits
from tasker.api.http_protocol import LimitedProtocol
from tasker.api.sockets import url_of
from tasker.api.tls import TlsFiles, tls_files
from tasker.contracts.defaults.workers import STOP_GRACE_SECONDS

START_SECONDS = 0.002
KEEP_ALIVE_SECONDS = 75
"""Time for which an idle connection is kept open; longer than proxies keep theirs."""


class Interface(Protocol):
    """ASGI application with a `close` method that ends endless streams."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        ...

    def close(self) -> None:
        """End endless streams because the server stops."""
        ...


class _Uvicorn(uvicorn.Server):
    """uvicorn server that leaves signals to the process and limits connections."""

    def __init__(self, config: uvicorn.Config, limits: ConnectionLimits) -> None:
        super().__init__(config)
        self._limits = limits

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        for listening in sockets or ():
            acceptor = Acceptor(listening, self._protocol, self._limits, self.config.ssl)
            acceptor.listen()
            self.servers = [acceptor]  # type: ignore[list-item]  # it has the methods that uvicorn calls
        self.started = True

    def _protocol(self, on_closed: Callable[[LimitedProtocol], None]) -> LimitedProtocol:
        return LimitedProtocol(self.config, self.server_state, self._limits, on_closed)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signal handlers of the process unchanged."""
        yield


def _config(app: Interface, grace_seconds: float, tls: TlsFiles | None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=LimitedProtocol,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        loop="none",
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(1, round(grace_seconds)),
        ssl_certfile=tls.certificate if tls else None,
        ssl_keyfile=tls.key if tls else None,
    )


class HttpServer:
    """HTTP server that runs from `start` to `stop`.

    At the end, requests in progress get `grace_seconds` to finish. `tls` turns on encryption; `limits` are those of
    connections.
    """

    def __init__(
        self,
        app: Interface,
        listening: socket.socket,
        *,
        grace_seconds: float = STOP_GRACE_SECONDS,
        tls: TlsFiles | None = None,
        limits: ConnectionLimits | None = None,
    ) -> None:
        self.socket, self._app, self._tls = listening, app, tls
        if (uvicorn := logging.getLogger("uvicorn")).level == logging.NOTSET:
            uvicorn.setLevel(logging.WARNING)  # this process logs the relevant events itself
        self._server = _Uvicorn(_config(app, grace_seconds, tls), limits or ConnectionLimits())
        self._serving: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        """URL of the listening socket."""
        return url_of(self.socket, "https" if self._tls else "http")

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return len(self._server.server_state.connections)

    async def start(self) -> None:
        """Answer requests from now on."""
        self._serving = asyncio.create_task(self._server.serve([self.socket]), name="http")
        while not self._server.started:
            if self._serving.done():
                await self._serving
            await asyncio.sleep(START_SECONDS)

    def renew(self) -> None:
        """Reload certificate and key for new connections. Raises `UsageError` like `tls_files`."""
        if self._tls is not None:
            tls_files(self._tls.certificate, self._tls.key)
            if self._server.config.ssl is not None:
                self._server.config.ssl.load_cert_chain(self._tls.certificate, self._tls.key)

    async def stop(self) -> None:
        """Accept no new connections, and return when requests in progress are answered or their grace time is over."""
        if self._serving is not None:
            self._server.should_exit = True
            self._app.close()
            await self._serving
        self.socket.close()
