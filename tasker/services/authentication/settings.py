"""Who is let in: by which keys, by whose tokens."""

from __future__ import annotations

from dataclasses import dataclass

KEY_HEADER = "X-API-Key"


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
    verification_method: str = "public_key"
    public_key: str = ""
    public_key_path: str = ""
    private_key: str = ""
    """What `tasker auth generate-token` signs with; a server does not need it."""
    jwks_url: str = ""
    jwks_refresh_seconds: float = 3600.0
    jwks_private_addresses: bool = False
    audience: str = "tasker-api"
    issuer: str = "tasker-core"
    token_hours: int = 24
    permissions_claim: str = "permissions"
    strict_validation: bool = True
    log_unknown_permissions: bool = True
