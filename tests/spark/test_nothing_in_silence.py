"""Where a read gives no rows, or fewer than somebody may have meant, it says so once; what is named has to be there."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pyspark.sql.types import StructType

from tagwire.client import Admin, Client, TopicPartition
from tagwire.errors import KafkaError
from tagwire.records import Record
from tagwire.spark.columns import topic_schema
from tagwire.spark.failure import reason
from tagwire.spark.source.options import parse
from tagwire.spark.source.stream import TopicStreamReader
from tagwire.spark.source.topic import TopicReader
from tagwire.spark.source.unlimited_stream import UnlimitedStreamReader

from .log_files import LogDirectory

pytestmark = pytest.mark.spark

SCRIPT = """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession

bootstrap, topic, folder = sys.argv[1:]
settings = {"spark.ui.enabled": "false", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
for _ in range(2):
    stream = spark.readStream.format("tagwire").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    query = stream.load().writeStream.format("noop").option("checkpointLocation", folder).trigger(availableNow=True)
    query.start().awaitTermination()
"""


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_stream_that_starts_behind_what_there_is_says_so_once_on_standard_error(broker, topic, produce, tmp_path):
    produce(topic, {0: [Record(None, b"a"), Record(None, b"b")]})
    command = [sys.executable, "-c", SCRIPT, broker.bootstrap, topic, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("tagwire: ")]
    assert said == [
        f"tagwire: the stream starts at the end of {topic}: what is there, 2 offsets, is left out "
        "(startingOffsets is latest unless it is set; earliest reads it)"
    ]


def _reader(kind, broker, **options):
    return kind(parse({"kafka.bootstrap.servers": broker.bootstrap, **options}), topic_schema(False))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "latest unless it is set; earliest"),
        ({"startingOffsets": "latest"}, "latest; earliest"),
        ({"startingOffsets": "earliest"}, None),
    ],
)
def test_what_a_stream_leaves_out_is_told_of_the_end_alone(broker, topic, produce, caplog, options, said):
    produce(topic, {1: [Record(None, b"a")]})
    reader = _reader(TopicStreamReader, broker, subscribe=topic, **options)
    for _ in range(3):
        reader.initialOffset()
    reader.stop()
    assert len(caplog.messages) == (said is not None)
    if said is not None:
        assert "what is there, 1 offset, is left out" in caplog.messages[0]
        assert said in caplog.messages[0]


KINDS = [TopicStreamReader, UnlimitedStreamReader]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_deleted_between_a_streams_plan_and_its_first_micro_batch_is_told(broker, topic, produce, kind):
    produce(topic, {0: [Record(None, b"a")] * 3})
    reader = _reader(kind, broker, subscribe=topic, startingOffsets="earliest")
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit()) if reader.limited else reader.latestOffset()
    _delete(broker, topic, 2)
    (task,) = reader.partitions(reader.initialOffset(), end)
    with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE"):
        list(reader.read(task))
    reader.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_a_query_that_was_ended_in_its_first_micro_batch_says_that_it_begins_anew(broker, topic, produce, caplog, kind):
    produce(topic, {0: [Record(None, b"a")] * 3})
    for deleted, told in ((0, []), (2, [f"at the first offsets that there are now ({topic}-0)"])):
        _delete(broker, topic, deleted)
        reader = _reader(kind, broker, subscribe=topic, startingOffsets="earliest")
        start = reader.initialOffset()
        assert len(reader.partitions(start, {topic: {"0": 3, "1": 0}})) == 1
        assert [part in message for part, message in zip(told, caplog.messages, strict=True)] == [True] * len(told)
        reader.stop()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("start", ["latest", '{"%s":{"0":-1,"1":0}}'])
def test_a_query_that_begins_anew_behind_its_first_micro_batch_says_so(broker, topic, produce, caplog, kind, start):
    produce(topic, {0: [Record(None, b"a")] * 3})
    reader = _reader(kind, broker, subscribe=topic, startingOffsets=start.replace("%s", topic))
    first = reader.initialOffset()
    caplog.clear()
    assert reader.partitions(first, {topic: {"0": 2, "1": 0}}) == []
    (message,) = caplog.messages
    assert f"begins anew behind it ({topic}-0): what came between its start and that" in message
    reader.stop()


def _delete(broker, topic, before):
    with Client(broker.bootstrap) as client, Admin(client) as admin:
        admin.delete_records({TopicPartition(topic, 0): before})


def test_a_stream_of_a_topic_without_records_has_nothing_to_say(broker, topic, caplog):
    reader = _reader(TopicStreamReader, broker, subscribe=topic)
    reader.initialOffset()
    reader.stop()
    assert caplog.messages == []


@pytest.mark.parametrize("kind", [TopicReader, TopicStreamReader])
def test_a_pattern_that_no_topic_matches_is_told_once(broker, caplog, kind):
    reader = _reader(kind, broker, subscribePattern="there-is-none-.*")
    for _ in range(3):
        reader.offset_reader.available_offsets()
    reader.offset_reader.close()
    assert caplog.messages == ["tagwire: option subscribePattern='there-is-none-.*': no topic has such a name now"]


def test_a_partition_that_is_not_there_is_named_with_how_many_there_are(broker, topic):
    from tagwire.errors import KafkaError

    reader = _reader(TopicReader, broker, assign=f'{{"{topic}":[0,7]}}')
    with pytest.raises(KafkaError, match=f"partition {topic}-7: topic '{topic}' has 2 partitions"):
        reader.partitions()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"subscribe": "flights,fligths"}, "topic 'fligths' is not among the files; there are flights, orders"),
        ({"subscribe": ""}, "option subscribe='': needs topic names"),
        ({"subscribePattern": " "}, "option subscribePattern=' ': needs a regular expression"),
        ({"view": "offsets", "subscribe": "flights"}, "view offsets is of __consumer_offsets alone"),
    ],
)
def test_a_topic_that_is_named_has_to_be_among_the_files(spark, tmp_path, options, said):
    for name in ("flights-0", "orders-0"):
        LogDirectory(tmp_path, name).numbered(3)
    with pytest.raises(Exception) as raised:
        spark.read.format("tagwire-segments").options(**options).load(str(tmp_path)).count()
    assert said in str(reason(raised.value))


def test_a_pattern_that_no_topic_among_the_files_matches_is_told(tmp_path, caplog):
    from tagwire.spark.segments.source import SegmentsDataSource

    LogDirectory(tmp_path, "flights-0").numbered(3)
    source = SegmentsDataSource({"path": str(tmp_path), "subscribePattern": "orders.*"})
    schema = source.schema()
    assert isinstance(schema, StructType)
    assert source.reader(schema).partitions() == []
    assert caplog.messages == ["tagwire: option subscribePattern='orders.*': no topic among the files has such a name"]
