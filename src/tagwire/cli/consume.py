"""`tagwire consume`: the records of a topic, for a person or a program."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tagwire.cli import completing
from tagwire.cli.bounds import held
from tagwire.cli.connecting import BOOTSTRAP, connect
from tagwire.cli.ending import ending_in_order
from tagwire.cli.options import Bootstrap, Isolation, Json, Topic
from tagwire.cli.ranges import Edge, offsets_of, parse_edge, parse_range
from tagwire.cli.record_formats import formatted
from tagwire.cli.record_lines import Headers, ReadRecord, format_line, lines_for_people
from tagwire.cli.registries import Registry
from tagwire.cli.suggestions import topics_meant
from tagwire.cli.terminal import printable, progress
from tagwire.cli.typed_values import as_text, numbered, plain_values, to_json
from tagwire.cli.value_options import (
    BadValues,
    KeyFormat,
    KeySchema,
    ValueFormat,
    ValueSchema,
    client_options,
    format_settings,
)
from tagwire.errors import ConfigError, DecodeError, Error, KafkaError

if TYPE_CHECKING:
    import pyarrow as pa

    from tagwire.cli.consume_member import Passed
    from tagwire.client import Client, Reader, TopicPartition
    from tagwire.values.options import ValueSettings

Protocol = Literal["classic", "consumer"]

_COLUMNS = ("topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")
_TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime", "NoTimestampType")  # 0, 1, -1
_FROM, _TO = "earliest", "latest"


def consume(
    topic: Topic,
    from_: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="WHERE",
            help="earliest, latest, an offset, -N for the last N of each partition, a time: "
            "2013-07-04[THH:MM] in UTC, -5m, now or @MILLISECONDS, or one for each partition: 0=WHERE,3=WHERE.",
        ),
    ] = _FROM,
    to: Annotated[
        str, typer.Option("--to", metavar="WHERE", help="Where to stop, itself left out; as for --from.")
    ] = _TO,
    offsets: Annotated[
        str | None,
        typer.Option("--offsets", "-o", metavar="FROM[:TO]", help="Both in one: 100:200, -10, -2h:-1h."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "--count", "-c", min=1, metavar="N", help="Stop after N records.")
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, metavar="N", help="This partition only. [default: all]")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more at the end, until Ctrl-C.")] = False,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            metavar="NAME",
            autocompletion=completing.groups,
            help="Start where this group stands; without --join not as a member.",
        ),
    ] = None,
    join: Annotated[
        bool,
        typer.Option(
            "--join",
            help="With --group: as a member of it, which shares the topic with the others, until Ctrl-C. Where the "
            "group has committed nothing, --from earliest or latest is where it begins.",
        ),
    ] = False,
    protocol: Annotated[
        Protocol | None,
        typer.Option(
            "--group-protocol",
            help="With --join: how members agree; consumer is KIP-848's, of Kafka 4.0 and later. [default: classic]",
        ),
    ] = None,
    commit: Annotated[
        bool, typer.Option("--commit", help="With --group: commit what was printed, so that it is not printed again.")
    ] = False,
    isolation: Annotated[
        Isolation | None,
        typer.Option("--isolation", help="Whether aborted and open transactions are left out. [default: they are not]"),
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            help=r"%t topic %p partition %o offset %T timestamp %k key %v value %h headers %K, %V lengths, \n, \t.",
        ),
    ] = None,
    null: Annotated[str, typer.Option("--null", metavar="TEXT", help="With --format: what stands for null.")] = "",
    raw: Annotated[bool, typer.Option("--raw", help="Values alone, byte for byte, a line each.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Do not cut long keys, values and headers.")] = False,
    as_json: Json = False,
    value_format: ValueFormat = None,
    key_format: KeyFormat = None,
    value_schema: ValueSchema = None,
    key_schema: KeySchema = None,
    registry: Registry = None,
    bad_values: BadValues = "raise",
    bootstrap: Bootstrap = BOOTSTRAP,
) -> None:
    """Print the records of a topic.

    Ends where the topic ended when the command started, unless told to --follow. Each partition is in order; several
    come mixed. A time means the first record at or after it. Times are printed in UTC, characters that a terminal would
    obey as escapes, and long values are cut; --json tells all of it, exactly.

    With --value-format values are decoded by the schemas that wrote them, and printed as JSON. What else there is to
    say of that, docs/values.md has as properties: -X value.message=shop.Order.

    \b
    Examples:
      tagwire consume flights --from 2013-07-04 --limit 2
      tagwire consume flights --from -5m
      tagwire consume flights --partition 3 --from 88121 --full
      tagwire consume flights -o -10 --format '%p %o %k %h %v\\n'
      tagwire consume flights --group audit --commit --json | jq .headers
      tagwire consume flights --group billing --join --commit --raw | bill
      tagwire consume orders --value-format avro --registry http://localhost:8081 --json | jq .value.id
    """
    if offsets is not None and (from_, to) != (_FROM, _TO):
        raise typer.BadParameter("cannot be given together with --from or --to", param_hint="'--offsets'")
    if offsets is None:
        start, end = parse_edge(from_, "--from"), parse_edge(to, "--to")
    else:
        start, end = parse_range(offsets, "--offsets")
    if follow and end != parse_edge(_TO, "--to"):
        raise typer.BadParameter(
            "cannot be given together with --follow", param_hint="'--offsets'" if offsets else "'--to'"
        )
    if partition is not None and not {*start.named, *end.named} <= {partition}:
        raise typer.BadParameter("other partitions are named, and would not be read", param_hint="'--partition'")
    if commit and group is None:
        raise typer.BadParameter("needs --group", param_hint="'--commit'")
    if protocol is not None and not join:
        raise typer.BadParameter("needs --join", param_hint="'--group-protocol'")
    if join:
        if group is None:
            raise typer.BadParameter("needs --group", param_hint="'--join'")
        if from_ not in ("earliest", "latest"):
            raise typer.BadParameter("a member begins at earliest or latest", param_hint="'--from'")
        if partition is not None or offsets is not None or to != _TO:
            raise typer.BadParameter(
                "the group gives partitions, and they have no end; --limit ends it",
                param_hint="'--partition', '--offsets', '--to'",
            )
    write = _writer(format_, null, raw=raw, full=full, as_json=as_json)
    formats = format_settings(value_format, key_format, value_schema, key_schema, registry)
    if bad_values != "raise" and not formats:
        raise typer.BadParameter("needs --value-format or --key-format", param_hint="'--bad-values'")
    options = client_options(formats)
    if formats:
        options["bad_values"] = bad_values
    types = {which: partial(_json_type, settings, topic) for which, settings in formats.items()}
    read = _reading(types, as_json=as_json)
    with ending_in_order(), connect(bootstrap) as client, topics_meant(client, topic):
        if isolation is not None:
            client.fetch_settings = replace(client.fetch_settings, isolation=isolation)
        partitions = _partitions(client, topic, partition, start, end)
        if group is not None and join:
            from tagwire.cli.consume_member import member_of

            options |= {"columns": _COLUMNS}
            with member_of(client, topic, group, protocol, from_, options, commits=commit) as (batches, passed):
                _write(topic, batches, read, write, passed, limit, total=limit)
            return
        for edge, option in ((start, "--from"), (end, "--to")):
            if edge.is_one_offset and len(partitions) > 1:
                raise typer.BadParameter(
                    f"an offset is of one partition and {printable(topic)} has {len(partitions)}; add --partition N",
                    param_hint=f"'{'--offsets' if offsets else option}'",
                )
        starts, ends = _span(client, start, end, partitions, group, begins=commit)
        total = None if follow else sum(max(ends[at] - starts[at], 0) for at in partitions)
        if limit is not None:
            total = limit if total is None else min(limit, total)
        wanted = {at: offset for at, offset in starts.items() if follow or offset < ends[at]}
        reader = _reader(client, wanted, None if follow else ends, options)
        with _committing(client, group if commit else None, reader, wanted) as passed:
            printed = _write(topic, reader or (), read, write, passed, limit, total)
    if not printed and not (as_json or raw or format_):
        print(f"no records in this range of {printable(topic)}", file=sys.stderr)


def _write(
    topic: str,
    batches: Iterable[pa.RecordBatch],
    read: Callable[[pa.RecordBatch], list[ReadRecord]],
    write: Callable[[list[ReadRecord]], None],
    passed: Passed,
    limit: int | None,
    total: int | None,
) -> int:
    """Writes records, `limit` at most, tells `passed` where each partition is printed up to, and gives their number."""
    from tagwire.client import TopicPartition

    printed = 0
    with progress(printable(topic), total, visible=not sys.stdout.isatty()) as advance:
        for batch in _decoded(batches):
            records = read(batch if limit is None else batch.slice(0, limit - printed))
            write(records)
            if len(records) == batch.num_rows:
                passed(None)
            else:
                passed({TopicPartition(str(each.topic), int(each.partition or 0)): each.offset + 1 for each in records})
            printed += len(records)
            advance(len(records))
            if printed == limit:
                break
        else:
            passed(None)
    return printed


def _decoded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches; where a value cannot be decoded its error says what goes past it."""
    try:
        yield from batches
    except DecodeError as error:
        if not error.path.startswith(("value of ", "key of ")):
            raise
        raise DecodeError(f"{error} (--bad-values null or drop goes on)") from None


