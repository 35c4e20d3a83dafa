"""The Iceberg table and its catalog: each offset once wherever the process stops. No Spark here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pyiceberg.table
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    ForbiddenError,
    ServerError,
    ServiceUnavailableError,
    TooManyRequestsError,
)
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Summary

from tagwire.errors import ConfigError, StorageError, StorageUnavailableError
from tagwire.spark.jobs.replay import landed_rows
from tagwire.spark.tables.data_files import FileWriter, collected
from tagwire.spark.tables.delta_table import DeltaTable
from tagwire.spark.tables.iceberg_catalog import CatalogSettings
from tagwire.spark.tables.iceberg_table import COMMITTED, PROPERTY, IcebergTable
from tagwire.spark.tables.parquet_table import ParquetTable
from tagwire.spark.tables.table_settings import TableSettings, Upkeep

from .test_delta_table import said_with_little_room

DAYS = 3
DAY = 86_400_000_000
ROWS = 6  # of a micro-batch, in each partition
PARTITIONS = (0, 1)
SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("value", pa.struct([("n", pa.int8()), ("l", pa.list_(pa.string())), ("m", pa.map_(pa.string(), pa.int32()))])),
        ("date", pa.date32()),
    ]
)
SETTINGS = TableSettings(partition_by="date")


class Killed(BaseException):
    """The process stops here."""


def rows(start: dict[int, int], end: dict[int, int]) -> Iterator[pa.RecordBatch]:
    """The topic's rows of these offsets, as a task has them: sorted by date."""
    places = [(part, at) for part in PARTITIONS for at in range(start.get(part, 0), end[part])]
    places.sort(key=lambda place: (place[1] % DAYS, *place))
    columns = {
        "partition": [part for part, _ in places],
        "offset": [at for _, at in places],
        "timestamp": [at % DAYS * DAY + at for _, at in places],
        "value": [{"n": at % 100, "l": [str(at)], "m": [("k", at)]} for _, at in places],
        "date": [at % DAYS for _, at in places],
    }
    yield pa.record_batch([pa.array(columns[field.name], field.type) for field in SCHEMA], schema=SCHEMA)


def written(table: IcebergTable, batch: int, start: dict[int, int], end: dict[int, int]):
    writer = FileWriter(table.destination(batch), table.columns(SCHEMA), ("date",), ("date",), 1 << 20, 2, ())
    return collected(row for told in writer.write(rows(start, end)) for row in told.to_pylist())


