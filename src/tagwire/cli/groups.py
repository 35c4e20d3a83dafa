"""`tagwire groups`: list, describe with lag, delete; move their offsets."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagwire.cli.bounds import EARLIEST, LATEST, Bound, parse_bound, resolve
from tagwire.cli.options import BOOTSTRAP, Bootstrap, Json
from tagwire.cli.terminal import print_rows, printable, safe_json

if TYPE_CHECKING:
    from tagwire.client import Client, TopicPartition

app = typer.Typer(name="groups", rich_markup_mode=None, help="Look after consumer groups.")
offsets = typer.Typer(name="offsets", rich_markup_mode=None, help="Move a group's offsets.")
app.add_typer(offsets)

Group = Annotated[str, typer.Argument(metavar="GROUP", show_default=False)]


@app.command("list")
def list_(bootstrap: Bootstrap = BOOTSTRAP, as_json: Json = False) -> None:
    """List groups and their states.

    \b
    Example:
      tagwire groups list --json | jq 'select(.state == "Empty") | .group'
    """
    from tagwire.client import Admin

    with Admin(bootstrap) as admin:
        found = admin.list_groups()
    if as_json:
        _print_json(
            {"group": each.group, "state": each.state, "type": each.type, "protocol_type": each.protocol_type}
            for each in found
        )
    elif found:
        print_rows(("group", "state", "type"), [(each.group, each.state or "-", each.type or "-") for each in found])
    else:
        print(f"no groups on {printable(bootstrap)}")


@app.command()
def describe(group: Group, bootstrap: Bootstrap = BOOTSTRAP, as_json: Json = False) -> None:
    """Show a group's members, and how far it lags behind in each partition.

    \b
    Examples:
      tagwire groups describe loader
      tagwire groups describe loader --json | jq -s 'map(.lag) | add'
    """
    from tagwire.client import Admin, Client

    with Client(bootstrap) as client:
        admin = Admin(client)
        found = admin.describe_groups([group])[group]
        holders = {at: member for member in found.members for at in member.assignment}
        committed = admin.group_offsets(group)
        ends = _ends(client, sorted({*committed, *holders}))
    rows = [
        {
            "topic": at.topic,
            "partition": at.partition,
            "offset": committed[at].offset if at in committed else None,
            "end": end,
            "lag": max(end - committed[at].offset, 0) if end is not None and at in committed else None,
            "client_id": holders[at].client_id if at in holders else None,
            "host": holders[at].host if at in holders else None,
        }
        for at, end in ends.items()
    ]
    if as_json:
        _print_json({"group": group, "state": found.state, **row} for row in rows)
        return
    titles = ("topic", "partition", "offset", "end", "lag", "client", "host")
    if rows:
        table = [["-" if cell is None else str(cell) for cell in row.values()] for row in rows]
        print_rows(titles, table, numbers=(1, 2, 3, 4))
    count = "1 member" if len(found.members) == 1 else f"{len(found.members)} members"
    lag = sum(row["lag"] for row in rows if isinstance(row["lag"], int))
    print(f"{printable(group)} is {found.state} ({found.type}), {count}, {lag:,} records behind.")


@app.command()
def delete(group: Group, bootstrap: Bootstrap = BOOTSTRAP) -> None:
    """Delete a group that has no members, and every offset it committed.

    \b
    Example:
      tagwire groups delete loader
    """
    from tagwire.client import Admin

    with Admin(bootstrap) as admin:
        admin.delete_groups([group])
    print(f"deleted {printable(group)}")


@offsets.command()
def reset(
    group: Group,
    to: Annotated[
        str,
        typer.Option("--to", metavar="WHERE", help="earliest, latest, an offset, or a time such as 2013-07-04T06:00."),
    ],
    topic: Annotated[
        list[str] | None, typer.Option("--topic", metavar="TOPIC", help="Only this topic; may be repeated.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done.")] = False,
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Move a group without members to other offsets, in the topics it has committed in or those that are named.

    An offset that a partition does not hold becomes its nearest end; so does a time after the last record.

    \b
    Examples:
      tagwire groups offsets reset loader --to earliest --topic flights
      tagwire groups offsets reset loader --to 2013-07-04T06:00 --dry-run
    """
    from tagwire.client import Admin, Client, TopicPartition

    where = parse_bound(to, "--to")
    with Client(bootstrap) as client:
        admin = Admin(client)
        before = admin.group_offsets(group)
        topics = topic or sorted({at.topic for at in before})
        places = [
            TopicPartition(name, index) for name in topics for index in client.topic(name, client.deadline()).partitions
        ]
        after = _targets(client, places, where)
        if after and not dry_run:
            admin.alter_group_offsets(group, {(at.topic, at.partition): offset for at, offset in after.items()})
    rows = [
        {
            "topic": at.topic,
            "partition": at.partition,
            "before": before[at].offset if at in before else None,
            "after": offset,
        }
        for at, offset in after.items()
    ]
    if as_json:
        _print_json(rows)
    elif rows:
        table = [["-" if cell is None else str(cell) for cell in row.values()] for row in rows]
        print_rows(("topic", "partition", "before", "after"), table, numbers=(1, 2, 3))
    else:
        print(f"{printable(group)} has committed nothing: name a --topic")


def _ends(client: Client, places: list[TopicPartition]) -> dict[TopicPartition, int | None]:
    """The end of each partition; None for those of topics that are gone."""
    known = client.metadata({at.topic for at in places}).topics if places else {}
    there = [at for at in places if at.partition in known[at.topic].partitions]
    ends = client.list_offsets(dict.fromkeys(there, LATEST)) if there else {}
    return {at: ends.get(at) for at in places}


def _targets(client: Client, places: list[TopicPartition], to: Bound) -> dict[TopicPartition, int]:
    if not places:
        return {}
    starts = client.list_offsets(dict.fromkeys(places, EARLIEST))
    ends = client.list_offsets(dict.fromkeys(places, LATEST))
    return {at: min(max(offset, starts[at]), ends[at]) for at, offset in resolve(client, to, places).items()}


def _print_json(rows: Iterable[dict[str, Any]]) -> None:
    for row in rows:
        print(safe_json(json.dumps(row, ensure_ascii=False)))
