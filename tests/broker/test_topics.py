"""CreateTopics, DeleteTopics and Metadata over a socket."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from tagwire import messages
from tagwire.broker import Broker
from tagwire.errors import Error

NO_ID = UUID(int=0)
Create = messages.CreateTopicsRequest

BAD_NAMES = ["", ".", "..", "../t", "a/b", "a b", "é", "t\0", "a" * 250, "a:b", "a\\b"]


def create(wire, version=7, validate_only=False, **fields):
    topic = Create.CreatableTopic(**{"name": "t", "num_partitions": 1, "replication_factor": 1, **fields})
    return wire.ask(Create(topics=[topic], validate_only=validate_only), version).topics[0]


def delete(wire, *names, version=5):
    request = messages.DeleteTopicsRequest
    if version >= 6:
        topics = [request.DeleteTopicState(name=name) for name in names]
        return wire.ask(request(topics=topics, timeout_ms=30_000), version).responses
    return wire.ask(request(topic_names=list(names), timeout_ms=30_000), version).responses


def names(wire):
    return [topic.name for topic in wire.metadata().topics]


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_creates(wire, version):
    answer = create(wire, version, num_partitions=3)
    assert (answer.name, answer.error_code) == ("t", 0)
    if version >= 5:
        assert (answer.num_partitions, answer.replication_factor) == (3, 1)
        described = {config.name: (config.value, config.config_source) for config in answer.configs}
        assert described["retention.ms"] == ("604800000", 5)
    (topic,) = wire.metadata().topics
    assert len(topic.partitions) == 3
    if version >= 7:
        assert answer.topic_id == topic.topic_id != NO_ID


def test_defaults_may_be_asked_for_whatever_the_version(tmp_path, connect):
    with Broker(tmp_path / "data", num_partitions=4) as broker:
        wire = connect(broker.bootstrap)
        answer = create(wire, num_partitions=-1, replication_factor=-1)
        assert (answer.error_code, answer.num_partitions) == (0, 4)
        assert create(wire, 3, name="u", num_partitions=-1, replication_factor=-1).error_code == 0
        assert len(wire.metadata("u").topics[0].partitions) == 4


def test_what_is_wrong_with_a_new_topic_is_told_in_kafkas_order(wire):
    create(wire, name="t")
    configs = [Create.CreatableTopicConfig(name="retention.ms", value="x")]
    numbers = {"num_partitions": 0, "replication_factor": 9}
    steps = [
        ({"name": "a/b"}, Error.INVALID_TOPIC_EXCEPTION),
        ({"name": "t"}, Error.TOPIC_ALREADY_EXISTS),
        ({"name": "u"}, Error.INVALID_CONFIG),
    ]
    for named, error in steps:
        answer = create(wire, configs=configs, **named, **numbers)
        assert (answer.error_code, answer.configs) == (error, [])
    assert create(wire, name="u", **numbers).error_code == Error.INVALID_PARTITIONS
    assert create(wire, name="u", num_partitions=0, replication_factor=0).error_code == Error.INVALID_REPLICATION_FACTOR
    assert create(wire, name="u", replication_factor=9).error_code == Error.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_bad_name_is_refused_wherever_it_is_used(wire, broker, tmp_path, name):
    assert create(wire, name=name).error_code == Error.INVALID_TOPIC_EXCEPTION
    assert wire.metadata(name, create=True).topics[0].error_code == Error.INVALID_TOPIC_EXCEPTION
    assert delete(wire, name)[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert names(wire) == []
    assert not [path for path in (tmp_path / "data").iterdir() if path.is_dir()]
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_the_name_of_the_clusters_metadata_is_no_clients(wire):
    answer = create(wire, name="__cluster_metadata")
    assert answer.error_code == Error.INVALID_REQUEST
    assert answer.error_message == "Creation of internal topic __cluster_metadata is prohibited."
    assert wire.metadata("__cluster_metadata", create=True).topics[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert names(wire) == []


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "-", "a" * 249])
def test_a_good_name_is_taken(wire, make, name):
    assert create(wire, name=name).error_code == 0
    assert wire.produce(name, make.records(b"v")).error_code == 0
    assert delete(wire, name)[0].error_code == 0


REFUSED = [
    ({"num_partitions": 0}, Error.INVALID_PARTITIONS),
    ({"num_partitions": -2}, Error.INVALID_PARTITIONS),
    ({"num_partitions": 10**9}, Error.INVALID_PARTITIONS),
    ({"replication_factor": 0}, Error.INVALID_REPLICATION_FACTOR),
    ({"replication_factor": 3}, Error.INVALID_REPLICATION_FACTOR),
    ({"configs": [("retention.ms", "1"), ("retention.ms", "2")]}, Error.INVALID_CONFIG),
    ({"configs": [("retention.ms", None)]}, Error.INVALID_CONFIG),
    ({"configs": [("retention.ms", "soon")]}, Error.INVALID_CONFIG),
    ({"configs": [("retention.ms", "-2")]}, Error.INVALID_CONFIG),
    ({"name": "__consumer_offsets"}, Error.INVALID_TOPIC_EXCEPTION),
    ({"configs": [("compression.type", "zip")]}, Error.INVALID_CONFIG),
    ({"configs": [("segment.ms", "0")]}, Error.INVALID_CONFIG),
    ({"configs": [("no.such.thing", "1")]}, Error.INVALID_CONFIG),
    ({"assignments": [(0, [1])]}, Error.INVALID_REQUEST),
    ({"assignments": [(0, [2])], "num_partitions": -1, "replication_factor": -1}, Error.INVALID_REPLICA_ASSIGNMENT),
    ({"assignments": [(0, [1, 2])], "num_partitions": -1, "replication_factor": -1}, Error.INVALID_REPLICA_ASSIGNMENT),
    ({"assignments": [(1, [1])], "num_partitions": -1, "replication_factor": -1}, Error.INVALID_REPLICA_ASSIGNMENT),
]


def asked(fields):
    configs = [Create.CreatableTopicConfig(name=name, value=value) for name, value in fields.get("configs", [])]
    assignments = [
        Create.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
        for index, brokers in fields.get("assignments", [])
    ]
    return {**fields, "configs": configs, "assignments": assignments}


@pytest.mark.parametrize(("fields", "error"), REFUSED)
def test_what_is_not_implemented_is_refused_and_nothing_is_created(wire, tmp_path, fields, error):
    answer = create(wire, **asked(fields))
    assert Error.of(answer.error_code) is error
    assert answer.error_message
    assert names(wire) == []
    assert not list((tmp_path / "data").glob("t-*"))


def test_partitions_may_be_assigned_to_the_one_broker(wire):
    fields = {"assignments": [(1, [1]), (0, [1])], "num_partitions": -1, "replication_factor": -1}
    assert create(wire, **asked(fields)).num_partitions == 2


def test_what_is_configured_is_answered_and_outlives_a_restart(tmp_path, connect, make):
    with Broker(tmp_path / "data") as broker:
        answer = create(connect(broker.bootstrap), **asked({"configs": [("max.message.bytes", "100")]}))
        described = {config.name: (config.value, config.config_source) for config in answer.configs}
        assert described["max.message.bytes"] == ("100", 1)
    with Broker(tmp_path / "data") as broker:
        outcome = connect(broker.bootstrap).produce("t", make.records(b"v" * 200))
        assert outcome.error_code == Error.MESSAGE_TOO_LARGE


def test_validating_only_creates_nothing(wire):
    assert create(wire, validate_only=True).error_code == 0
    assert create(wire, validate_only=True, num_partitions=0).error_code == Error.INVALID_PARTITIONS
    assert names(wire) == []


def test_a_topic_that_exists_is_not_created_again(wire):
    assert create(wire).error_code == 0
    assert create(wire, num_partitions=2).error_code == Error.TOPIC_ALREADY_EXISTS
    assert create(wire, validate_only=True).error_code == Error.TOPIC_ALREADY_EXISTS


def test_a_name_that_differs_from_another_in_dots_and_underscores_alone_is_refused_until_that_is_deleted(wire):
    assert create(wire, name="a.b_c").error_code == 0
    assert create(wire, name="a_b.c").error_code == Error.INVALID_TOPIC_EXCEPTION
    assert wire.metadata("a_b_c", create=True).topics[0].error_code == Error.INVALID_TOPIC_EXCEPTION
    assert create(wire, name="a.b_c").error_code == Error.TOPIC_ALREADY_EXISTS
    deleted = wire.ask(messages.DeleteTopicsRequest(topic_names=["a.b_c"], timeout_ms=1000), 5).responses[0]
    assert deleted.error_code == 0
    assert create(wire, name="a_b.c").error_code == 0


def test_a_name_given_twice_is_refused_and_the_others_are_created(wire):
    topics = [Create.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("a", "b", "a")]
    answer = wire.ask(Create(topics=topics), 7)
    assert {topic.name: topic.error_code for topic in answer.topics} == {"a": Error.INVALID_REQUEST, "b": 0}
    assert names(wire) == ["b"]


@pytest.mark.parametrize("version", range(1, 7))
def test_every_version_deletes_a_topic_and_its_files(wire, make, tmp_path, version):
    create(wire, num_partitions=2)
    wire.produce("t", make.records(b"v"))
    answer, missing = delete(wire, "t", "missing", version=version)
    assert (answer.name, answer.error_code) == ("t", 0)
    assert missing.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert names(wire) == []
    assert not [path for path in (tmp_path / "data").iterdir() if path.is_dir()]


def test_a_topic_that_is_named_by_its_name_and_its_id_is_refused_and_the_others_are_deleted(wire):
    for name in ("t", "u"):
        wire.create(name)
    (topic,) = wire.metadata("t").topics
    state = messages.DeleteTopicsRequest.DeleteTopicState
    asked = [state(name="t"), state(topic_id=topic.topic_id), state(name="u")]
    answer = wire.ask(messages.DeleteTopicsRequest(topics=asked, timeout_ms=10_000), 6)
    refused, deleted = answer.responses
    assert (refused.name, refused.topic_id, refused.error_code) == ("t", topic.topic_id, Error.INVALID_REQUEST)
    assert (deleted.name, deleted.error_code) == ("u", 0)
    assert [one.name for one in wire.metadata("t", "u").topics if not one.error_code] == ["t"]


def test_a_topic_can_be_deleted_by_its_id(wire):
    topic_id = create(wire).topic_id
    request = messages.DeleteTopicsRequest
    asked = [request.DeleteTopicState(topic_id=uuid4()), request.DeleteTopicState(topic_id=topic_id)]
    asked.append(request.DeleteTopicState(name="t", topic_id=topic_id))
    unknown, deleted, both = wire.ask(request(topics=asked, timeout_ms=30_000), 6).responses
    assert (unknown.name, unknown.error_code) == (None, Error.UNKNOWN_TOPIC_ID)
    assert (deleted.name, deleted.topic_id, deleted.error_code) == ("t", topic_id, 0)
    assert both.error_code == Error.INVALID_REQUEST


def test_a_topic_created_again_is_another_topic_and_empty(wire, make):
    first = create(wire).topic_id
    wire.produce("t", make.records(b"v"))
    delete(wire, "t")
    assert wire.produce("t", make.records(b"v")).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert create(wire).topic_id != first
    assert wire.offset_at("t", -1).offset == 0


@pytest.mark.parametrize("version", range(13))
def test_every_version_of_metadata_tells_the_broker_and_its_topics(wire, broker, version):
    create(wire, name="a", num_partitions=2)
    create(wire, name="b")
    answer = wire.metadata(version=version) if version else wire.ask(messages.MetadataRequest(topics=[]), 0)
    (node,) = answer.brokers
    assert f"{node.host}:{node.port}" == broker.bootstrap
    if version >= 1:
        assert answer.controller_id == node.node_id
    if version >= 2:
        assert len(answer.cluster_id) == 22
    assert [(topic.name, len(topic.partitions)) for topic in answer.topics] == [("a", 2), ("b", 1)]
    for partition in answer.topics[0].partitions:
        assert (partition.error_code, partition.leader_id) == (0, node.node_id)
        assert partition.replica_nodes == partition.isr_nodes == [node.node_id]


def test_no_topics_may_be_asked_for_from_version_1(wire):
    create(wire)
    assert wire.ask(messages.MetadataRequest(topics=[]), 1).topics == []


def test_asking_for_a_missing_topic_creates_it_when_the_client_allows(wire):
    assert wire.metadata("t", create=False).topics[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert wire.metadata("t", create=True).topics[0].error_code == 0
    assert names(wire) == ["t"]
    old = messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name="old")])
    assert wire.ask(old, 3).topics[0].error_code == 0


def test_a_broker_can_be_told_not_to_create_topics_unasked(tmp_path, connect):
    with Broker(tmp_path / "data", auto_create_topics=False) as broker:
        wire = connect(broker.bootstrap)
        assert wire.metadata("t", create=True).topics[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_asked_for_twice_is_told_once(wire):
    create(wire)
    assert len(wire.metadata("t", "t").topics) == 1


def test_metadata_can_be_asked_for_by_topic_id(wire):
    topic_id = create(wire).topic_id
    request = messages.MetadataRequest
    asked = [request.MetadataRequestTopic(name=None, topic_id=one) for one in (topic_id, uuid4())]
    found, missing = wire.ask(request(topics=asked), 12).topics
    assert (found.name, found.error_code) == ("t", 0)
    assert (missing.name, missing.error_code) == (None, Error.UNKNOWN_TOPIC_ID)


def test_where_a_topic_id_is_asked_for_no_name_is_heeded(wire):
    topic_id = create(wire).topic_id
    create(wire, name="u")
    topic = messages.MetadataRequest.MetadataRequestTopic
    asked = [topic(name="u", topic_id=topic_id), topic(name="u"), topic(name=None, topic_id=topic_id)]
    answer = wire.ask(messages.MetadataRequest(topics=asked), 12)
    assert [(each.name, each.topic_id) for each in answer.topics] == [("t", topic_id)]


@pytest.mark.parametrize("version", [10, 11])
def test_metadata_that_names_a_topic_by_id_before_version_12_is_refused(wire, version):
    topic_id = create(wire).topic_id
    request = messages.MetadataRequest
    for name, given in (("t", topic_id), (None, topic_id), (None, NO_ID)):
        asked = [request.MetadataRequestTopic(name="t"), request.MetadataRequestTopic(name=name, topic_id=given)]
        response = wire.ask(request(topics=asked), version)
        told = [(topic.error_code, topic.name, topic.topic_id, topic.partitions) for topic in response.topics]
        assert told == [(Error.INVALID_REQUEST, "t", NO_ID, []), (Error.INVALID_REQUEST, name or "", given, [])]
        assert response.brokers == []


def test_topics_and_their_records_outlive_a_restart(tmp_path, connect, make):
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        topic_id = create(wire, num_partitions=2).topic_id
        wire.produce("t", make.records(b"v"), partition=1)
        cluster_id = wire.metadata().cluster_id
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        answer = wire.metadata()
        assert answer.cluster_id == cluster_id
        assert answer.topics[0].topic_id == topic_id
        assert wire.offset_at("t", -1, partition=1).offset == 1
        assert wire.produce("t", make.records(b"v"), partition=1).base_offset == 1


def test_topics_without_a_directory_last_as_long_as_the_broker(connect):
    with Broker() as broker:
        assert create(connect(broker.bootstrap)).error_code == 0
    with Broker() as broker:
        assert names(connect(broker.bootstrap)) == []


def test_partitions_that_are_not_written_to_keep_no_file_open(tmp_path, connect, make):
    def open_files():
        """Of the topic, in this process: what else it has open is not the broker's."""
        found = []
        for fd in Path("/proc/self/fd").iterdir():
            with suppress(FileNotFoundError):
                found.append(os.readlink(fd))
        return [path for path in found if path.startswith(f"{tmp_path}/data/t-")]

    with Broker(tmp_path / "data", fsync="never") as broker:
        wire = connect(broker.bootstrap)
        wire.create("t", 100)
        assert open_files() == []
        wire.produce("t", make.records(b"v"), partition=7)
        assert open_files() != []
    for _ in ("after a clean stop", "after a crash"):
        with Broker(tmp_path / "data", fsync="never") as broker:
            assert len(connect(broker.bootstrap).metadata().topics[0].partitions) == 100
            assert {path.split("/")[-2] for path in open_files()} <= {"t-7"}
        (tmp_path / "data" / ".kafka_cleanshutdown").unlink()
