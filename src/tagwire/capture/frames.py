"""Frames cut out of one direction of a connection that is only watched: nothing of it may be missing for ever.

Unlike `tagwire.rpc.frames`, this reader may begin in the middle, may lose bytes, and never refuses its peer. Of a frame
it keeps the first `keep` bytes. Where it no longer knows where frames begin, it waits for a packet that begins one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from tagwire.rpc.frames import DEFAULT_MAX_FRAME_BYTES, SIZE_BYTES

MIN_FRAME_BYTES: Final = 4
"""A response is a correlation id at least."""


class Frame(NamedTuple):
    """A frame as it was seen.

    Attributes:
        data: its first bytes, after the size.
        size: how many it has, without the size's own four.
        whole: whether `data` is all of it.
        time, position: of the packet that it begins in.
    """

    data: bytes
    size: int
    whole: bool
    time: int
    position: int


class Cutter:
    """The frames of one direction: a `Sink` of the bytes that a `Stream` puts in order.

    Args:
        taken: what is done with each frame.
        begins: whether bytes at the start of a packet look like the start of a frame; asked while the place is lost.
        lost: told when the place is lost, with the number of bytes that were passed over to find it again or to wait.
        keep: how many bytes of a frame are kept.
        found: whether the first byte that comes begins a frame.
    """

    def __init__(
        self,
        taken: Callable[[Frame], None],
        begins: Callable[[bytes], bool],
        lost: Callable[[int], None],
        *,
        keep: int,
        found: bool,
    ) -> None:
        self._taken = taken
        self._begins = begins
        self._lost = lost
        self._keep = keep
        self._found = found
        self._prefix = b""  # of a size that is not all there
        self._kept = bytearray()
        self._size = 0
        self._due = 0  # bytes of the open frame that are still to come
        self._holed = False
        self._began = (0, 0)

    def begin(self) -> None:
        """The next byte begins a frame: the connection is a new one."""
        self._found = True
        self._prefix, self._due = b"", 0

    def data(self, data: bytes, time: int, position: int) -> None:
        if not self._found:
            if not self._begins(data):
                self._lost(len(data))
                return
            self.begin()
        at, end = 0, len(data)
        while at < end:
            if self._due:
                at = self._fill(data, at, end)
                continue
            if self._prefix or end - at < SIZE_BYTES:
                if not self._prefix:
                    self._began = (time, position)
                need = SIZE_BYTES - len(self._prefix)
                self._prefix += data[at : at + need]
                at += need
                if len(self._prefix) < SIZE_BYTES:
                    return
                size = int.from_bytes(self._prefix, "big")
                self._prefix = b""
            else:
                self._began = (time, position)
                size = int.from_bytes(data[at : at + SIZE_BYTES], "big")
                at += SIZE_BYTES
            if not MIN_FRAME_BYTES <= size <= DEFAULT_MAX_FRAME_BYTES:
                self._found = False
                self._lost(end - at)
                return
            if end - at >= size:  # a frame in one packet, as most requests are
                self._taken(Frame(data[at : at + min(size, self._keep)], size, size <= self._keep, time, position))
                at += size
            else:
                self._size = self._due = size
                self._holed = False
                self._kept.clear()

    def gap(self, size: int) -> None:
        if not self._found:
            return
        if not self._due or size > self._due:
            self._found = False
            self._prefix, self._due = b"", 0
            self._lost(size)
            return
        # Inside a frame whose end is known: what follows it is not lost.
        self._holed = True
        self._due -= size
        if not self._due:
            self._take()

    def _fill(self, data: bytes, at: int, end: int) -> int:
        count = min(self._due, end - at)
        if not self._holed and len(self._kept) < self._keep:
            self._kept += data[at : at + min(count, self._keep - len(self._kept))]
        self._due -= count
        if not self._due:
            self._take()
        return at + count

    def _take(self) -> None:
        kept = bytes(self._kept)
        self._kept.clear()
        self._taken(Frame(kept, self._size, len(kept) == self._size, *self._began))
