"""The hosts of ACLs that are networks, `10.0.0.0/8` or `2001:db8::/32`, found by an address. Source: KIP-1276, Kafka's
CidrUtils."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

_IPV4: Final = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})/([0-9]{1,2})", re.ASCII)
_IPV6: Final = re.compile(r"[0-9A-Fa-f.:]+/[0-9]{1,3}", re.ASCII)

MOST_REMEMBERED: Final = 1000

Network = IPv4Network | IPv6Network


@lru_cache(1024)
def network_of(host: str) -> Network | None:
    """The network that a host of an ACL is; bits behind its length do not matter. None for what is no network.

    As to Kafka, numbers of IPv4 may begin with zeros and are decimal, and an IPv4 address written as one of IPv6 is
    none: clients' addresses are never written so.
    """
    try:
        if (found := _IPV4.fullmatch(host)) is not None:
            *numbers, length = map(int, found.groups())
            return IPv4Network((bytes(numbers), length), strict=False)
        if ":" not in host or _IPV6.fullmatch(host) is None:
            return None
        if IPv6Address(host.partition("/")[0]).ipv4_mapped is not None:
            return None
        return IPv6Network(host, strict=False)
    except ValueError:
        return None


class HostNetworks:
    """The networks of ACLs, each as often as it was added."""

    def __init__(self) -> None:
        self._written: dict[Network, Counter[str]] = {}
        self._lengths: Counter[tuple[int, int]] = Counter()  # of IP version and length, by network
        self._around: dict[str, tuple[str, ...]] = {}

    def add(self, host: str) -> None:
        """Takes the host of an ACL in, if it is a network."""
        network = network_of(host)
        if network is None:
            return
        self._around.clear()
        if network not in self._written:
            self._written[network] = Counter()
            self._lengths[network.version, network.prefixlen] += 1
        self._written[network][host] += 1

    def remove(self, host: str) -> None:
        """Takes it out, once."""
        network = network_of(host)
        if network is None:
            return
        self._around.clear()
        self._written[network][host] -= 1
        self._written[network] += Counter()  # what nothing has any more is left out
        if not self._written[network]:
            del self._written[network]
            self._lengths[network.version, network.prefixlen] -= 1
            self._lengths += Counter()

    def around(self, host: str) -> tuple[str, ...]:
        """The networks that an address is in, as ACLs write them."""
        if not self._lengths:
            return ()
        known = self._around.get(host)
        if known is None:
            if len(self._around) >= MOST_REMEMBERED:
                self._around.clear()
            known = self._around[host] = tuple(self._find(host))
        return known

    def _find(self, host: str) -> Iterator[str]:
        address = _address(host)
        for version, length in self._lengths:
            if address is not None and version == address.version:
                yield from self._written.get(_network(address, length), ())


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _network(address: IPv4Address | IPv6Address, length: int) -> Network:
    if isinstance(address, IPv4Address):
        return IPv4Network((address, length), strict=False)
    return IPv6Network((int(address), length), strict=False)
