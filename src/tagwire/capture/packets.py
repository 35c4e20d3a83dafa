"""Packets out of capture files: pcap in both byte orders and both clocks, and pcapng.

A file that ends in the middle of a packet, as a capture that was killed does, is read up to there. Lengths are bounded
before anything is kept. Packets are found by a kernel, many at a time. Sources: the pcap and pcapng formats as the
IETF's drafts describe them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from tagwire.capture.observation import Losses, Place
from tagwire.errors import CaptureError
from tagwire.kernel.packets import DAMAGED as DAMAGE
from tagwire.kernel.packets import FULL, MORE, OTHER, Packets, walk_pcap, walk_pcapng
from tagwire.kernel.packets import UNTIMED as NO_INTERFACE

CUT: Final = "a capture file that ends in the middle of a packet"
DAMAGED: Final = "a capture file that is damaged from here on"
UNTIMED: Final = "a packet that names no interface of its file"

READ_BYTES: Final = 1 << 20
"""Read from a file at a time; a packet that is longer is waited for."""

PACKETS: Final = 8192
"""Packets that are handed over together, at most."""

# Magic numbers of pcap: (byte order, how many of its fractions of a second make a microsecond).
_PCAP: Final = {
    b"\xd4\xc3\xb2\xa1": ("<", 1),
    b"\xa1\xb2\xc3\xd4": (">", 1),
    b"\x4d\x3c\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\x3c\x4d": (">", 1000),
}
_PCAPNG: Final = b"\x0a\x0d\x0d\x0a"
MAGICS: Final = (*_PCAP, _PCAPNG)
"""The first four bytes of every file that `packets` reads."""

_LINK: Final = 0x03FFFFFF
"""Of a pcap header's link type; above it stands how long the check sequences of its frames are, and whether that is
told (libpcap's LT_FCS_LENGTH_PRESENT)."""

_ORDERS: Final = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_TIME_RESOLUTION, _TIME_OFFSET = 9, 14
_MIN_INTERFACE_BYTES: Final = 20
_MAX_BLOCK_BYTES: Final = 16 << 20

Interface = tuple[int, int, int, int]
"""Link type, ticks of its clock in a second, what they count from, in seconds since 1970 UTC, and how many bytes of a
packet are kept at most, 0 for all."""


class Packet(NamedTuple):
    """What was recorded of one packet.

    Attributes:
        time: microseconds since 1970 UTC; -1 where it was not recorded.
        position: where its record starts in the file.
        link_type: the LINKTYPE_ number of its interface: what its first header is.
        data: its bytes, without what the capture cut off.
        size: how many it had.
    """

    time: int
    position: int
    link_type: int
    data: bytes
    size: int


class File(Protocol):
    """A binary file, read forwards."""

    def read(self, size: int, /) -> bytes: ...
    def readinto(self, room: memoryview, /) -> int: ...


class _Walk(Protocol):
    """Finds packets in what was read of a file."""

    def __call__(self, data: memoryview, at: int, origin: int, found: Packets) -> tuple[int, int]:
        """Adds the packets from `at` on: (why it ended, where it goes on). MORE: more of the file is needed."""


def packets(file: File, name: str, losses: Losses) -> Iterator[Packet]:
    """The packets of a capture file, in their order.

    Args:
        file: read from its start, forwards only.
        name: its path, for the evidence.
        losses: counts what cannot be read.

    Raises:
        CaptureError: the file is no capture file.
    """
    for data, found in packet_columns(file, name, losses):
        columns = found.times, found.positions, found.links, found.starts, found.lengths, found.sizes
        for time, position, link, start, length, size in zip(*(column[: found.count] for column in columns)):
            yield Packet(time, position, link, bytes(data[start : start + length]), size)


def packet_columns(file: File, name: str, losses: Losses) -> Iterator[tuple[memoryview, Packets]]:
    """The same many at a time: bytes of the file, and where packets are in them. Both are used again for the next."""
    magic = file.read(4)
    if magic in _PCAP:
        order, per_microsecond = _PCAP[magic]
        header = file.read(20)
        if len(header) < 20:
            losses.add(CUT, Place(name, 0))
            return
        link = struct.unpack(f"{order}16xI", header)[0] & _LINK
        little = order == "<"

        def walk(data: memoryview, at: int, origin: int, found: Packets) -> tuple[int, int]:
            return walk_pcap(data, at, origin, little, per_microsecond, link, found)

        yield from _walked(file, name, losses, walk, 24, b"")
    elif magic == _PCAPNG:
        yield from _walked(file, name, losses, _Sections(name, losses), 0, magic)
    else:
        raise CaptureError(f"{name}: bytes {magic.hex(' ')} begin neither a pcap nor a pcapng file")


def _walked(
    file: File, name: str, losses: Losses, walk: _Walk, origin: int, begun: bytes
) -> Iterator[tuple[memoryview, Packets]]:
    """`begun`: what was read already, and belongs to the walk, from `origin` on."""
    found = Packets(PACKETS)
    filled = len(begun)
    room = memoryview(bytearray(filled + 2 * READ_BYTES))
    room[:filled] = begun
    while count := file.readinto(room[filled : filled + READ_BYTES]):
        filled += count
        why, at = FULL, 0
        while why != MORE:
            why, at = walk(room[:filled], at, origin, found)
            if found.count:
                yield room, found
                found.clear()
            if why == DAMAGE:
                losses.add(DAMAGED, Place(name, origin + at))
                return
        # What begins a packet whose end is still to come goes to the front, of a larger room if there is need.
        rest, origin, filled = room[at:filled], origin + at, filled - at
        if filled + READ_BYTES > len(room):
            room = memoryview(bytearray(2 * len(room)))
        room[:filled] = rest
    if filled:
        losses.add(CUT, Place(name, origin))


class _Sections:
    """The walk over a pcapng file, which knows the section's byte order and its interfaces."""

    def __init__(self, name: str, losses: Losses) -> None:
        self._name = name
        self._losses = losses
        self._order = ""
        self._interfaces: list[Interface] = []

    def __call__(self, data: memoryview, at: int, origin: int, found: Packets) -> tuple[int, int]:
        why = OTHER
        if self._order:
            why, at = walk_pcapng(data, at, origin, self._order == "<", self._interfaces, found)
        if why not in (OTHER, NO_INTERFACE):
            return why, at
        if len(data) - at < 12:
            return MORE, at
        mark, order = bytes(data[at : at + 4]), self._order
        if mark == _PCAPNG:  # its byte order stands behind the length that needs it
            order = _ORDERS.get(bytes(data[at + 8 : at + 12]), "")
        length = struct.unpack_from(f"{order}I", data, at + 4)[0] if order else 0
        if length < 12 or length % 4 or length > _MAX_BLOCK_BYTES:
            return DAMAGE, at
        if length > len(data) - at:
            return MORE, at
        if why == NO_INTERFACE:
            self._losses.add(UNTIMED, Place(self._name, origin + at))
        elif mark == _PCAPNG:
            self._order, self._interfaces = order, []
        elif length < _MIN_INTERFACE_BYTES:  # packets behind it count it, and it says nothing of them
            return DAMAGE, at
        else:
            self._interfaces.append(_interface(bytes(data[at + 8 : at + length - 4]), order))
        return OTHER, at + length


def _interface(body: bytes, order: str) -> Interface:
    link_type, most = struct.unpack_from(f"{order}HxxI", body)
    ticks, offset, at = 1_000_000, 0, 8
    while at + 4 <= len(body):
        code, size = struct.unpack_from(f"{order}HH", body, at)
        value = body[at + 4 : at + 4 + size]
        if code == _TIME_RESOLUTION and len(value) == 1:
            power = value[0] & 0x7F
            ticks = 2 ** min(power, 63) if value[0] & 0x80 else 10 ** min(power, 18)
        elif code == _TIME_OFFSET and len(value) == 8:
            offset = struct.unpack(f"{order}q", value)[0]
        at += 4 + (size + 3) // 4 * 4
    return link_type, ticks, offset, most
