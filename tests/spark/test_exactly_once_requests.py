"""What a micro-batch of an exactly-once query costs in requests. Each is a wait, and a small batch is mostly waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tagwire.broker import Broker, hang_up
from tagwire.client import Admin, Producer
from tagwire.errors import ConnectionLostError, TagwireError
from tagwire.spark.sink import driver, task_transactions
from tagwire.spark.sink.driver import Driver, LostTransactionError
from tagwire.spark.sink.exactly_once import Written
from tagwire.spark.sink.transactional_ids import decisions_id

from .exactly_once_query import Query

TASKS = 5


def requested(broker: Broker, since: int) -> list[str]:
    """The APIs of the requests from number `since` on."""
    return [request.api for request in broker.requests.select()][since:]


def test_the_transactions_of_a_micro_batch_are_ended_beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker(fsync="never") as broker:
        query = Query.new(broker.bootstrap, monkeypatch)
        messages = query.tasks(0, *([b"%d" % task] for task in range(TASKS)))
        before = len(requested(broker, 0))
        query.commit(0, messages)
        asked = requested(broker, before)
        decided = asked.index("EndTxn")
        assert asked[decided + 1 : decided + 2 + TASKS] == ["FindCoordinator", *["EndTxn"] * TASKS]
        assert len(query.seen()) == TASKS


def test_a_driver_looks_at_a_clusters_settings_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not for every micro-batch: two of the things it asks change seldom."""
    with Broker(fsync="never") as broker:
        query = Query.new(broker.bootstrap, monkeypatch)
        query.run(0, [b"a"])
        before = len(requested(broker, 0))
        query.run(1, [b"b"])
        assert Counter(requested(broker, before))["DescribeConfigs"] == 0
        monkeypatch.setattr(driver, "LOOK_AGAIN_SECONDS", 0.0)
        before = len(requested(broker, 0))
        query.run(2, [b"c"])
        assert Counter(requested(broker, before))["DescribeConfigs"] == 2
        assert query.seen() == [b"a", b"b", b"c"]


@pytest.mark.parametrize("timeout_ms", [6_000, 120_000, 900_000])
def test_a_decision_is_over_before_the_transactions_that_it_lists(timeout_ms: int) -> None:
    """Half of their time is left when it is checked: a driver that sleeps then commits nothing that is lost."""
    assert driver._decision_timeout(timeout_ms) < timeout_ms / 1000 / 2


def test_a_lost_transaction_hides_no_other_of_its_micro_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker(fsync="never") as broker:
        query = Query.new(broker.bootstrap, monkeypatch)
        messages = query.decided_only(0, [b"a"], [b"b"], [b"c"])
        lost = [messages[number].transaction.transactional_id for number in (0, 2)]
        with Admin(broker.bootstrap) as admin:
            admin.fence_producers(lost)
        with pytest.raises(LostTransactionError, match="of its 3 transactions 2 were aborted") as raised:
            query.planned()
        assert all(name in str(raised.value) for name in lost)
        assert query.seen() == [b"b"]


def test_what_a_task_asked_for_in_vain_may_come_late_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its InitProducerId had no answer, and reaches the coordinator when the task has written: of an id that was given
    up, for this micro-batch and all others, also where it had served one before."""
    with Broker(fsync="never") as broker:
        query = Query.new(broker.bootstrap, monkeypatch)
        (first,) = query.tasks(0, [b"a"])
        query.commit(0, [first])
        query.wait_for_markers()
        pickled = query.planned()
        with broker.intercept("InitProducerId", hang_up(), times=1) as lost:
            message = query.attempt(pickled, 1, [b"b"])
        (unanswered,) = [call.request.transactional_id for call in lost.calls]
        assert unanswered == first.transaction.transactional_id

        def comes_late() -> None:
            with Producer(broker.bootstrap, transactional_id=unanswered) as producer:
                producer.init_transactions()

        comes_late()
        query.commit(1, [message])
        (last,) = query.tasks(2, [b"c"])
        comes_late()
        query.commit(2, [last])
        assert query.seen() == [b"a", b"b", b"c"]


def test_an_attempt_that_sleeps_before_it_begins_ends_nothing_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has an id of a micro-batch before, which is committed. When it wakes, its own is committed, too, by another
    attempt, and the next one is written."""
    with Broker(fsync="never") as broker:
        query = Query.new(broker.bootstrap, monkeypatch)
        query.run(0, [b"a"])
        query.wait_for_markers()
        pickled = query.planned()
        newer: list[Written] = []

        def sleeps(producer: Producer, timeout_ms: int, init: Callable = task_transactions._init) -> None:
            monkeypatch.setattr(task_transactions, "_init", init)
            query.commit(1, [query.attempt(pickled, 1, [b"b"])])
            query.wait_for_markers()
            newer.extend(query.tasks(2, [b"c"]))
            init(producer, timeout_ms)

        monkeypatch.setattr(task_transactions, "_init", sleeps)
        query.attempt(pickled, 1, [b"b"])
        query.commit(2, newer)
        assert query.seen() == [b"a", b"b", b"c"]


def test_a_task_that_nobody_answers_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """After three ids: the next attempt is Spark's to make."""
    with Broker(fsync="never") as broker:
        query = Query.new(broker.bootstrap, monkeypatch)
        pickled = query.planned()
        with broker.intercept("InitProducerId", hang_up()) as lost, pytest.raises(ConnectionLostError):
            query.attempt(pickled, 0, [b"a"])
        assert len({call.request.transactional_id for call in lost.calls}) == len(lost.calls) == 3


@pytest.mark.parametrize(("step", "decides"), [("_check", False), ("_carry_out", True)])
def test_a_late_request_of_the_drivers_own_undoes_no_decision(
    monkeypatch: pytest.MonkeyPatch, step: str, decides: bool
) -> None:
    """It asks for its id as often as it has to, since it has one only: what comes late fences it, between any steps.
    A decision that is not committed by then never is."""
    with Broker(fsync="never") as broker:
        query = Query.new(broker.bootstrap, monkeypatch)
        messages = query.tasks(0, [b"a"], [b"b"])
        taken = getattr(Driver, step)

        def late(*args: object) -> None:
            with Producer(broker.bootstrap, transactional_id=decisions_id(query.exactly_once_id)) as producer:
                producer.init_transactions()
            taken(*args)

        with monkeypatch.context() as patched, pytest.raises(TagwireError):  # noqa: PT012 - it is undone behind it
            patched.setattr(Driver, step, late)
            query.commit(0, messages)
        query.abort(0, messages)
        assert [one.batch_id for one in query.decisions()] == [0] * decides
        query.run(0, [b"a"], [b"b"])
        assert [one.done for one in query.decisions()] == [False, True]
        assert sorted(query.seen()) == [b"a", b"b"]
