"""Check of the addresses of endpoints. The checked address is used for the connection: a DNS change has no effect."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Sequence
from ipaddress import ip_address, ip_network

from tasker.public_addresses import Address, embedded, is_public


class Refused(Exception):
    """Error for a host that is not allowed; the text says why."""


def permitted(address: Address, networks: Iterable[str]) -> bool:
    """Return True if the address is public, or in one of the networks."""
    both = (address, embedded(address))
    return is_public(address) or any(one in ip_network(network) for network in networks for one in both)


async def resolved(host: str, port: int, networks: Sequence[str]) -> str:
    """Return an address of the host to connect to.

    Raises `Refused` if one of its addresses is not allowed, and `OSError` if there is none.
    """
    loop = asyncio.get_running_loop()
    infos = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [ip_address(str(info[4][0]).partition("%")[0]) for info in infos]
    for address in addresses:
        if not permitted(address, networks):
            raise Refused(f"{host} is at {address}, an address that is not public (plugins.webhooks.private_networks)")
    return str(addresses[0])
