"""Opening evidence: files, packed or not, standard input, and pipes, which are read once and have to have a writer."""

from __future__ import annotations

import gzip
import os
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Final, Protocol

from tagwire.capture.observation import Losses, Place, name_of
from tagwire.errors import CaptureError
from tagwire.extras import Needs
from tagwire.records.files.opening import strange_kind

STDIN: Final = Path("-")
"""Standard input, as evidence. A file of that name has a longer path."""

CUT_GZIP: Final = "a gzip file that is cut short or damaged"
CUT_ZSTD: Final = "a zstd file that is cut short or damaged, or needs more than 128 MiB to be unpacked"

WRITER_WITHIN_S: Final = 5.0
"""How long somebody is waited for who writes to a named pipe."""

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE: Final = b"\x2a\x4d\x18"  # and before it a byte of 0x50 to 0x5F, with which parallel packers begin
_MAGIC: Final = 4
_LOOK_AGAIN_S: Final = 0.02
_BUFFER: Final = 1 << 16
_ZSTD_PIECE: Final = 1 << 13
"""What is unpacked at a time: of a file that is cut short, less than that is lost beside what the cut took."""


class _Readable(Protocol):
    def readinto(self, room: memoryview, /) -> int | None: ...


@contextmanager
def opened(path: Path, losses: Losses, head: int) -> Iterator[tuple[BufferedReader, bytes]]:
    """The content of a file, a pipe or `STDIN`, unpacked where it is packed by gzip or zstd, in one piece or several,
    and the first `head` bytes of it, which are still to be read. What is damaged of a packed file is counted. However
    much it unpacks to, a little of it is in memory.

    Raises:
        CaptureError: a device or a socket, or a named pipe that nobody writes to.
        OSError: it cannot be read.
    """
    with _raw(path) as raw:
        start, file = _peeked(raw, _MAGIC)
        if start.startswith(_GZIP):
            with gzip.open(file) as unpacked:
                first, file = _peeked(_UntilDamage(unpacked.read1, CUT_GZIP, path, losses), head)
                yield file, first
        elif _is_zstd(start):
            with _zstd(file) as read:
                first, file = _peeked(_UntilDamage(read, CUT_ZSTD, path, losses), head)
                yield file, first
        else:
            first, file = _peeked(file, head)
            yield file, first


def is_packed(path: Path) -> bool:
    """Whether a file is packed by gzip or zstd."""
    with open(path, "rb") as file:
        start = file.read(_MAGIC)
    return start.startswith(_GZIP) or _is_zstd(start)


def _is_zstd(start: bytes) -> bool:
    return start == _ZSTD or (start[1:] == _ZSTD_SKIPPABLE and 0x50 <= start[0] <= 0x5F)


@contextmanager
def _zstd(file: BufferedReader) -> Iterator[Callable[[int], bytes]]:
    """What reads a little of the frames in `file`. Arrow's reader takes no frame that asks for more than 128 MiB."""
    with Needs("arrow"):
        import pyarrow as pa

    with pa.CompressedInputStream(file, "zstd") as unpacked:
        yield lambda size: unpacked.read(min(size, _ZSTD_PIECE))


def _raw(path: Path) -> BufferedReader:
    if path == STDIN:
        return _standard_input()
    kind = strange_kind(path)
    if kind is None:
        return open(path, "rb")
    if kind != "a named pipe":
        raise CaptureError(f"{path}: {kind}, which holds no capture")
    # Opening it as files are opened would wait for a writer for ever.
    raw = open(path, "rb", buffering=0, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115
    try:
        begun = _first_of(raw, path)
        os.set_blocking(raw.fileno(), True)
    except BaseException:
        raw.close()
        raise
    return BufferedReader(_Again(begun, raw), _BUFFER)


def _standard_input() -> BufferedReader:
    """As it was handed over, and not opened anew: from where it stands, and be it a socket."""
    if os.isatty(0):
        raise CaptureError(f"{STDIN}: a terminal, which holds no capture; give a log or packets by a pipe or with <")
    return open(0, "rb", closefd=False)


def _first_of(raw: RawIOBase, path: Path) -> bytes:
    """What a pipe gives first; empty while its writer has written nothing. Raises CaptureError where it has none."""
    until = time.monotonic() + WRITER_WITHIN_S
    while True:
        found = raw.read(_BUFFER)
        if found is None:
            return b""  # somebody has it open, and has written nothing yet
        if found:
            return found
        if time.monotonic() >= until:
            raise CaptureError(f"{path}: a named pipe that nobody writes to")
        time.sleep(_LOOK_AGAIN_S)


def _peeked(file: BufferedReader | _UntilDamage, size: int) -> tuple[bytes, BufferedReader]:
    """The first `size` bytes, and a file that has them still."""
    if isinstance(file, BufferedReader) and file.seekable():
        at = file.tell()
        begun = file.read(size)
        file.seek(at)
        return begun, file
    begun = file.read(size)
    return begun, BufferedReader(_Again(begun, file), _BUFFER)


class _Again(RawIOBase):
    """A stream of which some was read already."""

    def __init__(self, begun: bytes, rest: _Readable) -> None:
        self._begun = begun
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, room: memoryview) -> int | None:  # type: ignore[override]
        if not self._begun:
            return self._rest.readinto(room)
        size = min(len(room), len(self._begun))
        room[:size], self._begun = self._begun[:size], self._begun[size:]
        return size

    def close(self) -> None:
        if not self.closed:
            getattr(self._rest, "close", lambda: None)()
        super().close()


class _UntilDamage:
    """A packed file that ends, and counts it, where it is cut short or damaged. What comes before is not lost with it.

    Args:
        read: gives at most so many bytes, none at the end.
        reason: what damage is counted as.
    """

    def __init__(self, read: Callable[[int], bytes], reason: str, path: Path, losses: Losses) -> None:
        self._read = read
        self._reason = reason
        self._path = path
        self._losses = losses
        self._ended = False

    def read(self, size: int) -> bytes:
        pieces = []
        while size and (piece := self._until_damage(size)):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def readinto(self, room: memoryview) -> int:
        piece = self.read(len(room))
        room[: len(piece)] = piece
        return len(piece)

    def _until_damage(self, size: int) -> bytes:
        if self._ended:
            return b""
        try:
            return self._read(size)
        except (EOFError, OSError, zlib.error) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            self._ended = True
            self._losses.add(self._reason, Place(name_of(self._path), 0))
            return b""
