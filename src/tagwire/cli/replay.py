"""`tagwire replay`: a landed table, or Kafka's files, back into a topic."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from tagwire.cli.connecting import client_properties
from tagwire.cli.options import BOOTSTRAP, Bootstrap, Topic
from tagwire.cli.terminal import printable, progress


def replay(
    topic: Topic,
    table: Annotated[
        Path | None, typer.Option("--table", metavar="DIR", help="What `tagwire land --to DIR` made.", exists=True)
    ] = None,
    files: Annotated[
        str | None, typer.Option("--files", metavar="DIR|URL", help="A partition's directory, or a broker's with --of.")
    ] = None,
    of: Annotated[str | None, typer.Option("--of", metavar="TOPIC", help="The topic among --files.")] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", metavar="N", help="Records per second; as many as go by default.")
    ] = None,
    times: Annotated[
        str, typer.Option("--times", metavar="keep|now|MS", help="Timestamps: as they are, of now, or moved by MS.")
    ] = "keep",
    by_key: Annotated[
        bool, typer.Option("--by-key", help="Keys say which partition, not where rows came from.")
    ] = False,
    bootstrap: Bootstrap = BOOTSTRAP,
) -> None:
    """Write a landed table, or Kafka's files, back into a topic.

    Each partition's records go in their order. A replay that is run again writes all of them again.

    \b
    Examples:
      tagwire replay flights-again --table out --rate 10000
      tagwire replay restored --files /backup/kafka --of flights --times keep
    """
    if (table is None) == (files is None):
        raise typer.BadParameter("give one of --table and --files", param_hint="'--table'")
    from tagwire.spark.replay import replay as write
    from tagwire.spark.session import check_spark, session

    moved = times if times in ("keep", "now") else _milliseconds(times)
    check_spark()
    with (
        tempfile.TemporaryDirectory() as folder,
        progress("replaying"),
        session(Path(folder) / "spark.log") as spark,
    ):
        rows = _rows(spark, table, files, of)
        properties = client_properties(bootstrap)
        sent = write(rows, properties, topic, rate=rate, times=moved, keep_partitions=not by_key)
    print(f"{sent:,} records to {printable(topic)}")


def _rows(spark: Any, table: Path | None, files: str | None, of: str | None) -> Any:
    from tagwire.spark.failure import reason
    from tagwire.spark.replay import landed_rows

    if table is not None:
        return landed_rows(spark, table)
    try:
        reader = spark.read.format("tagwire-segments").option("includeHeaders", "true")
        return (reader.option("subscribe", of) if of else reader).load(files)
    except Exception as error:
        raise reason(error) from error


def _milliseconds(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not keep, now or milliseconds", param_hint="'--times'") from None
