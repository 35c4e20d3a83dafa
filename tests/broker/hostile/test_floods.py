"""Many of something, or much of it: each is bounded, and the broker goes on for everybody else (E.3, broker)."""

from __future__ import annotations

import logging
import resource
import struct
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from tagwire import messages
from tagwire.broker import Broker, clock
from tagwire.errors import Error
from tagwire.records import read

MIB = 1 << 20


@pytest.fixture(autouse=True)
def no_error_in_the_log(caplog):
    yield
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def is_served(wire):
    return (
        wire.ask(messages.ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3).error_code == 0
    )


def test_metadata_of_very_many_topics_creates_no_more_than_may_be_and_lets_others_in(tmp_path, connect):
    with Broker(tmp_path / "data", max_topics=5, fsync="never") as broker:
        flood, other = connect(broker.bootstrap), connect(broker.bootstrap)
        request = messages.MetadataRequest
        topics = [request.MetadataRequestTopic(name=f"t{number}") for number in range(15_000)]
        flood.send(request(topics=topics, allow_auto_topic_creation=True), 4)
        assert all(is_served(other) for _ in range(20))
        answer = flood.receive()
        assert [topic.error_code for topic in answer.topics[:5]] == [0] * 5
        refused = {topic.error_code for topic in answer.topics[5:]}
        assert refused <= {Error.POLICY_VIOLATION, Error.UNKNOWN_TOPIC_OR_PARTITION}
        assert len(other.metadata().topics) == 5


def test_a_request_for_a_million_topics_is_over_the_limit(broker, wire, connect):
    wire.socket.sendall(struct.pack(">ihhihi", 14 + 4_000_000, 3, 4, 1, -1, 1_000_000))
    with suppress(OSError):
        wire.socket.sendall(b"\0\2ab" * 1_000_000)
    assert wire.is_closed()
    assert is_served(connect(broker.bootstrap))


AMPLIFYING = [
    (messages.DescribeGroupsRequest(groups=["g"] * 100_000), 5, "groups"),
    (
        messages.OffsetFetchRequest(
            groups=[messages.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)] * 50_000
        ),
        8,
        "groups",
    ),
    (messages.DescribeTransactionsRequest(transactional_ids=["t"] * 100_000), 0, "transaction_states"),
    (
        messages.DescribeConfigsRequest(
            resources=[messages.DescribeConfigsRequest.DescribeConfigsResource(resource_type=2, resource_name="t")]
            * 50_000
        ),
        4,
        "results",
    ),
    (
        messages.DescribeProducersRequest(
            topics=[messages.DescribeProducersRequest.TopicRequest(name="t", partition_indexes=[0])] * 50_000
        ),
        0,
        "topics",
    ),
]


@pytest.mark.parametrize(("request_", "version", "answers"), AMPLIFYING, ids=lambda value: type(value).__name__)
def test_what_is_asked_for_many_times_is_answered_once(wire, request_, version, answers):
    wire.create("t")
    assert len(getattr(wire.ask(request_, version), answers)) == 1


@pytest.mark.parametrize("version", [7, 8])
def test_the_metadata_of_an_offset_that_is_asked_for_again_and_again_is_told_a_few_hundred_times_at_most(wire, version):
    wire.create("t")
    commit, fetch = messages.OffsetCommitRequest, messages.OffsetFetchRequest
    partition = commit.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata="m" * 4000
    )
    topic = commit.OffsetCommitRequestTopic(name="t", partitions=[partition])
    wire.ask(commit(group_id="g", topics=[topic]), 8)

    def asked(times):
        if version < 8:
            topics = [fetch.OffsetFetchRequestTopic(name="t", partition_indexes=[0] * times)]
            return wire.ask(fetch(group_id="g", topics=topics), version)
        topics = [fetch.OffsetFetchRequestTopics(name="t", partition_indexes=[0] * times)]
        groups = [fetch.OffsetFetchRequestGroup(group_id="g", topics=topics)]
        return wire.ask(fetch(groups=groups), version).groups[0]

    assert len(asked(200).topics[0].partitions) == 200
    refused = asked(100_000)
    assert (refused.error_code, refused.topics) == (Error.INVALID_REQUEST, [])
    assert is_served(wire)


def join(wire, group, member_id="", version=2):
    request = messages.JoinGroupRequest
    protocols = [request.JoinGroupRequestProtocol(name="range", metadata=b"")]
    return request(
        group_id=group,
        member_id=member_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=protocols,
    ), version


