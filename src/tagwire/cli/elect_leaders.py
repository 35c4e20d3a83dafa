"""`tagwire elect-leaders`: gives partitions the leader that they should have; in the words of kafka-leader-election."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tagwire.cli import completing
from tagwire.cli.connecting import BOOTSTRAP, connect
from tagwire.cli.options import Bootstrap, Json
from tagwire.cli.suggestions import topics_meant
from tagwire.cli.terminal import print_json, print_rows, showing_what_succeeded

if TYPE_CHECKING:
    from tagwire.client import Client, TopicPartition

_TYPES: Final = ("preferred", "unclean")


def elect_leaders(
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC]...", show_default=False, autocompletion=completing.topics)
    ] = None,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", min=0, metavar="N", help="Only this one; may be repeated.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All partitions of all topics.")] = False,
    election_type: Annotated[
        str,
        typer.Option(
            "--election-type",
            metavar="TYPE",
            autocompletion=completing.of(*_TYPES),
            help="preferred, the first replica, or unclean, any that runs, which may lose records.",
        ),
    ] = "preferred",
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Elect leaders of partitions: the preferred replica, or, where there is no leader, any that runs.

    Partitions that are led as they should be are left alone.

    \b
    Examples:
      tagwire elect-leaders --all
      tagwire elect-leaders flights --partition 3 --election-type unclean
    """
    from tagwire.client import Admin, TopicPartition

    if election_type.lower() not in _TYPES:
        raise typer.BadParameter(f"{election_type!r} is not {' or '.join(_TYPES)}", param_hint="'--election-type'")
    names = topics or []
    if every == bool(names):
        raise typer.BadParameter("name topics, or give --all")
    if partition and len(names) != 1:
        raise typer.BadParameter("it goes with one topic", param_hint="'--partition'")
    wanted = [TopicPartition(names[0], index) for index in partition] if partition else names
    with connect(bootstrap) as client, topics_meant(client, *names):

        def show(elected: Mapping[TopicPartition, bool]) -> None:
            _print(client, elected, as_json)

        with showing_what_succeeded(show):
            elected = Admin(client).elect_leaders(election_type.lower(), None if every else wanted)
        show(elected)


def _print(client: Client, elected: Mapping[TopicPartition, bool], as_json: bool) -> None:
    known = client.metadata(sorted({at.topic for at in elected})).topics if elected else {}
    rows = []
    for at, was_needed in sorted(elected.items()):
        there = known[at.topic].partitions.get(at.partition) if at.topic in known else None
        leader = None if there is None or there.leader < 0 else there.leader
        rows.append({"topic": at.topic, "partition": at.partition, "elected": was_needed, "leader": leader})
    if as_json:
        print_json(rows)
        return
    shown = [row for row in rows if row["elected"]]
    if shown:
        table = [[str(row["topic"]), str(row["partition"]), str(row["leader"])] for row in shown]
        print_rows(("topic", "partition", "leader"), table, numbers=(1, 2))
    left = len(rows) - len(shown)
    if left or not shown:
        led = "1 partition is led as it" if left == 1 else f"{left} partitions are led as they"
        print(f"no election was needed: {led} should be")
