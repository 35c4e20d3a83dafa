"""`tagwire reassign`: moves replicas to other brokers, by the JSON files of kafka-reassign-partitions."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tagwire.cli import completing
from tagwire.cli.connecting import BOOTSTRAP, administer, connect
from tagwire.cli.options import Bootstrap, DryRun, Json, check_alone
from tagwire.cli.reassignment_files import file_text, planned, read_plan
from tagwire.cli.suggestions import topics_meant
from tagwire.cli.terminal import print_json, print_rows, printable, progress, showing_what_succeeded

if TYPE_CHECKING:
    from tagwire.client import Admin, Client, PartitionReassignment, TopicPartition

app = typer.Typer(name="reassign", rich_markup_mode=None)

_PAUSE: Final = 0.5  # seconds between two looks at what is under way
_MOVING: Final = "moving"
_DONE: Final = "done"
_OTHERWISE: Final = "elsewhere"

Plan = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        exists=True,
        dir_okay=False,
        show_default=False,
        help="As `generate` writes one: topics, replicas.",
    ),
]


@app.callback(invoke_without_command=True)
def reassign(context: typer.Context, bootstrap: Bootstrap = BOOTSTRAP, as_json: Json = False) -> None:
    """List the reassignments that are under way; plan, begin, watch and cancel some.

    \b
    Examples:
      tagwire reassign generate flights --brokers 1,2,3 > plan.json
      tagwire reassign execute plan.json --wait
      tagwire reassign verify plan.json
    """
    check_alone(context, as_json)
    if context.invoked_subcommand is None:
        _list(bootstrap, as_json)


@app.command("list")
def list_(bootstrap: Bootstrap = BOOTSTRAP, as_json: Json = False) -> None:
    """List the reassignments that are under way, as `tagwire reassign` alone does.

    \b
    Example:
      tagwire reassign list --json | jq .topic
    """
    _list(bootstrap, as_json)


@app.command()
def generate(
    topics: Annotated[
        list[str], typer.Argument(metavar="TOPIC...", show_default=False, autocompletion=completing.topics)
    ],
    brokers: Annotated[
        str, typer.Option("--brokers", metavar="ID,...", show_default=False, help="Which are to have the replicas.")
    ],
    replication: Annotated[
        int | None,
        typer.Option("--replication-factor", min=1, metavar="N", help="Copies of each; without it as many as now."),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP,
) -> None:
    """Print a plan that spreads topics over brokers, as JSON for `execute`. Nothing is moved.

    Brokers get as many replicas each, and lead as many; replicas that can stay do, and racks are not used twice where
    there are enough.

    \b
    Example:
      tagwire reassign generate flights delays --brokers 1,2,3 > plan.json
    """
    wanted = _numbers(brokers)
    with connect(bootstrap) as client, topics_meant(client, *topics):
        current = _current(client, topics)
        racks = _racks(client, wanted)
    print(file_text(planned(current, wanted, racks, replication)))


@app.command()
def execute(
    plan: Plan,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save-current", metavar="FILE", dir_okay=False, help="Write how it was, which `execute` takes to go back."
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Until all replicas are there.")] = False,
    dry_run: DryRun = False,
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Begin to move what a plan says; what is in its place already, or on its way there, is left alone.

    \b
    Examples:
      tagwire reassign execute plan.json --dry-run
      tagwire reassign execute plan.json --save-current before.json --wait
    """
    from tagwire.client import Admin

    wanted = read_plan(plan)
    names = sorted({at.topic for at in wanted})
    with connect(bootstrap) as client, topics_meant(client, *names):
        admin = Admin(client)
        current = _current(client, names)
        before = {at: current.get(at, []) for at in wanted}
        moving = admin.list_partition_reassignments(list(wanted))
        changed = {at: replicas for at, replicas in wanted.items() if _to_be(before[at], moving.get(at)) != replicas}
        if save is not None and not dry_run:
            save.write_text(file_text({at: replicas for at, replicas in before.items() if replicas}), encoding="utf-8")
        with showing_what_succeeded(lambda begun: _print_moves(begun, before, wanted, dry_run, as_json)):
            if changed and not dry_run:
                admin.alter_partition_reassignments(changed)
        _print_moves(changed, before, wanted, dry_run, as_json)
        if not changed and not as_json:
            print("nothing to move: all replicas are where the plan has them")
        if wait and not dry_run:
            sys.stdout.flush()  # what has begun goes on, however the waiting ends
            _await(admin, list(wanted))


@app.command()
def verify(plan: Plan, bootstrap: Bootstrap = BOOTSTRAP, as_json: Json = False) -> None:
    """Tell how far a plan has come. Exit code 1 where something is not there yet, or has been moved elsewhere.

    \b
    Example:
      tagwire reassign verify plan.json --json | jq 'select(.state != "done")'
    """
    from tagwire.client import Admin

    wanted = read_plan(plan)
    names = sorted({at.topic for at in wanted})
    with connect(bootstrap) as client, topics_meant(client, *names):
        moving = Admin(client).list_partition_reassignments(list(wanted))
        current = _current(client, names)
    states = {at: _state(at, replicas, moving, current) for at, replicas in wanted.items()}
    if as_json:
        print_json(
            {"topic": at.topic, "partition": at.partition, "replicas": current.get(at, []), "state": state}
            for at, state in states.items()
        )
    else:
        table = [(at.topic, str(at.partition), _ids(current.get(at, [])), state) for at, state in states.items()]
        print_rows(("topic", "partition", "replicas", "state"), table, numbers=(1,))
    raise typer.Exit(0 if set(states.values()) <= {_DONE} else 1)


