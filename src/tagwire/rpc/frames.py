"""Frames: an int32 size, then that many bytes (docs/wire-format.md#frames).

The size is judged as soon as its four bytes are there, before anything is kept for the body; memory then follows the
bytes that really arrive, never the size that was claimed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tagwire.errors import RemoteProtocolError

SIZE_BYTES: Final = 4

# socket.request.max.bytes, the bound every Kafka broker has by default.
DEFAULT_MAX_FRAME_BYTES: Final = 104_857_600

# One read of a socket; frames up to this size are cut out of it.
READ_BYTES: Final = 65_536

# The first room given to a longer frame, and the factor by which it grows while the bytes keep coming. A peer that
# claims 100 MB and sends little costs this much at most, and an honest frame is copied once or twice in all.
FIRST_ROOM_BYTES: Final = 262_144
ROOM_GROWTH: Final = 16

_OTHER_PROTOCOLS: Final = (
    (b"\x15\x03", "a TLS alert: the peer speaks TLS"),
    (b"\x16\x03", "a TLS handshake: the peer speaks TLS"),
    (b"HTTP", "an HTTP response: the peer is a web server"),
    (b"GET ", "an HTTP request: the peer is a web client"),
    (b"POST", "an HTTP request: the peer is a web client"),
    (b"PUT ", "an HTTP request: the peer is a web client"),
    (b"HEAD", "an HTTP request: the peer is a web client"),
    (b"OPTI", "an HTTP request: the peer is a web client"),
    (b"PRI ", "an HTTP/2 request: the peer is a web client"),
    (b"SSH-", "an SSH greeting"),
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a connection accepts from its peer.

    Attributes:
        max_frame_bytes: the largest frame, in bytes after the size; Kafka's own default is 104857600.
    """

    max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES


def size_prefix(size: int) -> bytes:
    """The four bytes before a frame of `size` bytes."""
    return size.to_bytes(SIZE_BYTES, "big")


class Frames:
    """Cuts a stream of bytes into frames, however it was split on the way.

    Bytes come in through `receive(data)`, or without a copy by reading into `space()` and telling `received(count)`.

    Attributes:
        limit: the largest frame, in bytes after the size.
    """

    def __init__(self, max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> None:
        self.limit = max_frame_bytes
        self._buffer = bytearray()
        self._at = 0
        self._scratch: memoryview | None = None
        self._body: bytearray | None = None  # a frame too long for the buffer, filled in place
        self._size = 0
        self._filled = 0
        self._broken: RemoteProtocolError | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no byte of an unfinished frame is held."""
        return self._body is None and self._at == len(self._buffer)

    @property
    def unfinished_bytes(self) -> int:
        """How much memory is held for a frame that is still to be completed."""
        return len(self._body) if self._body is not None else len(self._buffer) - self._at

    def receive(self, data: bytes | bytearray | memoryview) -> None:
        """Takes bytes from the peer, any number of them."""
        if self._body is not None:
            view = memoryview(data)
            while view and self._filled < self._size:
                space = self.space()
                count = min(len(space), len(view))
                space[:count] = view[:count]
                self._filled += count
                view = view[count:]
            data = view
        self._keep(data)

    def space(self) -> memoryview:
        """Where the next bytes from the peer may be written; never empty, valid until any other method is called."""
        if self._body is not None and self._filled < self._size:
            if self._filled == len(self._body):
                room = bytearray(min(self._size, self._filled * ROOM_GROWTH))
                room[: self._filled] = self._body
                self._body = room
            return memoryview(self._body)[self._filled :]
        if self._scratch is None:
            self._scratch = memoryview(bytearray(READ_BYTES))
        return self._scratch

    def received(self, count: int) -> None:
        """Tells that `count` bytes were written at the start of the last `space()`."""
        if self._body is not None and self._filled < self._size:
            self._filled += count
        elif self._scratch is not None:
            self._keep(self._scratch[:count])

    def next_frame(self) -> memoryview | None:
        """The next whole frame without its size, or None while it is incomplete. The memory is the caller's.

        Raises:
            RemoteProtocolError: the size is negative or over the limit; so does every later call.
        """
        if self._broken is not None:
            raise self._broken
        if self._body is not None:
            if self._filled < self._size:
                return None
            body, self._body = self._body, None
            return memoryview(body)
        start = self._at + SIZE_BYTES
        if start > len(self._buffer):
            return None
        size = int.from_bytes(self._buffer[self._at : start], "big", signed=True)
        if not 0 <= size <= self.limit:
            raise self._misjudged(size)
        end = start + size
        if end <= len(self._buffer):
            with memoryview(self._buffer) as view:
                frame = bytes(view[start:end])
            self._at = end
            return memoryview(frame)
        if size > READ_BYTES:
            self._begin_body(start, size)
        return None

    def _misjudged(self, size: int) -> RemoteProtocolError:
        """Why no frame has this size, of the next four bytes; final."""
        prefix = bytes(self._buffer[self._at : self._at + SIZE_BYTES])
        reason = "negative" if size < 0 else f"over the limit of {self.limit} bytes"
        guess = next((what for mark, what in _OTHER_PROTOCOLS if prefix.startswith(mark)), "")
        hint = f"; these are the first bytes of {guess}" if guess else ""
        self._broken = RemoteProtocolError(f"frame size {size} (bytes {prefix.hex(' ')}) is {reason}{hint}")
        return self._broken

    def _begin_body(self, start: int, size: int) -> None:
        held = len(self._buffer) - start
        body = bytearray(min(size, max(FIRST_ROOM_BYTES, held)))
        with memoryview(self._buffer) as view:
            body[:held] = view[start:]
        self._body, self._size, self._filled = body, size, held
        self._buffer.clear()
        self._at = 0

    def _keep(self, data: bytes | bytearray | memoryview) -> None:
        # What was handed out is dropped only when new bytes come: many small frames in one read cost one move in all.
        if self._at:
            del self._buffer[: self._at]
            self._at = 0
        self._buffer += data
