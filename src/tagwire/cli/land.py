"""`tagwire land`: a topic becomes a table; without a broker of one's own, a demonstration of it."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tagwire.cli import land_options
from tagwire.cli.as_typed import as_typed
from tagwire.cli.completing import topics
from tagwire.cli.connecting import BOOTSTRAP, client_properties, connect, named_brokers
from tagwire.cli.engine import leaving_at_once
from tagwire.cli.land_display import display
from tagwire.cli.land_topics import TopicsDisplay, named_topics, print_outcomes, stopped_by_signals
from tagwire.cli.options import Bootstrap, Json
from tagwire.cli.registries import Registry
from tagwire.cli.suggestions import topics_meant
from tagwire.cli.terminal import cut, print_json, print_rows, printable

if TYPE_CHECKING:
    from tagwire.spark.jobs.landed import LandReport

_CELL = 40
_NARROW = 6


def land(
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="[TOPIC,...]", help="Without, the demonstration.", show_default=False, autocompletion=topics
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP,
    # As it was once called: what is written down in somebody's crontab goes on.
    topic_option: Annotated[str | None, typer.Option("--topic", metavar="TOPIC", hidden=True)] = None,
    topics_like_option: Annotated[
        str | None,
        typer.Option("--topics-like", metavar="REGEX", help="All topics whose whole name it matches, a table each."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on with what comes, until SIGTERM or Ctrl-C.")] = False,
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", help="With --follow: how often to look.")
    ] = 10.0,
    to: Annotated[
        str, typer.Option("--to", metavar="DIR|URL", help="What becomes the table: of Delta also s3://BUCKET/PATH.")
    ] = "out",
    table_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="delta|iceberg|parquet",
            help="Of the table.",
            show_default="the table's own; delta where that extra is installed",
        ),
    ] = None,
    storage_option: Annotated[
        list[str] | None,
        typer.Option("--storage-option", metavar="NAME=VALUE", help="Of the object store: delta-rs' storage options."),
    ] = None,
    catalog: Annotated[
        str | None,
        typer.Option(
            "--catalog",
            metavar="NAME",
            help="Of Iceberg: the catalog, as pyiceberg's configuration has it.",
            show_default="SQLite in DIR",
        ),
    ] = None,
    catalog_property: Annotated[
        list[str] | None,
        typer.Option("--catalog-property", metavar="NAME=VALUE", help="Of that catalog: pyiceberg's properties."),
    ] = None,
    catalog_table: Annotated[
        str | None,
        typer.Option(
            "--table", metavar="NAMESPACE.NAME", help="In that catalog.", show_default="default.TOPIC, or default.DIR"
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", metavar="DIR", help="What the job remembers.", show_default="DIR/_checkpoint"),
    ] = None,
    headers: Annotated[
        str | None, typer.Option("--headers", metavar="NAME,...", help="Headers that become columns of their own.")
    ] = None,
    text: Annotated[bool | None, typer.Option("--text/--bytes", help="What key and value are.")] = None,
    value_format: land_options.ValueFormat = None,
    value_schema: land_options.ValueSchema = None,
    registry: Registry = None,
    message: land_options.Message = None,
    version: land_options.Version = None,
    key_format: land_options.KeyFormat = None,
    key_schema: land_options.KeySchema = None,
    key_message: land_options.KeyMessage = None,
    key_version: land_options.KeyVersion = None,
    mode: land_options.Mode = None,
    corrupt_column: land_options.CorruptColumn = None,
    partition_by: Annotated[
        str | None,
        typer.Option(
            "--partition-by",
            metavar="none|month|day|hour|COLUMN,...",
            help="Files kept apart by the records' time (UTC), by headers or by partition.",
            show_default="none",
        ),
    ] = None,
    on_data_loss: Annotated[
        str,
        typer.Option(
            "--on-data-loss",
            metavar="fail|skip",
            help="Where brokers no longer keep what was to be landed next: skip goes on with what they keep.",
        ),
    ] = "fail",
    batch_offsets: Annotated[
        int | None,
        typer.Option(
            "--batch-offsets", metavar="N", min=1, help="Most offsets in a micro-batch.", show_default="1000000"
        ),
    ] = None,
    file_size: Annotated[
        int, typer.Option("--file-size", metavar="MIB", min=1, help="How large a file becomes, about.")
    ] = 128,
    file_rows: Annotated[
        int | None, typer.Option("--file-rows", metavar="N", min=1, help="Rows in one file, at most.")
    ] = None,
    evolve: Annotated[
        bool, typer.Option("--evolve", help="Add columns that the rows have and the table has not.")
    ] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Land a topic that was deleted and made anew, from its start.")
    ] = False,
    optimize: Annotated[bool, typer.Option("--optimize", help="Make few files of many, at the end.")] = False,
    vacuum: Annotated[
        bool, typer.Option("--vacuum", help="Remove files that have been no part of the table for a week, at the end.")
    ] = False,
    metrics: Annotated[
        Path | None, typer.Option("--metrics", metavar="FILE", help="Keep metrics for Prometheus in this file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Land a topic as a table: of Delta, of Iceberg, or of plain Parquet files. The directory is the table.

    Lands what the topic holds now; run again, what is new. A run that was killed is made good by the next.
    A header's column holds its last value in a record, as text; what is not UTF-8 is written 0x and hexadecimal.
    A micro-batch adds a file for each --file-size that it holds, at least one, and with --partition-by at least one for
    each month, day or value: partition where such a file is large, or where old days are to be removed at once.
    Several topics land in a table each, DIR/TOPIC; of one that fails it is said why, and the others are finished.
    With --json: a line for each micro-batch, then one with the report, and no page.

    Without TOPIC it starts a broker on DIR/_broker, fills its topic with the 336,776 departures from New York
    in 2013, and lands that.

    \b
    Examples:
      tagwire land
      tagwire land orders --bootstrap kafka-1:9092 --to lake/orders --headers trace-id,tenant
      tagwire land orders --to s3://lake/orders --storage-option aws_region=eu-west-1 --optimize
      tagwire land orders --format iceberg --catalog prod --table sales.orders
      tagwire land orders,payments --to lake --follow
      tagwire land orders --value-format json --value-schema 'id bigint, total double'
      tagwire land orders --value-format avro --registry http://registry:8081
    """
    if topic is not None and topic_option is not None:
        raise typer.BadParameter("the topic is named twice", param_hint="'--topic'")
    named = named_topics(topic_option if topic is None else topic)
    topic = named[0] if named else None
    if topic is not None and topics_like_option is not None:
        raise typer.BadParameter("names topics, as TOPIC does", param_hint="'--topics-like'")
    if topics_like_option == "":
        raise typer.BadParameter("matches no topic", param_hint="'--topics-like'")
    several = topics_like_option is not None or len(named) > 1
    if catalog_table is not None and several:
        raise typer.BadParameter("several topics are a table each", param_hint="'--table'")
    if topic is None and not several and (catalog or catalog_property or catalog_table):
        raise typer.BadParameter("the demonstration's table is in none of yours", param_hint="'--catalog'")
    if follow and topic is None and not several:
        raise typer.BadParameter("the demonstration ends with its topic", param_hint="'--follow'")
    if topic is None and not several and named_brokers() is not None:
        raise typer.BadParameter("brokers alone are not enough: name a TOPIC", param_hint="'--bootstrap'")
    of_both = {"mode": mode, "columnNameOfCorruptRecord": corrupt_column}
    decoding = {name: value for name, value in of_both.items() if value is not None}
    for which, format_, schema, spec, number in (
        ("value", value_format, value_schema, message, version),
        ("key", key_format, key_schema, key_message, key_version),
    ):
        given = {"schema": schema, "message": spec, "version": None if number is None else str(number)}
        decoding |= land_options.decoding(which, format_, given, registry)
    if topic is None and not several and (text is not None or decoding):
        raise typer.BadParameter("the demonstration's values are text", param_hint="'--text'")
    names = None if headers is None else [name.strip() for name in headers.split(",")]
    from tagwire.spark.jobs import flights, report
    from tagwire.spark.jobs.land import BatchSettings, CatalogSettings, Follow, LandListener, TableSettings, Upkeep
    from tagwire.spark.jobs.land import land as land_topic
    from tagwire.spark.jobs.land_topics import land_topics, topics_like
    from tagwire.spark.jobs.landed import LandReport

    table = TableSettings(
        headers=names,
        text=text,
        values=decoding or None,
        partition_by=partition_by,
        evolve=evolve,
        restart=restart,
    )
    upkeep = Upkeep(optimize=optimize, vacuum=vacuum)
    stores = land_options.named_properties("--storage-option", storage_option or [])
    lake = CatalogSettings(
        name=catalog,
        properties=land_options.named_properties("--catalog-property", catalog_property or []),
        table=catalog_table,
    )
    lakes = None if lake == CatalogSettings() else lake
    batches = replace(
        flights.BATCHES if topic is None and not several else BatchSettings(),
        file_bytes=file_size << 20,
        file_rows=file_rows,
    )
    if batch_offsets is not None:
        batches = replace(batches, batch_offsets=batch_offsets)
    going_on = Follow(stop=threading.Event(), seconds=every) if follow else None
    with ExitStack() as stack:
        stack.enter_context(leaving_at_once("interrupted; run it again to go on"))
        stack.enter_context(as_typed(land_options.TYPED))
        if going_on is not None:
            stack.enter_context(stopped_by_signals(going_on.stop))
        if several:
            properties = client_properties(bootstrap)
            with connect(bootstrap):
                later = topics_like_option if follow else None  # some may be created later, and all of them
                wanted = topics_like_option and not follow and topics_like(bootstrap, topics_like_option, properties)
            told = TopicsDisplay(as_json=as_json)
            outcomes = land_topics(
                bootstrap,
                wanted or named,
                to,
                listener=told.listener,
                on_topic=told.ended,
                like=later,
                follow=going_on,
                on_data_loss=on_data_loss,
                format=table_format,
                table=table,
                batches=batches,
                upkeep=upkeep,
                storage_options=stores,
                catalog=lakes,
                properties=properties,
                checkpoint=checkpoint,
                metrics=metrics,
            )
            if not as_json:
                print_outcomes(outcomes)
            if not all(isinstance(outcome, LandReport) for outcome in outcomes.values()):
                raise typer.Exit(2)
            return
        shown = stack.enter_context(display())
        listener = LandListener(
            on_progress=shown.progress, on_step=shown.step, on_pause=shown.pause, on_loss=shown.loss
        )
        if as_json:
            listener = replace(listener, on_batch=lambda batch: _print_json(vars(batch)))
        if topic is None:
            done = flights.land_flights(
                to,
                format=table_format,
                table=table,
                batches=batches,
                upkeep=upkeep,
                checkpoint=checkpoint,
                metrics=metrics,
                listener=listener,
                on_fill=shown.fill,
            )
        else:
            properties = client_properties(bootstrap)
            with connect(bootstrap) as client, topics_meant(client, topic):
                done = land_topic(
                    bootstrap,
                    topic,
                    to,
                    format=table_format,
                    table=table,
                    batches=batches,
                    upkeep=upkeep,
                    follow=going_on,
                    on_data_loss=on_data_loss,
                    storage_options=stores,
                    catalog=lakes,
                    properties=properties,
                    checkpoint=checkpoint,
                    metrics=metrics,
                    listener=listener,
                )
    if as_json:
        _print_json(done.document())
        return
    page = None if done.out is None else report.write_report(done, flights=topic is None)
    _print(done, page, demonstration=topic is None)


