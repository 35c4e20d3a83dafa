"""`tagwire produce`: lines in, records out."""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from tagwire.cli.connecting import BOOTSTRAP, connect
from tagwire.cli.ending import ending_in_order
from tagwire.cli.options import Bootstrap, Topic, pairs
from tagwire.cli.record_input import Read, delimiter_of, formatted, plain, records_of
from tagwire.cli.record_lines import Headers, parse_line
from tagwire.cli.registries import Registry
from tagwire.cli.suggestions import topics_meant
from tagwire.cli.terminal import printable, progress
from tagwire.cli.typed_values import typed
from tagwire.cli.value_options import (
    KeyFormat,
    KeySchema,
    ValueFormat,
    ValueSchema,
    client_options,
    format_settings,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from tagwire.client import Delivery, Producer
    from tagwire.values.options import ValueSettings

Acks = Literal["all", "1", "0"]
Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]

_PENDING: Final = 100_000  # records that may be on their way: bounds the memory for their responses
_LOOK_EVERY: Final = 1_000  # records, for what was delivered meanwhile
_LAST_CHANCE: Final = 10.0  # seconds that Ctrl-C leaves for what is on its way


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
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            help="What a line holds: %k key %v value %h headers k=v,k=v %T timestamp %p partition.",
        ),
    ] = None,
    key: Annotated[str | None, typer.Option("--key", "-k", metavar="TEXT", help="The key of every record.")] = None,
    key_separator: Annotated[
        str | None,
        typer.Option("--key-separator", "-K", metavar="TEXT", help="What parts the key from the value in a line."),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", metavar="KEY=VALUE", help="A header of every record; may be repeated."),
    ] = None,
    null: Annotated[
        str | None,
        typer.Option("--null", metavar="TEXT", help="A key, value or header that reads like this is null."),
    ] = None,
    delimiter: Annotated[
        str, typer.Option("--delimiter", "-D", metavar="TEXT", help=r"What ends a record, such as \\0 or \\n\\n.")
    ] = r"\n",
    partition: Annotated[
        int | None,
        typer.Option("--partition", "-p", min=0, metavar="N", help="Where every record goes. [default: by key]"),
    ] = None,
    keep_partitions: Annotated[
        bool, typer.Option("--keep-partitions", help="With --json: each record goes to the partition its line names.")
    ] = False,
    timestamp: Annotated[
        int | None,
        typer.Option("--timestamp", min=-1, metavar="MS", help="Of records whose line says none. [default: now]"),
    ] = None,
    compression: Annotated[
        Compression | None, typer.Option("--compression", "-z", help="How batches are compressed. [default: none]")
    ] = None,
    acks: Annotated[
        Acks | None, typer.Option("--acks", help="Who must have a batch before it counts as sent. [default: all]")
    ] = None,
    transactional_id: Annotated[
        str | None,
        typer.Option("--transaction", metavar="ID", help="Write all of it or nothing, in a transaction of this id."),
    ] = None,
    report: Annotated[
        bool, typer.Option("--report", help="Tell what was written as JSON, an object for each partition.")
    ] = False,
    value_format: ValueFormat = None,
    key_format: KeyFormat = None,
    value_schema: ValueSchema = None,
    key_schema: KeySchema = None,
    registry: Registry = None,
    bootstrap: Bootstrap = BOOTSTRAP,
) -> None:
    """Write a record for each line of standard input or of a file.

    A line's bytes, without the line's end, are the value. With --json or --format a line carries key, value, headers
    and timestamp of its own, so that a topic can be copied. Ctrl-C ends the input: what was read is still sent, or with
    --transaction nothing of it.

    With --value-format the value is JSON, and is written by the newest schema of the topic's subject, or by one that is
    given: it has to be registered, unless -X auto.register.schemas=true. docs/values.md has all such properties.

    \b
    Examples:
      seq 10 | tagwire produce numbers
      tagwire produce flights --file flights.txt --key-separator : --header origin=EWR
      tagwire produce flights --format '%k %T %v' --null NULL --transaction load-7 --report < flights.txt
      tagwire consume flights --json | tagwire produce copy --json --compression zstd
      echo '{"id": 1}' | tagwire produce orders --value-format avro --registry http://localhost:8081
    """
    headers: Headers = [(name, os.fsencode(value)) for name, value in pairs(header or [], "--header")]
    ends = delimiter_of(delimiter)
    _check(as_json, format_, key, key_separator, headers, null)
    if keep_partitions and not (as_json and partition is None):
        raise typer.BadParameter("needs --json, and no --partition", param_hint="'--keep-partitions'")
    formats = format_settings(value_format, key_format, value_schema, key_schema, registry)
    read: Read
    if as_json:
        read = partial(parse_line, typed=frozenset(formats))
    elif format_ is not None:
        read = formatted(format_, headers, null, ends)
    else:
        read = plain(key, key_separator, headers, null)
    names_partitions = keep_partitions or format_ is not None
    from tagwire.client import Producer

    written = _Written(topic)
    with ending_in_order(), ExitStack() as stack:
        source = stack.enter_context(_opened(file))
        client = stack.enter_context(connect(bootstrap))
        stack.enter_context(topics_meant(client, topic))
        transactional_id = transactional_id or client.produce_settings.transactional_id
        producer = stack.enter_context(
            Producer(
                client,
                acks=acks,
                compression=compression,
                transactional_id=transactional_id,
                **client_options(formats),
            )
        )
        if formats:
            read = typed(read, _types(formats, topic), is_parsed=as_json)
        advance = stack.enter_context(progress(f"to {topic}", visible=not source.isatty()))

        def settle() -> None:
            try:
                producer.flush()
            finally:
                advance(written.look())

        with _told(written, report), _all_or_nothing(producer, written, advance, transactional_id):
            for number, text in enumerate(records_of(source, ends, settle), 1):
                if as_json and not text.strip():
                    continue
                line = read(text, number)
                own = line.partition if names_partitions else None
                delivery = producer.send(
                    topic,
                    line.value,
                    line.key,
                    headers=line.headers,
                    timestamp=timestamp if line.timestamp is None else line.timestamp,
                    partition=partition if own is None else own,
                )
                written.add(delivery)
                if number % _LOOK_EVERY == 0:
                    advance(written.look())
                    if written.waiting >= _PENDING:
                        settle()


