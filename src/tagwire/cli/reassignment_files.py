"""The JSON files of kafka-reassign-partitions: read, written, and what stands in one that spreads topics over brokers.

Source: Kafka's ReassignPartitionsCommand.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from tagwire.errors import ConfigError

if TYPE_CHECKING:
    from tagwire.client import TopicPartition

_VERSION: Final = 1
_MOST: Final = 64 * 1024 * 1024  # bytes; a million partitions take as much
_ANY: Final = "any"


def read_plan(path: Path) -> dict[TopicPartition, list[int]]:
    """The replicas that a file gives to partitions.

    Raises ConfigError naming the file: it is no such JSON, names a partition twice, or a log directory.
    """
    from tagwire.client import TopicPartition

    if path.stat().st_size > _MOST:
        raise ConfigError(f"{path}: has more than {_MOST} bytes")
    try:
        read = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: is no JSON: {error}") from None
    is_plan = isinstance(read, dict) and read.get("version", _VERSION) == _VERSION
    if not is_plan or not isinstance(read.get("partitions"), list):
        raise ConfigError(f'{path}: is not {{"version": 1, "partitions": [...]}}')
    found: dict[TopicPartition, list[int]] = {}
    for number, each in enumerate(read["partitions"], 1):
        where = f"{path}: partition {number} of the list"
        if not isinstance(each, dict) or not isinstance(each.get("topic"), str) or not _is_id(each.get("partition")):
            raise ConfigError(f"{where}: needs a topic and a partition")
        replicas = each.get("replicas")
        if not isinstance(replicas, list) or not replicas or not all(map(_is_id, replicas)):
            raise ConfigError(f"{where}: needs replicas, a list of node ids")
        directories = each.get("log_dirs")
        if directories is not None and not isinstance(directories, list):
            raise ConfigError(f"{where}: log_dirs is no list")
        if any(directory != _ANY for directory in directories or ()):
            raise ConfigError(f'{where}: names a log directory; only "any" is taken')
        at = TopicPartition(each["topic"], each["partition"])
        if at in found or len(set(replicas)) < len(replicas):
            raise ConfigError(f"{where}: {at} is named twice, or a replica of it")
        found[at] = replicas
    if not found:
        raise ConfigError(f"{path}: names no partition")
    return found


def file_text(replicas: Mapping[TopicPartition, Sequence[int]]) -> str:
    """Such a file, one partition a line."""
    rows = [
        json.dumps({"topic": at.topic, "partition": at.partition, "replicas": list(own)})
        for at, own in replicas.items()
    ]
    return '{"version": 1, "partitions": [\n' + ",\n".join(rows) + "\n]}"


def planned(
    current: Mapping[TopicPartition, Sequence[int]],
    brokers: Sequence[int],
    racks: Mapping[int, str | None],
    replication: int | None = None,
) -> dict[TopicPartition, list[int]]:
    """Replicas that are spread over brokers evenly, over as many racks as there are; those that can stay do.

    Args:
        replication: how many of each partition; None takes as many as there are.

    Raises typer.BadParameter: there are fewer brokers than replicas.
    """
    counts = {at: replication or len(own) for at, own in current.items()}
    if max(counts.values(), default=0) > len(brokers):
        said = f"{len(brokers)} brokers cannot have {max(counts.values())} replicas of a partition"
        raise typer.BadParameter(said, param_hint="'--brokers'")
    rack_of = {broker: broker if racks[broker] is None else racks[broker] for broker in brokers}
    found = {at: [broker for broker in own if broker in rack_of][: counts[at]] for at, own in current.items()}
    load = Counter(broker for kept in found.values() for broker in kept)
    for at, kept in found.items():
        while len(kept) < counts[at]:
            used = {rack_of[broker] for broker in kept}
            others = (broker for broker in brokers if broker not in kept)
            chosen = min(others, key=lambda broker: (rack_of[broker] in used, load[broker]))
            kept.append(chosen)
            load[chosen] += 1
    while sum(_moved(kept, load, rack_of) for kept in found.values()):
        pass
    leads = Counter(kept[0] for kept in found.values() if kept)
    while sum(_led_by_another(kept, leads) for kept in found.values()):
        pass
    return found


def _moved(kept: list[int], load: Counter[int], rack_of: Mapping[int, object]) -> bool:
    """Moves one replica of a partition to where there is a rack more for it, or less load; whether there is one."""
    racks = len({rack_of[broker] for broker in kept})
    best: tuple[int, int, int, int] | None = None
    for index, broker in enumerate(kept):
        others = {rack_of[other] for other in kept if other != broker}
        for target in rack_of:
            if target not in kept:
                more_racks, less_load = len({*others, rack_of[target]}) - racks, load[broker] - load[target]
                is_better = more_racks > 0 or (more_racks == 0 and less_load > 1)
                if is_better and (best is None or (more_racks, less_load) > best[:2]):
                    best = more_racks, less_load, index, target
    if best is None:
        return False
    _, _, index, target = best
    load[kept[index]] -= 1
    load[target] += 1
    kept[index] = target
    return True


def _led_by_another(kept: list[int], leads: Counter[int]) -> bool:
    """Puts the replica first that leads least, where that makes a difference; whether it did."""
    least = min(kept, key=lambda broker: leads[broker], default=None)
    if least is None or leads[kept[0]] - leads[least] < 2:
        return False
    leads[kept[0]] -= 1
    leads[least] += 1
    kept.remove(least)
    kept.insert(0, least)
    return True


def _is_id(given: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and 0 <= given < 2**31
