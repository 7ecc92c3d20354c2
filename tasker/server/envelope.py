"""Envelope of every request: id, limits of size and time, known hosts, rate limits."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, MutableMapping
from datetime import UTC, datetime
from time import monotonic, perf_counter
from typing import Any
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tasker.dataclasses import dataclass
from tasker.errors import TooManyRequests
from tasker.logging.trace_context import TraceContext, accepted
from tasker.plugins.hook_arguments import RequestAnswered
from tasker.server.errors import FAILED, Answering, answer, problem
from tasker.settings.http import OrchestrationWeb, Web

REQUEST_ID = "X-Request-ID"
ACCEPTED_ID = re.compile(r"[\w.:-]{1,128}")
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
"""Headers of every answer that does not set its own values."""
OWN_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
OTHER_NAME = "use the address that the server logs at startup, or add the host to orchestration.web.trusted_hosts"
OnAnswered = Callable[[RequestAnswered], None]
_log = logging.getLogger("tasker.api")


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits of requests.

    A body has at most `body_bytes`; a request is answered with 408 after `seconds`; while `requests` wait for an
    answer, a further one is refused.
    """

    body_bytes: int = OrchestrationWeb.max_body_bytes
    seconds: float = Web.request_timeout_ms / 1000
    requests: int = 2000


def path_of(scope: Scope) -> str:
    """Return the path of a request for the log, without a signed link: whoever reads one can decide with it."""
    before, signed, _ = scope["path"].partition(SIGNED)
    return f"{before}{signed}{'{link}' if signed else ''}"


SIGNED = "/ui/decide/"
"""Beginning of the paths of signed links."""
AGAIN_SECONDS = 1
STOPPING = "the server stopped before the request was answered; it is unknown whether the change was made"


class TooLarge(Exception):
    """Error raised when a body exceeds its limit."""


class Envelope:
    """ASGI wrapper of the application that turns every error into a problem answer.

    `close` ends what would go on for ever; `on_answered` hears of every answer. `answering` makes the answer where the
    application cannot.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: RequestLimits,
        close: Callable[[], None],
        on_answered: OnAnswered | None = None,
        answering: Answering = answer,
    ) -> None:
        self._app, self._limits, self.close, self._on_answered = app, limits, close, on_answered
        self._answering = answering
        self._unanswered: set[_Exchange] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            scope, send = {**scope, "method": "GET"}, _without_body(send)
        if self._on_answered is not None:
            send = _telling(self._on_answered, scope, send)
        exchange = _Exchange(self._app, self._limits, scope, receive, send, self._unanswered, self._answering)
        self._unanswered.add(exchange)
        try:
            await exchange.run()
        finally:
            self._unanswered.discard(exchange)


class _Exchange:
    def __init__(
        self,
        app: ASGIApp,
        limits: RequestLimits,
        scope: Scope,
        receive: Receive,
        send: Send,
        unanswered: set[_Exchange],
        answering: Answering,
    ) -> None:
        self._app, self._limits, self._scope, self._unanswered = app, limits, scope, unanswered
        self._receive, self._send, self._answering = receive, send, answering
        self._read, self._started, self._failing = 0, False, False
        self._ended = False
        self._limit: asyncio.Timeout | None = None
        self.request_id = request_id_of(scope)

    async def run(self) -> None:
        """Answer the request in every case; an error after the answer has begun ends the connection."""
        try:
            if "\0" in self._scope["path"] or b"%00" in self._scope["query_string"]:
                await self._fail(400, "names and values must not contain NUL characters", "malformed_request")
                return
            if len(self._unanswered) > self._limits.requests:
                await self._fail(503, "too many requests wait for an answer", "too_many_requests", retry_after=1)
                return
            headers = Headers(scope=self._scope)
            if len(headers.getlist("host")) > 1:
                await self._fail(400, "expected one Host header, got several", "malformed_request")
                return
            if headers.get("content-encoding", "identity").lower() != "identity":
                message = f"expected a body without Content-Encoding, got {headers['content-encoding']!r:.50}"
                await self._fail(415, message, "unsupported_media_type")
                return
            if self._announced() > self._limits.body_bytes:
                raise TooLarge
            async with asyncio.timeout(self._limits.seconds) as self._limit:
                self._scope["state"]["limit"] = self._limit
                await self._app(self._scope, self._counted, self._sent)
        except TooLarge:
            await self._fail(413, f"the body is larger than {self._limits.body_bytes} bytes", "body_too_large")
        except TimeoutError:
            seconds = self._limits.seconds
            await self._fail(408, f"the request was not answered within {seconds:g} seconds", "request_timeout")
        except asyncio.CancelledError:  # only a server that stops cancels an exchange
            if self._started:
                raise
            _log.warning("request_cut request=%s %s", self.request_id, path_of(self._scope))
            await self._fail(503, STOPPING, "stopping", retry_after=AGAIN_SECONDS)
        except ClientDisconnect:  # the client left before its request was complete, so no answer is needed
            return
        except Exception:
            _log.exception("request=%s %s failed", self.request_id, path_of(self._scope))
            if not self._ended:  # the framework re-raises an error that it has already answered
                await self._fail(500, FAILED)

    def _announced(self) -> int:
        length = Headers(scope=self._scope).get("content-length", "")
        return int(length) if length.isdecimal() else 0

    async def _counted(self) -> Message:
        message = await self._receive()
        self._read += len(message.get("body", b""))
        if self._read > self._limits.body_bytes:
            raise TooLarge
        return message

    async def _sent(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if self._read > self._limits.body_bytes and not self._failing:  # the framework replaced `TooLarge`
                raise TooLarge
            self._started = True
            self._unanswered.discard(self)
            if self._limit is not None and not self._limit.expired():  # a stream may take as long as it takes
                self._limit.reschedule(None)
            self._complete(message)
        self._ended = message["type"] == "http.response.body" and not message.get("more_body")
        await self._send(message)

    def _complete(self, message: MutableMapping[str, Any]) -> None:
        headers = MutableHeaders(scope=message)
        for name, value in HEADERS.items():
            headers.setdefault(name, value)
        headers[REQUEST_ID] = self.request_id

    async def _fail(
        self, status: int, message: str, kind: str | None = None, *, retry_after: float | None = None
    ) -> None:
        self._failing, self._limit = True, None
        if self._started:
            raise ConnectionAbortedError(message)
        details = problem(status, message, kind=kind, retry_after=retry_after)
        await self._answering(details, self._scope)(self._scope, self._receive, self._sent)


def _without_body(send: Send) -> Send:
    """Return a `send` that ends the answer after its headers; a stream then sees its client as disconnected."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            await send(message)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    return sent