def _types(formats: Mapping[str, ValueSettings], topic: str) -> dict[str, pa.DataType]:
    """What keys and values of a topic are in JSON, by their schemas."""
    from tagwire.values.value_decoder import plan_decoder

    return {which: plan_decoder(settings, topic).reader.json_type for which, settings in formats.items()}


def _check(
    as_json: bool, format_: str | None, key: str | None, key_separator: str | None, headers: Headers, null: str | None
) -> None:
    """Raises typer.BadParameter for options that contradict each other."""
    if key is not None and key_separator is not None:
        raise typer.BadParameter("cannot be given together with --key", param_hint="'--key-separator'")
    if key_separator == "":
        raise typer.BadParameter("needs at least one character", param_hint="'--key-separator'")
    if as_json and not (format_ is None and key is None and key_separator is None and null is None and not headers):
        raise typer.BadParameter(
            "its lines carry keys and headers; leave the other options away", param_hint="'--json'"
        )
    if format_ is not None and not (key is None and key_separator is None):
        raise typer.BadParameter("says where the key is; leave the other options away", param_hint="'--format'")


@contextmanager
def _told(written: _Written, report: bool) -> Iterator[None]:
    """Says at the end what was written, also when it was not all."""
    try:
        yield
    finally:
        if report:
            print("".join(json.dumps(entry) + "\n" for entry in written.report()), end="")
        elif written.count or sys.exception() is None:
            print(written.summary())


@contextmanager
def _all_or_nothing(
    producer: Producer, written: _Written, advance: Callable[[float], None], transactional_id: str | None
) -> Iterator[None]:
    """Delivers what was sent, whatever ends the block; in a transaction only if nothing does."""
    if transactional_id is not None:
        producer.init_transactions()
        try:
            with producer.transaction():
                yield
        except BaseException:
            written.forget()
            raise
        advance(written.look())
        return
    try:
        yield
    finally:
        interrupted = isinstance(sys.exception(), KeyboardInterrupt)
        try:
            producer.flush(_LAST_CHANCE if interrupted else None)
        finally:
            advance(written.look())


class _Written:
    """What was delivered so far.

    Attributes:
        count: records that were.
    """

    def __init__(self, topic: str) -> None:
        self.count = 0
        self._topic = topic
        self._waiting: deque[Delivery] = deque()
        self._places: dict[int, tuple[int, int, int]] = {}  # records, first and last offset

    @property
    def waiting(self) -> int:
        """Records that are on their way."""
        return len(self._waiting)

    def add(self, delivery: Delivery) -> None:
        self._waiting.append(delivery)

    def forget(self) -> None:
        """None of it counts."""
        self.count = 0
        self._waiting.clear()
        self._places.clear()

    def look(self) -> int:
        """Notes where records stand that are done by now. Returns how many more are delivered."""
        before = self.count
        while self._waiting and self._waiting[0].done():
            delivery = self._waiting.popleft()
            if delivery.exception() is None:
                offset = delivery.result().offset
                records, first, last = self._places.get(delivery.partition, (0, offset, offset))
                first = offset if first < 0 else min(first, offset) if offset >= 0 else first
                self._places[delivery.partition] = records + 1, first, max(last, offset)
                self.count += 1
        return self.count - before

    def report(self) -> Iterator[dict[str, object]]:
        """For programs, by partition; an offset is null where brokers do not tell."""
        for partition, (records, first, last) in sorted(self._places.items()):
            yield {
                "topic": self._topic,
                "partition": partition,
                "records": records,
                "first_offset": first if first >= 0 else None,
                "last_offset": last if last >= 0 else None,
            }

    def summary(self) -> str:
        """One line for a person."""
        offsets = " ".join(
            f"{self._topic}/{partition}@{first}" + (f"-{last}" if last > first else "")
            for partition, (_, first, last) in sorted(self._places.items())
            if first >= 0
        )
        counted = "1 record" if self.count == 1 else f"{self.count:,} records"
        if self.count and not offsets:
            offsets = "their offsets are not known (acks 0)"
        return f"{counted} to {printable(self._topic)}" + (f": {printable(offsets)}" if offsets else "")


def _opened(file: Path | None) -> FileIO:
    if file is not None:
        return FileIO(file)
    source = FileIO(0, closefd=False)
    if source.isatty():
        print("one record a line; Ctrl-D ends", file=sys.stderr)
    return source
