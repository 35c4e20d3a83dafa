"""Captures of any kind as observations: each file is known by how it begins, gzipped or not."""

from __future__ import annotations

import glob
import gzip
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Literal, TypeVar, cast

from tagwire.capture.bodies import error_codes, offered
from tagwire.capture.connections import exchanges
from tagwire.capture.conversation import Exchange
from tagwire.capture.observation import Losses, Observation, Place
from tagwire.capture.packets import MAGICS, packets
from tagwire.capture.request_log import MAX_LINE_BYTES
from tagwire.capture.request_log import observations as logged
from tagwire.errors import CaptureError

T = TypeVar("T")
Kind = Literal["packets", "log"]

_GZIP: Final = b"\x1f\x8b"
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
    with _opened(path) as file:
        try:
            return "packets" if file.read(4) in MAGICS else "log"
        except (EOFError, OSError, zlib.error):
            return "log"


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
    """The requests that a file tells of.

    Args:
        path: a pcap or pcapng file, or a request log, each may be gzipped; or a piece of one.
        losses: counts what is not understood.
        bodies: whether the bodies of captured answers are decoded, for their error codes.
    """
    piece = path if isinstance(path, Piece) else Piece(path)
    path = piece.path
    if kind_of(path) == "packets":
        for exchange in exchanged(path, losses, bodies=bodies):
            yield _observed(exchange, losses, bodies=bodies)
        return
    with _opened(path) as file:
        start = _at_line(file, piece.start)
        yield from _until_cut(logged(_lines(file, start, piece.end), str(path), losses, start=start), path, losses)


def exchanged(path: Path, losses: Losses, *, bodies: bool = False) -> Iterator[Exchange]:
    """The requests in a capture of packets, with their answers. Raises CaptureError where it is none."""
    with _opened(path) as file:
        found = exchanges(packets(file, str(path), losses), str(path), losses, bodies=bodies)
        yield from _until_cut(found, path, losses)


def _until_cut(found: Iterator[T], path: Path, losses: Losses) -> Iterator[T]:
    try:
        yield from found
    except (EOFError, OSError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        losses.add(CUT_GZIP, Place(str(path), 0))


def _observed(exchange: Exchange, losses: Losses, *, bodies: bool) -> Observation:
    return Observation(
        time=exchange.time,
        client=exchange.client,
        broker=exchange.broker,
        client_id=exchange.header.client_id,
        software_name=exchange.software_name,
        software_version=exchange.software_version,
        principal=exchange.principal,
        listener="",
        api_key=exchange.header.api_key,
        api_version=exchange.header.api_version,
        place=exchange.place,
        request_bytes=exchange.request_bytes,
        response_bytes=exchange.response_bytes,
        error_codes=error_codes(exchange, losses) if bodies else None,
        offered=offered(exchange, losses),
    )


def _at_line(file: BinaryIO, start: int) -> int:
    """Goes to the first line that begins at `start` or after; its position."""
    if not start:
        return 0
    file.seek(start - 1)
    return start - 1 + len(file.readline())


def _lines(file: BinaryIO, position: int, end: int | None) -> Iterator[bytes]:
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
def _opened(path: Path) -> Iterator[BinaryIO]:
    with open(path, "rb") as raw:
        magic = raw.read(2)
        raw.seek(0)
        if magic == _GZIP:
            with gzip.open(raw) as unpacked:
                yield cast(BinaryIO, unpacked)
        else:
            yield raw
