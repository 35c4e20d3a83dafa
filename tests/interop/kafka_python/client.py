"""What kafka-python asks of a broker."""

from __future__ import annotations

import sys
import uuid
from typing import Any

import kafka
import pytest
from cases import BOOTSTRAP, CODECS, RECORDS, case, case_for, given, run, until
from kafka.admin import ConfigResource, NewTopic
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaError, TopicAlreadyExistsError
from kafka.structs import OffsetAndMetadata

POLL_MS = 1000
"""A poll that ends while the client is joining can lose the assignment it was given: see FINDINGS.md."""


def admin() -> Any:
    return kafka.KafkaAdminClient(bootstrap_servers=BOOTSTRAP)


def new_topic(partitions: int = 1, **configs: str) -> str:
    """A topic of a name that is new; configurations are given with _ for the dots."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    config = {key.replace("_", "."): value for key, value in configs.items()}
    with admin() as client:
        client.create_topics([NewTopic(name, partitions, 1, topic_configs=config)], wait_for_metadata=True)
    return name


def producer(**options: Any) -> Any:
    return kafka.KafkaProducer(**{"bootstrap_servers": BOOTSTRAP, "acks": "all", **options})


def consumer(group: str | None = None, **options: Any) -> Any:
    chosen = {"group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    return kafka.KafkaConsumer(**{"bootstrap_servers": BOOTSTRAP, **chosen, **options})


def send(sender: Any, topic: str, values: list[bytes], partition: int = 0) -> list[int]:
    """The offsets of the records sent."""
    sent = [sender.send(topic, value, partition=partition) for value in values]
    sender.flush(20)
    return [future.get(20).offset for future in sent]


def take(reader: Any, count: int) -> list[Any]:
    found: list[Any] = []

    def enough() -> bool:
        for records in reader.poll(POLL_MS).values():
            found.extend(records)
        return len(found) >= count

    until(enough, f"{count} records")
    return found


def read_all(topic: str, count: int, **options: Any) -> list[Any]:
    with consumer(**options) as reader:
        partition = kafka.TopicPartition(topic, 0)
        reader.assign([partition])
        reader.seek_to_beginning(partition)
        return take(reader, count)


@case
def topics() -> None:
    name = new_topic(3)
    with admin() as client:
        assert name in client.list_topics()
        with pytest.raises(TopicAlreadyExistsError):
            client.create_topics([NewTopic(name, 1, 1)])
        with consumer() as reader:
            assert reader.partitions_for_topic(name) == {0, 1, 2}
        client.delete_topics([name])
        assert name not in client.list_topics()


@case_for(*CODECS)
def codec(name: str) -> None:
    topic = new_topic()
    with producer(compression_type=None if name == "none" else name, linger_ms=20) as sender:
        sent = [sender.send(topic, value, key, headers, partition=0) for key, value, headers in RECORDS]
        sender.flush(20)
        assert [future.get(20).offset for future in sent] == list(range(len(RECORDS)))
    assert [(r.key, r.value, list(r.headers)) for r in read_all(topic, len(RECORDS), check_crcs=True)] == RECORDS


@case
def produce_idempotent() -> None:
    topic = new_topic()
    with producer(enable_idempotence=True, batch_size=500) as sender:
        assert send(sender, topic, [b"%d" % i for i in range(2000)]) == list(range(2000))
    assert [r.value for r in read_all(topic, 2000)] == [b"%d" % i for i in range(2000)]


@case
def group_rebalances() -> None:
    _rebalance(RangePartitionAssignor)


@case
def group_rebalances_cooperatively() -> None:
    _rebalance(CooperativeStickyAssignor)


def _rebalance(strategy: type) -> None:
    topic, group = new_topic(4), f"g-{uuid.uuid4().hex[:8]}"
    options = {"partition_assignment_strategy": [strategy], "heartbeat_interval_ms": 500}
    first, second = consumer(group, **options), consumer(group, **options)
    found: list[bytes] = []

    def sizes() -> tuple[int, int]:
        for member in (first, second):
            for records in member.poll(POLL_MS).values():
                found.extend(record.value for record in records)
        return len(first.assignment()), len(second.assignment())

    first.subscribe([topic])
    until(lambda: first.poll(POLL_MS) or len(first.assignment()) == 4, "one member with four partitions")
    second.subscribe([topic])
    until(lambda: sizes() == (2, 2), "two members with two partitions each")
    with producer() as sender:
        for partition in range(4):
            send(sender, topic, [b"%d-%d" % (partition, i) for i in range(50)], partition)
    until(lambda: sizes() and len(found) >= 200, "every record", 10)
    first.commit()
    second.commit()
    second.close()
    until(lambda: first.poll(POLL_MS) or len(first.assignment()) == 4, "the partitions of who left")
    assert len(found) == len(set(found)) == 200
    assert [first.committed(kafka.TopicPartition(topic, i)) for i in range(4)] == [50] * 4
    first.close()


@case
def commit_metadata() -> None:
    topic, group = new_topic(), f"g-{uuid.uuid4().hex[:8]}"
    partition = kafka.TopicPartition(topic, 0)
    with producer() as sender:
        send(sender, topic, [b"v"])
    with consumer(group) as member:
        member.assign([partition])
        member.commit({partition: OffsetAndMetadata(1, "a note", -1)})
        found = member.committed(partition, metadata=True)
    assert (found.offset, found.metadata) == (1, "a note")


@case
def transaction_committed_and_aborted() -> None:
    topic = new_topic()
    with producer(transactional_id=f"x-{topic}") as sender:
        sender.init_transactions()
        for number, end in enumerate((sender.commit_transaction, sender.abort_transaction, sender.commit_transaction)):
            sender.begin_transaction()
            send(sender, topic, [b"%d-%d" % (number, i) for i in range(10)])
            end()
    committed = [r.value[:1] for r in read_all(topic, 20, isolation_level="read_committed")]
    assert committed == [b"0"] * 10 + [b"2"] * 10
    assert len(read_all(topic, 30, isolation_level="read_uncommitted")) == 30


@case
def transaction_with_offsets() -> None:
    topic, group = new_topic(), f"g-{uuid.uuid4().hex[:8]}"
    partition = kafka.TopicPartition(topic, 0)
    with consumer(group) as reader, producer(transactional_id=f"x-{topic}") as sender:
        sender.init_transactions()
        sender.begin_transaction()
        reader.subscribe([topic])
        until(lambda: reader.poll(POLL_MS) or reader.assignment(), "an assignment")
        sender.send_offsets_to_transaction({partition: OffsetAndMetadata(7, "", -1)}, reader.group_metadata())
        sender.commit_transaction()
        assert reader.committed(partition) == 7


@case
def admin_configs() -> None:
    name = new_topic(retention_ms="123456")
    with admin() as client:
        client.alter_configs([ConfigResource("TOPIC", name, {"max.message.bytes": "2000"})])
        with producer() as sender, pytest.raises(KafkaError):
            sender.send(name, b"x" * 5000).get(20)
        described = client.describe_configs([ConfigResource("TOPIC", name)], config_filter="all")
    assert "123456" in str(described)
    assert "2000" in str(described)


@case
def admin_groups() -> None:
    topic, group = new_topic(), f"g-{uuid.uuid4().hex[:8]}"
    partition = kafka.TopicPartition(topic, 0)
    with consumer(group) as member:
        member.subscribe([topic])
        until(lambda: member.poll(POLL_MS) or member.assignment(), "an assignment")
        member.commit({partition: OffsetAndMetadata(0, "", -1)})
    with admin() as client:
        assert group in {found["group_id"] for found in client.list_groups()}
        assert client.describe_groups([group])[group]["group_state"] == "Empty"
        assert client.list_group_offsets(group)[group][partition].offset == 0
        client.delete_groups([group])
        assert group not in {found["group_id"] for found in client.list_groups()}


@case
def admin_cluster() -> None:
    with admin() as client:
        (node,) = client.describe_cluster()["brokers"]
    assert f"{node['host']}:{node['port']}" == BOOTSTRAP


def _round_trip(**security: str) -> None:
    name = f"s-{uuid.uuid4().hex[:8]}"
    with producer(**security) as sender:
        assert send(sender, name, [b"v"]) == [0]
    assert [r.value for r in read_all(name, 1, **security)] == [b"v"]


@case
def tls() -> None:
    _round_trip(bootstrap_servers=given("TLS_BOOTSTRAP"), security_protocol="SSL", ssl_cafile=given("CA_FILE"))


@case_for("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
def sasl(mechanism: str) -> None:
    _round_trip(**_sasl(given("SASL_BOOTSTRAP"), "SASL_PLAINTEXT", mechanism, given("SASL_PASSWORD")))


@case
def sasl_over_tls() -> None:
    where, secret = given("SASL_TLS_BOOTSTRAP"), given("SASL_PASSWORD")
    _round_trip(**_sasl(where, "SASL_SSL", "SCRAM-SHA-512", secret), ssl_cafile=given("CA_FILE"))


@case
def sasl_wrong_password() -> None:
    options = _sasl(given("SASL_BOOTSTRAP"), "SASL_PLAINTEXT", "PLAIN", "not it")
    with pytest.raises(KafkaError):  # which one depends on whether it reads the refusal: see FINDINGS.md
        producer(**options, max_block_ms=10_000).send("t", b"v").get(20)


def _sasl(bootstrap: str, protocol: str, mechanism: str, password: str) -> dict[str, str]:
    return {
        "bootstrap_servers": bootstrap,
        "security_protocol": protocol,
        "sasl_mechanism": mechanism,
        "sasl_plain_username": given("SASL_USER"),
        "sasl_plain_password": password,
    }


if __name__ == "__main__":
    sys.exit(run())
