"""`tagwire lag`: how far consumer groups are behind, from Kafka's files alone or from a cluster's own topic."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from tagwire.cli.connecting import client_properties
from tagwire.cli.options import BOOTSTRAP, Bootstrap, Json
from tagwire.cli.terminal import print_json, print_rows, progress

_SHOWN = ("group", "topic", "partition", "offset", "logEndOffset", "lag")


def lag(
    files: Annotated[
        str | None, typer.Option("--files", metavar="DIR|URL", help="A broker's data directory; no broker is asked.")
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option("--group", metavar="GROUP", help="Only this group; may be repeated.")
    ] = None,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", metavar="TOPIC", help="Only of this topic; may be repeated.")
    ] = None,
    least: Annotated[
        int | None, typer.Option("--at-least", metavar="N", min=0, help="Only where N records or more are left.")
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Show how far every consumer group is behind, in one pass over all of them.

    Reads `__consumer_offsets` in Spark: of a cluster, or with --files what a broker left on disk. One group of a
    running cluster is told quicker by `tagwire groups describe`.

    \b
    Examples:
      tagwire lag --bootstrap kafka-1:9092
      tagwire lag --files /var/lib/kafka/data --at-least 1000 --json
    """
    from tagwire.spark.session import check_spark, session

    check_spark()
    with (
        tempfile.TemporaryDirectory() as folder,
        progress("reading offsets", unit="groups"),
        session(Path(folder) / "spark.log") as spark,
    ):
        rows = _rows(spark, files, bootstrap, {"group": group or [], "topic": topic or []}, least)
    if as_json:
        print_json(rows)
    elif rows:
        titles = ("group", "topic", "partition", "offset", "end", "lag")
        shown = [[_cell(row[name]) for name in _SHOWN] for row in rows]
        print_rows(titles, shown, numbers=(2, 3, 4, 5))
    else:
        print("no committed offsets" if least is None else f"nothing lags {least:,} records or more")


def _rows(
    spark: Any, files: str | None, bootstrap: str, wanted: dict[str, list[str]], least: int | None
) -> list[dict[str, Any]]:
    from pyspark.sql import functions as F  # noqa: N812

    from tagwire.spark.failure import reason
    from tagwire.spark.jobs.lag import lag_of_cluster, lag_of_files

    found = lag_of_files(spark, files) if files else lag_of_cluster(spark, client_properties(bootstrap))
    for column, names in wanted.items():
        if names:
            found = found.where(F.col(column).isin(names))
    if least is not None:
        found = found.where(F.col("lag") >= least)
    try:
        return [
            row.asDict() for row in found.select(*_SHOWN, "metadata").orderBy("group", "topic", "partition").collect()
        ]
    except Exception as error:
        raise reason(error) from error


def _cell(value: str | int | None) -> str:
    return value if isinstance(value, str) else "?" if value is None else f"{value:,}"
