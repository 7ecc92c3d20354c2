"""API keys of callers. Only digests are stored: keys are random enough that no slower hash is needed."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from hashlib import sha256

from tasker.contracts.rules.permissions import grants_of
from tasker.errors import NotAuthenticated, UsageError
from tasker.services.authentication.caller import AuthenticatedCaller
from tasker.services.authentication.settings import ApiKey

DIGEST = "sha256:"
_PREFIX, _BYTES = "tk_", 32


def new_key() -> str:
    """Return a new random key."""
    return f"{_PREFIX}{secrets.token_urlsafe(_BYTES)}"


def digest(key: str) -> str:
    """Return the digest of a key, as written into a configuration."""
    return f"{DIGEST}{sha256(key.encode()).hexdigest()}"


class KeyRing:
    """API keys of a configuration. Raises `UsageError` for a key with an unknown permission."""

    def __init__(self, keys: Iterable[ApiKey]) -> None:
        self._keys = [(_digest_of(key.secret), _caller(key)) for key in keys]

    def __len__(self) -> int:
        return len(self._keys)

    def caller(self, key: str) -> AuthenticatedCaller:
        """Return the caller of a key. Raises `NotAuthenticated`. Takes the same time for every key."""
        shown = digest(key).encode()
        matching = [caller for known, caller in self._keys if hmac.compare_digest(known, shown)]
        if not matching:
            raise NotAuthenticated("unknown API key", reason="unknown_key")
        return matching[0]


def _digest_of(secret: str) -> bytes:
    return (secret.lower() if secret.startswith(DIGEST) else digest(secret)).encode()


def _caller(key: ApiKey) -> AuthenticatedCaller:
    grants, unknown = grants_of(key.permissions)
    name = key.name or f"key {_digest_of(key.secret).decode().removeprefix(DIGEST)[:8]}"
    if unknown:
        raise UsageError(
            f"the API key {name!r} has permissions that do not exist: {', '.join(unknown)}",
            hint="`tasker auth show-permissions` lists them",
        )
    return AuthenticatedCaller(name, grants, "api_key", frozenset(key.namespaces) or None)
