"""Which addresses may be posted to. What is checked is connected to: a name that changes its mind gains nothing."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

Address = IPv4Address | IPv6Address


class Refused(Exception):
    """The host may not be posted to; the text says why."""


def is_public(address: Address) -> bool:
    """Whether it is neither of a private network, nor this machine's, nor a link's, nor for several at once.

    An IPv4 address inside an IPv6 one counts as the IPv4 address that a gateway makes of it.
    """
    inner = _inner(address)
    return inner.is_global and not inner.is_multicast


def _inner(address: Address) -> Address:
    if isinstance(address, IPv4Address):
        return address
    if address in ip_network("64:ff9b::/96"):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else address)


def permitted(address: Address, networks: Iterable[str]) -> bool:
    """Whether it is public, or of one of the networks."""
    inner = _inner(address)
    return is_public(address) or any(inner in ip_network(each) for each in networks)


async def resolved(host: str, port: int, networks: Sequence[str]) -> str:
    """An address of the host to connect to. Raises `Refused` where one of its addresses may not be, else `OSError`."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [ip_address(str(each[4][0]).partition("%")[0]) for each in found]
    for address in addresses:
        if not permitted(address, networks):
            raise Refused(f"{host} is at {address}, an address that is not public (plugins.webhooks.private_networks)")
    return str(addresses[0])
