"""Histories: the same events are the same bytes, and are read as they were written."""

import pytest

from tagwire.errors import Error, KafkaError
from tests.simulation.history import History, Operations


def _told() -> History:
    moments = iter([0.1, 0.25, 1 / 3, 2.0])
    history = History(lambda: next(moments))
    sent = history.invoke("p1", "send", topic="orders", name="r1", key="k", transaction=None)
    read = history.invoke("c1", "poll", group="billing", isolation="read_committed")
    history.ok(sent, offset=3, partition=0)
    history.info(read, KafkaError(Error.NOT_COORDINATOR, "fetch"))
    return history


def test_a_history_is_the_same_bytes_each_time_and_read_as_it_was_written(tmp_path):
    history = _told()
    history.write(tmp_path / "history.jsonl")
    assert History.read(tmp_path / "history.jsonl").events == history.events
    assert list(history.lines()) == list(_told().lines())
    assert next(history.lines()) == (
        '{"index":0,"at":0.1,"process":"p1","type":"invoke","f":"send","call":0,'
        '"value":{"key":"k","name":"r1","topic":"orders","transaction":null}}'
    )


def test_a_call_is_its_invocation_with_its_completion():
    send, poll = Operations(_told()).all
    assert (send.type, send.value["name"], send.value["offset"], send.ended) == ("ok", "r1", 3, round(1 / 3, 6))
    assert (poll.type, poll.value["error"]["code"]) == ("info", "NOT_COORDINATOR")


def test_a_call_without_an_answer_is_info_and_ends_never():
    history = History()
    history.invoke("p1", "send", topic="orders", name="r1")
    (send,) = Operations(history).all
    assert (send.type, send.completed, send.ended) == ("info", None, float("inf"))


def test_what_a_caller_changes_later_is_not_changed_in_the_history():
    offsets = [["orders", 0, 5]]
    history = History()
    history.note("c1", "assign", group="billing", partitions=offsets)
    offsets.clear()
    assert history.events[0].value["partitions"] == [["orders", 0, 5]]


@pytest.mark.parametrize(
    ("f", "value"), [("sent", {}), ("send", {"offset": 1}), ("send", {"nam": "r1"}), ("send", {"name": b"r1"})]
)
def test_what_no_event_has_is_refused(f, value):
    with pytest.raises((ValueError, TypeError)):
        History().invoke("p1", f, **value)


def test_a_call_ends_once():
    history = History()
    call = history.invoke("p1", "begin", transaction="t1")
    history.ok(call)
    with pytest.raises(ValueError, match="not open"):
        history.fail(call)
