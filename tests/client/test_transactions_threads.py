"""Calls about transactions that run beside each other, time out and are repeated: none ends or begins another's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tagwire import messages, records
from tagwire.client import Client, Producer
from tagwire.errors import ConnectionLostError, Error, KafkaError, RequestTimeoutError, TransactionStateError
from tagwire.records import Record

from ..limits import wait_until
from .fake_broker import Close, FakeCluster, Late, Silence
from .produce_responses import responding
from .stored import values_in
from .test_transaction_versions import Coordinator

SOON = 60.0


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as one:
        one.topic("t", 2)
        Coordinator(one, 1)
        yield one


def wait_for(cluster: FakeCluster, api: str, count: int = 1) -> None:
    wait_until(lambda: len(cluster.requests(api)) >= count)


class Held(Producer):
    """Its `commit_transaction` goes no further than the flush, in another thread than the one that made it, until it
    may."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.made_by = threading.current_thread()
        self.is_held, self.may_go = threading.Event(), threading.Event()
        flush = self._core.flush

        async def held(timeout: float | None = None) -> None:
            await flush(timeout)
            if threading.current_thread() is not self.made_by:
                self.is_held.set()
                self.may_go.wait(SOON)

        self._core.flush = held  # type: ignore[method-assign]


def test_a_commit_that_an_abort_overtook_ends_no_later_transaction(cluster: FakeCluster) -> None:
    raised: list[BaseException] = []

    def commit() -> None:
        try:
            producer.commit_transaction()
        except TransactionStateError as error:
            raised.append(error)

    with Held(cluster.bootstrap, transactional_id="x") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"first").result(SOON)
        slow = threading.Thread(target=commit)
        slow.start()
        assert producer.is_held.wait(SOON)
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send("t", b"second").result(SOON)
        producer.may_go.set()
        slow.join(SOON)
        assert [message.committed for message in cluster.requests("EndTxn")] == [False]
        producer.commit_transaction()
    assert len(raised) == 1
    assert "has ended meanwhile" in str(raised[0])


def test_offsets_that_an_abort_overtook_belong_to_no_later_transaction(cluster: FakeCluster) -> None:
    raised: list[BaseException] = []
    is_held, may_go = threading.Event(), threading.Event()

    def send_offsets() -> None:
        try:
            producer.send_offsets(HeldOffsets({("in", 0): 1}), "g")
        except TransactionStateError as error:
            raised.append(error)

    class HeldOffsets(dict[Any, Any]):
        def items(self) -> Any:
            is_held.set()
            may_go.wait(SOON)
            return super().items()

    with Producer(cluster.bootstrap, transactional_id="x") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        slow = threading.Thread(target=send_offsets)
        slow.start()
        assert is_held.wait(SOON)
        producer.abort_transaction()
        producer.begin_transaction()
        may_go.set()
        slow.join(SOON)
        producer.commit_transaction()
    assert cluster.requests("TxnOffsetCommit") == []
    assert len(raised) == 1
    assert "has ended meanwhile" in str(raised[0])


def send(producer: Producer) -> None:
    producer.send("t", b"late", partition=0)


def send_batch(producer: Producer) -> None:
    producer.send_batch("t", 0, records.write([Record(None, b"late")]))


@pytest.mark.parametrize("call", [send, send_batch])
def test_a_record_that_waits_while_another_thread_aborts_belongs_to_no_later_transaction(
    cluster: FakeCluster, call: Callable[[Producer], None]
) -> None:
    raised: list[BaseException] = []

    def late() -> None:
        try:
            call(producer)
        except TransactionStateError as error:
            raised.append(error)

    with Producer(cluster.bootstrap, transactional_id="x") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        before = len(cluster.requests("Metadata"))
        cluster.script("Metadata", Late(1.0))
        slow = threading.Thread(target=late)
        slow.start()
        wait_for(cluster, "Metadata", before + 1)
        producer.abort_transaction()
        producer.begin_transaction()
        slow.join(SOON)
        producer.send("t", b"second", partition=0)
        producer.commit_transaction()
    assert values_in(cluster.topics["t"][0]) == [b"second"]
    assert len(raised) == 1
    assert "has ended meanwhile" in str(raised[0])


