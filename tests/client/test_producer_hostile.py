"""Brokers that answer a producer with what they should not, or never: it is told in time, and never as a success."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tagwire import messages
from tagwire.client import Client, Producer, ProducerIdentity, end_transaction
from tagwire.errors import (
    ConfigError,
    ConnectError,
    DecodeError,
    Error,
    KafkaError,
    ProtocolError,
    RequestTimeoutError,
    TagwireError,
)

from .fake_broker import FakeCluster, Late, Raw, Silence
from .produce_responses import TRANSACTIONS, added, coordinated_by, produced, refusing, responding


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as one:
        one.topic("t", 2)
        yield one


def of_another(message: Any, topic: str = "t", index: int = 0) -> Any:
    """Says that all went well, of another topic or partition than was asked for."""
    kind = messages.ProduceResponse
    entry = kind.PartitionProduceResponse(index=index, base_offset=7)
    return kind(responses=[kind.TopicProduceResponse(name=topic, partition_responses=[entry])])


def told_twice(message: Any) -> Any:
    answer = produced(message, base_offset=7)
    answer.responses += produced(message, error_code=Error.INVALID_RECORD, base_offset=-1).responses
    return answer


LIES: list[tuple[str, Callable[[Any], Any], type[TagwireError], str]] = [
    ("no word", lambda message: messages.ProduceResponse(), ProtocolError, "what became of t-1"),
    ("another partition", of_another, ProtocolError, "what became of t-1"),
    ("a negative partition", lambda message: of_another(message, index=-1), ProtocolError, "what became of t-1"),
    ("another topic", lambda message: of_another(message, "u", 1), ProtocolError, "what became of t-1"),
    ("the same partition twice", told_twice, ProtocolError, "what became of t-1"),
    ("offset -1", lambda message: produced(message, base_offset=-1), ProtocolError, "t-1 is said .* offset -1"),
    ("offset -2^63", lambda message: produced(message, base_offset=-(2**63)), ProtocolError, "offset -9223"),
    ("offset 2^63-1", lambda message: produced(message, base_offset=2**63 - 1), ProtocolError, "offset 9223"),
    ("an unknown error", lambda message: produced(message, error_code=9999), KafkaError, r"\(9999\): 1 record"),
    ("the error -2", lambda message: produced(message, error_code=-2), KafkaError, r"\(-2\): 1 record"),
    ("an error with an offset", lambda m: produced(m, error_code=87, base_offset=5), KafkaError, "INVALID_RECORD"),
]


@pytest.mark.parametrize("idempotence", [True, False])
@pytest.mark.parametrize(("name", "action", "kind", "says"), LIES, ids=[row[0] for row in LIES])
def test_an_answer_that_cannot_be_is_a_failure(
    cluster: FakeCluster, idempotence: bool, name: str, action: Any, kind: type[TagwireError], says: str
) -> None:
    cluster.script("Produce", action)
    with Producer(cluster.bootstrap, idempotence=idempotence) as producer:
        delivery = producer.send("t", b"v", partition=1)
        with pytest.raises(kind, match=says):
            producer.flush()
        with pytest.raises(kind, match=says):
            delivery.result(1)
        assert producer.send("t", b"w", partition=1).result(10).offset == 0


@pytest.mark.parametrize(("producer_id", "epoch"), [(-1, 0), (5, -1), (-(2**63), 0)])
def test_an_identity_that_cannot_be_is_a_failure(cluster: FakeCluster, producer_id: int, epoch: int) -> None:
    given = messages.InitProducerIdResponse(producer_id=producer_id, producer_epoch=epoch)
    cluster.script("InitProducerId", responding(given))
    with Producer(cluster.bootstrap) as producer:
        producer.send("t", b"v", partition=0)
        with pytest.raises(ProtocolError, match=f"producer id {producer_id} at epoch {epoch}"):
            producer.flush()
        assert producer.send("t", b"w", partition=0).result(10).offset == 0


RAW: list[tuple[str, bytes, type[TagwireError]]] = [
    ("another correlation id", b"\0\0\0\x0a\x7f\xff\xff\xff\0\x01\0\0\0\0", ProtocolError),
    ("a frame of -1 bytes", b"\xff\xff\xff\xff", ProtocolError),
    ("a frame of 2 GiB", b"\x7f\xff\xff\xff", ProtocolError),
    ("another protocol", b"HTTP/1.1 400 Bad Request\r\n\r\n", ProtocolError),
]


@pytest.mark.parametrize(("name", "data", "kind"), RAW, ids=[row[0] for row in RAW])
def test_bytes_that_are_no_answer_are_a_failure(
    cluster: FakeCluster, name: str, data: bytes, kind: type[TagwireError]
) -> None:
    cluster.script("Produce", Raw(data))
    with Producer(cluster.bootstrap) as producer:
        delivery = producer.send("t", b"v", partition=0)
        with pytest.raises(kind):
            delivery.result(10)
        with pytest.raises(kind):
            producer.flush()


def truncated(cluster: FakeCluster) -> bytes:
    """An answer to the next request of the connection, cut within its body, in a frame of the right length."""
    correlation = len([name for _, name, _, _ in cluster.seen])
    body = correlation.to_bytes(4, "big") + b"\0\x7f"
    return len(body).to_bytes(4, "big") + body


def test_an_answer_that_cannot_be_decoded_is_a_failure(cluster: FakeCluster) -> None:
    with Producer(cluster.bootstrap) as producer:
        producer.send("t", b"v", partition=0).result(10)
        cluster.script("Produce", Raw(truncated(cluster)))
        delivery = producer.send("t", b"w", partition=0)
        with pytest.raises((DecodeError, ProtocolError)):
            delivery.result(10)
        with pytest.raises((DecodeError, ProtocolError)):
            producer.flush()


@pytest.mark.parametrize("api", ["Produce", "InitProducerId"])
def test_a_broker_that_never_answers_costs_no_more_than_the_timeout(cluster: FakeCluster, api: str) -> None:
    cluster.script(api, *[Silence()] * 20)
    with Client(cluster.bootstrap, timeout=0.3) as client, Producer(client, timeout=0.8) as producer:
        delivery = producer.send("t", b"v", partition=0)
        with pytest.raises(RequestTimeoutError):
            producer.flush()
        assert delivery.done()
        assert isinstance(delivery.exception(0), RequestTimeoutError)


def test_a_broker_that_is_gone_costs_no_more_than_the_timeout(cluster: FakeCluster) -> None:
    with Client(cluster.bootstrap, timeout=0.3) as client, Producer(client, timeout=0.8) as producer:
        producer.send("t", b"v", partition=0).result(10)
        cluster.brokers[0].stop()
        delivery = producer.send("t", b"w", partition=0)
        with pytest.raises(TagwireError):
            delivery.result(20)
        with pytest.raises(TagwireError):
            producer.flush()
    assert len(cluster.topics["t"][0].batches) == 1


def test_waiting_has_an_end_of_its_own(cluster: FakeCluster) -> None:
    cluster.script("Produce", Late(1.0))
    with Producer(cluster.bootstrap) as producer:
        delivery = producer.send("t", b"v", partition=0)
        with pytest.raises(RequestTimeoutError, match=r"t-0: not delivered within 0\.05 s; it is tried further"):
            delivery.result(0.05)
        with pytest.raises(RequestTimeoutError, match="1 batches were not delivered in time"):
            producer.flush(0.05)
        producer.flush()
        assert delivery.result(0).offset == 0


@pytest.mark.parametrize(
    "error",
    [Error.OUT_OF_ORDER_SEQUENCE_NUMBER, Error.UNKNOWN_PRODUCER_ID, Error.INVALID_PRODUCER_EPOCH],
    ids=lambda error: error.name,
)
def test_refusals_without_end_end_with_the_timeout(cluster: FakeCluster, error: Error) -> None:
    cluster.script("Produce", *[refusing(error)] * 100)
    with Producer(cluster.bootstrap, timeout=0.3) as producer:
        producer.send("t", b"v", partition=0)
        with pytest.raises(KafkaError, match=error.name):
            producer.flush()
    assert not cluster.topics["t"][0].batches


# Coordinators --------------------------------------------------------------------------------------------------------


@pytest.fixture
def coordinator(cluster: FakeCluster) -> FakeCluster:
    answers = {
        "FindCoordinator": coordinated_by(0, cluster.brokers[0].port),
        "AddPartitionsToTxn": added,
        "EndTxn": lambda message: messages.EndTxnResponse(),
    }
    cluster.serve(TRANSACTIONS, answers)
    return cluster


def ending(error: Error) -> Callable[[Any], Any]:
    return responding(messages.EndTxnResponse(error_code=error))


def test_an_end_is_repeated_until_somebody_answers_it(coordinator: FakeCluster) -> None:
    errors = (Error.CONCURRENT_TRANSACTIONS, Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR)
    coordinator.script("EndTxn", *[ending(error) for error in errors])
    assert end_transaction(coordinator.bootstrap, "x", 5, 1, commit=True) == ProducerIdentity(5, 1, 1, None)
    asked = coordinator.requests("EndTxn")
    assert {(message.producer_id, message.producer_epoch, message.committed) for message in asked} == {(5, 1, True)}
    assert len(asked) == 4
    assert set(coordinator.requested_versions("EndTxn")) == {4}


def test_an_end_of_transaction_version_2_is_spoken_as_such_and_gives_a_new_identity(coordinator: FakeCluster) -> None:
    coordinator.script("EndTxn", responding(messages.EndTxnResponse(producer_id=6, producer_epoch=0)))
    assert end_transaction(coordinator.bootstrap, "x", 5, 1, commit=False, transaction_version=2) == ProducerIdentity(
        6, 0, 2
    )
    assert coordinator.requested_versions("EndTxn") == [5]


@pytest.mark.parametrize("error", [Error.INVALID_TXN_STATE, Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_ID_MAPPING])
def test_an_end_that_cannot_be_is_refused_once(coordinator: FakeCluster, error: Error) -> None:
    coordinator.script("EndTxn", ending(error))
    with pytest.raises(KafkaError, match=f"{error.name}.*commit the transaction of 'x', producer 5 at epoch 1"):
        end_transaction(coordinator.bootstrap, "x", 5, 1, commit=True)
    assert len(coordinator.requests("EndTxn")) == 1


def test_there_are_two_transaction_versions(coordinator: FakeCluster) -> None:
    with pytest.raises(ConfigError, match="transaction_version=0"):
        end_transaction(coordinator.bootstrap, "x", 5, 1, commit=True, transaction_version=0)
    with Producer(coordinator.bootstrap, transactional_id="x") as producer, pytest.raises(ConfigError, match="=3"):
        producer.init_transactions(resume=ProducerIdentity(5, 1, 3))


def test_an_end_that_nobody_answers_is_unknown_in_time(coordinator: FakeCluster) -> None:
    coordinator.script("EndTxn", *[Silence()] * 20)
    late = (RequestTimeoutError, ConnectError)
    with Client(coordinator.bootstrap, timeout=0.3) as client, pytest.raises(late):
        end_transaction(client, "x", 5, 1, commit=True, timeout=1.0)
    assert len(coordinator.requests("EndTxn")) >= 2


def test_a_commit_whose_outcome_is_unknown_can_be_gone_on_with_and_nothing_else(coordinator: FakeCluster) -> None:
    with Client(coordinator.bootstrap, timeout=0.5) as client, Producer(client, transactional_id="x") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"v")
        coordinator.script("EndTxn", Silence())
        with pytest.raises(RequestTimeoutError):
            producer.commit_transaction(0.3)
        for call in (producer.abort_transaction, producer.begin_transaction):
            with pytest.raises(TagwireError, match="is being committed; commit_transaction goes on with that"):
                call()
        producer.commit_transaction()
        with producer.transaction():
            producer.send("t", b"w")


def test_offsets_that_a_group_refuses_fail_the_transaction(coordinator: FakeCluster) -> None:
    kind = messages.TxnOffsetCommitResponse
    refused = kind.TxnOffsetCommitResponsePartition(partition_index=0, error_code=Error.ILLEGAL_GENERATION)
    answer = kind(topics=[kind.TxnOffsetCommitResponseTopic(name="t", partitions=[refused])])
    coordinator.serve({}, {"AddOffsetsToTxn": responding(messages.AddOffsetsToTxnResponse())})
    coordinator.serve({}, {"TxnOffsetCommit": responding(answer)})
    with Producer(coordinator.bootstrap, transactional_id="x") as producer:
        producer.init_transactions()
        with pytest.raises(KafkaError, match=r"ILLEGAL_GENERATION.*group 'g'"), producer.transaction():
            producer.send_offsets({("t", 0): 1}, "g")
        assert [message.committed for message in coordinator.requests("EndTxn")] == [False]


def test_partitions_that_may_not_be_added_fail_the_transaction(coordinator: FakeCluster) -> None:
    def refuse(message: Any) -> Any:
        answer = added(message)
        answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code = 29
        return answer

    coordinator.script("AddPartitionsToTxn", refuse)
    with Producer(coordinator.bootstrap, transactional_id="x") as producer:
        producer.init_transactions()
        with pytest.raises(KafkaError, match=r"TOPIC_AUTHORIZATION_FAILED.*add partitions"), producer.transaction():
            producer.send("t", b"v")
        with producer.transaction():
            producer.send("t", b"w")


def test_a_number_that_is_lost_in_a_transaction_needs_a_new_epoch(coordinator: FakeCluster) -> None:
    renewed = [messages.InitProducerIdResponse(producer_id=5, producer_epoch=epoch) for epoch in (0, 1)]
    coordinator.script("InitProducerId", *map(responding, renewed))
    with Producer(coordinator.bootstrap, transactional_id="x") as producer:
        producer.init_transactions()
        coordinator.script("Produce", refusing(Error.OUT_OF_ORDER_SEQUENCE_NUMBER))
        with pytest.raises(KafkaError, match="OUT_OF_ORDER"), producer.transaction():
            producer.send("t", b"v", partition=0)
        with producer.transaction():
            assert producer.send("t", b"w", partition=0).result(10).offset == 0
        assert (producer.identity.producer_id, producer.identity.epoch) == (5, 1)
    again = coordinator.requests("InitProducerId")[1]
    assert (again.transactional_id, again.producer_id, again.producer_epoch) == ("x", 5, 0)


def test_a_coordinator_that_hangs_up_for_ever_is_told_in_time(coordinator: FakeCluster) -> None:
    coordinator.serve({}, {"FindCoordinator": coordinated_by(9, 1)})
    with (
        Client(coordinator.bootstrap, timeout=0.3) as client,
        Producer(client, transactional_id="x") as producer,
        pytest.raises(ConnectError, match="broker 9"),
    ):
        producer.init_transactions(0.6)


@pytest.fixture
def deaf() -> Iterator[FakeCluster]:
    """The second of two brokers takes connections, and never says a word."""
    with FakeCluster(2) as cluster:
        cluster.topic("t", 2)
        port = cluster.brokers[1].port
        cluster.brokers[1].stop()
        with socket.create_server(("127.0.0.1", port)):
            yield cluster


def test_a_leader_that_keeps_silent_when_connected_to_holds_up_no_other(deaf: FakeCluster) -> None:
    with Producer(f"127.0.0.1:{deaf.brokers[0].port}", timeout=20, linger=0) as producer:
        stuck = producer.send("t", b"to the deaf one", partition=1)
        deliveries = [producer.send("t", b"to the other", partition=0) for _ in range(10)]
        assert [each.result(timeout=10).offset for each in deliveries] == list(range(10))
        assert not stuck.done()
        with pytest.raises(RequestTimeoutError):
            producer.close(timeout=0)
    with pytest.raises(TagwireError, match="closed before this was delivered"):
        stuck.result(timeout=5)
