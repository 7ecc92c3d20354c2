"""Authentication settings: accepted API keys and tokens."""

from __future__ import annotations

from tasker.dataclasses import dataclass
from tasker.settings.defaults import (
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
    """API key and its permissions. `secret` is the key, or `sha256:` and its digest. No `namespaces` means all."""

    secret: str
    permissions: tuple[str, ...]
    name: str = ""
    namespaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuthSettings:
    """Settings of authentication. Unless `enabled`, every caller has every permission."""

    enabled: bool = False
    api_key: str = ""
    """Single key with all permissions; empty for none."""
    api_key_header: str = KEY_HEADER
    api_keys_enabled: bool = False
    api_keys: tuple[ApiKey, ...] = ()
    verification_method: str = VERIFICATION_METHOD
    public_key: str = ""
    public_key_path: str = ""
    private_key: str = ""
    """Key with which `tasker auth generate-token` signs; a server does not need it."""
    jwks_url: str = ""
    jwks_refresh_seconds: float = float(JWKS_REFRESH_SECONDS)
    jwks_private_addresses: bool = False
    audience: str = TOKEN_AUDIENCE
    issuer: str = TOKEN_ISSUER
    token_hours: int = TOKEN_HOURS
    permissions_claim: str = PERMISSIONS_CLAIM
    strict_validation: bool = True
    log_unknown_permissions: bool = True