def _print_json(document: object) -> None:
    """A line that whoever reads along has at once."""
    print_json([document])
    sys.stdout.flush()


def _print(done: LandReport, page: Path | None, *, demonstration: bool) -> None:
    from tagwire.spark.jobs.report import PARTITION_TITLES, first_rows, holding, partition_rows, summary, ways_to_open

    titles, rows = first_rows(done)
    if rows:
        width = _cell_width([titles, *rows])
        numbers = [titles.index(name) for name in ("partition", "offset")]
        shown = [[cut(cell, width) for cell in row] for row in [titles, *rows]]
        print_rows(shown[0], shown[1:], numbers=numbers)
        print()
    print(printable(summary(done)))
    if done.rows:
        print_rows(PARTITION_TITLES, partition_rows(done), numbers=(0, 1, 2, 3))
    table = done.where if done.out is None else _short(done.out)
    seen = ", ".join(
        f"{key} ({count:,}{'' if key in done.headers else ', no column'})" for key, count in done.header_keys.items()
    )
    told = [
        ("table", f"{table}: {holding(done)}"),
        ("headers", seen or ("none" if done.rows else "")),
        ("malformed", f"{done.malformed:,} values, kept as bytes beside their rows" if done.malformed else ""),
        ("spoken", ", ".join(f"{api} {version}" for api, version in done.versions.items())),
        ("report", "" if page is None else f"{_short(page)}: open it in a browser"),
        *((f"in {name}", line) for name, line in ways_to_open(done, table)),
        ("again", "run it again: nothing is landed twice, and whatever is new is"),
        ("yours", _own_topic() if demonstration else ""),
    ]
    print()
    for name, said in told:
        if said:
            print(f"{name:10} {printable(said)}")


def _own_topic() -> str:
    """The command that does the same with a topic of one's own, as this one was called."""
    if os.environ.get("MAKELEVEL"):
        return "make run BOOTSTRAP=host:9092 TOPIC=orders OUT=orders HEADERS=trace-id,tenant"
    return "tagwire land orders --bootstrap host:9092 --to orders --headers trace-id,tenant"


def _short(path: Path) -> str:
    """A path as one would type it here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _cell_width(rows: list[list[str]]) -> int:
    """How wide a cell may be for the rows to fit the terminal; `_CELL` at most, and where there is no terminal."""
    if not sys.stdout.isatty():
        return _CELL
    widest = [max(map(len, column)) for column in zip(*rows)]
    room = shutil.get_terminal_size().columns
    fitting = (width for width in range(_CELL, _NARROW, -1) if sum(min(w, width) + 2 for w in widest) <= room)
    return next(fitting, _NARROW)
