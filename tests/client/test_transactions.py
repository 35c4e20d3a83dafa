"""Transactions of both versions against the embedded broker: all or nothing, one owner of an id, and ends from
elsewhere."""

from __future__ import annotations

import gc
import pickle
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import pytest

from tagwire import records
from tagwire.broker import Broker
from tagwire.client import (
    EARLIEST,
    Admin,
    Client,
    Consumer,
    GroupMetadata,
    NewTopic,
    Producer,
    ProducerIdentity,
    Reader,
    TopicPartition,
    end_transaction,
)
from tagwire.errors import (
    ConfigError,
    EncodeError,
    Error,
    KafkaError,
    ProducerFencedError,
    TagwireError,
    TransactionStateError,
)
from tagwire.records import Record

from .cutting_proxy import CuttingProxy


@pytest.fixture(scope="module", params=[1, 2], ids=["version 1", "version 2"])
def version(request: pytest.FixtureRequest) -> int:
    """Of transactions."""
    return int(request.param)


@pytest.fixture(scope="module")
def bootstrap(version: int) -> Iterator[str]:
    with Broker(fsync="never", as_release="3.9" if version == 1 else None) as broker:
        yield broker.bootstrap


@pytest.fixture
def client(bootstrap: str) -> Iterator[Client]:
    with Client(bootstrap) as client:
        yield client


@pytest.fixture
def topic(client: Client) -> str:
    name = f"t-{uuid.uuid4().hex}"
    Admin(client).create_topics([NewTopic(name, num_partitions=2)])
    return name


@pytest.fixture
def name() -> str:
    """A transactional id."""
    return f"id-{uuid.uuid4().hex}"


def read(client: Client, topic: str, isolation: str = "read_committed") -> list[bytes | None]:
    both = {(topic, partition): EARLIEST for partition in range(2)}
    found = Reader(client, both, stop_at_end=True, isolation=isolation).records()
    return sorted((record.value for record in found), key=lambda value: value or b"")


def state(client: Client, name: str) -> str:
    return Admin(client).describe_transactions([name])[name].state


def test_what_is_committed_is_read_and_what_is_aborted_is_not(client: Client, topic: str, name: str) -> None:
    with Producer(client, transactional_id=name) as producer:
        producer.init_transactions()
        for number in range(4):
            producer.begin_transaction()
            for partition in (0, 1):
                producer.send(topic, b"%d-%d" % (number, partition), partition=partition)
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    assert read(client, topic) == [b"0-0", b"0-1", b"2-0", b"2-1"]
    assert len(read(client, topic, "read_uncommitted")) >= 4


def test_a_block_commits_at_its_end_and_aborts_when_it_raises(client: Client, topic: str, name: str) -> None:
    with Producer(client, transactional_id=name) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send(topic, b"kept")
        with pytest.raises(ZeroDivisionError), producer.transaction():
            _ = producer.send(topic, b"dropped").result(10).offset / 0
        with producer.transaction():
            producer.send(topic, b"kept too")
    assert read(client, topic) == [b"kept", b"kept too"]
    assert read(client, topic, "read_uncommitted") == [b"dropped", b"kept", b"kept too"]


def test_a_transaction_without_records_asks_nobody_to_end_it(client: Client, name: str) -> None:
    with Producer(client, transactional_id=name) as producer:
        producer.init_transactions()
        with producer.transaction():
            pass
        producer.begin_transaction()
        producer.abort_transaction()
        assert "EndTxn" not in client.negotiated()


def test_offsets_are_committed_with_the_transaction_or_not_at_all(client: Client, topic: str, name: str) -> None:
    admin, group = Admin(client), f"group-{name}"
    with Producer(client, transactional_id=name) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send(topic, b"v")
            producer.send_offsets({(topic, 0): 7}, group)
        producer.begin_transaction()
        producer.send_offsets({(topic, 0): 9, (topic, 1): 1}, GroupMetadata(group))
        producer.abort_transaction()
    assert {at: found.offset for at, found in admin.group_offsets(group).items()} == {(topic, 0): 7}


def test_offsets_of_no_partition_begin_no_transaction(client: Client, topic: str, name: str) -> None:
    with Producer(client, transactional_id=name) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send_offsets({}, f"group-{name}")
        with producer.transaction():
            producer.send(topic, b"v")
            producer.send_offsets({}, f"group-{name}")
    assert read(client, topic) == [b"v"]


