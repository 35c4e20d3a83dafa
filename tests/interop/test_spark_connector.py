"""Spark's own Kafka connector and the format `tagwire` on the same topics of a real Kafka: the same rows, or a reason.

Each case is read by both. What is known to differ is in `ACCEPTED`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pyspark = pytest.importorskip("pyspark")

from kafka_jars import MavenError  # noqa: E402
from py4j.protocol import Py4JJavaError  # noqa: E402
from pyspark.errors import PySparkException  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from spark_connector import connector  # noqa: E402

from tagwire.client import Admin, NewTopic, Producer  # noqa: E402
from tagwire.errors import TagwireError  # noqa: E402
from tagwire.spark.failure import reason  # noqa: E402

from ..spark.renewal import give_up  # noqa: E402
from .conftest import not_run_without  # noqa: E402
from .real_broker import RealBroker  # noqa: E402

# A call into Java that a timeout cuts short spoils the session for the tests after it.
pytestmark = pytest.mark.timeout(300)

NOON = 1_372_939_200_000
ROWS = 40
SOURCES = ("kafka", "tagwire")
COLUMNS = ("partition", "offset", "topic", "key", "value", "timestamp", "timestampType")


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory) -> Iterator[str]:
    with not_run_without():
        broker = RealBroker.fetch()
    with broker.running(tmp_path_factory.mktemp("kafka")) as address:
        fill(address)
        yield address


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    try:
        jars = connector(pyspark.__version__).jars
    except MavenError as error:
        pytest.skip(f"NOT RUN: {error}")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.jars", ",".join(map(str, jars)))
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
    give_up()  # the next file's session has other jars, and Java takes them when it starts


def fill(bootstrap: str) -> None:
    """The topics of the cases: two partitions each, but for what their names say."""
    settings: dict[str, dict[str, str]] = {
        "plain": {},
        "append": {"message.timestamp.type": "LogAppendTime"},
        "cut": {},
        "transactions": {},
        "compacted": {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"},
        "empty": {},
    }
    with Admin(bootstrap) as admin:
        admin.create_topics([NewTopic(name, num_partitions=2, configs=each) for name, each in settings.items()])
        with Producer(bootstrap, compression="lz4") as producer:
            for number in range(ROWS):
                headers = [[], [("a", b"1")], [("a", None), ("a", b""), ("b", b"\xff")]][number % 3]
                key = None if number % 5 == 0 else b"k%d" % number
                value = None if number % 7 == 0 else b"v%d" % number
                for topic in ("plain", "append", "cut"):
                    at = NOON + (number if number % 2 else ROWS - number)  # partition 0 goes back in time
                    producer.send(topic, value, key=key, headers=headers, timestamp=at, partition=number % 2)
            for number in range(ROWS):
                producer.send("compacted", b"v%d" % number, key=b"k%d" % (number % 3), partition=0)
        admin.delete_records({("cut", 0): 5, ("cut", 1): 7})
    time.sleep(0.3)
    with Producer(bootstrap) as producer:
        producer.send("compacted", b"last", key=b"other", partition=0)  # rolls the segment, which is then cleaned
    transactions(bootstrap)
    time.sleep(2)


def transactions(bootstrap: str) -> None:
    """Committed, aborted and open transactions, and records outside of any."""
    from confluent_kafka import Producer as Transactional

    def producer(name: str) -> Any:
        made = Transactional({"bootstrap.servers": bootstrap, "transactional.id": name, "linger.ms": 0, "log_level": 0})
        made.init_transactions(30)
        return made

    def run(name: str, value: bytes, end: str | None) -> Any:
        made = producer(name)
        made.begin_transaction()
        for partition in (0, 1):
            for number in range(3):
                made.produce("transactions", value=value + b"%d" % number, partition=partition, timestamp=NOON)
        made.flush(30)
        if end is not None:
            getattr(made, f"{end}_transaction")(30)
        return made

    run("t1", b"committed", "commit")
    run("t2", b"aborted", "abort")
    run("t3", b"again", "commit")
    OPEN.append(run("t4", b"open", None))


OPEN: list[Any] = []  # a transaction ends with its producer

CASES: dict[str, dict[str, str]] = {
    "everything": {"subscribe": "plain"},
    "headers, nulls": {"subscribe": "plain", "includeHeaders": "true"},
    "several topics": {"subscribe": "plain,append,empty"},
    "a pattern": {"subscribePattern": "pl.*|ap.*"},
    "assigned partitions": {"assign": '{"plain":[1]}'},
    "offsets and their marks": {
        "subscribe": "plain",
        "startingOffsets": '{"plain":{"0":3,"1":-2}}',
        "endingOffsets": '{"plain":{"0":9,"1":-1}}',
    },
    "min partitions": {"subscribe": "plain", "minPartitions": "7"},
    "a cap for each task": {"subscribe": "plain", "maxRecordsPerPartition": "3"},
    "from a time on": {"subscribe": "plain", "startingTimestamp": str(NOON + 30)},
    "up to a time": {"subscribe": "plain", "endingTimestamp": str(NOON + 20)},
    "times of partitions": {
        "subscribe": "plain",
        "startingOffsetsByTimestamp": json.dumps({"plain": {"0": NOON + 10, "1": NOON + 11}}),
        "endingOffsetsByTimestamp": json.dumps({"plain": {"0": NOON + 99, "1": NOON + 30}}),
    },
    "a time that is too late, else latest": {
        "subscribe": "plain",
        "startingTimestamp": str(NOON + 10_000),
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "time before offsets": {
        "subscribe": "plain",
        "startingTimestamp": str(NOON + 35),
        "startingOffsets": "earliest",
    },
    "up to a time that is too late": {"subscribe": "plain", "endingTimestamp": str(NOON + 10_000)},
    "times of partitions, one too late, else latest": {
        "subscribe": "plain",
        "startingOffsetsByTimestamp": json.dumps({"plain": {"0": NOON + 10, "1": NOON + 10_000}}),
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "times where the broker sets them": {"subscribe": "append", "startingTimestamp": str(NOON)},
    "offsets of assigned partitions": {
        "assign": '{"plain":[1],"append":[0]}',
        "startingOffsets": '{"plain":{"1":4},"append":{"0":-2}}',
        "endingOffsets": '{"plain":{"1":-1},"append":{"0":3}}',
    },
    "min partitions of some offsets": {
        "subscribe": "plain",
        "startingOffsets": '{"plain":{"0":3,"1":19}}',
        "minPartitions": "5",
        "maxRecordsPerPartition": "4",
    },
    "empty between start and end": {
        "subscribe": "plain",
        "startingOffsets": '{"plain":{"0":3,"1":-2}}',
        "endingOffsets": '{"plain":{"0":3,"1":0}}',
    },
    "log append time": {"subscribe": "append"},
    "a log that was cut": {"subscribe": "cut"},
    "lost offsets, loss allowed": {
        "subscribe": "cut",
        "startingOffsets": '{"cut":{"0":1,"1":9}}',
        "failOnDataLoss": "false",
    },
    "transactions, uncommitted": {"subscribe": "transactions"},
    "transactions, committed": {"subscribe": "transactions", "kafka.isolation.level": "read_committed"},
    "commas without a topic between them": {"subscribe": "plain,, cut ,"},
    "a pattern with spaces around it": {"subscribePattern": " pl.in "},
    "compacted": {"subscribe": "compacted"},
    "compacted, in pieces": {"subscribe": "compacted", "minPartitions": "9"},
    "empty": {"subscribe": "empty"},
}

REFUSED: dict[str, dict[str, str]] = {
    "no topics": {},
    "two selections": {"subscribe": "plain", "assign": '{"plain":[0]}'},
    "latest start of a batch": {"subscribe": "plain", "startingOffsets": "latest"},
    "earliest end of a batch": {"subscribe": "plain", "endingOffsets": "earliest"},
    "a partition left out": {"subscribe": "plain", "startingOffsets": '{"plain":{"0":0}}'},
    "a time that is too late": {"subscribe": "plain", "startingTimestamp": str(NOON + 10_000)},
    "a time of partitions that is too late": {
        "subscribe": "plain",
        "startingOffsetsByTimestamp": json.dumps({"plain": {"0": NOON + 10, "1": NOON + 10_000}}),
    },
    "offsets past the end": {"subscribe": "plain", "startingOffsets": '{"plain":{"0":99,"1":0}}'},
    "an end past the end": {
        "subscribe": "plain",
        "endingOffsets": '{"plain":{"0":99,"1":0}}',
        "kafkaConsumer.pollTimeoutMs": "2000",  # the connector waits for the records that long
    },
    "an end before the start": {
        "subscribe": "plain",
        "startingOffsets": '{"plain":{"0":9,"1":0}}',
        "endingOffsets": '{"plain":{"0":3,"1":-1}}',
    },
    "offsets that are gone": {"subscribe": "cut", "startingOffsets": '{"cut":{"0":1,"1":9}}'},
    "a topic that is not there": {"subscribe": "no-such-topic"},
    "a deserializer": {"subscribe": "plain", "kafka.value.deserializer": "x"},
    "a reset": {"subscribe": "plain", "kafka.auto.offset.reset": "earliest"},
    "more at least than at most": {"subscribe": "plain", "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "1"},
}

ACCEPTED: dict[str, dict[str, str]] = {
    "a partition that is not there": {"assign": '{"plain":[0,9]}'},  # it leaves such a partition out, in silence
}
"""What the connector accepts and tagwire refuses."""


def rows(spark: SparkSession, source: str, bootstrap: str, options: dict[str, str]) -> list[Any]:
    frame = spark.read.format(source).option("kafka.bootstrap.servers", bootstrap).options(**options).load()
    shown = [*COLUMNS, *(["headers"] if "headers" in frame.columns else [])]
    return sorted(map(tuple, frame.select(*shown).collect()), key=lambda row: (row[2], row[0], row[1]))


@pytest.mark.parametrize("case", CASES)
def test_both_read_the_same_rows(spark, bootstrap, case):
    theirs, ours = (rows(spark, source, bootstrap, CASES[case]) for source in SOURCES)
    assert ours == theirs
    assert theirs or "empty" in case or "too late" in case
    if "compacted" in case:
        assert len(theirs) < ROWS, "the topic was not compacted, which is what the case is about"


@pytest.mark.parametrize("case", REFUSED)
def test_both_refuse_the_same(spark, bootstrap, case):
    with pytest.raises((PySparkException, Py4JJavaError)):
        rows(spark, "kafka", bootstrap, REFUSED[case])
    refused_by_tagwire(spark, bootstrap, REFUSED[case])


@pytest.mark.parametrize("case", ACCEPTED)
def test_tagwire_alone_refuses(spark, bootstrap, case):
    assert rows(spark, "kafka", bootstrap, ACCEPTED[case])
    refused_by_tagwire(spark, bootstrap, ACCEPTED[case])


def refused_by_tagwire(spark: SparkSession, bootstrap: str, options: dict[str, str]) -> None:
    with pytest.raises(PySparkException) as caught:
        rows(spark, "tagwire", bootstrap, options)
    assert isinstance(reason(caught.value), TagwireError)


def test_both_have_the_same_schema(spark, bootstrap):
    for headers in ("true", "false"):
        theirs, ours = (
            spark.read.format(source)
            .options(**{"kafka.bootstrap.servers": bootstrap, "subscribe": "plain", "includeHeaders": headers})
            .load()
            .schema
            for source in SOURCES
        )
        assert ours == theirs


Run = Callable[..., list[Any]]


@pytest.fixture
def run(spark, bootstrap, tmp_path) -> Run:
    """Runs a query to the end of what there is; its rows since the checkpoint began."""

    def run(source: str, folder: str, **options: str) -> list[Any]:
        found: list[Any] = []
        reader = spark.readStream.format(source).option("kafka.bootstrap.servers", bootstrap)
        frame = reader.options(**{"startingOffsets": "earliest", **options}).load().select(*COLUMNS)
        query = (
            frame.writeStream.foreachBatch(lambda batch, number: found.extend(map(tuple, batch.collect())))
            .option("checkpointLocation", str(tmp_path / folder))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return sorted(found, key=lambda row: row[:3])

    return run


STREAMS: dict[str, dict[str, str]] = {
    "a limit": {"subscribe": "plain", "maxOffsetsPerTrigger": "9"},
    "a limit, a log that was cut": {"subscribe": "cut", "maxOffsetsPerTrigger": "9"},
    "a limit, compacted": {"subscribe": "compacted", "maxOffsetsPerTrigger": "9"},
    "a limit, transactions": {"subscribe": "transactions", "maxOffsetsPerTrigger": "9"},
    "a limit, transactions, committed": {
        "subscribe": "transactions",
        "maxOffsetsPerTrigger": "9",
        "kafka.isolation.level": "read_committed",
    },
    "at least and at most": {"subscribe": "plain", "minOffsetsPerTrigger": "4", "maxOffsetsPerTrigger": "9"},
    "pieces": {"subscribe": "plain", "minPartitions": "5", "maxRecordsPerPartition": "4"},
    "assigned partitions from offsets on": {
        "assign": '{"plain":[1],"append":[0]}',
        "startingOffsets": '{"plain":{"1":4},"append":{"0":-2}}',
    },
    "from a time on": {"subscribe": "plain", "startingTimestamp": str(NOON + 30)},
    "times of partitions, one too late, else latest": {
        "subscribe": "plain",
        "startingOffsetsByTimestamp": json.dumps({"plain": {"0": NOON + 10, "1": NOON + 10_000}}),
        "startingOffsetsByTimestampStrategy": "latest",
    },
}


@pytest.mark.parametrize("case", STREAMS)
def test_both_stream_the_same_rows(run, case):
    theirs, ours = (run(source, source, **STREAMS[case]) for source in SOURCES)
    assert ours == theirs
    assert theirs


class Changed:
    """A topic that changes while a query over it is stopped; `more`: a second one that its pattern takes."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.bootstrap, self.name, self.more = bootstrap, name, f"{name}-more"
        self.create(self.name, 2)
        self.write(self.name, 10, 2)

    def create(self, topic: str, partitions: int) -> None:
        with Admin(self.bootstrap) as admin:
            admin.create_topics([NewTopic(topic, num_partitions=partitions)])

    def write(self, topic: str, rows: int, partitions: int) -> None:
        with Producer(self.bootstrap) as producer:
            for number in range(rows * partitions):
                producer.send(topic, b"v%d" % number, partition=number % partitions, timestamp=NOON + number)

    def partitions_added(self) -> None:
        with Admin(self.bootstrap) as admin:
            admin.create_partitions({self.name: 4})
        self.write(self.name, 5, 4)

    def topic_added(self) -> None:
        self.create(self.more, 1)
        self.write(self.more, 5, 1)

    def records_deleted(self) -> None:
        self.write(self.name, 10, 2)
        with Admin(self.bootstrap) as admin:
            admin.delete_records({(self.name, 0): 15})

    def partition_added_and_cut(self) -> None:
        self.partitions_added()
        with Admin(self.bootstrap) as admin:
            admin.delete_records({(self.name, 3): 2})

    def topic_deleted(self) -> None:
        self.topic_added()
        with Admin(self.bootstrap) as admin:
            admin.delete_topics([self.name])

    def topic_made_anew_and_shorter(self) -> None:
        with Admin(self.bootstrap) as admin:
            admin.delete_topics([self.name])
        self.create(self.name, 2)
        self.write(self.name, 4, 2)


