"""`tagwire groups`: list, describe with lag, delete; move and delete their offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagwire.cli import completing
from tagwire.cli.bounds import held, parse_bound, resolve
from tagwire.cli.connecting import BOOTSTRAP, administer, connect
from tagwire.cli.options import Bootstrap, DryRun, Json, check_alone
from tagwire.cli.suggestions import groups_meant, topics_meant
from tagwire.cli.terminal import print_deleted, print_json, print_rows, printable, showing_what_succeeded
from tagwire.errors import ConfigError
from tagwire.suggestions import did_you_mean

if TYPE_CHECKING:
    from tagwire.client import Admin, GroupDescription, GroupLag, GroupListing, TopicPartition

app = typer.Typer(name="groups", rich_markup_mode=None)
offsets = typer.Typer(name="offsets", rich_markup_mode=None, help="Move or delete a group's offsets.")
app.add_typer(offsets)

_STATES = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "Stable",
    "NotReady",
    "Empty",
    "Dead",
    "Unknown",
)
"""As `org.apache.kafka.common.GroupState` has them."""

Group = Annotated[str, typer.Argument(metavar="GROUP", show_default=False, autocompletion=completing.groups)]
States = Annotated[
    list[str] | None, typer.Option("--state", metavar="STATE", help="Only such as Empty; may be repeated.")
]
Groups = Annotated[list[str], typer.Argument(metavar="GROUP...", show_default=False, autocompletion=completing.groups)]
Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic", metavar="TOPIC", autocompletion=completing.topics, help="Only this topic; may be repeated."
    ),
]
Partitions = Annotated[
    list[int] | None, typer.Option("--partition", min=0, metavar="N", help="Only this partition; may be repeated.")
]


@app.callback(invoke_without_command=True)
def groups(
    context: typer.Context, state: States = None, bootstrap: Bootstrap = BOOTSTRAP, as_json: Json = False
) -> None:
    """List groups; describe or delete them, move or delete their offsets.

    \b
    Examples:
      tagwire groups
      tagwire groups describe loader
    """
    check_alone(context, as_json)
    if context.invoked_subcommand is None:
        _list(state, bootstrap, as_json)


@app.command("list")
def list_(state: States = None, bootstrap: Bootstrap = BOOTSTRAP, as_json: Json = False) -> None:
    """List groups and their states, as `tagwire groups` alone does.

    \b
    Examples:
      tagwire groups list --state Empty --state Dead
      tagwire groups list --json | jq 'select(.type == "classic") | .group'
    """
    _list(state, bootstrap, as_json)


@app.command()
def describe(
    groups: Annotated[
        list[str] | None, typer.Argument(metavar="[GROUP...]", show_default=False, autocompletion=completing.groups)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All groups that there are.")] = False,
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Show a group's members, and how far it lags behind in each partition.

    \b
    Examples:
      tagwire groups describe loader
      tagwire groups describe --all
      tagwire groups describe loader --json | jq -s 'map(.lag) | add'
    """
    if bool(groups) == every:
        raise typer.BadParameter("name groups, or give --all" if not every else "--all is there already: name none")
    with administer(bootstrap) as admin, groups_meant(admin, *groups or ()):
        found = admin.group_lags(groups or None, members=True)
    told = {group.group: group for group in found}
    for name in groups or told:
        group = told[name]
        if as_json:
            print_json(lag_rows(group))
        else:
            _print_group(group)
    if every and not told and not as_json:
        print(f"no groups on {printable(bootstrap)}")


def lag_rows(group: GroupLag) -> Iterator[dict[str, Any]]:
    """What programs are told of a group: a row for each partition that it has committed in or holds; one without a
    partition where nothing could be told."""
    about = {"group": group.group, "state": group.state or None, "type": group.type or None}
    if group.note:
        yield {**about, **dict.fromkeys(("topic", "partition", "offset", "end", "lag", "metadata")), "note": group.note}
    for each in group.partitions:
        member = each.member
        yield {
            **about,
            "topic": each.topic,
            "partition": each.partition,
            "offset": each.offset,
            "end": each.end,
            "lag": each.lag,
            "metadata": each.metadata if each.offset is not None else None,
            "note": each.note or None,
            "member_id": member and member.member_id,
            "client_id": member and member.client_id,
            "host": member and member.host,
        }


