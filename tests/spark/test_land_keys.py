"""Keys of every kind, and times of any year, in a table of each format."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tagwire.cli import main
from tagwire.client import Admin, NewTopic
from tagwire.errors import StorageError
from tagwire.records import Record
from tagwire.spark.jobs.land import TableSettings, land
from tagwire.spark.jobs.replay import landed_rows

from .test_land_killed import BY_FORMAT, NOON, rows_of

pytestmark = pytest.mark.spark

KEYS = [b"k", None, b"", b"\xff\x00", "é".encode(), b'{"id": 7}', b'{"id": "x"}']


def keys_of(out: Path) -> list:
    return rows_of(out).sort_by("offset")["key"].to_pylist()


@pytest.mark.parametrize("format", BY_FORMAT)
def test_keys_land_as_bytes_null_or_no_utf_8_and_times_in_no_year_of_four_digits_as_they_are(
    spark, broker, topic, produce, tmp_path, format
):
    topic, anything = f"{topic}-far", {"message.timestamp.after.max.ms": str(2**63 - 1), "retention.ms": "-1"}
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=1, configs=anything)])
    # Year 45475, before 1970, the first moment of year 10000.
    times = [NOON, NOON * 1000, -1, 253_402_300_800_000, *[NOON] * 3]
    produce(topic, {0: [Record(key, b"v", (), at) for key, at in zip(KEYS, times, strict=True)]})
    land(broker.bootstrap, topic, tmp_path / "t", format=format, spark=spark)
    assert keys_of(tmp_path / "t") == KEYS
    found = rows_of(tmp_path / "t").sort_by("offset")["timestamp"]
    assert pc.cast(found, pa.int64()).to_pylist() == [at * 1000 for at in times]
    rows = landed_rows(spark, tmp_path / "t").orderBy("offset").select("key").collect()
    assert [row.key if row.key is None else bytes(row.key) for row in rows] == KEYS


@pytest.mark.long
def test_keys_land_as_text_with_the_digits_of_what_is_none(spark, broker, topic, produce, tmp_path):
    produce(topic, {0: [Record(key, b"v", (), NOON) for key in KEYS]})
    land(broker.bootstrap, topic, tmp_path / "t", table=TableSettings(text=True), spark=spark)
    assert keys_of(tmp_path / "t") == ["k", None, "", "0xff00", "é", '{"id": 7}', '{"id": "x"}']
    rows = landed_rows(spark, tmp_path / "t").orderBy("offset").collect()
    assert [row.key if row.key is None else bytes(row.key) for row in rows][:3] == KEYS[:3]


@pytest.mark.long
def test_keys_are_decoded_as_values_are_with_bad_ones_beside_them(spark, broker, topic, produce, tmp_path, capsys):
    format = "iceberg"  # which has ids for the fields of structs; the others go by names
    produce(topic, {0: [Record(key, b'{"n": 1}', (), NOON) for key in KEYS]})
    out = tmp_path / "out"
    given = ["land", topic, "--bootstrap", broker.bootstrap, "--to", str(out), "--json"]
    values = ["--value-format", "json", "--value-schema", "n int"]
    decoding = ["--key-format", "json", "--key-schema", "id int"]
    assert main([*given, "--format", format, *values, *decoding]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["malformed"] == 5
    table = rows_of(out).sort_by("offset")
    assert table["key"].to_pylist() == [*[None] * 5, {"id": 7}, None]
    assert table["_corrupt_key"].to_pylist() == [b"k", None, b"", b"\xff\x00", "é".encode(), None, b'{"id": "x"}']
    assert table["value"].to_pylist() == [{"n": 1}] * len(KEYS)
    rows = landed_rows(spark, out).orderBy("offset").collect()
    assert [row.key if row.key is None else bytes(row.key) for row in rows] == [*KEYS[:5], b'{"id":7}', KEYS[6]]
    assert main([*given, *values]) == 0  # keys as the table has them
    for changed, said in [
        (["--key-format", "json", "--key-schema", "id string"], "begun with --key-schema=id int, not id string"),
        (["--key-format", "message", "--key-message", "RequestHeader", "--key-version", "1"], "--key-format=json, not"),
    ]:
        assert main([*given, *changed]) == 2
        assert said in capsys.readouterr().err
    only_keys = {"key.format": "json", "key.schema": "id int"}
    other = tmp_path / "keys"
    land(broker.bootstrap, topic, other, table=TableSettings(values=only_keys), format=format, spark=spark)
    assert rows_of(other)["value"].to_pylist() == [b'{"n": 1}'] * len(KEYS)
    both = {**only_keys, "value.format": "json", "value.schema": "n int"}
    with pytest.raises(StorageError, match="was begun with values as they are, not decoded"):
        land(broker.bootstrap, topic, other, table=TableSettings(values=both), spark=spark)
