"""How a process answers HTTP."""

from __future__ import annotations

from dataclasses import field

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.defaults import HTTP_BODY_BYTES, HTTP_STREAMS
from tasker.contracts.defaults.http import (
    HTTP_ACQUIRE_TIMEOUT_SECONDS,
    HTTP_IDLE_TIMEOUT_SECONDS,
    HTTP_MAX_CONNECTIONS,
    HTTP_POOL_SIZE,
    REQUEST_BURST,
    REQUEST_TIMEOUT_MS,
    TOTAL_CONNECTIONS_HINT,
)
from tasker.services.authentication.settings import AuthSettings

DEFAULT_ADDRESS = "127.0.0.1:8080"


@dataclass(frozen=True, slots=True)
class HttpPool:
    """The connections of a server; times are seconds."""

    max_connections: int = HTTP_MAX_CONNECTIONS
    min_connections: int = HTTP_POOL_SIZE
    acquire_timeout: float = HTTP_ACQUIRE_TIMEOUT_SECONDS
    idle_timeout: float = HTTP_IDLE_TIMEOUT_SECONDS
    total_hint: int = TOTAL_CONNECTIONS_HINT
    """How many connections of all processes a person expects; `tasker doctor` tells of more."""


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Where, and within which limits. `bind_address` None is nowhere in particular."""

    enabled: bool = True
    bind_address: str | None = None
    request_seconds: float = REQUEST_TIMEOUT_MS / 1000
    config_endpoint: bool = False
    root_path: str = ""
    """The path below which a proxy offers the interface."""
    cors_origins: tuple[str, ...] = ()
    """Whose pages may send requests from a browser."""
    trusted_hosts: tuple[str, ...] = ()
    """Names that requests may be sent to where nobody is asked who they are, beside those of this machine."""
    body_bytes: int = HTTP_BODY_BYTES
    streams: int = HTTP_STREAMS
    requests_per_second: int = 0
    request_burst: int = REQUEST_BURST
    connections_per_client: int = 0
    """Open at the same time; 0: half of those that a process can have."""
    tls_certificate_path: str = ""
    tls_key_path: str = ""
    pool: HttpPool = field(default_factory=HttpPool)
    auth: AuthSettings = field(default_factory=AuthSettings)
    """Who is let in."""


@dataclass(frozen=True, slots=True)
class PortSettings:
    """The port of a worker or an orchestrator of its own; `bind_address` None: there is none."""

    enabled: bool = True
    bind_address: str | None = None
    request_seconds: float = REQUEST_TIMEOUT_MS / 1000
    config_endpoint: bool = False
    tls_certificate_path: str = ""
    tls_key_path: str = ""
    auth: AuthSettings = field(default_factory=lambda: AuthSettings(audience="worker-api", issuer="tasker-worker"))


def host_and_port(address: str) -> tuple[str, int]:
    """The parts of `HOST:PORT`, of which the host may be an IPv6 address in brackets."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
