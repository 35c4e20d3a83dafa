"""`tagwire consume`: the records of a topic, for a person or a program."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagwire.cli.bounds import LATEST, Bound, parse_bound, resolve
from tagwire.cli.connecting import connect
from tagwire.cli.options import BOOTSTRAP, Bootstrap, Json, Topic
from tagwire.cli.record_lines import Headers, ReadRecord, format_line, lines_for_people
from tagwire.cli.terminal import printable, progress
from tagwire.errors import Error, KafkaError

if TYPE_CHECKING:
    import pyarrow as pa

    from tagwire.client import Client, TopicPartition

_COLUMNS = ("topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")
_TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")


def consume(
    topic: Topic,
    from_: Annotated[
        str,
        typer.Option(
            "--from", metavar="WHERE", help="earliest, latest, an offset, or a time in UTC: 2013-07-04[THH:MM]."
        ),
    ] = "earliest",
    to: Annotated[
        str, typer.Option("--to", metavar="WHERE", help="Where to stop, itself left out; as for --from.")
    ] = "latest",
    limit: Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="Stop after N records.")] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, metavar="N", help="This partition only. [default: all]")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more at the end, until Ctrl-C.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Do not cut long keys, values and headers.")] = False,
    as_json: Json = False,
    bootstrap: Bootstrap = BOOTSTRAP,
) -> None:
    """Print the records of a topic.

    Ends where the topic ended when the command started, unless told to --follow. Each partition is in order; several
    come mixed. A time means the first record at or after it. Times are printed in UTC, characters that a terminal would
    obey as escapes, and long values are cut; --json tells all of it, exactly.

    \b
    Examples:
      tagwire consume flights --from 2013-07-04 --limit 2
      tagwire consume flights --partition 3 --from 88121 --full
      tagwire consume flights --json | jq .headers
    """
    start, end = parse_bound(from_, "--from"), parse_bound(to, "--to")
    if follow and end != Bound(offset=LATEST):
        raise typer.BadParameter("cannot be given together with --follow", param_hint="'--to'")
    show = format_line if as_json else lines_for_people(full)
    with connect(bootstrap) as client:
        partitions = _partitions(client, topic, partition)
        for bound, option in ((start, "--from"), (end, "--to")):
            if bound.is_one_offset and len(partitions) > 1:
                raise typer.BadParameter(
                    f"an offset is of one partition and {printable(topic)} has {len(partitions)}; add --partition N",
                    param_hint=f"'{option}'",
                )
        starts, ends = _span(client, start, end, partitions)
        total = None if follow else sum(max(ends[at] - starts[at], 0) for at in partitions)
        if limit is not None:
            total = limit if total is None else min(limit, total)
        printed = 0
        with progress(printable(topic), total, visible=not sys.stdout.isatty()) as advance:
            for batch in _batches(client, starts, None if follow else ends):
                records = _records(batch if limit is None else batch.slice(0, limit - printed))
                for record in records:
                    sys.stdout.write(show(record) + "\n")
                sys.stdout.flush()
                printed += len(records)
                advance(len(records))
                if printed == limit:
                    break
    if not printed and not as_json:
        print(f"no records in this range of {printable(topic)}", file=sys.stderr)


def _partitions(client: Client, topic: str, partition: int | None) -> list[TopicPartition]:
    from tagwire.client import TopicPartition

    found = client.metadata([topic]).topics.get(topic)
    if found is None or found.error:
        error = found.error if found else Error.UNKNOWN_TOPIC_OR_PARTITION
        raise KafkaError(error, f"topic {topic!r}")
    if partition is not None and partition not in found.partitions:
        raise KafkaError(
            Error.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic {topic!r} has no partition {partition}; it has {len(found.partitions)}, counted from 0",
        )
    indexes = sorted(found.partitions) if partition is None else [partition]
    return [TopicPartition(topic, index) for index in indexes]


def _span(
    client: Client, start: Bound, end: Bound, partitions: list[TopicPartition]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """First offset to read and offset to stop before, of each partition, within what the partition holds now.

    Raises:
        KafkaError: the first offset was named and is not held.
    """
    from tagwire.client import EARLIEST

    lasts = client.list_offsets(dict.fromkeys(partitions, LATEST))
    starts = lasts if start.offset == LATEST else resolve(client, start, partitions)
    ends = lasts if end.offset == LATEST else resolve(client, end, partitions)
    if start.is_one_offset:
        firsts = client.list_offsets(dict.fromkeys(partitions, EARLIEST))
        for at, offset in starts.items():
            if not firsts[at] <= offset <= lasts[at]:
                held = f"holds {firsts[at]}-{lasts[at] - 1}" if firsts[at] < lasts[at] else "holds no records"
                raise KafkaError(Error.OFFSET_OUT_OF_RANGE, f"partition {at} {held}, not {offset}")
    return starts, {at: min(ends[at], lasts[at]) for at in partitions}


def _batches(
    client: Client, starts: dict[TopicPartition, int], ends: dict[TopicPartition, int] | None
) -> Iterator[pa.RecordBatch]:
    """What there is from `starts` on, up to `ends`; None waits for more."""
    from tagwire.client import Reader

    first: dict[tuple[str, int], int] = {
        at: offset for at, offset in starts.items() if ends is None or offset < ends[at]
    }
    last: dict[tuple[str, int], int] | None = None if ends is None else {at: ends[at] for at in starts if at in first}
    if first:
        yield from Reader(client, first, end_offsets=last, columns=_COLUMNS)


def _records(batch: pa.RecordBatch) -> list[ReadRecord]:
    import pyarrow as pa

    columns = [
        batch.column(name).cast(pa.int64()).to_pylist() if name == "timestamp" else batch.column(name).to_pylist()
        for name in _COLUMNS
    ]
    return [
        ReadRecord(topic, partition, offset, timestamp, _TIMESTAMP_TYPES[kind], key, value, _pairs(headers))
        for topic, partition, offset, timestamp, kind, key, value, headers in zip(*columns)
    ]


def _pairs(headers: list[dict[str, Any]] | None) -> Headers:
    return [(header["key"], header["value"]) for header in headers or ()]
