"""One direction of a TCP connection that is only watched: put in order, and cut into frames.

Retransmissions are dropped, what came early waits for its turn. What never comes is told as a gap, as soon as more
waits behind it than `MAX_WAITING_BYTES` or `MAX_WAITING_SEGMENTS`.

The bytes in their order are cut into frames: a size of four bytes, and as many bytes. Unlike a peer's, this reader may
begin in the middle, may lose bytes, and refuses nothing. Of a frame it keeps the first bytes, as many as it is told.
Where it no longer knows where frames begin, it waits for a packet that begins one.
"""

from __future__ import annotations

from bisect import bisect_left

import cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.tagwire.kernel.raw_bytes import int32_at, memory_of
else:
    from tagwire.kernel.raw_bytes import int32_at, memory_of

COMPILED: bool = cython.compiled

MAX_WAITING_BYTES = 1 << 20
MAX_WAITING_SEGMENTS = 256

SEGMENT_BYTES = 256
"""What a segment that waits takes beside its bytes, about."""

_max_waiting_bytes = cython.declare(cython.longlong, MAX_WAITING_BYTES)
_max_waiting_segments = cython.declare(cython.longlong, MAX_WAITING_SEGMENTS)
_segment_bytes = cython.declare(cython.longlong, SEGMENT_BYTES)
_mask = cython.declare(cython.longlong, (1 << 32) - 1)
_half = cython.declare(cython.longlong, 1 << 31)
_largest_window = cython.declare(cython.longlong, 1 << 30)  # RFC 7323
_least_frame = cython.declare(cython.longlong, 4)  # a response is a correlation id at least; a bare token may be empty


@cython.cclass
class Held:
    """What all streams together keep: `size` in bytes."""

    def __init__(self) -> None:
        self.size = 0