@app.command()
def delete(groups: Groups, bootstrap: Bootstrap = BOOTSTRAP, as_json: Json = False) -> None:
    """Delete groups that have no members, and every offset they committed.

    \b
    Example:
      tagwire groups delete loader
    """

    def show(deleted: Iterable[str]) -> None:
        print_deleted("group", deleted, as_json=as_json)

    with administer(bootstrap) as admin, groups_meant(admin, *groups), showing_what_succeeded(show):
        admin.delete_groups(groups)
    show(groups)


@offsets.command()
def reset(
    group: Group,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="WHERE", help="earliest, latest, an offset, or a time: 2013-07-04T06:00, -2h."),
    ] = None,
    by: Annotated[
        int | None, typer.Option("--by", metavar="N", help="Instead of --to: N records on, or back where N is below 0.")
    ] = None,
    topic: Topics = None,
    partition: Partitions = None,
    dry_run: DryRun = False,
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Move a group without members to other offsets, in the topics it has committed in or those that are named.

    An offset that a partition does not hold becomes its nearest end; so does a time after the last record.

    \b
    Examples:
      tagwire groups offsets reset loader --to earliest --topic flights
      tagwire groups offsets reset loader --to 2013-07-04T06:00 --dry-run
      tagwire groups offsets reset loader --by -100 --topic flights --partition 3
    """
    from tagwire.client import Admin, TopicPartition

    if (to is None) == (by is None):
        raise typer.BadParameter("give either --to or --by")
    where = None if to is None else parse_bound(to, "--to")
    with connect(bootstrap) as client, topics_meant(client, *topic or ()):
        admin = Admin(client)
        _check_empty(admin, group)
        before = admin.group_offsets(group)
        partitions = [
            TopicPartition(name, index)
            for name in topic or sorted({at.topic for at in before})
            for index in partition or client.topic(name).partitions
        ]
        if where is not None:
            wanted = resolve(client, where, partitions)
        else:
            moved = [at for at in partitions if at in before]
            absent = [name for name in topic or () if name not in {at.topic for at in moved}]
            unknown = [index for index in partition or () if index not in {at.partition for at in moved}]
            if absent or unknown:  # from nowhere there is no way on: what was named must not stay behind unsaid
                raise _nothing_committed(group, absent or topic, unknown or partition)
            wanted = {at: before[at].offset + (by or 0) for at in moved}
        if not wanted:
            raise _nothing_committed(group, topic, partition)
        after = {at: there.nearest(wanted[at]) for at, there in held(client, list(wanted)).items()}

        def show(moved: Iterable[TopicPartition]) -> None:
            _print_changes({at: (before[at].offset if at in before else None, after[at]) for at in moved}, as_json)

        with showing_what_succeeded(show):
            if not dry_run:
                admin.alter_group_offsets(group, {(at.topic, at.partition): offset for at, offset in after.items()})
    show(after)


@offsets.command("delete")
def delete_offsets(
    group: Group,
    topic: Topics = None,
    partition: Partitions = None,
    dry_run: DryRun = False,
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Forget what a group has committed, in the topics that are named or everywhere; none of its members may read them.

    \b
    Example:
      tagwire groups offsets delete loader --topic flights
    """
    with administer(bootstrap) as admin:
        before = {
            at: committed.offset
            for at, committed in admin.group_offsets(group).items()
            if (not topic or at.topic in topic) and (not partition or at.partition in partition)
        }
        topics, partitions = {at.topic for at in before}, {at.partition for at in before}
        absent = [name for name in topic or () if name not in topics]
        if not before or absent or not partitions.issuperset(partition or ()):
            unknown = [index for index in partition or () if index not in partitions]
            raise _nothing_committed(group, absent or topic, unknown or partition)

        def show(forgotten: Iterable[TopicPartition]) -> None:
            _print_changes({at: (before[at], None) for at in forgotten}, as_json)

        with showing_what_succeeded(show):
            if not dry_run:
                admin.delete_group_offsets(group, before)
    show(before)


