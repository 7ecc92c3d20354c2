"""How a process answers HTTP."""

from __future__ import annotations

from dataclasses import dataclass, field

from tasker.contracts.defaults import HTTP_BODY_BYTES, HTTP_STREAMS
from tasker.services.authentication.settings import AuthSettings

DEFAULT_ADDRESS = "127.0.0.1:8080"


@dataclass(frozen=True, slots=True)
class HttpPool:
    """The connections of a server; times are seconds."""

    max_connections: int = 30
    min_connections: int = 20
    acquire_timeout: float = 30.0
    idle_timeout: float = 600.0
    total_hint: int = 50
    """How many connections of all processes a person expects; `tasker doctor` tells of more."""


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Where, and within which limits. `bind_address` None is nowhere in particular."""

    enabled: bool = True
    bind_address: str | None = None
    request_seconds: float = 30.0
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
    request_burst: int = 100
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
    request_seconds: float = 30.0
    config_endpoint: bool = False
    tls_certificate_path: str = ""
    tls_key_path: str = ""
    auth: AuthSettings = field(default_factory=lambda: AuthSettings(audience="worker-api", issuer="tasker-worker"))


def host_and_port(address: str) -> tuple[str, int]:
    """The parts of `HOST:PORT`, of which the host may be an IPv6 address in brackets."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
