"""Packets out of capture files: pcap in both byte orders and both clocks, and pcapng.

A file that ends in the middle of a packet, as a capture that was killed does, is read up to there. Lengths are bounded
before anything is kept. Sources: the pcap and pcapng formats as the IETF's drafts describe them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final, NamedTuple

from tagwire.capture.observation import Losses, Place
from tagwire.errors import CaptureError

MAX_PACKET_BYTES: Final = 16 << 20
"""Longer than any network sends and any tool records: such a length is damage."""

CUT: Final = "a capture file that ends in the middle of a packet"
DAMAGED: Final = "a capture file that is damaged from here on"
UNTIMED: Final = "a packet that names no interface of its file"

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

_ORDERS: Final = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 2, 3, 6
_TIME_RESOLUTION, _TIME_OFFSET = 9, 14


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


@dataclass(frozen=True, slots=True)
class _Interface:
    link_type: int
    ticks: int  # a second's
    offset: int  # seconds

    def microseconds(self, ticks: int) -> int:
        return self.offset * 1_000_000 + ticks * 1_000_000 // self.ticks


def packets(file: BinaryIO, name: str, losses: Losses) -> Iterator[Packet]:
    """The packets of a capture file, in their order.

    Args:
        file: read from its start, forwards only.
        name: its path, for the evidence.
        losses: counts what cannot be read.

    Raises:
        CaptureError: the file is no capture file.
    """
    magic = file.read(4)
    if magic in _PCAP:
        yield from _pcap(file, name, losses, *_PCAP[magic])
    elif magic == _PCAPNG:
        yield from _pcapng(file, name, losses)
    else:
        raise CaptureError(f"{name}: bytes {magic.hex(' ')} begin neither a pcap nor a pcapng file")


def _pcap(file: BinaryIO, name: str, losses: Losses, order: str, per_microsecond: int) -> Iterator[Packet]:
    header = file.read(20)
    if len(header) < 20:
        losses.add(CUT, Place(name, 0))
        return
    link_type = struct.unpack(f"{order}16xI", header)[0] & 0x0FFFFFFF
    record = struct.Struct(f"{order}IIII")
    position = 24
    while head := file.read(16):
        if len(head) < 16:
            losses.add(CUT, Place(name, position))
            return
        seconds, fraction, kept, size = record.unpack(head)
        if kept > MAX_PACKET_BYTES:
            losses.add(DAMAGED, Place(name, position))
            return
        data = file.read(kept)
        if len(data) < kept:
            losses.add(CUT, Place(name, position))
            return
        yield Packet(seconds * 1_000_000 + fraction // per_microsecond, position, link_type, data, size)
        position += 16 + kept


def _pcapng(file: BinaryIO, name: str, losses: Losses) -> Iterator[Packet]:
    order = ""
    interfaces: list[_Interface] = []
    position = 0
    head = _PCAPNG + file.read(4)
    while head:
        if len(head) < 8:
            losses.add(CUT, Place(name, position))
            return
        mark = b""
        if head[:4] == _PCAPNG:  # a section: its byte order stands behind the length that needs it
            mark = file.read(4)
            order = _ORDERS.get(mark, "")
            interfaces = []
        kind, length = struct.unpack(f"{order}II", head) if order else (0, 0)
        if length < 12 or length % 4 or length > MAX_PACKET_BYTES:
            losses.add(DAMAGED, Place(name, position))
            return
        rest = length - len(head) - len(mark)
        body = mark + file.read(rest)
        if len(body) < rest + len(mark):
            losses.add(CUT, Place(name, position))
            return
        body = body[:-4]
        if kind == _INTERFACE and len(body) >= 8:
            interfaces.append(_interface(body, order))
        elif kind in (_ENHANCED, _OLD_PACKET, _SIMPLE):
            packet = _packet(kind, body, order, interfaces, position)
            if packet is None:
                losses.add(UNTIMED, Place(name, position))
            else:
                yield packet
        position += length
        head = file.read(8)


def _interface(body: bytes, order: str) -> _Interface:
    link_type = struct.unpack_from(f"{order}H", body)[0]
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
    return _Interface(link_type, ticks, offset)


def _packet(kind: int, body: bytes, order: str, interfaces: list[_Interface], position: int) -> Packet | None:
    time = -1
    if kind == _SIMPLE:
        if not interfaces or len(body) < 4:
            return None
        interface = interfaces[0]
        size = struct.unpack_from(f"{order}I", body)[0]
        data = body[4 : 4 + size]
    else:
        if len(body) < 20:
            return None
        form = "IIIII" if kind == _ENHANCED else "HxxIIII"
        number, high, low, kept, size = struct.unpack_from(f"{order}{form}", body)
        if number >= len(interfaces) or kept > len(body) - 20:
            return None
        interface = interfaces[number]
        time = interface.microseconds(high << 32 | low)
        data = body[20 : 20 + kept]
    return Packet(time, position, interface.link_type, data, size)
