"""Transactions of version 2 over a socket (KIP-890): an epoch of its own for each, and partitions that are added by
what is written to them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tagwire import messages
from tagwire.broker import Broker, scheduler
from tagwire.broker.transactions import coordinator, transaction
from tagwire.broker.transactions.transaction import State, Transaction
from tagwire.errors import Error, KafkaError
from tagwire.records import Record, write

from ...limits import wait_until
from ..asking import committed_values
from .test_transaction_requests import (
    add,
    commit_offset,
    committed,
    describe,
    end,
    initialize,
    seen,
    send,
    stored,
)


def send_2(wire, who, sequence, *values, **options):
    return send(wire, who, sequence, *values, version=12, **options)


def end_2(wire, who, commit=True):
    """Who goes on after the transaction, or why it is not ended."""
    request = messages.EndTxnRequest(
        transactional_id="tx", producer_id=who.producer_id, producer_epoch=who.producer_epoch, committed=commit
    )
    response = wire.ask(request, 5)
    if response.error_code:
        assert (response.producer_id, response.producer_epoch) == (-1, -1)
        return Error.of(response.error_code)
    return response


def identity(who):
    return who.producer_id, who.producer_epoch


@pytest.fixture
def topic(wire):
    wire.create("t", 2)


@pytest.fixture
def short_lived_ids(monkeypatch):
    """Producer ids with two epochs each."""
    for module in (transaction, coordinator):
        monkeypatch.setattr(module, "LAST_EPOCH", 1)


@pytest.mark.parametrize(("release", "level"), [(None, 2), ("4.0", 2), ("3.9", None), ("2.8", None)])
def test_the_feature_is_told_where_the_release_has_it(connect, release, level):
    with Broker(as_release=release) as broker:
        request = messages.ApiVersionsRequest(client_software_name="a", client_software_version="1")
        response = connect(broker.bootstrap).ask(request, 3)
    finalized = {each.name: each.max_version_level for each in response.finalized_features}
    assert finalized.get("transaction.version") == level


def test_what_is_written_begins_a_transaction_and_its_end_begins_another_epoch(wire, topic):
    who = initialize(wire)
    assert send_2(wire, who, 0, b"a") is Error.NONE
    assert send_2(wire, who, 0, b"b", partition=1) is Error.NONE
    assert [each.partitions for each in describe(wire).topics] == [[0, 1]]
    assert (seen(wire), seen(wire, 1)) == ([], [])
    after = end_2(wire, who)
    assert identity(after) == (who.producer_id, who.producer_epoch + 1)
    assert (seen(wire), seen(wire, 1)) == ([b"a"], [b"b"])
    assert send_2(wire, after, 0, b"c") is Error.NONE  # numbers begin anew
    assert identity(end_2(wire, after, commit=False)) == (who.producer_id, who.producer_epoch + 2)
    assert seen(wire) == [b"a"]
    assert wire.fetch("t", 0, isolation_level=1).last_stable_offset == 4


def test_what_comes_late_is_of_no_later_transaction(wire, topic):
    who = initialize(wire)
    assert send_2(wire, who, 0, b"a") is Error.NONE
    after = end_2(wire, who)
    assert send_2(wire, who, 1, b"late") is Error.INVALID_PRODUCER_EPOCH
    assert send_2(wire, who, 0, b"late", partition=1) is Error.INVALID_PRODUCER_EPOCH
    assert describe(wire).transaction_state == "CompleteCommit"
    assert send_2(wire, after, 0, b"b") is Error.NONE
    assert end_2(wire, who) is Error.PRODUCER_FENCED
    assert end_2(wire, who, commit=False) is Error.PRODUCER_FENCED
    assert describe(wire).transaction_state == "Ongoing"
    end_2(wire, after)
    assert committed_values(wire, "t", 0) == [b"a", b"b"]


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_that_is_sent_again_is_answered_as_the_first_after_a_restart_too(tmp_path, connect, commit):
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        wire.create("t", 2)
        who = initialize(wire)
        send_2(wire, who, 0, b"a")
        after = end_2(wire, who, commit)
        assert identity(end_2(wire, who, commit)) == identity(after)
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        assert identity(end_2(wire, who, commit)) == identity(after)
        assert end_2(wire, who, not commit) is Error.INVALID_TXN_STATE
        assert send_2(wire, after, 0, b"b") is Error.NONE
        end_2(wire, after)
        assert committed_values(wire, "t", 0) == ([b"a", b"b"] if commit else [b"b"])


def test_an_abort_may_be_of_nothing_and_a_commit_may_not(wire, topic):
    who = initialize(wire)
    assert end_2(wire, who) is Error.INVALID_TXN_STATE
    after = end_2(wire, who, commit=False)
    assert identity(after) == (who.producer_id, who.producer_epoch + 1)
    assert end_2(wire, after) is Error.INVALID_TXN_STATE
    assert identity(end_2(wire, after, commit=False)) == (who.producer_id, who.producer_epoch + 2)


def test_strangers_end_nothing(wire, topic):
    who = initialize(wire)
    send_2(wire, who, 0, b"a")
    stranger = messages.InitProducerIdResponse(producer_id=who.producer_id + 1, producer_epoch=0)
    later = messages.InitProducerIdResponse(producer_id=who.producer_id, producer_epoch=who.producer_epoch + 1)
    assert end_2(wire, stranger) is Error.INVALID_PRODUCER_ID_MAPPING
    assert end_2(wire, later) is Error.PRODUCER_FENCED
    assert describe(wire).transaction_state == "Ongoing"


def test_who_is_fenced_neither_writes_nor_ends(wire, topic):
    old = initialize(wire)
    send_2(wire, old, 0, b"old")
    new = initialize(wire)
    assert send_2(wire, old, 1, b"old") is Error.INVALID_PRODUCER_EPOCH
    assert end_2(wire, old) is Error.PRODUCER_FENCED
    assert end_2(wire, old, commit=False) is Error.PRODUCER_FENCED
    assert send_2(wire, new, 0, b"new") is Error.NONE
    end_2(wire, new)
    assert committed_values(wire, "t", 0) == [b"new"]


def test_whose_transaction_was_aborted_for_its_age_aborts_it_and_goes_on(wire, topic):
    who = initialize(wire, timeout=300)
    assert send_2(wire, who, 0, b"a") is Error.NONE
    wait_until(lambda: describe(wire).transaction_state == "CompleteAbort")
    assert send_2(wire, who, 1, b"b") is Error.INVALID_PRODUCER_EPOCH
    assert end_2(wire, who) is Error.INVALID_TXN_STATE
    after = end_2(wire, who, commit=False)
    assert identity(after) == (who.producer_id, who.producer_epoch + 1)
    assert identity(initialize(wire, producer_id=who.producer_id, epoch=who.producer_epoch)) == identity(after)
    assert send_2(wire, after, 0, b"c") is Error.NONE
    end_2(wire, after)
    assert committed_values(wire, "t", 0) == [b"c"]


def test_who_initializes_amid_its_own_transaction_aborts_it_and_goes_on(wire, topic):
    who = initialize(wire)
    assert send_2(wire, who, 0, b"a") is Error.NONE
    for _ in range(2):
        after = initialize(wire, producer_id=who.producer_id, epoch=who.producer_epoch)
        assert identity(after) == (who.producer_id, who.producer_epoch + 1)
    assert send_2(wire, after, 0, b"b") is Error.NONE
    end_2(wire, after)
    assert committed_values(wire, "t", 0) == [b"b"]


def test_who_did_not_hear_of_the_end_is_given_the_epoch_that_came_of_it(wire, topic):
    who = initialize(wire)
    send_2(wire, who, 0, b"a")
    after = end_2(wire, who)
    again = initialize(wire, producer_id=who.producer_id, epoch=who.producer_epoch)
    assert identity(again) == identity(after)
    assert identity(initialize(wire, producer_id=who.producer_id, epoch=who.producer_epoch)) == identity(after)


@pytest.mark.parametrize("commit", [True, False])
def test_who_was_fenced_is_not_given_the_epoch_of_whoever_ended_a_transaction_of_version_1(wire, topic, commit):
    fenced = initialize(wire)
    owner = initialize(wire)
    assert add(wire, owner, 0) is Error.NONE
    assert end_2(wire, fenced, commit) is Error.PRODUCER_FENCED
    assert end(wire, owner, commit) is Error.NONE
    assert end_2(wire, fenced, commit) is Error.PRODUCER_FENCED


def test_who_was_fenced_is_not_given_the_epoch_in_which_another_ended_as_of_version_1_what_it_began(wire, topic):
    fenced = initialize(wire)
    owner = initialize(wire)
    assert send_2(wire, owner, 0, b"a") is Error.NONE
    assert end(wire, owner) is Error.NONE
    assert end_2(wire, fenced) is Error.PRODUCER_FENCED
    assert seen(wire) == [b"a"]


def test_where_epochs_are_used_up_another_producer_id_comes_after(tmp_path, connect, short_lived_ids):
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        wire.create("t", 2)
        first = initialize(wire)
        send_2(wire, first, 0, b"a")
        last = end_2(wire, first)
        assert identity(last) == (first.producer_id, 1)
        send_2(wire, last, 0, b"b")
        after = end_2(wire, last)
        assert after.producer_id not in (first.producer_id, -1)
        assert after.producer_epoch == 0
        assert identity(end_2(wire, last)) == identity(after)
        assert end_2(wire, first) is Error.INVALID_PRODUCER_ID_MAPPING
        assert send_2(wire, last, 1, b"late") is Error.INVALID_PRODUCER_ID_MAPPING
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        assert identity(end_2(wire, last)) == identity(after)
        assert send_2(wire, after, 0, b"c") is Error.NONE
        end_2(wire, after)
        assert committed_values(wire, "t", 0) == [b"a", b"b", b"c"]


def test_who_is_fenced_in_its_last_epoch_ends_nothing(wire, topic, short_lived_ids):
    first = initialize(wire, timeout=300)
    last = end_2(wire, first, commit=False)
    assert send_2(wire, last, 0, b"a") is Error.NONE
    wait_until(lambda: describe(wire).transaction_state == "CompleteAbort")
    assert end_2(wire, last, commit=False) is Error.PRODUCER_FENCED
    assert initialize(wire).producer_epoch == 0


def test_nobody_has_the_epoch_that_fences_the_last_one(wire, topic, short_lived_ids):
    first = initialize(wire, timeout=300)
    last = end_2(wire, first, commit=False)
    assert send_2(wire, last, 0, b"a") is Error.NONE
    wait_until(lambda: describe(wire).transaction_state == "CompleteAbort")
    fencing = messages.InitProducerIdResponse(producer_id=last.producer_id, producer_epoch=last.producer_epoch + 1)
    assert describe(wire).producer_epoch == fencing.producer_epoch
    assert add(wire, fencing, 0) in (Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH)
    assert send_2(wire, fencing, 0, b"b") is Error.INVALID_PRODUCER_EPOCH
    assert end_2(wire, fencing, commit=False) is Error.PRODUCER_FENCED
    assert describe(wire).transaction_state == "CompleteAbort"


@pytest.mark.parametrize("commit", [True, False])
def test_offsets_of_a_group_add_it_to_the_transaction(wire, topic, commit):
    who = initialize(wire)
    assert commit_offset(wire, who, 5, version=5) is Error.NONE
    assert committed(wire, stable=True) == (-1, Error.UNSTABLE_OFFSET_COMMIT)
    after = end_2(wire, who, commit)
    assert committed(wire, stable=True) == (5 if commit else -1, Error.NONE)
    assert commit_offset(wire, who, 7, version=5) is Error.INVALID_PRODUCER_EPOCH
    assert commit_offset(wire, after, 9, version=5) is Error.NONE
    end_2(wire, after)
    assert committed(wire, stable=True) == (9, Error.NONE)


def test_batches_that_are_sent_at_once_begin_a_transaction_and_stand_in_their_order(wire, topic):
    who = initialize(wire)
    request = messages.ProduceRequest
    for sequence in range(5):
        data = write(
            [Record(None, b"%d" % sequence, timestamp=1000)],
            producer_id=who.producer_id,
            producer_epoch=who.producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        partition = request.PartitionProduceData(index=0, records=data)
        wire.send(
            request(
                transactional_id="tx",
                acks=-1,
                timeout_ms=1000,
                topic_data=[request.TopicProduceData(name="t", partition_data=[partition])],
            ),
            12,
        )
    responses = [wire.receive() for _ in range(5)]
    assert [each.responses[0].partition_responses[0].base_offset for each in responses] == [0, 1, 2, 3, 4]
    end_2(wire, who)
    assert committed_values(wire, "t", 0) == [b"0", b"1", b"2", b"3", b"4"]


def test_partitions_of_one_request_are_added_together(wire, topic):
    who = initialize(wire)
    request = messages.ProduceRequest
    data = write(
        [Record(None, b"v", timestamp=1000)],
        producer_id=who.producer_id,
        producer_epoch=who.producer_epoch,
        base_sequence=0,
        transactional=True,
    )
    partitions = [request.PartitionProduceData(index=index, records=data) for index in (0, 1, 7)]
    message = request(
        transactional_id="tx",
        acks=-1,
        timeout_ms=1000,
        topic_data=[request.TopicProduceData(name="t", partition_data=partitions)],
    )
    (response,) = wire.ask(message, 12).responses
    assert [each.error_code for each in response.partition_responses] == [0, 0, Error.UNKNOWN_TOPIC_OR_PARTITION]
    values = [record.value.message for record in stored(wire)]
    assert [[part.partition_ids for part in each.transaction_partitions or ()] for each in values] == [[], [[0, 1]]]


def test_what_cannot_be_added_because_of_the_disk_is_worth_another_attempt(broker, wire, topic, monkeypatch):
    monkeypatch.setattr(scheduler, "TRANSACTIONS_EVERY_S", 600.0)
    who = initialize(wire)
    broker.disk.fail("write", times=1)
    assert send_2(wire, who, 0, b"a") is Error.NOT_ENOUGH_REPLICAS
    assert describe(wire).transaction_state == "Empty"
    assert send_2(wire, who, 0, b"a") is Error.NONE
    end_2(wire, who)
    assert committed_values(wire, "t", 0) == [b"a"]


def test_producers_of_both_versions_have_the_id_one_after_the_other(wire, topic):
    who = initialize(wire)
    assert add(wire, who, 0) is Error.NONE
    assert send(wire, who, 0, b"a") is Error.NONE
    assert end(wire, who) is Error.NONE
    who = initialize(wire)
    assert send_2(wire, who, 0, b"b") is Error.NONE
    after = end_2(wire, who)
    assert add(wire, after, 0) is Error.NONE
    assert send(wire, after, 0, b"c") is Error.NONE
    assert end(wire, after) is Error.NONE
    assert add(wire, after, 0) is Error.NONE
    assert send(wire, after, 1, b"d") is Error.NONE
    assert identity(end_2(wire, after)) == (after.producer_id, after.producer_epoch + 1)
    assert committed_values(wire, "t", 0) == [b"a", b"b", b"c", b"d"]


def test_what_is_stored_says_of_which_version_a_transaction_is(wire, topic):
    who = initialize(wire)
    send_2(wire, who, 0, b"a")
    end_2(wire, who)
    values = [record.value.message for record in stored(wire)]
    assert [each.client_transaction_version for each in values] == [0, 2, 2, 2]
    assert [each.producer_epoch for each in values] == [0, 0, 1, 1]


# The rules, with the time told to them -----------------------------------------------------------------------------

OPEN = Transaction("tx", 5, 3, 1000, updated_ms=100).added([("t", 0)], 200, 2)


@pytest.mark.parametrize("commit", [True, False])
def test_while_it_ends_whoever_ends_it_again_waits_and_whoever_ends_it_otherwise_is_wrong(commit):
    ending = OPEN.ended_with_epoch(5, 3, commit=commit, now_ms=300)
    assert (ending.epoch, ending.is_ending, ending.commits) == (4, True, commit)
    with pytest.raises(KafkaError, match="CONCURRENT_TRANSACTIONS"):
        ending.ended_with_epoch(5, 3, commit=commit, now_ms=400)
    with pytest.raises(KafkaError, match="INVALID_TXN_STATE"):
        ending.ended_with_epoch(5, 3, commit=not commit, now_ms=400)
    with pytest.raises(KafkaError, match="PRODUCER_FENCED"):
        ending.ended_with_epoch(5, 4, commit=commit, now_ms=400)
    done = ending.completed(400)
    assert done.ended_with_epoch(5, 3, commit=commit, now_ms=500) is done


def test_the_end_of_version_1_is_in_the_epoch_of_its_producer():
    ending = OPEN.ended(commit=True, now_ms=300)
    with pytest.raises(KafkaError, match="PRODUCER_FENCED"):
        ending.ended_with_epoch(5, 2, commit=False, now_ms=400)
    with pytest.raises(KafkaError, match="CONCURRENT_TRANSACTIONS"):
        ending.ended_with_epoch(5, 3, commit=True, now_ms=400)


def test_a_transaction_of_the_last_epoch_ends_with_another_producer_id():
    last = replace(OPEN, epoch=transaction.LAST_EPOCH)
    ending = replace(last.ended_with_epoch(5, last.epoch, commit=True, now_ms=300), next_producer_id=9)
    assert (ending.producer_id, ending.epoch) == (5, transaction.LAST_EPOCH + 1)
    done = ending.completed(400)
    assert (done.producer_id, done.epoch, done.state) == (9, 0, State.COMPLETE_COMMIT)
    assert done.ended_with_epoch(5, last.epoch, commit=True, now_ms=500) is done
    assert done.added([("t", 1)], 600, 2).previous_producer_id == -1
