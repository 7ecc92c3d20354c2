"""Who is let in: by which keys, by whose tokens."""

from __future__ import annotations

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.defaults.authentication import (
    JWKS_REFRESH_SECONDS,
    KEY_HEADER,
    PERMISSIONS_CLAIM,
    TOKEN_AUDIENCE,
    TOKEN_HOURS,
    TOKEN_ISSUER,
    VERIFICATION_METHOD,
)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key and what it permits. `secret` is the key, or `sha256:` and its digest. No `namespaces`: all of them."""

    secret: str
    permissions: tuple[str, ...]
    name: str = ""
    namespaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuthSettings:
    """How callers are told apart. Without `enabled` everybody may do everything."""

    enabled: bool = False
    api_key: str = ""
    """One key that permits everything; empty: there is none."""
    api_key_header: str = KEY_HEADER
    api_keys_enabled: bool = False
    api_keys: tuple[ApiKey, ...] = ()
    verification_method: str = VERIFICATION_METHOD
    public_key: str = ""
    public_key_path: str = ""
    private_key: str = ""
    """What `tasker auth generate-token` signs with; a server does not need it."""
    jwks_url: str = ""
    jwks_refresh_seconds: float = float(JWKS_REFRESH_SECONDS)
    jwks_private_addresses: bool = False
    audience: str = TOKEN_AUDIENCE
    issuer: str = TOKEN_ISSUER
    token_hours: int = TOKEN_HOURS
    permissions_claim: str = PERMISSIONS_CLAIM
    strict_validation: bool = True
    log_unknown_permissions: bool = True
