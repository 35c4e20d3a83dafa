"""Idempotence: each batch is appended once and in order, whatever is lost or refused on the way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwire import messages, records
from tagwire.client import Client, Producer, ProducerIdentity, TopicPartition
from tagwire.client.network_client import NetworkClient
from tagwire.client.transport import Transport
from tagwire.errors import ConfigError, Error, KafkaError, TagwireError, UnsupportedVersionError

from ..limits import wait_until
from .fake_broker import SERVED, Close, FakeCluster, FakePartition, Late, LostResponse, NoResponse
from .produce_responses import TRANSACTIONS, added, coordinated_by, produced, refusing, responding
from .stored import headers_in, values_in


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as one:
        yield one


def send_each(producer: Producer, count: int, start: int = 0) -> list[Any]:
    """A batch for each record."""
    return [producer.send("t", b"%d" % number + b" " * 100) for number in range(start, start + count)]


def numbers(partition: FakePartition) -> list[int]:
    return [int(value or b"") for value in values_in(partition)]


def test_each_partition_counts_its_own_records(cluster: FakeCluster) -> None:
    logs = cluster.topic("t", 2)
    with Producer(cluster.bootstrap) as producer:
        for count in (3, 2):
            for partition in (0, 1):
                for _ in range(count + partition):
                    producer.send("t", b"v", partition=partition)
            producer.flush()
        identity = producer.identity
    for log, sequences in zip(logs, ([0, 3], [0, 4])):
        found = headers_in(log)
        assert [header.base_sequence for header in found] == sequences
        assert {(header.producer_id, header.producer_epoch) for header in found} == {(100, 0)}
        assert not any(header.is_transactional for header in found)
    assert (identity.producer_id, identity.epoch, identity.transaction_version) == (100, 0, 0)
    assert identity.sequences == {("t", 0): 5, ("t", 1): 7}
    assert len(cluster.requests("InitProducerId")) == 1


def test_several_batches_of_a_partition_are_in_flight_at_a_time(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    cluster.script("Produce", Late(0.3))
    with Client(cluster.bootstrap) as client, Producer(client, batch_bytes=100) as producer:
        send_each(producer, 20)
        producer.flush()
    assert numbers(log) == list(range(20))
    assert len(cluster.requests("Produce")) == 20


def test_no_batch_is_in_flight_before_the_broker_has_taken_the_first(cluster: FakeCluster) -> None:
    cluster.topic("t")
    cluster.script("Produce", refusing(Error.NOT_LEADER_OR_FOLLOWER), refusing(Error.NOT_LEADER_OR_FOLLOWER))
    with Producer(cluster.bootstrap, batch_bytes=100) as producer:
        send_each(producer, 12)
        producer.flush()
    sent = [bytes(message.topic_data[0].partition_data[0].records) for message in cluster.requests("Produce")]
    assert [next(records.batch_headers(data)).base_sequence for data in sent[:4]] == [0, 0, 0, 1]


@pytest.mark.parametrize("error", [Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID])
def test_no_batch_is_in_flight_before_a_topic_that_may_be_made_anew_has_taken_one(
    cluster: FakeCluster, error: Error
) -> None:
    cluster.topic("t")
    with Producer(cluster.bootstrap, batch_bytes=100) as producer:
        producer.send("t", b"0").result(10)
        asked = len(cluster.requests("Metadata"))
        cluster.script("Produce", refusing(error), refusing(Error.NOT_LEADER_OR_FOLLOWER))
        cluster.script("Metadata", Late(0.5))
        send_each(producer, 1)
        wait_until(lambda: len(cluster.requests("Metadata")) > asked)
        send_each(producer, 2, 1)
        producer.flush()
    sent = [bytes(message.topic_data[0].partition_data[0].records) for message in cluster.requests("Produce")]
    assert [next(records.batch_headers(data)).base_sequence for data in sent] == [0, 1, 1, 1, 2, 3]


LOSSES: list[tuple[str, list[Any]]] = [
    ("the first answer", [LostResponse()]),
    ("an answer between others", [None, None, LostResponse()]),
    ("the first request", [Close()]),
    ("several", [None, LostResponse(), Close(), None, LostResponse()]),
    ("a leader", [refusing(Error.NOT_LEADER_OR_FOLLOWER)]),
    ("replicas, twice", [None, refusing(Error.NOT_ENOUGH_REPLICAS), None, refusing(Error.NOT_ENOUGH_REPLICAS)]),
]


@pytest.mark.parametrize(("name", "actions"), LOSSES, ids=[row[0] for row in LOSSES])
def test_what_is_lost_is_sent_again_exactly_as_it_was(cluster: FakeCluster, name: str, actions: list[Any]) -> None:
    log = cluster.topic("t")[0]
    cluster.script("Produce", *actions)
    with Producer(cluster.bootstrap, batch_bytes=100) as producer:
        deliveries = send_each(producer, 12)
        producer.flush()
        assert [delivery.result(0).offset for delivery in deliveries] == list(range(12))
    assert numbers(log) == list(range(12))
    sent: dict[int, set[bytes]] = {}
    for message in cluster.requests("Produce"):
        data = bytes(message.topic_data[0].partition_data[0].records)
        sent.setdefault(next(records.batch_headers(data)).base_sequence, set()).add(data)
    assert all(len(same) == 1 for same in sent.values())


TROUBLES = [None, Close(), LostResponse(), *map(refusing, (Error.NOT_ENOUGH_REPLICAS, Error.LEADER_NOT_AVAILABLE))]


@settings(max_examples=8)
@given(st.lists(st.sampled_from(TROUBLES), max_size=8), st.integers(1, 3))
def test_whatever_is_lost_each_record_stands_once_and_in_order(actions: list[Any], partitions: int) -> None:
    with FakeCluster() as cluster:
        logs = cluster.topic("t", partitions)
        cluster.script("Produce", *actions)
        with Producer(cluster.bootstrap, batch_bytes=300) as producer:
            for number in range(40):
                producer.send("t", b"%d" % number + b" " * 60, partition=number % partitions)
            producer.flush()
        assert [numbers(log) for log in logs] == [list(range(index, 40, partitions)) for index in range(partitions)]


# What may be appended -------------------------------------------------------------------------------------------------


def stored_and_refused(cluster: FakeCluster, error: Error) -> Callable[[Any], Any]:
    """A leader that has appended what it cannot answer for: not replicated in time, or no longer the leader."""

    def answer(message: Any) -> Any:
        cluster.respond("Produce", message, 0)
        return produced(message, error_code=error, base_offset=-1)

    return answer


def outcomes(deliveries: list[Any]) -> list[bool]:
    """Whether each is delivered, all of them decided."""
    for delivery in deliveries:
        with suppress(TagwireError):
            delivery.result(20)
    return [delivery.exception(0) is None for delivery in deliveries]


def test_what_was_in_flight_behind_a_batch_that_is_failed_is_not_written_twice(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap, batch_bytes=100, retries=1) as producer:
        send_each(producer, 1)[0].result(10)
        cluster.script("Produce", NoResponse(), NoResponse(), LostResponse(), LostResponse())
        deliveries = send_each(producer, 3, 1)
        assert outcomes(deliveries) == [False, True, True]
        send_each(producer, 2, 4)
        with suppress(TagwireError):
            producer.flush()
    assert numbers(log) == [0, 1, 2, 3, 4, 5]


def test_a_batch_that_may_be_appended_is_failed_rather_than_sent_with_another_sequence(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap, batch_bytes=100) as producer:
        send_each(producer, 1)[0].result(10)
        cluster.script("Produce", LostResponse(), refusing(Error.INVALID_PRODUCER_EPOCH))
        assert outcomes(send_each(producer, 1, 1)) == [False]
        assert outcomes(send_each(producer, 1, 2)) == [True]
        with pytest.raises(KafkaError, match="INVALID_PRODUCER_EPOCH"):
            producer.flush()
    assert numbers(log) == [0, 1, 2]


def test_a_batch_that_may_be_appended_whole_is_not_split(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap) as producer:
        cluster.script(
            "Produce",
            stored_and_refused(cluster, Error.NOT_LEADER_OR_FOLLOWER),
            refusing(Error.MESSAGE_TOO_LARGE),
        )
        assert outcomes([producer.send("t", b"%d" % number) for number in range(4)]) == [False] * 4
        with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
            producer.flush()
    assert numbers(log) == list(range(4))


def test_a_batch_may_be_appended_still_when_it_could_not_be_sent_again(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = cluster.topic("t")[0]
    send, output, sent = NetworkClient.send, Transport.output, []
    is_broken = False

    def sent_in_vain(network: NetworkClient, connection: Any, message: Any, version: int) -> Any:
        nonlocal is_broken
        is_produced = isinstance(message, messages.ProduceRequest)
        is_broken = is_produced and len(sent) == 1
        pending = send(network, connection, message, version)
        if is_produced:
            sent.append(pending)
        return pending

    def taken(transport: Transport) -> memoryview:
        nonlocal is_broken
        if is_broken and transport.size:
            is_broken = False
            raise BrokenPipeError("the test lets it take nothing")
        return output(transport)

    monkeypatch.setattr(NetworkClient, "send", sent_in_vain)
    monkeypatch.setattr(Transport, "output", taken)
    cluster.script(
        "Produce", stored_and_refused(cluster, Error.NOT_LEADER_OR_FOLLOWER), refusing(Error.MESSAGE_TOO_LARGE)
    )
    with Producer(cluster.bootstrap) as producer:
        assert outcomes([producer.send("t", b"%d" % number) for number in range(4)]) == [False] * 4
        with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
            producer.flush()
    assert [pending.is_written for pending in sent] == [True, False, True]
    assert numbers(log) == list(range(4))


def test_a_batch_without_a_sequence_is_split_whatever_was_said_of_it_before(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    cluster.script("Produce", refusing(Error.NOT_LEADER_OR_FOLLOWER), refusing(Error.MESSAGE_TOO_LARGE))
    with Producer(cluster.bootstrap, acks=1) as producer:
        assert outcomes([producer.send("t", b"%d" % number) for number in range(4)]) == [True] * 4
    assert numbers(log) == list(range(4))


def test_what_was_never_written_to_a_broker_is_delivered_with_another_sequence(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap, batch_bytes=100) as producer:
        send_each(producer, 1)[0].result(10)
        cluster.script("Produce", refusing(Error.INVALID_RECORD))
        deliveries = send_each(producer, 5, 1)
        assert outcomes(deliveries) == [False, *[True] * 4]
        with pytest.raises(KafkaError, match="INVALID_RECORD"):
            producer.flush()
    assert numbers(log) == [0, 2, 3, 4, 5]


FATES = st.sampled_from(
    [
        None,
        Close(),
        LostResponse(),
        NoResponse(),
        Error.REQUEST_TIMED_OUT,
        Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        Error.NOT_LEADER_OR_FOLLOWER,
        *map(refusing, (Error.NOT_ENOUGH_REPLICAS, Error.INVALID_RECORD, Error.OUT_OF_ORDER_SEQUENCE_NUMBER)),
        refusing(Error.UNKNOWN_PRODUCER_ID),
        refusing(Error.MESSAGE_TOO_LARGE),
    ]
)


@settings(max_examples=25)
@given(st.lists(FATES, max_size=12), st.integers(0, 3))
def test_no_record_stands_twice_and_none_that_is_delivered_is_missing(fates: list[Any], retries: int) -> None:
    with FakeCluster() as cluster:
        log = cluster.topic("t")[0]
        script = [stored_and_refused(cluster, fate) if isinstance(fate, Error) else fate for fate in fates]
        cluster.script("Produce", *script)
        with Client(cluster.bootstrap, timeout=0.5) as client:
            producer = Producer(client, batch_bytes=300, retries=retries, timeout=20)
            deliveries = [producer.send("t", b"%d" % number + b" " * 60) for number in range(40)]
            delivered = [number for number, is_delivered in enumerate(outcomes(deliveries)) if is_delivered]
            with suppress(TagwireError):
                producer.close()
        found = numbers(log)
        assert found == sorted(set(found))
        assert set(delivered) <= set(found)


def test_a_duplicate_is_a_success_whose_offset_nobody_knows(cluster: FakeCluster) -> None:
    cluster.topic("t")
    cluster.script("Produce", refusing(Error.DUPLICATE_SEQUENCE_NUMBER))
    with Producer(cluster.bootstrap) as producer:
        delivery = producer.send("t", b"v").result(10)
    assert delivery.offset == -1


@pytest.mark.parametrize(
    "error", [Error.OUT_OF_ORDER_SEQUENCE_NUMBER, Error.UNKNOWN_PRODUCER_ID], ids=lambda error: error.name
)
def test_a_broker_that_has_lost_track_is_told_a_new_epoch(cluster: FakeCluster, error: Error) -> None:
    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap, batch_bytes=100) as producer:
        send_each(producer, 2)
        producer.flush()
        cluster.script("Produce", refusing(error))
        send_each(producer, 6, 2)
        producer.flush()
    assert numbers(log) == list(range(8))
    assert [(found.producer_epoch, found.base_sequence) for found in headers_in(log)] == [
        (0, 0),
        (0, 1),
        *((1, sequence) for sequence in range(6)),
    ]


def test_an_epoch_that_somebody_else_has_passed_is_left_for_another_id(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    cluster.script("Produce", refusing(Error.INVALID_PRODUCER_EPOCH))
    with Producer(cluster.bootstrap) as producer:
        producer.send("t", b"v").result(10)
    assert [(found.producer_id, found.producer_epoch) for found in headers_in(log)] == [(101, 0)]


def test_another_id_is_asked_for_once_whatever_else_is_failed(cluster: FakeCluster) -> None:
    logs = cluster.topic("t", 2)
    with Producer(cluster.bootstrap) as producer:
        for partition in (0, 1):
            producer.send("t", b"0", partition=partition)
        producer.flush()
        cluster.script("Produce", refusing(Error.INVALID_PRODUCER_EPOCH), refusing(Error.INVALID_RECORD))
        for partition in (0, 1):
            producer.send("t", b"1", partition=partition)
        with pytest.raises(KafkaError, match="INVALID_RECORD"):
            producer.flush()
        for partition in (0, 1):
            producer.send("t", b"2", partition=partition)
    ids = {header.producer_id for log in logs for header in headers_in(log)}
    assert ids == {100, 101}


def test_what_comes_after_a_batch_that_is_failed_starts_from_0_under_a_new_epoch(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap, batch_bytes=100) as producer:
        cluster.script("Produce", None, refusing(Error.INVALID_RECORD))
        deliveries = send_each(producer, 8)
        with pytest.raises(KafkaError, match="INVALID_RECORD"):
            producer.flush()
    failed = [number for number, delivery in enumerate(deliveries) if delivery.exception(0) is not None]
    assert failed == [1]
    assert numbers(log) == [0, *range(2, 8)]
    assert [(found.producer_epoch, found.base_sequence) for found in headers_in(log)] == [
        (0, 0),
        *((1, sequence) for sequence in range(6)),
    ]


def test_the_last_epoch_of_an_id_is_followed_by_another_id(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    last = messages.InitProducerIdResponse(producer_id=7, producer_epoch=2**15 - 1)
    cluster.script("InitProducerId", responding(last))
    with Producer(cluster.bootstrap) as producer:
        cluster.script("Produce", refusing(Error.INVALID_RECORD))
        producer.send("t", b"0")
        with pytest.raises(KafkaError):
            producer.flush()
        producer.send("t", b"1").result(10)
    assert [(found.producer_id, found.producer_epoch) for found in headers_in(log)] == [(100, 0)]


def test_a_batch_that_is_too_large_is_split_until_it_is_not(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    cluster.script("Produce", *[refusing(Error.MESSAGE_TOO_LARGE)] * 3)
    told: list[Any] = []
    with Producer(cluster.bootstrap, compression="lz4") as producer:
        deliveries = [producer.send("t", b"%d" % number, headers=[("n", b"%d" % number)]) for number in range(9)]
        for delivery in deliveries:
            delivery.add_done_callback(told.append)
        producer.send("t", b"9", partition=0).result(10)
        assert [delivery.result(10).offset for delivery in deliveries] == list(range(9))
    assert numbers(log) == list(range(10))
    assert sorted(delivery.result(0).offset for delivery in told) == list(range(9))
    assert [found.base_sequence for found in headers_in(log)][:3] == [0, 1, 2]
    assert {found.compression for found in headers_in(log)} == {"lz4"}


def test_a_record_that_is_too_large_alone_is_failed(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap) as producer:
        cluster.script("Produce", *[refusing(Error.MESSAGE_TOO_LARGE)] * 2)
        large, small = producer.send("t", b"x" * 500), producer.send("t", b"y")
        with pytest.raises(KafkaError, match=r"MESSAGE_TOO_LARGE \(10\): 1 record, \d+ bytes, for t-0"):
            producer.flush()
        assert (large.exception(0) is None, small.exception(0)) == (False, None)
    assert values_in(log) == [b"y"]


def test_a_broker_without_producer_ids_is_told_with_the_option_that_does_without() -> None:
    served = {api: versions for api, versions in SERVED.items() if api != 22}
    with FakeCluster(served=served) as cluster:
        log = cluster.topic("t")[0]
        with Producer(cluster.bootstrap) as producer:
            producer.send("t", b"v")
            with pytest.raises(UnsupportedVersionError, match=r"InitProducerId.*idempotence=False"):
                producer.flush()
        with Producer(cluster.bootstrap, idempotence=False) as producer:
            producer.send("t", b"v")
        assert values_in(log) == [b"v"]
        assert [found.producer_id for found in headers_in(log)] == [-1]


@pytest.mark.parametrize("acks", [0, 1])
def test_idempotence_needs_all_acks(acks: int) -> None:
    with pytest.raises(ConfigError, match=f"acks={acks}.*idempotence=False"):
        Producer("127.0.0.1:1", acks=acks, idempotence=True)


def test_with_fewer_acks_batches_have_no_sequence_numbers(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    with Producer(cluster.bootstrap, acks=1) as producer:
        producer.send("t", b"v")
    assert [found.producer_id for found in headers_in(log)] == [-1]


def test_sequences_go_on_from_0_after_the_greatest() -> None:
    with FakeCluster() as cluster:
        log = cluster.topic("t")[0]
        answers = {
            "FindCoordinator": coordinated_by(0, cluster.brokers[0].port),
            "AddPartitionsToTxn": added,
            "EndTxn": lambda message: messages.EndTxnResponse(),
        }
        cluster.serve(TRANSACTIONS, answers)
        log.due[5, 1] = 2**31 - 3
        with Producer(cluster.bootstrap, transactional_id="x", batch_bytes=200) as producer:
            producer.init_transactions(resume=ProducerIdentity(5, 1, 1, {TopicPartition("t", 0): 2**31 - 3}))
            with producer.transaction():
                for number in range(8):
                    producer.send("t", b"%d" % number)
            assert producer.identity.sequences == {("t", 0): 5}
    assert numbers(log) == list(range(8))
    assert next(iter(headers_in(log))).base_sequence == 2**31 - 3


def test_partitions_whose_batches_fail_together_share_one_new_epoch(cluster: FakeCluster) -> None:
    logs = cluster.topic("t", 3)
    with Producer(cluster.bootstrap, linger=3600) as producer:
        for values in (b"0", b"1", b"2"):
            if values == b"1":
                cluster.script("Produce", refusing(Error.INVALID_RECORD))
            for partition in range(3):
                producer.send("t", values, partition=partition)
            with suppress(KafkaError):
                producer.flush()
        assert producer.identity.epoch == 1
    for log in logs:
        assert [(found.producer_epoch, found.base_sequence) for found in headers_in(log)] == [(0, 0), (1, 0)]


def test_another_id_is_asked_for_once_though_leaders_refuse_the_first_one_after_the_other() -> None:
    refused = refusing(Error.INVALID_PRODUCER_EPOCH)
    is_renewed = threading.Event()

    def refuse_later(message: Any) -> Any:
        is_renewed.wait(10)
        return refused(message)

    with FakeCluster(nodes=2) as cluster:
        logs = cluster.topic("t", 2)
        logs[1].leader = 1
        with Producer(cluster.bootstrap, linger=0) as producer:
            for partition in (0, 1):
                producer.send("t", b"0", partition=partition).result(10)
            cluster.script("Produce", refuse_later, refused)
            second = producer.send("t", b"1", partition=1)
            while len(cluster.requests("Produce")) < 3:
                time.sleep(0.01)
            first = producer.send("t", b"1", partition=0)
            first.add_done_callback(lambda delivery: is_renewed.set())
            assert (first.result(20).offset, second.result(20).offset) == (1, 1)
        assert len(cluster.requests("InitProducerId")) == 2
