"""Spark's own Kafka connector and the format `tagwire` on the same topics of a real Kafka: the same rows, or a reason.

Each case is read by both. What is known to differ is in `DIFFERENT`, with why.
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
from pyspark.sql import SparkSession  # noqa: E402
from spark_connector import connector  # noqa: E402

from tagwire.client import Admin, NewTopic, Producer  # noqa: E402

from .peer import NotRunError  # noqa: E402
from .real_broker import RealBroker  # noqa: E402

NOON = 1_372_939_200_000
ROWS = 40
SOURCES = ("kafka", "tagwire")
COLUMNS = ("partition", "offset", "topic", "key", "value", "timestamp", "timestampType")


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory) -> Iterator[str]:
    try:
        broker = RealBroker.fetch()
    except NotRunError as error:
        pytest.skip(f"NOT RUN: {error}")
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
    "log append time": {"subscribe": "append"},
    "a log that was cut": {"subscribe": "cut"},
    "lost offsets, loss allowed": {
        "subscribe": "cut",
        "startingOffsets": '{"cut":{"0":1,"1":9}}',
        "failOnDataLoss": "false",
    },
    "transactions, uncommitted": {"subscribe": "transactions"},
    "transactions, committed": {"subscribe": "transactions", "kafka.isolation.level": "read_committed"},
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
    "a topic that is not there": {"subscribe": "no-such-topic"},
    "a deserializer": {"subscribe": "plain", "kafka.value.deserializer": "x"},
    "a reset": {"subscribe": "plain", "kafka.auto.offset.reset": "earliest"},
    "more at least than at most": {"subscribe": "plain", "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "1"},
}

DIFFERENT: dict[str, str] = {}
"""Cases whose rows differ, and why."""


def rows(spark: SparkSession, source: str, bootstrap: str, options: dict[str, str]) -> list[Any]:
    frame = spark.read.format(source).option("kafka.bootstrap.servers", bootstrap).options(**options).load()
    shown = [*COLUMNS, *(["headers"] if "headers" in frame.columns else [])]
    return sorted(map(tuple, frame.select(*shown).collect()), key=lambda row: (row[2], row[0], row[1]))


@pytest.mark.parametrize("case", CASES)
def test_both_read_the_same_rows(spark, bootstrap, case):
    theirs, ours = (rows(spark, source, bootstrap, CASES[case]) for source in SOURCES)
    if case in DIFFERENT:
        assert ours != theirs, f"no longer differs: {DIFFERENT[case]}"
    else:
        assert ours == theirs
        assert theirs or "empty" in case or "too late" in case
    if "compacted" in case:
        assert len(theirs) < ROWS, "the topic was not compacted, which is what the case is about"


@pytest.mark.parametrize("case", REFUSED)
def test_both_refuse_the_same(spark, bootstrap, case):
    for source in SOURCES:
        with pytest.raises(Exception, match=r".+"):
            rows(spark, source, bootstrap, REFUSED[case])


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


@pytest.mark.parametrize("topic", ["plain", "cut", "transactions", "compacted"])
def test_both_stream_the_same_rows_under_a_limit(run, topic):
    options = {"subscribe": topic, "maxOffsetsPerTrigger": "9", "kafka.isolation.level": "read_committed"}
    theirs, ours = (run(source, source, **options) for source in SOURCES)
    assert ours == theirs
    assert theirs


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
