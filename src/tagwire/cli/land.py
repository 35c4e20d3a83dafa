"""`tagwire land`: a topic becomes a Parquet table; without a broker of one's own, a demonstration of it."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tagwire.cli.as_typed import as_typed
from tagwire.cli.completing import topics
from tagwire.cli.connecting import BOOTSTRAP, client_properties, connect, named_brokers
from tagwire.cli.engine import leaving_at_once
from tagwire.cli.land_display import display
from tagwire.cli.options import Bootstrap, Json
from tagwire.cli.suggestions import topics_meant
from tagwire.cli.terminal import cut, print_json, print_rows, printable

if TYPE_CHECKING:
    from tagwire.spark.jobs.landed import LandReport

_OPTIONS = {
    "value.format": "--value-format",
    "value.schema": "--value-schema",
    "value.message": "--message",
    "value.version": "--version",
    "columnNameOfCorruptRecord": "--corrupt-column",
    "mode": "--mode",
    "headers": "--headers",
    "partition_by": "--partition-by",
}
_CELL = 40
_NARROW = 6


def land(
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="[TOPIC]", help="Without, the demonstration.", show_default=False, autocompletion=topics
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP,
    # As it was once called: what is written down in somebody's crontab goes on.
    topic_option: Annotated[str | None, typer.Option("--topic", metavar="TOPIC", hidden=True)] = None,
    to: Annotated[str, typer.Option("--to", metavar="DIR", help="The directory that becomes the table.")] = "out",
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", metavar="DIR", help="What the job remembers.", show_default="DIR/_checkpoint"),
    ] = None,
    headers: Annotated[
        str | None, typer.Option("--headers", metavar="NAME,...", help="Headers that become columns of their own.")
    ] = None,
    text: Annotated[bool | None, typer.Option("--text/--bytes", help="What key and value are.")] = None,
    value_format: Annotated[
        str | None, typer.Option("--value-format", metavar="json|message", help="Values become typed columns.")
    ] = None,
    value_schema: Annotated[
        str | None, typer.Option("--value-schema", metavar="DDL", help="Of json: 'a int, b array<string>'.")
    ] = None,
    message: Annotated[
        str | None, typer.Option("--message", metavar="NAME|FILE", help="Of message: of the catalog, or a spec.")
    ] = None,
    version: Annotated[int | None, typer.Option("--version", metavar="N", help="The message's version.")] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode",
            metavar="MODE",
            help="Of bad values: PERMISSIVE keeps their bytes in a column. Else DROPMALFORMED or FAILFAST.",
        ),
    ] = None,
    corrupt_column: Annotated[
        str | None,
        typer.Option("--corrupt-column", metavar="NAME", help="That column.", show_default="_corrupt_record"),
    ] = None,
    partition_by: Annotated[
        str | None,
        typer.Option(
            "--partition-by",
            metavar="none|month|date",
            help="Directories by the time of the records (UTC).",
            show_default="none",
        ),
    ] = None,
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
    metrics: Annotated[
        Path | None, typer.Option("--metrics", metavar="FILE", help="Keep metrics for Prometheus in this file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Land a topic as a Parquet table. The directory is the table: spark.read.parquet("DIR") gives its rows.

    Lands what the topic holds now; run again, what is new. A run that was killed is made good by the next.
    A header's column holds its last value in a record, as text; what is not UTF-8 is written 0x and hexadecimal.
    A micro-batch adds a file for each --file-size that it holds, at least one, and with --partition-by at least one for
    each month or date: partition where such a file is large, or where old dates are to be removed by directory.
    With --json: a line for each micro-batch, then one with the report, and no page.

    Without TOPIC it starts a broker on DIR/_broker, fills its topic with the 336,776 departures from New York
    in 2013, and lands that.

    \b
    Examples:
      tagwire land
      tagwire land orders --bootstrap kafka-1:9092 --to lake/orders --headers trace-id,tenant
      tagwire land orders --value-format json --value-schema 'id bigint, total double'
    """
    if topic is not None and topic_option is not None:
        raise typer.BadParameter("the topic is named twice", param_hint="'--topic'")
    topic = topic or topic_option
    if topic is None and named_brokers() is not None:
        raise typer.BadParameter("brokers alone are not enough: name a TOPIC", param_hint="'--bootstrap'")
    values = {
        "value.format": value_format,
        "value.schema": value_schema,
        "value.message": message,
        "value.version": None if version is None else str(version),
        "mode": mode,
        "columnNameOfCorruptRecord": corrupt_column,
    }
    decoding = {name: value for name, value in values.items() if value is not None}
    if topic is None and (text is not None or decoding):
        raise typer.BadParameter("the demonstration's values are text", param_hint="'--text'")
    names = None if headers is None else [name.strip() for name in headers.split(",")]
    from tagwire.spark.jobs import flights, report
    from tagwire.spark.jobs.land import BatchSettings, LandListener, TableSettings
    from tagwire.spark.jobs.land import land as land_topic
    from tagwire.spark.jobs.land_settings import PARTITIONINGS

    if partition_by is not None and partition_by not in PARTITIONINGS:
        raise typer.BadParameter(f"{partition_by!r} is not none, month or date", param_hint="'--partition-by'")

    table = TableSettings(headers=names, text=text, values=decoding or None, partition_by=partition_by)
    batches = replace(
        flights.BATCHES if topic is None else BatchSettings(), file_bytes=file_size << 20, file_rows=file_rows
    )
    if batch_offsets is not None:
        batches = replace(batches, batch_offsets=batch_offsets)
    with leaving_at_once("interrupted; run it again to go on"), as_typed(_OPTIONS), display() as shown:
        listener = LandListener(on_progress=shown.progress, on_step=shown.step)
        if as_json:
            listener = replace(listener, on_batch=lambda batch: _print_json(vars(batch)))
        if topic is None:
            done = flights.land_flights(
                to,
                table=table,
                batches=batches,
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
                    table=table,
                    batches=batches,
                    properties=properties,
                    checkpoint=checkpoint,
                    metrics=metrics,
                    listener=listener,
                )
    if as_json:
        _print_json(done.document())
        return
    _print(done, report.write_report(done, flights=topic is None), demonstration=topic is None)


def _print_json(document: object) -> None:
    """A line that whoever reads along has at once."""
    print_json([document])
    sys.stdout.flush()


def _print(done: LandReport, page: Path, *, demonstration: bool) -> None:
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
    table = _short(done.out)
    seen = ", ".join(
        f"{key} ({count:,}{'' if key in done.headers else ', no column'})" for key, count in done.header_keys.items()
    )
    told = [
        ("table", f"{table}: {holding(done)}"),
        ("headers", seen or ("none" if done.rows else "")),
        ("malformed", f"{done.malformed:,} values, kept as bytes beside their rows" if done.malformed else ""),
        ("spoken", ", ".join(f"{api} {version}" for api, version in done.versions.items())),
        ("report", f"{_short(page)}: open it in a browser"),
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
