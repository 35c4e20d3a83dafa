"""Errors that come back from Spark as text are our own again, in one line."""

from __future__ import annotations

import pytest

from tagwire.errors import (
    ConfigError,
    CorruptRecordError,
    Error,
    HeaderRegisterError,
    KafkaError,
    LogTruncationError,
    ProducerFencedError,
    TagwireError,
)
from tagwire.partitions import TopicPartition
from tagwire.spark.failure import reason

PLANNER = """[PYTHON_DATA_SOURCE_ERROR] Failed to generate Python data source read partitions: Traceback (most recent call last):
  File "topic.py", line 100, in partitions
    self.cluster.close()
{line}
 SQLSTATE: 38000"""  # noqa: E501

TRUNCATED = LogTruncationError(TopicPartition("t", 0), 7, 5)
DURING_ANOTHER = PLANNER.format(
    line="""tagwire.errors.ConfigError: option endingOffsets: only for batch reads

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "python_streaming_source_runner.py", line 295, in main
UnboundLocalError: cannot access local variable 'reader'"""
)


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        (PLANNER.format(line="tagwire.errors.ConfigError: option x: no"), ConfigError, "option x: no"),
        (DURING_ANOTHER, ConfigError, "option endingOffsets: only for batch reads"),
        (
            PLANNER.format(line="tagwire.errors.KafkaError: UNKNOWN_TOPIC_OR_PARTITION (3): topic 'a: b'"),
            KafkaError,
            "UNKNOWN_TOPIC_OR_PARTITION (3): topic 'a: b'",
        ),
        (
            PLANNER.format(line="tagwire.errors.CorruptRecordError: t-0@7: batch at byte 3: checksum"),
            CorruptRecordError,
            "t-0@7: batch at byte 3: checksum",
        ),
        (PLANNER.format(line="tagwire.errors.NoSuchError: x"), TagwireError, "x"),
        (
            PLANNER.format(line="tagwire.errors.HeaderRegisterError: r.toml: entry 1: no name"),
            HeaderRegisterError,
            "r.toml: entry 1: no name",
        ),
        (
            PLANNER.format(line="tagwire.errors.ProducerFencedError: PRODUCER_FENCED (90): another"),
            ProducerFencedError,
            "PRODUCER_FENCED (90): another",
        ),
        (
            PLANNER.format(line=f"tagwire.errors.LogTruncationError: {TRUNCATED}"),
            KafkaError,
            str(TRUNCATED),
        ),
        ("[PYTHON_EXCEPTION]: tagwire.spark.sink.driver.UndecidedError: micro-batch 3", TagwireError, "micro-batch 3"),
        (
            "[STREAM_FAILED] Query [id = 1] terminated\n at x.y",
            TagwireError,
            "Spark: [STREAM_FAILED] Query [id = 1] terminated",
        ),
        (
            "Job aborted\nCaused by: org.apache.SparkException: failed\nCaused by: java.io.IOException: No space left",
            TagwireError,
            "Spark: IOException: No space left",
        ),
        (
            PLANNER.format(line="ImportError: no module named x"),
            TagwireError,
            "Python in Spark: ImportError: no module named x",
        ),
        ("", TagwireError, "Exception: Exception"),
    ],
)
def test_the_reason_is_found_under_the_trace(text, kind, said):
    found = reason(Exception(text))
    assert type(found) is kind
    assert str(found) == said


def test_a_brokers_error_keeps_its_code():
    found = reason(Exception("tagwire.errors.KafkaError: OFFSET_OUT_OF_RANGE (1): t-0"))
    assert isinstance(found, KafkaError)
    assert found.error is Error.OFFSET_OUT_OF_RANGE


def test_an_error_of_ours_stays_what_it_is():
    error = ConfigError("as it is")
    assert reason(error) is error