CHANGES = ("partitions_added", "topic_added")
LOSSES = ("records_deleted", "partition_added_and_cut", "topic_deleted", "topic_made_anew_and_shorter")


@pytest.mark.parametrize("loss", ["failing", "allowed"])
@pytest.mark.parametrize("change", [*CHANGES, *LOSSES])
def test_both_go_on_or_end_alike_where_topics_change(run, bootstrap, change, loss):
    outcomes: list[Any] = []
    for source in SOURCES:
        topic = Changed(bootstrap, f"{change}-{loss}-{source}")
        options = {"subscribePattern": f"{topic.name}.*", "failOnDataLoss": str(loss == "failing").lower()}
        assert len(run(source, source, **options)) == 20
        getattr(topic, change)()
        try:
            found = run(source, source, **options)
        except Exception:
            outcomes.append("refused")
        else:
            outcomes.append([(*row[:2], row[2].removeprefix(topic.name), *row[3:]) for row in found])
    theirs, ours = outcomes
    assert ours == theirs
    assert (ours == "refused") == (change in LOSSES and loss == "failing")


def test_a_query_of_the_connector_goes_on_with_tagwire_and_back(run, bootstrap, tmp_path):
    with Admin(bootstrap) as admin:
        admin.create_topics([NewTopic("moving", num_partitions=2)])
    with Producer(bootstrap) as producer:
        for turn, source in enumerate(("kafka", "tagwire", "kafka")):
            for number in range(10):
                producer.send("moving", b"%d-%d" % (turn, number), partition=number % 2)
            producer.flush()
            found = run(source, "cp", subscribe="moving")
            assert sorted(row[4] for row in found) == [b"%d-%d" % (turn, number) for number in range(10)]
    assert Path(tmp_path / "cp" / "offsets").is_dir()
