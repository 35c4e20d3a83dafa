"""Tables whose files are kept apart by time and by columns: what readers get of them, and what they need not read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual

from tagwire.client import Admin, NewTopic
from tagwire.errors import StorageError, StorageUnavailableError
from tagwire.records import Record
from tagwire.spark.jobs.land import TableSettings, land
from tagwire.spark.jobs.replay import _with_values, landed_rows
from tagwire.spark.jobs.report import first_rows, ways_to_open
from tagwire.spark.tables.data_files import FileWriter, LocalDestination
from tagwire.spark.tables.opening import FORMATS
from tagwire.spark.tables.partition_runs import folder_of, values_of

from .test_iceberg_table import table_of
from .test_land_killed import BY_FORMAT, DAY, NOON, rows_of

TENANTS = ["a/b", "", None, "é", "0012", "x=1 %"]
FAR = 253_402_300_800_000  # the first moment of the year 10000


def pruned(out: Path, format: str) -> tuple[int, int]:
    """How many files readers open for a day of a tenant, and how many there are."""
    wanted = (ds.field("tenant") == "0012") & (ds.field("date") == pa.scalar(15891, pa.date32()))
    if format == "delta":
        found = deltalake.DeltaTable(out).to_pyarrow_dataset()
        return len(list(found.get_fragments(wanted))), len(list(found.get_fragments()))
    if format == "iceberg":
        found = table_of(out)
        late = And(EqualTo("tenant", "0012"), GreaterThanOrEqual("timestamp", "2013-07-05T00:00:00+00:00"))
        return len(list(found.scan(row_filter=late).plan_files())), len(list(found.scan().plan_files()))
    columns = pa.schema([("date", pa.date32()), ("tenant", pa.string())])
    found = ds.dataset(out, format="parquet", partitioning=ds.partitioning(columns, flavor="hive"))
    return len(list(found.get_fragments(wanted))), len(list(found.get_fragments()))


def tenants_of(out: Path, format: str) -> Mapping[int, str | None]:
    """By offset, as a reader has them."""
    if format == "parquet":
        columns = pa.schema([("date", pa.date32()), ("tenant", pa.string())])
        table = ds.dataset(out, format="parquet", partitioning=ds.partitioning(columns, flavor="hive")).to_table()
    else:
        table = rows_of(out)
    return dict(zip(table["offset"].to_pylist(), table["tenant"].to_pylist()))


@pytest.mark.spark
@pytest.mark.parametrize("format", BY_FORMAT)
def test_a_table_by_day_and_header_is_read_whole_and_in_part(spark, broker, topic, produce, tmp_path, format):
    topic, anything = f"{topic}-far", {"message.timestamp.after.max.ms": str(2**63 - 1), "retention.ms": "-1"}
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=1, configs=anything)])
    headers = [() if name is None else (("tenant", name.encode()),) for name in TENANTS]
    records = [Record(b"k", b"v", each, NOON + day * DAY) for each in headers for day in (0, 1)]
    produce(topic, {0: [*records, Record(b"k", b"v", headers[4], FAR)]})
    out = tmp_path / "t"
    settings = TableSettings(headers=["tenant"], partition_by="day,tenant")
    report = land(broker.bootstrap, topic, out, format=format, table=settings, spark=spark)
    assert (report.rows, report.partition_by) == (13, "date,tenant")
    assert "date=*/tenant=*" in json.dumps(ways_to_open(report, str(out))) or format != "parquet"
    # An empty text is none for Hive's directories and for Delta.
    wanted = [name if format == "iceberg" else name or None for name in TENANTS for _ in (0, 1)]
    assert tenants_of(out, format) == dict(enumerate([*wanted, "0012"]))
    few, all_of_them = pruned(out, format)
    assert few == 1 < all_of_them
    names, rows = first_rows(report, 13)
    assert sorted(row[names.index("tenant")] for row in rows) == sorted(name or "" for name in [*wanted, "0012"])
    rows = landed_rows(spark, out).orderBy("offset").select("headers").collect()
    assert [row.headers and bytes(row.headers[0].value).decode() for row in rows] == [*wanted, "0012"]
    if format == "delta":
        actions = pa.table(deltalake.DeltaTable(out).get_add_actions(flatten=True))
        assert {"min.offset", "max.offset", "null_count.key"} <= set(actions.column_names)

    with pytest.raises(StorageError, match="begun with partition_by=date,tenant, not tenant"):
        land(broker.bootstrap, topic, out, table=TableSettings(partition_by="tenant"), spark=spark)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("format", BY_FORMAT)
def test_a_table_by_hour_and_partition_goes_back_into_a_topic(spark, broker, topic, produce, tmp_path, format):
    produce(topic, {part: [Record(b"k", b"%d" % n, (), NOON + n * DAY // 24) for n in range(3)] for part in (0, 1)})
    settings = TableSettings(partition_by="hour,partition")
    report = land(broker.bootstrap, topic, tmp_path / "t", format=format, table=settings, spark=spark)
    assert report.files == 6
    rows = landed_rows(spark, tmp_path / "t").orderBy("partition", "offset").collect()
    assert [(row.partition, row.offset, bytes(row.value)) for row in rows] == [
        (part, n, b"%d" % n) for part in (0, 1) for n in range(3)
    ]
    if format == "delta":
        assert set(rows_of(tmp_path / "t")["hour"].to_pylist()) == {f"2013-07-04-{hour}" for hour in (12, 13, 14)}


@pytest.mark.long
@pytest.mark.spark
def test_headers_may_have_the_names_of_sparks_own_columns_of_files(spark, broker, topic, produce, tmp_path):
    names = ["_file", "_metadata"]
    produce(topic, {0: [Record(b"k", b"v", tuple((name, name.encode()) for name in names), NOON)]})
    settings = TableSettings(headers=names, partition_by="partition")
    land(broker.bootstrap, topic, tmp_path / "t", format="delta", table=settings, spark=spark)
    (row,) = landed_rows(spark, tmp_path / "t").collect()
    assert [(each.key, bytes(each.value)) for each in row.headers] == [(name, name.encode()) for name in names]


@pytest.mark.spark
@pytest.mark.parametrize("way", [".", "there/.."])  # Spark makes the shortest of it
def test_rows_have_the_values_of_their_own_file_where_others_have_its_name(spark, tmp_path, way):
    """As who compacts the directories of a table may call what they make of each."""
    (tmp_path / "there").mkdir()
    out = tmp_path / way
    values = {out / f"tenant={folder} +%41é/rows + 1.parquet": {"tenant": folder} for folder in ("a", "b")}
    for path, told in values.items():
        path.parent.mkdir()
        pq.write_table(pa.table({"of": [told["tenant"]]}), path)

    class Table:
        def partition_values(self) -> Mapping[Path, Mapping[str, str | None]]:
            return values

    rows = spark.read.option("recursiveFileLookup", "true").parquet(*map(str, values))
    assert sorted(map(tuple, _with_values(rows, Table(), ["tenant"]).collect())) == [("a", "a"), ("b", "b")]


@pytest.mark.long
@pytest.mark.spark
def test_a_header_that_became_a_column_before_a_file_had_it_is_no_records(spark, broker, topic, produce, tmp_path):
    produce(topic, {0: [Record(b"k", b"v", (("tenant", b"a"),), NOON)]})
    for settings in (TableSettings(), TableSettings(headers=["tenant"], evolve=True)):
        land(broker.bootstrap, topic, tmp_path / "t", format="delta", table=settings, spark=spark)
    (row,) = landed_rows(spark, tmp_path / "t").collect()
    assert (bytes(row.value), row.headers) == (b"v", None)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("format", FORMATS)
def test_headers_whose_names_have_dots_or_backticks_become_columns_and_come_back(
    spark, broker, topic, produce, tmp_path, format
):
    names = ["trace.id", "a`b.c``", "trace"]
    produce(topic, {0: [Record(b"k", b"v", tuple((name, name.encode()) for name in names), NOON)]})
    land(broker.bootstrap, topic, tmp_path / "t", format=format, table=TableSettings(headers=names), spark=spark)
    (row,) = landed_rows(spark, tmp_path / "t").collect()
    assert [(each.key, bytes(each.value)) for each in row.headers] == [(name, name.encode()) for name in names]


@pytest.mark.parametrize("value", ["a", "a/b", "é", "x=1 %41", "_", "..", "'\"", "\x01", None])
def test_a_directory_tells_its_values_by_the_names_of_hive(value):
    folder = folder_of({"tenant": value, "date": "2013-07-04"}, exact=True)
    assert values_of(folder.removesuffix("/").split("/")) == {"tenant": value, "date": "2013-07-04"}


def test_a_value_too_long_for_a_partition_is_named_by_its_column(tmp_path):
    rows = pa.record_batch({"partition": [0], "offset": [0], "tenant": ["x" * 1001]})
    to = LocalDestination(tmp_path, statistics=True)
    writer = FileWriter(to, rows.schema, ("tenant",), ("tenant",), 1 << 20, None, ())
    with pytest.raises(StorageError, match="column 'tenant': a value of 1,001 characters is too long"):
        list(writer.write(iter([rows])))
    assert list(tmp_path.iterdir()) == []


def test_a_value_whose_directory_has_too_long_a_name_is_refused_for_good(tmp_path):
    rows = pa.record_batch({"partition": [0], "offset": [0], "tenant": ["x" * 300]})
    to = LocalDestination(tmp_path, statistics=False, values_in_paths=True)
    writer = FileWriter(to, rows.schema, ("tenant",), ("tenant",), 1 << 20, None, ())
    with pytest.raises(StorageError, match=r"tenant=x+/part-.*: cannot be written: File name too long") as refused:
        list(writer.write(iter([rows])))
    assert not isinstance(refused.value, StorageUnavailableError)  # which is tried again
