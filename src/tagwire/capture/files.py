"""Captures of any kind as observations: each file is known by how it begins, packed or not."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Final, Literal

from tagwire.capture.connections import requests_in
from tagwire.capture.exchange import Exchange, exchanges
from tagwire.capture.logged import Logged
from tagwire.capture.logged import logged as logged_in
from tagwire.capture.observation import Losses, Observation, Place, name_of
from tagwire.capture.opening import STDIN, is_packed, opened
from tagwire.capture.packets import MAGICS
from tagwire.capture.request_log import MAX_LINE_BYTES
from tagwire.capture.request_log import observations as logged
from tagwire.capture.requests import Requests, Seen, requests_of
from tagwire.errors import CaptureError
from tagwire.records.files.opening import strange_kind

Kind = Literal["packets", "log"]

_MAGIC: Final = 4
BATCH_LINES: Final = 20_000
"""Lines of a log whose observations are handed over together."""

_PIECE: Final = 1 << 16

PASSED_OVER: Final = "a pipe, socket or device in a directory, passed over"


def paths_of(given: Iterable[str | Path], losses: Losses | None = None) -> list[Path]:
    """The files that paths, directories (with all below them) and patterns name, each once, in order. A pipe is one
    where it is named itself, and "-" is standard input.

    Args:
        losses: counts pipes, sockets and devices that directories and patterns would name, and that are passed over.

    Raises:
        CaptureError: nothing has this name.
    """
    found: dict[Path, None] = {}
    for one in given:
        path = Path(one)
        if str(one) == str(STDIN):
            found[STDIN] = None
            continue
        if path.is_dir():
            matches = _regular(path.rglob("*"), losses)
        elif path.exists():
            matches = [path]
        else:
            matches = _regular(map(Path, glob.glob(str(one), recursive=True)), losses)
        if not matches:
            raise CaptureError(f"{one}: no such file, and no file in it")
        found.update((match.absolute() if match == STDIN else match, None) for match in matches)
    return list(found)


def _regular(found: Iterable[Path], losses: Losses | None) -> list[Path]:
    paths = sorted(found)
    if losses is not None:
        for path in paths:
            if strange_kind(path) is not None:
                losses.add(PASSED_OVER, Place(name_of(path), 0))
    return [path for path in paths if path.is_file()]


def kind_of(path: Path) -> Kind:
    """What a file is: "packets" for pcap and pcapng, "log" for anything else, which is read line by line."""
    with opened(path, Losses(), _MAGIC) as (_, begun):
        return _kind(begun)


def _kind(begun: bytes) -> Kind:
    return "packets" if begun in MAGICS else "log"


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
    """A file in pieces of about `size` bytes. Only logs that are not packed are split: lines stand by themselves,
    packets do not. Raises CaptureError for a pipe, which only one reader can have."""
    if kind := "standard input" if path == STDIN else strange_kind(path):
        raise CaptureError(f"{path}: {kind}, which tasks of Spark cannot share")
    length = path.stat().st_size
    if length <= size or is_packed(path) or kind_of(path) == "packets":
        return [Piece(path)]
    return [Piece(path, start, min(start + size, length)) for start in range(0, length, size)]


def observe(path: Path | Piece, losses: Losses, *, bodies: bool = False) -> Iterator[Observation]:
    """The requests that a file tells of, one by one; see `seen_in`."""
    for seen in seen_in(path, losses, bodies=bodies):
        yield from seen.observations() if isinstance(seen, Requests) else seen


def seen_in(path: Path | Piece, losses: Losses, *, bodies: bool = False) -> Iterator[Seen]:
    """The requests that a file tells of, many at a time.

    Args:
        path: a pcap or pcapng file, or a request log, each may be packed by gzip or zstd, or be a pipe or `STDIN`; or a
            piece of one.
        losses: counts what is not understood.
        bodies: whether the bodies of captured responses are decoded, for their error codes.
    """
    piece = path if isinstance(path, Piece) else Piece(path)
    path, name = piece.path, name_of(piece.path)
    with opened(path, losses, _MAGIC) as (file, begun):
        if _kind(begun) == "packets":
            for rows in requests_in(file, name, losses, responses=bodies):
                yield requests_of(rows, name, losses, bodies=bodies)
        else:
            start = _at_line(file, piece.start)
            lines = logged(_lines(file, start, piece.end), name, losses, start=start)
            while seen := list(islice(lines, BATCH_LINES)):
                yield seen


def exchanged(path: Path, losses: Losses, *, bodies: bool = False) -> Iterator[Exchange]:
    """The requests in a capture of packets, with their responses. Raises CaptureError where it is none."""
    with opened(path, losses, _MAGIC) as (file, _):
        for rows in requests_in(file, name_of(path), losses, requests=bodies, responses=bodies):
            yield from exchanges(rows, name_of(path))


def exchanges_in(path: Path, losses: Losses, *, bodies: bool = False) -> Iterator[Exchange | Logged]:
    """The requests in a file of any kind with their responses, one by one, as much as it tells of them.

    Args:
        bodies: whether bodies of requests and responses are kept. Of packets those of responses are, for error codes.
    """
    with opened(path, losses, _MAGIC) as (file, begun):
        if _kind(begun) == "packets":
            for rows in requests_in(file, name_of(path), losses, requests=bodies, responses=True):
                yield from exchanges(rows, name_of(path))
        else:
            yield from logged_in(_lines(file, 0, None), name_of(path), losses, bodies=bodies)


def _at_line(file: BufferedReader, start: int) -> int:
    """Goes to the first line that begins at `start` or after; its position."""
    if not start:
        return 0
    at = file.seek(start - 1)
    while found := file.readline(_PIECE):  # it may be longer than memory
        at += len(found)
        if found.endswith(b"\n"):
            break
    return at


def _lines(file: BufferedReader, position: int, end: int | None) -> Iterator[bytes]:
    """The lines that begin before `end`. A line that is longer than any comes in pieces."""
    while end is None or position < end:
        line = file.readline(MAX_LINE_BYTES + 1)
        if not line:
            return
        yield line
        position += len(line)
