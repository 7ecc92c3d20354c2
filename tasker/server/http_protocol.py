"""uvicorn's HTTP protocol of one connection, with limits that apply before authentication."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple, cast

import httptools
import orjson
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from tasker.server.connection_limits import ConnectionLimits
from tasker.server.envelope import HEADERS
from tasker.server.errors import MEDIA_TYPE, problem


class Refusal(NamedTuple):
    """Reason for closing a connection, in the form of an answer."""

    status: int
    kind: str
    message: str

    def encoded(self) -> bytes:
        """Return the complete answer, which also closes the connection."""
        details = problem(self.status, self.message, kind=self.kind, retry_after=1 if self.status == 429 else None)
        body = orjson.dumps(details)
        again = {"Retry-After": "1"} if self.status == 429 else {}
        headers = {"Content-Type": MEDIA_TYPE, "Content-Length": str(len(body)), "Connection": "close"}
        lines = [f"{name}: {value}" for name, value in {**HEADERS, **headers, **again}.items()]
        return "\r\n".join([f"HTTP/1.1 {self.status} {details['title']}", *lines, "", ""]).encode() + body


MALFORMED = Refusal(400, "malformed_request", "expected an HTTP/1.1 request, got something else")
HEAD_TIMEOUT = Refusal(408, "request_timeout", "the headers of the request did not arrive in time")


class Refused(Exception):
    """Exception that stops the parsing of a request."""


class LimitedProtocol(HttpToolsProtocol):
    """Connection with limits on the size of a request's headers and on the time they take to arrive.

    `Envelope` sets the deadline of the whole request, body included. `on_closed` is called once.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        state: ServerState,
        limits: ConnectionLimits,
        on_closed: Callable[[LimitedProtocol], None],
    ) -> None:
        super().__init__(config, state, {})
        self._limits, self._on_closed = limits, on_closed
        self._opened = self.loop.time()
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._in_head = self._deaf = False
        self._unused = 0  # bytes since the last complete head or piece of a body
        self._refusal: Refusal | None = None

    @property
    def idle_since(self) -> float | None:
        """Loop time at which the idle connection is closed; None during a request and before the first one."""
        timer = self.timeout_keep_alive_task
        return timer.when() if timer is not None and not self._in_head else None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the first request."""
        super().connection_made(cast(asyncio.Transport, transport))
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers and report the connection as closed."""
        for timer in (self._head_timer, self._stall_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)
        self._on_closed(self)

    def data_received(self, data: bytes) -> None:
        """Parse the received data in pieces that do not exceed the limit of the headers."""
        while data and not self._deaf and not self.transport.is_closing():
            room = self._limits.head_bytes - self._unused
            part, data = data[:room], data[room:]
            self._unused += len(part)
            try:
                self.parser.feed_data(part)
            except httptools.HttpParserUpgrade:  # the request is answered; later bytes are another protocol
                self._deaf = True
            except httptools.HttpParserError:
                self._refuse(self._refusal or MALFORMED)
            else:
                if self._unused >= self._limits.head_bytes:
                    self._refuse(self._too_large(f"{self._limits.head_bytes} bytes"))
        if self._in_head and self._head_timer is None:
            self._await_head()

    def on_message_begin(self) -> None:
        self._unset_keepalive_if_required()
        self._in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take one header field; refuse the request if it has too many."""
        super().on_header(name, value)
        if len(self.headers) > self._limits.headers:
            self._refusal = self._too_large(f"{self._limits.headers} fields")
            raise Refused

    def on_headers_complete(self) -> None:
        """Start answering the request."""
        super().on_headers_complete()
        self._in_head, self._unused = False, 0
        self._stop_head_timer()
        self._unset_keepalive_if_required()
        if len(self.pipeline) > self._limits.pipelined:
            self.pipeline.popleft()
            self.cycle = self.pipeline[0][0]
            raise Refused
        if self.parser.should_upgrade() or self.loop.time() - self._opened >= self._limits.age_seconds:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._unused = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unused = 0
        if self.cycle.response_complete and self.cycle.more_body:
            self.cycle.more_body = False
            self._close_in(self.timeout_keep_alive)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of this one, which is discarded."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._watch_writing()
        elif self.cycle.response_complete and self.cycle.more_body:
            self._close_in(self._limits.rest_seconds)

    def pause_writing(self) -> None:
        """Disconnect the client if it stops reading."""
        super().pause_writing()
        self._watch_writing()

    def timeout_keep_alive_handler(self) -> None:
        self._close()

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self._limits.head_seconds, self._head_is_late)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_late(self) -> None:
        if not self._in_head:  # no request has begun on this connection
            self._close()
        else:
            self._refuse(HEAD_TIMEOUT)

    def _too_large(self, limit: str) -> Refusal:
        return Refusal(431, "headers_too_large", f"expected a request line and headers of at most {limit}, got more")

    def _refuse(self, refusal: Refusal) -> None:
        """Answer, discard incoming data for a while, and close; earlier requests are answered first."""
        self._deaf = True
        self._stop_head_timer()
        cycle: RequestResponseCycle | None = self.cycle
        answering = None if cycle is None or cycle.response_complete else cycle
        if answering and (self._in_head or self.pipeline):
            answering.keep_alive = False
            return
        if self.transport.is_closing() or (answering and answering.response_started):
            self._close()
            return
        if answering:
            answering.disconnected = True
            answering.message_event.set()
        self.flow.resume_reading()
        self.transport.write(refusal.encoded())
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._close_in(self._limits.rest_seconds)

    def _close_in(self, seconds: float) -> None:
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self._close)

    def _close(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()
        self._watch_writing()

    def _watch_writing(self) -> None:
        """Abort the connection if its client reads none of the waiting data for `stall_seconds`."""
        waiting = self.transport.get_write_buffer_size()
        if waiting and self._stall_timer is None:
            self._stall_timer = self.loop.call_later(self._limits.stall_seconds, self._check_writing, waiting)

    def _check_writing(self, before: int) -> None:
        self._stall_timer = None
        waiting = self.transport.get_write_buffer_size()
        if waiting and waiting >= before:
            self.transport.abort()
        else:
            self._watch_writing()
