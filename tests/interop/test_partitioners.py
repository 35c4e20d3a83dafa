"""Keys go to the partitions that librdkafka's producers give them, by each of its partitioners."""

from __future__ import annotations

import random
from collections.abc import Iterator

import confluent_kafka
import pytest

from tagwire.broker import Broker
from tagwire.client import Admin, NewTopic, Producer, Reader

PARTITIONERS = ("murmur2_random", "murmur2", "consistent_random", "consistent", "fnv1a_random", "fnv1a")
PARTITIONS = 97


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_keys_go_where_librdkafka_sends_them(partitioner: str, bootstrap: str) -> None:
    dice = random.Random(partitioner)
    keys = [dice.randbytes(dice.randrange(1, 40)) for _ in range(300)]
    if not partitioner.endswith("random"):
        keys.append(b"")
    theirs, ours = f"theirs-{partitioner}", f"ours-{partitioner}"
    with Admin(bootstrap) as admin:
        admin.create_topics([NewTopic(name, num_partitions=PARTITIONS) for name in (theirs, ours)])
    properties = {"bootstrap.servers": bootstrap, "partitioner": partitioner}
    producer = confluent_kafka.Producer(properties)
    for number, key in enumerate(keys):
        producer.produce(theirs, b"%d" % number, key)
    if not partitioner.endswith("random"):
        producer.produce(theirs, b"without a key")
    producer.flush()
    with Producer(properties) as own:
        for number, key in enumerate(keys):
            own.send(ours, b"%d" % number, key)
        if not partitioner.endswith("random"):
            own.send(ours, b"without a key")
    assert placed(bootstrap, ours) == placed(bootstrap, theirs)


def placed(bootstrap: str, topic: str) -> dict[bytes | None, int | None]:
    with Reader(bootstrap, topic, stop_at_end=True) as reader:
        return {record.value: record.partition for record in reader.records()}