def _writer(
    format_: str | None, null: str, *, raw: bool, full: bool, as_json: bool
) -> Callable[[list[ReadRecord]], None]:
    """What prints records. Raises typer.BadParameter: two ways to print them are asked for, or a wrong format."""
    if sum((format_ is not None, raw, as_json)) > 1:
        raise typer.BadParameter("only one of them can be given", param_hint="'--format', '--raw', '--json'")
    if raw:
        format_, null = r"%v\n", ""
    if format_ is None:
        show = format_line if as_json else lines_for_people(full)

        def write_lines(records: list[ReadRecord]) -> None:
            for record in records:
                sys.stdout.write(show(record) + "\n")
            sys.stdout.flush()

        return write_lines
    form = formatted(format_, null, for_people=sys.stdout.isatty())

    def write_bytes(records: list[ReadRecord]) -> None:
        for record in records:
            sys.stdout.buffer.write(form(record))
        sys.stdout.buffer.flush()

    return write_bytes


@contextmanager
def _committing(
    client: Client, group: str | None, reader: Reader | None, starts: Mapping[TopicPartition, int]
) -> Iterator[Passed]:
    """Commits for `group`, however the block ends, what it says was printed; None commits nothing."""
    from tagwire.client import Admin

    printed: dict[TopicPartition, int] = {}

    def passed(records: Mapping[TopicPartition, int] | None) -> None:
        if records is None and reader is not None:  # the end of a transaction is passed, too: it would count as lag
            records = {at: after for at in starts if (after := reader.position(at)) > starts[at]}
        printed.update(records or {})

    try:
        yield passed
    finally:
        if group is not None and printed:
            Admin(client).alter_group_offsets(group, dict(printed.items()))


