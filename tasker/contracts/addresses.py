"""Addresses that a request to a host named by someone else may reach: public ones, as IANA's registries say."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
GLOBAL_UNICAST = ip_network("2000::/3")
SPECIAL = tuple(
    map(
        ip_network,
        (
            "192.0.0.0/24",  # protocol assignments, of which some are anycast services of the own network
            "192.88.99.0/24",  # relays from 6to4
            "2001::/23",  # protocol assignments
            "2001:db8::/32",  # documentation
            "3fff::/20",  # documentation
        ),
    )
)
"""Special networks that versions of Python before 3.13 call global, or that IANA calls global and nobody posts to."""
COMPATIBLE = ip_network("::/96")
TRANSLATED = ip_network("64:ff9b::/96")


def is_public(address: Address) -> bool:
    """Return whether an address is neither of a private network, this machine's, a link's, nor of another special kind.

    An IPv6 address that a gateway turns into an IPv4 address counts as that one.
    """
    if isinstance(address, IPv6Address):
        if address in COMPATIBLE:
            return False
        inner = embedded(address)
        if isinstance(inner, IPv4Address):
            return is_public(inner)
        return address in GLOBAL_UNICAST and not _is_special(address)
    return address.is_global and not address.is_multicast and not _is_special(address)


def embedded(address: Address) -> Address:
    """Return the IPv4 address that an address stands for (mapped, compatible, NAT64, 6to4, Teredo), else itself."""
    if isinstance(address, IPv4Address):
        return address
    if address in TRANSLATED or (address in COMPATIBLE and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else address)


def _is_special(address: Address) -> bool:
    return any(address in network for network in SPECIAL)
