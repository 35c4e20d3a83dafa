"""Logs whose ends are of different moments, as a loss of power leaves them with fsync="never": no transaction hangs.

The files are copied while a broker runs, and put together of several copies.
"""

from __future__ import annotations

import shutil

import pytest

from tagwire.broker import Broker, scheduler
from tagwire.broker.transactions.coordinator import Transactions
from tagwire.errors import Error
from tagwire.records.internal_topics import TRANSACTIONS

from ...limits import wait_until
from ..asking import commit_in_transaction, committed, committed_values
from .test_transaction_requests import add, describe, end, initialize, send
from .test_transaction_version_2 import end_2, send_2

STATES = f"{TRANSACTIONS}-0"


@pytest.fixture
def files(broker, tmp_path, wire):
    """Keeps what there is now under a name, and starts a broker on what is there now, some directories as they were."""
    wire.create("t", 2)
    initialize(wire, "another")  # so that there is a log to write to

    class Kept:
        def __init__(self):
            self.started = []

        def keep(self, name):
            shutil.copytree(tmp_path / "data", tmp_path / name, ignore=shutil.ignore_patterns("*.sock"))

        def start(self, connect, **directories):
            self.keep("mixed")
            for name, kept in directories.items():
                shutil.rmtree(tmp_path / "mixed" / name)
                shutil.copytree(tmp_path / kept / name, tmp_path / "mixed" / name)
            self.started.append(Broker(tmp_path / "mixed", fsync="never"))
            self.started[-1].start()
            return connect(self.started[-1].bootstrap)

    kept = Kept()
    yield kept
    for other in kept.started:
        other.stop()


def is_stable(wire, partition=0):
    found = wire.fetch("t", 0, partition=partition, isolation_level=1)
    return found.last_stable_offset == found.high_watermark


def test_what_its_coordinator_knows_as_over_is_aborted_and_its_producer_fenced(wire, files, connect):
    who = initialize(wire)
    assert add(wire, who, 0) is Error.NONE
    assert send(wire, who, 0, b"a") is Error.NONE
    files.keep("before its marker")
    assert end(wire, who) is Error.NONE
    wire = files.start(connect, **{"t-0": "before its marker"})
    wait_until(lambda: is_stable(wire))
    assert committed_values(wire, "t", 0) == []
    wait_until(lambda: describe(wire).transaction_state == "CompleteAbort")
    assert add(wire, who, 0) in (Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH)
    assert initialize(wire).producer_epoch > who.producer_epoch


@pytest.mark.parametrize("before", ["the id", "the transaction"])
def test_what_its_coordinator_has_forgotten_is_aborted(wire, files, connect, before):
    files.keep("the id")
    who = initialize(wire)
    files.keep("the transaction")
    assert add(wire, who, 0) is Error.NONE
    assert send(wire, who, 0, b"a") is Error.NONE
    wire = files.start(connect, **{STATES: before})
    wait_until(lambda: is_stable(wire))
    assert committed_values(wire, "t", 0) == []
    who = initialize(wire)
    assert add(wire, who, 0) is Error.NONE
    assert send(wire, who, 0, b"b") is Error.NONE
    assert end(wire, who) is Error.NONE
    assert committed_values(wire, "t", 0) == [b"b"]


def test_no_epoch_is_given_twice_where_its_coordinator_has_forgotten_it(wire, files, connect):
    initialize(wire)
    files.keep("an older epoch")
    who = initialize(wire)
    assert add(wire, who, 0) is Error.NONE
    assert send(wire, who, 0, b"a") is Error.NONE
    assert end(wire, who) is Error.NONE
    wire = files.start(connect, **{STATES: "an older epoch"})
    following = initialize(wire)
    assert following.producer_id == who.producer_id
    assert following.producer_epoch > who.producer_epoch
    assert committed_values(wire, "t", 0) == [b"a"]


def test_a_transaction_that_lost_one_of_its_partitions_is_aborted_whole(wire, files, connect):
    who = initialize(wire)
    assert add(wire, who, 1) is Error.NONE
    files.keep("one partition")
    assert add(wire, who, 0) is Error.NONE
    assert [send(wire, who, 0, b"a", partition=partition) for partition in (0, 1)] == [Error.NONE] * 2
    wire = files.start(connect, **{STATES: "one partition"})
    for partition in (0, 1):
        wait_until(lambda: is_stable(wire, partition))  # noqa: B023 - called at once
        assert committed_values(wire, "t", partition) == []
    assert end(wire, who) in (Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH)


