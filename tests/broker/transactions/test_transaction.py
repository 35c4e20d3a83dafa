"""The rules of a transactional id, with the time told to it."""

from __future__ import annotations

import asyncio
from dataclasses import FrozenInstanceError, replace
from types import SimpleNamespace

import pytest

from tagwire.broker.transactions.states import TransactionStates
from tagwire.broker.transactions.transaction import State, Transaction
from tagwire.errors import KafkaError

T0, T1 = ("t", 0), ("t", 1)


@pytest.fixture
def transaction():
    return Transaction("tx", 5, 3, 1000, updated_ms=100)


def test_the_first_partition_begins_a_transaction_and_more_are_added(transaction):
    first = transaction.added([T0], 200)
    assert (first.state, first.started_ms) == (State.ONGOING, 200)
    assert first.added([T0], 300) is first
    more = first.added([T0, T1], 400)
    assert (more.partitions, more.started_ms) == ({T0, T1}, 200)


def test_what_follows_changes_nothing_of_what_was(transaction):
    before = replace(transaction)
    transaction.added([T0], 200).fenced(300).completed(400).initialized(5, 5, 2000, 500)
    assert transaction == before
    with pytest.raises(FrozenInstanceError):
        transaction.epoch += 1


@pytest.mark.parametrize("commit", [True, False])
def test_an_outcome_is_decided_and_then_carried_out(transaction, commit):
    ending = transaction.added([T0], 200).ended(commit=commit, now_ms=300)
    assert ending.is_ending
    assert ending.commits == commit
    for early in (lambda: ending.added([T1], 300), lambda: ending.ended(commit=commit, now_ms=300)):
        with pytest.raises(KafkaError, match="CONCURRENT_TRANSACTIONS"):
            early()
    done = ending.completed(400)
    assert done.state is (State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT)
    assert (done.partitions, done.started_ms) == (set(), 200)


def test_who_is_fenced_while_a_transaction_of_version_2_ends_is_told_its_own_epoch(transaction):
    ending = transaction.added([T0], 200).ended_with_epoch(5, 3, commit=True, now_ms=300)
    with pytest.raises(KafkaError, match=r"PRODUCER_FENCED.*tx is at epoch 3, not 2"):
        ending.ended_with_epoch(5, 2, commit=True, now_ms=400)


@pytest.mark.parametrize("commit", [True, False])
def test_ending_again_is_nothing_new_and_ending_otherwise_is_wrong(transaction, commit):
    done = transaction.added([T0], 200).ended(commit=commit, now_ms=300).completed(400)
    assert done.ended(commit=commit, now_ms=500) is done
    with pytest.raises(KafkaError, match="INVALID_TXN_STATE"):
        done.ended(commit=not commit, now_ms=500)


@pytest.mark.parametrize("commit", [True, False])
def test_an_outcome_that_is_decided_is_not_waited_for_by_who_asks_for_the_other(transaction, commit):
    ending = transaction.added([T0], 200).ended(commit=commit, now_ms=300)
    with pytest.raises(KafkaError, match="INVALID_TXN_STATE"):
        ending.ended(commit=not commit, now_ms=300)


def test_without_a_transaction_there_is_nothing_to_end(transaction):
    with pytest.raises(KafkaError, match="INVALID_TXN_STATE"):
        transaction.ended(commit=True, now_ms=200)


@pytest.mark.parametrize(
    ("producer_id", "epoch", "error"),
    [(6, 3, "INVALID_PRODUCER_ID_MAPPING"), (5, 2, "PRODUCER_FENCED"), (5, 4, "PRODUCER_FENCED")],
)
def test_another_producer_or_epoch_is_refused(transaction, producer_id, epoch, error):
    with pytest.raises(KafkaError, match=error):
        transaction.check_producer(producer_id, epoch)
    with pytest.raises(KafkaError, match=error.replace("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")):
        transaction.added([T0], 200).check_open(producer_id, epoch, T0)


def test_records_belong_to_an_open_transaction_that_was_told_of_their_partition(transaction):
    with pytest.raises(KafkaError, match="INVALID_TXN_STATE"):
        transaction.check_open(5, 3, T0)
    begun = transaction.added([T0], 200)
    begun.check_open(5, 3, T0)
    with pytest.raises(KafkaError, match="INVALID_TXN_STATE"):
        begun.check_open(5, 3, T1)
    with pytest.raises(KafkaError, match="INVALID_TXN_STATE"):
        begun.ended(commit=True, now_ms=300).check_open(5, 3, T0)


def test_a_transaction_is_overdue_after_its_timeout_and_fenced_by_the_next_epoch(transaction):
    assert not transaction.is_overdue(10_000)
    begun = transaction.added([T0], 200)
    assert not begun.is_overdue(1199)
    assert begun.is_overdue(1200)
    fenced = begun.fenced(1200)
    assert (fenced.state, fenced.epoch) == (State.PREPARE_ABORT, 4)


def test_names_of_states_are_kafkas():
    assert [state.label for state in State] == [
        "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
    ]  # fmt: skip


def test_an_id_is_there_at_every_moment_while_another_state_of_it_is_stored(transaction):
    async def append(records, *, decides):
        pass

    states, found = TransactionStates(SimpleNamespace(append=append)), []

    class Watched(Transaction):
        @property
        def held_bytes(self):  # as a thread might that checks a batch meanwhile
            found.append(states.get("tx"))
            return 0

    first, second = (Watched("tx", 5, 3, 1000, updated_ms=at) for at in (100, 200))
    asyncio.run(states.store(first))
    found.clear()
    asyncio.run(states.store(second))
    assert set(map(id, found)) == {id(first), id(second)}
