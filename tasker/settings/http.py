"""`*.web`, `*.grpc`, `worker.orchestration_client`: servers and clients on the network."""

from __future__ import annotations

from typing import Literal

from tasker.settings.defaults import CLIENT_TIMEOUT_MS, KEY_HEADER
from tasker.settings.formats import Address, GrantText, HeaderName, HostName, KeySecret, Origin, RootPath, WebUrl
from tasker.settings.table import Table, choice, flag, several, table, text, whole


class ApiKeyEntry(Table):
    """API key. Empty `permissions`: authenticated, but without permissions. Empty `namespaces` or `tenants`: all."""

    key: KeySecret
    permissions: tuple[GrantText, ...] = several((), "Permissions of the key.")
    description: str = ""
    name: str = ""
    namespaces: tuple[str, ...] = several((), "Where.")
    tenants: tuple[str, ...] = several((), "Tenants whose tasks the key may access.")


class Auth(Table):
    """Authentication of callers."""

    enabled: bool = flag(False, "Require authentication.", live=False)
    api_key: str = text("", "A key with all permissions, or `sha256:` and its digest.", shortest=0)
    api_key_header: HeaderName = text(KEY_HEADER, "Header that carries the key.", live=False)
    api_keys_enabled: bool = flag(False, "Accept the keys of `api_keys`.")
    api_keys: tuple[ApiKeyEntry, ...] = several(
        (),
        "Keys with permissions of their own, each a table `[[...api_keys]]` with `key` (or `sha256:` and its "
        "digest), "
        "`permissions`, and perhaps `name`, `description`, `namespaces`, `tenants`; "
        "`tasker auth create-api-key` makes one.",
    )
    jwt_private_key: str = text("", "Private key that `tasker auth generate-token` signs with (PEM).", shortest=0)
    jwt_public_key: str = text(
        "", "Public key that verifies tokens (PEM).", shortest=0, variable="TASKER_JWT_PUBLIC_KEY"
    )
    jwt_public_key_path: str = text(
        "",
        "File with that key; overrides the text.",
        shortest=0,
        variable="TASKER_JWT_PUBLIC_KEY_PATH",
    )
    jwt_verification_method: Literal["public_key", "jwks"] = choice(
        "public_key", "Verify tokens with that key, or with the keys published at `jwks_url`."
    )
    jwks_url: str = text("", "URL at which the token issuer publishes its keys (https).", shortest=0)
    jwks_private_addresses: bool = flag(False, "Allow the issuer's host name to resolve to a private address.")
    jwks_refresh_interval_seconds: int = whole(
        3600,
        10,
        86_400,
        "Interval between fetches of the keys; a token with an unknown key triggers one earlier.",
    )
    jwt_token_expiry_hours: int = whole(24, 1, 720, "Lifetime of a token that `tasker auth generate-token` makes.")
    permissions_claim: str = text("permissions", "Token claim that lists the permissions.")
    strict_validation: bool = flag(True, "Reject a token with an unknown permission; off: ignore that permission.")
    log_unknown_permissions: bool = flag(True, "Log a warning when a permission is ignored.")
    jwt_audience: str = text("tasker-api", "The `aud` of a token.")
    jwt_issuer: str = text("tasker-core", "The `iss` of a token.")


class OrchestrationAuth(Auth):
    """Authentication of an orchestrator's callers."""


class WorkerAuth(Auth):
    """Authentication of a worker's callers."""

    jwt_audience: str = text("worker-api", "The `aud` of a token.")
    jwt_issuer: str = text("tasker-worker", "The `iss` of a token.")


_SIZE, _MOST, _WAIT = (
    "Connections kept open for requests.",
    "Maximum number of connections for requests.",
    "Maximum wait for a connection.",
)
_IDLE, _HINT = (
    "Idle time after which a connection is closed.",
    "Expected number of connections of the whole fleet; `tasker doctor` reports more. Not a limit.",
)


class OrchestrationPools(Table):
    """Database connections reserved for requests, so that requests cannot starve the engine."""

    web_api_pool_size: int = whole(20, 1, 200, _SIZE)
    web_api_max_connections: int = whole(30, 1, 500, _MOST)
    web_api_connection_timeout_seconds: int = whole(30, 1, 300, _WAIT)
    web_api_idle_timeout_seconds: int = whole(600, 1, 3600, _IDLE)
    max_total_connections_hint: int = whole(50, 1, 1000, _HINT)


class WorkerPools(OrchestrationPools):
    """Database connections reserved for a worker's requests; a worker gets fewer requests."""

    web_api_pool_size: int = whole(10, 1, 200, _SIZE)
    web_api_max_connections: int = whole(15, 1, 500, _MOST)
    max_total_connections_hint: int = whole(25, 1, 1000, _HINT)