def test_no_transaction_begins_while_the_id_is_taken_over_again(cluster: FakeCluster) -> None:
    with Producer(cluster.bootstrap, transactional_id="x") as producer:
        producer.init_transactions()
        cluster.script("InitProducerId", Late(1.0))
        again = threading.Thread(target=producer.init_transactions)
        again.start()
        wait_for(cluster, "InitProducerId", 2)
        with pytest.raises(TransactionStateError, match="init_transactions comes before it"):
            producer.begin_transaction()
        again.join(SOON)
        with producer.transaction():
            producer.send("t", b"v", partition=0)
    assert values_in(cluster.topics["t"][0]) == [b"v"]


def test_an_id_is_asked_for_once_where_a_late_request_would_fence(cluster: FakeCluster) -> None:
    """A refusal is an answer: what may succeed later is sent again after that."""
    with Producer(cluster.bootstrap, transactional_id="x") as producer:
        cluster.script(
            "InitProducerId", responding(messages.InitProducerIdResponse(error_code=Error.CONCURRENT_TRANSACTIONS))
        )
        producer.init_transactions(once=True)
        assert len(cluster.requests("InitProducerId")) == 2
    with Producer(cluster.bootstrap, transactional_id="y") as producer:
        cluster.script("InitProducerId", Close())
        with pytest.raises(ConnectionLostError):
            producer.init_transactions(once=True)
        assert len(cluster.requests("InitProducerId")) == 3


def test_an_id_that_could_not_be_taken_over_again_is_used_no_further(cluster: FakeCluster) -> None:
    with Producer(cluster.bootstrap, transactional_id="x") as producer:
        producer.init_transactions()
        refused = messages.InitProducerIdResponse(error_code=Error.UNKNOWN_SERVER_ERROR)
        cluster.script("InitProducerId", responding(refused))
        with pytest.raises(KafkaError):
            producer.init_transactions()
        with pytest.raises(TransactionStateError, match="init_transactions comes before it"):
            producer.begin_transaction()
        producer.init_transactions()
        producer.begin_transaction()
        producer.abort_transaction()


def test_a_transaction_that_the_coordinator_may_have_begun_is_not_left_to_its_timeout(cluster: FakeCluster) -> None:
    with (
        Client(cluster.bootstrap, timeout=5) as client,
        Producer(client, transactional_id="x", max_block=1) as producer,
    ):
        producer.init_transactions()
        producer.begin_transaction()
        cluster.script("AddOffsetsToTxn", *[Silence()] * 9)
        with pytest.raises(RequestTimeoutError):
            producer.send_offsets({("t", 0): 1}, "g")
        producer.abort_transaction()
        assert [message.producer_id for message in cluster.requests("InitProducerId")] == [-1, 5]
        with producer.transaction():
            producer.send("t", b"v", partition=0)
        assert len(cluster.requests("InitProducerId")) == 2


def test_a_partition_that_may_have_been_added_is_not_left_to_the_timeout(cluster: FakeCluster) -> None:
    with Client(cluster.bootstrap, timeout=5) as client, Producer(client, transactional_id="x") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        cluster.script("AddPartitionsToTxn", Silence())
        lost = producer.send("t", b"lost", partition=0)
        wait_for(cluster, "AddPartitionsToTxn")
        producer.abort_transaction()
        assert lost.exception(0) is not None
        assert [message.producer_id for message in cluster.requests("InitProducerId")] == [-1, 5]


def test_a_commit_that_is_repeated_after_it_went_through_is_a_success_once(cluster: FakeCluster) -> None:
    with Client(cluster.bootstrap, timeout=0.5) as client, Producer(client, transactional_id="x") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"v", partition=0)
        producer.flush()
        cluster.script("EndTxn", Silence(), Late(0.3))
        with pytest.raises(RequestTimeoutError):
            producer.commit_transaction(0.4)
        producer.commit_transaction()
        with pytest.raises(TransactionStateError, match="begin_transaction comes before it"):
            producer.commit_transaction()


@pytest.mark.parametrize(("abort", "ends"), [(True, [True, True]), (False, [True])])
def test_closing_goes_on_with_a_commit_that_nobody_waits_for_any_more(
    cluster: FakeCluster, abort: bool, ends: list[bool]
) -> None:
    with Client(cluster.bootstrap, timeout=0.5) as client:
        producer = Producer(client, transactional_id="x")
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"v", partition=0)
        producer.flush()
        cluster.script("EndTxn", Silence())
        with pytest.raises(RequestTimeoutError):
            producer.commit_transaction(0.4)
        producer.close(abort=abort)
        assert [message.committed for message in cluster.requests("EndTxn")] == ends
