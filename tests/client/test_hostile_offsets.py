"""Offsets, epochs and ids in answers that none can be, told without an error code: none is believed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tagwire import messages
from tagwire.client import EARLIEST, LATEST, Admin, AtTimestamp, Client, GroupMetadata, Producer, Reader, TopicPartition
from tagwire.errors import Error, KafkaError, RemoteProtocolError

from .admin_responses import SERVED, Looked
from .fake_broker import FakeCluster
from .logs import fill, offsets
from .produce_responses import TRANSACTIONS, added, coordinated_by

AT = ("t", 0)


@pytest.fixture
def looked() -> Looked:
    return Looked()


@pytest.fixture
def cluster(looked: Looked) -> Iterator[FakeCluster]:
    with FakeCluster() as one:
        fill(one.topic("t")[0], 5)
        one.serve(SERVED, looked.responses())
        yield one


def listed(*offsets: int, index: int = 0) -> Callable[[Any], Any]:
    """Answers ListOffsets: these offsets of one partition."""
    kind = messages.ListOffsetsResponse

    def answer(message: Any) -> Any:
        told = [kind.ListOffsetsPartitionResponse(partition_index=index, offset=offset) for offset in offsets]
        return kind(topics=[kind.ListOffsetsTopicResponse(name="t", partitions=told)])

    return answer


# ListOffsets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [-1, -2, -7, -(2**63)])
@pytest.mark.parametrize("bound", [EARLIEST, LATEST])
def test_a_bound_of_a_partition_is_no_negative_offset(cluster: FakeCluster, bound: int, offset: int) -> None:
    cluster.script("ListOffsets", listed(offset))
    with Client(cluster.bootstrap) as client, pytest.raises(RemoteProtocolError, match=rf"told offset {offset} of t-0"):
        client.list_offsets({AT: bound})


def test_only_a_time_may_have_no_offset(cluster: FakeCluster) -> None:
    with Client(cluster.bootstrap) as client:
        cluster.script("ListOffsets", listed(-1))
        assert client.list_offsets({AT: 10_000}) == {AT: -1}
        cluster.script("ListOffsets", listed(-2))
        with pytest.raises(RemoteProtocolError, match="told offset -2 of t-0"):
            client.list_offsets({AT: 10_000})


@pytest.mark.parametrize("offset", [-1, -7])
@pytest.mark.parametrize("answers_before", [0, 1], ids=["where it begins", "where it ends"])
def test_a_read_to_the_end_does_not_end_early(cluster: FakeCluster, answers_before: int, offset: int) -> None:
    cluster.script("ListOffsets", *[listed(0)] * answers_before, listed(offset))
    with pytest.raises(RemoteProtocolError, match=rf"offset {offset} of t-0"):
        Reader(cluster.bootstrap, {AT: EARLIEST}, stop_at_end=True)
    with Reader(cluster.bootstrap, {AT: AtTimestamp(10_000)}, end_offsets={AT: 50}) as reader:  # none is so late
        assert offsets(reader) == {}
    with Reader(cluster.bootstrap, {AT: EARLIEST}, stop_at_end=True) as reader:
        assert offsets(reader) == {AT: list(range(50))}


def test_a_partition_does_not_end_before_it_begins(cluster: FakeCluster) -> None:
    cluster.script("ListOffsets", listed(50), listed(20))
    with pytest.raises(RemoteProtocolError, match="t-0 is told to begin at offset 50 and to end at 20"):
        Reader(cluster.bootstrap, {AT: EARLIEST}, stop_at_end=True)


@pytest.mark.parametrize("answer", [listed(3, 4), listed(3, index=1), listed(3, index=-1)])
def test_an_offset_is_told_once_and_of_what_was_asked(cluster: FakeCluster, answer: Any) -> None:
    cluster.script("ListOffsets", answer)
    with Client(cluster.bootstrap) as client, pytest.raises(RemoteProtocolError, match="twice, or not requested"):
        client.list_offsets({AT: LATEST})


# Fetch ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("isolation", "field", "value"),
    [
        ("read_committed", "last_stable_offset", -1),
        ("read_committed", "last_stable_offset", -7),
        ("read_uncommitted", "high_watermark", -7),
    ],
)
def test_the_end_that_a_fetch_tells_can_be_one(cluster: FakeCluster, isolation: str, field: str, value: int) -> None:
    def lie(message: Any) -> Any:
        answer = cluster._Fetch(message, 0)
        setattr(answer.responses[0].partitions[0], field, value)
        return answer

    cluster.script("Fetch", lie)
    says = rf"told {value} as the {field.replace('_', ' ')} of t-0"
    reader = Reader(cluster.bootstrap, {AT: 0}, end_offsets={AT: 50}, isolation=isolation)
    with reader, pytest.raises(RemoteProtocolError, match=says):
        next(reader)


def test_a_fetch_tells_of_a_partition_once(cluster: FakeCluster) -> None:
    def lie(message: Any) -> Any:
        answer = cluster._Fetch(message, 0)
        answer.responses += answer.responses
        return answer

    cluster.script("Fetch", lie)
    reader = Reader(cluster.bootstrap, {AT: 0}, end_offsets={AT: 50})
    with reader, pytest.raises(RemoteProtocolError, match="t-0 twice, or not requested"):
        next(reader)


# Groups and administration --------------------------------------------------------------------------------------------


def committed(offset: int, epoch: int = -1, *, index: int = 0, times: int = 1) -> Callable[[Any], Any]:
    kind = messages.OffsetFetchResponse
    one = kind.OffsetFetchResponsePartitions(
        partition_index=index, committed_offset=offset, committed_leader_epoch=epoch
    )
    topics = [kind.OffsetFetchResponseTopics(name="t", partitions=[one] * times)]
    return lambda message: kind(groups=[kind.OffsetFetchResponseGroup(group_id="g", topics=topics)])


@pytest.mark.parametrize("partitions", [None, [AT]])
@pytest.mark.parametrize("answer", [committed(-2), committed(-(2**63)), committed(5, -2), committed(5, times=2)])
def test_a_group_stands_at_an_offset_or_at_none(cluster: FakeCluster, partitions: Any, answer: Any) -> None:
    cluster.script("OffsetFetch", answer)
    with Admin(cluster.bootstrap) as admin, pytest.raises(RemoteProtocolError, match="offsets of group 'g': t-0 is"):
        admin.group_offsets("g", partitions)


def test_a_group_is_not_told_to_stand_in_a_partition_that_was_not_asked_for(cluster: FakeCluster) -> None:
    def both(message: Any) -> Any:
        answer = committed(5)(message)
        answer.groups[0].topics += committed(7, index=1)(message).groups[0].topics
        return answer

    cluster.script("OffsetFetch", both, committed(5, index=-1))
    with Admin(cluster.bootstrap) as admin:
        with pytest.raises(RemoteProtocolError, match="t-1 is told twice, or was not requested"):
            admin.group_offsets("g", [AT])
        with pytest.raises(RemoteProtocolError, match="t--1 is told"):
            admin.group_offsets("g")


def test_records_are_not_deleted_up_to_a_negative_offset(cluster: FakeCluster) -> None:
    kind = messages.DeleteRecordsResponse
    told = kind.DeleteRecordsPartitionResult(partition_index=0, low_watermark=-1)
    answer = kind(topics=[kind.DeleteRecordsTopicResult(name="t", partitions=[told])])
    cluster.script("DeleteRecords", lambda message: answer)
    with (
        Admin(cluster.bootstrap) as admin,
        pytest.raises(RemoteProtocolError, match="said to begin at offset -1"),
    ):
        admin.delete_records({AT: 5})


def test_a_coordinator_of_another_group_makes_nobody_touch_that_group(cluster: FakeCluster, looked: Looked) -> None:
    def another_too(message: Any) -> Any:
        message.coordinator_keys.append("other")
        return looked.FindCoordinator(message)

    cluster.script("FindCoordinator", another_too)
    with (
        Admin(cluster.bootstrap) as admin,
        pytest.raises(RemoteProtocolError, match="'other': told, and not requested"),
    ):
        admin.delete_groups(["g"])
    assert cluster.requests("DeleteGroups") == []


def test_no_coordinator_has_a_negative_id(cluster: FakeCluster) -> None:
    cluster.script("FindCoordinator", coordinated_by(-1, 9092))
    with Admin(cluster.bootstrap) as admin, pytest.raises(RemoteProtocolError, match="group 'g': told to be broker -1"):
        admin.group_offsets("g")


# Metadata -------------------------------------------------------------------------------------------------------------


def changed(change: Callable[[Any], None]) -> Callable[[FakeCluster], Callable[[Any], Any]]:
    def lie(cluster: FakeCluster) -> Callable[[Any], Any]:
        def answer(message: Any) -> Any:
            found = cluster._Metadata(message, 0)
            change(found)
            return found

        return answer

    return lie


CONTRADICTIONS = [
    ("broker 0, told twice", lambda answer: answer.brokers.append(answer.brokers[0])),
    ("broker -1, which none can be", lambda answer: setattr(answer.brokers[0], "node_id", -1)),
    ("topic 't', told twice", lambda answer: answer.topics.append(answer.topics[0])),
    ("partition 0, told twice", lambda answer: answer.topics[0].partitions.append(answer.topics[0].partitions[0])),
    ("partition -5, which none", lambda answer: setattr(answer.topics[0].partitions[0], "partition_index", -5)),
]


@pytest.mark.parametrize(("says", "change"), CONTRADICTIONS, ids=[says for says, _ in CONTRADICTIONS])
def test_metadata_tells_of_everything_once(cluster: FakeCluster, says: str, change: Callable[[Any], None]) -> None:
    cluster.script("Metadata", changed(change)(cluster))
    with Client(cluster.bootstrap) as client:
        with pytest.raises(RemoteProtocolError, match=says):
            client.metadata(["t"])
        assert set(client.metadata(["t", "t"]).topics) == {"t"}


def test_a_refusal_that_tells_of_broker_minus_one_is_followed_nowhere(cluster: FakeCluster) -> None:
    def moved(message: Any) -> Any:
        answer = cluster._Fetch(message, 0)
        kind = messages.FetchResponse
        partition = answer.responses[0].partitions[0]
        partition.error_code, partition.records = Error.NOT_LEADER_OR_FOLLOWER, None
        partition.current_leader = kind.LeaderIdAndEpoch(leader_id=-1, leader_epoch=7)
        answer.node_endpoints = [kind.NodeEndpoint(node_id=-1, host="127.0.0.1", port=1)]
        return answer

    cluster.served[1] = (4, 17)
    cluster.script("Fetch", moved)
    with Reader(cluster.bootstrap, {AT: 0}, end_offsets={AT: 50}) as reader:
        assert offsets(reader) == {AT: list(range(50))}


# Transactions ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def coordinator(cluster: FakeCluster) -> FakeCluster:
    answers = {
        "FindCoordinator": coordinated_by(0, cluster.brokers[0].port),
        "AddPartitionsToTxn": added,
        "AddOffsetsToTxn": lambda message: messages.AddOffsetsToTxnResponse(),
        "EndTxn": lambda message: messages.EndTxnResponse(),
    }
    cluster.serve(TRANSACTIONS, answers)
    return cluster


def test_partitions_are_not_taken_to_be_added_because_nothing_is_said(coordinator: FakeCluster) -> None:
    coordinator.script("AddPartitionsToTxn", lambda message: messages.AddPartitionsToTxnResponse())
    with Producer(coordinator.bootstrap, transactional_id="x") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"v", partition=0)
        with pytest.raises(RemoteProtocolError, match="no word of t-0"):
            producer.flush()


def test_partitions_are_not_added_where_none_was_attempted(coordinator: FakeCluster) -> None:
    def not_attempted(message: Any) -> Any:
        answer = added(message)
        for topic in answer.results_by_topic_v3_and_below:
            for found in topic.results_by_partition:
                found.partition_error_code = Error.OPERATION_NOT_ATTEMPTED
        return answer

    coordinator.script("AddPartitionsToTxn", not_attempted)
    with Producer(coordinator.bootstrap, transactional_id="x") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"v", partition=0)
        with pytest.raises(KafkaError, match="OPERATION_NOT_ATTEMPTED"):
            producer.flush()


def test_offsets_are_not_taken_to_be_committed_because_nothing_is_said(coordinator: FakeCluster) -> None:
    coordinator.script("TxnOffsetCommit", lambda message: messages.TxnOffsetCommitResponse())
    with Producer(coordinator.bootstrap, transactional_id="x") as producer:
        producer.init_transactions()
        with pytest.raises(RemoteProtocolError, match="no word of t-0"), producer.transaction():
            producer.send_offsets({TopicPartition("t", 0): 5}, GroupMetadata("g"))