def test_whoever_takes_the_id_over_ends_what_was_open_and_fences(client: Client, topic: str, name: str) -> None:
    with Producer(client, transactional_id=name) as old:
        old.init_transactions()
        old.begin_transaction()
        old.send(topic, b"old")
        old.flush()
        with Producer(client, transactional_id=name) as new:
            new.init_transactions()
            with new.transaction():
                new.send(topic, b"new")
        for call in (old.commit_transaction, old.commit_transaction, old.begin_transaction, old.abort_transaction):
            with pytest.raises(ProducerFencedError) as caught:
                call()
            assert caught.value.error in (Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH)
        with pytest.raises(ProducerFencedError):
            old.send(topic, b"late")
    assert read(client, topic) == [b"new"]


def test_a_producer_fenced_while_it_sends_fails_its_transaction(
    client: Client, topic: str, name: str, version: int
) -> None:
    with Producer(client, transactional_id=name) as old, Producer(client, transactional_id=name) as new:
        old.init_transactions()
        old.begin_transaction()
        new.init_transactions()
        delivery = old.send(topic, b"old")
        if version == 1:
            with pytest.raises(ProducerFencedError):
                delivery.result(10)
        else:  # no coordinator was asked: the transaction may as well have been aborted for its age
            with pytest.raises(KafkaError, match="INVALID_PRODUCER_EPOCH"):
                delivery.result(10)
            with pytest.raises(ProducerFencedError):
                old.abort_transaction()
        with pytest.raises(ProducerFencedError):
            old.commit_transaction()
    assert read(client, topic, "read_uncommitted") == []


@pytest.mark.parametrize("error", [None, ZeroDivisionError])
def test_a_producer_fenced_amid_a_block_is_told_so_by_it_where_nothing_else_is_wrong(
    client: Client, topic: str, name: str, error: type[Exception] | None
) -> None:
    with Producer(client, transactional_id=name) as old, Producer(client, transactional_id=name) as new:

        def fenced_in_between() -> None:
            with old.transaction():
                new.init_transactions()
                old.send(topic, b"old").exception(10)
                if error is not None:
                    raise error

        old.init_transactions()
        with pytest.raises(error or ProducerFencedError):
            fenced_in_between()
        with pytest.raises(ProducerFencedError):
            old.begin_transaction()
    assert read(client, topic, "read_uncommitted") == []


def test_a_record_that_fails_fails_its_transaction_alone(client: Client, name: str) -> None:
    topic = f"narrow-{name}"
    Admin(client).create_topics([NewTopic(topic, num_partitions=2, configs={"max.message.bytes": "1000"})])
    with Producer(client, transactional_id=name) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"small", partition=0)
        producer.send(topic, b"x" * 2000, partition=1)
        for _ in range(2):
            with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
                producer.commit_transaction()
        with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
            producer.send(topic, b"more")
        producer.abort_transaction()
        with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"), producer.transaction():
            producer.send(topic, b"x" * 2000, partition=1)
        with producer.transaction():
            producer.send(topic, b"good", partition=1)
    assert read(client, topic) == [b"good"]


def test_calls_at_a_wrong_time_say_what_is_due(client: Client, topic: str, name: str) -> None:
    with Producer(client, transactional_id=name) as producer:
        with pytest.raises(TransactionStateError, match="no record can be sent now: init_transactions comes before it"):
            producer.send(topic, b"v")
        with pytest.raises(TransactionStateError, match="init_transactions comes before"):
            producer.begin_transaction()
        producer.init_transactions()
        for call in (producer.commit_transaction, producer.abort_transaction):
            with pytest.raises(TransactionStateError, match="begin_transaction comes before"):
                call()
        with pytest.raises(TransactionStateError, match="begin_transaction comes before"):
            producer.send_offsets({(topic, 0): 1}, "g")
        with pytest.raises(TransactionStateError, match="begin_transaction comes before"):
            producer.send_batch(topic, 0, records.write([Record(None, b"v")]))
        producer.begin_transaction()
        with pytest.raises(TransactionStateError, match="a transaction is open"):
            producer.begin_transaction()
        with pytest.raises(TransactionStateError, match="a transaction is open"):
            producer.init_transactions()
    with Producer(client) as plain, pytest.raises(TransactionStateError, match="no transactional_id"):
        plain.begin_transaction()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"transactional_id": ""}, "transactional_id=''"),
        ({"transactional_id": "x", "acks": 1}, "acks=1"),
        ({"transactional_id": "x", "idempotence": False}, "idempotence=False"),
        ({"transactional_id": "x", "transaction_timeout": 0}, "transaction_timeout=0"),
    ],
)
def test_options_that_a_transaction_cannot_do_with_are_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Producer("127.0.0.1:1", **options)  # type: ignore[arg-type]


