"""What `tagwire topics` tells of topics, gathered from several responses."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tagwire.cli.terminal import printable
from tagwire.errors import Error, KafkaError, PartlyRefusedError, UnsupportedVersionError

if TYPE_CHECKING:
    from tagwire.client import Admin, Client, TopicMetadata, TopicPartition


def report(client: Client, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Topics by name, None for all, with the offsets of each partition; null where a partition has no leader now, or
    that one does not tell them.

    Raises KafkaError for a named one that does not exist; of all, those that are deleted meanwhile are left out.
    """
    while True:
        found = sorted(client.metadata(names).topics.values(), key=lambda topic: topic.name)
        try:
            return _with_offsets(client, found)
        except KafkaError as error:
            is_gone = names is None and error.error is Error.UNKNOWN_TOPIC_OR_PARTITION
            if not is_gone or {topic.name for topic in found} <= client.metadata().topics.keys():
                raise


def _with_offsets(client: Client, found: Sequence[TopicMetadata]) -> list[dict[str, Any]]:
    from tagwire.client import EARLIEST, Admin, TopicPartition

    usable = [
        TopicPartition(topic.name, partition.index)
        for topic in found
        for partition in topic.partitions.values()
        if not topic.error and partition.leader >= 0
    ]
    # One leader that is away keeps nothing else from being told.
    told = Admin(client).partition_ends(usable) if usable else {}
    ends = {at: end.offset for at, end in told.items() if end.offset is not None}
    silent = sorted(told.keys() - ends.keys())
    if silent:
        there = client.metadata().topics
        for at in silent:
            if at.topic not in there:
                raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"topic {at.topic!r}")
            print(f"{at}: {printable(told[at].note)}", file=sys.stderr)
    starts = client.list_offsets(dict.fromkeys(ends, EARLIEST)) if ends else {}
    return [_told(topic, starts, ends) for topic in found]


def _told(topic: TopicMetadata, starts: dict[TopicPartition, int], ends: dict[TopicPartition, int]) -> dict[str, Any]:
    from tagwire.client import TopicPartition

    partitions_by_index = {index: TopicPartition(topic.name, index) for index in sorted(topic.partitions)}
    return {
        "topic": topic.name,
        "internal": topic.is_internal,
        "error": topic.error.name if topic.error else None,
        "records": sum(ends[at] - starts[at] for at in partitions_by_index.values() if at in ends),
        "partitions": [
            {
                "partition": index,
                "leader": partition.leader if partition.leader >= 0 else None,
                "replicas": partition.replicas,
                "in_sync": partition.in_sync,
                "start": starts.get(at),
                "end": ends.get(at),
            }
            for index, at in partitions_by_index.items()
            for partition in [topic.partitions[index]]
        ],
    }


def list_row(topic: dict[str, Any]) -> tuple[str, ...]:
    """A topic in one line: name, partitions, offsets, records."""
    partitions = topic["partitions"]
    known = [partition for partition in partitions if partition["end"] is not None]
    filled = [partition for partition in known if partition["start"] < partition["end"]]
    offsets = "-"
    if filled:
        offsets = f"{min(each['start'] for each in filled)}-{max(each['end'] for each in filled) - 1}"
    absent = sum(partition["leader"] is None for partition in partitions)
    silent = len(partitions) - len(known) - absent
    notes = [f"{absent} without a leader"] if absent else []
    notes += [f"{silent} not told"] if silent else []
    if notes:
        offsets += f" ({', '.join(notes)})"
    return topic["topic"], str(len(partitions)), offsets, f"{topic['records']:,}"


def detail_rows(topic: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """A line for each partition."""
    for each in topic["partitions"]:
        nodes = [",".join(map(str, each[which])) for which in ("replicas", "in_sync")]
        cells = each["partition"], each["leader"], *nodes, each["start"], each["end"], each["bytes"]
        yield topic["topic"], *("-" if cell is None else str(cell) for cell in cells)


def sizes_of(admin: Admin, topics: list[dict[str, Any]]) -> dict[tuple[str, int], int]:
    """Bytes of each partition on its leader's disk; nothing where brokers do not tell, or not us: to hear of disks is a
    right of its own."""
    leaders = {
        (topic["topic"], each["partition"]): each["leader"]
        for topic in topics
        for each in topic["partitions"]
        if each["leader"] is not None
    }
    try:
        found = admin.describe_log_dirs(None, leaders)  # of all: one that is away keeps nothing else from being told
    except UnsupportedVersionError:
        return {}
    except KafkaError as error:
        if error.error is not Error.CLUSTER_AUTHORIZATION_FAILED:
            raise
        return {}
    return {
        at: replica.size
        for node, directories in found.items()
        for directory in directories
        for at, replica in directory.replicas.items()
        if leaders.get(at) == node and not replica.is_future
    }


def configs_of(admin: Admin, names: Sequence[str]) -> dict[str, dict[str, str | None]]:
    """What each topic was set to itself, without those of which a broker does not tell, or not us."""
    try:
        found = admin.describe_configs([("topic", name) for name in names])
    except UnsupportedVersionError:
        return {}
    except KafkaError as error:
        refused = error.refused.values() if isinstance(error, PartlyRefusedError) else [error]
        if any(one.error is not Error.TOPIC_AUTHORIZATION_FAILED for one in refused):
            raise
        found = error.succeeded if isinstance(error, PartlyRefusedError) else {}
    return {
        at.name: {entry.name: entry.value for entry in entries.values() if entry.source == "topic"}
        for at, entries in found.items()
    }
