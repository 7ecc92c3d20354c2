"""HTTP settings of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.app.configured.unset import is_set
from tasker.process.http_settings import HttpPool, HttpSettings, PortSettings
from tasker.settings.authentication import ApiKey, AuthSettings

if TYPE_CHECKING:
    from tasker.settings.http import OrchestrationAuth, WorkerAuth
    from tasker.settings.model import Settings


def http_settings(settings: Settings) -> HttpSettings:
    """Return the settings of `tasker server`. The address counts only if set: the default accepts remote hosts."""
    web = settings.orchestration.web
    pools = web.database_pools
    return HttpSettings(
        enabled=web.enabled,
        bind_address=web.bind_address if is_set(web, "bind_address") else None,
        request_seconds=web.request_timeout_ms / 1000,
        config_endpoint=web.config_endpoint_enabled,
        root_path=web.root_path.rstrip("/"),
        cors_origins=web.cors_origins,
        trusted_hosts=web.trusted_hosts,
        body_bytes=web.max_body_bytes,
        streams=web.max_streams,
        requests_per_second=web.requests_per_second,
        request_burst=web.request_burst,
        connections_per_client=web.max_connections_per_client,
        tls_certificate_path=web.tls_certificate_path,
        tls_key_path=web.tls_key_path,
        pool=HttpPool(
            max_connections=pools.web_api_max_connections,
            min_connections=pools.web_api_pool_size,
            acquire_timeout=pools.web_api_connection_timeout_seconds,
            idle_timeout=pools.web_api_idle_timeout_seconds,
            total_hint=pools.max_total_connections_hint,
        ),
        auth=_auth(web.auth),
    )


def worker_port(settings: Settings) -> PortSettings:
    """Return the port settings of each worker; without an address there is no port."""
    web = settings.worker.web
    return PortSettings(
        enabled=web.enabled,
        bind_address=web.bind_address if is_set(web, "bind_address") else None,
        request_seconds=web.request_timeout_ms / 1000,
        config_endpoint=web.config_endpoint_enabled,
        tls_certificate_path=web.tls_certificate_path,
        tls_key_path=web.tls_key_path,
        auth=_auth(web.auth),
    )


def _auth(auth: OrchestrationAuth | WorkerAuth) -> AuthSettings:
    keys = [
        ApiKey(api_key.key, api_key.permissions, api_key.name or api_key.description, api_key.namespaces)
        for api_key in auth.api_keys
    ]
    return AuthSettings(
        enabled=auth.enabled,
        api_key=auth.api_key,
        api_key_header=auth.api_key_header,
        api_keys_enabled=auth.api_keys_enabled,
        api_keys=tuple(keys),
        verification_method=auth.jwt_verification_method,
        public_key=auth.jwt_public_key,
        public_key_path=auth.jwt_public_key_path,
        private_key=auth.jwt_private_key,
        jwks_url=auth.jwks_url,
        jwks_private_addresses=auth.jwks_private_addresses,
        jwks_refresh_seconds=auth.jwks_refresh_interval_seconds,
        audience=auth.jwt_audience,
        issuer=auth.jwt_issuer,
        token_hours=auth.jwt_token_expiry_hours,
        permissions_claim=auth.permissions_claim,
        strict_validation=auth.strict_validation,
        log_unknown_permissions=auth.log_unknown_permissions,
    )
