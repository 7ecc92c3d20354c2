"""Keys that verify tokens: one from the configuration, or those published by an issuer (JWKS)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

import httpx

from tasker.errors import NotAuthenticated, UsageError
from tasker.services.authentication.issuer import checked_url, fetched
from tasker.services.authentication.rsa_keys import require_strong

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

AGAIN_SECONDS = 10.0
"""Minimum time between two requests to the issuer, whatever unknown key ids clients send."""
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
    wanted = {"kty": "RSA", "use": "sig", "alg": "RS256"}
    named = isinstance(entry, dict) and isinstance(entry.get("kid"), str)
    return named and all(entry.get(name, want) == want for name, want in wanted.items())


def _key(entry: Mapping[str, Any]) -> RSAPublicKey:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from jwt.algorithms import RSAAlgorithm
    from jwt.exceptions import InvalidKeyError

    try:
        found = RSAAlgorithm.from_jwk(dict(entry))
    except InvalidKeyError as error:
        raise ValueError(str(error)) from None
    if not isinstance(found, RSAPublicKey):
        raise ValueError("the issuer published a private key")
    require_strong(found.key_size, f"the key {entry['kid']}")
    return found
