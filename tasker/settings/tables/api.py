"""`*.web`, `*.grpc`, `worker.orchestration_client`: servers and clients on the network."""

from __future__ import annotations

from typing import Literal

from tasker.contracts.defaults import HTTP_BODY_BYTES, HTTP_STREAMS
from tasker.contracts.defaults.authentication import (
    JWKS_REFRESH_SECONDS,
    KEY_HEADER,
    PERMISSIONS_CLAIM,
    TOKEN_AUDIENCE,
    TOKEN_HOURS,
    TOKEN_ISSUER,
    VERIFICATION_METHOD,
)
from tasker.contracts.defaults.http import (
    CLIENT_TIMEOUT_MS,
    HTTP_ACQUIRE_TIMEOUT_SECONDS,
    HTTP_IDLE_TIMEOUT_SECONDS,
    HTTP_MAX_CONNECTIONS,
    HTTP_POOL_SIZE,
    REQUEST_BURST,
    REQUEST_TIMEOUT_MS,
    TOTAL_CONNECTIONS_HINT,
)
from tasker.contracts.settings import Table, choice, flag, several, table, text, whole
from tasker.settings.tables.formats import Address, GrantText, HeaderName, HostName, KeySecret, Origin, RootPath, WebUrl


class ApiKeyEntry(Table):
    """API key. Empty `permissions`: authenticated, but without permissions. Empty `namespaces`: all namespaces."""

    key: KeySecret = ""
    permissions: tuple[GrantText, ...] = several((), "What it permits.")
    description: str = ""
    name: str = ""
    namespaces: tuple[str, ...] = several((), "Where.")


class Auth(Table):
    """Authentication of callers."""

    enabled: bool = flag(False, "Require authentication.")
    api_key: str = text("", "One key that may do everything, or `sha256:` and its digest.", shortest=0)
    api_key_header: HeaderName = text(KEY_HEADER, "The header that carries the key.")
    api_keys_enabled: bool = flag(False, "Take the keys of `api_keys`.")
    api_keys: tuple[ApiKeyEntry, ...] = several(
        (),
        "Keys with permissions of their own, each a table `[[...api_keys]]` with `key` (or `sha256:` and its digest), "
        "`permissions`, and perhaps `name`, `description`, `namespaces`; `tasker auth create-api-key` makes one.",
    )
    jwt_private_key: str = text("", "Key with which `tasker auth generate-token` signs, PEM.", shortest=0)
    jwt_public_key: str = text("", "Key that checks tokens, PEM.", shortest=0, variable="TASKER_JWT_PUBLIC_KEY")
    jwt_public_key_path: str = text(
        "",
        "File with that key; it counts above the text.",
        shortest=0,
        variable="TASKER_JWT_PUBLIC_KEY_PATH",
    )
    jwt_verification_method: Literal["public_key", "jwks"] = choice(
        VERIFICATION_METHOD, "Check tokens with that key, or with those that `jwks_url` publishes."
    )
    jwks_url: str = text("", "Where the issuer of tokens publishes its keys, https.", shortest=0)
    jwks_private_addresses: bool = flag(False, "The name of the issuer may stand for an address of a private network.")
    jwks_refresh_interval_seconds: int = whole(
        JWKS_REFRESH_SECONDS, 10, 86_400, "Fetch them again after so long; earlier when a token names an unknown one."
    )
    jwt_token_expiry_hours: int = whole(
        TOKEN_HOURS, 1, 720, "Lifetime of a token that `tasker auth generate-token` makes."
    )
    permissions_claim: str = text(PERMISSIONS_CLAIM, "The claim of a token that lists what it permits.")
    strict_validation: bool = flag(True, "Refuse a token with a permission that does not exist; off: leave that out.")
    log_unknown_permissions: bool = flag(True, "Write a warning when one is left out.")


class OrchestrationAuth(Auth):
    """Authentication of an orchestrator's callers."""

    jwt_audience: str = text(TOKEN_AUDIENCE, "The `aud` of a token.")
    jwt_issuer: str = text(TOKEN_ISSUER, "The `iss` of a token.")


class WorkerAuth(Auth):
    """Authentication of a worker's callers."""

    jwt_audience: str = text("worker-api", "The `aud` of a token.")
    jwt_issuer: str = text("tasker-worker", "The `iss` of a token.")


