"""Filters that Spark pushes down, given to a reader without a session."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
)

from tagwire.broker import Broker
from tagwire.records import Record
from tagwire.spark.segments.source import SegmentsDataSource
from tagwire.spark.source.topic import TopicDataSource

from .log_files import LogDirectory

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NEVER = -1
"""The timestamp of a record that has none."""

pytestmark = pytest.mark.skipif(not hasattr(DataSourceReader, "pushFilters"), reason="needs PySpark 4.1")


def at(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


def planned(broker: Broker, topic: str, *filters: Filter) -> list[tuple[int, int]]:
    """What is left to be read of partition 0: offsets from the one to before the other."""
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "filterPushdown": "true"}
    source = TopicDataSource(options)
    reader = source.reader(source.schema())
    assert list(reader.pushFilters(filters)) == list(filters)
    ranges = [each for task in reader.partitions() for each in task.value]
    return [(start, end) for _, index, start, end, _ in ranges if index == 0]


@pytest.mark.parametrize("milliseconds", range(-6, 1))
@pytest.mark.parametrize("kind", [GreaterThanOrEqual, GreaterThan])
def test_a_filter_of_times_before_1970_means_no_special_offset(broker, topic, produce, milliseconds, kind) -> None:
    """Kafka takes negative times for its own: -1 is a partition's end."""
    produce(topic, {0: [Record(b"k", b"v", (), 1000), Record(b"k", b"v", (), 2000), Record(b"k", b"v", (), 1500)]})
    assert planned(broker, topic, kind(("timestamp",), at(milliseconds))) == [(0, 3)]


def test_records_without_a_time_are_found_by_the_one_that_they_are_shown_with(broker, topic, produce) -> None:
    produce(topic, {0: [Record(b"k", b"v", (), NEVER), Record(b"k", b"v", (), 2000)]})
    assert planned(broker, topic, EqualTo(("timestamp",), at(NEVER))) == [(0, 2)]


def test_a_later_time_counts_beside_one_before_1970(broker, topic, produce) -> None:
    produce(topic, {0: [Record(b"k", b"v", (), 1000), Record(b"k", b"v", (), 2000)]})
    found = planned(broker, topic, GreaterThan(("timestamp",), at(-1)), GreaterThan(("timestamp",), at(1500)))
    assert found == [(1, 2)]


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [
        (LessThan, [], [0, 1, 2]),
        (LessThanOrEqual, [], [0, 1, 2]),
        (EqualTo, [], []),
        (GreaterThan, [0, 1, 2], []),
        (GreaterThanOrEqual, [0, 1, 2], []),
    ],
)
def test_filters_of_the_least_and_the_greatest_offset_are_as_others(tmp_path: Path, kind, least, most, isolation):
    LogDirectory(tmp_path, "t-0").numbered(3)
    for offset, expected in ((-(2**63), least), (2**63 - 1, most)):
        source = SegmentsDataSource({"path": str(tmp_path), "filterPushdown": "true", "isolation": isolation})
        reader = source.reader(source.schema())
        list(reader.pushFilters([kind(("offset",), offset)]))
        found = [batch for task in reader.partitions() for batch in reader.read(task)]
        assert [row for batch in found for row in batch.column("offset").to_pylist()] == expected
