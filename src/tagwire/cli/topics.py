"""`tagwire topics`: list, describe, create, alter, trim and delete topics."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from tagwire.cli import completing
from tagwire.cli.bounds import held, parse_bound, resolve
from tagwire.cli.connecting import BOOTSTRAP, administer, connect
from tagwire.cli.options import Bootstrap, DryRun, Json, check_alone, pairs
from tagwire.cli.suggestions import configs_meant, topics_meant
from tagwire.cli.terminal import print_deleted, print_json, print_rows, printable, showing_what_succeeded
from tagwire.cli.topic_reports import configs_of, detail_rows, list_row, report, sizes_of
from tagwire.errors import Error, KafkaError, TagwireError

if TYPE_CHECKING:
    from tagwire.client import TopicPartition

app = typer.Typer(name="topics", rich_markup_mode=None)

Names = Annotated[list[str], typer.Argument(metavar="NAME...", show_default=False, autocompletion=completing.topics)]
Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False, autocompletion=completing.topics)]


@app.callback(invoke_without_command=True)
def topics(context: typer.Context, bootstrap: Bootstrap = BOOTSTRAP, as_json: Json = False) -> None:
    """List topics; describe, create, alter, trim or delete them.

    The offsets are the lowest and the highest of all partitions; --json tells each. Records are counted by offsets:
    compaction and transactions leave fewer to read.

    \b
    Examples:
      tagwire topics
      tagwire topics --bootstrap kafka-1:9092 --json | jq .topic
      tagwire topics create flights --partitions 4 --config retention.ms=-1
      tagwire topics delete flights
    """
    check_alone(context, as_json)
    if context.invoked_subcommand is None:
        _list(bootstrap, as_json)


@app.command("list")
def list_(bootstrap: Bootstrap = BOOTSTRAP, as_json: Json = False) -> None:
    """List topics, as `tagwire topics` alone does.

    \b
    Example:
      tagwire topics list --json | jq 'select(.records == 0) | .topic'
    """
    _list(bootstrap, as_json)


@app.command()
def describe(names: Names, bootstrap: Bootstrap = BOOTSTRAP, as_json: Json = False) -> None:
    """Show a topic's partitions, where they are, how much they hold, and its configs that are no defaults.

    \b
    Examples:
      tagwire topics describe flights
      tagwire topics describe flights --json | jq '.partitions[] | select(.leader == null)'
    """
    from tagwire.client import Admin

    with connect(bootstrap) as client, topics_meant(client, *names):
        for name in names:
            client.topic(name)  # a missing one is an error, not an empty table
        found = report(client, names)
        admin = Admin(client)
        sizes, configs = sizes_of(admin, found), configs_of(admin, names)
    for topic in found:
        topic["configs"] = configs.get(topic["topic"])
        for partition in topic["partitions"]:
            partition["bytes"] = sizes.get((topic["topic"], partition["partition"]))
    if as_json:
        print_json(found)
        return
    titles = ("topic", "partition", "leader", "replicas", "in sync", "start", "end", "bytes")
    print_rows(titles, [row for topic in found for row in detail_rows(topic)], numbers=(1, 2, 5, 6, 7))
    for topic in found:
        for config, value in (topic["configs"] or {}).items():
            print(printable(f"{topic['topic']}: {config}={value}"))


@app.command()
def create(
    names: Names,
    partitions: Annotated[int, typer.Option("--partitions", min=1, metavar="N", help="How many.")] = 1,
    replication: Annotated[int, typer.Option("--replication-factor", min=1, metavar="N", help="Copies of each.")] = 1,
    config: Annotated[
        list[str] | None, typer.Option("--config", metavar="KEY=VALUE", help="A topic config; may be repeated.")
    ] = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Leave a topic that exists as it is.")] = False,
    dry_run: DryRun = False,
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Create topics.

    \b
    Examples:
      tagwire topics create flights --partitions 4 --config retention.ms=-1
      tagwire topics create in out --replication-factor 3 --if-not-exists
    """
    from tagwire.client import NewTopic

    configs = dict(pairs(config or [], "--config"))
    with administer(bootstrap) as admin:
        known = {topic.name for topic in admin.list_topics()} if if_not_exists else set()
        wanted = [name for name in names if name not in known]
        new = [NewTopic(name, partitions, replication, configs) for name in wanted]

        def show(created: Container[str]) -> None:
            _print_created([name for name in names if name in created], wanted, partitions, dry_run, as_json)

        with configs_meant(admin, None, *configs), showing_what_succeeded(show):
            if not if_not_exists:
                admin.create_topics(new, validate_only=dry_run)
            # Somebody may have created one since the list, or the broker that told it may not know of it yet.
            for each in new if if_not_exists else ():
                try:
                    admin.create_topics([each], validate_only=dry_run)
                except TagwireError as error:
                    if not isinstance(error, KafkaError) or error.error is not Error.TOPIC_ALREADY_EXISTS:
                        show([*known, *wanted[: wanted.index(each.name)]])
                        raise
                    wanted.remove(each.name)
    show(names)


