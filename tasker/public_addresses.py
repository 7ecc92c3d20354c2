"""Check that requests to hosts from untrusted input reach only public addresses, following the IANA registries."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
GLOBAL_UNICAST = ip_network("2000::/3")
SPECIAL = tuple(
    map(
        ip_network,
        (
            "192.0.0.0/24",  # protocol assignments, some of them anycast services of the local network
            "192.88.99.0/24",  # 6to4 relays
            "2001::/23",  # protocol assignments
            "2001:db8::/32",  # documentation
            "3fff::/20",  # documentation
        ),
    )
)
"""Special-purpose networks that Python before 3.13 calls global, or that are global to IANA but not a valid target."""
COMPATIBLE = ip_network("::/96")
TRANSLATED = ip_network("64:ff9b::/96")


def is_public(address: Address) -> bool:
    """Return whether an address is public: not private, loopback, link-local, multicast or otherwise special.

    An IPv6 address that a gateway translates to IPv4 is judged by its IPv4 address.
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
    """Return the IPv4 address embedded in an address (mapped, compatible, NAT64, 6to4, Teredo), else the address."""
    if isinstance(address, IPv4Address):
        return address
    if address in TRANSLATED or (address in COMPATIBLE and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else address)


def _is_special(address: Address) -> bool:
    return any(address in network for network in SPECIAL)
