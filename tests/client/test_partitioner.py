"""Partitions by key, equal to Java's."""

from __future__ import annotations

import random
import time
from collections import Counter
from contextlib import suppress

import pyarrow as pa
import pytest

from tagwire.client import (
    Partitioner,
    PartitionMetadata,
    Producer,
    StickyPartition,
    TopicMetadata,
    murmur2,
    partition_of,
)
from tagwire.client.config import PARTITIONERS
from tagwire.client.producing import arrow_rows
from tagwire.client.producing.partitioner import TopicPartitioner
from tagwire.client.producing.partitioners import HASHINGS, deciding
from tagwire.errors import EncodeError, KafkaError, TagwireError
from tagwire.records import Record

from .fake_broker import FakeCluster, Stalled

# Java's signed results, from Kafka's own tests of its hash.
MURMUR2 = [
    (b"21", -973932308),
    (b"foobar", -790332482),
    (b"a-little-bit-long-string", -985981536),
    (b"a-little-bit-longer-string", -1486304829),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    (b"abc", 479470107),
]


@pytest.mark.parametrize(("key", "java"), MURMUR2)
def test_murmur2_is_that_of_java(key: bytes, java: int) -> None:
    assert murmur2(key) == java & 0xFFFFFFFF


@pytest.mark.parametrize(("key", "java"), MURMUR2)
def test_a_key_goes_to_the_partition_that_java_gives_it(key: bytes, java: int) -> None:
    assert partition_of(key, 7) == (java & 0x7FFFFFFF) % 7


def test_an_empty_key_is_a_key() -> None:
    assert 0 <= partition_of(b"", 3) < 3


def test_without_a_key_a_partition_is_kept_until_told_to_switch() -> None:
    sticky = StickyPartition(4, random.Random(1))
    seen = [sticky.current]
    for _ in range(50):
        assert sticky.current == seen[-1]
        sticky.switch()
        assert sticky.current != seen[-1]
        seen.append(sticky.current)
    assert set(seen) == {0, 1, 2, 3}


def test_a_single_partition_is_where_everything_goes() -> None:
    sticky = StickyPartition(1)
    sticky.switch()
    assert sticky.current == 0


# Of 97 partitions, where confluent-kafka 2.16 sent these keys; None is any partition.
KEYS = (b"21", b"foobar", b"kafka", b"\xff" * 9, b"", None)
LIBRDKAFKA: dict[str, tuple[int | None, ...]] = {
    "murmur2_random": (41, 13, 28, 64, 35, None),
    "murmur2": (41, 13, 28, 64, 35, 35),
    "consistent_random": (80, 41, 30, 51, None, None),
    "consistent": (80, 41, 30, 51, 0, 0),
    "fnv1a_random": (65, 0, 52, 16, 68, None),
    "fnv1a": (65, 0, 52, 16, 68, 68),
    "random": (None, None, None, None, None, None),
}


def topic(partitions: int) -> TopicMetadata:
    return TopicMetadata("t", partitions={index: PartitionMetadata(index, index) for index in range(partitions)})


def partitioner(name: str | Partitioner, *, ignore_keys: bool = False, partitions: int = 97) -> TopicPartitioner:
    return TopicPartitioner(topic(partitions), "none", 1000, None, *deciding(name, ignore_keys=ignore_keys))


@pytest.mark.parametrize("name", LIBRDKAFKA)
def test_a_key_goes_to_the_partition_that_librdkafka_gives_it(name: str) -> None:
    made = partitioner(name)
    assert tuple(made.partition_of_key(key) for key in KEYS) == LIBRDKAFKA[name]
    for key, number in zip(KEYS, LIBRDKAFKA[name]):
        assert made.partition_for(key, None).partition == (made.sticky.current if number is None else number)
        assert made.partition_for(key, 5).partition == 5


@pytest.mark.parametrize("name", LIBRDKAFKA)
def test_a_column_of_keys_goes_where_single_keys_go(name: str) -> None:
    made = partitioner(name)
    rows = pa.record_batch({"key": pa.array(KEYS, pa.binary()), "value": [b"v"] * len(KEYS)})
    found = arrow_rows._partitions(rows, made)
    assert found is not None
    assert found.to_pylist() == [made.partition_for(key, None).partition for key in KEYS]


def test_rows_without_keys_go_together_where_a_missing_key_means_a_partition() -> None:
    rows = pa.record_batch({"value": [b"1", b"2"]})
    found = arrow_rows._partitions(rows, partitioner("fnv1a"))
    assert found is not None
    assert found.to_pylist() == [68, 68]
    assert arrow_rows._partitions(rows, partitioner("fnv1a_random")) is None