def _nothing_committed(group: str, topics: list[str] | None, partitions: list[int] | None) -> ConfigError:
    """The error about a group that has no offset where it is named to have one."""
    of = [f"topic {' or '.join(topics)}"] if topics else []
    of += [f"partition {' or '.join(map(str, partitions))}"] if partitions else []
    where = f" of {', '.join(of)}" if of else "; name a --topic"
    return ConfigError(f"group {group!r} has committed nothing{where}")


def _list(states: list[str] | None, bootstrap: str, as_json: bool) -> None:
    states = [_state(state) for state in states or ()]

    def show(found: Iterable[GroupListing]) -> None:
        if as_json:
            print_json(
                {"group": each.group, "state": each.state, "type": each.type, "protocol_type": each.protocol_type}
                for each in found
            )
        else:
            rows = [(each.group, each.state or "-", each.type or "-") for each in found]
            print_rows(("group", "state", "type"), rows)

    def show_those_told(of_brokers: Mapping[int, list[GroupListing]]) -> None:
        told = {each.group: each for listed in of_brokers.values() for each in listed}
        if told:
            show(told[name] for name in sorted(told))

    with administer(bootstrap) as admin, showing_what_succeeded(show_those_told):
        found = admin.list_groups(states=states)
    if found or as_json:
        show(found)
    else:
        print(f"no groups on {printable(bootstrap)}")


def _state(text: str) -> str:
    """The state that is meant, small and capital letters alike. Raises typer.BadParameter where there is none."""
    known = {state.lower(): state for state in _STATES}
    if text.lower() not in known:
        said = did_you_mean(text, _STATES) or f": there are {', '.join(_STATES)}"
        raise typer.BadParameter(f"{text!r} is no state of a group{said}", param_hint="'--state'")
    return known[text.lower()]


def _print_group(group: GroupLag) -> None:
    names = ["topic", "partition", "offset", "end", "lag", "client_id", "host"]
    names += ["note"] if any(each.note for each in group.partitions) else []
    rows = list(lag_rows(group))
    if group.partitions:
        table = [["-" if row[name] is None else str(row[name]) for name in names] for row in rows]
        print_rows(["client" if name == "client_id" else name for name in names], table, numbers=(1, 2, 3, 4))
    said = f"{group.group} is {group.state} ({group.type}), {_members(group)}, "
    print(printable(said + (group.note or f"{group.lag:,} records behind.")))


def _members(group: GroupDescription | GroupLag) -> str:
    return "1 member" if len(group.members) == 1 else f"{len(group.members)} members"


def _check_empty(admin: Admin, group: str) -> None:
    """Raises KafkaError where members would go on from their own offsets. A group that does not exist has none."""
    from tagwire.errors import Error, KafkaError

    try:
        found = admin.describe_groups([group])[group]
    except KafkaError as error:
        if error.error is not Error.GROUP_ID_NOT_FOUND:
            raise
        return
    if found.members:
        raise KafkaError(Error.NON_EMPTY_GROUP, f"reset group {group!r}: it has {_members(found)}; stop them first")


def _print_changes(changes: dict[TopicPartition, tuple[int | None, int | None]], as_json: bool) -> None:
    rows = [
        {"topic": at.topic, "partition": at.partition, "before": before, "after": after}
        for at, (before, after) in changes.items()
    ]
    if as_json:
        print_json(rows)
    else:
        table = [["-" if cell is None else str(cell) for cell in row.values()] for row in rows]
        print_rows(("topic", "partition", "before", "after"), table, numbers=(1, 2, 3))