@cython.cclass
class Stream:
    """The segments of one direction, given as they were captured; a subclass is told of the frames in them.

    held: counts what is kept. keep: how many bytes of a frame are kept. max_frame: what is longer is no frame.

    An offset in the stream is the first sequence that was seen, and the bytes since: it does not wrap.
    """

    def __init__(self, held: Held, keep: int, max_frame: int) -> None:
        self._held = held
        self._keep = keep
        self._least = _least_frame
        self._max_frame = max_frame
        self.begun = False
        self._first = -1  # where a SYN has begun it
        self._next = 0
        self._waiting = None
        self.waiting_bytes = 0
        self._found = False
        self._prefix = 0  # the bytes of a size that is not all there, and how many they are
        self._prefix_bytes = 0
        self._kept = None
        self.kept_bytes = 0
        self._size = 0
        self._due = 0  # bytes of the open frame that are still to come
        self._holed = False
        self._time = -1
        self._position = 0

    @cython.cfunc
    def begin_frames(self) -> cython.int:
        """The next byte begins a frame."""
        self._found = True
        self._prefix_bytes = 0
        self._due = 0
        self._forget_kept()
        return 0

    @cython.cfunc
    def take_tokens(self, bare: cython.bint) -> cython.int:
        """Whether frames are tokens of SASL, which may be empty, or requests and responses."""
        self._least = 0 if bare else _least_frame
        return 0

    @cython.cfunc
    def begin(self, sequence: cython.longlong) -> cython.int:
        """A SYN: the next byte is `sequence`. What waited for an earlier connection of the same ends is forgotten."""
        if self.begins_again(sequence):
            return 0
        self.begun = True
        self._first = self._next = sequence & _mask
        self._held.size -= self.waiting_bytes
        self.waiting_bytes = 0
        self._waiting = None
        return 0

    @cython.cfunc
    def begins_again(self, sequence: cython.longlong) -> cython.bint:
        """Whether a SYN has begun it at `sequence` before: it was sent again, or captured twice."""
        return self._first == sequence & _mask

    @cython.cfunc
    def may_end_at(self, sequence: cython.longlong) -> cython.bint:
        """Whether a RST at `sequence` is in the window of whoever receives it, as large as one can be; any is where
        nothing of the stream was seen. One that is outside was delayed, or is forged, and ends nothing (RFC 9293)."""
        ahead: cython.longlong = ((sequence - self._next + _half) & _mask) - _half
        return not self.begun or 0 <= ahead <= _largest_window

    @cython.cfunc
    def add(
        self,
        src: cython.pointer[cython.const[cython.uchar]],
        start: cython.Py_ssize_t,
        length: cython.longlong,
        missing: cython.longlong,
        sequence: cython.longlong,
        time: cython.longlong,
        position: cython.longlong,
    ) -> cython.int:
        """A segment with a payload; `missing` bytes at its end were not kept by the capture."""
        ahead: cython.longlong
        if not self.begun:
            self.begun = True
            self._next = sequence
        # How far it is ahead of the next byte; negative where it is behind it.
        ahead = ((sequence - self._next + _half) & _mask) - _half
        if ahead == 0 and self._waiting is None:  # nearly all of them
            self._hand_over(src, start, length, missing, time, position)
        elif ahead > 0:
            self._wait(self._next + ahead, src, start, length, missing, time, position)
        else:
            self._hand_over_unseen(-ahead, src, start, length, missing, time, position)
            self._take_waiting()
        return 0

    @cython.cfunc
    def finish(self) -> cython.int:
        """Nothing more comes: hands over what still waits, with the gaps before it."""
        while self._waiting is not None:
            self._skip_gap()
        self._forget_kept()
        return 0

    @cython.cfunc
    def let_go(self) -> cython.int:
        """Keeps nothing any longer: what waits is handed over with the gaps before it, and an open frame is kept no
        further than the size that tells where it ends."""
        while self._waiting is not None:
            self._skip_gap()
        if self._due:
            self._holed = True
        self._forget_kept()
        return 0

    @cython.cfunc
    def _hand_over(
        self,
        src: cython.pointer[cython.const[cython.uchar]],
        start: cython.Py_ssize_t,
        length: cython.longlong,
        missing: cython.longlong,
        time: cython.longlong,
        position: cython.longlong,
    ) -> cython.int:
        self._next += length + missing
        if length:
            self._data(src, start, start + length, time, position)
        if missing:
            self._gap(missing)
        return 0

    @cython.cfunc
    def _hand_over_unseen(
        self,
        seen: cython.longlong,
        src: cython.pointer[cython.const[cython.uchar]],
        start: cython.Py_ssize_t,
        length: cython.longlong,
        missing: cython.longlong,
        time: cython.longlong,
        position: cython.longlong,
    ) -> cython.int:
        if seen < length:
            self._hand_over(src, start + seen, length - seen, missing, time, position)
        elif seen < length + missing:
            self._hand_over(src, start, 0, length + missing - seen, time, position)
        return 0

    @cython.cfunc
    def _wait(
        self,
        offset: cython.longlong,
        src: cython.pointer[cython.const[cython.uchar]],
        start: cython.Py_ssize_t,
        length: cython.longlong,
        missing: cython.longlong,
        time: cython.longlong,
        position: cython.longlong,
    ) -> cython.int:
        payload: bytes
        size: cython.longlong = length + _segment_bytes
        index: cython.Py_ssize_t
        if self._waiting is None:
            self._waiting = []
        index = bisect_left(self._waiting, (offset,))
        if index < len(self._waiting) and self._waiting[index][0] == offset and len(self._waiting[index][1]) >= length:
            return 0
        if cython.compiled:
            payload = PyBytes_FromStringAndSize(cython.cast(cython.p_char, src + start), length)
        else:
            payload = bytes(src[start : start + length])
        self._waiting.insert(index, (offset, payload, missing, time, position))
        self.waiting_bytes += size
        self._held.size += size
        while self._waiting is not None and (
            self.waiting_bytes > _max_waiting_bytes or len(self._waiting) > _max_waiting_segments
        ):
            self._skip_gap()
        return 0

    @cython.cfunc
    def _take_waiting(self) -> cython.int:
        """Hands over what is next of what waits, for as long as there is no gap."""
        payload: bytes
        offset: cython.longlong
        missing: cython.longlong
        time: cython.longlong
        position: cython.longlong
        size: cython.longlong
        while self._waiting is not None:
            offset, payload, missing, time, position = self._waiting[0]
            if offset > self._next:
                break
            del self._waiting[0]
            if not self._waiting:
                self._waiting = None
            size = len(payload) + _segment_bytes
            self.waiting_bytes -= size
            self._held.size -= size
            if cython.compiled:
                src: cython.pointer[cython.const[cython.uchar]] = cython.cast(
                    cython.pointer[cython.const[cython.uchar]], PyBytes_AS_STRING(payload)
                )
                self._hand_over_unseen(self._next - offset, src, 0, len(payload), missing, time, position)
            else:
                view = memoryview(payload)
                self._hand_over_unseen(self._next - offset, view, 0, len(payload), missing, time, position)
        return 0

    @cython.cfunc
    def _skip_gap(self) -> cython.int:
        """Takes as lost what is missing before the first that waits."""
        offset: cython.longlong = self._waiting[0][0]
        size: cython.longlong = offset - self._next
        self._next = offset
        if size > 0:
            self._gap(size)
        self._take_waiting()
        return 0

    @cython.cfunc
    def _data(
        self,
        src: cython.pointer[cython.const[cython.uchar]],
        at: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        time: cython.longlong,
        position: cython.longlong,
    ) -> cython.int:
        """The next bytes, in their order; `time` and `position` are their packet's."""
        size: cython.longlong
        if not self._found:
            if not self._begins(src, at, end):
                self._lost(end - at)
                return 0
            self.begin_frames()
        while at < end:
            if self._due:
                at = self._fill(src, at, end)
                continue
            if self._prefix_bytes or end - at < 4:
                if not self._prefix_bytes:
                    self._time, self._position, self._prefix = time, position, 0
                while self._prefix_bytes < 4 and at < end:
                    self._prefix = self._prefix << 8 | src[at]
                    self._prefix_bytes += 1
                    at += 1
                if self._prefix_bytes < 4:
                    return 0
                size = self._prefix
                self._prefix_bytes = 0
            else:
                self._time, self._position = time, position
                size = int32_at(src, at) & _mask
                at += 4
            if not self._least <= size <= self._max_frame:
                self._found = False
                self._lost(end - at)
                return 0
            if end - at >= size:  # a frame in one packet, as most requests are
                self._frame(src, at, min(size, self._keep), size, self._time, self._position)
                at += size
            else:
                self._size = self._due = size
                self._holed = False
        return 0

    @cython.cfunc
    def _gap(self, size: cython.longlong) -> cython.int:
        """Bytes that were not captured."""
        if not self._found:
            return 0
        if not self._due or size > self._due:
            self._found = False
            self._prefix_bytes = 0
            self._due = 0
            self._forget_kept()
            self._lost(size)
            return 0
        # Inside a frame whose end is known: what follows it is not lost.
        self._holed = True
        self._due -= size
        if not self._due:
            self._take()
        return 0

    @cython.cfunc
    def _fill(
        self, src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        count: cython.longlong = min(self._due, end - at)
        if not self._holed and self.kept_bytes < self._keep:
            self._keep_more(src, at, min(count, self._keep - self.kept_bytes))
        self._due -= count
        if not self._due:
            self._take()
        return at + count

    @cython.cfunc
    def _keep_more(
        self, src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, count: cython.Py_ssize_t
    ) -> cython.int:
        if self._kept is None:
            self._kept = bytearray()
        if cython.compiled:
            self._kept += PyBytes_FromStringAndSize(cython.cast(cython.p_char, src + at), count)
        else:
            self._kept += src[at : at + count]
        self.kept_bytes += count
        self._held.size += count
        return 0

    @cython.cfunc
    def _forget_kept(self) -> cython.int:
        self._held.size -= self.kept_bytes
        self.kept_bytes = 0
        self._kept = None
        return 0

    @cython.cfunc
    def _take(self) -> cython.int:
        """The open frame is complete, or what of it was captured is."""
        kept: bytearray = self._kept
        count: cython.longlong = self.kept_bytes
        self._forget_kept()
        view: memoryview = memoryview(b"" if kept is None else kept)
        self._frame(memory_of(view), 0, count, self._size, self._time, self._position)
        return 0

    @cython.cfunc
    def _begins(
        self, src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.bint:
        """Whether bytes at the start of a packet look like the start of a frame; for a stream whose offset is lost."""
        raise NotImplementedError

    @cython.cfunc
    def _lost(self, size: cython.longlong) -> cython.int:
        """The offset is lost; `size` bytes were passed over to find it again, or to wait."""
        raise NotImplementedError

    @cython.cfunc
    def _frame(
        self,
        src: cython.pointer[cython.const[cython.uchar]],
        at: cython.Py_ssize_t,
        kept: cython.longlong,
        size: cython.longlong,
        time: cython.longlong,
        position: cython.longlong,
    ) -> cython.int:
        """A frame of `size` bytes after its size, of which the first `kept` are at `at`; where it begins, `time` and
        `position` were its packet's."""
        raise NotImplementedError
