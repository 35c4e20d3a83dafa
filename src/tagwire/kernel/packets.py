"""Packets of a capture file, many at a time: where their records stand, and the TCP segments in them.

Formats: pcap and pcapng as the IETF's drafts describe them; link types by their LINKTYPE_ numbers. Every position is
checked against what was kept of the packet before it is read.
"""

from __future__ import annotations

import cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.libc.string import memcmp, memcpy
    from cython.cimports.tagwire.kernel.number_columns import numbers_of
    from cython.cimports.tagwire.kernel.raw_bytes import memory_of
else:
    from tagwire.kernel.number_columns import numbers_of
    from tagwire.kernel.raw_bytes import memory_of

from tagwire.kernel.number_columns import number_column

COMPILED: bool = cython.compiled

MORE, FULL, DAMAGED, OTHER, UNTIMED = 0, 1, 2, 3, 4
"""Why a walk ended: its bytes did, or its columns; a length that no packet has; a block for the caller to read, or to
count, as it names no interface."""

FRAGMENT, CUT, LINK = 0, 1, 2
"""Why a packet cannot be read: rows of `Segments.lost`."""

FIN, SYN, RST, ACK, BY_HIGHER = 0x01, 0x02, 0x04, 0x10, 0x100
"""Flags of a segment: TCP's own, and whether its sender is the higher of its ends."""

LAST_SECOND = 253_402_300_799
"""Of the year 9999: a later time is damage, and taken as not recorded."""

_MAX_PACKET = cython.declare(cython.longlong, 16 << 20)
_last_second = cython.declare(cython.longlong, LAST_SECOND)
_tcp_number = cython.declare(cython.int, 6)
_told_without_payload = cython.declare(cython.int, FIN | SYN | RST)
_by_higher = cython.declare(cython.int, BY_HIGHER)
_fragment = cython.declare(cython.int, FRAGMENT)
_cut = cython.declare(cython.int, CUT)
_link = cython.declare(cython.int, LINK)


