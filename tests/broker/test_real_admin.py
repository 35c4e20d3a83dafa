"""What the admin clients of librdkafka, kafka-python and aiokafka make of the broker's answers."""

from __future__ import annotations

import asyncio

import confluent_kafka
import kafka.admin
import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from confluent_kafka import admin


@pytest.fixture
def topic(wire, make):
    wire.create("t", retention_ms="1000")
    for number in range(3):
        wire.produce("t", make.records(b"%d" % number))
    return "t"


@pytest.fixture
def librdkafka(broker, topic):
    return admin.AdminClient({"bootstrap.servers": broker.bootstrap})


def outcome(futures):
    """The result of the one future; it raises what the broker refused."""
    (future,) = futures.values()
    return future.result(20)


def test_librdkafka_describes_and_alters_configurations(librdkafka):
    resource = admin.ConfigResource(admin.ResourceType.TOPIC, "t")
    found = outcome(librdkafka.describe_configs([resource]))
    assert found["retention.ms"].value == "1000"
    assert found["retention.ms"].source == admin.ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert found["retention.ms"].synonyms["log.retention.ms"].value == "604800000"
    assert not found["max.message.bytes"].is_read_only
    resource.add_incremental_config(
        admin.ConfigEntry("retention.ms", "5", incremental_operation=admin.AlterConfigOpType.SET)
    )
    outcome(librdkafka.incremental_alter_configs([resource]))
    assert outcome(librdkafka.describe_configs([resource]))["retention.ms"].value == "5"
    broker = outcome(librdkafka.describe_configs([admin.ConfigResource(admin.ResourceType.BROKER, "1")]))
    assert broker["num.partitions"].value == "1"


def test_librdkafka_adds_partitions_and_deletes_records(librdkafka, wire):
    outcome(librdkafka.create_partitions([admin.NewPartitions("t", 2)]))
    assert len(wire.metadata("t").topics[0].partitions) == 2
    deleted = outcome(librdkafka.delete_records([confluent_kafka.TopicPartition("t", 0, 2)]))
    assert deleted.low_watermark == 2
    assert wire.offset_at("t", -2).offset == 2


def test_librdkafka_describes_the_cluster(librdkafka, broker):
    described = librdkafka.describe_cluster().result(20)
    assert [f"{node.host}:{node.port}" for node in described.nodes] == [broker.bootstrap]
    assert described.controller.id == 1


def test_librdkafka_finds_no_elections_users_or_acls(librdkafka):
    partition = confluent_kafka.TopicPartition("t", 0)
    elected = librdkafka.elect_leaders(confluent_kafka.ElectionType.PREFERRED, [partition]).result(20)
    assert elected[partition].code() == confluent_kafka.KafkaError.ELECTION_NOT_NEEDED
    assert librdkafka.describe_user_scram_credentials().result(20) == {}
    deletion = admin.UserScramCredentialDeletion("alice", admin.ScramMechanism.SCRAM_SHA_256)
    with pytest.raises(confluent_kafka.KafkaException, match="no such credential"):
        outcome(librdkafka.alter_user_scram_credentials([deletion]))
    anything = admin.AclBindingFilter(
        admin.ResourceType.ANY, None, admin.ResourcePatternType.ANY, None, None,
        admin.AclOperation.ANY, admin.AclPermissionType.ANY,
    )  # fmt: skip
    assert librdkafka.describe_acls(anything).result(20) == []  # so too where Kafka has no authorizer


def test_kafka_python_finds_no_reassignments_elections_or_users(broker, topic):
    client = kafka.admin.KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        assert not client.list_partition_reassignments()
        assert not client.describe_user_scram_credentials()
        assert "t" in repr(client.list_config_resources())
    finally:
        client.close()


def test_kafka_python_describes_alters_and_deletes(broker, topic, wire):
    client = kafka.admin.KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        resource = kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, "t")
        told = repr(client.describe_configs([resource]))
        assert "retention.ms" in told
        assert "1000" in told
        client.create_partitions({"t": kafka.admin.NewPartitions(3)})
        assert len(wire.metadata("t").topics[0].partitions) == 3
        client.delete_records({kafka.TopicPartition("t", 0): 1})
        assert wire.offset_at("t", -2).offset == 1
        assert str(wire.metadata().cluster_id) in repr(client.describe_cluster())
    finally:
        client.close()


async def _by_aiokafka(bootstrap):
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await client.start()
    try:
        resource = ConfigResource(ConfigResourceType.TOPIC, "t")
        described = await client.describe_configs([resource])
        altered = await client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, "t", {"segment.bytes": "2000"})])
        grown = await client.create_partitions({"t": NewPartitions(2)})
        return described, altered, grown
    finally:
        await client.close()


def test_aiokafka_describes_and_alters(broker, topic, wire):
    described, altered, grown = asyncio.run(_by_aiokafka(broker.bootstrap))
    values = {row[0]: row[1] for row in described[0].resources[0][4]}
    assert values["retention.ms"] == "1000"
    assert altered[0].resources[0][0] == 0
    assert grown.topic_errors[0][1] == 0
    assert len(wire.metadata("t").topics[0].partitions) == 2
