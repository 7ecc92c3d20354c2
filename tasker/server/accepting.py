"""Accepting connections within limits, and when the process has run out of file descriptors."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from tasker.logging.lines import LogThrottle
from tasker.server.connection_limits import ConnectionLimits
from tasker.server.http_protocol import LimitedProtocol, Refusal

AGAIN_SECONDS = 1.0
"""Pause after the operating system refused to accept a connection."""
HANDSHAKE_SECONDS = 10.0
OVER_LIMIT = Refusal(429, "too_many_connections", "too many connections from this address are open")
_log = logging.getLogger("tasker.api")


class Acceptor:
    """Acceptor that passes the connections of a listening socket to protocols, one per turn of the event loop.

    Accepting one at a time spreads connections over the processes that share a socket. The class has the methods of
    `asyncio.Server` that uvicorn calls. `make` returns a protocol, which calls its argument when the connection has
    ended.
    """

    def __init__(
        self,
        listening: socket.socket,
        make: Callable[[Callable[[LimitedProtocol], None]], LimitedProtocol],
        limits: ConnectionLimits,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._socket, self._make, self._limits, self._tls = listening, make, limits, tls
        self._loop = asyncio.get_running_loop()
        self._clients: dict[LimitedProtocol, str] = {}
        self._of_client = Counter[str]()
        self._starting: set[asyncio.Task[None]] = set()
        self._closed = self._listening = False
        self._failures, self._refusals = LogThrottle(time.monotonic), LogThrottle(time.monotonic)

    def listen(self) -> None:
        """Accept connections from now on."""
        if not self._closed and not self._listening:
            self._listening = True
            self._loop.add_reader(self._socket, self._accept)

    def close(self) -> None:
        """Stop accepting connections."""
        self._pause()
        self._closed = True

    async def wait_closed(self) -> None:
        """Cancel the connections that are still being opened and wait for them to end."""
        for task in tuple(self._starting):
            task.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)

    def _pause(self) -> None:
        if self._listening:
            self._listening = False
            self._loop.remove_reader(self._socket)

    def _accept(self) -> None:
        if len(self._clients) >= self._limits.connections:
            self._pause()  # a connection that ends resumes accepting
            self._close_an_idle_one()
            return
        try:
            connection, address = self._socket.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            self._pause()
            self._loop.call_later(AGAIN_SECONDS, self.listen)
            if self._failures.hit():
                open_now, count = len(self._clients), self._failures.flush()
                _log.warning("accept_failed count=%d open_connections=%d: %s", count, open_now, error)
            return
        client = client_of(address[0])
        if self._of_client[client] >= self._limits.of_one_client():
            self._refuse(connection, client)
            return
        protocol = self._make(self._release)
        self._clients[protocol] = client
        self._of_client[client] += 1
        task = self._loop.create_task(self._open(connection, protocol))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _open(self, connection: socket.socket, protocol: LimitedProtocol) -> None:
        seconds = HANDSHAKE_SECONDS if self._tls else None
        try:
            await self._loop.connect_accepted_socket(
                lambda: protocol, connection, ssl=self._tls, ssl_handshake_timeout=seconds
            )
        except BaseException as error:
            connection.close()
            self._release(protocol)
            if not isinstance(error, OSError):  # an OSError means that the client is gone or does not speak TLS
                raise

    def _release(self, protocol: LimitedProtocol) -> None:
        client = self._clients.pop(protocol, None)
        if client is not None:
            self._of_client[client] -= 1
            if not self._of_client[client]:
                del self._of_client[client]
            self.listen()

    def _refuse(self, connection: socket.socket, client: str) -> None:
        with connection, suppress(OSError):
            if self._tls is None:
                connection.setblocking(False)
                connection.send(OVER_LIMIT.encoded())
                connection.shutdown(socket.SHUT_WR)
        if self._refusals.hit():
            limit, count = self._limits.of_one_client(), self._refusals.flush()
            _log.warning("connections_refused count=%d from=%s limit_per_client=%d", count, client, limit)

    def _close_an_idle_one(self) -> None:
        idle = ((since, protocol) for protocol in self._clients if (since := protocol.idle_since) is not None)
        _, protocol = min(idle, key=lambda pair: pair[0], default=(0.0, None))
        if protocol is not None:
            protocol.shutdown()


def client_of(address: str) -> str:
    """Return the unit that the limit per client counts: an IPv4 address, or the /64 network of an IPv6 address."""
    if ":" not in address:
        return address
    packed = socket.inet_pton(socket.AF_INET6, address.partition("%")[0])
    if packed.startswith(b"\0" * 10 + b"\xff\xff"):
        return socket.inet_ntop(socket.AF_INET, packed[12:])
    return socket.inet_ntop(socket.AF_INET6, packed[:8] + b"\0" * 8) + "/64"
