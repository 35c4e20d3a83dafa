"""MirrorMaker 2 between two brokers of ours: topics, their settings, headers, and where groups have come to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from kafka_jars import kafka

from tagwire.client import Admin, NewTopic, Producer, Reader, TopicPartition

from .broker_process import BrokerProcess
from .conftest import Count, not_run_without
from .java_process import JavaProcess, fetch, properties

RELEASE: Final = "4.3.1"
SECONDS: Final = 90
MODULES: Final = ("connect-runtime", "connect-mirror")
PROGRAM: Final = "org.apache.kafka.connect.mirror.MirrorMaker"
TOPIC: Final = "orders"
GROUP: Final = "shop"
RECORDS: Final = 500
SETTINGS: Final = {
    "clusters": "west,east",
    "west->east.enabled": "true",
    "west->east.topics": TOPIC,
    "east->west.enabled": "false",
    "replication.factor": 1,
    "checkpoints.topic.replication.factor": 1,
    "heartbeats.topic.replication.factor": 1,
    "offset-syncs.topic.replication.factor": 1,
    "config.storage.replication.factor": 1,
    "offset.storage.replication.factor": 1,
    "status.storage.replication.factor": 1,
    "east.exactly.once.source.support": "enabled",
    "dedicated.mode.enable.internal.rest": "true",
    "listeners": "http://127.0.0.1:0",
    "plugin.discovery": "service_load",
    "sync.group.offsets.enabled": "true",
    "refresh.topics.interval.seconds": 1,
    "refresh.groups.interval.seconds": 1,
    "sync.topic.configs.interval.seconds": 1,
    "sync.group.offsets.interval.seconds": 1,
    "emit.checkpoints.interval.seconds": 1,
    "emit.heartbeats.interval.seconds": 1,
    "offset.flush.interval.ms": 500,
    "offset.lag.max": 0,
}
"""Of both clusters, and of a mirror that looks every second what there is to do."""


@pytest.fixture
def jars() -> list[Path]:
    with not_run_without():
        return fetch(f"mirror-{RELEASE}", [kafka(module, RELEASE) for module in MODULES])


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[dict[str, BrokerProcess]]:
    """West and east."""
    found = {}
    with ExitStack() as running:
        for name in ("west", "east"):
            folder = tmp_path / name
            folder.mkdir()
            found[name] = BrokerProcess(folder)
            running.enter_context(found[name].running())
        yield found
    assert [broker.unexpected() for broker in found.values()] == [[], []]


def write(bootstrap: str, numbers: range) -> None:
    with Producer(bootstrap, compression="zstd") as producer:
        for number in numbers:
            key, value, headers = b"%d" % (number % 7), b"order %d" % number, [("n", b"%d" % number), ("empty", b"")]
            producer.send(TOPIC, value, key=key, headers=headers, partition=number % 2)


def read(bootstrap: str, topic: str) -> list[Any]:
    """Key, value, headers and time of every committed record, by partition."""
    at = {TopicPartition(topic, partition): 0 for partition in range(2)}
    reader = Reader(bootstrap, at, stop_at_end=True, isolation="read_committed")
    rows = [row for batch in reader for row in batch.to_pylist()]
    rows.sort(key=lambda row: (row["partition"], row["offset"]))
    return [(row["partition"], row["key"], row["value"], row["headers"], row["timestamp"]) for row in rows]


def test_mirror_maker_copies_topics_settings_and_where_groups_have_come_to(
    jars: list[Path], brokers: dict[str, BrokerProcess], tmp_path: Path, count: Count
) -> None:
    west, east = (broker.addresses["PLAIN"] for broker in brokers.values())
    settings = {"retention.ms": "123456789", "cleanup.policy": "compact,delete"}
    with Admin(west) as admin:
        admin.create_topics([NewTopic(TOPIC, num_partitions=2, configs=settings)])
    write(west, range(RECORDS))
    own = {"west.bootstrap.servers": west, "east.bootstrap.servers": east, **SETTINGS}
    path = properties(tmp_path / "mirror.properties", own)
    started: list[JavaProcess] = []

    def start() -> JavaProcess:
        started.append(JavaProcess(tmp_path / "mirror.log", jars, PROGRAM, path))
        return started[-1]

    def until(what: str, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not holds():
            assert time.monotonic() < deadline, f"{what}:\n{started[-1].printed()[-5000:]}"
            time.sleep(0.2)

    copy = f"west.{TOPIC}"

    def is_copied() -> bool:
        with Admin(east) as admin:
            made = any(topic.name == copy for topic in admin.list_topics())
        return made and len(read(east, copy)) >= len(read(west, TOPIC))

    def move_group(offset: int) -> None:
        with Admin(west) as admin:
            admin.alter_group_offsets(GROUP, {(TOPIC, partition): offset for partition in range(2)})

    def groups_lag() -> int | None:
        """How many records of the copy the group has still to read; None while it has no offsets there."""
        with Admin(east) as admin:
            committed = admin.group_offsets(GROUP)
        if len(committed) < 2:
            return None
        at = {partition: found.offset for partition, found in committed.items()}
        return sum(batch.num_rows for batch in Reader(east, at, stop_at_end=True, isolation="read_committed"))

    try:
        mirror = start()
        until("the records", is_copied)
        move_group(RECORDS // 2)
        until("the group's offsets", lambda: groups_lag() == 0)
        mirror.kill()
        write(west, range(RECORDS, 2 * RECORDS))
        start()
        until("what came meanwhile", is_copied)
        assert read(east, copy) == read(west, TOPIC)
        move_group(RECORDS)
        until("the group's next offsets", lambda: groups_lag() == 0)
        with Admin(east) as admin:
            (found,) = admin.describe_configs([("topic", copy)]).values()
        assert {name: found[name].value for name in settings} == settings
        count(f"MirrorMaker {RELEASE}: {2 * RECORDS} records exactly once, settings, a group's offsets, killed between")
    finally:
        for process in started:
            process.kill()
