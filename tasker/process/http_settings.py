"""Settings of a process's HTTP server."""

from __future__ import annotations

from dataclasses import field

from tasker.dataclasses import dataclass
from tasker.settings.authentication import AuthSettings
from tasker.settings.http import OrchestrationPools, OrchestrationWeb, Web

DEFAULT_ADDRESS = "127.0.0.1:8080"


@dataclass(frozen=True, slots=True)
class HttpPool:
    """Database connection pool of a server; times are seconds."""

    max_connections: int = OrchestrationPools.web_api_max_connections
    min_connections: int = OrchestrationPools.web_api_pool_size
    acquire_timeout: float = OrchestrationPools.web_api_connection_timeout_seconds
    idle_timeout: float = OrchestrationPools.web_api_idle_timeout_seconds
    total_hint: int = OrchestrationPools.max_total_connections_hint
    """Expected number of connections of all processes; `tasker doctor` warns above it."""


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Address and limits of the HTTP interface. `bind_address` None selects the default."""

    enabled: bool = True
    bind_address: str | None = None
    request_seconds: float = Web.request_timeout_ms / 1000
    config_endpoint: bool = False
    root_path: str = ""
    """Path prefix under which a proxy serves the interface."""
    cors_origins: tuple[str, ...] = ()
    """Origins whose pages may send requests from a browser."""
    trusted_hosts: tuple[str, ...] = ()
    """Host names accepted without authentication, in addition to those of this machine."""
    body_bytes: int = OrchestrationWeb.max_body_bytes
    streams: int = OrchestrationWeb.max_streams
    requests_per_second: int = 0
    request_burst: int = OrchestrationWeb.request_burst
    connections_per_client: int = 0
    """Connections open at the same time; 0: half of the process's limit."""
    tls_certificate_path: str = ""
    tls_key_path: str = ""
    pool: HttpPool = field(default_factory=HttpPool)
    auth: AuthSettings = field(default_factory=AuthSettings)
    """Authentication settings."""


@dataclass(frozen=True, slots=True)
class PortSettings:
    """HTTP port of a separate worker or orchestrator; without a `bind_address` there is none."""

    enabled: bool = True
    bind_address: str | None = None
    request_seconds: float = Web.request_timeout_ms / 1000
    config_endpoint: bool = False
    tls_certificate_path: str = ""
    tls_key_path: str = ""
    auth: AuthSettings = field(default_factory=lambda: AuthSettings(audience="worker-api", issuer="tasker-worker"))


def host_and_port(address: str) -> tuple[str, int]:
    """Split `HOST:PORT`; the host may be an IPv6 address in brackets."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
