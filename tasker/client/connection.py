"""Requests to one server; those that are safe to repeat are retried."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from tasker.client.errors import error_of, stranger
from tasker.client.servers import ServerAddress
from tasker.clock import BackoffPolicy
from tasker.dataclasses import dataclass
from tasker.errors import NotTasker, RequestTimeout, ServerUnreachable, TaskerError, UsageError
from tasker.json_values import encode
from tasker.settings.defaults import CLIENT_TIMEOUT_MS
from tasker.version import __version__

SPREAD = 0.2


@dataclass(frozen=True, slots=True)
class Retries:
    """Retry policy: a repeatable request is sent up to `attempts` times, with a pause in seconds that doubles.

    A `Retry-After` of the server is respected, unless it is longer than `patience_seconds`: then the error is raised at
    once.
    """

    attempts: int = 4
    first_seconds: float = 0.2
    longest_seconds: float = 5.0
    patience_seconds: float = 30.0

    def pause(self, failures: int, asked_for: float | None, chance: float) -> float | None:
        """Return the seconds until the next attempt after `failures` failures, or None to stop.

        `chance` from 0 to 1 is the jitter; `asked_for` is the server's `Retry-After` in seconds.
        """
        if failures >= self.attempts or (asked_for or 0.0) > self.patience_seconds:
            return None
        backoff = BackoffPolicy(self.first_seconds, self.longest_seconds, SPREAD).pause(failures - 1, chance)
        return max(backoff, asked_for or 0.0)


NEVER = Retries(attempts=1)


AGAIN = frozenset({429, 502, 503, 504})
"""Response statuses after which the same request may succeed."""
CONNECT_SECONDS = 5.0
KEPT = 8
"""Maximum number of idle connections that stay open."""
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
ABSENT = "check that the server runs (tasker server) and that the URL is right"
CUT = "the server was stopped or the connection was lost: try again"
SLOW = "check the load of the server, or increase the timeout of the client"
TRUST = "give the CA certificate (--ca-file of a profile, TASKER_CA_FILE), or check that the server uses https"
UNKNOWN = "the request may have been carried out: check before you repeat it"


class HttpConnection:
    """Connection pool to one server.

    `timeout` is the limit for a response in seconds; the time for which a request asks the server to wait is added to
    it. The first request connects; `close` closes the connections. `transport` replaces the network.
    """

    def __init__(
        self,
        server: ServerAddress,
        *,
        timeout: float = CLIENT_TIMEOUT_MS / 1000,
        retries: Retries | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.server, self._timeout, self._retries = server, timeout, retries or Retries()
        self._client = httpx.AsyncClient(
            headers={"Accept": "application/json", "User-Agent": f"tasker/{__version__}", **server.headers()},
            verify=server.trust(),
            timeout=self._seconds(0.0),
            limits=httpx.Limits(max_keepalive_connections=KEPT),
            transport=transport,
        )

    async def close(self) -> None:
        """Close the connections. Calling it twice is allowed."""
        await self._client.aclose()

    async def get(self, path: str, params: Mapping[str, Any] | None = None, *, waits: float = 0.0) -> Any:
        """Send a GET request, with retries, and return the response. The server may wait for up to `waits` seconds."""
        return await self.send("GET", path, params=params, waits=waits, repeatable=True)

    async def send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        again: Any = None,
        waits: float = 0.0,
        repeatable: bool = False,
    ) -> Any:
        """Send a request and return the response as parsed JSON, or as text if it is plain text.

        The request is sent once unless it is `repeatable`; a request that never reached the server is always retried. A
        retry sends the body `again` if there is one.

        Raises the error of the server, as `tasker.App` raises it; `ServerUnreachable`, `RequestTimeout`, `NotTasker`.
        """
        failures = 0
        while True:
            try:
                return await self._send(method, path, params, again if failures and again is not None else body, waits)
            except _Failed as failed:
                failures += 1
                may = repeatable or failed.never_sent
                pause = self._retries.pause(failures, failed.error.retry_after, random.random()) if may else None
                if pause is None or not failed.passing:
                    raise _with_hint(failed, changes=not repeatable) from failed.__cause__
            await asyncio.sleep(pause)

    @asynccontextmanager
    async def stream(self, path: str, headers: Mapping[str, str], quiet: float) -> AsyncIterator[httpx.Response]:
        """Open a streaming response; `quiet` seconds without data count as a lost connection.

        Raises the errors of `send`, also while the stream is read.
        """
        timeout = httpx.Timeout(self._timeout, connect=CONNECT_SECONDS, read=quiet)
        try:
            async with self._client.stream("GET", self.server.url + path, headers=headers, timeout=timeout) as answer:
                if answer.status_code not in (200, 204):
                    await answer.aread()
                    self._content(answer)
                yield answer
        except httpx.HTTPError as error:
            raise self._unanswered(error).error from error
        except _Failed as failed:
            raise failed.error from None

    async def _send(self, method: str, path: str, params: Mapping[str, Any] | None, body: Any, waits: float) -> Any:
        content = None if body is None else encode(body).text
        headers = {} if body is None else {"Content-Type": "application/json"}
        query = {name: value for name, value in (params or {}).items() if value is not None}
        try:
            answer = await self._client.request(
                method,
                self.server.url + path,
                params=query,
                content=content,
                headers=headers,
                timeout=self._seconds(waits),
            )
        except httpx.HTTPError as error:
            raise self._unanswered(error) from error
        except (httpx.InvalidURL, UnicodeEncodeError) as error:
            raise UsageError(f"{self.server.url}{path} request failed: {error}") from None
        return self._content(answer)

    def _content(self, answer: httpx.Response) -> Any:
        """Return the response as parsed JSON or text. Raises `_Failed`."""
        kind = answer.headers.get("content-type", "")
        data = _json(answer) if "json" in kind else None
        wait = _retry_after(answer.headers.get("retry-after"))
        if answer.status_code >= 400 and isinstance(data, dict) and "code" in data and "detail" in data:
            raise _Failed(error_of(answer.status_code, data, wait), passing=answer.status_code in AGAIN)
        if answer.is_success and kind.startswith("application/json") and data is not None:
            return data
        if answer.is_success and (kind.startswith("text/plain") or answer.status_code == 204):
            return answer.text
        location = answer.headers.get("location")
        error = stranger(self.server.url, answer.status_code, kind, location, wait)
        raise _Failed(error, passing=answer.status_code in AGAIN)

    def _unanswered(self, error: httpx.HTTPError) -> _Failed:
        """Return the error for a missing or incomplete response."""
        url, never_sent = self.server.url, isinstance(error, NEVER_SENT)
        if never_sent and "SSL" in _reason(error):
            untrusted = ServerUnreachable(f"{url}: certificate verification failed: {_reason(error)}", hint=TRUST)
            return _Failed(untrusted, passing=False, never_sent=True)
        if isinstance(error, httpx.TimeoutException) and not never_sent:  # no retry: the request used all of its time
            seconds = error.request.extensions["timeout"]["read"]
            late = RequestTimeout(f"{url} did not answer within {seconds:g} seconds", hint=SLOW)
            return _Failed(late, passing=False)
        if never_sent or isinstance(error, httpx.ProxyError):
            absent = ServerUnreachable(f"{url} cannot be reached: {_reason(error)}", hint=ABSENT)
            return _Failed(absent, passing=True, never_sent=never_sent)
        if isinstance(error, httpx.TransportError):
            return _Failed(
                ServerUnreachable(f"{url} closed the connection during the response: {_reason(error)}", hint=CUT),
                passing=True,
            )
        return _Failed(NotTasker(f"{url} sent an invalid response: {_reason(error)}"), passing=False)

    def _seconds(self, waits: float) -> httpx.Timeout:
        return httpx.Timeout(self._timeout + waits, connect=CONNECT_SECONDS)


class _Failed(Exception):
    """Failure of one request. `passing`: a retry may succeed; `never_sent`: the request did not reach the server."""

    def __init__(self, error: TaskerError, *, passing: bool, never_sent: bool = False) -> None:
        super().__init__(error.message)
        self.error, self.passing, self.never_sent = error, passing, never_sent


def _with_hint(failed: _Failed, *, changes: bool) -> TaskerError:
    """Return the error; for a change whose outcome is unknown the hint says so."""
    error = failed.error
    if changes and not failed.never_sent and isinstance(failed.__cause__, httpx.TransportError):
        error.hint = UNKNOWN
    return error


def _json(answer: httpx.Response) -> Any:
    try:
        return json.loads(answer.content)
    except ValueError:
        return None


def _retry_after(header: str | None) -> float | None:
    """Parse a `Retry-After` header into seconds; None if it is neither a number nor a date."""
    if header is None:
        return None
    if header.strip().isdecimal():
        return float(header)
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def _reason(error: Exception) -> str:
    """Return the first line of the error's message, or the name of its class if it has none."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
