"""Authentication settings: accepted API keys and tokens."""

from __future__ import annotations

from tasker.dataclasses import dataclass
from tasker.settings.http import OrchestrationAuth


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
    api_key_header: str = OrchestrationAuth.api_key_header
    api_keys_enabled: bool = False
    api_keys: tuple[ApiKey, ...] = ()
    verification_method: str = OrchestrationAuth.jwt_verification_method
    public_key: str = ""
    public_key_path: str = ""
    private_key: str = ""
    """Key with which `tasker auth generate-token` signs; a server does not need it."""
    jwks_url: str = ""
    jwks_refresh_seconds: float = float(OrchestrationAuth.jwks_refresh_interval_seconds)
    jwks_private_addresses: bool = False
    audience: str = OrchestrationAuth.jwt_audience
    issuer: str = OrchestrationAuth.jwt_issuer
    token_hours: int = OrchestrationAuth.jwt_token_expiry_hours
    permissions_claim: str = OrchestrationAuth.permissions_claim
    strict_validation: bool = True
    log_unknown_permissions: bool = True