_SIZE, _MOST, _WAIT = (
    "Connections kept for requests.",
    "Connections for requests at most.",
    "Wait for one at most so long.",
)
_IDLE, _HINT = (
    "Close one that was idle for so long.",
    "Connections of all processes of a fleet that a person expects; `tasker doctor` tells of more. Nothing is refused.",
)


class OrchestrationPools(Table):
    """Database connections reserved for requests, so that requests cannot starve the engine."""

    web_api_pool_size: int = whole(HTTP_POOL_SIZE, 1, 200, _SIZE)
    web_api_max_connections: int = whole(HTTP_MAX_CONNECTIONS, 1, 500, _MOST)
    web_api_connection_timeout_seconds: int = whole(HTTP_ACQUIRE_TIMEOUT_SECONDS, 1, 300, _WAIT)
    web_api_idle_timeout_seconds: int = whole(HTTP_IDLE_TIMEOUT_SECONDS, 1, 3600, _IDLE)
    max_total_connections_hint: int = whole(TOTAL_CONNECTIONS_HINT, 1, 1000, _HINT)


class WorkerPools(OrchestrationPools):
    """Database connections reserved for a worker's requests; a worker gets fewer requests."""

    web_api_pool_size: int = whole(10, 1, 200, _SIZE)
    web_api_max_connections: int = whole(15, 1, 500, _MOST)
    max_total_connections_hint: int = whole(25, 1, 1000, _HINT)


class Web(Table):
    """HTTP server of a process."""

    enabled: bool = flag(True, "Off: `tasker server` refuses to start.")
    request_timeout_ms: int = whole(REQUEST_TIMEOUT_MS, 100, 300_000, "Limit of one request; then 408.")
    config_endpoint_enabled: bool = flag(False, "Answer GET /config, with secrets left out.")
    tls_certificate_path: str = text(
        "",
        "File with the certificate of the process and those between, PEM; with it the process speaks https.",
        shortest=0,
    )
    tls_key_path: str = text("", "File with its private key, PEM, without a password.", shortest=0)


class OrchestrationWeb(Web):
    """HTTP server of an orchestrator."""

    bind_address: Address = text(
        "0.0.0.0:8080",
        "Address and port of `tasker server`; not set it is 127.0.0.1:8080. Without authentication only an address of "
        "this machine is taken.",
        variable="TASKER_WEB_BIND_ADDRESS",
    )
    auth: OrchestrationAuth = table(OrchestrationAuth)
    database_pools: OrchestrationPools = table(OrchestrationPools)
    root_path: RootPath = text("", "The path below which a proxy offers the interface, such as /tasker.", shortest=0)
    cors_origins: tuple[Origin, ...] = several(
        (), "Whose pages may send requests from a browser, such as https://ops.example.com; none by default."
    )
    trusted_hosts: tuple[HostName, ...] = several(
        (),
        "Names, without port, that requests may be sent to where nobody is asked who they are, beside those of this "
        "machine; others are answered with 421.",
    )
    max_body_bytes: int = whole(HTTP_BODY_BYTES, 1024, 1_073_741_824, "The body of one request; beyond it 413.")
    requests_per_second: int = whole(
        0, 0, 100_000, "Requests of one client on average, in each process; beyond it 429. 0: any number."
    )
    request_burst: int = whole(REQUEST_BURST, 1, 1_000_000, "Requests of one client at once, where they are limited.")
    max_connections_per_client: int = whole(
        0,
        0,
        1_000_000,
        "Open connections of one address, in each process; beyond it 429. 0: half of those that the limit of open "
        "files lets a process have. Behind a proxy all have the proxy's address.",
    )
    max_streams: int = whole(HTTP_STREAMS, 0, 100_000, "Clients that follow tasks at the same time; beyond it 503.")


class WorkerWeb(Web):
    """HTTP port of each worker: health, metrics, templates, handlers."""

    enabled: bool = flag(True, "Off: no port, whatever `bind_address` says.")
    bind_address: Address = text(
        "0.0.0.0:8081",
        "Address and port of a worker; not set there is none. Several processes of one command take one port after the "
        "other from there on. Without authentication only an address of this machine is taken.",
        variable="TASKER_WORKER_WEB_BIND_ADDRESS",
    )
    auth: WorkerAuth = table(WorkerAuth)
    database_pools: WorkerPools = table(WorkerPools)


class Grpc(Table):
    """gRPC server of a process."""

    enabled: bool = flag(False, "Offer gRPC.")
    enable_health_service: bool = flag(True, "Offer the standard health service.")
    enable_reflection: bool = flag(True, "Describe the services to clients that ask.")
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
