"""Both versions of transactions, as a coordinator sees them: which requests in which version, under which epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tagwire import messages
from tagwire.client import Producer
from tagwire.errors import Error, KafkaError, ProducerFencedError, TagwireError, UnsupportedVersionError
from tagwire.spec.api_keys import ApiKey

from .fake_broker import FakeCluster, FakePartition, LostResponse
from .produce_responses import TRANSACTIONS, added, committed, coordinated_by, refusing, responding
from .stored import headers_in


class Coordinator:
    """Gives out epochs: with transaction version 2 a new one for each end."""

    def __init__(self, cluster: FakeCluster, version: int) -> None:
        self.epoch = -1
        self.version = version
        answers: dict[str, Callable[[Any], Any]] = {
            "FindCoordinator": coordinated_by(0, cluster.brokers[0].port),
            "AddPartitionsToTxn": added,
            "AddOffsetsToTxn": responding(messages.AddOffsetsToTxnResponse()),
            "TxnOffsetCommit": committed,
            "InitProducerId": self.initialize,
            "EndTxn": self.end,
        }
        cluster.serve(TRANSACTIONS, answers)
        cluster.serve({}, {"ApiVersions": lambda message: self.features(cluster)})

    def features(self, cluster: FakeCluster) -> Any:
        kind = messages.ApiVersionsResponse
        level = kind.FinalizedFeatureKey(
            name="transaction.version", max_version_level=self.version, min_version_level=0
        )
        return kind(
            api_keys=[
                kind.ApiVersion(api_key=api, min_version=low, max_version=high)
                for api, (low, high) in cluster.served.items()
            ],
            finalized_features_epoch=self.version,
            finalized_features=[level],
        )

    def initialize(self, message: Any) -> Any:
        self.epoch += 1
        return messages.InitProducerIdResponse(producer_id=5, producer_epoch=self.epoch)

    def end(self, message: Any) -> Any:
        if self.version == 1:
            return messages.EndTxnResponse()
        self.epoch = message.producer_epoch + 1  # the same end again is answered alike
        return messages.EndTxnResponse(producer_id=5, producer_epoch=self.epoch)


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as one:
        one.topic("t", 2)
        yield one


def numbers(partition: FakePartition) -> list[tuple[int, int]]:
    """The epoch and the first sequence of each batch."""
    found = headers_in(partition)
    assert all(header.is_transactional for header in found)
    return [(header.producer_epoch, header.base_sequence) for header in found]


def test_version_1_adds_partitions_and_counts_on(cluster: FakeCluster) -> None:
    Coordinator(cluster, 1)
    with Producer(cluster.bootstrap, transactional_id="x") as producer:
        producer.init_transactions()
        for _ in range(2):
            with producer.transaction():
                for partition in (0, 1, 0):
                    producer.send("t", b"v", partition=partition).result(10)
                producer.send_offsets({("t", 0): 1}, "g")
        assert producer.identity.transaction_version == 1
    added_partitions = [
        (topic.name, partition)
        for message in cluster.requests("AddPartitionsToTxn")
        for topic in message.v3_and_below_topics
        for partition in topic.partitions
    ]
    assert added_partitions == [("t", 0), ("t", 1)] * 2
    assert numbers(cluster.topics["t"][0]) == [(0, sequence) for sequence in range(4)]
    assert set(cluster.requested_versions("Produce")) == {11}
    assert set(cluster.requested_versions("EndTxn")) == {4}
    assert set(cluster.requested_versions("TxnOffsetCommit")) == {4}
    assert len(cluster.requests("AddOffsetsToTxn")) == 2
    assert {message.transactional_id for message in cluster.requests("Produce")} == {"x"}


def test_version_2_adds_nothing_and_starts_anew_each_time(cluster: FakeCluster) -> None:
    Coordinator(cluster, 2)
    with Producer(cluster.bootstrap, transactional_id="x") as producer:
        producer.init_transactions()
        for _ in range(2):
            with producer.transaction():
                for partition in (0, 1, 0):
                    producer.send("t", b"v", partition=partition).result(10)
                producer.send_offsets({("t", 0): 1}, "g")
        assert (producer.identity.transaction_version, producer.identity.epoch) == (2, 2)
    assert cluster.requests("AddPartitionsToTxn") == []
    assert cluster.requests("AddOffsetsToTxn") == []
    assert numbers(cluster.topics["t"][0]) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert set(cluster.requested_versions("Produce")) == {12}
    assert set(cluster.requested_versions("EndTxn")) == {5}
    assert set(cluster.requested_versions("TxnOffsetCommit")) == {5}


@pytest.mark.parametrize("version", [1, 2])
def test_an_end_whose_response_is_lost_is_sent_again_as_it_was(cluster: FakeCluster, version: int) -> None:
    Coordinator(cluster, version)
    with Producer(cluster.bootstrap, transactional_id="x") as producer:
        producer.init_transactions()
        for commit in (True, False):
            cluster.script("EndTxn", LostResponse(), LostResponse())
            producer.begin_transaction()
            producer.send("t", b"v", partition=0).result(10)
            (producer.commit_transaction if commit else producer.abort_transaction)()
    asked = [(message.producer_epoch, message.committed) for message in cluster.requests("EndTxn")]
    assert asked == [(0, True)] * 3 + [(version - 1, False)] * 3


def test_with_version_2_the_abort_gives_the_epoch_that_a_lost_number_needs(cluster: FakeCluster) -> None:
    Coordinator(cluster, 2)
    with Producer(cluster.bootstrap, transactional_id="x") as producer:
        producer.init_transactions()
        cluster.script("Produce", refusing(Error.OUT_OF_ORDER_SEQUENCE_NUMBER))
        with pytest.raises(KafkaError, match="OUT_OF_ORDER"), producer.transaction():
            producer.send("t", b"v", partition=0)
        with producer.transaction():
            producer.send("t", b"w", partition=0)
    assert numbers(cluster.topics["t"][0]) == [(1, 0)]
    assert len(cluster.requests("InitProducerId")) == 1


FATAL = [
    ("AddPartitionsToTxn", 1, Error.INVALID_PRODUCER_EPOCH, True),
    ("AddPartitionsToTxn", 1, Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, False),
    ("EndTxn", 1, Error.PRODUCER_FENCED, True),
    ("EndTxn", 2, Error.INVALID_TXN_STATE, False),
    ("InitProducerId", 1, Error.CLUSTER_AUTHORIZATION_FAILED, False),
    ("Produce", 2, Error.PRODUCER_FENCED, True),
]


@pytest.mark.parametrize(("api", "version", "error", "fenced"), FATAL)
def test_what_is_fatal_to_the_producer_is_raised_ever_after(
    cluster: FakeCluster, api: str, version: int, error: Error, fenced: bool
) -> None:
    Coordinator(cluster, version)

    def refuse(message: Any) -> Any:
        if api == "AddPartitionsToTxn":
            answer = added(message)
            answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code = error
            return answer
        return getattr(messages, f"{api}Response")(error_code=error)

    cluster.script(api, refusing(error) if api == "Produce" else refuse)
    kind = ProducerFencedError if fenced else KafkaError

    def work() -> None:
        producer.init_transactions()
        with producer.transaction():
            producer.send("t", b"v", partition=0)

    with Producer(cluster.bootstrap, transactional_id="x") as producer:
        with pytest.raises(kind, match=error.name):
            work()
        if api != "InitProducerId":  # before it succeeds nothing is lost: it may be tried again
            for call in (producer.begin_transaction, producer.init_transactions, producer.commit_transaction):
                with pytest.raises(kind, match=error.name):
                    call()


def test_a_cluster_may_settle_on_version_2_between_transactions(cluster: FakeCluster) -> None:
    coordinator = Coordinator(cluster, 1)
    with Producer(cluster.bootstrap, transactional_id="x") as producer:
        producer.init_transactions()
        for number in range(3):
            with producer.transaction():
                if number == 1:
                    coordinator.version = 2
                    cluster.brokers[0].drop()  # it is told on the next connection
                producer.send("t", b"v", partition=0)
    assert cluster.requested_versions("EndTxn") == [4, 4, 5]
    assert numbers(cluster.topics["t"][0]) == [(0, 0), (0, 1), (0, 2)]


@pytest.mark.parametrize("offsets_first", [False, True])
def test_a_broker_may_come_back_as_an_older_release_between_transactions(
    cluster: FakeCluster, offsets_first: bool
) -> None:
    coordinator = Coordinator(cluster, 2)
    newer = dict(cluster.served)
    older = {ApiKey.PRODUCE: (3, 11), ApiKey.END_TXN: (0, 4), ApiKey.TXN_OFFSET_COMMIT: (0, 4)}
    with Producer(cluster.bootstrap, transactional_id="x") as producer:
        producer.init_transactions()
        for version, served in ((2, newer), (1, older), (1, older), (2, newer), (2, newer)):
            coordinator.version = version
            cluster.served.update(served)
            cluster.brokers[0].drop()  # it is told on the next connection
            with producer.transaction():
                if offsets_first:
                    producer.send_offsets({("t", 0): 1}, "g")
                producer.send("t", b"v", partition=0)
    assert cluster.requested_versions("EndTxn") == [5, 4, 4, 4, 5]
    assert numbers(cluster.topics["t"][0]) == [(0, 0), (1, 0), (1, 1), (1, 2), (1, 3)]
    assert len(cluster.requests("AddPartitionsToTxn")) == 3


def test_a_leader_without_any_version_to_speak_is_told_and_breaks_nothing_down(cluster: FakeCluster) -> None:
    Coordinator(cluster, 2)
    cluster.serve({ApiKey.PRODUCE: (0, 2)}, {})
    with Producer(cluster.bootstrap, transactional_id="x") as producer:
        producer.init_transactions()
        with pytest.raises(UnsupportedVersionError, match="Produce"), producer.transaction():
            producer.send("t", b"v", partition=0)


def test_offsets_of_version_2_are_not_left_with_a_coordinator_that_would_not_add_them(cluster: FakeCluster) -> None:
    Coordinator(cluster, 2)
    cluster.serve({ApiKey.TXN_OFFSET_COMMIT: (0, 4)}, {})
    with Producer(cluster.bootstrap, transactional_id="x") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        with pytest.raises(UnsupportedVersionError, match="TxnOffsetCommit"):
            producer.send_offsets({("t", 0): 1}, "g")
        producer.close(abort=False)
    assert cluster.requests("TxnOffsetCommit") == []


def test_what_was_not_even_sent_with_version_2_has_the_numbers_go_on_from_version_1(cluster: FakeCluster) -> None:
    coordinator = Coordinator(cluster, 1)
    with Producer(cluster.bootstrap, transactional_id="x", timeout=0.3, linger=0) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send("t", b"a", partition=0).result(10)
            coordinator.version = 2
            cluster.brokers[0].drop()  # it is told on the next connection
        assert producer.identity.transaction_version == 2
        cluster.brokers[0].stop()
        with pytest.raises(TagwireError), producer.transaction():
            producer.send("t", b"b", partition=0)
        cluster.brokers[0].start()
        with producer.transaction():
            producer.send("t", b"c", partition=0)
    assert numbers(cluster.topics["t"][0]) == [(0, 0), (0, 1)]


def test_a_batch_that_came_before_the_last_transaction_was_over_may_still_be_split(cluster: FakeCluster) -> None:
    Coordinator(cluster, 2)
    cluster.script("Produce", refusing(Error.CONCURRENT_TRANSACTIONS), refusing(Error.MESSAGE_TOO_LARGE))
    with Producer(cluster.bootstrap, transactional_id="x", linger=10) as producer:
        producer.init_transactions()
        with producer.transaction():
            for _ in range(4):
                producer.send("t", b"v", partition=0)
    assert numbers(cluster.topics["t"][0]) == [(0, 0), (0, 2)]