class Job:
    """A landing job as the table sees it."""

    def __init__(
        self, out: Path, until: int, kill_after: int | None = None, catalog: CatalogSettings | None = None
    ) -> None:
        self.out = out
        self.until = until
        self.left = kill_after
        self.catalog = catalog

    def step(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                raise Killed

    def run(self) -> None:
        table = IcebergTable(self.out, catalog=self.catalog)
        table.inspect()
        self.step()
        with table.lock():
            self.step()
            start = begun(table)
            self.step()
            for batch in range(self.until):
                end = {part: min(start.get(part, 0) + ROWS, ROWS * self.until) for part in PARTITIONS}
                if end == start:
                    return
                files = written(table, batch, start, end)
                self.step()
                table.commit(batch, files, end)
                start = end
                self.step()


def begun(table: IcebergTable, schema: pa.Schema = SCHEMA, settings: TableSettings = SETTINGS) -> dict[int, int]:
    identity = table.judge("t", "c", "", settings)
    table.claim(identity)
    return table.begin(identity, schema, PARTITIONS)


def catalog_of(out: Path) -> Catalog:
    return load_catalog("tagwire", type="sql", uri=f"sqlite:///{out}/_catalog.db")


def table_of(out: Path) -> Table | None:
    """The table as others find it in the catalog."""
    if not (out / "_catalog.db").exists():
        return None
    catalog = catalog_of(out)
    found = [table for space in catalog.list_namespaces() for table in catalog.list_tables(space)]
    return catalog.load_table(found[0]) if found else None


def offsets_of(out: Path) -> Counter[tuple[int, int]]:
    table = table_of(out)
    if table is None:
        return Counter()
    found = table.scan(selected_fields=("partition", "offset")).to_arrow()
    return Counter(zip(found["partition"].to_pylist(), found["offset"].to_pylist()))


def everything(batches: int) -> Counter[tuple[int, int]]:
    return Counter((part, offset) for part in PARTITIONS for offset in range(batches * ROWS))


def test_each_offset_stands_once_wherever_a_job_is_killed_between_its_steps(tmp_path):
    for kill_after in range(1, 8):
        with pytest.raises(Killed):
            Job(tmp_path / str(kill_after), 2, kill_after).run()
        assert set(offsets_of(tmp_path / str(kill_after)).values()) <= {1}
        Job(tmp_path / str(kill_after), 2).run()
        assert offsets_of(tmp_path / str(kill_after)) == everything(2)


def committed_then(error: BaseException, *, before: bool):
    """`SqlCatalog.commit_table` that fails once, before or after the table is changed."""
    left, real = [error], SqlCatalog.commit_table

    def commit_table(self, table, requirements, updates):
        failing = left.pop() if left else None
        if failing is not None and before:
            raise failing
        done = real(self, table, requirements, updates)
        if failing is not None:
            raise failing
        return done

    return commit_table


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize(
    ("error", "goes_on"),
    [(Killed(), False), (CommitFailedException("conflict"), True), (CommitStateUnknownException("504"), None)],
    ids=["killed", "conflict", "lost answer"],
)
def test_a_commit_that_ends_in_its_midst_lands_once(tmp_path, monkeypatch, error, goes_on, before):
    table = IcebergTable(tmp_path)
    with table.lock():
        begun(table)
        end = dict.fromkeys(PARTITIONS, ROWS)
        files = written(table, 0, {}, end)
        with monkeypatch.context() as patched:
            patched.setattr(SqlCatalog, "commit_table", committed_then(error, before=before))
            if goes_on or (goes_on is None and not before):
                table.commit(0, files, end)
            else:
                with pytest.raises((Killed, StorageError)):
                    table.commit(0, files, end)
    assert offsets_of(tmp_path) == (Counter() if before and not goes_on else everything(1))
    Job(tmp_path, 2).run()
    assert offsets_of(tmp_path) == everything(2)


KILLED_WHILE_COMMITTING = """
import sys, threading, time, os, signal
from pathlib import Path
from tests.spark.test_iceberg_table import Job
def die():
    time.sleep(float(sys.argv[2]))
    os.kill(os.getpid(), signal.SIGKILL)
threading.Thread(target=die, daemon=True).start()
Job(Path(sys.argv[1]), 60).run()
"""


@pytest.mark.nightly
def test_a_process_that_dies_amid_commits_leaves_each_offset_once(tmp_path):
    """By the clock, so that it dies while pyiceberg writes its metadata, too; some of the runs do not get that far."""
    out, committed = tmp_path / "table", []
    for number in range(8):
        command = [sys.executable, "-c", KILLED_WHILE_COMMITTING, str(out), f"{2.0 + number * 0.037}"]
        ended = subprocess.run(command, cwd=Path(__file__).parents[2], check=False, capture_output=True, text=True)
        assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
        committed.append(sum(offsets_of(out).values()))
        assert set(offsets_of(out).values()) <= {1}
    assert committed == sorted(committed)
    Job(out, 60).run()
    assert offsets_of(out) == everything(60)


@settings(max_examples=4, deadline=None)
@given(kills=st.lists(st.integers(1, 9), max_size=4))
@pytest.mark.long
def test_each_offset_stands_once_however_often_a_job_is_killed(tmp_path_factory, kills):
    out = tmp_path_factory.mktemp("table")
    for kill_after in kills:
        try:
            Job(out, 3, kill_after).run()
        except Killed:
            assert set(offsets_of(out).values()) <= {1}
    Job(out, 3).run()
    assert offsets_of(out) == everything(3)


def test_of_two_jobs_on_one_table_one_loses_by_name_and_nothing_stands_twice(tmp_path, monkeypatch):
    with IcebergTable(tmp_path).lock(), pytest.raises(StorageError, match=f"in use by process {os.getpid()}"):
        Job(tmp_path, 1).run()
    # Where no lock reaches, as on another machine, a table is begun by one of them.
    first, second = IcebergTable(tmp_path / "new"), IcebergTable(tmp_path / "new")
    identities = [table.judge("t", "c", "", SETTINGS) for table in (first, second)]
    (tmp_path / "new").mkdir()
    second.begin(identities[1], SCHEMA, PARTITIONS)
    with pytest.raises(StorageError, match="another job has begun the table"):
        first.begin(identities[0], SCHEMA, PARTITIONS)
    # And the commit decides: before it looks, and between look and commit.
    end, later = dict.fromkeys(PARTITIONS, ROWS), dict.fromkeys(PARTITIONS, 2 * ROWS)
    meanwhile: list[tuple] = []
    real = SqlCatalog.commit_table

    def commit_table(*given):
        if meanwhile:
            other, *what = meanwhile.pop()
            other.commit(*what)
        return real(*given)

    monkeypatch.setattr(SqlCatalog, "commit_table", commit_table)
    for amid, start, to in ((False, {}, end), (True, end, later)):
        first, second = IcebergTable(tmp_path), IcebergTable(tmp_path)
        for table in (first, second):
            assert begun(table) == start
        files = written(first, 0, start, to), written(second, 0, start, to)
        if amid:
            meanwhile.append((second, 0, files[1], to))
        else:
            second.commit(0, files[1], to)
        with pytest.raises(StorageError, match="another job has landed into the table meanwhile"):
            first.commit(0, files[0], to)
    assert offsets_of(tmp_path) == everything(2)
    Job(tmp_path, 3).run()
    assert offsets_of(tmp_path) == everything(3)


def test_rows_of_somebody_else_stay_and_disturb_nothing(tmp_path, monkeypatch):
    Job(tmp_path, 1).run()
    table = IcebergTable(tmp_path)
    start = begun(table)
    end = dict.fromkeys(PARTITIONS, 2 * ROWS)
    files = written(table, 0, start, end)
    when = pa.array([0], SCHEMA.field("timestamp").type)
    theirs = pa.table({"partition": pa.array([9], pa.int32()), "offset": [9], "timestamp": when})
    pq.write_table(theirs, tmp_path / "theirs.parquet")
    left, real = [True], SqlCatalog.commit_table

    def commit_table(*given):
        if left and left.pop():
            table_of(tmp_path).add_files([f"file://{tmp_path}/theirs.parquet"])  # between our looking and our commit
        return real(*given)

    monkeypatch.setattr(SqlCatalog, "commit_table", commit_table)
    table.commit(0, files, end)
    assert offsets_of(tmp_path) == everything(2) + Counter([(9, 9)])
    table_of(tmp_path).delete("partition = 1")
    Job(tmp_path, 3).run()  # what was deleted on purpose does not come again
    assert sum(offsets_of(tmp_path).values()) == 2 * ROWS + 1 + 2 * ROWS


@pytest.mark.long
def test_a_disk_that_takes_no_more_is_named_and_what_was_begun_goes_on_later(tmp_path):
    Job(tmp_path, 1).run()
    # No room for rows, none for a manifest, and none in the catalog.
    full = "File too large", "File too large", "disk"
    for what, said in zip(full, said_with_little_room(Job.__module__, tmp_path, 200, 4000, 8000), strict=True):
        assert said.startswith(f"StorageUnavailableError: {tmp_path}")
        assert what in said
        assert offsets_of(tmp_path) == everything(1)
    Job(tmp_path, 2).run()
    assert offsets_of(tmp_path) == everything(2)


def test_a_column_that_somebody_has_taken_meanwhile_stops_the_job_and_nothing_lands(tmp_path):
    table = IcebergTable(tmp_path)
    begun(table)
    end = dict.fromkeys(PARTITIONS, ROWS)
    files = written(table, 0, {}, end)
    with table_of(tmp_path).update_schema(allow_incompatible_changes=True) as change:
        change.delete_column("value")
    with pytest.raises(StorageError, match="value"):
        table.commit(0, files, end)
    assert offsets_of(tmp_path) == Counter()


def test_a_conflict_and_then_a_lost_answer_land_once_whatever_others_add_meanwhile(tmp_path, monkeypatch):
    table = IcebergTable(tmp_path)
    begun(table)
    end = dict.fromkeys(PARTITIONS, ROWS)
    files = written(table, 0, {}, end)
    left, real = [CommitStateUnknownException("504"), CommitFailedException("conflict")], SqlCatalog.commit_table

    def commit_table(*given):
        failing = left.pop() if left else None
        if isinstance(failing, CommitFailedException):
            raise failing
        done = real(*given)
        if failing is not None:
            with table_of(tmp_path).transaction() as change:  # behind our commit, before its answer would be there
                change.set_properties(owner="somebody")
            raise failing
        return done

    monkeypatch.setattr(SqlCatalog, "commit_table", commit_table)
    table.commit(0, files, end)
    assert not left
    Job(tmp_path, 2).run()
    assert offsets_of(tmp_path) == everything(2)


def test_an_answer_that_is_lost_while_the_catalog_goes_away_lands_once_in_the_next_run(tmp_path, monkeypatch):
    table = IcebergTable(tmp_path)
    begun(table)
    end = dict.fromkeys(PARTITIONS, ROWS)
    files = written(table, 0, {}, end)
    with monkeypatch.context() as patched:
        away, gone = OSError("the catalog is away"), []
        commit_table, load_table = SqlCatalog.commit_table, SqlCatalog.load_table

        def commit_and_go(*given):
            commit_table(*given)
            gone.append(away)
            raise away

        def load(*given):
            if gone:
                raise away
            return load_table(*given)

        patched.setattr(SqlCatalog, "commit_table", commit_and_go)
        patched.setattr(SqlCatalog, "load_table", load)
        with pytest.raises(StorageError, match="the catalog is away"):
            table.commit(0, files, end)
    assert offsets_of(tmp_path) == everything(1)
    Job(tmp_path, 2).run()
    assert offsets_of(tmp_path) == everything(2)


def test_a_table_that_was_begun_though_the_answer_was_lost_is_taken_up_by_the_same_run(tmp_path, monkeypatch):
    create_table = SqlCatalog.create_table

    def create_and_lose(*given, **named):
        create_table(*given, **named)
        raise OSError("the catalog is away")

    table = IcebergTable(tmp_path)
    identity = table.judge("t", "c", "", SETTINGS)
    with monkeypatch.context() as patched:
        patched.setattr(SqlCatalog, "create_table", create_and_lose)
        with pytest.raises(StorageUnavailableError, match="the catalog is away"):
            table.begin(identity, SCHEMA, PARTITIONS)
    assert table.begin(identity, SCHEMA, PARTITIONS) == {}
    end = dict.fromkeys(PARTITIONS, ROWS)
    table.commit(0, written(table, 0, {}, end), end)
    assert offsets_of(tmp_path) == everything(1)


@pytest.mark.parametrize(
    "error",
    [
        ServerError("500"),
        ServiceUnavailableError("503"),
        TooManyRequestsError("429"),
        CommitStateUnknownException("504"),
        OSError("connection refused"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_catalog_that_may_do_later_what_it_has_not_done_is_told_from_one_that_refuses(tmp_path, monkeypatch, error):
    table = IcebergTable(tmp_path)
    begun(table)
    end = dict.fromkeys(PARTITIONS, ROWS)
    files = written(table, 0, {}, end)
    monkeypatch.setattr(SqlCatalog, "commit_table", committed_then(error, before=True))
    with pytest.raises(StorageUnavailableError, match=str(error)):
        table.commit(0, files, end)
    monkeypatch.setattr(SqlCatalog, "commit_table", committed_then(ForbiddenError("403"), before=True))
    with pytest.raises(StorageError, match="403") as refused:
        table.commit(0, files, end)
    assert not isinstance(refused.value, StorageUnavailableError)


def test_a_micro_batch_without_rows_moves_the_mark_and_never_back(tmp_path):
    first, second = IcebergTable(tmp_path), IcebergTable(tmp_path)
    begun(first), begun(second)
    nothing = collected([])
    second.commit(0, nothing, dict.fromkeys(PARTITIONS, 9))
    with pytest.raises(StorageError, match="another job"):
        first.commit(0, nothing, dict.fromkeys(PARTITIONS, 3))
    assert begun(IcebergTable(tmp_path)) == dict.fromkeys(PARTITIONS, 9)


def test_the_table_is_partitioned_by_the_time_without_a_column_for_it_and_files_have_ids(tmp_path, monkeypatch):
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    Job(tmp_path, 2).run()
    table = table_of(tmp_path)
    assert [str(field.transform) for field in table.spec().fields] == ["day"]
    assert [field.name for field in table.schema().fields] == [name for name in SCHEMA.names if name != "date"]
    found = sorted(task.file.partition[0] for task in table.scan().plan_files())
    assert set(found) == set(range(DAYS))
    assert len(list(table.scan(row_filter="timestamp < '1970-01-02T00:00:00+00:00'").plan_files())) < len(found)
    with table.transaction() as change:  # readers that know of no name mapping find the columns by their ids
        change.remove_properties("schema.name-mapping.default")
    seen = table_of(tmp_path).scan().to_arrow().sort_by([("partition", "ascending"), ("offset", "ascending")])
    assert seen["value"].to_pylist() == [
        {"n": at, "l": [str(at)], "m": [("k", at)]} for _ in PARTITIONS for at in range(2 * ROWS)
    ]
    frame = polars.scan_iceberg(table_of(tmp_path)).select("offset", polars.col("value").struct.field("n")).collect()
    assert sorted(frame.rows()) == sorted((at, at) for _ in PARTITIONS for at in range(2 * ROWS))
    assert IcebergTable(tmp_path).totals().rows == 2 * ROWS * len(PARTITIONS)
    assert len(IcebergTable(tmp_path).files()) == IcebergTable(tmp_path).totals().files


def test_a_table_gets_columns_where_it_may_evolve_and_keeps_its_types(tmp_path):
    begun(IcebergTable(tmp_path))
    more = pa.struct([*SCHEMA.field("value").type, ("b", pa.list_(pa.string()))])
    wider = SCHEMA.set(3, pa.field("value", more)).append(pa.field("origin", pa.string()))
    evolve = TableSettings(evolve=True)
    with pytest.raises(StorageError, match=r"in column 'value.b', 'origin'; with option evolve it gets that"):
        begun(IcebergTable(tmp_path), wider)
    for changed, said in [
        (pa.struct([("n", pa.int64())]), "'value.n' is int, and would be long: a column keeps its type"),
        (pa.string(), "'value' is struct, and would be string"),
    ]:
        with pytest.raises(StorageError, match=said):
            begun(IcebergTable(tmp_path), SCHEMA.set(3, pa.field("value", changed)), evolve)
    Job(tmp_path, 1).run()
    begun(IcebergTable(tmp_path), wider, evolve)
    assert table_of(tmp_path).schema().find_field("value.b").name == "b"
    Job(tmp_path, 2).run()  # rows without the columns have null there
    assert table_of(tmp_path).scan().to_arrow()["origin"].null_count == 2 * ROWS * len(PARTITIONS)


def test_a_topic_that_was_made_anew_is_refused_until_it_is_to_begin_again(tmp_path):
    table = IcebergTable(tmp_path)
    table.claim(identity := table.judge("t", "c", "old", SETTINGS))
    assert table.begin(identity, SCHEMA, PARTITIONS) == {}
    end = dict.fromkeys(PARTITIONS, ROWS)
    table.commit(0, written(table, 0, {}, end), end)
    with pytest.raises(StorageError, match="deleted and created again"):
        IcebergTable(tmp_path).judge("t", "c", "new", SETTINGS)
    restart = TableSettings(restart=True)
    for _ in range(2):  # killed before its first commit, it has begun nothing
        again = IcebergTable(tmp_path)
        anew = again.judge("t", "c", "new", restart)
        for _ in range(2):  # as when brokers were away
            assert again.begin(anew, SCHEMA, PARTITIONS) == {}
    again.commit(0, written(again, 0, {}, end), end)
    assert again.begin(anew, SCHEMA, PARTITIONS) == end
    # Said once more, it lands nothing once more.
    third = IcebergTable(tmp_path)
    assert third.begin(third.judge("t", "c", "new", restart), SCHEMA, PARTITIONS) == end
    assert offsets_of(tmp_path) == everything(1) + everything(1)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (pa.duration("us"), "column 'x': Iceberg has no type for duration"),
        (pa.struct([("t", pa.time64("ns"))]), "column 'x.t': Iceberg has no type for time64"),
        (pa.list_(pa.null()), "column 'x.element': Iceberg has no type for null"),
    ],
)
def test_what_iceberg_lacks_is_refused_before_anything_is_written(tmp_path, kind, said):
    with pytest.raises(ConfigError, match=said):
        begun(IcebergTable(tmp_path / "t"), SCHEMA.append(pa.field("x", kind)))
    assert not (tmp_path / "t/_catalog.db").exists()


def test_a_place_that_is_not_ours_is_refused(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/thesis.doc").write_text("mine")
    with pytest.raises(StorageError, match="holds other files"):
        IcebergTable(tmp_path / "other").inspect()
    parquet = ParquetTable(tmp_path / "parquet")
    with parquet.lock():
        parquet.claim(parquet.judge("t", "c", "", SETTINGS))
    with pytest.raises(StorageError, match="holds a table of the format parquet"):
        IcebergTable(tmp_path / "parquet").inspect()
    Job(tmp_path / "ours", 0).run()
    for other in (ParquetTable, DeltaTable):
        with pytest.raises(StorageError, match="holds an Iceberg table"):
            other(tmp_path / "ours").inspect()
    with table_of(tmp_path / "ours").transaction() as change:
        change.remove_properties(COMMITTED)
    with pytest.raises(StorageError, match=f"its property {COMMITTED} is gone"):
        begun(IcebergTable(tmp_path / "ours"))
    with table_of(tmp_path / "ours").transaction() as change:
        change.remove_properties(PROPERTY)
    with pytest.raises(StorageError, match="an Iceberg table that `land` has not begun"):
        IcebergTable(tmp_path / "ours").inspect()


def test_snapshots_that_are_old_are_expired_and_the_mark_stays(tmp_path):
    Job(tmp_path, 3).run()
    table = IcebergTable(tmp_path)
    table.keep_up(Upkeep(vacuum=True))
    assert len(table_of(tmp_path).snapshots()) == 3
    with table_of(tmp_path).transaction() as change:
        change.set_properties({"history.expire.max-snapshot-age-ms": "0"})
    table.keep_up(Upkeep(vacuum=True))
    assert len(table_of(tmp_path).snapshots()) == 1
    Job(tmp_path, 4).run()
    assert offsets_of(tmp_path) == everything(4)


def test_of_too_many_snapshots_the_oldest_go_as_new_ones_come_and_tags_stay(tmp_path):
    Job(tmp_path, 1).run()
    first = table_of(tmp_path).current_snapshot().snapshot_id
    with table_of(tmp_path).transaction() as change:
        change.set_properties({"history.expire.min-snapshots-to-keep": "2"})
    table_of(tmp_path).manage_snapshots().create_tag(first, "audited").commit()
    there = []
    for until in range(2, 8):
        Job(tmp_path, until).run()
        there.append(len(table_of(tmp_path).snapshots()))
    assert there == [2, 3, 4, 4, 4, 4]
    assert table_of(tmp_path).scan(snapshot_id=first).to_arrow().num_rows == ROWS * len(PARTITIONS)
    assert offsets_of(tmp_path) == everything(7)


def test_a_commit_copies_what_is_known_of_the_table_for_its_changes_alone(tmp_path, monkeypatch):
    table = IcebergTable(tmp_path)
    begun(table)
    copied, real = [], pyiceberg.table.update_table_metadata
    monkeypatch.setattr(pyiceberg.table, "update_table_metadata", lambda *given: copied.append(given) or real(*given))
    end = dict.fromkeys(PARTITIONS, ROWS)
    table.commit(0, written(table, 0, {}, end), end)
    assert 1 <= len(copied) <= 4
    assert offsets_of(tmp_path) == everything(1)


def test_a_catalog_of_ones_own_holds_the_table_and_its_secrets_are_not_told(tmp_path):
    (tmp_path / "lake").mkdir()
    uri = f"sqlite:///{tmp_path}/theirs.db"
    given = {"type": "sql", "uri": uri, "warehouse": f"file://{tmp_path}/lake", "s3.secret-access-key": "hush"}
    settings = CatalogSettings(properties=given, table="sales.orders")
    assert "hush" not in repr(settings)
    for until in (1, 2):
        table = IcebergTable(tmp_path / "unused", catalog=settings)
        with table.lock():
            start, end = begun(table), dict.fromkeys(PARTITIONS, until * ROWS)
            table.commit(0, written(table, 0, start, end), end)
        assert not table.state.exists()
    assert not (tmp_path / "unused").exists()
    found = load_catalog("tagwire", **given).load_table("sales.orders")
    assert found.scan().to_arrow().num_rows == 2 * ROWS * len(PARTITIONS)
    wrong = CatalogSettings(
        properties={"type": "sql", "uri": "postgresql+nosuch://me:hush@db/x", "warehouse": "/x"}, table="a.b"
    )
    with pytest.raises(StorageError) as told:
        IcebergTable(tmp_path, catalog=wrong).inspect()
    assert "hush" not in str(told.value)
    with pytest.raises(ConfigError, match=r"catalog_table='orders': needs NAMESPACE\.NAME"):
        IcebergTable(tmp_path, catalog=CatalogSettings(table="orders"))


def test_a_table_with_rows_deleted_in_files_of_their_own_is_known(tmp_path, monkeypatch):
    Job(tmp_path, 1).run()
    assert not IcebergTable(tmp_path).has_deletes()
    snapshot = table_of(tmp_path).current_snapshot()
    summary = Summary(Operation.APPEND, **{"total-delete-files": "1"})
    monkeypatch.setattr(Table, "current_snapshot", lambda _: snapshot.model_copy(update={"summary": summary}))
    assert IcebergTable(tmp_path).has_deletes()
    spark = object()  # which is not asked
    with pytest.raises(StorageError, match="has rows deleted that its files still hold"):
        landed_rows(spark, tmp_path)