@app.command()
def alter(
    name: Name,
    partitions: Annotated[
        int, typer.Option("--partitions", min=1, metavar="N", help="How many it is to have in all.", show_default=False)
    ],
    dry_run: DryRun = False,
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Give a topic more partitions; for its configs see `tagwire configs alter`.

    Records stay where they are: keys go to other partitions from now on.

    \b
    Example:
      tagwire topics alter flights --partitions 8
    """
    from tagwire.client import Admin

    with connect(bootstrap) as client, topics_meant(client, name):
        Admin(client).create_partitions({name: partitions}, validate_only=dry_run)
    if as_json:
        print_json([{"topic": name, "partitions": partitions, "altered": not dry_run}])
    else:
        print(f"{printable(name)} {'could have' if dry_run else 'has'} {_count(partitions)} now")


@app.command()
def trim(
    name: Name,
    before: Annotated[
        str,
        typer.Option(
            "--before",
            metavar="WHERE",
            help="latest for all that is there, an offset, or a time: 2013-07-04T06:00, -7d.",
            show_default=False,
        ),
    ],
    partition: Annotated[
        list[int] | None, typer.Option("--partition", min=0, metavar="N", help="Only this one; may be repeated.")
    ] = None,
    dry_run: DryRun = False,
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Delete a topic's records before an offset or a time. They are gone for everybody.

    \b
    Examples:
      tagwire topics trim flights --before 2013-07-04 --dry-run
      tagwire topics trim flights --before 88121 --partition 3
    """
    from tagwire.client import Admin, TopicPartition

    where = parse_bound(before, "--before")
    with connect(bootstrap) as client, topics_meant(client, name):
        known = client.topic(name).partitions
        partitions = [TopicPartition(name, index) for index in partition or known]
        holds = held(client, partitions)
        wanted = resolve(client, where, partitions)
        end = max(there.end for there in holds.values())
        if where.offset is not None and where.offset > end:
            raise KafkaError(Error.OFFSET_OUT_OF_RANGE, f"--before {where.offset}: what is trimmed ends at {end}")
        after = {at: holds[at].nearest(offset) for at, offset in wanted.items()}

        def show(trimmed: Iterable[TopicPartition]) -> None:
            _print_trimmed({at: (holds[at].start, after[at]) for at in trimmed}, as_json)

        with showing_what_succeeded(show):
            if not dry_run:
                Admin(client).delete_records({(at.topic, at.partition): offset for at, offset in after.items()})
    show(after)


@app.command()
def delete(names: Names, bootstrap: Bootstrap = BOOTSTRAP, as_json: Json = False) -> None:
    """Delete topics and every record in them.

    \b
    Example:
      tagwire topics delete flights
    """
    from tagwire.client import Admin

    def show(deleted: Iterable[str]) -> None:
        print_deleted("topic", deleted, as_json=as_json)

    with connect(bootstrap) as client, topics_meant(client, *names), showing_what_succeeded(show):
        Admin(client).delete_topics(names)
    show(names)


def _list(bootstrap: str, as_json: bool) -> None:
    with connect(bootstrap) as client:
        found = report(client)
    if as_json:
        print_json(found)
    elif found:
        print_rows(("topic", "partitions", "offsets", "records"), [list_row(topic) for topic in found], numbers=(1, 3))
    else:
        print(f"no topics on {printable(bootstrap)}")


def _print_trimmed(starts: dict[TopicPartition, tuple[int, int]], as_json: bool) -> None:
    """{partition: where it began, and where it begins now}."""
    rows = [
        {
            "topic": at.topic,
            "partition": at.partition,
            "before": before,
            "after": after,
            "records": after - before,
        }
        for at, (before, after) in starts.items()
    ]
    if as_json:
        print_json(rows)
    else:
        table = [[str(cell) for cell in row.values()] for row in rows]
        print_rows(("topic", "partition", "start before", "after", "records"), table, numbers=(1, 2, 3, 4))


def _print_created(names: list[str], wanted: list[str], partitions: int, dry_run: bool, as_json: bool) -> None:
    """What became of topics; those that are not wanted exist."""
    if as_json:
        print_json(
            {"topic": name, "partitions": partitions, "created": name in wanted and not dry_run} for name in names
        )
        return
    for name in names:
        if name in wanted:
            print(f"{'could create' if dry_run else 'created'} {printable(name)} with {_count(partitions)}")
        else:
            print(f"{printable(name)} exists")


def _count(partitions: int) -> str:
    return "1 partition" if partitions == 1 else f"{partitions} partitions"
