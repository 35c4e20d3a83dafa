"""What may die when a query is written exactly once: the same tests for every broker."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from tagwire.client import Admin, Producer
from tagwire.errors import TagwireError
from tagwire.spark.sink import driver, task_transactions
from tagwire.spark.sink.decisions import PARTITION, TOPIC
from tagwire.spark.sink.driver import LostTransactionError, OvertakenError, UndecidedError
from tagwire.spark.sink.transactional_ids import decisions_id

from ..limits import stretch
from .exactly_once_query import Died, Query, until


class ExactlyOnceStories:
    """What may die when. A module with a broker gives the fixture `query`."""

    def test_every_row_of_every_batch_stands_once(self, query: Query) -> None:
        for batch in range(3):
            query.run(batch, [b"a%d" % batch, b"b%d" % batch], [b"c%d" % batch])
        assert query.seen() == [b"%s%d" % (name, batch) for batch in range(3) for name in (b"a", b"b", b"c")]
        assert not query.is_held_up()
        assert [(one.batch_id, one.done) for one in query.decisions()] == [
            (batch, done) for batch in range(3) for done in (False, True)
        ]

    def test_nothing_is_seen_before_the_decision(self, query: Query) -> None:
        messages = query.tasks(0, [b"a"], [b"b"])
        assert query.seen() == []
        query.commit(0, messages)
        assert query.seen() == [b"a", b"b"]

    @pytest.mark.parametrize("ended", [0, 1, 2])
    def test_a_driver_that_dies_after_the_decision_is_carried_on_by_the_next(self, query: Query, ended: int) -> None:
        """Also when the next one has another number of tasks: the batch is not run again."""
        messages = query.tasks(0, [b"a"], [b"b"], [b"c"])
        query.dies_at_end(ended)
        with pytest.raises(Died):
            query.commit(0, messages)
        query.lives()
        again = query.tasks(0, [b"a", b"b"], [b"c"])
        assert all(message.is_decided and message.transaction is None for message in again)
        query.commit(0, again)
        assert query.seen() == [b"a", b"b", b"c"]
        query.run(1, [b"d"])
        assert query.seen() == [b"a", b"b", b"c", b"d"]
        assert not query.is_held_up()

    def test_a_driver_that_dies_before_the_decision_leaves_nothing_and_the_batch_is_run_again(
        self, query: Query
    ) -> None:
        query.tasks(0, [b"a"], [b"b"])
        query.run(0, [b"a", b"b"])
        assert query.seen() == [b"a", b"b"]
        assert not query.is_held_up()

    def test_abort_after_a_commit_that_raised_ends_nothing_that_was_decided(self, query: Query) -> None:
        messages = query.tasks(0, [b"a"], [b"b"])
        query.dies_at_end(1)
        with pytest.raises(Died):
            query.commit(0, messages)
        query.lives()
        query.abort(0, messages)
        assert query.seen() == [b"a"]
        query.run(0, [b"a"], [b"b"])
        assert query.seen() == [b"a", b"b"]

    def test_abort_ends_what_a_failed_batch_has_written(self, query: Query) -> None:
        messages = query.tasks(0, [b"a"], [b"b"])
        query.abort(0, [*messages, None])
        assert not query.is_held_up()
        assert query.seen() == []
        query.abort(0, [None])
        query.run(0, [b"a"], [b"b"])
        assert query.seen() == [b"a", b"b"]

    def test_of_two_attempts_of_a_task_only_the_one_that_is_committed_counts(self, query: Query) -> None:
        pickled = query.planned()
        first = query.attempt(pickled, 0, [b"a"])
        second = query.attempt(pickled, 0, [b"a"])
        assert first.transaction.transactional_id != second.transaction.transactional_id
        query.commit(0, [second])
        late = query.attempt(pickled, 0, [b"a"])  # stopped before its start, and continued after the batch
        assert late.transaction.transactional_id not in (
            first.transaction.transactional_id,
            second.transaction.transactional_id,
        )
        query.run(1, [b"b"])
        assert query.seen() == [b"a", b"b"]
        assert not query.is_held_up()

    def test_of_two_drivers_of_one_query_the_older_cannot_decide(self, query: Query) -> None:
        older = query.tasks(0, [b"a"])
        newer = query.tasks(0, [b"a"])
        with pytest.raises(UndecidedError):
            query.commit(0, older)
        query.commit(0, newer)
        assert query.seen() == [b"a"]
        assert [one.batch_id for one in query.decisions()] == [0, 0]

    def test_what_was_decided_is_read_when_nobody_can_decide_any_more(self, query: Query) -> None:
        """The older driver comes when the newer one has just read: what it decided then would not be known to that."""
        messages = query.tasks(0, [b"a"])
        read = driver.last_decisions

        def overtaken(*asked: Any) -> Any:
            query.monkeypatch.setattr(driver, "last_decisions", read)
            found = read(*asked)
            with pytest.raises(UndecidedError):
                query.commit(0, messages)
            return found

        query.monkeypatch.setattr(driver, "last_decisions", overtaken)
        query.run(0, [b"a"])
        assert query.seen() == [b"a"]

    def test_a_driver_that_was_overtaken_and_gives_up_fences_nobody(self, query: Query) -> None:
        """Spark has it abort what it could not commit: it ends what its own tasks have written, and nothing else."""
        pickled = query.planned()
        newer = query.tasks(0, [b"a"])
        older = [query.attempt(pickled, 0, [b"a"])]
        with pytest.raises(UndecidedError, match="another driver of query"):
            query.commit(0, older)
        query.abort(0, older)
        query.commit(0, newer)
        assert query.seen() == [b"a"]
        assert not query.is_held_up()

    def test_a_driver_that_was_overtaken_ends_nothing_of_the_newer_one(
        self, query: Query, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is about to list what is open when the newer one prepares, and its tasks write."""
        listed = Admin.list_transactions
        newer = []

        def overtaken(admin: Admin, **options: Any) -> Any:
            monkeypatch.setattr(Admin, "list_transactions", listed)
            newer.extend(query.tasks(0, [b"a"]))
            return admin.list_transactions(**options)

        monkeypatch.setattr(Admin, "list_transactions", overtaken)
        with pytest.raises(UndecidedError, match="another driver of query"):
            query.planned()
        query.commit(0, newer)
        assert query.seen() == [b"a"]

    @pytest.mark.parametrize("written", [False, True])
    def test_a_driver_that_is_overtaken_once_it_has_decided_finds_nothing_lost(
        self, query: Query, monkeypatch: pytest.MonkeyPatch, written: bool
    ) -> None:
        """It is about to end its transactions when a newer one does that, and has its tasks take the same ids."""
        messages = query.tasks(0, [b"a"], [b"b"])
        end_all = driver._end_all
        newer = []

        def overtaken(*args: Any, **named: Any) -> Any:
            monkeypatch.setattr(driver, "_end_all", end_all)
            newer.extend(query.tasks(1, [b"c"], [b"d"]) if written else [query.planned()])
            return end_all(*args, **named)

        monkeypatch.setattr(driver, "_end_all", overtaken)
        with pytest.raises(OvertakenError, match="micro-batch 0 of query query-1 is decided; another driver"):
            query.commit(0, messages)
        assert query.seen() == [b"a", b"b"]
        if written:
            query.commit(1, newer)
            assert query.seen() == [b"a", b"b", b"c", b"d"]

    def test_a_driver_that_is_overtaken_before_it_has_said_that_all_is_done_says_so(
        self, query: Query, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        messages = query.tasks(0, [b"a"])
        commit = Producer.commit_transaction
        commits = []

        def overtaken(producer: Producer, timeout: float | None = None) -> None:
            commits.append(producer)
            if len(commits) == 2:
                query.planned()
            commit(producer, timeout)

        with monkeypatch.context() as patched, pytest.raises(OvertakenError):  # noqa: PT012 - it is undone behind it
            patched.setattr(Producer, "commit_transaction", overtaken)
            query.commit(0, messages)
        query.abort(0, messages)
        query.run(1, [b"b"])
        assert query.seen() == [b"a", b"b"]

    def test_checkpoints_that_take_turns_under_one_name_forget_nothing_of_each_other(self, query: Query) -> None:
        other = replace(query, query_id="query-2")
        query.run(0, [b"a"])
        query.decided_only(1, [b"b"], [b"c"])  # and not noted in its checkpoint
        other.run(0, [b"d"])
        assert query.seen() == [b"a", b"b", b"c", b"d"]
        other.run(1, [b"e"])
        query.run(1, [b"b", b"c"])  # as its checkpoint says
        query.run(2, [b"f"])
        assert query.seen() == [b"a", b"b", b"c", b"d", b"e", b"f"]
        with pytest.raises(UndecidedError, match="micro-batch 0 is to be written, but 1 of the same query"):
            other.tasks(0, [b"d"])
        assert not query.is_held_up()

    def test_a_decision_that_somebody_deletes_is_forgotten(self, query: Query) -> None:
        query.run(0, [b"a"])
        (key,) = {one.key(query.exactly_once_id) for one in query.decisions()}
        with Producer(query.bootstrap) as producer:
            producer.send(TOPIC, None, key=key, partition=PARTITION)
        query.run(0, [b"a"])
        assert query.seen() == [b"a", b"a"]

    def test_tasks_prepared_by_two_drivers_are_not_one_batch(self, query: Query) -> None:
        messages = [*query.tasks(0, [b"a"]), *query.tasks(0, [b"b"])]
        with pytest.raises(UndecidedError, match="prepared by different drivers"):
            query.commit(0, messages)
        assert query.decisions() == []

    def test_a_batch_is_not_decided_without_word_of_every_task(self, query: Query) -> None:
        messages = query.tasks(0, [b"a"])
        with pytest.raises(UndecidedError, match="1 of its tasks say nothing"):
            query.commit(0, [*messages, None])
        with pytest.raises(UndecidedError, match="two of its transactions have the same id"):
            query.commit(0, 2 * messages)
        assert query.decisions() == []

    def test_a_checkpoint_that_was_rolled_back_is_refused_naming_both_batches(self, query: Query) -> None:
        for batch in range(3):
            query.run(batch, [b"%d" % batch])
        with pytest.raises(UndecidedError, match="micro-batch 1 is to be written, but 2 of the same query"):
            query.tasks(1, [b"1"])
        assert query.seen() == [b"0", b"1", b"2"]

    def test_a_new_query_under_the_same_name_begins_anew(self, query: Query) -> None:
        for batch in range(2):
            query.run(batch, [b"%d" % batch])
        query.query_id = "query-2"  # its checkpoint was deleted
        query.run(0, [b"0"])
        query.run(1, [b"1"])
        assert query.seen() == [b"0", b"1", b"0", b"1"]

    def test_a_batch_without_rows_decides_nothing(self, query: Query) -> None:
        query.run(0, [], [])
        assert query.decisions() == []
        query.run(1, [], [b"a"])
        assert query.seen() == [b"a"]

    def test_an_id_is_used_again_only_when_its_batch_is_done_and_by_itself(self, query: Query) -> None:
        pickled = query.planned()
        first = [query.attempt(pickled, 0, [b"a"]).transaction for _ in range(2)]
        assert first[0].transactional_id != first[1].transactional_id
        (second,) = query.tasks(0, [b"a"])  # the batch failed: nothing is known to be done
        assert second.transaction.transactional_id not in {one.transactional_id for one in first}
        query.commit(0, [second])
        third, fourth = query.tasks(1, [b"b"], [b"c"])
        assert third.transaction.transactional_id == second.transaction.transactional_id
        assert third.transaction != second.transaction  # another transaction of that id
        # What was aborted under the first ids was ended by their names. Whoever is late with that must not meet others.
        assert fourth.transaction.transactional_id not in {one.transactional_id for one in first}
        query.commit(1, [third, fourth])
        assert query.seen() == [b"a", b"b", b"c"]

    def test_a_worker_that_serves_two_queries_keeps_their_ids_apart(self, query: Query) -> None:
        other = replace(query, exactly_once_id=f"{query.exactly_once_id}-other")
        query.run(0, [b"a"])
        other.run(0, [b"b"])
        query.run(1, [b"c"])
        assert query.seen() == [b"a", b"b", b"c"]
        prefixes = {
            pooled.transactional_id.rsplit(".", 1)[0] for pool in task_transactions._pools.values() for pooled in pool
        }
        assert {f"tagwire.{one.exactly_once_id}.task" for one in (query, other)} <= prefixes

    def test_a_decision_that_cannot_be_carried_out_stops_every_driver_until_somebody_has_settled_it(
        self, query: Query
    ) -> None:
        messages = query.tasks(0, [b"a"], [b"b"])
        query.dies_at_end(0)
        with pytest.raises(Died):
            query.commit(0, messages)
        query.lives()
        lost = messages[1].transaction
        with Admin(query.bootstrap) as admin:
            admin.fence_producers([lost.transactional_id])  # as if its time had been up
        for settled in ({}, {"exactlyOnceSettled": "query-1/1"}):
            query.options = settled
            with pytest.raises(LostTransactionError, match="micro-batch 0 of query query-1") as raised:
                query.planned()
            assert lost.transactional_id in str(raised.value)
            assert "1 rows" in str(raised.value)
            assert "exactlyOnceSettled=query-1/0" in str(raised.value)
        query.options = {"exactlyOnceSettled": "query-1/0"}
        query.run(0, [b"a"], [b"b"])
        query.run(1, [b"c"])
        assert query.seen() == [b"a", b"c"]

    def test_a_driver_that_comes_back_after_the_transactions_time_stops_loudly(self, query: Query) -> None:
        query.options = {"kafka.transaction.timeout.ms": str(round(1000 * stretch()))}  # half of it is for the tasks
        messages = query.decided_only(0, [b"a"], [b"b"])
        until(lambda: all(query.state(one.transaction.transactional_id) == "CompleteAbort" for one in messages))
        with pytest.raises(LostTransactionError, match="of its 2 transactions 2 were aborted"):
            query.planned()
        assert query.seen() == []

    def test_a_driver_that_sleeps_before_it_commits_its_decision_has_decided_nothing(
        self, query: Query, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The decision's own time is over before that of the transactions that it lists."""
        query.options = {"kafka.transaction.timeout.ms": "8000"}
        messages = query.tasks(0, [b"a"])
        commit = Producer.commit_transaction

        def sleepy(producer: Producer, timeout: float | None = None) -> None:
            until(lambda: query.state(decisions_id(query.exactly_once_id)) == "CompleteAbort")
            commit(producer, timeout)

        monkeypatch.setattr(Producer, "commit_transaction", sleepy)
        with pytest.raises(TagwireError):
            query.commit(0, messages)
        monkeypatch.setattr(Producer, "commit_transaction", commit)
        assert query.decisions() == []
        query.run(0, [b"a"])
        assert query.seen() == [b"a"]

    def test_no_decision_is_made_when_half_of_the_transactions_time_is_over(self, query: Query) -> None:
        (message,) = query.tasks(0, [b"a"])
        late = replace(message.prepared, at=time.monotonic() - message.prepared.timeout_ms / 2000 - 1)
        with pytest.raises(UndecidedError, match="more than half of the"):
            query.commit(0, [replace(message, prepared=late)])
        assert query.decisions() == []

    def test_no_decision_is_made_over_a_transaction_that_is_not_open_any_more(self, query: Query) -> None:
        messages = query.tasks(0, [b"a"], [b"b"])
        with Admin(query.bootstrap) as admin:
            admin.fence_producers([messages[0].transaction.transactional_id])
        with pytest.raises(UndecidedError, match="cannot be committed any more"):
            query.commit(0, messages)
        assert query.decisions() == []
        query.run(0, [b"a"], [b"b"])
        assert query.seen() == [b"a", b"b"]

    def test_another_querys_open_decision_is_waited_for(self, query: Query) -> None:
        query.run(0, [b"a"])
        with Producer(query.bootstrap, transactional_id=decisions_id("someone-else")) as other:
            other.init_transactions()
            other.begin_transaction()
            other.send(TOPIC, b"{}", key=b"someone-else", partition=PARTITION)
            other.flush()
            timer = threading.Timer(0.5, other.abort_transaction)
            timer.start()
            query.run(1, [b"b"])
            timer.join()
        assert query.seen() == [b"a", b"b"]
