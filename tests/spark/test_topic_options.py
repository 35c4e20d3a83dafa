"""The connector's finer options, and filters: what is read, and what need not be."""

from __future__ import annotations

import json
import time

import pytest

from tagwire.client import Admin, Client, NewTopic
from tagwire.errors import ConfigError
from tagwire.spark.columns import topic_schema
from tagwire.spark.failure import reason
from tagwire.spark.source.options import parse
from tagwire.spark.source.stream import TopicStreamReader

from ..limits import wait_until
from .test_topic import NOON, Stream, batch, numbered, offsets_of, spread

pytestmark = pytest.mark.spark


def test_sql_reads_a_topic_by_a_temporary_view_and_a_table_that_spark_gives_no_options_says_so(
    spark, broker, topic, produce
):
    produce(topic, {0: numbered(0, 3)})
    options = f"(`kafka.bootstrap.servers` '{broker.bootstrap}', subscribe '{topic}')"
    view = topic.replace("-", "_")
    spark.sql(f"CREATE TEMPORARY VIEW {view} USING tagwire OPTIONS {options}")
    assert spark.sql(f"SELECT max(offset) FROM {view}").first()[0] == 2
    with pytest.raises(Exception) as caught:
        spark.sql(f"CREATE TABLE {view}_table USING tagwire OPTIONS {options}")
    assert "use CREATE TEMPORARY VIEW ... USING ... OPTIONS (...)" in str(reason(caught.value))


@pytest.mark.long
def test_partitions_that_a_topic_gets_are_read_from_their_start_by_a_stream_that_began_at_the_end(
    spark, broker, topic, produce, tmp_path
):
    produce(topic, {0: numbered(0, 2)})
    stream = Stream(spark, broker, tmp_path / "cp")
    assert stream.run(subscribe=topic, startingOffsets="latest") == []
    with Admin(broker.bootstrap) as admin:
        admin.create_partitions({topic: 4})
    produce(topic, {0: numbered(2, 3), 3: numbered(0, 2)})
    assert stream.run(subscribe=topic, startingOffsets="latest") == [[(0, 2), (3, 0), (3, 1)]]