def test_keys_that_are_ignored_mean_nothing() -> None:
    made = partitioner("murmur2", ignore_keys=True)
    assert made.partition_of_key(b"21") is None
    rows = pa.record_batch({"key": [b"21", b"foobar"], "value": [b"v", b"v"]})
    assert arrow_rows._partitions(rows, made).to_pylist() == [made.sticky.current] * 2  # type: ignore[union-attr]


def test_every_name_that_is_allowed_is_a_partitioner() -> None:
    assert set(HASHINGS) == set(PARTITIONERS) == {*LIBRDKAFKA, "round_robin"}


def test_round_robin_takes_one_partition_after_the_other_in_each_topic() -> None:
    made = partitioner("round_robin", partitions=3)
    assert made.asks
    assert [made.asked(Record(b"same", b"v")) for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]


def test_a_function_decides_before_keys_do() -> None:
    seen: list[tuple[str, bytes | None, int]] = []

    def by_value(topic: str, record: Record, partitions: int) -> int | None:
        seen.append((topic, record.value, partitions))
        return None if record.value is None else len(record.value)

    with FakeCluster() as cluster:
        logs = cluster.topic("t", 5)
        with Producer(cluster.bootstrap, partitioner=by_value) as producer:
            assert [producer.send("t", b"v" * size, key=b"21").partition for size in (0, 4, 2)] == [0, 4, 2]
            assert producer.send("t", None, key=b"21").partition == partition_of(b"21", 5)
            assert producer.send("t", b"v", partition=3).partition == 3
            with pytest.raises(KafkaError, match="partition t-7: topic 't' has 5 partitions"):
                producer.send("t", b"v" * 7)
    assert seen == [("t", b"", 5), ("t", b"vvvv", 5), ("t", b"vv", 5), ("t", None, 5), ("t", b"v" * 7, 5)]
    assert sum(len(log.batches) for log in logs) > 2


def test_a_function_that_gives_no_number_is_told_so() -> None:
    made = partitioner(lambda topic, record, partitions: "first")  # type: ignore[arg-type, return-value]
    with pytest.raises(EncodeError, match="the partitioner gave str for a record of t"):
        made.asked(Record(None, b"v"))


# Where records without a key go, by load (KIP-794) -------------------------------------------------------------------


def shares(sticky: StickyPartition, times: int = 8000) -> dict[int, float]:
    found: Counter[int] = Counter()
    for _ in range(times):
        sticky.switch()
        found[sticky.current] += 1
    return {partition: count / times for partition, count in found.items()}


def test_partitions_whose_batches_wait_get_less_as_kafka_weighs_them() -> None:
    sticky = StickyPartition(3, random.Random(1))
    sticky.update_load({1: 3, 2: 1})  # Kafka's example: queues of 0, 3 and 1 have weights of 4, 1 and 3
    assert shares(sticky) == {part: pytest.approx(weight / 8, abs=0.03) for part, weight in enumerate((4, 1, 3))}
    sticky.update_load({})
    assert shares(sticky) == {part: pytest.approx(1 / 3, abs=0.03) for part in range(3)}


def test_even_queues_make_no_difference_and_those_that_are_unavailable_get_nothing() -> None:
    sticky = StickyPartition(3, random.Random(1))
    sticky.update_load({0: 2, 1: 2, 2: 2}, {1})
    assert shares(sticky) == {0: pytest.approx(0.5, abs=0.03), 2: pytest.approx(0.5, abs=0.03)}
    sticky.update_load({0: 2, 1: 2, 2: 2}, {0, 1, 2})  # somewhere they have to go
    assert set(shares(sticky)) == {0, 1, 2}
    sticky.update_load({0: 2, 1: 2, 2: 2})
    assert set(shares(sticky)) == {0, 1, 2}


@pytest.mark.parametrize("adaptive", [True, False])
def test_records_without_a_key_avoid_a_leader_that_takes_nothing(adaptive: bool) -> None:
    stalled = Stalled()
    options = {"adaptive_partitioning": adaptive, "availability_timeout": 0.05}
    with FakeCluster(2) as cluster:
        cluster.topic("t", 2)  # partition 1 is led by broker 1
        producer = Producer(cluster.bootstrap, batch_bytes=100, linger=0, **options)  # type: ignore[arg-type]
        try:
            for partition in (0, 1):
                producer.send("t", b"v", partition=partition).result(60)
            cluster.script("Produce", stalled)
            while not stalled.begun.is_set():
                producer.send("t", bytes(60), partition=1)
            for _ in range(10):
                producer.send("t", bytes(60), partition=1)
            time.sleep(0.1)  # longer than a leader may take nothing
            producer.send("t", b"looks around", partition=0).result(60)
            went = [producer.send("t", bytes(60)).partition for _ in range(40)]
        finally:
            with suppress(TagwireError):
                producer.close(0)
    assert (set(went[2:]) == {0}) is adaptive
