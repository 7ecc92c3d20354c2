"""Download of an issuer's keys: only over https or from this machine, and never from a cloud's metadata service."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx
import orjson

from tasker.contracts.addresses import embedded, is_public
from tasker.errors import UsageError

FETCH_SECONDS, MOST_BYTES = 5.0, 1_000_000
LOCAL = ("localhost", "127.0.0.1", "::1")
METADATA = ("metadata", "metadata.google.internal")
HINT = "use the issuer's host name; jwks_private_addresses allows one in a private network"


def checked_url(url: str, *, private: bool = False) -> str:
    """Return the URL if it may be fetched: over https or on this machine, and not a cloud's metadata service.

    A private address is refused unless `private`. Raises `UsageError`.
    """
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOCAL):
        raise UsageError(f"jwks_url must begin with https://: {url}", hint="http is allowed only for this machine")
    if parts.hostname in METADATA:
        raise UsageError(f"jwks_url is the metadata service of a cloud: {url}", hint="use the issuer's host name")
    host = parts.hostname or ""
    if _is_address(host) and not (host in LOCAL or is_allowed_address(host, private)):
        raise UsageError(f"jwks_url is a private address: {url}", hint=HINT)
    return url


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_allowed_address(address: str, private: bool) -> bool:
    """Return True for a public address, or with `private` one of a private network; never a link-local one.

    Link-local addresses are refused because clouds serve their secrets there.
    """
    found = ipaddress.ip_address(address)
    return is_public(found) or (private and not embedded(found).is_link_local)


async def fetched(url: str, *, private: bool = False) -> Any:
    """Fetch the JSON document of a URL from a checked address.

    Redirects are not followed, because they may lead to a URL that `checked_url` refuses. Raises `UsageError` for a
    host name that resolves to a forbidden address.
    """
    try:
        async with asyncio.timeout(FETCH_SECONDS):
            return orjson.loads(await _body(url, private))
    except (TimeoutError, httpx.TimeoutException):
        raise TimeoutError(f"no complete response within {FETCH_SECONDS:g} seconds") from None


async def _body(url: str, private: bool) -> bytes:
    target, extensions = await _pinned(httpx.URL(url), private)
    client = httpx.AsyncClient(timeout=FETCH_SECONDS, follow_redirects=False)
    headers = {"Host": httpx.URL(url).netloc.decode()}
    async with client, client.stream("GET", target, headers=headers, extensions=extensions) as answer:
        answer.raise_for_status()
        body = bytearray()
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > MOST_BYTES:
                raise ValueError(f"more than {MOST_BYTES} bytes")
    return bytes(body)


async def _pinned(url: httpx.URL, private: bool) -> tuple[httpx.URL, dict[str, str]]:
    """Return the URL with the resolved address in place of the host name, and the name for TLS.

    The fixed address prevents a second look-up from leading elsewhere. A proxy resolves names itself and is responsible
    for its targets.
    """
    if url.host in LOCAL or (url.scheme in getproxies() and not proxy_bypass(url.host)):
        return url, {}
    found = await asyncio.get_running_loop().getaddrinfo(url.host, url.port or 443, type=socket.SOCK_STREAM)
    addresses = [str(each[4][0]).partition("%")[0] for each in found]
    if refused := [each for each in addresses if not is_allowed_address(each, private)]:
        raise UsageError(f"{url.host} of jwks_url resolves to {refused[0]}, a private address", hint=HINT)
    return url.copy_with(host=addresses[0]), {"sni_hostname": url.host}