def _partitions(client: Client, topic: str, partition: int | None, start: Edge, end: Edge) -> list[TopicPartition]:
    from tagwire.client import TopicPartition

    found = client.metadata([topic]).topics.get(topic)
    if found is None or found.error:
        error = found.error if found else Error.UNKNOWN_TOPIC_OR_PARTITION
        raise KafkaError(error, f"topic {topic!r}")
    wanted = {partition} if partition is not None else set(start.named)
    for index in sorted({*wanted, *end.named} - found.partitions.keys()):
        raise KafkaError(
            Error.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic {topic!r} has no partition {index}; it has {len(found.partitions)}, counted from 0",
        )
    return [TopicPartition(topic, index) for index in sorted(wanted or found.partitions)]


def _span(
    client: Client, start: Edge, end: Edge, partitions: list[TopicPartition], group: str | None, *, begins: bool
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """First offset to read and offset to stop before, of each partition, within what the partition holds now.

    Where `group` has committed an offset, reading starts there; only one that `begins` may have committed none.

    Raises:
        KafkaError: the first offset was named and is not held.
        ConfigError: the group has committed nothing.
    """
    from tagwire.client import Admin

    holds = held(client, partitions)
    starts = offsets_of(client, start, holds, must_hold=True)
    if group is not None:
        stands = Admin(client).group_offsets(group, partitions)
        if not stands and not begins:
            raise ConfigError(
                f"group {group!r} has committed nothing of topic {partitions[0].topic!r}; --commit begins it, and "
                "without --group the topic is read alone"
            )
        starts.update({at: holds[at].nearest(committed.offset) for at, committed in stands.items()})
    ends = offsets_of(client, end, holds)
    return starts, {at: min(ends[at], holds[at].end) for at in partitions}


def _reader(
    client: Client,
    starts: dict[TopicPartition, int],
    ends: dict[TopicPartition, int] | None,
    options: Mapping[str, Any],
) -> Reader | None:
    """Reads what there is from `starts` on, up to `ends`; None waits for more. None where there is nothing."""
    from tagwire.client import Reader

    first: dict[TopicPartition, int] = dict(starts.items())
    last: dict[TopicPartition, int] | None = None if ends is None else {at: ends[at] for at in starts}
    return Reader(client, first, end_offsets=last, columns=_COLUMNS, **options) if first else None


def _json_type(settings: ValueSettings, topic: str) -> pa.DataType:
    from tagwire.values.value_decoder import plan_decoder

    return plan_decoder(settings, topic).reader.json_type


def _reading(
    typed: Mapping[str, Callable[[], pa.DataType]], *, as_json: bool
) -> Callable[[pa.RecordBatch], list[ReadRecord]]:
    """What makes records of a batch; in columns with a schema as JSON has them, or else as text.

    Args:
        typed: by column, what tells its type as its schema counts times, for those that no calendar has.
    """
    made = to_json if as_json else as_text

    def read(batch: pa.RecordBatch) -> list[ReadRecord]:
        import pyarrow as pa

        columns = {name: batch.column(name) for name in _COLUMNS}
        columns["timestamp"] = columns["timestamp"].cast(pa.int64())
        found = {name: column.to_pylist() for name, column in columns.items() if name not in typed}
        for name, counted in typed.items():
            found[name] = [made(value) for value in _objects(columns[name], counted)]
        return [
            ReadRecord(topic, partition, offset, timestamp, _TIMESTAMP_TYPES[kind], key, value, _pairs(headers))
            for topic, partition, offset, timestamp, kind, key, value, headers in zip(
                *(found[name] for name in _COLUMNS)
            )
        ]

    return read


def _objects(column: pa.Array, counted: Callable[[], pa.DataType]) -> list[Any]:
    try:
        return plain_values(column)
    except (OverflowError, ValueError):  # a time that no calendar of Python's has
        if len(column) > 1:
            return [value for at in range(len(column)) for value in _objects(column.slice(at, 1), counted)]
        numbers, kind = numbered(column.type), counted()
        if numbered(kind) == numbers:  # else the subject has another schema by now
            column = column.cast(kind, safe=False)
        return _objects(column.cast(numbers), counted)


def _pairs(headers: list[dict[str, Any]] | None) -> Headers:
    return [(header["key"], header["value"]) for header in headers or ()]
