"""Resource of the kind `http`: a service at one base URL, over connections to permitted addresses."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Any
from urllib.parse import unquote

import httpx

from tasker.errors import ConfigurationError, PermanentError
from tasker.outgoing import guarded_transport
from tasker.resources.tables import networks_of, number_of, refuse_unknown, revealed

LIMIT_SECONDS = 20
"""Default limit of a request: below that of a step, so that a request ends before its step is stopped."""
LARGEST_BODY = 10 * 1024 * 1024
"""Largest response in bytes."""
OWN_HEADERS = frozenset(("host", "content-length", "transfer-encoding", "connection"))
"""Headers of requests that only the client sets."""


class HttpResource:
    """Client of one service. `client` is an `httpx.Client` with its base URL, headers and authentication."""

    kind = "http"

    def __init__(self, base_url: str, *, transport: httpx.BaseTransport, limit: float, **options: Any) -> None:
        self._base, self._limit = httpx.URL(base_url), limit
        self.client = httpx.Client(
            base_url=base_url, transport=transport, timeout=limit, follow_redirects=False, **options
        )

    def send(self, method: str, path: str, *, seconds: float | None = None, **content: Any) -> httpx.Response:
        """Send a request and return the response with its body read, or an error of httpx.

        `seconds` bounds the whole exchange, as `timeout_seconds` does. Raises `PermanentError` for a path that leaves
        the base URL, for a header that is the client's own, and for a body of more than `LARGEST_BODY` bytes.
        """
        url = self._url(path)
        for name, value in (content.get("headers") or {}).items():
            if name.lower() in OWN_HEADERS:
                raise PermanentError(
                    f"the header {name!r} is set by the client: remove it", error_code="invalid_inputs"
                )
            if not (f"{name}{value}".isascii() and f"{name}{value}".isprintable()):
                raise PermanentError(f"the header {name!r} has characters beyond ASCII", error_code="invalid_inputs")
        limit = self._limit if seconds is None else min(seconds, self._limit)
        ends = monotonic() + limit
        with self.client.stream(method, url, timeout=limit, **content) as response:
            body = bytearray()
            for part in response.iter_bytes():
                body += part
                if len(body) > LARGEST_BODY:
                    message = f"the response has more than {LARGEST_BODY:,} bytes"
                    raise PermanentError(message, error_code="response_too_large")
                if monotonic() > ends:
                    raise httpx.ReadTimeout(f"not complete within {limit:g} seconds", request=response.request)
            response._content = bytes(body)
            return response

    def is_inside(self, url: httpx.URL) -> bool:
        """Return True if the URL is below the base URL, by the same scheme, host and port."""
        base = self._base.path.rstrip("/") + "/"
        same = (url.scheme, url.host, url.port) == (self._base.scheme, self._base.host, self._base.port)
        return same and not url.userinfo and (url.path + "/").startswith(base)

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def _url(self, path: str) -> httpx.URL:
        absolute = "://" in path.partition("?")[0]
        url = httpx.URL(path) if absolute else self._base.copy_with(raw_path=self._raw(path))
        if not self.is_inside(url) or ".." in unquote(url.path).replace("\\", "/").split("/"):
            raise PermanentError(f"the path leaves the base URL {self._base}", error_code="invalid_inputs")
        return url

    def _raw(self, path: str) -> bytes:
        if "?" in path or "#" in path:
            message = "the path contains `?` or `#`: write parameters in `query`"
            raise PermanentError(message, error_code="invalid_inputs")
        return httpx.URL(self._base.path.rstrip("/") + "/" + path.lstrip("/")).raw_path


def make_http(settings: Mapping[str, Any]) -> HttpResource:
    """Make the resource of a table. Raises `ConfigurationError`."""
    refuse_unknown("http", settings)
    base = settings.get("base_url")
    try:
        url = httpx.URL(base if isinstance(base, str) else "")
    except httpx.InvalidURL as error:
        raise ConfigurationError(f"base_url: {error}") from None
    if url.scheme not in ("http", "https") or not url.host or not isinstance(base, str):
        raise ConfigurationError(f"base_url: expected a URL of http or https, got {base!r}")
    if url.userinfo or url.query or url.fragment:
        raise ConfigurationError("base_url: expected no user, query or fragment", hint="write basic = {user, password}")
    headers = {name: revealed(value) for name, value in settings.get("headers", {}).items()}
    if "bearer" in settings:
        headers["authorization"] = f"Bearer {revealed(settings['bearer'])}"
    basic = settings.get("basic")
    return HttpResource(
        base,
        transport=guarded_transport(networks_of(settings), connections=int(number_of(settings, "connections", 10))),
        limit=number_of(settings, "timeout_seconds", LIMIT_SECONDS),
        headers=headers,
        auth=httpx.BasicAuth(revealed(basic["user"]), revealed(basic["password"])) if basic else None,
    )
