"""Keys that verify tokens: RSA keys from files, and those that an issuer publishes (JWKS)."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx
import orjson

from tasker.errors import NotAuthenticated, UsageError
from tasker.public_addresses import embedded, is_public

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

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
    ip = ipaddress.ip_address(address)
    return is_public(ip) or (private and not embedded(ip).is_link_local)


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
    records = await asyncio.get_running_loop().getaddrinfo(url.host, url.port or 443, type=socket.SOCK_STREAM)
    addresses = [str(record[4][0]).partition("%")[0] for record in records]
    if refused := [address for address in addresses if not is_allowed_address(address, private)]:
        raise UsageError(f"{url.host} of jwks_url resolves to {refused[0]}, a private address", hint=HINT)
    return url.copy_with(host=addresses[0]), {"sni_hostname": url.host}


LEAST_BITS = 2048


def generate(bits: int) -> tuple[str, str]:
    """Return a new key pair as PEM: the private key and the public key."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    made = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    pem = serialization.Encoding.PEM
    private = made.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    public = made.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


def public_key(pem: str, where: str) -> RSAPublicKey:
    """Load a public key. Raises `UsageError` for an invalid one or less than 2,048 bits; `where` names the text."""
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(pem.encode())
    except ValueError:
        raise UsageError(
            f"{where} is not a public key", hint="expected PEM: `tasker auth generate-keys` makes a pair"
        ) from None
    if not isinstance(key, RSAPublicKey):
        raise UsageError(f"{where} is not an RSA key", hint="tokens are signed with RS256")
    require_strong(key.key_size, where)
    return key


def private_key(pem: str, where: str) -> RSAPrivateKey:
    """Load a private key; see `public_key`. A key with a password is refused."""
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem.encode(), None)
    except (ValueError, TypeError):
        raise UsageError(
            f"{where} is not a private key without a password",
            hint="expected PEM: `tasker auth generate-keys` makes a pair",
        ) from None
    if not isinstance(key, RSAPrivateKey):
        raise UsageError(f"{where} is not an RSA key", hint="tokens are signed with RS256")
    require_strong(key.key_size, where)
    return key


def require_strong(bits: int, where: str) -> None:
    """Raise `UsageError` for a key of less than 2,048 bits."""
    if bits < LEAST_BITS:
        raise UsageError(f"{where} has {bits} bits", hint=f"use a key of at least {LEAST_BITS} bits")


AGAIN_SECONDS = 10.0
"""Minimum time between two requests to the issuer, for any number of unknown key ids from clients."""
_log = logging.getLogger("tasker.api")
Fetch = Callable[[str], Awaitable[Any]]


class VerificationKeys(Protocol):
    """Source of the keys that verify tokens."""

    async def key(self, key_id: str | None) -> RSAPublicKey:
        """Return the key that verifies tokens with that `kid`. Raises `NotAuthenticated`."""
        ...


class OneKey:
    """Single key from the configuration, used for every token."""

    def __init__(self, key: RSAPublicKey) -> None:
        self._key = key

    async def key(self, key_id: str | None) -> RSAPublicKey:
        return self._key


class PublishedKeys:
    """Keys fetched from a URL, again after `refresh_seconds` and when a token has an unknown `kid`.

    A request with a known key does not wait for a refresh, unless the keys are older than twice `refresh_seconds`.
    While the issuer cannot be reached, the previous keys stay valid. Raises `UsageError` for a URL that must not be
    fetched.
    """

    def __init__(
        self, url: str, refresh_seconds: float, fetch: Fetch | None = None, *, private_addresses: bool = False
    ) -> None:
        self._url, self._refresh_seconds = checked_url(url, private=private_addresses), refresh_seconds
        self._fetch = fetch or partial(fetched, private=private_addresses)
        self._keys: Mapping[str, RSAPublicKey] = {}
        self._asked: float | None = None
        self._failure = ""
        self._refreshing: asyncio.Task[None] | None = None

    async def key(self, key_id: str | None) -> RSAPublicKey:
        """Return the published key of that id. Raises `NotAuthenticated`."""
        if key_id is None:
            raise NotAuthenticated("Invalid token: it does not name its key (kid)")
        if key_id not in self._keys:
            if self._is_due(AGAIN_SECONDS):
                await asyncio.shield(self._refresh())
        elif self._is_due(AGAIN_SECONDS if self._failure else self._refresh_seconds):
            refreshing = self._refresh()
            if not self._failure and self._is_due(2 * self._refresh_seconds):
                await asyncio.shield(refreshing)
        if key_id not in self._keys:
            raise NotAuthenticated("Invalid token: signing key not found at the issuer")
        return self._keys[key_id]

    def _is_due(self, seconds: float) -> bool:
        return self._asked is None or monotonic() - self._asked >= seconds

    def _refresh(self) -> asyncio.Task[None]:
        """Return the running fetch, or start a new one."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._fetched(), name="keys of the issuer")
        return self._refreshing

    async def _fetched(self) -> None:
        failure = ""
        try:
            self._keys = keys_in(await self._fetch(self._url))
        except (httpx.HTTPError, OSError, ValueError, UsageError) as error:
            failure = f"{type(error).__name__}: {error}"
        finally:
            self._asked = monotonic()
        if failure and failure != self._failure:
            _log.warning("issuer_keys_unavailable url=%s keys_in_use=%d: %s", self._url, len(self._keys), failure)
        elif self._failure and not failure:
            _log.info("issuer_keys_available url=%s", self._url)
        self._failure = failure


def keys_in(document: Any) -> dict[str, RSAPublicKey]:
    """Return the RSA keys of a document that verify signatures, by their id.

    Other keys are ignored; a weak, private or malformed one is ignored with a warning.
    """
    entries = document.get("keys") if isinstance(document, Mapping) else None
    if not isinstance(entries, list):
        raise ValueError("not a JSON Web Key Set: no list of `keys`")
    keys: dict[str, RSAPublicKey] = {}
    for entry in filter(_signs, entries):
        try:
            keys[entry["kid"]] = _key(entry)
        except (ValueError, TypeError, UsageError) as error:
            _log.warning("issuer_key_ignored kid=%r: %s", entry["kid"], error)
    return keys


def _signs(entry: Any) -> bool:
    expected = {"kty": "RSA", "use": "sig", "alg": "RS256"}
    named = isinstance(entry, dict) and isinstance(entry.get("kid"), str)
    return named and all(entry.get(name, want) == want for name, want in expected.items())


def _key(entry: Mapping[str, Any]) -> RSAPublicKey:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from jwt.algorithms import RSAAlgorithm
    from jwt.exceptions import InvalidKeyError

    try:
        key = RSAAlgorithm.from_jwk(dict(entry))
    except InvalidKeyError as error:
        raise ValueError(str(error)) from None
    if not isinstance(key, RSAPublicKey):
        raise ValueError("the issuer published a private key")
    require_strong(key.key_size, f"the key {entry['kid']}")
    return key