@app.command()
def cancel(plan: Plan, dry_run: DryRun = False, bootstrap: Bootstrap = BOOTSTRAP, as_json: Json = False) -> None:
    """Cancel what is under way of a plan: replicas stay, or go back to, where they were.

    \b
    Example:
      tagwire reassign cancel plan.json
    """
    wanted = read_plan(plan)

    def show(cancelled: Iterable[TopicPartition]) -> None:
        if as_json:
            print_json({"topic": at.topic, "partition": at.partition, "cancelled": not dry_run} for at in cancelled)
            return
        for at in cancelled:
            print(printable(f"{'could cancel' if dry_run else 'cancelled'} the move of {at}"))

    with administer(bootstrap) as admin, showing_what_succeeded(show):
        moving = admin.list_partition_reassignments(list(wanted))
        if moving and not dry_run:
            admin.alter_partition_reassignments({(at.topic, at.partition): None for at in moving})
    show(moving)
    if not moving and not as_json:
        print("nothing of the plan is under way")


def _print_moves(
    begun: Iterable[TopicPartition],
    before: Mapping[TopicPartition, list[int]],
    after: Mapping[TopicPartition, list[int]],
    dry_run: bool,
    as_json: bool,
) -> None:
    rows = [{"topic": at.topic, "partition": at.partition, "before": before[at], "after": after[at]} for at in begun]
    if as_json:
        print_json({**row, "begun": not dry_run} for row in rows)
    elif rows:
        table = [[str(row["topic"]), str(row["partition"]), _ids(row["before"]), _ids(row["after"])] for row in rows]
        print_rows(("topic", "partition", "before", "after"), table, numbers=(1,))


def _await(admin: Admin, partitions: list[TopicPartition]) -> None:
    with progress("moving", len(partitions), unit="partitions") as advance:
        left = len(partitions)
        while left:
            moving = len(admin.list_partition_reassignments(partitions))
            advance(left - moving)
            left = moving
            if left:
                time.sleep(_PAUSE)


def _to_be(replicas: list[int], moving: PartitionReassignment | None) -> list[int]:
    """What a partition has once nothing is under way; until then it has what comes and what goes as well."""
    return replicas if moving is None else [each for each in moving.replicas if each not in moving.removing_replicas]


def _state(
    at: TopicPartition,
    replicas: list[int],
    moving: dict[TopicPartition, PartitionReassignment],
    current: dict[TopicPartition, list[int]],
) -> str:
    if at in moving:
        return _MOVING
    return _DONE if current.get(at) == replicas else _OTHERWISE


def _current(client: Client, topics: list[str]) -> dict[TopicPartition, list[int]]:
    """The replicas of all partitions of topics. Raises KafkaError for one that does not exist."""
    from tagwire.client import TopicPartition

    for name in topics:
        client.topic(name)
    known = client.metadata(topics).topics
    return {
        TopicPartition(name, index): list(partition.replicas)
        for name in topics
        for index, partition in sorted(known[name].partitions.items())
    }


def _racks(client: Client, brokers: list[int]) -> dict[int, str | None]:
    """The rack of each broker. Raises typer.BadParameter for one that there is not."""
    from tagwire.client import Admin

    known = Admin(client).describe_cluster().brokers
    for broker in brokers:
        if broker not in known:
            said = f"there is no broker {broker}; there are {', '.join(map(str, sorted(known)))}"
            raise typer.BadParameter(said, param_hint="'--brokers'")
    return {broker: known[broker].rack for broker in brokers}


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    are_ids = all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts)
    found = [int(part) for part in parts] if are_ids else []
    if not found or len(set(found)) < len(found):
        raise typer.BadParameter(f"{text!r} is not ID,ID,..., each once", param_hint="'--brokers'")
    return found


def _list(bootstrap: str, as_json: bool) -> None:
    with administer(bootstrap) as admin:
        found = admin.list_partition_reassignments()
    if as_json:
        print_json(
            {
                "topic": at.topic,
                "partition": at.partition,
                "replicas": each.replicas,
                "adding": each.adding_replicas,
                "removing": each.removing_replicas,
            }
            for at, each in found.items()
        )
    elif found:
        rows = [
            (at.topic, str(at.partition), *map(_ids, (each.replicas, each.adding_replicas, each.removing_replicas)))
            for at, each in found.items()
        ]
        print_rows(("topic", "partition", "replicas", "adding", "removing"), rows, numbers=(1,))
    else:
        print(f"nothing is being moved on {printable(bootstrap)}")


def _ids(replicas: object) -> str:
    return ",".join(map(str, replicas)) if isinstance(replicas, (list, tuple)) and replicas else "-"
