"""The ends of a connection, as packets have them and as people write them."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

from tagwire.capture.observation import Endpoint


def endpoints(ends: bytes) -> tuple[Endpoint, Endpoint]:
    """Both ends of a connection, as the kernel tells connections apart: twice the address' 4 or 16 bytes, and the
    port's 2."""
    half = len(ends) // 2
    return _endpoint(ends[:half]), _endpoint(ends[half:])


def _endpoint(end: bytes) -> Endpoint:
    """An IPv4 address inside IPv6 as itself."""
    address, port = end[:-2], int.from_bytes(end[-2:], "big")
    if len(address) == 4:
        return Endpoint(str(IPv4Address(address)), port)
    known = IPv6Address(address)
    return Endpoint(str(known.ipv4_mapped or known), port)