def test_a_timeout_that_the_broker_does_not_allow_is_told(client: Client, name: str) -> None:
    with (
        Producer(client, transactional_id=name, transaction_timeout=1e6) as producer,
        pytest.raises(KafkaError, match="INVALID_TRANSACTION_TIMEOUT"),
    ):
        producer.init_transactions()


# Ends from elsewhere -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leave", ["close", "collect"])
def test_a_transaction_that_is_left_open_is_ended_by_whoever_knows_its_identity(
    bootstrap: str, client: Client, topic: str, name: str, leave: str, version: int
) -> None:
    producer = Producer(client, transactional_id=name)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"left").result(10)
    known: ProducerIdentity = pickle.loads(pickle.dumps(producer.identity))
    if leave == "close":
        producer.close(abort=False)
    else:
        del producer
        gc.collect()
    assert state(client, name) == "Ongoing"
    for _ in range(2):  # the same end again succeeds again
        after = end_transaction(
            bootstrap, name, known.producer_id, known.epoch, commit=True, transaction_version=known.transaction_version
        )
    assert known.transaction_version == version
    assert (after.producer_id, after.epoch) == (known.producer_id, known.epoch + (version == 2))
    assert read(client, topic) == [b"left"]
    with pytest.raises(KafkaError) as caught:
        end_transaction(
            client, name, known.producer_id, known.epoch, commit=False, transaction_version=known.transaction_version
        )
    assert caught.value.error is Error.INVALID_TXN_STATE


def test_nobody_is_fenced_by_an_end_from_elsewhere(client: Client, topic: str, name: str) -> None:
    with Producer(client, transactional_id=name) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"v").result(10)
        known = producer.identity
        end_transaction(
            client, name, known.producer_id, known.epoch, commit=True, transaction_version=known.transaction_version
        )
        producer.commit_transaction()
        with producer.transaction():
            producer.send(topic, b"w")
    assert read(client, topic) == [b"v", b"w"]


def test_an_end_under_another_epoch_is_refused_and_ends_nothing(client: Client, topic: str, name: str) -> None:
    with Producer(client, transactional_id=name) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"v").result(10)
        known = producer.identity
        with pytest.raises(KafkaError) as caught:
            end_transaction(client, name, known.producer_id, known.epoch + 1, commit=False)
        assert caught.value.error in (Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH)
        producer.commit_transaction()
    assert read(client, topic) == [b"v"]


def test_closing_aborts_what_is_open_unless_told_not_to(client: Client, topic: str, name: str) -> None:
    with Producer(client, transactional_id=name) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"v").result(10)
    assert state(client, name) == "CompleteAbort"
    assert read(client, topic) == []


def test_another_process_goes_on_with_an_identity_without_asking(
    client: Client, topic: str, name: str, version: int
) -> None:
    with Producer(client, transactional_id=name) as first:
        first.init_transactions()
        with first.transaction():
            first.send(topic, b"0", partition=0)
        identity = pickle.loads(pickle.dumps(first.identity))
    assert identity.sequences == ({TopicPartition(topic, 0): 1} if version == 1 else {})  # those of its epoch
    with Producer(client, transactional_id=name) as second:
        second.init_transactions(resume=identity)
        with second.transaction():
            second.send(topic, b"1", partition=0)
        ended = second.identity
        assert (ended.producer_id, ended.epoch) == (identity.producer_id, identity.epoch + (version == 2))
    assert read(client, topic) == [b"0", b"1"]


def test_what_follows_an_end_from_elsewhere_is_not_taken_for_what_was_written_before(
    client: Client, topic: str, name: str, version: int
) -> None:
    with Producer(client, transactional_id=name) as first:
        first.init_transactions()
        first.begin_transaction()
        first.send(topic, b"0", partition=0).result(10)
        left = first.identity
        first.close(abort=False)
    ended = end_transaction(client, name, left.producer_id, left.epoch, commit=True, transaction_version=version)
    with Producer(client, transactional_id=name) as second:
        if version == 1:  # its numbers go on in the same epoch
            with pytest.raises(ConfigError, match="sequence numbers"):
                second.init_transactions(resume=ended)
            ended = replace(ended, sequences=left.sequences)
        second.init_transactions(resume=ended)
        with second.transaction():
            second.send(topic, b"1", partition=0)
    assert read(client, topic) == [b"0", b"1"]


# Trouble on the way --------------------------------------------------------------------------------------------------


@pytest.fixture
def cut() -> Iterator[tuple[CuttingProxy, str]]:
    """A broker that is only reached through a connection that breaks, and its address."""
    proxy = CuttingProxy()
    with Broker(advertise=f"127.0.0.1:{proxy.port}", fsync="never") as broker:
        proxy.forward_to(int(broker.bootstrap.rpartition(":")[2]))
        yield proxy, f"127.0.0.1:{proxy.port}"
    proxy.close()