def _telling(on_answered: OnAnswered, scope: Scope, send: Send) -> Send:
    """Return a `send` that passes the answer to `on_answered` when it begins."""
    began = perf_counter()

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            endpoint = getattr(scope.get("route"), "path", "")
            duration_ms = (perf_counter() - began) * 1000
            answer = (scope["method"], endpoint, message["status"], scope["state"].get("problem"), duration_ms)
            on_answered(RequestAnswered(*answer, datetime.now(UTC), *_trace_context(scope)))
        await send(message)

    return sent


def _trace_context(scope: Scope) -> TraceContext | tuple[()]:
    headers = Headers(scope=scope)
    return accepted(headers.get("traceparent"), headers.get("tracestate")) or ()


def allow_seconds(scope: Scope, seconds: float) -> None:
    """Extend the time limit of this request."""
    limit: asyncio.Timeout = scope["state"]["limit"]
    due = limit.when()
    if due is not None:
        limit.reschedule(due + seconds)


def is_out_of_time(scope: Scope) -> bool:
    """Return whether the time of this request is over: what cancels it then is its limit."""
    limit: asyncio.Timeout | None = scope["state"].get("limit")
    return limit is not None and limit.expired()


def request_id_of(scope: Scope) -> str:
    """Return the request's ID: the one sent by the client, otherwise a new one that stays the same for the request."""
    state = scope.setdefault("state", {})
    if "request_id" not in state:
        header = Headers(scope=scope).get(REQUEST_ID, "")
        state["request_id"] = header if ACCEPTED_ID.fullmatch(header) else str(uuid4())
    request_id: str = state["request_id"]
    return request_id


class KnownHosts:
    """ASGI middleware that admits only requests addressed to a name of this machine or to one of `names`.

    It protects servers without authentication, which only their own machine can reach: a website could point its name
    to this machine and let a browser here send requests (DNS rebinding).
    """

    def __init__(self, app: ASGIApp, names: Iterable[str]) -> None:
        self._app, self._names = app, OWN_NAMES | {name.lower() for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 421 to a request for an unknown host name."""
        if scope["type"] == "http":
            name = host_of(Headers(scope=scope).get("host", ""))
            if name not in self._names and not name.endswith(".localhost"):
                details = problem(421, f"unknown host {name!r:.100}", kind="unknown_host", hint=OTHER_NAME)
                await answer(details, scope)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def host_of(header: str) -> str:
    """Return the host name in a `Host` header in lower case, without port and brackets."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].rstrip(".").lower()


MOST_CLIENTS = 10_000
"""Maximum number of clients tracked; beyond it the client whose last request is oldest starts afresh."""


class RateLimit:
    """Rate limit of `per_second` requests per client on average and `burst` at once, counted in this process alone."""

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float] = monotonic) -> None:
        self._interval, self._clock = 1 / per_second, clock
        self._ahead = self._interval * (burst - 1)
        self._due: dict[str, float] = {}
        """Time at which the next request of a client would be on time."""

    def spend(self, client: str) -> None:
        """Count one request. Raises `TooManyRequests` for a request over the limit, which is not counted."""
        now = self._clock()
        due = max(now, self._due.pop(client, now))
        if (early := due - now - self._ahead) > 0:
            self._due[client] = due
            raise TooManyRequests("too many requests of this client", retry_after=early)
        self._due[client] = due + self._interval
        if len(self._due) > MOST_CLIENTS:
            self._forget(now)

    def _forget(self, now: float) -> None:
        """Drop clients that are on time again, or, if all are busy, the one whose last request is oldest."""
        busy = {client: due for client, due in self._due.items() if due > now}
        if len(busy) > MOST_CLIENTS:
            del busy[next(iter(busy))]
        self._due = busy
