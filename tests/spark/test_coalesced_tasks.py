"""Tasks that read several partitions with little in them: the same rows as from one task for each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from pyspark.sql.datasource import InputPartition

from tagwire.client import Admin, NewTopic, Producer
from tagwire.errors import Error, KafkaError
from tagwire.spark.source.offsets import FEWEST_TASKS
from tagwire.spark.source.options import parse
from tagwire.spark.source.stream import TopicStreamReader
from tagwire.spark.source.topic import TopicDataSource

pytestmark = pytest.mark.spark

PARTITIONS = 3 * FEWEST_TASKS
EACH = 3
_NUMBERS = count()


@pytest.fixture
def wide(broker) -> str:
    """A topic of many partitions with three records each."""
    name = f"wide-{next(_NUMBERS)}"
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(name, num_partitions=PARTITIONS, configs={"retention.ms": "-1"})])
    with Producer(broker.bootstrap) as producer:
        for number in range(PARTITIONS * EACH):
            producer.send(name, b"%d" % number, partition=number % PARTITIONS)
    return name


def options_of(broker: Any, topic: str, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "startingOffsets": "earliest", **more}


def reader_of(broker: Any, topic: str, **more: str) -> Any:
    source = TopicDataSource(options_of(broker, topic, **more))
    return source.reader(source.schema())


def rows_of(reader: Any, tasks: list[InputPartition]) -> Iterator[tuple[int, int, bytes]]:
    for task in tasks:
        for batch in reader.read(task):
            yield from zip(*(batch.column(name).to_pylist() for name in ("partition", "offset", "value")))


def expected() -> list[tuple[int, int, bytes]]:
    return [(at, offset, b"%d" % (at + offset * PARTITIONS)) for at in range(PARTITIONS) for offset in range(EACH)]


def test_a_batch_read_of_many_small_partitions_has_fewer_tasks_and_the_same_rows(broker, wide):
    together, apart = reader_of(broker, wide), reader_of(broker, wide, coalescePartitions="false")
    tasks, each = together.partitions(), apart.partitions()
    assert FEWEST_TASKS <= len(tasks) < len(each) == PARTITIONS
    assert list(rows_of(together, tasks)) == list(rows_of(apart, each)) == expected()


def test_a_micro_batch_of_many_small_partitions_has_fewer_tasks_and_the_same_rows(broker, wide):
    source = TopicDataSource(options_of(broker, wide))
    reader = TopicStreamReader(parse(source.options), source.schema())
    try:
        start = reader.initialOffset()
        tasks = reader.partitions(start, reader.latestOffset(start, reader.getDefaultReadLimit()))
        assert FEWEST_TASKS <= len(tasks) < PARTITIONS
        assert list(rows_of(reader, tasks)) == expected()
    finally:
        reader.stop()


def test_a_task_has_no_more_offsets_than_maxrecordsperpartition_allows(broker, wide):
    reader = reader_of(broker, wide, maxRecordsPerPartition="4")
    tasks = reader.partitions()
    assert max(len(list(rows_of(reader, [task]))) for task in tasks) == EACH
    assert list(rows_of(reader, tasks)) == expected()


def test_a_partition_that_lost_its_records_is_named_and_takes_no_other_with_it(broker, wide):
    strict, lenient = reader_of(broker, wide), reader_of(broker, wide, failOnDataLoss="false")
    tasks = strict.partitions()
    with Admin(broker.bootstrap) as admin:
        admin.delete_records({(wide, 1): 2})
    with pytest.raises(KafkaError, match=f"{wide}-1") as raised:
        list(rows_of(strict, tasks))
    assert raised.value.error is Error.OFFSET_OUT_OF_RANGE
    lost = [(1, 0), (1, 1)]
    assert list(rows_of(lenient, tasks)) == [row for row in expected() if row[:2] not in lost]


def test_spark_reads_each_row_once_from_tasks_of_several_partitions(spark, broker, wide):
    frame = spark.read.format("tagwire").options(**options_of(broker, wide)).load()
    assert frame.rdd.getNumPartitions() < PARTITIONS
    found = frame.select("partition", "offset", "value").collect()
    assert sorted((row.partition, row.offset, bytes(row.value)) for row in found) == expected()
