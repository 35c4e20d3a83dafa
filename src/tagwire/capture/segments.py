"""TCP segments out of packets: Ethernet with VLAN tags, any-interface captures, loopback, raw IP; IPv4 and IPv6."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from typing import Final, NamedTuple

from tagwire.capture.observation import Endpoint

SYN, RST, ACK = 0x02, 0x04, 0x10

FRAGMENT: Final = "a fragment of an IP packet"
CUT: Final = "a packet whose headers the capture cut off"
LINK: Final = "a packet of a link type that is not read"

_IPV4, _IPV6 = 0x0800, 0x86DD
_VLAN_TAGS: Final = frozenset({0x8100, 0x88A8, 0x9100})
_TCP: Final = 6
# Extension headers of IPv6 that stand before the transport: hop-by-hop, routing, destination options.
_EXTENSIONS: Final = frozenset({0, 43, 60})
_IPV6_FRAGMENT: Final = 44
_LOOPBACK_IPV6: Final = frozenset({10, 24, 28, 30})

Raw = tuple[bytes, int]
"""An end of a connection as the packet has it: the address' 4 or 16 bytes, and the port."""


class Segment(NamedTuple):
    """One TCP segment.

    Attributes:
        source, target: its ends.
        sequence: of its first byte.
        flags: SYN, RST, ACK and the others.
        payload: its bytes, as many as were kept.
        missing: how many bytes of the payload the capture cut off.
    """

    source: Raw
    target: Raw
    sequence: int
    flags: int
    payload: bytes
    missing: int


def endpoint(raw: Raw) -> Endpoint:
    """Address and port as people write them; an IPv4 address inside IPv6 as itself."""
    address, port = raw
    if len(address) == 4:
        return Endpoint(str(IPv4Address(address)), port)
    known = IPv6Address(address)
    return Endpoint(str(known.ipv4_mapped or known), port)


def segment(link_type: int, data: bytes, size: int) -> Segment | str | None:
    """The TCP segment in a packet; None where it carries something else, a reason where it cannot be read.

    Args:
        link_type: the packet's LINKTYPE_ number.
        data: the packet's bytes, as many as were kept.
        size: how many it had.
    """
    network = _NETWORKS.get(link_type)
    if network is None:
        return LINK
    try:
        protocol, at = network(data)
        if protocol == _IPV4:
            return _ipv4(data, at, size)
        if protocol == _IPV6:
            return _ipv6(data, at, size)
    except IndexError:
        return CUT
    return None


def _ipv4(data: bytes, at: int, size: int) -> Segment | str | None:
    if data[at + 9] != _TCP:
        return None
    if _short(data, at + 6) & 0x3FFF:
        return FRAGMENT
    transport = at + (data[at] & 0x0F) * 4
    # A length of 0: the network card was to split the packet (segmentation offload).
    end = at + (_short(data, at + 2) or size - at)
    return _tcp(data, transport, end, data[at + 12 : at + 16], data[at + 16 : at + 20])


def _ipv6(data: bytes, at: int, size: int) -> Segment | str | None:
    following, transport = data[at + 6], at + 40
    end = transport + (_short(data, at + 4) or size - transport)
    while following in _EXTENSIONS:
        following, transport = data[transport], transport + 8 + data[transport + 1] * 8
    if following == _IPV6_FRAGMENT:
        return FRAGMENT
    if following != _TCP:
        return None
    return _tcp(data, transport, end, data[at + 8 : at + 24], data[at + 24 : at + 40])


def _tcp(data: bytes, at: int, end: int, source: bytes, target: bytes) -> Segment | str:
    flags = data[at + 13]
    payload = at + (data[at + 12] >> 4) * 4
    if payload < at + 20 or end < payload:
        return CUT
    kept = data[payload:end]
    ports = _short(data, at), _short(data, at + 2)
    sequence = int.from_bytes(data[at + 4 : at + 8], "big")
    missing = end - payload - len(kept)
    return Segment((source, ports[0]), (target, ports[1]), sequence, flags, kept, missing)


def _short(data: bytes, at: int) -> int:
    return data[at] << 8 | data[at + 1]


def _ethernet(data: bytes) -> tuple[int, int]:
    return _tagged(data, 12)


def _tagged(data: bytes, at: int) -> tuple[int, int]:
    """The protocol whose number is at `at`, past VLAN tags, and where it starts."""
    protocol, at = _short(data, at), at + 2
    while protocol in _VLAN_TAGS:
        protocol, at = _short(data, at + 2), at + 4
    return protocol, at


def _any_interface(data: bytes) -> tuple[int, int]:
    return _tagged(data, 14)


def _any_interface_2(data: bytes) -> tuple[int, int]:
    protocol = _short(data, 0)
    return (protocol, 20) if protocol not in _VLAN_TAGS else _tagged(data, 22)


def _loopback(data: bytes) -> tuple[int, int]:
    """BSD's: the address family, in the byte order of the machine that captured."""
    family = max(data[0], data[3])
    return (_IPV6 if family in _LOOPBACK_IPV6 else _IPV4), 4


def _raw(data: bytes) -> tuple[int, int]:
    return (_IPV6 if data[0] >> 4 == 6 else _IPV4), 0


_NETWORKS: Final[dict[int, Callable[[bytes], tuple[int, int]]]] = {
    0: _loopback,
    1: _ethernet,
    12: _raw,
    101: _raw,
    108: _loopback,
    113: _any_interface,
    228: _raw,
    229: _raw,
    276: _any_interface_2,
}
