"""Listening sockets of a server."""

from __future__ import annotations

import contextlib
import ipaddress
import socket

from tasker.errors import UsageError

BACKLOG = 2048
LOOPBACK = "127.0.0.1"


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on this address. Raises `UsageError` if the address is not available."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind(address)
            made.listen(BACKLOG)
        except OSError:
            made.close()
            raise
    except OSError as error:
        denied = isinstance(error, PermissionError)
        why = "ports below 1024 are not for every user" if denied else "another process may have the port"
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            hint=f"{why}: choose a port with --port; 0 picks a free one",
        ) from None
    made.setblocking(False)
    return made


def require_loopback(host: str, section: str = "orchestration.web.auth") -> None:
    """Check that a server without authentication, which `section` turns on, is reached from this machine only.

    Raises `UsageError` otherwise.
    """
    if host == "localhost":
        return
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            return
    raise UsageError(
        f"{host} is reachable from other machines, but authentication is off: anyone could run tasks",
        hint=f"listen on 127.0.0.1, or turn on [{section}]; see docs/security.md",
    )


def url_of(listening: socket.socket, scheme: str = "http") -> str:
    host, port = listening.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
