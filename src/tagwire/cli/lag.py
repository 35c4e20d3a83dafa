"""`tagwire lag`: how far consumer groups are behind, as a cluster tells, or from Kafka's files alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagwire.cli import completing
from tagwire.cli.connecting import BOOTSTRAP, client_properties, connect
from tagwire.cli.engine import local_spark
from tagwire.cli.groups import lag_rows
from tagwire.cli.options import Bootstrap, Json
from tagwire.cli.terminal import print_json, print_rows, printable, progress
from tagwire.suggestions import did_you_mean

if TYPE_CHECKING:
    from tagwire.client import Client

Row = dict[str, Any]

_UNKNOWN_END = "where the partition ends is not known"
_NO_OFFSET = "nothing committed"


def lag(
    files: Annotated[
        str | None, typer.Option("--files", metavar="DIR|URL", help="A broker's data directory; no broker is asked.")
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group", metavar="GROUP", autocompletion=completing.groups, help="Only this group; may be repeated."
        ),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic", metavar="TOPIC", autocompletion=completing.topics, help="Only of this topic; may be repeated."
        ),
    ] = None,
    least: Annotated[
        int | None, typer.Option("--at-least", metavar="N", min=0, help="Only where N records or more are left.")
    ] = None,
    members: Annotated[
        bool, typer.Option("--members", help="Who has each partition; also of those without an offset.")
    ] = False,
    summary: Annotated[
        bool, typer.Option("--summary", help="A row for each group instead: its most and all records behind.")
    ] = False,
    spark: Annotated[
        bool, typer.Option("--spark", help="Read the cluster's __consumer_offsets in Spark instead of asking for it.")
    ] = False,
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Show how far every consumer group is behind, of all groups at once.

    The brokers tell: share groups and those of KIP-848 are told of where they have any. What cannot be told is
    null, and its note says why. With --files Spark reads what a broker left on disk, with --spark the topic
    __consumer_offsets, which spares the coordinators of a cluster with very many groups.

    \b
    Examples:
      tagwire lag --bootstrap kafka-1:9092 --at-least 1000
      tagwire lag --group loader --group audit --members
      tagwire lag --summary --json | jq 'select(.max_lag > 1000) | .group'
      tagwire lag --files /var/lib/kafka/data --json
    """
    if files is not None and not files.strip():
        raise typer.BadParameter("names no directory", param_hint="'--files'")
    if (files or spark) and members:
        raise typer.BadParameter("members are known to brokers alone", param_hint="'--members'")
    groups, topics = list(dict.fromkeys(group or ())), list(dict.fromkeys(topic or ()))
    if files or spark:
        rows = _spark_rows(files, bootstrap, groups, topics)
    else:
        with connect(bootstrap) as client:
            rows = _lags(client, groups, topics, members=members)
    if summary:
        _print_summary(rows, least, as_json)
    else:
        _print(rows, least, members, as_json)


def _lags(client: Client, groups: list[str], topics: list[str], *, members: bool) -> list[Row]:
    from tagwire.client import Admin
    from tagwire.errors import Error, KafkaError

    admin = Admin(client)
    try:
        found = admin.group_lags(groups or None, topics=topics, members=members)
    except KafkaError as error:
        if error.error is not Error.GROUP_ID_NOT_FOUND:
            raise
        _refuse_missing("group", groups, {one.group for one in admin.list_groups()})
        raise
    rows = [row for one in found for row in lag_rows(one)]
    _refuse_missing("topic", topics, {row["topic"] for row in rows}, lambda: client.metadata().topics)
    return rows


def _spark_rows(files: str | None, bootstrap: str, groups: list[str], topics: list[str]) -> list[Row]:
    if files:
        from tagwire.spark.segments.source import check_files

        check_files({"view": "offsets", "path": files})
    with progress("reading offsets", unit="groups"), local_spark() as spark:
        return _collected(spark, files, bootstrap, groups, topics)


