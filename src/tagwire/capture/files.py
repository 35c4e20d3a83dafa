"""Captures of any kind as observations: each file is known by how it begins, gzipped or not."""

from __future__ import annotations

import glob
import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Final, Literal, cast

from tagwire.capture.connections import requests_in
from tagwire.capture.exchange import Exchange, exchanges
from tagwire.capture.observation import Losses, Observation, Place
from tagwire.capture.packets import MAGICS
from tagwire.capture.request_log import MAX_LINE_BYTES
from tagwire.capture.request_log import observations as logged
from tagwire.capture.requests import Requests, Seen, requests_of
from tagwire.errors import CaptureError

Kind = Literal["packets", "log"]

_GZIP: Final = b"\x1f\x8b"
BATCH_LINES: Final = 20_000
"""Lines of a log whose observations are handed over together."""

CUT_GZIP: Final = "a gzip file that is cut short or damaged"


def paths_of(given: Iterable[str | Path]) -> list[Path]:
    """The files that paths, directories (with all below them) and patterns name, each once, in order.

    Raises:
        CaptureError: nothing has this name.
    """
    found: dict[Path, None] = {}
    for one in given:
        path = Path(one)
        if path.is_dir():
            matches = sorted(child for child in path.rglob("*") if child.is_file())
        elif path.exists():
            matches = [path]
        else:
            matches = sorted(Path(name) for name in glob.glob(str(one), recursive=True) if Path(name).is_file())
        if not matches:
            raise CaptureError(f"{one}: no such file, and no file in it")
        found.update(dict.fromkeys(matches))
    return list(found)


def kind_of(path: Path) -> Kind:
    """What a file is: "packets" for pcap and pcapng, "log" for anything else, which is read line by line."""
    with _opened(path, Losses()) as file:
        return "packets" if file.read(4) in MAGICS else "log"


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a file that can be read by itself: all of it, or lines of a log.

    Attributes:
        start: the position to begin at; of a log, lines that begin before it belong to the piece before.
        end: the position before which the last line begins; None is the file's end.
    """

    path: Path
    start: int = 0
    end: int | None = None


def pieces(path: Path, size: int) -> list[Piece]:
    """A file in pieces of about `size` bytes. Only logs that are not gzipped are split: lines stand by themselves,
    packets do not."""
    length = path.stat().st_size
    if length <= size or kind_of(path) == "packets" or _is_gzip(path):
        return [Piece(path)]
    return [Piece(path, start, min(start + size, length)) for start in range(0, length, size)]


def observe(path: Path | Piece, losses: Losses, *, bodies: bool = False) -> Iterator[Observation]:
    """The requests that a file tells of, one by one; see `seen_in`."""
    for seen in seen_in(path, losses, bodies=bodies):
        yield from seen.observations() if isinstance(seen, Requests) else seen


def seen_in(path: Path | Piece, losses: Losses, *, bodies: bool = False) -> Iterator[Seen]:
    """The requests that a file tells of, many at a time.

    Args:
        path: a pcap or pcapng file, or a request log, each may be gzipped; or a piece of one.
        losses: counts what is not understood.
        bodies: whether the bodies of captured answers are decoded, for their error codes.
    """
    piece = path if isinstance(path, Piece) else Piece(path)
    path, name = piece.path, str(piece.path)
    with _opened(path, losses) as file:
        if kind_of(path) == "packets":
            for rows in requests_in(file, name, losses, answers=bodies):
                yield requests_of(rows, name, losses, bodies=bodies)
        else:
            start = _at_line(file, piece.start)
            lines = logged(_lines(file, start, piece.end), name, losses, start=start)
            while seen := list(islice(lines, BATCH_LINES)):
                yield seen


def exchanged(path: Path, losses: Losses, *, bodies: bool = False) -> Iterator[Exchange]:
    """The requests in a capture of packets, with their answers. Raises CaptureError where it is none."""
    with _opened(path, losses) as file:
        for rows in requests_in(file, str(path), losses, requests=bodies, answers=bodies):
            yield from exchanges(rows, str(path))


def _at_line(file: BufferedReader, start: int) -> int:
    """Goes to the first line that begins at `start` or after; its position."""
    if not start:
        return 0
    file.seek(start - 1)
    return start - 1 + len(file.readline())


def _lines(file: BufferedReader, position: int, end: int | None) -> Iterator[bytes]:
    """The lines that begin before `end`. A line that is longer than any is cut up: it is one line to nobody."""
    while end is None or position < end:
        line = file.readline(MAX_LINE_BYTES + 1)
        if not line:
            return
        yield line
        position += len(line)


def _is_gzip(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == _GZIP


@contextmanager
def _opened(path: Path, losses: Losses) -> Iterator[BufferedReader]:
    with open(path, "rb") as raw:
        if _is_gzip(path):
            with gzip.open(raw) as unpacked:
                yield cast(BufferedReader, _UntilDamage(unpacked, path, losses))
        else:
            yield raw


class _UntilDamage:
    """A gzip file that ends, and counts it, where it is cut short or damaged. What comes before is not lost with it."""

    def __init__(self, file: gzip.GzipFile, path: Path, losses: Losses) -> None:
        self._file = file
        self._path = path
        self._losses = losses
        self._ended = False

    def read(self, size: int) -> bytes:
        pieces = []
        while size and (piece := self._until_damage(self._file.read1, size)):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def readinto(self, room: memoryview) -> int:
        piece = self.read(len(room))
        room[: len(piece)] = piece
        return len(piece)

    def readline(self, size: int) -> bytes:
        return self._until_damage(self._file.readline, size)

    def _until_damage(self, read: Callable[[int], bytes], size: int) -> bytes:
        if self._ended:
            return b""
        try:
            return read(size)
        except (EOFError, OSError, zlib.error) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            self._ended = True
            self._losses.add(CUT_GZIP, Place(str(self._path), 0))
            return b""
