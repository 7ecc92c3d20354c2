"""Request to an endpoint, and the meaning of its answer."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from functools import cached_property
from urllib.parse import urljoin

import httpx

from tasker.dataclasses import dataclass
from tasker.outgoing import AddressRefused, guarded_async_transport
from tasker_webhooks.table import WebhooksTable, host_problem

REDIRECTIONS = 3
KEPT_METHOD = (307, 308)
GONE = 410
UNTRUSTED = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Context without trusted certificates, for unencrypted connections."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Outcome of a request.

    `error` is empty if it was accepted. `retry`: another attempt makes sense, after `after` seconds if the endpoint
    says so. `gone`: it accepts nothing any more.
    """

    error: str = ""
    retry: bool = True
    after: float | None = None
    gone: bool = False


class Poster:
    """Client that posts bodies. It opens one connection for each request, to the very address that was checked."""

    def __init__(self, settings: WebhooksTable) -> None:
        self._settings = settings

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Post a body and return the outcome; raises nothing but a cancellation."""
        if len(body) > self._settings.payload_limit_bytes:
            limit = self._settings.payload_limit_bytes
            return Answer(f"its body of {len(body)} bytes is larger than payload_limit_bytes ({limit})", retry=False)
        try:
            async with asyncio.timeout(self._settings.timeout_seconds):
                return await self._posted(url, body, headers)
        except TimeoutError:
            return Answer(f"no answer within {self._settings.timeout_seconds:g} s")
        except AddressRefused as error:
            return Answer(str(error))
        except Exception as error:  # an endpoint may answer anything, and no answer may end its sender
            return Answer(f"{type(error).__name__}: {error}".rstrip(": "))

    async def _posted(self, address: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        url = httpx.URL(address)
        for _ in range(REDIRECTIONS + 1):
            status, response_headers = await self._once(url, body, headers)
            if status not in KEPT_METHOD or "location" not in response_headers:
                return _meaning(status, response_headers)
            url = _redirected(url, response_headers["location"])
        return Answer(f"more than {REDIRECTIONS} redirections")

    async def _once(self, url: httpx.URL, body: bytes, headers: Mapping[str, str]) -> tuple[int, httpx.Headers]:
        """Return the status and the headers; the body is not read."""
        self._check(url)
        trusted = self._trusted if url.scheme == "https" else UNTRUSTED
        request = httpx.Request("POST", url, content=body, headers=headers)
        async with guarded_async_transport(self._settings.private_networks, verify=trusted) as transport:
            answer = await transport.handle_async_request(request)
            try:
                return answer.status_code, answer.headers
            finally:
                await answer.aclose()

    @cached_property
    def _trusted(self) -> ssl.SSLContext:
        """Trusted certificates of endpoints. Loaded once, because that blocks the event loop for 20 ms."""
        return httpx.create_ssl_context(trust_env=False)

    def _check(self, url: httpx.URL) -> None:
        if url.scheme != "https" and not (url.scheme == "http" and self._settings.plain_http):
            raise AddressRefused(f"{url.scheme}:// is not permitted (plugins.webhooks.plain_http)")
        if self._settings.hosts and url.host not in self._settings.hosts:
            raise AddressRefused(f"the host {url.host} is not in plugins.webhooks.hosts")
        if problem := host_problem(url.raw_host.decode("ascii"), url.port):
            raise AddressRefused(f"invalid URL {str(url)!r:.200}: {problem}")


def _redirected(url: httpx.URL, location: str) -> httpx.URL:
    try:
        return httpx.URL(urljoin(str(url), location))
    except (httpx.InvalidURL, ValueError) as error:
        raise AddressRefused(f"invalid redirect {location!r:.200}: {error}") from error


def _meaning(status: int, headers: httpx.Headers) -> Answer:
    if 200 <= status < 300:
        return Answer()
    retry_after = headers.get("retry-after", "")
    after = float(retry_after) if retry_after.isascii() and retry_after.isdigit() else None
    return Answer(f"it answered {status}", after=after, gone=status == GONE)
