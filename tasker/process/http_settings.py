"""Addresses of a process's HTTP server."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasker.settings.http import OrchestrationWeb, WorkerWeb

DEFAULT_ADDRESS = "127.0.0.1:8080"


def chosen_address(web: OrchestrationWeb | WorkerWeb) -> str | None:
    """Return the address if one is set: the setting's default would accept other machines."""
    return web.bind_address if web.is_set("bind_address") else None


def host_and_port(address: str) -> tuple[str, int]:
    """Split `HOST:PORT`; the host may be an IPv6 address in brackets."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
