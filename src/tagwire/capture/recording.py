"""Connections that were not sniffed but carried, written as a pcap file that any tool reads.

Each piece of a connection becomes a TCP segment with the addresses that the two ends know each other by. Checksums are
left 0, which readers take as computed by the network card.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final

from tagwire.capture.observation import Endpoint
from tagwire.kernel.packets import ACK, SYN

FILE_HEADER: Final = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 101)
"""Of a pcap file of raw IP packets, its times in microseconds."""

MAX_SEGMENT_BYTES: Final = 65_000
FIN: Final = 0x01

_RECORD: Final = struct.Struct("<IIII")
_TCP: Final = struct.Struct(">HHIIBBHHH")
_IPV4: Final = struct.Struct(">BBHHHBBH4s4s")
_IPV6: Final = struct.Struct(">IHBB16s16s")
_PROTOCOL: Final = 6
_SEQUENCES: Final = 1 << 32


class Recording:
    """One connection as packets. The bytes of a direction count on, whether they are written or not: what is left out
    is a gap to whoever reads the file.

    Args:
        client, broker: the ends.
    """

    def __init__(self, client: Endpoint, broker: Endpoint) -> None:
        self._ends = (client, broker)
        self._sent = [0, 0]

    def opened(self, time: int) -> bytes:
        """The packets that open the connection, at `time` (microseconds since 1970 UTC)."""
        packets = self._packet(0, SYN, b"", time) + self._packet(1, SYN | ACK, b"", time)
        self._sent = [1, 1]
        return packets

    def sent(self, data: bytes, time: int, *, by_client: bool) -> bytes:
        """The packets of bytes that one end sent."""
        side = 0 if by_client else 1
        packets = []
        for piece in _pieces(data):
            packets.append(self._packet(side, ACK, piece, time))
            self._sent[side] += len(piece)
        return b"".join(packets)

    def closed(self, time: int) -> bytes:
        """The packets that end the connection."""
        return self._packet(0, FIN | ACK, b"", time) + self._packet(1, FIN | ACK, b"", time)

    def _packet(self, side: int, flags: int, payload: bytes, time: int) -> bytes:
        source, target = self._ends[side], self._ends[1 - side]
        sequence, acknowledged = (self._sent[at] % _SEQUENCES for at in (side, 1 - side))
        tcp = _TCP.pack(source.port, target.port, sequence, acknowledged, 5 << 4, flags, 65_535, 0, 0) + payload
        packet = _ip(source.address, target.address, len(tcp)) + tcp
        return _RECORD.pack(time // 1_000_000, time % 1_000_000, len(packet), len(packet)) + packet


def _pieces(data: bytes) -> Iterator[bytes]:
    for at in range(0, len(data), MAX_SEGMENT_BYTES):
        yield data[at : at + MAX_SEGMENT_BYTES]


def _ip(source: str, target: str, size: int) -> bytes:
    ends = ip_address(source), ip_address(target)
    if all(end.version == 4 for end in ends):
        return _IPV4.pack(0x45, 0, 20 + size, 0, 0, 64, _PROTOCOL, 0, ends[0].packed, ends[1].packed)
    return _IPV6.pack(6 << 28, size, _PROTOCOL, 64, *(_sixteen(end.packed) for end in ends))


def _sixteen(address: bytes) -> bytes:
    return address if len(address) == 16 else b"\0" * 10 + b"\xff\xff" + address
