"""What a Kafka broker left on disk, as Spark tells it, is what Kafka's own tools said of it while it ran."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka import Producer as RdProducer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin import NewTopic as RdNewTopic

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame, SparkSession

from tagwire.records.files import PartitionFiles
from tagwire.spark.jobs.lag import lag_of_files
from tagwire.spark.session import session

from .conftest import Count
from .real_broker import RELEASE, RealBroker
from .real_node import SECONDS

GROUPS: Final = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TRANSACTIONS: Final = "org.apache.kafka.tools.TransactionsCommand"
OPEN: list[RdProducer] = []  # a transaction ends with its producer


@dataclass(frozen=True)
class Left:
    """A data directory, and what Kafka's tools printed before the broker ended: rows without their titles."""

    data: Path
    offsets: list[list[str]]
    states: list[list[str]]
    transactions: list[list[str]]
    metadata: list[dict[str, Any]]


@pytest.fixture(scope="module")
def left(kafka: RealBroker, tmp_path_factory: pytest.TempPathFactory) -> Left:
    folder = tmp_path_factory.mktemp("kafka")
    with kafka.running(folder) as bootstrap:
        _work(bootstrap)
        offsets = _table(kafka, GROUPS, "--bootstrap-server", bootstrap, "--describe", "--all-groups")
        states = _table(kafka, GROUPS, "--bootstrap-server", bootstrap, "--list", "--state")
        transactions = _table(kafka, TRANSACTIONS, "--bootstrap-server", bootstrap, "list")
    segments = PartitionFiles(folder / "data" / "__cluster_metadata-0").segments
    lines = kafka.dump([segment.path for segment in segments], "--cluster-metadata-decoder")
    metadata = [
        {"offset": int(found[1]), **json.loads(found[2])}
        for line in lines
        if (found := re.match(r"\| offset: (\d+) .* payload: (\{.*\})$", line))
    ]
    return Left(folder / "data", offsets, states, transactions, metadata)


def _table(kafka: RealBroker, program: str, *arguments: str) -> list[list[str]]:
    command = ["java", "-Xmx256m", "-cp", ":".join(map(str, kafka.jars)), program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.strip()]
    return [row for row in rows if row[0] not in ("GROUP", "TransactionalId", "Consumer")]


def _work(bootstrap: str) -> None:
    """Groups of both protocols, a group that is deleted, offsets in transactions; transactions in every state."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([RdNewTopic("flights", 2, 1)]).values():
        created.result(SECONDS)
    producer = RdProducer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(30):
        producer.produce("flights", b"%d" % number, partition=number % 2)
    assert producer.flush(SECONDS) == 0
    for group, at in (("classic", [3, 15]), ("classic", [7, 15]), ("gone", [1, 1])):
        _commit(bootstrap, group, at)
    _subscribed(bootstrap)
    for deleted in admin.delete_consumer_groups(["gone"]).values():
        deleted.result(SECONDS)
    for name, end in (("done", "commit"), ("undone", "abort"), ("open", None)):
        _transact(bootstrap, name, end)


def _commit(bootstrap: str, group: str, at: Sequence[int]) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition("flights", i, at[i]) for i in (0, 1)], asynchronous=False)
    consumer.close()


def _subscribed(bootstrap: str) -> None:
    config = {"bootstrap.servers": bootstrap, "group.id": "modern", "auto.offset.reset": "earliest"}
    consumer = Consumer({**config, "group.protocol": "consumer", "enable.auto.commit": False})
    consumer.subscribe(["flights"])
    message = None
    for _ in range(SECONDS):
        message = consumer.poll(1)
        if message is not None and not message.error():
            break
    assert message is not None
    consumer.commit(message, asynchronous=False)
    consumer.close()


def _transact(bootstrap: str, name: str, end: str | None) -> None:
    """A transaction that writes a record, and offsets of a group of its own."""
    made = RdProducer({"bootstrap.servers": bootstrap, "transactional.id": name, "log_level": 0})
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"group-{name}"})
    made.init_transactions(SECONDS)
    made.begin_transaction()
    made.produce("flights", b"in a transaction", partition=0)
    offsets = [TopicPartition("flights", 1, 5)]
    made.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), SECONDS)
    made.flush(SECONDS)
    if end is None:
        OPEN.append(made)
    else:
        getattr(made, f"{end}_transaction")(SECONDS)
    consumer.close()


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with session(tmp_path_factory.mktemp("spark") / "spark.log") as running:
        yield running


def view(spark: SparkSession, left: Left, name: str) -> DataFrame:
    return spark.read.format("tagwire-segments").option("view", name).load(str(left.data))


def test_offsets_and_lag_are_those_that_kafka_consumer_groups_describes(
    spark: SparkSession, left: Left, count: Count
) -> None:
    rows = lag_of_files(spark, str(left.data)).collect()
    ours = {(row.group, row.topic, str(row.partition), row.offset, row.logEndOffset, row.lag) for row in rows}
    theirs = {(*row[:3], *map(int, row[3:6])) for row in left.offsets if row[3] != "-"}
    assert ours == theirs
    assert {row[0] for row in theirs} == {"classic", "modern", "group-done"}
    count(f"Kafka {RELEASE}: {len(ours)} committed offsets from files, as kafka-consumer-groups describes them")


def test_groups_are_in_the_state_that_kafka_lists(spark: SparkSession, left: Left) -> None:
    ours = {row.group: row.state for row in view(spark, left, "groups").collect()}
    theirs = {row[0]: row[-1] for row in left.states}
    assert ours["modern"] == theirs["modern"] == "Empty"
    assert ours.items() <= theirs.items()
    assert "gone" not in theirs


def test_transactions_are_those_that_kafka_lists(spark: SparkSession, left: Left, count: Count) -> None:
    rows = view(spark, left, "transactions").collect()
    ours = {(row.transactionalId, str(row.producerId), row.state) for row in rows}
    assert ours == {(row[0], row[2], row[3]) for row in left.transactions}
    assert {row[0]: row[2] for row in ours} == {"done": "CompleteCommit", "undone": "CompleteAbort", "open": "Ongoing"}
    (still,) = [row for row in rows if row.state == "Ongoing"]
    assert {(each.topic, each.partition) for each in still.partitions} >= {("flights", 0)}
    count(f"Kafka {RELEASE}: {len(ours)} transactions from files, as kafka-transactions lists them")


def test_the_clusters_metadata_is_what_kafka_dump_log_decodes(spark: SparkSession, left: Left, count: Count) -> None:
    rows = view(spark, left, "metadata").orderBy("offset").collect()
    assert [row.error for row in rows if row.error] == []
    ours = [(row.offset, _enum_name(row.type), row.version, json.loads(row.document)) for row in rows]
    theirs = [(each["offset"], each["type"], each["version"], each["data"]) for each in left.metadata]
    assert ours == theirs
    assert {"TOPIC_RECORD", "PARTITION_RECORD"} <= {each[1] for each in theirs}
    count(f"Kafka {RELEASE}: {len(ours)} records of the cluster's metadata, as kafka-dump-log decodes them")


def _enum_name(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper() + "_RECORD"
