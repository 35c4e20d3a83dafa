"""`tagwire topics`: list a cluster's topics, create and delete them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagwire.cli.options import BOOTSTRAP, Bootstrap, Json, addresses, pairs
from tagwire.cli.terminal import print_rows, printable, safe_json

if TYPE_CHECKING:
    from tagwire.client import Client

app = typer.Typer(name="topics", rich_markup_mode=None)

OwnBootstrap = Annotated[
    str | None,
    typer.Option("--bootstrap", metavar="HOST:PORT[,HOST:PORT]", callback=addresses, help="As before the command."),
]


@app.callback(invoke_without_command=True)
def topics(context: typer.Context, bootstrap: Bootstrap = BOOTSTRAP, as_json: Json = False) -> None:
    """List topics, or create and delete them.

    The offsets are the lowest and the highest of all partitions; --json tells each. Records are counted by offsets:
    compaction and transactions leave fewer to read.

    \b
    Examples:
      tagwire topics
      tagwire topics --bootstrap kafka-1:9092 --json | jq .topic
      tagwire topics create flights --partitions 4 --config retention.ms=-1
      tagwire topics delete flights
    """
    context.obj = bootstrap
    if context.invoked_subcommand is not None:
        return
    from tagwire.client import Client

    with Client(bootstrap) as client:
        found = _describe(client)
    if as_json:
        for topic in found:
            print(safe_json(json.dumps(topic, ensure_ascii=False)))
    elif found:
        print_rows(("topic", "partitions", "offsets", "records"), [_row(topic) for topic in found], numbers=(1, 3))
    else:
        print(f"no topics on {printable(bootstrap)}")


@app.command()
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False)],
    partitions: Annotated[int, typer.Option("--partitions", min=1, metavar="N", help="How many.")] = 1,
    replication: Annotated[int, typer.Option("--replication-factor", min=1, metavar="N", help="Copies of each.")] = 1,
    config: Annotated[
        list[str] | None, typer.Option("--config", metavar="KEY=VALUE", help="A topic config; may be repeated.")
    ] = None,
    bootstrap: OwnBootstrap = None,
) -> None:
    """Create a topic.

    \b
    Example:
      tagwire topics create flights --partitions 4 --config retention.ms=-1
    """
    from tagwire.client import Admin, NewTopic

    configs = dict(pairs(config or [], "--config"))
    with Admin(bootstrap or context.obj) as admin:
        admin.create_topics(
            [NewTopic(name, num_partitions=partitions, replication_factor=replication, configs=configs)]
        )
    count = "1 partition" if partitions == 1 else f"{partitions} partitions"
    print(f"created {printable(name)} with {count}")


@app.command()
def delete(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False)],
    bootstrap: OwnBootstrap = None,
) -> None:
    """Delete a topic and every record in it.

    \b
    Example:
      tagwire topics delete flights
    """
    from tagwire.client import Admin

    with Admin(bootstrap or context.obj) as admin:
        admin.delete_topics([name])
    print(f"deleted {printable(name)}")


def _describe(client: Client) -> list[dict[str, Any]]:
    """Every topic by name, with the offsets of each partition; null where a partition cannot be asked now."""
    from tagwire.client import EARLIEST, LATEST, TopicPartition

    found = sorted(client.metadata().topics.values(), key=lambda topic: topic.name)
    usable = [
        TopicPartition(topic.name, partition.index)
        for topic in found
        for partition in topic.partitions.values()
        if not topic.error and partition.leader >= 0
    ]
    starts = client.list_offsets(dict.fromkeys(usable, EARLIEST)) if usable else {}
    ends = client.list_offsets(dict.fromkeys(usable, LATEST)) if usable else {}
    return [
        {
            "topic": topic.name,
            "internal": topic.is_internal,
            "error": topic.error.name if topic.error else None,
            "records": sum(ends[at] - starts[at] for at in usable if at.topic == topic.name),
            "partitions": [
                {
                    "partition": index,
                    "leader": partition.leader if partition.leader >= 0 else None,
                    "start": starts.get(TopicPartition(topic.name, index)),
                    "end": ends.get(TopicPartition(topic.name, index)),
                }
                for index, partition in sorted(topic.partitions.items())
            ],
        }
        for topic in found
    ]


def _row(topic: dict[str, Any]) -> tuple[str, ...]:
    partitions = topic["partitions"]
    asked = [partition for partition in partitions if partition["end"] is not None]
    filled = [partition for partition in asked if partition["start"] < partition["end"]]
    offsets = "-"
    if filled:
        offsets = f"{min(each['start'] for each in filled)}-{max(each['end'] for each in filled) - 1}"
    if len(asked) < len(partitions):
        offsets += f" ({len(partitions) - len(asked)} without a leader)"
    return topic["topic"], str(len(partitions)), offsets, f"{topic['records']:,}"