@cython.cclass
class Packets:
    """Columns of packets: their time in microseconds since 1970 UTC (-1 where it was not recorded), where their record
    starts in the file, their link type, where their bytes start in the data walked, how many were kept, and how many
    there were."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.count = 0
        self.times, self.positions, self.links = number_column(room), number_column(room), number_column(room)
        self.starts, self.lengths, self.sizes = number_column(room), number_column(room), number_column(room)
        self._times, self._positions = numbers_of(self.times), numbers_of(self.positions)
        self._links, self._starts = numbers_of(self.links), numbers_of(self.starts)
        self._lengths, self._sizes = numbers_of(self.lengths), numbers_of(self.sizes)

    def clear(self) -> None:
        self.count = 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def _add(
        self,
        time: cython.longlong,
        position: cython.longlong,
        link: cython.longlong,
        start: cython.longlong,
        length: cython.longlong,
        size: cython.longlong,
    ) -> cython.int:
        self._times[self.count] = time
        self._positions[self.count] = position
        self._links[self.count] = link
        self._starts[self.count] = start
        self._lengths[self.count] = length
        self._sizes[self.count] = size
        self.count += 1
        return 0


@cython.cclass
class Segments:
    """Columns of TCP segments that carry something or tell of a connection's start or end.

    ends: of each, both ends as bytes, the lower first: address (4 or 16 bytes) and port (2). times, positions: their
    packets'. sequences: of their first byte. flags: TCP's, and BY_HIGHER. starts, lengths: of the payload, as much as
    was kept, in the data walked. missing: how many bytes of the payload were not. lost: for each reason how many
    packets could not be read; then for each the position of the first.
    """

    def __init__(self, room: int) -> None:
        self.room = room
        self.count = 0
        self.ends = []
        self.times, self.positions, self.sequences = number_column(room), number_column(room), number_column(room)
        self.flags, self.starts, self.lengths = number_column(room), number_column(room), number_column(room)
        self.missing, self.lost = number_column(room), number_column(6)
        self._times, self._positions = numbers_of(self.times), numbers_of(self.positions)
        self._sequences, self._flags = numbers_of(self.sequences), numbers_of(self.flags)
        self._starts, self._lengths = numbers_of(self.starts), numbers_of(self.lengths)
        self._missing, self._lost = numbers_of(self.missing), numbers_of(self.lost)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _u16(src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t) -> cython.longlong:
    return src[at] << 8 | src[at + 1]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _u32(src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t) -> cython.longlong:
    high: cython.longlong = _u16(src, at)
    return high << 16 | _u16(src, at + 2)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _number(
    src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, little: cython.bint
) -> cython.longlong:
    """The unsigned 32 bits at `at`, in the byte order of the file."""
    high: cython.longlong
    if little:
        high = src[at + 3] << 8 | src[at + 2]
        return high << 16 | src[at + 1] << 8 | src[at]
    return _u32(src, at)


def walk_pcap(
    data: memoryview,
    at: cython.Py_ssize_t,
    origin: cython.longlong,
    little: cython.bint,
    per_microsecond: cython.longlong,
    link: cython.longlong,
    packets: Packets,
) -> tuple[int, int]:
    """Adds the packets of `data`, which begins at `origin` of the file, from a record at `at` on: (why it ended,
    position of the first record that was not added)."""
    src: cython.pointer[cython.const[cython.uchar]] = memory_of(data)
    end: cython.Py_ssize_t = len(data)
    kept: cython.longlong
    time: cython.longlong
    while end - at >= 16:
        kept = _number(src, at + 8, little)
        if kept > _MAX_PACKET:
            return DAMAGED, at
        if kept > end - at - 16:
            break
        if packets.count == packets.room:
            return FULL, at
        time = _number(src, at, little) * 1_000_000 + _number(src, at + 4, little) // per_microsecond
        packets._add(time, origin + at, link, at + 16, kept, _number(src, at + 12, little))
        at += 16 + kept
    return MORE, at


def walk_pcapng(
    data: memoryview,
    at: cython.Py_ssize_t,
    origin: cython.longlong,
    little: cython.bint,
    interfaces: list,
    packets: Packets,
) -> tuple[int, int]:
    """The same for a block at `at` of a pcapng section, whose interfaces are (link type, ticks a second, offset in
    seconds, bytes kept of a packet at most or 0). OTHER: the block is a section or an interface. UNTIMED: it is a
    packet of no interface."""
    src: cython.pointer[cython.const[cython.uchar]] = memory_of(data)
    end: cython.Py_ssize_t = len(data)
    kind: cython.longlong
    length: cython.longlong
    kept: cython.longlong
    size: cython.longlong
    number: cython.longlong
    head: cython.longlong
    time: cython.longlong
    while end - at >= 12:
        kind = _number(src, at, little)
        if kind == 0x0A0D0D0A or kind == 1:
            return OTHER, at
        length = _number(src, at + 4, little)
        if length < 12 or length % 4 or length > _MAX_PACKET:
            return DAMAGED, at
        if length > end - at:
            break
        if kind == 6 or kind == 2 or kind == 3:
            if packets.count == packets.room:
                return FULL, at
            head = 4 if kind == 3 else 20
            if length - 12 < head:
                return UNTIMED, at
            time = -1
            number = 0
            if kind == 3:
                size = _number(src, at + 8, little)
                kept = min(size, length - 12 - head)
            else:
                number = _number(src, at + 8, little)
                if kind == 2:
                    number = (number & 0xFFFF) if little else number >> 16
                kept = _number(src, at + 20, little)
                size = _number(src, at + 24, little)
            if number >= len(interfaces) or kept > length - 12 - head:
                return UNTIMED, at
            link, ticks, offset, most = interfaces[number]
            if kind == 3:  # says nothing of how much was kept; what pads it is no part of the packet
                if 0 < most < kept:
                    kept = most
            else:
                time = _microseconds(_number(src, at + 12, little), _number(src, at + 16, little), ticks, offset)
            packets._add(time, origin + at, link, at + 8 + head, kept, size)
        at += length
    return MORE, at


@cython.cfunc
@cython.exceptval(check=False)
@cython.cdivision(True)
def _microseconds(
    high: cython.longlong, low: cython.longlong, ticks: cython.ulonglong, offset: cython.longlong
) -> cython.longlong:
    """A time in ticks as microseconds since 1970; -1 where no clock shows it."""
    count: cython.ulonglong = high
    rest: cython.ulonglong
    count = count << 32 | low
    if ticks == 1_000_000 and offset == 0 and high < 1 << 25:
        return count
    if count // ticks > 1 << 40 or not -(1 << 40) < offset < 1 << 40:
        return -1
    high = count // ticks + offset
    if not 0 <= high <= _last_second:
        return -1
    rest = count % ticks
    if ticks > 1_000_000_000_000:  # whose rest would not fit, times a million
        count = rest // (ticks // 1_000_000)
        return high * 1_000_000 + (count if count < 999_999 else 999_999)
    return high * 1_000_000 + rest * 1_000_000 // ticks


def find_segments(data: memoryview, packets: Packets, segments: Segments) -> None:
    """Fills the columns of segments from all of the packets, for which they have the room."""
    src: cython.pointer[cython.const[cython.uchar]] = memory_of(data)
    index: cython.Py_ssize_t
    reason: cython.int
    segments.count = 0
    segments.ends = []
    for index in range(6):
        segments._lost[index] = 0
    for index in range(packets.count):
        reason = _segment(src, packets, index, segments)
        if reason >= 0:
            if segments._lost[reason] == 0:
                segments._lost[3 + reason] = packets._positions[index]
            segments._lost[reason] += 1


@cython.cfunc
@cython.exceptval(-2, check=True)
def _segment(
    src: cython.pointer[cython.const[cython.uchar]], packets: Packets, index: cython.Py_ssize_t, segments: Segments
) -> cython.int:
    """Adds the TCP segment in a packet, if there is one that tells something: the reason why it cannot be read, or -1.

    A length of 0 in an IP header: the network card was to split the packet (segmentation offload).
    """
    at: cython.Py_ssize_t = packets._starts[index]
    limit: cython.Py_ssize_t = at + packets._lengths[index]
    end: cython.longlong = at + packets._sizes[index]
    version: cython.int
    transport: cython.Py_ssize_t
    length: cython.longlong
    following: cython.int
    version, at = _network(src, packets._links[index], at, limit)
    if version == 4:
        if at + 10 > limit:
            return _cut
        if src[at + 9] != _tcp_number:
            return -1
        if _u16(src, at + 6) & 0x3FFF:
            return _fragment
        transport = at + (src[at] & 0x0F) * 4
        if transport < at + 20:
            return _cut
        length = _u16(src, at + 2)
        return _tcp(src, packets, index, segments, transport, limit, at + length if length else end, at + 12, 4)
    if version == 6:
        if at + 40 > limit:
            return _cut
        following = src[at + 6]
        transport = at + 40
        length = _u16(src, at + 4)
        # Extension headers that stand before the transport: hop-by-hop, routing, destination options, and that of a
        # fragment which is the whole packet (RFC 6946).
        while following == 0 or following == 43 or following == 60 or following == 44:
            if transport + (8 if following == 44 else 2) > limit:
                return _cut
            if following == 44:
                if _u16(src, transport + 2) & 0xFFF9:
                    return _fragment
                following = src[transport]
                transport += 8
            else:
                following = src[transport]
                transport += 8 + src[transport + 1] * 8
        if following != _tcp_number:
            return -1
        return _tcp(src, packets, index, segments, transport, limit, at + 40 + length if length else end, at + 8, 16)
    return version


@cython.cfunc
@cython.exceptval(check=False)
def _network(
    src: cython.pointer[cython.const[cython.uchar]],
    link: cython.longlong,
    at: cython.Py_ssize_t,
    limit: cython.Py_ssize_t,
) -> tuple[cython.int, cython.Py_ssize_t]:
    """(4 or 6, where that IP header starts), or (the reason why it cannot be read, or -1, and anything)."""
    number: cython.Py_ssize_t  # where the protocol's is
    protocol: cython.longlong
    if link == 101 or link == 12 or link == 228 or link == 229:  # raw IP
        if at >= limit:
            return _cut, at
        return 6 if src[at] >> 4 == 6 else 4, at
    if link == 1:  # Ethernet
        number, at = at + 12, at + 14
    elif link == 113:  # any interface
        number, at = at + 14, at + 16
    elif link == 276:  # any interface, version 2
        number, at = at, at + 20
    elif link == 0 or link == 108:  # loopback: BSD's address family, in the byte order of the machine that captured
        if at + 4 > limit:
            return _cut, at
        protocol = max(src[at], src[at + 3])
        return 6 if protocol == 10 or protocol == 24 or protocol == 28 or protocol == 30 else 4, at + 4
    else:
        return _link, at
    if at > limit:
        return _cut, at
    protocol = _u16(src, number)
    while protocol == 0x8100 or protocol == 0x88A8 or protocol == 0x9100:  # VLAN tags
        if at + 4 > limit:
            return _cut, at
        protocol = _u16(src, at + 2)
        at += 4
    if protocol == 0x0800:
        return 4, at
    if protocol == 0x86DD:
        return 6, at
    return -1, at


@cython.cfunc
@cython.exceptval(-2, check=True)
def _tcp(
    src: cython.pointer[cython.const[cython.uchar]],
    packets: Packets,
    index: cython.Py_ssize_t,
    segments: Segments,
    at: cython.Py_ssize_t,
    limit: cython.Py_ssize_t,
    end: cython.longlong,
    addresses: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.int:
    payload: cython.Py_ssize_t
    length: cython.longlong
    row: cython.Py_ssize_t
    flags: cython.int
    if at + 14 > limit or addresses + 2 * size > limit:
        return _cut
    payload = at + (src[at + 12] >> 4) * 4
    if payload < at + 20 or end < payload or end - payload > _MAX_PACKET:
        return _cut
    length = max(0, min(end, limit) - payload)
    flags = src[at + 13]
    if end == payload and not flags & _told_without_payload:
        return -1
    row = segments.count
    if _is_higher(src, addresses, at, size):
        flags |= _by_higher
        segments.ends.append(_ends(src, addresses + size, addresses, at + 2, at, size))
    else:
        flags &= 0xFF
        segments.ends.append(_ends(src, addresses, addresses + size, at, at + 2, size))
    segments._times[row] = packets._times[index]
    segments._positions[row] = packets._positions[index]
    segments._sequences[row] = _u32(src, at + 4)
    segments._flags[row] = flags
    segments._starts[row] = payload
    segments._lengths[row] = length
    segments._missing[row] = end - payload - length
    segments.count = row + 1
    return -1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_higher(
    src: cython.pointer[cython.const[cython.uchar]],
    addresses: cython.Py_ssize_t,
    ports: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.bint:
    """Whether the sender's address and port come after the receiver's."""
    if cython.compiled:
        order: cython.int = memcmp(src + addresses, src + addresses + size, size)
        return order > 0 or (order == 0 and memcmp(src + ports, src + ports + 2, 2) > 0)
    else:
        source, target = (
            bytes(src[addresses + at * size :][:size]) + bytes(src[ports + 2 * at :][:2]) for at in range(2)
        )
        return source > target


@cython.cfunc
def _ends(
    src: cython.pointer[cython.const[cython.uchar]],
    lower: cython.Py_ssize_t,
    higher: cython.Py_ssize_t,
    lower_port: cython.Py_ssize_t,
    higher_port: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> bytes:
    if cython.compiled:
        key: bytes = PyBytes_FromStringAndSize(cython.NULL, 2 * size + 4)
        out: cython.p_char = PyBytes_AS_STRING(key)
        memcpy(out, src + lower, size)
        memcpy(out + size, src + lower_port, 2)
        memcpy(out + size + 2, src + higher, size)
        memcpy(out + 2 * size + 2, src + higher_port, 2)
        return key
    else:
        ends = ((lower, lower_port), (higher, higher_port))
        return b"".join(bytes(src[at : at + size]) + bytes(src[port : port + 2]) for at, port in ends)
