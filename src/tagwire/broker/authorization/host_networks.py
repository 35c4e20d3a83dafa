"""The hosts of ACLs that are networks, `10.0.0.0/8` or `2001:db8::/32`, found by an address. Source: KIP-1276, Kafka's
CidrUtils."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

_NETWORK: Final = re.compile(r"[0-9A-Fa-f.:]+/[0-9]{1,3}", re.ASCII)

MOST_REMEMBERED: Final = 1000

Network = IPv4Network | IPv6Network


@lru_cache(1024)
def network_of(host: str) -> Network | None:
    """The network that a host of an ACL is; bits behind its length do not matter. None for what is no network."""
    if _NETWORK.fullmatch(host) is None:
        return None
    try:
        return ip_network(host, strict=False)
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
