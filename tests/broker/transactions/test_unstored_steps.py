"""Steps of a transaction that the disk refuses: nothing follows from them, in memory or after kill -9."""

from __future__ import annotations

import shutil
import threading

import pytest

from tagwire import messages
from tagwire.broker import Broker, scheduler
from tagwire.broker.transactions import states
from tagwire.errors import Error

from ..asking import committed_values
from .test_transaction_requests import add, add_offsets, describe, end, initialize, send


@pytest.fixture(autouse=True)
def nothing_by_the_clock(monkeypatch):
    monkeypatch.setattr(scheduler, "TRANSACTIONS_EVERY_S", 600.0)


@pytest.fixture
def topic(wire):
    wire.create("t", 2)
    initialize(wire, "another")  # so that there is a log to write to


@pytest.fixture
def killed(broker, tmp_path, connect):
    """What a broker finds that starts on the files as they are now."""
    started = []

    def kill_9_and_start():
        copy = tmp_path / f"copy-{len(started)}"
        shutil.copytree(tmp_path / "data", copy, ignore=shutil.ignore_patterns("*.sock"))
        started.append(Broker(copy))
        started[-1].start()
        return connect(started[-1].bootstrap)

    yield kill_9_and_start
    for other in started:
        other.stop()


def test_a_partition_whose_adding_was_not_stored_is_not_in_the_transaction_when_it_is_added_again(
    broker, wire, topic, killed
):
    who = initialize(wire)
    broker.disk.fail("write", times=1)
    assert add(wire, who, 0) is Error.COORDINATOR_NOT_AVAILABLE
    assert send(wire, who, 0, b"early") is Error.INVALID_TXN_STATE
    assert add(wire, who, 0) is Error.NONE
    assert send(wire, who, 0, b"never committed") is Error.NONE
    wire = killed()
    who = initialize(wire)
    assert add(wire, who, 0) is Error.NONE
    assert send(wire, who, 0, b"committed") is Error.NONE
    assert end(wire, who) is Error.NONE
    assert committed_values(wire, "t", 0) == [b"committed"]


def test_an_abort_that_was_not_stored_fences_nobody(broker, wire, topic, killed):
    who = initialize(wire)
    add(wire, who, 0)
    send(wire, who, 0, b"a")
    for _ in range(3):
        broker.disk.fail("write", times=1)
        assert initialize(wire).error_code == Error.COORDINATOR_NOT_AVAILABLE
        assert describe(wire).transaction_state == "Ongoing"
    assert send(wire, who, 1, b"b") is Error.NONE
    assert end(wire, who) is Error.NONE
    for broker_ in (wire, killed()):
        assert committed_values(broker_, "t", 0) == [b"a", b"b"]
        assert initialize(broker_).producer_epoch == who.producer_epoch + 1


@pytest.mark.parametrize("commit", [True, False])
def test_an_outcome_that_was_not_stored_is_not_decided(broker, wire, topic, killed, commit):
    who = initialize(wire)
    add(wire, who, 0)
    send(wire, who, 0, b"a")
    broker.disk.fail("write", times=1)
    assert end(wire, who, commit) is Error.COORDINATOR_NOT_AVAILABLE
    assert describe(wire).transaction_state == describe(killed()).transaction_state == "Ongoing"
    assert end(wire, who, not commit) is Error.NONE
    assert committed_values(wire, "t", 0) == ([] if commit else [b"a"])


def test_a_producer_goes_on_that_asked_for_an_epoch_when_only_the_abort_could_be_stored(broker, wire, topic):
    who = initialize(wire)
    add(wire, who, 0)
    had = {"producer_id": who.producer_id, "epoch": who.producer_epoch}
    fail_after(broker, 3)  # the abort, its marker and its completion are stored, the new epoch is not
    assert initialize(wire, **had).error_code == Error.COORDINATOR_NOT_AVAILABLE
    renewed = initialize(wire, **had)
    assert renewed.error_code == 0
    assert renewed.producer_epoch > who.producer_epoch
    assert add(wire, renewed, 0) is Error.NONE
    assert initialize(wire, **had).error_code == Error.PRODUCER_FENCED


def fail_after(broker, writes):
    """Let some writes succeed, and the next one fail."""
    really, left = broker.disk.write, [writes]

    def write(fd, buffers, position):
        left[0] -= 1
        if left[0] == -1:
            broker.disk.fail("write", times=1)
        really(fd, buffers, position)

    broker.disk.write = write


def test_no_partition_is_marked_again_because_another_cannot_be(broker, wire, topic, make):
    who = initialize(wire)
    add(wire, who, 0, 1)
    assert send(wire, who, 0, b"a") is Error.NONE
    assert send(wire, who, 0, b"b", partition=1) is Error.NONE
    broker.disk.fail("sync", times=1)
    broken = wire.produce("t", make.records(b"x"), partition=0)
    assert broken.error_code == Error.KAFKA_STORAGE_ERROR
    for _ in range(3):
        assert end(wire, who) in (Error.COORDINATOR_NOT_AVAILABLE, Error.CONCURRENT_TRANSACTIONS)
        assert committed_values(wire, "t", 1) == [b"b"]
    assert wire.offset_at("t", -1, 1).offset == 2
    assert describe(wire).transaction_state == "PrepareCommit"


def test_offsets_are_in_a_transaction_only_once_that_is_stored(broker, wire, topic, killed):
    who = initialize(wire)
    broker.disk.fail("write", times=1)
    assert add_offsets(wire, who) is Error.COORDINATOR_NOT_AVAILABLE
    assert describe(wire).topics == describe(killed()).topics == []


def test_there_are_only_so_many_transactional_ids_and_partitions_of_theirs(broker, wire, monkeypatch):
    wire.create("t", 100)
    monkeypatch.setattr(states, "MAX_TRANSACTIONAL_IDS", 2)
    monkeypatch.setattr(states, "MAX_HELD_BYTES", 10_000)
    assert [initialize(wire, name).error_code for name in ("a", "b", "c", "a")] == [
        0, 0, Error.COORDINATOR_NOT_AVAILABLE, 0,
    ]  # fmt: skip
    who = initialize(wire, "a")
    assert set(add(wire, who, *range(100), name="a")) == {Error.COORDINATOR_NOT_AVAILABLE}
    assert add(wire, who, 0, name="a") is Error.NONE
    assert end(wire, who, name="a") is Error.NONE


def test_a_request_for_an_id_waits_for_the_step_that_is_being_stored(broker, wire, topic, connect):
    who, other = initialize(wire), connect(broker.bootstrap)
    really, go_on = broker.disk.write, threading.Event()

    def write(fd, buffers, position):
        go_on.wait(20)
        broker.disk.fail("write", times=1)
        broker.disk.write = really
        really(fd, buffers, position)

    broker.disk.write = write
    ask = messages.AddPartitionsToTxnRequest
    message = ask(
        v3_and_below_transactional_id="tx",
        v3_and_below_producer_id=who.producer_id,
        v3_and_below_producer_epoch=who.producer_epoch,
        v3_and_below_topics=[ask.AddPartitionsToTxnTopic(name="t", partitions=[0])],
    )
    wire.send(message, 3)
    other.send(message, 3)
    third = connect(broker.bootstrap)
    assert describe(third).transaction_state == "Empty"
    go_on.set()
    codes = [
        answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        for answer in (wire.receive(), other.receive())
    ]
    # The one that came first was not stored; the other was stored for itself.
    assert sorted(codes) == [0, Error.COORDINATOR_NOT_AVAILABLE]
    assert describe(third).transaction_state == "Ongoing"
