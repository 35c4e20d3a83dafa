"""What the driver asks the brokers while it plans a read, and what changes between two of its questions."""

from __future__ import annotations

import pytest

from tagwire.broker import Broker
from tagwire.client import Admin, Consumer, NewTopic
from tagwire.errors import Error, KafkaError
from tagwire.partitions import TopicPartition
from tagwire.records import Record
from tagwire.spark.source.offset_reader import OffsetReader
from tagwire.spark.source.options import parse

from .conftest import Produce


def deleted_meanwhile(monkeypatch: pytest.MonkeyPatch, broker: Broker, topic: str) -> None:
    """Has a topic deleted between the question which partitions there are and that for their offsets."""
    ask = OffsetReader._offsets

    def late(reader: OffsetReader, wanted: dict) -> dict:
        monkeypatch.undo()
        with Admin(broker.bootstrap) as admin:
            admin.delete_topics([topic])
        return ask(reader, wanted)

    monkeypatch.setattr(OffsetReader, "_offsets", late)


@pytest.mark.parametrize(("selection", "missing_ok"), [("subscribe", True), ("subscribePattern", False)])
def test_a_topic_that_is_deleted_while_it_is_asked_about_is_left_out_where_one_that_is_gone_is(
    broker: Broker, topic: str, produce: Produce, monkeypatch: pytest.MonkeyPatch, selection: str, missing_ok: bool
) -> None:
    other = f"{topic}-other"
    produce(topic, {0: [Record(b"k", b"v")]})
    produce(other, {0: [Record(b"k", b"v")]})
    selected = {"subscribe": f"{topic},{other}", "subscribePattern": f"{topic}.*"}[selection]
    reader = OffsetReader(parse({"kafka.bootstrap.servers": broker.bootstrap, selection: selected}))
    deleted_meanwhile(monkeypatch, broker, other)
    earliest, latest = reader.available_offsets(missing_ok=missing_ok)
    reader.close()
    assert latest[TopicPartition(topic, 0)] == 1
    assert {at.topic for at in (*earliest, *latest)} == {topic}


@pytest.mark.long
def test_a_topic_that_is_named_and_deleted_while_it_is_asked_about_is_an_error(
    broker: Broker, topic: str, produce: Produce, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(topic, {0: [Record(b"k", b"v")]})
    reader = OffsetReader(parse({"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}))
    deleted_meanwhile(monkeypatch, broker, topic)
    with pytest.raises(KafkaError, match=topic) as raised:
        reader.available_offsets()
    reader.close()
    assert raised.value.error is Error.UNKNOWN_TOPIC_OR_PARTITION


def test_what_a_group_refuses_is_not_committed_again_with_each_question_of_an_idle_stream(
    broker: Broker, topic: str, produce: Produce, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(topic, {0: [Record(b"k", b"v")]})
    at, group = TopicPartition(topic, 0), f"{topic}-group"
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "groupId": group}
    reader = OffsetReader(parse(options))
    with Consumer(broker.bootstrap, group=group) as member:  # of a group with members nobody else commits offsets
        member.subscribe(topic)
        member.poll(1)
        for _ in range(5):
            reader.commit({at: 0})
        assert len(caplog.records) == 1
        reader.commit({at: 1})
        assert len(caplog.records) == 2
    reader.commit({at: 1})
    monkeypatch.setattr("tagwire.spark.source.offset_reader._COMMIT_AGAIN", 0.0)
    reader.commit({at: 1})
    reader.close()
    assert len(caplog.records) == 2
    with Admin(broker.bootstrap) as admin:
        assert admin.group_offsets(group)[at].offset == 1


@pytest.mark.long
def test_a_topic_that_is_named_and_gone_is_waited_for_and_told_once_until_it_is_made_anew(
    broker: Broker, topic: str, produce: Produce, caplog: pytest.LogCaptureFixture
) -> None:
    gone = f"{topic}-gone"
    produce(topic, {0: [Record(b"k", b"v")]})
    reader = OffsetReader(parse({"kafka.bootstrap.servers": broker.bootstrap, "subscribe": f"{topic},{gone}"}))
    for _ in range(3):
        assert {at.topic for at in reader.available_offsets(missing_ok=True)[1]} == {topic}
    assert len(caplog.records) == 1
    with pytest.raises(KafkaError, match=gone):
        reader.available_offsets()
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(gone, num_partitions=1)])
        assert reader.available_offsets(missing_ok=True)[1][gone, 0] == 0
        admin.delete_topics([gone])
    assert (gone, 0) not in reader.available_offsets(missing_ok=True)[1]
    reader.close()
    assert len(caplog.records) == 2