def test_what_is_sent_while_connections_are_cut_stands_once_and_in_order(cut: tuple[CuttingProxy, str]) -> None:
    proxy, bootstrap = cut
    with Client(bootstrap) as client:
        Admin(client).create_topics([NewTopic("t", num_partitions=2)])
        with Producer(client, batch_bytes=4000, linger=0) as producer:
            for number in range(3000):
                if number % 600 == 0:
                    proxy.cuts += 2
                producer.send("t", b"%d" % number, partition=number % 2)
            producer.flush()
        assert proxy.cuts < 10
        proxy.cuts = 0
        records = list(Reader(client, {("t", 0): 0, ("t", 1): 0}, stop_at_end=True).records())
    for partition in (0, 1):
        found = [int(record.value or b"") for record in records if record.partition == partition]
        assert found == list(range(partition, 3000, 2))


def test_a_transaction_is_committed_through_cut_connections(cut: tuple[CuttingProxy, str]) -> None:
    proxy, bootstrap = cut
    proxy.over = 0  # every answer may be lost
    with Client(bootstrap) as client:
        Admin(client).create_topics([NewTopic("t", num_partitions=2)])
        with Producer(client, transactional_id="x") as producer:
            producer.init_transactions()
            for number in range(3):
                with producer.transaction():
                    for partition in (0, 1):
                        producer.send("t", b"%d-%d" % (number, partition), partition=partition)
                    producer.flush()
                    proxy.cuts = 2
                assert proxy.cuts < 2
                proxy.cuts = 0
        assert read(client, "t") == [b"%d-%d" % (number, partition) for number in range(3) for partition in (0, 1)]


def test_threads_share_a_transaction(client: Client, topic: str, name: str) -> None:
    failed: list[TagwireError] = []
    with Producer(client, transactional_id=name, batch_bytes=500) as producer:
        producer.init_transactions()

        def send(who: int) -> None:
            try:
                for number in range(200):
                    producer.send(topic, b"%d-%d" % (who, number), partition=who % 2)
            except TagwireError as error:
                failed.append(error)

        with producer.transaction():
            threads = [threading.Thread(target=send, args=(who,)) for who in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    assert not failed
    assert len(set(read(client, topic))) == 800


def test_what_comes_while_a_transaction_is_committed_is_refused(client: Client, topic: str, name: str) -> None:
    refused: list[TransactionStateError] = []

    def send_more(_: object) -> None:
        try:
            producer.send(topic, b"late", partition=0)
        except TransactionStateError as error:
            refused.append(error)

    with Producer(client, transactional_id=name, linger=3600) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send(topic, b"v", partition=0).add_done_callback(send_more)  # which committing delivers
    assert len(refused) == 1
    assert read(client, topic, "read_uncommitted") == [b"v"]


def test_a_record_that_cannot_be_written_does_not_fail_the_transaction(client: Client, topic: str, name: str) -> None:
    with Producer(client, transactional_id=name) as producer:
        producer.init_transactions()
        with producer.transaction():
            with pytest.raises(EncodeError):
                producer.send(topic, "text")  # type: ignore[arg-type]
            producer.send(topic, b"bytes")
    assert read(client, topic) == [b"bytes"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_offsets_of_a_consumer_that_was_thrown_out_of_its_group_are_refused(
    bootstrap: str, topic: str, name: str, protocol: Literal["classic", "consumer"], version: int
) -> None:
    """Told to be of nobody, a broker would take them: the next owner's work would be committed twice."""
    if (protocol, version) == ("consumer", 1):
        pytest.skip("no release of Kafka has groups of KIP-848 and transactions of version 1 alone")
    with Producer(bootstrap) as producer:
        producer.send(topic, b"1")
    with (
        Consumer(bootstrap, group=name, protocol=protocol, max_poll_interval=1.0, offset_reset="earliest") as consumer,
        Producer(bootstrap, transactional_id=name) as producer,
    ):
        consumer.subscribe(topic)
        assert consumer.consume(1, 30)
        positions = consumer.positions()
        deadline = time.monotonic() + 30
        while consumer._core.work.is_member:  # until it is thrown out, for it does not poll
            assert time.monotonic() < deadline
            time.sleep(0.02)
        producer.init_transactions()
        producer.begin_transaction()
        with pytest.raises(KafkaError, match=r"UNKNOWN_MEMBER_ID|ILLEGAL_GENERATION|STALE_MEMBER_EPOCH|FENCED_MEMBER"):
            producer.send_offsets(positions, consumer.group_metadata())
        producer.abort_transaction()
        assert consumer.committed() == {}