@pytest.mark.parametrize("same", [True, False])
def test_what_an_older_epoch_left_is_not_part_of_the_transaction_that_is_open(wire, files, connect, same):
    older = initialize(wire)
    assert add(wire, older, 0) is Error.NONE
    assert send(wire, older, 0, b"old") is Error.NONE
    files.keep("before its marker")
    assert end(wire, older, commit=False) is Error.NONE
    who, place = initialize(wire), 0 if same else 1
    assert add(wire, who, place) is Error.NONE
    wire = files.start(connect, **{"t-0": "before its marker"})
    wait_until(lambda: is_stable(wire))
    assert send(wire, who, 0, b"new", partition=place) is Error.NONE
    assert end(wire, who) is Error.NONE
    assert (committed_values(wire, "t", 0), committed_values(wire, "t", 1)) == (
        ([b"new"], []) if same else ([], [b"new"])
    )


def test_who_ends_what_its_coordinator_has_forgotten_is_not_given_an_epoch_that_another_may_have(wire, files, connect):
    first = initialize(wire)
    assert send_2(wire, first, 0, b"a") is Error.NONE
    second = end_2(wire, first)
    files.keep("the second transaction")
    assert send_2(wire, second, 0, b"b") is Error.NONE
    third = end_2(wire, second)
    another = initialize(wire)
    wire = files.start(connect, **{STATES: "the second transaction"})
    wait_until(lambda: describe(wire).transaction_state == "CompleteAbort")
    assert describe(wire).producer_epoch == another.producer_epoch
    assert end_2(wire, third, commit=False) is Error.PRODUCER_FENCED


def test_offsets_of_a_transaction_that_was_forgotten_are_not_pending_for_ever(wire, files, connect):
    who = initialize(wire)
    commit_in_transaction(wire, "tx", who, "g", 3)
    assert end(wire, who) is Error.NONE
    files.keep("the first")
    commit_in_transaction(wire, "tx", who, "g", 5)
    wire = files.start(connect, **{STATES: "the first"})
    wait_until(lambda: initialize(wire).error_code == 0)
    wait_until(lambda: committed(wire, "g") == 3)


def refuses_at_the_start(files, monkeypatch, times):
    """Lets the first writes fail of what a broker does by itself."""
    really = Transactions.start

    def start(self):
        files.started[-1].disk.fail("write", times=times)
        really(self)

    monkeypatch.setattr(Transactions, "start", start)


@pytest.mark.parametrize("before", ["the id", "the transaction"])
def test_what_the_disk_refuses_at_the_start_is_aborted_in_the_end(wire, files, connect, monkeypatch, caplog, before):
    files.keep("the id")
    who = initialize(wire)
    files.keep("the transaction")
    assert add(wire, who, 0) is Error.NONE
    assert send(wire, who, 0, b"a") is Error.NONE
    monkeypatch.setattr(scheduler, "TRANSACTIONS_EVERY_S", 0.05)
    refuses_at_the_start(files, monkeypatch, 4)
    wire = files.start(connect, **{STATES: before})
    wait_until(lambda: is_stable(wire))
    assert committed_values(wire, "t", 0) == []
    assert "a scheduled task failed" not in caplog.text  # it goes on with what else there is to end


def test_nothing_is_added_to_a_transaction_before_what_hangs_is_aborted(wire, files, connect, monkeypatch):
    who = initialize(wire)
    files.keep("the transaction")
    assert add(wire, who, 0) is Error.NONE
    assert send(wire, who, 0, b"a") is Error.NONE
    monkeypatch.setattr(scheduler, "TRANSACTIONS_EVERY_S", 600.0)
    refuses_at_the_start(files, monkeypatch, 1)
    wire = files.start(connect, **{STATES: "the transaction"})
    who = initialize(wire)
    assert add(wire, who, 0) is Error.CONCURRENT_TRANSACTIONS
    assert not is_stable(wire)


def follow_who_left_something(wire, files):
    """Keeps what is there before the marker of a transaction that was aborted; whoever has its id next."""
    older = initialize(wire)
    assert add(wire, older, 0) is Error.NONE
    assert send(wire, older, 0, b"old") is Error.NONE
    files.keep("before its marker")
    assert end(wire, older, commit=False) is Error.NONE
    return initialize(wire)


