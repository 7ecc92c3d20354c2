"""Authentication of callers by JWT or API key, as configured."""

from __future__ import annotations

import hmac
import logging
import secrets
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from tasker.errors import NotAuthenticated, UsageError
from tasker.operations.permissions import grants_of
from tasker.server.auth.caller import AuthenticatedCaller
from tasker.server.auth.tokens import TokenReader
from tasker.server.auth.verification_keys import OneKey, PublishedKeys, VerificationKeys, public_key
from tasker.settings.http import ApiKeyEntry, Auth

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

    def __init__(self, keys: Iterable[ApiKeyEntry]) -> None:
        self._keys = [(_digest_of(key.key), _caller(key)) for key in keys]

    def __len__(self) -> int:
        return len(self._keys)

    def caller(self, key: str) -> AuthenticatedCaller:
        """Return the caller of a key. Raises `NotAuthenticated`. Takes the same time for every key."""
        key_digest = digest(key).encode()
        matching = [caller for known, caller in self._keys if hmac.compare_digest(known, key_digest)]
        if not matching:
            raise NotAuthenticated("unknown API key", reason="unknown_key")
        return matching[0]


def _digest_of(secret: str) -> bytes:
    return (secret.lower() if secret.startswith(DIGEST) else digest(secret)).encode()


def _caller(key: ApiKeyEntry) -> AuthenticatedCaller:
    grants, unknown = grants_of(key.permissions)
    name = key.name or key.description or f"key {_digest_of(key.key).decode().removeprefix(DIGEST)[:8]}"
    if unknown:
        raise UsageError(
            f"the API key {name!r} has permissions that do not exist: {', '.join(unknown)}",
            hint="`tasker auth show-permissions` lists them",
        )
    where, tenants = frozenset(key.namespaces) or None, frozenset(key.tenants) or None
    return AuthenticatedCaller(name, grants, "api_key", where, tenants=tenants)


_log = logging.getLogger("tasker.api")
NO_CREDENTIALS = (
    "authentication is enabled, but no credentials are configured: neither an API key nor a key to verify tokens"
)
HOW = "set jwt_public_key_path, or jwks_url, or api_key, or api_keys_enabled and api_keys; or turn `enabled` off"


class Authenticator:
    """Authenticator of requests. Raises `UsageError` for a configuration that is invalid or lets no caller in."""

    def __init__(self, settings: Auth) -> None:
        self.settings = settings
        self.keys = KeyRing(_keys(settings))
        source = verification_keys(settings)
        self._tokens = None if source is None else TokenReader(source, settings)
        if self._tokens is None and not self.keys:
            raise UsageError(NO_CREDENTIALS, hint=f"in [orchestration.web.auth] {HOW}")

    @property
    def methods(self) -> str:
        """Accepted credentials, in words."""
        tokens = ["tokens (RS256)"] if self._tokens else []
        count = len(self.keys)
        return " and ".join([*tokens, *([f"{count} API {'key' if count == 1 else 'keys'}"] if count else [])])

    async def caller(self, authorization: str | None, key: str | None) -> AuthenticatedCaller:
        """Return the caller for the `Authorization` header and the API key header. Raises `NotAuthenticated`."""
        if authorization:
            scheme, _, token = authorization.partition(" ")
            if scheme.lower() != "bearer" or not token.strip():
                raise NotAuthenticated("the header Authorization is not `Bearer TOKEN`", reason="malformed")
            if self._tokens is None:
                hint = f"send {self.settings.api_key_header}"
                raise NotAuthenticated("this server does not accept tokens", reason="not_taken", hint=hint)
            return await self._tokens.caller(token.strip())
        if key:
            return self.keys.caller(key)
        raise NotAuthenticated(
            "Missing authentication credentials",
            reason="missing",
            hint=f"send Authorization: Bearer TOKEN, or {self.settings.api_key_header}: KEY",
        )


def _keys(settings: Auth) -> list[ApiKeyEntry]:
    single = [ApiKeyEntry(key=settings.api_key, permissions=("*",), name="api_key")] if settings.api_key else []
    if settings.api_keys and not settings.api_keys_enabled:
        _log.warning("orchestration.web.auth.api_keys are not used: api_keys_enabled is false")
    return [*single, *(settings.api_keys if settings.api_keys_enabled else ())]


def verification_keys(settings: Auth) -> VerificationKeys | None:
    """Return the source of keys that verify tokens, or None if none is configured. Raises `UsageError`."""
    if settings.jwt_verification_method == "jwks":
        if not settings.jwks_url:
            raise UsageError("jwt_verification_method is jwks, but jwks_url is not set", hint="set jwks_url")
        return PublishedKeys(
            settings.jwks_url, settings.jwks_refresh_interval_seconds, private_addresses=settings.jwks_private_addresses
        )
    if settings.jwt_public_key_path:
        where = f"jwt_public_key_path ({settings.jwt_public_key_path})"
        return OneKey(public_key(read(settings.jwt_public_key_path, where), where))
    return OneKey(public_key(settings.jwt_public_key, "jwt_public_key")) if settings.jwt_public_key else None


def read(path: str, where: str) -> str:
    """Return the text of a file. Raises `UsageError`."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text"
        raise UsageError(f"{where} cannot be read: {reason}", hint="name a PEM file") from None
