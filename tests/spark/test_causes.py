"""What a user sees when something of ours goes wrong inside Spark: the cause, and nothing before it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tagwire.errors import ConfigError, TagwireError
from tagwire.records import Record
from tagwire.spark.failure import without_traceback, without_tracebacks

WORKER = "PYTHON_WORKER_FACTORY_PORT"
HIDE = "SPARK_HIDE_TRACEBACK"
LONG = pytest.mark.long


def _told(error: BaseException) -> tuple[str, str]:
    """What stands before our error's name, and what after it."""
    before, name, after = str(error).partition("tagwire.errors.")
    assert name, str(error)
    return before, after


@pytest.fixture
def source(spark, broker, topic, produce):
    """A topic of one value that is no JSON, to be read with these options."""
    produce(topic, {0: [Record(b"k", b"no JSON")]})

    def of(reader, **options):
        given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, **options}
        return reader.format("tagwire").options(**given).load()

    return of


JSON = {"value.format": "json", "value.schema": "a int", "mode": "FAILFAST"}


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"startingOfsets": "earliest"}, "ConfigError: option startingofsets: unknown"),
        pytest.param(
            {"startingOffsets": "latest"}, "ConfigError: option startingOffsets: latest (-1) leaves", marks=LONG
        ),
        ({"assign": '{"t":[0]}'}, "ConfigError: option assign and subscribe: set together"),
        pytest.param(
            {"subscribe": "there-is-no-such-topic"}, "KafkaError: UNKNOWN_TOPIC_OR_PARTITION (3): topic", marks=LONG
        ),
        pytest.param(JSON, "DecodeError: value of", marks=LONG),
    ],
)
def test_a_batch_read_says_the_cause_without_a_traceback(spark, source, options, cause):
    with pytest.raises(Exception) as raised:
        source(spark.read, **options).collect()
    before, after = _told(raised.value)
    assert after.startswith(cause)
    assert "Traceback" not in before + after
    assert len(before.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"endingOffsets": "latest"}, "ConfigError: option endingOffsets: only for batch reads"),
        ({"startingOffsets": '{"t":{"0":0}}'}, "ConfigError: option startingOffsets: misses"),
        pytest.param(
            {"subscribe": "there-is-no-such-topic"}, "KafkaError: UNKNOWN_TOPIC_OR_PARTITION (3): topic", marks=LONG
        ),
        pytest.param({"startingOffsets": "earliest", **JSON}, "DecodeError: value of", marks=LONG),
    ],
)
def test_a_stream_says_the_cause_in_the_first_line_of_its_exception(spark, source, tmp_path, options, cause):
    query = source(spark.readStream, **options).writeStream.format("noop").trigger(availableNow=True)
    with pytest.raises(Exception) as raised:
        query.option("checkpointLocation", str(tmp_path)).start().awaitTermination()
    before, after = _told(raised.value)
    assert after.startswith(cause)
    assert "Traceback" not in before + after
    assert "UnboundLocalError" not in before + after
    assert "\n" not in before


@pytest.mark.parametrize(
    ("columns", "options", "cause"),
    [
        ("'v' value", {"exactlyOnse": "true"}, "ConfigError: option exactlyonse: unknown"),
        ("'v' other", {}, "ConfigError: column value: missing"),
        pytest.param("'v' value, 9 partition", {}, "KafkaError: UNKNOWN_TOPIC_OR_PARTITION (3): partition", marks=LONG),
    ],
)
def test_a_write_says_the_cause_without_a_traceback(spark, broker, topic, columns, options, cause):
    writer = spark.sql(f"select {columns}").write.format("tagwire").option("topic", topic).options(**options)
    with pytest.raises(Exception) as raised:
        writer.option("kafka.bootstrap.servers", broker.bootstrap).mode("append").save()
    before, after = _told(raised.value)
    assert after.startswith(cause)
    assert "Traceback" not in before + after


@pytest.mark.parametrize(
    ("kind", "content", "cause"),
    [
        ("tagwire-segments", None, "StorageError: "),
        ("tagwire-segments", b"x" * 200, "CorruptRecordError: "),
        ("tagwire-capture", None, "CaptureError: "),
    ],
)
def test_a_read_of_files_says_the_cause_without_a_traceback(spark, tmp_path, kind, content, cause):
    place = tmp_path / "t-0"
    if content is not None:
        place.mkdir()
        (place / "00000000000000000000.log").write_bytes(content)
    with pytest.raises(Exception) as raised:
        spark.read.format(kind).load(str(place)).collect()
    before, after = _told(raised.value)
    assert after.startswith(cause)
    assert "Traceback" not in before + after


def test_a_function_says_the_cause_without_a_traceback(spark):
    from tagwire.spark.functions import decode_records

    with pytest.raises(Exception) as raised:
        spark.sql("select cast(repeat('x', 200) as binary) b").select(decode_records("b", mode="FAILFAST")).collect()
    before, after = _told(raised.value)
    assert after.startswith("DecodeError: row 0")
    assert "Traceback" not in before + after


@without_traceback
def _wrong(error: BaseException) -> None:
    raise error


@pytest.fixture
def worker(monkeypatch):
    """As in a worker of Spark's."""
    monkeypatch.setenv(WORKER, "1")
    monkeypatch.delenv("TAGWIRE_TRACEBACK", raising=False)
    monkeypatch.setenv(HIDE, "")
    return monkeypatch


def test_a_worker_hides_the_traceback_of_our_own_errors_alone(worker):
    with pytest.raises(ZeroDivisionError):
        _wrong(ZeroDivisionError())
    assert not os.environ[HIDE]
    with pytest.raises(ConfigError):
        _wrong(ConfigError("option x: no"))
    assert os.environ[HIDE]


def test_the_traceback_is_kept_where_the_environment_asks_for_it(worker):
    worker.setenv("TAGWIRE_TRACEBACK", "1")
    with pytest.raises(ConfigError):
        _wrong(ConfigError("option x: no"))
    assert not os.environ[HIDE]


def test_outside_of_spark_nothing_is_hidden(worker):
    worker.delenv(WORKER)
    with pytest.raises(ConfigError):
        _wrong(ConfigError("option x: no"))
    assert not os.environ[HIDE]


def test_an_error_between_two_batches_goes_without_its_traceback_too(worker):
    @without_tracebacks
    class Reading:
        def read(self):
            yield 1
            raise TagwireError("broken")

    batches = Reading().read()
    assert next(batches) == 1
    with pytest.raises(TagwireError, match="broken"):
        next(batches)
    assert os.environ[HIDE]


@pytest.mark.parametrize("asked", ["", "1"])
def test_a_command_tells_its_error_in_one_line_and_the_rest_on_demand(asked):
    command = [sys.executable, "-m", "tagwire", "spec", "show", "NoSuchMessage"]
    environment = {**os.environ, "TAGWIRE_TRACEBACK": asked}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    first, *rest = done.stderr.splitlines()
    assert first.startswith("tagwire: ")
    assert ("Traceback (most recent call last):" in rest) == bool(asked)
    assert bool(rest) == bool(asked)
