"""uvicorn with its sockets and TLS."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Protocol

import uvicorn
from starlette.types import Receive, Scope, Send

from tasker.dataclasses import dataclass
from tasker.errors import UsageError
from tasker.process.stopping import STOP_GRACE_SECONDS
from tasker.server.accepting import Acceptor
from tasker.server.connection_limits import ConnectionLimits
from tasker.server.http_protocol import LimitedProtocol

BACKLOG = 2048
LOOPBACK = "127.0.0.1"


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on this address. Raises `UsageError` if the address is not available."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind(address)
            made.listen(BACKLOG)
        except OSError:
            made.close()
            raise
    except OSError as error:
        denied = isinstance(error, PermissionError)
        why = "ports below 1024 are not for every user" if denied else "another process may have the port"
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            hint=f"{why}: choose a port with --port; 0 picks a free one",
        ) from None
    made.setblocking(False)
    return made


def require_loopback(host: str, section: str = "orchestration.web.auth") -> None:
    """Check that a server without authentication, which `section` turns on, is reached from this machine only.

    Raises `UsageError` otherwise.
    """
    if host == "localhost":
        return
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            return
    raise UsageError(
        f"{host} is reachable from other machines, but authentication is off: anyone could run tasks",
        hint=f"listen on 127.0.0.1, or turn on [{section}]; see docs/security.md",
    )


def url_of(listening: socket.socket, scheme: str = "http") -> str:
    host, port = listening.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Certificate with its intermediate certificates, and its private key: the paths of two PEM files."""

    certificate: str
    key: str


def tls_files(certificate: str, key: str) -> TlsFiles | None:
    """Return the files, or None if neither is configured. Raises `UsageError` if one is missing or the two do not
    match."""
    if not certificate and not key:
        return None
    if not certificate or not key:
        missing = "tls_key_path" if certificate else "tls_certificate_path"
        raise UsageError(f"{missing} is not set", hint="https needs a certificate and its key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(
            certificate, key, password=lambda: ""
        )  # an encrypted key must not prompt for its password at the terminal
    except OSError as error:  # includes `SSLError`
        reason = "they do not match, or are not PEM" if isinstance(error, ssl.SSLError) else error.strerror
        raise UsageError(
            f"tls_certificate_path ({certificate}) and tls_key_path ({key}) cannot be used: {reason}",
            hint="name a certificate and its private key without a password, both in PEM",
        ) from None
    return TlsFiles(certificate, key)


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
