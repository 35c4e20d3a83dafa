"""`tagwire produce`: lines in, records out."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterator
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tagwire.cli.connecting import connect
from tagwire.cli.options import BOOTSTRAP, Bootstrap, Topic, pairs
from tagwire.cli.record_lines import Headers, Line, parse_line
from tagwire.cli.terminal import printable, progress
from tagwire.errors import DecodeError

if TYPE_CHECKING:
    from tagwire.client import Delivery

Acks = Literal["all", "1", "0"]
Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]

_CHUNK = 1 << 16
_LONGEST_LINE = 64 * 1024 * 1024
_PENDING = 100_000  # records sent and not yet flushed: bounds the memory for their answers


def produce(
    topic: Topic,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", metavar="FILE", exists=True, dir_okay=False, help="Read lines from here, not standard input."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Lines are JSON, as `tagwire consume --json` prints them.")
    ] = False,
    key: Annotated[str | None, typer.Option("--key", metavar="TEXT", help="The key of every record.")] = None,
    key_separator: Annotated[
        str | None, typer.Option("--key-separator", metavar="TEXT", help="What parts the key from the value in a line.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="KEY=VALUE", help="A header of every record; may be repeated."),
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, metavar="N", help="Where every record goes. [default: by key]")
    ] = None,
    keep_partitions: Annotated[
        bool, typer.Option("--keep-partitions", help="With --json: each record goes to the partition its line names.")
    ] = False,
    compression: Annotated[Compression, typer.Option("--compression", help="How batches are compressed.")] = "none",
    acks: Annotated[Acks, typer.Option("--acks", help="Who must have a batch before it counts as sent.")] = "all",
    bootstrap: Bootstrap = BOOTSTRAP,
) -> None:
    """Write a record for each line of standard input or of a file.

    A line's bytes, without the line's end, are the value. With --json a line carries key, value, headers and timestamp
    of its own, so that a topic can be copied.

    \b
    Examples:
      seq 10 | tagwire produce numbers
      tagwire produce flights --file flights.txt --key-separator : --header origin=EWR
      tagwire consume flights --json | tagwire produce copy --json --compression zstd
    """
    if key is not None and key_separator is not None:
        raise typer.BadParameter("cannot be given together with --key", param_hint="'--key-separator'")
    if key_separator == "":
        raise typer.BadParameter("needs at least one character", param_hint="'--key-separator'")
    if as_json and not (key is None and key_separator is None and not header):
        raise typer.BadParameter(
            "its lines carry keys and headers; leave the other options away", param_hint="'--json'"
        )
    if keep_partitions and not (as_json and partition is None):
        raise typer.BadParameter("needs --json, and no --partition", param_hint="'--keep-partitions'")
    headers: Headers = [(name, os.fsencode(value)) for name, value in pairs(header or [], "--header")]
    record = parse_line if as_json else _plain(key, key_separator, headers)
    from tagwire.client import Producer

    sent = _Sent(topic)
    with (
        _opened(file) as source,
        connect(bootstrap) as client,
        Producer(client, acks=acks, compression=compression) as producer,
        progress(f"to {topic}", visible=not source.isatty()) as advance,
    ):

        def settle() -> None:
            try:
                producer.flush()
            finally:
                advance(sent.settle())

        try:
            for number, text in enumerate(_lines(source, settle), 1):
                if as_json and not text.strip():
                    continue
                line = record(text, number)
                sent.add(
                    producer.send(
                        topic,
                        line.value,
                        line.key,
                        headers=line.headers,
                        timestamp=line.timestamp,
                        partition=line.partition if keep_partitions else partition,
                    )
                )
                if sent.waiting >= _PENDING:
                    settle()
        finally:
            try:
                settle()
            finally:
                if sent.count or sys.exception() is None:
                    print(sent.summary())


def _plain(key: str | None, separator: str | None, headers: Headers) -> Callable[[bytes, int], Line]:
    """How a line that is not JSON is read."""
    fixed_key = None if key is None else os.fsencode(key)
    parting = os.fsencode(separator or "")

    def record(text: bytes, number: int) -> Line:
        if not parting:
            return Line(fixed_key, text, headers, None, None)
        own_key, found, value = text.partition(parting)
        if not found:
            raise DecodeError(f"no {separator!r} in it", path=f"line {number}")
        return Line(own_key, value, headers, None, None)

    return record


class _Sent:
    """What was sent so far.

    Attributes:
        count: records that were delivered.
        waiting: how many records were not settled yet.
    """

    def __init__(self, topic: str) -> None:
        self.count = 0
        self._topic = topic
        self._waiting: list[Delivery] = []
        self._offsets: dict[int, tuple[int, int]] = {}

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def add(self, delivery: Delivery) -> None:
        self._waiting.append(delivery)

    def settle(self) -> int:
        """After a flush: note where the records stand. Returns how many were delivered."""
        delivered = [delivery for delivery in self._waiting if delivery.done and delivery.error is None]
        for delivery in delivered:
            first, last = self._offsets.get(delivery.partition, (delivery.offset, delivery.offset))
            self._offsets[delivery.partition] = min(first, delivery.offset), max(last, delivery.offset)
        self.count += len(delivered)
        self._waiting.clear()
        return len(delivered)

    def summary(self) -> str:
        """One line for a person."""
        places = " ".join(
            f"{self._topic}/{partition}@{first}" + (f"-{last}" if last > first else "")
            for partition, (first, last) in sorted(self._offsets.items())
            if first >= 0
        )
        counted = "1 record" if self.count == 1 else f"{self.count:,} records"
        if self.count and not places:
            places = "where they stand was not asked (acks 0)"
        return f"{counted} to {printable(self._topic)}" + (f": {printable(places)}" if places else "")


def _opened(file: Path | None) -> FileIO:
    if file is not None:
        return FileIO(file)
    source = FileIO(0, closefd=False)
    if source.isatty():
        print("one record a line; Ctrl-D ends", file=sys.stderr)
    return source


def _lines(source: FileIO, before_waiting: Callable[[], None]) -> Iterator[bytes]:
    """The lines of `source` without their ends, as they come.

    Args:
        before_waiting: called when all that was there is read and more has to be waited for, so that what a person
            typed is sent before the next line is.

    Raises:
        DecodeError: a line is longer than any record may be.
    """
    pieces: list[bytes] = []
    size = number = 0
    while True:
        if not select.select([source], [], [], 0)[0]:
            before_waiting()
        chunk = source.read(_CHUNK)
        if not chunk:
            break
        first, *others = chunk.split(b"\n")
        pieces.append(first)
        size += len(first)
        if size > _LONGEST_LINE:
            raise DecodeError(f"longer than {_LONGEST_LINE} bytes", path=f"line {number + 1}")
        if others:
            yield b"".join(pieces)
            yield from others[:-1]
            number += len(others)
            pieces, size = [others[-1]], len(others[-1])
    if size:
        yield b"".join(pieces)