def test_a_flood_of_new_members_is_refused_past_the_limit_and_others_join_their_groups(broker, wire, connect):
    outcomes = [wire.ask(*join(wire, "g", version=4)).error_code for _ in range(1_200)]
    assert outcomes.count(Error.MEMBER_ID_REQUIRED) == 1_000
    assert outcomes.count(Error.GROUP_MAX_SIZE_REACHED) == 200
    assert connect(broker.bootstrap).ask(*join(wire, "other")).error_code == 0


def test_many_idle_connections_are_held_cheaply(tmp_path, connect):
    with Broker(tmp_path / "data") as broker:
        before = resident_bytes()
        wires = [connect(broker.bootstrap) for _ in range(300)]
        assert is_served(wires[0])
        assert is_served(wires[-1])
        assert resident_bytes() - before < 100 * MIB


def test_ten_thousand_requests_sent_ahead_and_never_read_stop_being_taken(broker, wire, connect, make):
    wire.create("t")
    wire.socket.settimeout(0.3)
    request = wire.rpc.send(messages.MetadataRequest(topics=None), 12)
    before = resident_bytes()
    with suppress(TimeoutError):
        for _ in range(100):
            wire.socket.sendall(request * 1000)
    assert broker.stats()["connections"]["held_bytes"] < 4 * MIB
    assert resident_bytes() - before < 100 * MIB
    assert connect(broker.bootstrap).produce("t", make.records(b"v")).error_code == 0


def test_a_topic_that_is_gone_is_unknown_to_whoever_goes_on_producing_and_reading(wire, make):
    topic = wire.create("t")
    assert wire.produce("t", make.records(b"v")).error_code == 0
    states = [messages.DeleteTopicsRequest.DeleteTopicState(name="t")]
    assert wire.ask(messages.DeleteTopicsRequest(topics=states, timeout_ms=1000), 6).responses[0].error_code == 0
    assert wire.produce("t", make.records(b"v")).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert wire.fetch("t", 0).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert wire.fetch(topic.topic_id, 0, version=13).error_code == Error.UNKNOWN_TOPIC_ID
    assert wire.offset_at("t", -1).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


def test_a_clock_that_jumps_back_loses_nothing(tmp_path, connect, make, monkeypatch):
    now = [1_700_000_000_000]
    shim = SimpleNamespace(time_ns=lambda: now[0] * 1_000_000, monotonic_ns=clock.time.monotonic_ns)
    monkeypatch.setattr(clock, "time", shim)
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        wire.create("t", message_timestamp_type="LogAppendTime")
        for number in range(4):
            outcome = wire.produce("t", make.records(b"%d" % number))
            assert (outcome.base_offset, outcome.log_append_time_ms) == (number, now[0])
            now[0] -= 3_600_000
        values = [record.value for batch in read(wire.fetch("t", 0).records) for record in batch.records()]
        assert values == [b"0", b"1", b"2", b"3"]
        assert wire.offset_at("t", now[0] + 3_600_000).offset == 0
        who = wire.ask(messages.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000), 4)
        assert who.error_code == 0
        now[0] -= 86_400_000
        assert (
            wire.ask(messages.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000), 4).error_code
            == 0
        )
        assert wire.ask(*join(wire, "g")).error_code == 0


def test_many_searches_by_time_hold_up_no_reader(broker, wire, connect, make):
    wire.create("t", 100)
    for number in range(100):
        wire.produce("t", make.records(b"v", timestamp=1000 + number), number)
    request = messages.ListOffsetsRequest
    asked = [request.ListOffsetsPartition(partition_index=number, timestamp=1000) for number in range(100)]
    floods = [connect(broker.bootstrap) for _ in range(5)]
    for flood in floods * 4:
        flood.send(request(replica_id=-1, topics=[request.ListOffsetsTopic(name="t", partitions=asked)]), 7)
    for _ in range(10):
        assert wire.fetch("t", 0).error_code == 0
    assert all(len(flood.receive().topics[0].partitions) == 100 for flood in floods * 4)


def test_partitions_of_one_fetch_that_are_the_same_share_its_bytes(wire, make):
    wire.create("t")
    wire.produce("t", make.records(b"v" * 500_000))
    request = messages.FetchRequest
    wanted = request.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = [request.FetchTopic(topic="t", partitions=[wanted] * 2_000)]
    answer = wire.ask(request(max_wait_ms=0, min_bytes=0, max_bytes=2**31 - 1, topics=topics), 12)
    assert sum(len(partition.records or b"") for partition in answer.responses[0].partitions) <= 57_671_680
