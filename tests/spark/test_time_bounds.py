"""Reads whose bounds are times, of topics that are written to meanwhile, planned without a session."""

from __future__ import annotations

import pytest

from tagwire.broker import Broker
from tagwire.client import Admin
from tagwire.errors import KafkaError
from tagwire.records import Record
from tagwire.spark.source.offset_reader import OffsetReader
from tagwire.spark.source.topic import TopicDataSource
from tagwire.spark.source.unlimited_stream import UnlimitedStreamReader

from .conftest import Produce

NOON = 1_372_939_200_000

ELSE_LATEST = {"startingOffsetsByTimestampStrategy": "latest"}


@pytest.fixture
def written_to(topic: str, produce: Produce, monkeypatch: pytest.MonkeyPatch) -> str:
    """A topic of three records before noon, to which three more, the last two of noon, come when brokers have told of
    its end and are to be asked for times."""
    asked = OffsetReader.fetch_timestamp_offsets
    produce(topic, {0: [Record(b"k", b"v", (), NOON - 1)] * 3})

    def later(reader: OffsetReader, times: dict) -> dict:
        monkeypatch.setattr(OffsetReader, "fetch_timestamp_offsets", asked)
        produce(topic, {0: [Record(b"k", b"v", (), time) for time in (NOON - 1, NOON, NOON)]})
        return asked(reader, times)

    monkeypatch.setattr(OffsetReader, "fetch_timestamp_offsets", later)
    return topic


def source(broker: Broker, topic: str, **options: str) -> TopicDataSource:
    return TopicDataSource({"kafka.bootstrap.servers": broker.bootstrap, "assign": f'{{"{topic}": [0]}}', **options})


def planned(broker: Broker, topic: str, **options: str) -> list[tuple[int, int]]:
    found = source(broker, topic, **options)
    tasks = found.reader(found.schema()).partitions()
    return [(start, end) for task in tasks for _, _, start, end, _ in task.value]


def test_a_read_ends_at_the_first_record_of_its_time_though_it_came_after_the_end_was_looked_at(
    broker, written_to
) -> None:
    assert planned(broker, written_to, endingTimestamp=str(NOON)) == [(0, 4)]


def test_a_read_starts_at_the_first_record_of_its_time_though_it_came_after_the_end_was_looked_at(
    broker, written_to
) -> None:
    assert planned(broker, written_to, startingTimestamp=str(NOON)) == []


def test_a_stream_starts_at_the_first_record_of_its_time_though_it_came_after_the_end_was_looked_at(
    broker, written_to
) -> None:
    found = source(broker, written_to, startingTimestamp=str(NOON))
    reader = found.streamReader(found.schema())
    assert isinstance(reader, UnlimitedStreamReader)
    try:
        assert reader.initialOffset() == {written_to: {"0": 4}}
    finally:
        reader.stop()


@pytest.fixture
def one_that_goes(broker: Broker, topic: str, produce: Produce, monkeypatch: pytest.MonkeyPatch) -> str:
    """A topic of three records whose neighbour is deleted when it was listed and is to be asked for times."""
    produce(topic, {0: [Record(b"k", b"v", (), NOON)] * 3})
    produce(f"{topic}-gone", {0: [Record(b"k", b"v", (), NOON)]})
    asked = OffsetReader.fetch_timestamp_offsets

    def later(reader: OffsetReader, times: dict) -> dict:
        monkeypatch.setattr(OffsetReader, "fetch_timestamp_offsets", asked)
        with Admin(broker.bootstrap) as admin:
            admin.delete_topics([f"{topic}-gone"])
        return asked(reader, times)

    monkeypatch.setattr(OffsetReader, "fetch_timestamp_offsets", later)
    return topic


@pytest.mark.parametrize("option", ["startingTimestamp", "endingTimestamp"])
def test_a_read_of_a_pattern_leaves_out_a_topic_that_is_deleted_before_it_is_asked_for_its_times(
    broker: Broker, one_that_goes: str, option: str
) -> None:
    options = {
        "subscribePattern": f"{one_that_goes}.*",
        option: str(NOON if option == "startingTimestamp" else NOON + 1),
    }
    options |= ELSE_LATEST
    found = TopicDataSource({"kafka.bootstrap.servers": broker.bootstrap, **options})
    tasks = found.reader(found.schema()).partitions()
    assert [piece[:4] for task in tasks for piece in task.value] == [(one_that_goes, 0, 0, 3)]


def test_a_stream_of_a_pattern_leaves_out_a_topic_that_is_deleted_before_it_is_asked_for_its_times(
    broker: Broker, one_that_goes: str
) -> None:
    options = {"subscribePattern": f"{one_that_goes}.*", "startingTimestamp": str(NOON), **ELSE_LATEST}
    found = TopicDataSource({"kafka.bootstrap.servers": broker.bootstrap, **options})
    reader = found.streamReader(found.schema())
    assert reader.initialOffset() == {one_that_goes: {"0": 0, "1": 0}}
    reader.stop()


@pytest.mark.long
def test_a_topic_that_is_named_and_deleted_before_it_is_asked_for_its_times_is_an_error(
    broker: Broker, one_that_goes: str
) -> None:
    options = {"subscribe": f"{one_that_goes},{one_that_goes}-gone", "startingTimestamp": str(NOON), **ELSE_LATEST}
    found = TopicDataSource({"kafka.bootstrap.servers": broker.bootstrap, **options})
    with pytest.raises(KafkaError, match=rf"UNKNOWN_TOPIC_OR_PARTITION .*{one_that_goes}-gone"):
        found.reader(found.schema()).partitions()
