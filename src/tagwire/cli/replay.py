"""`tagwire replay`: a landed table, or Kafka's files, back into a topic."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tagwire.cli.as_typed import as_typed
from tagwire.cli.connecting import BOOTSTRAP, client_properties
from tagwire.cli.engine import local_spark
from tagwire.cli.options import Bootstrap, DryRun, Isolation, Json, Topic
from tagwire.cli.registries import Registry
from tagwire.cli.terminal import print_json, printable, progress
from tagwire.cli.times import FORMS, milliseconds
from tagwire.cli.value_options import registry_options
from tagwire.errors import ConfigError

if TYPE_CHECKING:
    from tagwire.spark.jobs.target import Target

_NAMED: Final = 10
_OPTIONS = {"subscribe": "--of", "rate": "--rate", "speed": "--speed", "schema.registry.url": "--registry"}


def replay(
    topic: Topic,
    table: Annotated[
        Path | None, typer.Option("--table", metavar="DIR", help="What `tagwire land --to DIR` made.", exists=True)
    ] = None,
    files: Annotated[
        str | None, typer.Option("--files", metavar="DIR|URL", help="A partition's directory, or a broker's with --of.")
    ] = None,
    of: Annotated[str | None, typer.Option("--of", metavar="TOPIC", help="The topic among --files.")] = None,
    isolation: Annotated[
        Isolation | None,
        typer.Option(
            "--isolation", help="Whether aborted and open transactions among --files are left out. [default: they are]"
        ),
    ] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", metavar="N", help="Records per second; as many as go by default.")
    ] = None,
    speed: Annotated[
        float | None,
        typer.Option("--speed", metavar="X", help="As they once came, X times as fast: 60 is an hour in a minute."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="Only records from this time on: 2013-07-04 (UTC), -2h."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Only records from before this time.")
    ] = None,
    times: Annotated[
        str, typer.Option("--times", metavar="keep|now|MS", help="Timestamps: as they are, of now, or moved by MS.")
    ] = "keep",
    by_key: Annotated[
        bool, typer.Option("--by-key", help="Keys say which partition, not where rows came from.")
    ] = False,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            metavar="N",
            min=1,
            help="Of a topic that is created.",
            show_default="as many as rows come from",
        ),
    ] = None,
    registry: Registry = None,
    bootstrap: Bootstrap = BOOTSTRAP,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Write a landed table, or Kafka's files, back into a topic.

    A topic that is not there is created. One that lacks a partition that records came from is refused, unless --by-key
    says where they go. Each partition's records go in their order; with --rate or --speed those of all of them by
    their timestamps. Records are written without transactions: of --files, what was aborted or is open at their end is
    left out. A replay that is run again writes all of them again.

    \b
    Examples:
      tagwire replay flights-again --table out --rate 10000
      tagwire replay flights-again --table out --from 2013-07-04 --to 2013-07-05 --speed 60 --times now
      tagwire replay orders-again --table lake/orders --registry http://registry:8081
      tagwire replay restored --files /backup/kafka --of flights --times keep
      tagwire replay restored --files /backup/kafka --of flights --dry-run --json | jq .records
    """
    if (table is None) == (files is None):
        raise typer.BadParameter("give one of --table and --files", param_hint="'--table'")
    if of is not None and files is None:
        raise typer.BadParameter("needs --files: a table has one topic", param_hint="'--of'")
    if isolation is not None and files is None:
        raise typer.BadParameter("needs --files: a table has no transactions", param_hint="'--isolation'")
    if files is not None and not files.strip():
        raise typer.BadParameter("names no directory", param_hint="'--files'")
    from tagwire.spark.jobs.replay import replay as write
    from tagwire.spark.jobs.target import target_of

    window = [
        (option, _time(text, option)) for option, text in (("--from", since), ("--to", until)) if text is not None
    ]
    moved = times if times in ("keep", "now") else _milliseconds(times)
    with as_typed(_OPTIONS):
        _check_source(table, files, of)
    with as_typed(_OPTIONS), progress("replaying"), local_spark() as spark:
        rows = _rows(spark, table, files, of, isolation or "read_committed", registry)
        for option, milliseconds in window:
            rows = rows.where(f"unix_millis(timestamp) {'>=' if option == '--from' else '<'} {milliseconds}")
        properties = client_properties(bootstrap)
        where: dict[str, Any] = {"partitions": partitions, "keep_partitions": not by_key}
        if dry_run:
            target = target_of(rows, properties, topic, **where)
            if as_json:
                print_json([_document(topic, target, target.rows, replayed=False)])
            else:
                print(_foretold(target))
            return
        targets: list[Target] = []

        def found(target: Target) -> None:
            targets.append(target)
            if not target.is_there and not as_json:
                print(f"created {printable(topic)} with {_counted(target.partitions, 'partition')}", flush=True)

        sent = write(rows, properties, topic, rate=rate, speed=speed, times=moved, on_target=found, **where)
    if as_json:
        print_json([_document(topic, targets[0] if targets else None, sent, replayed=True)])
    else:
        print(f"{_counted(sent, 'record')} went to {printable(topic)}")


def _document(topic: str, target: Target | None, records: int, *, replayed: bool) -> dict[str, Any]:
    """What a program is told; `target` is None where there was nothing to replay, and no topic was looked at."""
    return {
        "topic": topic,
        "partitions": None if target is None else target.partitions,
        "created": replayed and target is not None and not target.is_there,
        "records": records,
        "replayed": replayed,
    }


def _foretold(target: Target) -> str:
    said = f"{_counted(target.rows, 'record')} would go to {printable(target.topic)}"
    if target.is_there or not target.rows:
        return said
    return f"{said}, which would be created with {_counted(target.partitions, 'partition')}"


def _check_source(table: Path | None, files: str | None, of: str | None) -> None:
    """Raises StorageError or ConfigError where there is nothing to replay, or more than one topic that nobody named,
    before Spark is started for it."""
    if table is not None:
        from tagwire.spark.jobs.replay import landed_table

        landed_table(table)
    elif files is not None:
        from tagwire.spark.segments.source import topics_in

        found = topics_in({"path": files, **({} if of is None else {"subscribe": of})})
        if of is None and len(found) > 1:
            named = ", ".join(found[:_NAMED]) + (", ..." if len(found) > _NAMED else "")
            raise ConfigError(f"{files}: has files of {len(found)} topics, {named}: name the one to replay with --of")


def _rows(
    spark: Any, table: Path | None, files: str | None, of: str | None, isolation: str, registry: str | None
) -> Any:
    from tagwire.spark.failure import reason
    from tagwire.spark.jobs.replay import landed_rows

    if table is not None:
        spark.conf.set("spark.sql.caseSensitive", "true")  # fields of values may differ in case alone
        return landed_rows(spark, table, registry_options(registry))
    try:
        # Markers are not written again: what was aborted would be as good as committed.
        reader = spark.read.format("tagwire-segments").options(includeHeaders="true", isolation=isolation)
        return (reader if of is None else reader.option("subscribe", of)).load(files)
    except Exception as error:
        raise reason(error) from error


def _time(text: str, option: str) -> int:
    found = milliseconds(f"@{text}" if text.isdecimal() else text)
    if found is None:
        raise typer.BadParameter(f"{text[:40]!r} is no time: write {FORMS}", param_hint=f"'{option}'")
    return found


def _milliseconds(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not keep, now or milliseconds", param_hint="'--times'") from None


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
