"""Outgoing HTTP requests that connect only to permitted addresses.

The name is resolved, every address is checked, and the connection is made to one of them: a change of DNS in between
has no effect. Host, SNI and pooling stay those of the client. Proxies of the environment are ignored: they would
connect in our place.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from ipaddress import ip_address, ip_network
from typing import Any

import httpcore
import httpx

from tasker.public_addresses import Address, embedded, is_public

METADATA = frozenset(map(ip_address, ("169.254.169.254", "169.254.170.2", "100.100.100.200", "fd00:ec2::254")))
"""Addresses of the metadata services of clouds, which hand out credentials: never permitted."""


class AddressRefused(Exception):
    """Error for a host that is not allowed; the text says why."""


def permitted(address: Address, networks: Iterable[str]) -> bool:
    """Return True if the address is public, or in one of the networks; never for a metadata service."""
    both = (address, embedded(address))
    if METADATA.intersection(both):
        return False
    return is_public(address) or any(one in ip_network(network) for network in networks for one in both)


def _checked(host: str, infos: Sequence[Any], networks: Sequence[str]) -> str:
    """Return an address to connect to. Raises `AddressRefused` if one of the host's addresses is not permitted."""
    addresses = [ip_address(str(info[4][0]).partition("%")[0]) for info in infos]
    for address in addresses:
        if not permitted(address, networks):
            raise AddressRefused(f"{host} is at {address}, an address that is not public (private_networks)")
    return str(addresses[0])


class _Backend(httpcore.NetworkBackend):
    def __init__(self, networks: Sequence[str]) -> None:
        self._inner, self._networks = httpcore.SyncBackend(), networks

    def connect_tcp(self, host: str, port: int, *arguments: Any, **options: Any) -> httpcore.NetworkStream:
        try:
            infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host} cannot be resolved: {error}") from error
        return self._inner.connect_tcp(_checked(host, infos, self._networks), port, *arguments, **options)

    def connect_unix_socket(self, path: str, *arguments: Any, **options: Any) -> httpcore.NetworkStream:
        raise AddressRefused("unix sockets are not reached")


class _AsyncBackend(httpcore.AsyncNetworkBackend):
    def __init__(self, networks: Sequence[str]) -> None:
        self._inner, self._networks = httpcore.AnyIOBackend(), networks

    async def connect_tcp(self, host: str, port: int, *arguments: Any, **options: Any) -> httpcore.AsyncNetworkStream:
        try:
            infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host} cannot be resolved: {error}") from error
        return await self._inner.connect_tcp(_checked(host, infos, self._networks), port, *arguments, **options)

    async def connect_unix_socket(self, path: str, *arguments: Any, **options: Any) -> httpcore.AsyncNetworkStream:
        raise AddressRefused("unix sockets are not reached")

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class ConnectionRefusedHere(AddressRefused, OSError):
    """`AddressRefused` for a connection of a guarded thread; libraries close the socket of an `OSError`."""


class _Guard(threading.local):
    """Networks that this thread may connect to, besides public addresses; None: any address."""

    networks: Sequence[str] | None = None
    refused: list[str]


_guard = _Guard()


@contextmanager
def guarded_thread(networks: Sequence[str] = ()) -> Iterator[list[str]]:
    """Let this thread connect only to permitted addresses, whichever library makes the sockets.

    A connection to another address raises `AddressRefused`; the texts of these errors are in the list, since a library
    may suppress them. Use it for libraries that cannot be given a transport.
    """
    _install_audit_hook()
    _guard.networks, _guard.refused = networks, []
    try:
        yield _guard.refused
    finally:
        _guard.networks = None


@cache
def _install_audit_hook() -> None:
    """Check connections by an audit hook of Python, which costs every process that has it: install it when needed."""
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in ("socket.connect", "socket.sendto") or (networks := _guard.networks) is None:
        return
    host = arguments[1][0] if isinstance(arguments[1], tuple) and arguments[1] else arguments[1]
    try:
        allowed = permitted(ip_address(str(host).partition("%")[0]), networks)
    except ValueError:  # a unix socket
        allowed = False
    if not allowed:
        _guard.refused.append(f"{host} is not a public address (private_networks)")
        raise ConnectionRefusedHere(_guard.refused[-1])


def guarded_transport(
    networks: Sequence[str] = (), *, verify: ssl.SSLContext | None = None, connections: int = 10
) -> httpx.HTTPTransport:
    """Return a transport for `httpx.Client`. `networks` are permitted in addition to public addresses."""
    context = verify or httpx.create_ssl_context(trust_env=False)
    transport = httpx.HTTPTransport(verify=context, trust_env=False)
    transport._pool.close()
    transport._pool = httpcore.ConnectionPool(
        ssl_context=context, max_connections=connections, network_backend=_Backend(networks)
    )
    return transport


def guarded_async_transport(
    networks: Sequence[str] = (), *, verify: ssl.SSLContext | None = None, connections: int = 10
) -> httpx.AsyncHTTPTransport:
    """Return a transport for `httpx.AsyncClient`; otherwise as `guarded_transport`."""
    context = verify or httpx.create_ssl_context(trust_env=False)
    transport = httpx.AsyncHTTPTransport(verify=context, trust_env=False)
    transport._pool = httpcore.AsyncConnectionPool(
        ssl_context=context, max_connections=connections, network_backend=_AsyncBackend(networks)
    )
    return transport
