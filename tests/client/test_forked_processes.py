"""A process that was forked off has its parent's clients, and none of the threads that would let go of their locks.

Each call says so, before it takes one, and what its parent has goes on.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

from tagwire import records
from tagwire.client import Admin, Client, Consumer, Producer, Reader
from tagwire.errors import TagwireError
from tagwire.records import Record

from .fake_broker import FakeCluster

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

MADE_BEFORE = "was made before this process was forked off; each process makes its own"


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as one:
        one.topic("t")
        yield one


def told_in_a_child(call: Callable[[], object], lock: AbstractContextManager[Any] | None = None) -> str:
    """What a forked process is told that calls this while another thread of its parent holds the lock: the error's
    text. It fails where the call hangs, or raises another error."""
    taken, over = threading.Event(), threading.Event()

    def hold() -> None:
        with lock or threading.Lock():
            taken.set()
            over.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    assert taken.wait(30)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        code = 1
        try:
            call()
            code = 0
        except TagwireError as error:
            os.write(writer, str(error).encode())
            code = 0
        finally:
            os._exit(code)
    over.set()
    holder.join()
    os.close(writer)
    _, status = os.waitpid(child, 0)
    with open(reader, "rb") as end:
        found = end.read().decode()
    assert status == 0
    return found


PRODUCER_CALLS: list[Callable[[Producer], object]] = [
    lambda producer: producer.send("t", b"v"),
    lambda producer: producer.send("unseen", b"v"),
    lambda producer: producer.send_batch("t", 0, records.write([Record(None, b"v")])),
    len,
    lambda producer: producer.flush(),
    lambda producer: producer.partitions_for("t"),
    lambda producer: producer.identity,
]


def test_every_call_of_a_producer_says_so_before_it_takes_a_lock(cluster: FakeCluster) -> None:
    with Producer(cluster.bootstrap, linger=3600) as producer:
        delivery = producer.send("t", b"v")
        lock = producer._core._accumulator.completion.lock
        for call in PRODUCER_CALLS:
            assert MADE_BEFORE in told_in_a_child(lambda call=call: call(producer), lock)  # type: ignore[misc]
        assert MADE_BEFORE in told_in_a_child(lambda: delivery.add_done_callback(print), lock)
        assert told_in_a_child(producer.close, lock) == ""  # which has nothing to end
        producer.flush(10)
        assert delivery.result(0).offset == 0
        assert told_in_a_child(lambda: delivery.result(0), lock) == ""


def test_every_call_about_transactions_says_so_before_it_takes_a_lock(cluster: FakeCluster) -> None:
    producer = Producer(cluster.bootstrap, transactional_id="id")
    lock = producer._core._idempotence._lock  # type: ignore[attr-defined]
    calls: list[Callable[[], object]] = [
        producer.begin_transaction,
        producer.commit_transaction,
        producer.abort_transaction,
        producer.init_transactions,
        lambda: producer.send_offsets({("t", 0): 1}, "g"),
    ]
    for call in calls:
        assert MADE_BEFORE in told_in_a_child(call, lock)
    producer.close()


def test_a_producer_whose_thread_was_about_to_begin_can_be_closed_in_a_child(cluster: FakeCluster) -> None:
    with Producer(cluster.bootstrap) as producer:
        assert told_in_a_child(producer.close, producer._thread._lock) == ""


def test_no_call_of_a_consumer_gives_what_its_parent_fetched(cluster: FakeCluster) -> None:
    with Producer(cluster.bootstrap) as producer:
        producer.send("t", b"v")
    with Consumer(cluster.bootstrap, offset_reset="earliest") as consumer:
        consumer.assign("t")
        assert consumer.position(("t", 0), 10) == 0
        calls: list[Callable[[], object]] = [
            lambda: consumer.poll(0.0),
            lambda: next(iter(consumer)),
            lambda: consumer.seek(("t", 0), 0),
            lambda: consumer.subscribe("t"),
        ]
        for call in calls:
            assert MADE_BEFORE in told_in_a_child(call, consumer._thread._lock)
        assert told_in_a_child(consumer.close, consumer._thread._lock) == ""
        polling = threading.Thread(target=consumer.poll, args=(1.0,))  # nothing of which is the child's
        consumer.pause([("t", 0)])
        polling.start()
        assert told_in_a_child(consumer.close) == ""
        polling.join()
        consumer.resume([("t", 0)])
        assert [record.value for record in consumer.consume(1, 10)] == [b"v"]


@pytest.mark.parametrize(
    ("make", "use"),
    [
        (Client, lambda client: client.metadata()),
        (Admin, lambda admin: admin.list_topics()),
        (lambda bootstrap: Reader(bootstrap, {("t", 0): 0}), lambda reader: reader.lag()),
    ],
    ids=["Client", "Admin", "Reader"],
)
def test_connections_of_the_parent_are_not_used_by_a_child(
    cluster: FakeCluster, make: Callable[[str], Any], use: Callable[[Any], object]
) -> None:
    with make(cluster.bootstrap) as owner:
        use(owner)
        told = told_in_a_child(lambda: use(owner))
        assert "were opened before this process was forked off, and are its parent's" in told
        use(owner)  # nothing was taken from it


def test_a_client_that_was_not_connected_when_a_child_was_forked_off_connects_there(cluster: FakeCluster) -> None:
    with Client(cluster.bootstrap) as client:
        assert told_in_a_child(client.metadata) == ""
        client.metadata()

    def anew() -> None:
        client.close()
        client.metadata()

    with client:
        client.metadata()
        assert told_in_a_child(anew) == ""
        client.metadata()