def test_what_an_older_epoch_left_is_over_when_a_later_one_was_aborted_there(wire, files, connect, monkeypatch):
    who = follow_who_left_something(wire, files)
    assert add(wire, who, 0) is Error.NONE
    refuses_at_the_start(files, monkeypatch, 1)
    monkeypatch.setattr(scheduler, "TRANSACTIONS_EVERY_S", 1.0)
    wire = files.start(connect, **{"t-0": "before its marker"})
    who = initialize(wire)  # aborts in the name of a later epoch, before what hangs is looked at again
    assert is_stable(wire)
    wait_until(lambda: add(wire, who, 0) is Error.NONE)
    assert send(wire, who, 0, b"new") is Error.NONE
    assert end(wire, who) is Error.NONE
    assert committed_values(wire, "t", 0) == [b"new"]


@pytest.mark.parametrize("version", [1, 2])
def test_what_an_older_epoch_left_is_not_committed_while_the_disk_keeps_it_from_being_aborted(
    wire, files, connect, monkeypatch, version
):
    who = follow_who_left_something(wire, files)
    assert add(wire, who, 0) is Error.NONE
    refuses_at_the_start(files, monkeypatch, 1)
    monkeypatch.setattr(scheduler, "TRANSACTIONS_EVERY_S", 600.0)
    wire = files.start(connect, **{"t-0": "before its marker"})
    if version == 1:
        assert send(wire, who, 0, b"new") is Error.NOT_ENOUGH_REPLICAS
        assert end(wire, who) is Error.CONCURRENT_TRANSACTIONS
    else:
        refusals = Error.NOT_ENOUGH_REPLICAS, Error.CONCURRENT_TRANSACTIONS
        assert send_2(wire, who, 0, b"new") in refusals
        assert end_2(wire, who) is Error.CONCURRENT_TRANSACTIONS
    assert committed_values(wire, "t", 0) == []


def test_what_is_decided_is_not_carried_out_before_what_an_older_epoch_left_is_aborted(
    wire, files, broker, connect, monkeypatch
):
    who = follow_who_left_something(wire, files)
    assert add(wire, who, 0, 1) == [Error.NONE] * 2
    assert send(wire, who, 0, b"new", partition=1) is Error.NONE
    broker.disk.fail("sync", times=1)
    assert send(wire, who, 1, b"lost", partition=1) is Error.KAFKA_STORAGE_ERROR  # it is offline from then on
    assert end(wire, who) is Error.COORDINATOR_NOT_AVAILABLE
    monkeypatch.setattr(scheduler, "TRANSACTIONS_EVERY_S", 0.05)
    refuses_at_the_start(files, monkeypatch, 1)
    wire = files.start(connect, **{"t-0": "before its marker"})
    wait_until(lambda: describe(wire).transaction_state == "CompleteCommit")
    assert (committed_values(wire, "t", 0), committed_values(wire, "t", 1)) == ([], [b"new"])


def test_what_was_begun_after_a_transaction_of_version_2_is_not_committed_with_it(wire, files, broker, connect):
    who = initialize(wire)
    assert send_2(wire, who, 0, b"a") is Error.NONE
    assert send_2(wire, who, 0, b"a", partition=1) is Error.NONE
    broker.disk.fail("sync", times=1)
    assert send_2(wire, who, 1, b"lost", partition=1) is Error.KAFKA_STORAGE_ERROR  # it is offline from then on
    assert end_2(wire, who) is Error.COORDINATOR_NOT_AVAILABLE
    files.keep("ending")
    broker.stop()
    broker.disk.mend()
    broker.start()
    wire = connect(broker.bootstrap)
    wait_until(lambda: describe(wire).transaction_state == "CompleteCommit")
    after = end_2(wire, who)
    assert send_2(wire, after, 0, b"b") is Error.NONE
    wire = files.start(connect, **{STATES: "ending"})
    wait_until(lambda: is_stable(wire) and describe(wire).transaction_state == "CompleteAbort")
    assert (committed_values(wire, "t", 0), committed_values(wire, "t", 1)) == ([b"a"], [b"a"])


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_that_its_coordinator_knows_goes_on_after_a_kill(wire, files, connect, commit):
    who = initialize(wire)
    assert add(wire, who, 0, 1) == [Error.NONE] * 2
    assert send(wire, who, 0, b"a") is Error.NONE
    commit_in_transaction(wire, "tx", who, "g", 5)
    wire = files.start(connect)
    assert not is_stable(wire)
    assert send(wire, who, 1, b"b") is Error.NONE
    assert end(wire, who, commit) is Error.NONE
    assert committed_values(wire, "t", 0) == ([b"a", b"b"] if commit else [])
    assert committed(wire, "g") == (5 if commit else -1)
