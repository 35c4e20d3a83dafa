"""What librdkafka asks of a broker, through confluent-kafka."""

from __future__ import annotations

import sys
import uuid
from typing import Any

import confluent_kafka as kafka
import pytest
from cases import BOOTSTRAP, CODECS, RECORDS, case, case_for, given, run, until
from confluent_kafka import admin

WAIT = 20
ADMIN = admin.AdminClient({"bootstrap.servers": BOOTSTRAP})


def new_topic(partitions: int = 1, **configs: str) -> str:
    """A topic of a name that is new; configurations are given with _ for the dots."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    config = {key.replace("_", "."): value for key, value in configs.items()}
    ADMIN.create_topics([admin.NewTopic(name, partitions, 1, config=config)])[name].result(WAIT)
    return name


def producer(**options: Any) -> kafka.Producer:
    return kafka.Producer({"bootstrap.servers": BOOTSTRAP, "acks": "all", **_dotted(options)})


def consumer(group: str | None = None, **options: Any) -> kafka.Consumer:
    chosen = {"group.id": group or "none", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    return kafka.Consumer({"bootstrap.servers": BOOTSTRAP, **chosen, **_dotted(options)})


def _dotted(options: dict[str, Any]) -> dict[str, Any]:
    return {key.replace("_", "."): value for key, value in options.items()}


def send(sender: kafka.Producer, topic: str, values: list[bytes], partition: int = 0) -> list[Any]:
    """The errors and offsets of the records sent."""
    outcomes: list[Any] = []
    for value in values:
        sender.produce(topic, value, partition=partition, on_delivery=lambda e, m: outcomes.append(e or m.offset()))
    assert sender.flush(WAIT) == 0
    return outcomes


def take(reader: kafka.Consumer, count: int) -> list[kafka.Message]:
    found: list[kafka.Message] = []

    def enough() -> bool:
        messages = reader.consume(500, 0.2)
        assert all(message.error() is None for message in messages), [m.error() for m in messages if m.error()]
        found.extend(messages)
        return len(found) >= count

    until(enough, f"{count} records")
    return found


def read_all(topic: str, count: int, **options: Any) -> list[kafka.Message]:
    reader = consumer(**options)
    try:
        reader.assign([kafka.TopicPartition(topic, 0, 0)])
        return take(reader, count)
    finally:
        reader.close()


@case
def connect() -> None:
    listed = ADMIN.list_topics(timeout=WAIT)
    assert [f"{node.host}:{node.port}" for node in listed.brokers.values()] == [BOOTSTRAP]
    assert listed.cluster_id


@case
def topics() -> None:
    name = new_topic(3)
    assert len(ADMIN.list_topics(timeout=WAIT).topics[name].partitions) == 3
    ADMIN.delete_topics([name])[name].result(WAIT)
    assert name not in ADMIN.list_topics(timeout=WAIT).topics


@case
def topic_made_by_producing() -> None:
    name = f"made-{uuid.uuid4().hex[:8]}"
    assert send(producer(), name, [b"v"], -1) == [0]


@case
def topic_name_refused() -> None:
    for bad in ("a b", "..", "x" * 250):
        outcome = ADMIN.create_topics([admin.NewTopic(bad, 1, 1)])[bad]
        assert outcome.exception(WAIT).args[0].code() == kafka.KafkaError.TOPIC_EXCEPTION


@case_for(*CODECS)
def codec(name: str) -> None:
    topic = new_topic()
    sender = producer(compression_type=name, linger_ms=20)
    for key, value, headers in RECORDS:
        sender.produce(topic, value, key, 0, headers=headers)
    assert sender.flush(WAIT) == 0
    found = read_all(topic, len(RECORDS), check_crcs=True)
    assert [(m.key(), m.value(), m.headers() or []) for m in found] == RECORDS
    assert [m.offset() for m in found] == list(range(len(RECORDS)))


@case
def produce_idempotent() -> None:
    topic = new_topic()
    values = [b"%d" % i for i in range(5000)]
    sender = producer(enable_idempotence=True, linger_ms=1, batch_num_messages=50)
    assert send(sender, topic, values) == list(range(5000))
    assert [m.value() for m in read_all(topic, 5000)] == values


@case
def produce_without_acknowledgement() -> None:
    topic = new_topic()
    send(kafka.Producer({"bootstrap.servers": BOOTSTRAP, "acks": 0}), topic, [b"%d" % i for i in range(100)])
    assert len(read_all(topic, 100)) == 100


@case
def message_too_large() -> None:
    topic = new_topic(max_message_bytes="1000")
    sender = producer(compression_type="none")
    (outcome,) = send(sender, topic, [b"x" * 5000])
    assert outcome.code() == kafka.KafkaError.MSG_SIZE_TOO_LARGE
    assert send(sender, topic, [b"x" * 500]) == [0]


@case
def compacted_topic_needs_keys() -> None:
    topic = new_topic(cleanup_policy="compact")
    (outcome,) = send(producer(), topic, [b"no key"])
    assert outcome.code() == kafka.KafkaError.INVALID_RECORD


@case
def offsets() -> None:
    topic = new_topic()
    sender = producer()
    for number in range(10):
        sender.produce(topic, b"%d" % number, timestamp=1000 + number * 10)
    sender.flush(WAIT)
    reader = consumer()
    partition = kafka.TopicPartition(topic, 0, 1045)
    assert reader.get_watermark_offsets(partition, WAIT) == (0, 10)
    assert reader.offsets_for_times([partition], WAIT)[0].offset == 5
    reader.assign([kafka.TopicPartition(topic, 0, 7)])  # inside a batch
    assert [m.value() for m in take(reader, 3)] == [b"7", b"8", b"9"]
    reader.close()


@case_for("range", "cooperative-sticky")
def group_rebalances(strategy: str) -> None:
    rebalance(partition_assignment_strategy=strategy, session_timeout_ms=10_000)


def rebalance(**options: Any) -> None:
    topic, group = new_topic(4), f"g-{uuid.uuid4().hex[:8]}"
    first, second = consumer(group, **options), consumer(group, **options)
    found: list[bytes] = []

    def sizes() -> tuple[int, int]:
        for member in (first, second):
            found.extend(message.value() for message in member.consume(100, 0.05))
        return len(first.assignment()), len(second.assignment())

    first.subscribe([topic])
    until(lambda: len(first.assignment()) == 4 or first.poll(0.05), "one member with four partitions")
    second.subscribe([topic])
    until(lambda: sizes() == (2, 2), "two members with two partitions each")
    sender = producer()
    for partition in range(4):
        send(sender, topic, [b"%d-%d" % (partition, i) for i in range(50)], partition)
    until(lambda: sizes() and len(found) >= 200, "every record")
    first.commit(asynchronous=False)
    second.commit(asynchronous=False)
    second.close()
    until(lambda: first.consume(100, 0.05) or len(first.assignment()) == 4, "the partitions of who left")
    assert len(found) == len(set(found)) == 200
    assert [p.offset for p in first.committed([kafka.TopicPartition(topic, i) for i in range(4)], WAIT)] == [50] * 4
    first.close()


@case
def static_member() -> None:
    topic, group = new_topic(2), f"g-{uuid.uuid4().hex[:8]}"
    owned = []
    for _ in range(2):
        member = consumer(group, group_instance_id="one", session_timeout_ms=30_000)
        member.subscribe([topic])
        until(lambda m=member: m.poll(0.05) or m.assignment(), "an assignment")
        owned.append(member.assignment())
        member.close()
    assert owned[0] == owned[1]


@case
def commit_metadata() -> None:
    topic, group = new_topic(), f"g-{uuid.uuid4().hex[:8]}"
    send(producer(), topic, [b"v"])
    member = consumer(group)
    member.commit(offsets=[kafka.TopicPartition(topic, 0, 1, "a note: \u00e9")], asynchronous=False)
    member.close()
    (found,) = consumer(group).committed([kafka.TopicPartition(topic, 0)], WAIT)
    assert (found.offset, found.metadata) == (1, "a note: \u00e9")


@case
def transaction_committed_and_aborted() -> None:
    topic = new_topic()
    sender = producer(transactional_id=f"x-{topic}")
    sender.init_transactions(WAIT)
    for number, end in enumerate((sender.commit_transaction, sender.abort_transaction, sender.commit_transaction)):
        sender.begin_transaction()
        for i in range(10):
            sender.produce(topic, b"%d-%d" % (number, i), partition=0)
        assert sender.flush(WAIT) == 0
        end(WAIT)
    committed = [m.value()[:1] for m in read_all(topic, 20, isolation_level="read_committed")]
    assert committed == [b"0"] * 10 + [b"2"] * 10
    assert len(read_all(topic, 30, isolation_level="read_uncommitted")) == 30


@case
def transaction_with_offsets() -> None:
    source, target, group = new_topic(), new_topic(), f"g-{uuid.uuid4().hex[:8]}"
    send(producer(), source, [b"%d" % i for i in range(20)])
    reader = consumer(group)
    reader.subscribe([source])
    sender = producer(transactional_id=f"x-{target}")
    sender.init_transactions(WAIT)
    sender.begin_transaction()
    for message in take(reader, 20):
        sender.produce(target, message.value())
    sender.send_offsets_to_transaction(reader.position(reader.assignment()), reader.consumer_group_metadata(), WAIT)
    sender.commit_transaction(WAIT)
    assert reader.committed([kafka.TopicPartition(source, 0)], WAIT)[0].offset == 20
    reader.close()
    assert len(read_all(target, 20, isolation_level="read_committed")) == 20


@case
def transaction_timeout_too_long() -> None:
    sender = producer(transactional_id="x-long", transaction_timeout_ms=2_000_000_000, message_timeout_ms=1_000_000)
    with pytest.raises(kafka.KafkaException) as refused:
        sender.init_transactions(WAIT)
    assert refused.value.args[0].code() == kafka.KafkaError.INVALID_TRANSACTION_TIMEOUT


@case
def transaction_fenced() -> None:
    topic = new_topic()
    old, new = producer(transactional_id=f"x-{topic}"), producer(transactional_id=f"x-{topic}")
    old.init_transactions(WAIT)
    old.begin_transaction()
    old.produce(topic, b"old")
    old.flush(WAIT)
    new.init_transactions(WAIT)
    with pytest.raises(kafka.KafkaException) as fenced:
        old.commit_transaction(WAIT)
    assert fenced.value.args[0].fatal()


@case
def admin_partitions() -> None:
    name = new_topic(1)
    ADMIN.create_partitions([admin.NewPartitions(name, 4)])[name].result(WAIT)
    assert len(ADMIN.list_topics(name, WAIT).topics[name].partitions) == 4


@case
def admin_configs() -> None:
    name = new_topic(retention_ms="123456")
    resource = admin.ConfigResource(admin.ConfigResource.Type.TOPIC, name)

    def described() -> dict[str, Any]:
        return ADMIN.describe_configs([resource])[resource].result(WAIT)

    before = described()
    assert (before["retention.ms"].value, before["retention.ms"].is_default) == ("123456", False)
    assert before["max.message.bytes"].is_default
    change = admin.ConfigEntry("max.message.bytes", "2000", incremental_operation=admin.AlterConfigOpType.SET)
    altered = admin.ConfigResource(admin.ConfigResource.Type.TOPIC, name, incremental_configs=[change])
    ADMIN.incremental_alter_configs([altered])[altered].result(WAIT)
    after = described()
    assert (after["max.message.bytes"].value, after["retention.ms"].value) == ("2000", "123456")


@case
def admin_broker_configs() -> None:
    (node,) = ADMIN.list_topics(timeout=WAIT).brokers
    resource = admin.ConfigResource(admin.ConfigResource.Type.BROKER, str(node))
    assert ADMIN.describe_configs([resource])[resource].result(WAIT)


@case
def admin_delete_records() -> None:
    name = new_topic()
    send(producer(), name, [b"%d" % i for i in range(10)])
    partition = kafka.TopicPartition(name, 0, 4)
    (outcome,) = ADMIN.delete_records([partition]).values()
    assert outcome.result(WAIT).low_watermark == 4
    assert consumer().get_watermark_offsets(partition, WAIT) == (4, 10)


@case
def admin_groups() -> None:
    topic, group = new_topic(), f"g-{uuid.uuid4().hex[:8]}"
    member = consumer(group)
    member.subscribe([topic])
    until(lambda: member.poll(0.05) or member.assignment(), "an assignment")
    member.commit(offsets=[kafka.TopicPartition(topic, 0, 0)], asynchronous=False)
    listed = ADMIN.list_consumer_groups().result(WAIT)
    assert group in {found.group_id for found in listed.valid}
    assert not listed.errors
    described = ADMIN.describe_consumer_groups([group])[group].result(WAIT)
    assert [len(m.assignment.topic_partitions) for m in described.members] == [1]
    member.close()
    asked = kafka.ConsumerGroupTopicPartitions(group, [kafka.TopicPartition(topic, 0, 0)])
    ADMIN.alter_consumer_group_offsets([asked])[group].result(WAIT)
    asked = kafka.ConsumerGroupTopicPartitions(group)
    found = ADMIN.list_consumer_group_offsets([asked])[group].result(WAIT)
    assert [(p.topic, p.offset) for p in found.topic_partitions] == [(topic, 0)]
    ADMIN.delete_consumer_groups([group])[group].result(WAIT)


@case
def admin_cluster() -> None:
    described = ADMIN.describe_cluster().result(WAIT)
    assert [f"{node.host}:{node.port}" for node in described.nodes] == [BOOTSTRAP]
    name = new_topic()
    (found,) = ADMIN.describe_topics(kafka.TopicCollection([name])).values()
    assert [p.leader.id for p in found.result(WAIT).partitions] == [described.nodes[0].id]


def _round_trip(**security: str) -> None:
    name = f"s-{uuid.uuid4().hex[:8]}"
    assert send(kafka.Producer(_dotted(security)), name, [b"v"]) == [0]
    reader = kafka.Consumer({**_dotted(security), "group.id": "none", "enable.auto.commit": False})
    reader.assign([kafka.TopicPartition(name, 0, 0)])
    assert [m.value() for m in take(reader, 1)] == [b"v"]
    reader.close()


@case
def tls() -> None:
    _round_trip(bootstrap_servers=given("TLS_BOOTSTRAP"), security_protocol="SSL", ssl_ca_location=given("CA_FILE"))


@case
def mutual_tls() -> None:
    files = {"ssl_ca_location": given("CA_FILE"), "ssl_certificate_location": given("CLIENT_FILE")}
    where = given("MUTUAL_TLS_BOOTSTRAP")
    _round_trip(bootstrap_servers=where, security_protocol="SSL", ssl_key_location=given("CLIENT_FILE"), **files)


@case_for("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
def sasl(mechanism: str) -> None:
    _round_trip(**_sasl(given("SASL_BOOTSTRAP"), "SASL_PLAINTEXT", mechanism, given("SASL_PASSWORD")))


@case
def sasl_over_tls() -> None:
    where, secret = given("SASL_TLS_BOOTSTRAP"), given("SASL_PASSWORD")
    _round_trip(**_sasl(where, "SASL_SSL", "SCRAM-SHA-512", secret), ssl_ca_location=given("CA_FILE"))


@case
def sasl_wrong_password() -> None:
    options = _sasl(given("SASL_BOOTSTRAP"), "SASL_PLAINTEXT", "PLAIN", "not it")
    refused: list[kafka.KafkaError] = []
    sender = kafka.Producer({**_dotted(options), "error_cb": refused.append})
    until(lambda: sender.poll(0.1) or refused, "a refusal")
    assert refused[0].code() == kafka.KafkaError._AUTHENTICATION


def _sasl(bootstrap: str, protocol: str, mechanism: str, password: str) -> dict[str, str]:
    return {
        "bootstrap_servers": bootstrap,
        "security_protocol": protocol,
        "sasl_mechanism": mechanism,
        "sasl_username": given("SASL_USER"),
        "sasl_password": password,
    }


@case
def group_848() -> None:
    rebalance(group_protocol="consumer")


if __name__ == "__main__":
    sys.exit(run())
