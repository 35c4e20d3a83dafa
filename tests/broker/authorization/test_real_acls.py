"""librdkafka against a broker with ACLs: it administers them, and is refused as by Kafka."""

from __future__ import annotations

import confluent_kafka
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tagwire.broker import Broker

from .people import OPTIONS, SUPER, USERS

SECONDS = 20


def login(broker, name, **more):
    return {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": name,
        "sasl.password": USERS[name],
        **more,
    }


def acl(kind, name, operation, pattern=ResourcePatternType.LITERAL, binding=AclBinding):
    return binding(kind, name, pattern, "User:alice", "*", operation, AclPermissionType.ALLOW)


@pytest.fixture
def guarded():
    with Broker(**OPTIONS) as broker:
        yield broker


def test_librdkafka_administers_acls_and_hears_what_it_may_not_do(guarded):
    admin = AdminClient(login(guarded, SUPER))
    for done in admin.create_topics([NewTopic("t", 1, 1), NewTopic("u", 1, 1)]).values():
        done.result(SECONDS)
    created = [
        acl(ResourceType.TOPIC, "t", AclOperation.WRITE),
        acl(ResourceType.GROUP, "g-", AclOperation.READ, ResourcePatternType.PREFIXED),
    ]
    for done in admin.create_acls(created).values():
        done.result(SECONDS)
    every = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    assert set(admin.describe_acls(every).result(SECONDS)) == set(created)
    outcomes = {}
    producer = confluent_kafka.Producer(login(guarded, "alice"))
    for topic in ("t", "u"):
        producer.produce(topic, b"v", on_delivery=lambda error, message: outcomes.update({message.topic(): error}))
    assert producer.flush(SECONDS) == 0
    assert outcomes["t"] is None
    assert outcomes["u"].code() == confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED
    only = acl(ResourceType.TOPIC, "t", AclOperation.WRITE, binding=AclBindingFilter)
    (deleted,) = admin.delete_acls([only]).values()
    assert deleted.result(SECONDS) == [created[0]]
    assert admin.describe_acls(every).result(SECONDS) == [created[1]]


def test_librdkafka_reads_with_its_acls_and_not_without_the_groups(guarded):
    admin = AdminClient(login(guarded, SUPER))
    for done in admin.create_topics([NewTopic("t", 1, 1)]).values():
        done.result(SECONDS)
    for done in admin.create_acls([acl(ResourceType.TOPIC, "t", AclOperation.READ)]).values():
        done.result(SECONDS)
    settings = {"group.id": "g", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer(login(guarded, "alice", **settings))
    consumer.subscribe(["t"])
    refused = consumer.poll(SECONDS)
    assert refused.error().code() == confluent_kafka.KafkaError.GROUP_AUTHORIZATION_FAILED
    consumer.close()
    for done in admin.create_acls([acl(ResourceType.GROUP, "g", AclOperation.READ)]).values():
        done.result(SECONDS)
    producer = confluent_kafka.Producer(login(guarded, SUPER))
    producer.produce("t", b"v")
    assert producer.flush(SECONDS) == 0
    consumer = confluent_kafka.Consumer(login(guarded, "alice", **settings))
    consumer.subscribe(["t"])
    assert consumer.poll(SECONDS).value() == b"v"
    consumer.close()
