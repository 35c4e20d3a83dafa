"""The options of a write: what is wrong with them is told before anything is written."""

from __future__ import annotations

import pytest
from pyspark.sql.types import BinaryType, StructType

from tagwire.errors import ConfigError
from tagwire.spark.sink.options import parse
from tagwire.spark.sink.record_projection import RecordProjection

TARGET = {"kafka.bootstrap.servers": "h:1", "topic": "target"}
ONCE = {**TARGET, "exactlyonce": "true"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({**TARGET, "path": "/lake"}, "path='/lake': the format tagwire has no paths; option topic"),
        ({**TARGET, "exactlyOnceId": "a b"}, "exactlyOnceId='a b': needs letters"),
        ({**TARGET, "exactlyOnceSettled": "q/1"}, "exactlyOnceSettled='q/1': needs exactlyOnce=true"),
        ({**ONCE, "exactlyOnceSettled": "1"}, "exactlyOnceSettled='1': needs QUERY/BATCH"),
        ({**ONCE, "kafka.transaction.timeout.ms": "1m"}, "transaction.timeout.ms=1m: allowed is"),
        ({**ONCE, "kafka.transaction.timeout.ms": "0"}, "transaction.timeout.ms=0: allowed is"),
        ({**ONCE, "kafka.acks": "1"}, "kafka.acks='1': exactlyOnce needs all"),
        ({**TARGET, "kafka.compression.type": "rar"}, "compression.type=rar: allowed is"),
        ({**TARGET, "kafka.linger.ms": "-5"}, "linger.ms=-5: allowed is"),
        ({**TARGET, "topic": " "}, "topic=' ': needs the name of a topic"),
        ({**ONCE, "kafka.transactional.id": "x"}, "kafka.transactional.id: cannot be set"),
    ],
)
def test_a_wrong_option_of_a_write_is_named_in_one_line(options: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_an_exactly_once_write_may_be_told_is_taken() -> None:
    options = parse(
        {**ONCE, "exactlyOnceSettled": "q-1/7", "kafka.acks": "ALL", "kafka.transaction.timeout.ms": "60000"}
    )
    assert (options.settled_batch, options.transaction_timeout_ms) == ("q-1/7", 60_000)
    assert parse({**TARGET, "kafka.acks": "1"}).client["acks"] == "1"


@pytest.mark.parametrize("name", ["key", "value", "headers"])
def test_a_column_that_a_table_has_twice_is_named(name: str) -> None:
    table = StructType().add("value", BinaryType()).add("id", BinaryType()).add("id", BinaryType())
    RecordProjection(table, "target")
    for _ in range(1 if name == "value" else 2):
        table = table.add(name, BinaryType())
    with pytest.raises(ConfigError, match=f"column {name}: the table has it 2 times"):
        RecordProjection(table, "target")
