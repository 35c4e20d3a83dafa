"""Opening evidence: files, gzipped or not, and pipes, which are read once and have to have a writer."""

from __future__ import annotations

import gzip
import os
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Final, Protocol

from tagwire.capture.observation import Losses, Place
from tagwire.errors import CaptureError
from tagwire.records.files.opening import strange_kind

CUT_GZIP: Final = "a gzip file that is cut short or damaged"

WRITER_WITHIN_S: Final = 5.0
"""How long somebody is waited for who writes to a named pipe."""

_GZIP: Final = b"\x1f\x8b"
_LOOK_AGAIN_S: Final = 0.02
_BUFFER: Final = 1 << 16


class _Readable(Protocol):
    def readinto(self, room: memoryview, /) -> int | None: ...


@contextmanager
def opened(path: Path, losses: Losses, head: int) -> Iterator[tuple[BufferedReader, bytes]]:
    """The content of a file or a pipe, unpacked where it is gzipped, and the first `head` bytes of it, which are still
    to be read. What is damaged of a gzip file is counted.

    Raises:
        CaptureError: a device or a socket, or a named pipe that nobody writes to.
        OSError: it cannot be read.
    """
    with _raw(path) as raw:
        start, file = _peeked(raw, len(_GZIP))
        if start != _GZIP:
            first, file = _peeked(file, head)
            yield file, first
            return
        with gzip.open(file) as unpacked:
            first, file = _peeked(_UntilDamage(unpacked, path, losses), head)
            yield file, first


def is_gzip(path: Path) -> bool:
    """Whether a file is gzipped."""
    with open(path, "rb") as file:
        return file.read(2) == _GZIP


def _raw(path: Path) -> BufferedReader:
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
    begun = file.read(size)
    if isinstance(file, BufferedReader) and file.seekable():
        file.seek(0)
        return begun, file
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
    """A gzip file that ends, and counts it, where it is cut short or damaged. What comes before is not lost with it."""

    def __init__(self, file: gzip.GzipFile, path: Path, losses: Losses) -> None:
        self._file = file
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
            return self._file.read1(size)
        except (EOFError, OSError, zlib.error) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            self._ended = True
            self._losses.add(CUT_GZIP, Place(str(self._path), 0))
            return b""