def _collected(spark: Any, files: str | None, bootstrap: str, groups: list[str], topics: list[str]) -> list[Row]:
    from pyspark.sql import functions as F  # noqa: N812

    from tagwire.spark.failure import reason
    from tagwire.spark.jobs.lag import lag_of_cluster, lag_of_files

    found = lag_of_files(spark, files) if files else lag_of_cluster(spark, client_properties(bootstrap))
    if groups:
        found = found.where(F.col("group").isin(groups))
    elif topics:
        found = found.where(F.col("topic").isin(topics))
    columns = ("group", "topic", "partition", "offset", "logEndOffset", "lag", "metadata")
    try:
        told = [tuple(row) for row in found.select(*columns).orderBy("group", "topic", "partition").collect()]
    except Exception as error:
        raise reason(error) from error
    rows = [
        {
            "group": name,
            "state": None,
            "type": None,
            "topic": topic,
            "partition": partition,
            "offset": offset if offset >= 0 else None,
            "end": end,
            "lag": behind,
            "metadata": metadata,
            "note": _UNKNOWN_END if end is None else _NO_OFFSET if offset < 0 else None,
        }
        for name, topic, partition, offset, end, behind, metadata in told
    ]
    _refuse_missing("group", groups, {row["group"] for row in rows})
    committed = {row["topic"] for row in rows}
    _refuse_missing("topic", topics, committed)
    return [row for row in rows if not topics or row["topic"] in topics]


def _refuse_missing(
    what: str, named: list[str], there: Collection[str | None], meant: Callable[[], Iterable[str]] | None = None
) -> None:
    """Raises typer.BadParameter where something was named that is not there; `meant`: what it may have been instead."""
    missing = [name for name in named if name not in there]
    if missing:
        said = "no group is called" if what == "group" else "there is no committed offset in"
        names = " or ".join(repr(printable(name)) for name in missing)
        known = [one for one in there if one is not None] if meant is None else meant()
        raise typer.BadParameter(f"{said} {names}{did_you_mean(missing[0], known)}", param_hint=f"'--{what}'")


def _print(rows: list[Row], least: int | None, members: bool, as_json: bool) -> None:
    kept = rows if least is None else [row for row in rows if row["lag"] is not None and row["lag"] >= least]
    unknown = 0 if least is None else sum(row["lag"] is None for row in rows)
    if as_json:
        who = () if members else ("member_id", "client_id", "host")
        print_json({name: value for name, value in row.items() if name not in who} for row in kept)
    elif kept:
        names = ["group", "topic", "partition", "offset", "end", "lag"]
        names += ["client_id", "host", "member_id"] if members else []
        names += ["note"] if any(row["note"] for row in kept) else []
        titles = [{"client_id": "client", "member_id": "member"}.get(name, name) for name in names]
        print_rows(titles, [[_cell(row[name]) for name in names] for row in kept], numbers=(2, 3, 4, 5))
    else:
        print("no committed offsets" if least is None else f"nothing lags {least:,} records or more")
    if unknown:
        typer.echo(f"left out: {unknown:,} whose lag is not known, see without --at-least", err=True)


def _print_summary(rows: list[Row], least: int | None, as_json: bool) -> None:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row)
    told = [
        {
            "group": name,
            "state": own[0]["state"],
            "type": own[0]["type"],
            "partitions": sum(row["partition"] is not None for row in own),
            "max_lag": max((row["lag"] for row in own if row["lag"] is not None), default=None),
            "total_lag": sum(row["lag"] or 0 for row in own) if any(row["lag"] is not None for row in own) else None,
            "unknown": sum(row["lag"] is None for row in own),
        }
        for name, own in groups.items()
    ]
    kept = [row for row in told if least is None or row["unknown"] or (row["max_lag"] or 0) >= least]
    if as_json:
        print_json(kept)
    elif kept:
        titles = ("group", "state", "type", "partitions", "most behind", "all behind", "not known")
        print_rows(titles, [[_cell(value) for value in row.values()] for row in kept], numbers=(3, 4, 5, 6))
    else:
        print("no committed offsets" if least is None else f"nothing lags {least:,} records or more")


def _cell(value: str | int | None) -> str:
    return value if isinstance(value, str) else "-" if value is None else f"{value:,}"