@pytest.mark.long
def test_a_query_of_several_streams_reads_each_to_its_end_under_its_own_limit(spark, broker, topic, produce, tmp_path):
    produce(topic, {0: numbered(0, 10), 1: numbered(0, 3)})
    options = {"kafka.bootstrap.servers": broker.bootstrap, "startingOffsets": "earliest"}
    reader = spark.readStream.format("tagwire").options(**options)
    first = reader.option("assign", json.dumps({topic: [0]})).option("maxOffsetsPerTrigger", "4").load()
    second = spark.readStream.format("tagwire").options(**options, assign=json.dumps({topic: [1]})).load()
    found: list[tuple[int, int]] = []
    query = (
        first.union(first)
        .union(second)
        .writeStream.foreachBatch(lambda frame, number: found.extend(offsets_of(frame)))
        .option("checkpointLocation", str(tmp_path / "cp"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sorted(found) == sorted([*((0, n) for n in range(10)), *((0, n) for n in range(10)), (1, 0), (1, 1), (1, 2)])


def test_times_choose_offsets_for_all_partitions_or_for_each(spark, broker, topic, produce):
    produce(topic, {0: numbered(0, 10), 1: numbered(0, 10)})
    both = batch(spark, broker, subscribe=topic, startingTimestamp=str(NOON + 3), endingTimestamp=str(NOON + 5))
    assert offsets_of(both) == [(0, 3), (0, 4), (1, 3), (1, 4)]
    each = {topic: {"0": NOON + 8, "1": NOON + 9}}
    found = batch(spark, broker, subscribe=topic, startingOffsetsByTimestamp=json.dumps(each), endingTimestamp="9" * 15)
    assert offsets_of(found) == [(0, 8), (0, 9), (1, 9)]
    late = {"subscribe": topic, "startingTimestamp": str(NOON + 10)}
    with pytest.raises(Exception) as caught:
        batch(spark, broker, **late).count()
    assert isinstance(reason(caught.value), ConfigError)
    assert f"no record at or after that time in {topic}-0" in str(reason(caught.value))
    assert batch(spark, broker, **late, startingOffsetsByTimestampStrategy="latest").count() == 0
    with pytest.raises(Exception) as caught:
        batch(spark, broker, subscribe=topic, startingOffsetsByTimestamp=json.dumps({topic: {"0": 1}})).count()
    assert f"misses {topic}-1" in str(reason(caught.value))


@pytest.mark.long
def test_filters_narrow_what_is_read_and_mean_the_same_with_pushdown_on_and_off(spark, broker, topic, produce):
    produce(topic, {0: numbered(0, 100), 1: numbered(0, 100)})
    options = {"subscribe": topic, "maxRecordsPerPartition": "10"}
    filters = {
        "partition = 1 and offset >= 35 and offset < 52": (2, [(1, i) for i in range(35, 52)]),
        "partition in (0, 7) and offset = 9": (1, [(0, 9)]),
        f"timestamp >= timestamp_millis({NOON + 95}) and topic = '{topic}'": (2, spread(100, start=95)),
    }
    late = f"timestamp < timestamp_millis({NOON + 2})"  # nothing to go by: times come in any order
    assert offsets_of(batch(spark, broker, **options, filterPushdown="true").where(late)) == spread(2)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        for text, (tasks, expected) in filters.items():
            found = batch(spark, broker, **options, filterPushdown="true").where(text)
            assert [found.rdd.getNumPartitions(), offsets_of(found)] == [tasks, expected]
        assert offsets_of(batch(spark, broker, **options, filterPushdown="true").where(late)) == spread(2)
        frame = batch(spark, broker, **options)
        assert frame.where("partition = 9").count() == 0
        assert frame.count() == 200  # whatever Spark keeps of the query before
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.mark.long
def test_a_stream_shows_where_it_stands_in_the_group_that_groupid_names(spark, broker, topic, produce, tmp_path):
    stream, group = Stream(spark, broker, tmp_path / "cp"), f"group-of-{topic}"
    produce(topic, {0: numbered(0, 30), 1: numbered(0, 20)})
    stream.run(subscribe=topic, groupId=group, maxOffsetsPerTrigger="25")
    with Admin(broker.bootstrap) as admin:
        stands = {at.partition: found.offset for at, found in admin.group_offsets(group).items()}
    assert stands == {0: 30, 1: 20}


def test_a_micro_batch_no_longer_waits_once_maxtriggerdelay_is_over(broker, topic, produce):
    produce(topic, {0: numbered(0, 5)})
    options = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "minOffsetsPerTrigger": "10",
        "maxTriggerDelay": "1m",
    }
    reader = TopicStreamReader(parse(options), topic_schema(False))
    try:
        limit = reader.getDefaultReadLimit()
        first = reader.latestOffset(reader.initialOffset(), limit)
        assert first == {topic: {"0": 5, "1": 0}}
        produce(topic, {1: numbered(0, 3)})
        assert reader.latestOffset(first, limit) == first
        reader.triggered -= 60
        assert reader.latestOffset(first, limit) == {topic: {"0": 5, "1": 3}}
    finally:
        reader.stop()


def test_a_micro_batch_asks_once_which_partitions_there_are(broker, topic, produce, monkeypatch):
    produce(topic, {0: numbered(0, 5), 1: numbered(0, 5)})
    asked, metadata = [], Client.metadata
    monkeypatch.setattr(Client, "metadata", lambda self, *names: asked.append(names) or metadata(self, *names))
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    reader = TopicStreamReader(parse(options), topic_schema(False))
    try:
        start = reader.initialOffset()
        asked.clear()
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        assert len(reader.partitions(start, end)) == 2
        reader.commit(end)
        assert len(asked) == 1
    finally:
        reader.stop()


def test_a_micro_batch_waits_for_enough_offsets_or_long_enough(spark, broker, topic, produce, tmp_path):
    produce(topic, {0: numbered(0, 5)})
    options = {"subscribe": topic, "startingOffsets": "earliest", "minOffsetsPerTrigger": "10"}
    source = spark.readStream.format("tagwire").option("kafka.bootstrap.servers", broker.bootstrap)
    query = (
        source.options(**options)
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "cp"))
        .start()
    )
    try:
        rows = lambda: sum(each.numInputRows for each in query.recentProgress)  # noqa: E731
        wait_until(lambda: rows() == 5)  # the first micro-batch does not wait
        produce(topic, {0: numbered(5, 14)})
        time.sleep(0.5)
        assert rows() == 5
        produce(topic, {1: numbered(0, 1)})
        wait_until(lambda: rows() == 15)
        last = query.lastProgress.sources[0]
        assert json.loads(last.endOffset) == json.loads(last.latestOffset) == {topic: {"0": 14, "1": 1}}
    finally:
        query.stop()


@pytest.mark.long
def test_topics_that_come_are_read_and_topics_that_go_end_a_stream_unless_loss_is_allowed(
    spark, broker, topic, produce, tmp_path
):
    stream = Stream(spark, broker, tmp_path / "cp")
    produce(topic, {0: numbered(0, 3)})
    pattern = {"subscribePattern": f"{topic}(-more)?"}
    assert stream.run(**pattern) == [[(0, 0), (0, 1), (0, 2)]]
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(f"{topic}-more", num_partitions=1, configs={"retention.ms": "-1"})])
    produce(f"{topic}-more", {0: numbered(0, 2)})
    assert stream.run(**pattern) == [[(0, 0), (0, 1)]]
    with Admin(broker.bootstrap) as admin:
        admin.delete_topics([f"{topic}-more"])
    with pytest.raises(Exception, match="more-0 is gone, its offset was 2"):
        stream.run(**pattern)
    produce(topic, {0: numbered(3, 4)})
    assert stream.run(subscribe=f"{topic},{topic}-more", failOnDataLoss="false") == [[(0, 3)]]


def test_a_broker_that_is_away_is_asked_as_often_as_fetchoffset_says(spark, broker, topic):
    options = {"subscribe": topic, "fetchOffset.numRetries": "2", "fetchOffset.retryIntervalMs": "300"}
    begun = time.monotonic()
    with pytest.raises(Exception) as caught:
        batch(spark, broker, **options, **{"kafka.bootstrap.servers": "127.0.0.1:1"}).count()
    assert "127.0.0.1:1" in str(reason(caught.value))
    assert time.monotonic() - begun >= 0.6