class Web(Table):
    """HTTP server of a process."""

    enabled: bool = flag(True, "Off: `tasker server` refuses to start.")
    request_timeout_ms: int = whole(30_000, 100, 300_000, "Time limit of one request; then 408.")
    config_endpoint_enabled: bool = flag(False, "Serve GET /config, without secrets.")
    tls_certificate_path: str = text(
        "",
        "File with the certificate chain of the process (PEM); enables https.",
        shortest=0,
    )
    tls_key_path: str = text("", "File with its private key (PEM, without a password).", shortest=0)


class OrchestrationWeb(Web):
    """HTTP server of an orchestrator."""

    bind_address: Address = text(
        "0.0.0.0:8080",
        "Address and port of `tasker server`; default 127.0.0.1:8080. Without authentication only loopback "
        "addresses are accepted.",
        variable="TASKER_WEB_BIND_ADDRESS",
    )
    auth: OrchestrationAuth = table(OrchestrationAuth, live=True)
    database_pools: OrchestrationPools = table(OrchestrationPools)
    root_path: RootPath = text("", "Path under which a proxy serves the interface, such as /tasker.", shortest=0)
    cors_origins: tuple[Origin, ...] = several(
        (), "Origins whose pages may send requests from a browser, such as https://ops.example.com; none by default."
    )
    trusted_hosts: tuple[HostName, ...] = several(
        (),
        "Host names (without port) accepted without authentication, besides those of this machine; others get 421.",
    )
    max_body_bytes: int = whole(16 * 1024 * 1024, 1024, 1_073_741_824, "Maximum size of a request body; beyond it 413.")
    requests_per_second: int = whole(
        0, 0, 100_000, "Average rate of requests of one client, per process; beyond it 429. 0: unlimited."
    )
    request_burst: int = whole(100, 1, 1_000_000, "Burst of requests of one client, if the rate is limited.")
    max_submits_per_minute: int = whole(
        0,
        0,
        10_000_000,
        "Tasks that an authenticated client may submit in a minute, over all servers; then 429. 0: unlimited.",
    )
    max_connections_per_client: int = whole(
        0,
        0,
        1_000_000,
        "Open connections per address and process; beyond it 429. 0: half of what the limit of open files allows. "
        "Behind a proxy all clients share the proxy's address.",
    )
    max_streams: int = whole(
        1000, 0, 100_000, "Maximum number of clients that follow tasks at the same time; beyond it 503."
    )


class WorkerWeb(Web):
    """HTTP port of each worker: health, metrics, templates, handlers."""

    enabled: bool = flag(True, "Off: no port is opened, regardless of `bind_address`.")
    bind_address: Address = text(
        "0.0.0.0:8081",
        "Address and port of a worker; unset: none. Several processes of one command use consecutive ports from "
        "it. Without authentication only loopback addresses are accepted.",
        variable="TASKER_WORKER_WEB_BIND_ADDRESS",
    )
    auth: WorkerAuth = table(WorkerAuth, live=True)
    database_pools: WorkerPools = table(WorkerPools)


class Grpc(Table):
    """gRPC server of a process."""

    enabled: bool = flag(False, "Offer gRPC.")
    enable_health_service: bool = flag(True, "Serve the standard health service.")
    enable_reflection: bool = flag(True, "Enable server reflection.")
    tls_enabled: bool = flag(False, "Encrypt.")
    keepalive_interval_seconds: int = whole(30, 1, 3600, "Period of pings on an idle connection.")
    keepalive_timeout_seconds: int = whole(20, 1, 300, "Wait for the answer to a ping.")
    max_frame_size: int = whole(16_384, 16_384, 16_777_215, "Bytes of an HTTP/2 frame.")


class OrchestrationGrpc(Grpc):
    """gRPC server of an orchestrator."""

    bind_address: Address = text("0.0.0.0:9190", "Address and port.", variable="TASKER_ORCHESTRATION_GRPC_BIND_ADDRESS")
    max_concurrent_streams: int = whole(200, 1, 10_000, "Requests on one connection at the same time.")


class WorkerGrpc(Grpc):
    """gRPC server of a worker."""

    bind_address: Address = text("0.0.0.0:9191", "Address and port.", variable="TASKER_WORKER_GRPC_BIND_ADDRESS")
    max_concurrent_streams: int = whole(1000, 1, 10_000, "Requests on one connection at the same time.")


class OrchestrationClient(Table):
    """Orchestrator that a worker without database access calls."""

    base_url: WebUrl = text("http://localhost:8080", "The orchestrator.")
    timeout_ms: int = whole(CLIENT_TIMEOUT_MS, 100, 300_000, "Limit of one call.")
    max_retries: int = whole(3, 0, 10, "Repetitions of a failed call.")
