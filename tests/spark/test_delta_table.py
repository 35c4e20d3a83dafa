"""The Delta table on disk: each offset once wherever the process stops, whoever else writes there. No Spark here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwire.errors import ConfigError, StorageError, StorageUnavailableError
from tagwire.spark.jobs.replay import landed_rows
from tagwire.spark.tables import delta_table
from tagwire.spark.tables.data_files import FileWriter, LocalDestination, collected
from tagwire.spark.tables.delta_table import DeltaTable
from tagwire.spark.tables.object_stores import ObjectStoreDestination
from tagwire.spark.tables.parquet_table import ParquetTable
from tagwire.spark.tables.table_format import DataFile, Landed, Written
from tagwire.spark.tables.table_settings import TableSettings, Upkeep

DAYS = 3
ROWS = 6  # of a micro-batch, in each partition
PARTITIONS = (0, 1)
SCHEMA = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary()), ("date", pa.date32())])
SETTINGS = TableSettings(partition_by="date")


class Killed(BaseException):
    """The process stops here."""


def rows(start: dict[int, int], end: dict[int, int], schema: pa.Schema = SCHEMA) -> Iterator[pa.RecordBatch]:
    """The topic's rows of these offsets, as a task has them: sorted by date."""
    places = [(part, at) for part in PARTITIONS for at in range(start.get(part, 0), end[part])]
    places.sort(key=lambda place: (place[1] % DAYS, *place))
    columns = {
        "partition": [part for part, _ in places],
        "offset": [at for _, at in places],
        "value": [b"%d" % at for _, at in places],
        "date": [at % DAYS for _, at in places],
    }
    yield pa.record_batch([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


def written(table: DeltaTable, batch: int, start: dict[int, int], end: dict[int, int]):
    writer = FileWriter(table.destination(batch), SCHEMA, ("date",), ("date",), 1 << 20, 2, ())
    return collected(row for told in writer.write(rows(start, end)) for row in told.to_pylist())


class Job:
    """A landing job as the table sees it."""

    def __init__(self, out: Path, until: int, kill_after: int | None = None) -> None:
        self.out = out
        self.until = until
        self.left = kill_after

    def step(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                raise Killed

    def run(self) -> None:
        table = DeltaTable(self.out)
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


def begun(table: DeltaTable, schema: pa.Schema = SCHEMA) -> dict[int, int]:
    identity = table.judge("t", "c", "", SETTINGS)
    table.claim(identity)
    return table.begin(identity, schema, PARTITIONS)


def offsets_of(out: Path) -> Counter[tuple[int, int]]:
    if not (out / "_delta_log").exists():
        return Counter()
    found = deltalake.DeltaTable(out).to_pyarrow_table()
    return Counter(zip(found["partition"].to_pylist(), found["offset"].to_pylist()))


def everything(batches: int) -> Counter[tuple[int, int]]:
    return Counter((part, offset) for part in PARTITIONS for offset in range(batches * ROWS))


@pytest.mark.long
@settings(max_examples=15, deadline=None)
@given(kills=st.lists(st.integers(1, 9), max_size=4))
def test_each_offset_stands_once_however_often_a_job_is_killed_between_its_steps(tmp_path_factory, kills):
    out = tmp_path_factory.mktemp("table")
    for kill_after in kills:
        try:
            Job(out, 3, kill_after).run()
        except Killed:
            assert set(offsets_of(out).values()) <= {1}
    Job(out, 3).run()
    assert offsets_of(out) == everything(3)
    assert not list((out / "_checkpoint").glob("run-*"))


KILLED_WHILE_COMMITTING = """
import sys, threading, time, os, signal
from pathlib import Path
from tests.spark.test_delta_table import Job
def die():
    time.sleep(float(sys.argv[2]))
    os.kill(os.getpid(), signal.SIGKILL)
threading.Thread(target=die, daemon=True).start()
Job(Path(sys.argv[1]), 400).run()
"""


@pytest.mark.long
def test_a_process_that_dies_amid_commits_leaves_each_offset_once(tmp_path):
    """By the clock, so that it dies while delta-rs writes its log, too; some of the runs do not get that far."""
    out, committed = tmp_path / "table", []
    for number in range(8):
        command = [sys.executable, "-c", KILLED_WHILE_COMMITTING, str(out), f"{0.9 + number * 0.037}"]
        ended = subprocess.run(command, cwd=Path(__file__).parents[2], check=False, capture_output=True, text=True)
        assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
        committed.append(sum(offsets_of(out).values()))
        assert set(offsets_of(out).values()) <= {1}
    assert committed == sorted(committed)
    Job(out, 400).run()
    assert offsets_of(out) == everything(400)


def test_of_two_jobs_on_one_table_one_loses_by_name_and_nothing_stands_twice(tmp_path):
    with DeltaTable(tmp_path).lock(), pytest.raises(StorageError, match=f"in use by process {os.getpid()}"):
        Job(tmp_path, 1).run()
    # Where no lock reaches, as on another machine, the commit decides.
    first, second = DeltaTable(tmp_path), DeltaTable(tmp_path)
    end = dict.fromkeys(PARTITIONS, ROWS)
    for table in (first, second):
        assert begun(table) == {}
    files = written(first, 0, {}, end), written(second, 0, {}, end)
    second.commit(0, files[1], end)
    with pytest.raises(StorageError, match="another job has landed into the table meanwhile"):
        first.commit(0, files[0], end)
    assert offsets_of(tmp_path) == everything(1)
    Job(tmp_path, 2).run()
    assert offsets_of(tmp_path) == everything(2)


def test_of_two_jobs_that_both_begin_a_table_one_loses_before_it_lands_anything(tmp_path):
    """Where no lock reaches: the second begins while the first has landed."""
    first, second = DeltaTable(tmp_path), DeltaTable(tmp_path)
    identities = [table.judge("t", "c", "", SETTINGS) for table in (first, second)]
    end = dict.fromkeys(PARTITIONS, ROWS)
    first.begin(identities[0], SCHEMA, PARTITIONS)
    first.commit(0, written(first, 0, {}, end), end)
    with pytest.raises(StorageError, match="another job has begun the table, or changed it, meanwhile"):
        second.begin(identities[1], SCHEMA, PARTITIONS)
    anew = DeltaTable(tmp_path)
    anew.begin(anew.judge("t", "c", "", TableSettings()), SCHEMA, PARTITIONS)
    first.commit(1, written(first, 1, end, dict.fromkeys(PARTITIONS, 2 * ROWS)), dict.fromkeys(PARTITIONS, 2 * ROWS))
    assert offsets_of(tmp_path) == everything(2)


def test_a_table_that_was_begun_though_the_answer_was_lost_is_taken_up_by_the_same_run(tmp_path, monkeypatch):
    create = deltalake.DeltaTable.create

    def create_and_lose(*given, **named):
        create(*given, **named)
        raise OSError("the store is away")

    table = DeltaTable(tmp_path)
    identity = table.judge("t", "c", "", SETTINGS)
    with monkeypatch.context() as patched:
        patched.setattr(deltalake.DeltaTable, "create", create_and_lose)
        with pytest.raises(StorageUnavailableError, match="the store is away"):
            table.begin(identity, SCHEMA, PARTITIONS)
    assert table.begin(identity, SCHEMA, PARTITIONS) == {}
    end = dict.fromkeys(PARTITIONS, ROWS)
    table.commit(0, written(table, 0, {}, end), end)
    assert offsets_of(tmp_path) == everything(1)


def test_a_job_whose_table_begins_anew_for_another_topic_of_its_name_stops(tmp_path):
    old, new = DeltaTable(tmp_path), DeltaTable(tmp_path)
    old.begin(old.judge("t", "c", "old", SETTINGS), SCHEMA, PARTITIONS)
    new.begin(new.judge("t", "c", "new", TableSettings(restart=True)), SCHEMA, PARTITIONS)
    end = dict.fromkeys(PARTITIONS, ROWS)
    with pytest.raises(StorageError, match="another job has landed into the table meanwhile"):
        old.commit(0, written(old, 0, {}, end), end)
    new.commit(0, written(new, 0, {}, end), end)
    assert offsets_of(tmp_path) == everything(1)


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        ({"offset": ["a"]}, "its column 'offset' is string, and would be long"),
        ({"other": [1]}, "somebody has taken columns from the table"),
    ],
)
def test_columns_that_somebody_changed_while_a_job_ran_are_not_written_over(tmp_path, theirs, said):
    table = DeltaTable(tmp_path)
    start, end = begun(table), dict.fromkeys(PARTITIONS, ROWS)
    files = written(table, 0, start, end)
    changed = pa.table({"date": pa.array([1], pa.date32()), **theirs})
    deltalake.write_deltalake(tmp_path, changed, mode="overwrite", schema_mode="overwrite", partition_by=["date"])
    with pytest.raises(StorageError, match=said):
        table.commit(0, files, end)
    assert deltalake.DeltaTable(tmp_path).count() == 1
    created(tmp_path, deltalake.DeltaTable(tmp_path), [])
    with pytest.raises(StorageError, match="is partitioned by nothing now, and was begun with date"):
        begun(DeltaTable(tmp_path))


def created(where: Path, like: deltalake.DeltaTable, partitions: list[str]) -> None:
    """A table of the columns and properties of another one."""
    deltalake.DeltaTable.create(
        where,
        like.schema(),
        mode="overwrite",
        partition_by=partitions,
        configuration=like.metadata().configuration,
        raise_if_key_not_exists=False,
    )


def test_a_table_that_has_lost_its_marks_or_may_lose_them_is_refused_and_not_landed_again(tmp_path):
    Job(tmp_path / "t", 2).run()
    whole = deltalake.DeltaTable(tmp_path / "t")
    clone = tmp_path / "clone"  # its rows and properties, and no transactions
    created(clone, whole, ["date"])
    deltalake.write_deltalake(clone, whole.to_pyarrow_table(), mode="append")
    with pytest.raises(StorageError, match="its log has lost the marks that say what is landed"):
        Job(clone, 3).run()
    expiring = {"delta.setTransactionRetentionDuration": "interval 7 days"}
    whole.alter.set_table_properties(expiring)
    with pytest.raises(
        StorageError, match=r"its property delta\.setTransactionRetentionDuration lets the marks expire"
    ):
        Job(tmp_path / "t", 3).run()
    assert offsets_of(tmp_path / "t") == offsets_of(clone) == everything(2)


def test_a_table_that_was_restored_keeps_its_marks_and_what_it_lost_does_not_come_again(tmp_path):
    Job(tmp_path, 3).run()
    table = deltalake.DeltaTable(tmp_path)
    table.restore(table.version() - 1)
    Job(tmp_path, 4).run()
    restored = everything(4) - Counter({place: 1 for place in everything(3) if place[1] >= 2 * ROWS})
    assert offsets_of(tmp_path) == restored


def test_landings_into_object_stores_that_share_a_directory_for_checkpoints_go_on_beside_each_other(
    tmp_path: Path,
) -> None:
    first, second = (DeltaTable(f"s3://lake/{name}", checkpoint=tmp_path) for name in "ab")
    with first.lock(), second.lock():
        assert first.state != second.state
    again = DeltaTable("s3://lake/a", checkpoint=tmp_path)
    with first.lock(), pytest.raises(StorageError, match="in use by process"), again.lock():
        pytest.fail("both hold the lock of one table")


def test_tables_that_share_a_directory_for_checkpoints_leave_those_of_others_there(tmp_path):
    shared = tmp_path / "checkpoints"
    tables = [DeltaTable(tmp_path / name, checkpoint=shared) for name in "ab"]
    begun(tables[0])
    others = [tables[0].checkpoint_location(), shared / "run-of-somebody-else"]
    for path in others:
        path.mkdir(parents=True)
    begun(tables[1])
    assert all(path.is_dir() for path in others)
    begun(tables[0])  # a killed run's own go
    assert not others[0].exists()


def test_a_directory_is_found_again_whatever_its_name_and_one_that_delta_rs_misreads_is_refused(tmp_path):
    out = tmp_path / "a b#ü?"
    Job(out, 1).run()
    assert all(path.is_file() for path in DeltaTable(out).files())
    with pytest.raises(StorageError, match="delta-rs reads the % in it as an escape"):
        DeltaTable(tmp_path / "a%20b").inspect()


def test_what_an_object_store_says_to_a_task_has_no_secrets():
    options = {"aws_secret_access_key": "hunter2", "aws_endpoint_url": "http://me:pass@minio:9000"}
    to = ObjectStoreDestination("s3://b/t", options)
    assert to.told(OSError("403 of http://me:pass@minio:9000 for hunter2\n   0: <unknown>")) == (
        "403 of http://...@minio:9000 for ..."
    )
    assert "hunter2" not in repr(to)


def test_a_secret_that_begins_with_another_is_left_out_whole():
    to = ObjectStoreDestination("s3://b/t", {"aws_access_key_id": "AKIA", "aws_secret_access_key": "AKIA7"})
    assert to.told(OSError("403 for AKIA with AKIA7")) == "403 for ... with ..."


def test_what_a_store_says_is_told_without_secrets_in_the_traceback_too(monkeypatch):
    options = {"aws_secret_access_key": "hunter2"}

    def refuse(*given, **named):
        raise OSError("403 for hunter2")

    monkeypatch.setattr(deltalake, "DeltaTable", refuse)
    with pytest.raises(StorageError) as of_driver:
        DeltaTable("s3://b/t", storage_options=options).identity()
    monkeypatch.setattr(ObjectStoreDestination, "create", refuse)
    rows = pa.record_batch({"partition": [0], "offset": [0]})
    writer = FileWriter(ObjectStoreDestination("s3://b/t", options), rows.schema, (), (), 1 << 20, None, ())
    with pytest.raises(StorageError) as of_task:
        list(writer.write(iter([rows])))
    for raised in (of_driver, of_task):
        assert "403 for ..." in str(raised.value)
        assert "hunter2" not in "".join(traceback.format_exception(raised.value))


def test_rows_of_somebody_else_stay_and_disturb_nothing(tmp_path):
    Job(tmp_path, 1).run()
    table = DeltaTable(tmp_path)
    start = begun(table)
    end = dict.fromkeys(PARTITIONS, 2 * ROWS)
    files = written(table, 0, start, end)
    theirs = pa.table({"partition": [9], "offset": [9], "value": [b""], "date": [0]}, SCHEMA)
    deltalake.write_deltalake(tmp_path, theirs, mode="append")  # between our looking and our commit
    table.commit(0, files, end)
    assert offsets_of(tmp_path) == everything(2) + Counter([(9, 9)])
    deltalake.DeltaTable(tmp_path).delete("partition = 1")
    deltalake.DeltaTable(tmp_path).optimize.compact()
    Job(tmp_path, 3).run()  # what was deleted on purpose does not come again
    assert sum(offsets_of(tmp_path).values()) == 2 * ROWS + 1 + 2 * ROWS


def test_a_log_whose_checkpoint_is_missing_is_named_and_goes_on_when_it_can_be_read(tmp_path):
    Job(tmp_path, 5).run()
    deltalake.DeltaTable(tmp_path).create_checkpoint()
    Job(tmp_path, 6).run()
    log = tmp_path / "_delta_log"
    (checkpoint,) = log.glob("*.checkpoint.parquet")
    content = checkpoint.read_bytes()
    checkpoint.unlink()
    with pytest.raises(StorageError, match=r"_last_checkpoint hint but didn't find any checkpoints"):
        Job(tmp_path, 7).run()
    (log / "_last_checkpoint").unlink()  # the commits are all there, and are enough
    Job(tmp_path, 7).run()
    assert offsets_of(tmp_path) == everything(7)
    for commit in range(5):  # as log clean-up leaves it
        (log / f"{commit:020d}.json").unlink()
    with pytest.raises(StorageError, match=str(tmp_path)):
        Job(tmp_path, 8).run()
    checkpoint.write_bytes(content)
    Job(tmp_path, 8).run()
    assert offsets_of(tmp_path) == everything(8)


def test_values_of_partitions_are_those_of_a_file_and_not_of_others_of_its_name(tmp_path):
    table = DeltaTable(tmp_path)
    begun(table)
    days = {f"1970-01-0{day}": f"date=1970-01-0{day}/rows.parquet" for day in (1, 2)}
    files = [DataFile(path, 1, 1, {"date": day}, "{}") for day, path in days.items()]
    table.commit(0, Written(files, {0: Landed(2, 0, 1)}), {0: 2})
    assert table.partition_values() == {tmp_path / path: {"date": day} for day, path in days.items()}
    assert table.files() == [tmp_path / path for path in days.values()]


def test_files_that_another_engine_wrote_are_found_whatever_the_values_of_their_partitions(tmp_path):
    out = tmp_path / "a b#ü"
    tenants = ["a b", "ü%20", "x/y", "a:b", "+", "%41", "", None]
    for _ in range(2):
        rows = pa.table({"n": pa.array(range(len(tenants))), "tenant": pa.array(tenants, pa.string())})
        deltalake.write_deltalake(out, rows, mode="append", partition_by=["tenant"])
    deltalake.DeltaTable(out).optimize.compact()
    table = DeltaTable(out)
    files = table.files()
    assert all(path.is_file() for path in files)
    values = table.partition_values()
    assert set(values) == set(files)
    assert {told["tenant"] for told in values.values()} == set(tenants) - {""}


def test_what_is_expired_of_the_log_is_looked_for_now_and_then_and_not_by_each_commit(tmp_path, monkeypatch):
    asked, real = [], deltalake.DeltaTable.create_write_transaction

    def commit(self, *given, **named):
        asked.append(named["post_commithook_properties"].cleanup_expired_logs)
        return real(self, *given, **named)

    monkeypatch.setattr(deltalake.DeltaTable, "create_write_transaction", commit)
    monkeypatch.setattr(delta_table, "_TIDIED", 3)
    table = DeltaTable(tmp_path)
    begun(table)
    for number in range(7):
        table.commit(number, Written(), {0: number})
    assert asked == [False, False, None, False, False, None, False]  # None is as the table's properties have it


def test_what_half_a_commit_leaves_is_no_part_of_the_table(tmp_path):
    Job(tmp_path, 1).run()
    (tmp_path / "_delta_log/_commit_4f9e.json.tmp").write_text('{"add": {"path"')
    (tmp_path / "part-00000-left-by-a-kill.parquet").write_bytes(b"half a file")
    Job(tmp_path, 2).run()
    assert offsets_of(tmp_path) == everything(2)


FULL = """
import importlib, resource, signal, sys
from pathlib import Path
module, out, *rooms = sys.argv[1:]
job = importlib.import_module(module).Job
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
for room in rooms:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(room), resource.RLIM_INFINITY))
    try:
        job(Path(out), 2).run()
    except Exception as error:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print(type(error).__name__, error, sep=": ")
"""


def said_with_little_room(module: str, out: Path, *rooms: int) -> list[str]:
    """How a job of a test module fails where files may have so many bytes: in a process that has its own limits."""
    command = [sys.executable, "-c", FULL, module, str(out), *map(str, rooms)]
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    said = ended.stdout.splitlines()
    assert len(said) == len(rooms), said
    return said


def test_a_disk_that_takes_no_more_is_named_and_what_was_begun_goes_on_later(tmp_path):
    Job(tmp_path, 1).run()
    # No room for rows, and none for a commit.
    for said in said_with_little_room(Job.__module__, tmp_path, 200, 1700):
        assert said.startswith("StorageUnavailableError: ")
        assert "File too large" in said
        assert offsets_of(tmp_path) == everything(1)
    Job(tmp_path, 2).run()
    assert offsets_of(tmp_path) == everything(2)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("u", "c", "", SETTINGS), "holds topic 't', not 'u'"),
        (("t", "d", "", SETTINGS), "of cluster c, not of d"),
        (("t", "c", "", TableSettings(headers=["a"])), r"was begun with headers \(none\), not a"),
        (("t", "c", "", TableSettings(partition_by="month")), "was begun with partition_by=date, not month"),
    ],
)
def test_a_table_that_was_begun_with_something_else_is_refused(tmp_path, asked, said):
    Job(tmp_path, 1).run()
    with pytest.raises(StorageError, match=said):
        DeltaTable(tmp_path).judge(*asked)


def test_a_place_that_is_not_ours_is_refused(tmp_path):
    deltalake.write_deltalake(tmp_path / "theirs", pa.table({"a": [1]}))
    with pytest.raises(StorageError, match="a Delta table that `land` has not begun"):
        DeltaTable(tmp_path / "theirs").inspect()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/thesis.doc").write_text("mine")
    with pytest.raises(StorageError, match="holds other files"):
        DeltaTable(tmp_path / "other").inspect()
    parquet = ParquetTable(tmp_path / "parquet")
    with parquet.lock():
        parquet.claim(parquet.judge("t", "c", "", SETTINGS))
    with pytest.raises(StorageError, match="plain Parquet files"):
        DeltaTable(tmp_path / "parquet").inspect()
    Job(tmp_path / "delta", 1).run()
    with pytest.raises(StorageError, match="holds a Delta table"):
        ParquetTable(tmp_path / "delta").inspect()


@pytest.mark.parametrize(
    ("field", "said"),
    [
        (pa.field("a b", pa.int32()), "column 'a b': Delta allows no ' '"),
        (pa.field("v", pa.struct([("x;", pa.int32())])), "column 'v.x;'"),
        (pa.field("v", pa.list_(pa.duration("us"))), "column 'v.element': Delta has no type for duration"),
        (pa.field("v", pa.null()), "Delta has no type for null"),
        (pa.field("v", pa.list_(pa.struct([]))), "column 'v.element': is a struct without fields"),
        (pa.field("v", pa.struct([("a", pa.int32()), ("A", pa.int32())])), "columns 'v.a' and 'v.A'"),
        (pa.field("Offset", pa.int64()), "columns 'offset' and 'Offset'"),
    ],
)
def test_what_delta_lacks_is_refused_before_anything_is_written(tmp_path, field, said):
    with pytest.raises(ConfigError, match=said):
        begun(DeltaTable(tmp_path / "t"), SCHEMA.append(field))
    assert not (tmp_path / "t/_delta_log").exists()


def statistics_of(folder: Path, column: pa.Array, *, groups: bool = False) -> dict:
    """The statistics of a file that has this column and the table's own."""
    count = len(column)
    columns = {"partition": pa.array([0] * count, pa.int32()), "offset": pa.array(range(count)), "c": column}
    table = pa.table(columns)
    size = max(1, table.nbytes // 2) if groups else 1 << 30
    writer = FileWriter(LocalDestination(folder, statistics=True), table.schema, (), (), size, None, ())
    found = collected(row for told in writer.write(iter(table.to_batches())) for row in told.to_pylist())
    return json.loads(found.files[0].statistics, parse_float=Decimal)


LONG = "é" * 40
TIMES = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("column", "bounds"),
    [
        (pa.array([3, None, -1], pa.int8()), (-1, 3)),
        (pa.array(["b", None, "aé"]), ("aé", "b")),
        (pa.array([LONG]), ("é" * 32, "é" * 32 + "\U0010ffff")),
        (pa.array(["é" * 32 + "\U0010ffff" * 9]), None),
        (pa.array([Decimal("-1.50"), Decimal("12345678901234567890.25")], pa.decimal128(38, 2)),
         (Decimal("-1.50"), Decimal("12345678901234567890.25"))),
        (pa.array([1.5, -2.0]), (Decimal("-2.0"), Decimal("1.5"))),
        (pa.array([1.5, float("nan")]), None),
        (pa.array([0.0]), (Decimal("-0.0"), Decimal("0.0"))),
        (pa.array([1.5, float("inf")]), None),
        (pa.array([True, False]), None),
        (pa.array([b"a"]), None),
        (pa.array([-1, 15888], pa.date32()), ("1969-12-31", "2013-07-02")),
        (pa.array([-(2**31), 0], pa.date32()), None),
        (pa.array([-1, 1001], TIMES), ("1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00.002Z")),
        (pa.array([0, 1001], pa.timestamp("us")), ("1970-01-01T00:00:00.000", "1970-01-01T00:00:00.002")),
        (pa.array([0, 2**62], TIMES), None),
        (pa.array([None, None], pa.string()), None),
    ],
)  # fmt: skip
def test_the_bounds_of_a_column_hold_for_every_value(tmp_path, column, bounds):
    found = statistics_of(tmp_path, column)
    assert found["numRecords"] == len(column)
    assert found["nullCount"] == {"partition": 0, "offset": 0, "c": column.null_count}
    assert (found["minValues"].get("c"), found["maxValues"].get("c")) == (bounds or (None, None))
    assert (found["minValues"]["offset"], found["maxValues"]["offset"]) == (0, len(column) - 1)


def test_fields_of_structs_have_statistics_and_lists_and_maps_have_none(tmp_path):
    plain = [("a.b", pa.string()), ("n", pa.int32())]
    kind = pa.struct([*plain, ("l", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.int32()))])
    column = pa.array([{"a.b": "x", "l": [1], "m": [("k", 1)], "n": 7}, None], kind)
    found = statistics_of(tmp_path, column)
    assert (found["minValues"]["c"], found["maxValues"]["c"]) == ({"a.b": "x", "n": 7},) * 2
    assert found["nullCount"]["c"] == {"a.b": 1, "n": 1}


def test_readers_that_skip_files_by_statistics_find_every_row(tmp_path):
    Job(tmp_path, 4).run()
    found = deltalake.DeltaTable(tmp_path).to_pyarrow_dataset()
    import pyarrow.compute as pc

    for offset in range(4 * ROWS):
        assert found.count_rows(filter=pc.field("offset") == offset) == len(PARTITIONS)


def test_upkeep_makes_few_files_and_removes_what_is_no_part_of_the_table_and_nothing_else(tmp_path):
    out = tmp_path / "t"
    Job(out, 3).run()
    kept = [out / name for name in ("_report.html", "_broker/log", "_checkpoint/x", "_tagwire/spark.log")]
    orphans = [out / "part-00000-orphan.parquet", out / "date=1970-01-01/part-00000-orphan.parquet"]
    for path in [*kept, *orphans]:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    table, before = DeltaTable(out), len(DeltaTable(out).files())
    table.keep_up(Upkeep(vacuum=True))
    assert all(path.exists() for path in [*kept, *orphans])  # they may be of a run that goes on
    for path in orphans:
        os.utime(path, (0, 0))
    table.keep_up(Upkeep(optimize=True, vacuum=True))
    assert [path.exists() for path in orphans] == [False, False]
    assert all(path.exists() for path in kept)
    assert len(DeltaTable(out).files()) == DAYS < before
    Job(out, 4).run()
    assert offsets_of(out) == everything(4)


def test_a_table_gets_columns_where_it_may_evolve_and_keeps_its_types(tmp_path):
    value = pa.field("value", pa.struct([("a", pa.int32())]))
    schema = SCHEMA.set(2, value)
    begun(DeltaTable(tmp_path), schema)
    wider = schema.set(2, pa.field("value", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])))
    wider = wider.append(pa.field("origin", pa.string()))
    with pytest.raises(StorageError, match="in column 'value', 'origin'; with option evolve it gets that"):
        begun(DeltaTable(tmp_path), wider)
    for changed, said in [
        (pa.struct([("a", pa.int64())]), "'value.a' is integer, and would be long: a column keeps its type"),
        (pa.struct([("b", pa.int32())]), "'value' has a field 'a', which values would lack"),
        (pa.string(), "'value' is struct, and would be string"),
    ]:
        with pytest.raises(StorageError, match=said):
            evolved(tmp_path, schema.set(2, pa.field("value", changed)))
    evolved(tmp_path, wider)
    found = pa.schema(deltalake.DeltaTable(tmp_path).schema().to_arrow())
    assert found.field("value").type.get_field_index("b") == 1
    assert found.field("origin").type == pa.string()
    evolved(tmp_path, wider.remove(4))  # rows without the column have null there


def evolved(out: Path, schema: pa.Schema) -> None:
    table = DeltaTable(out)
    table.begin(table.judge("t", "c", "", TableSettings(evolve=True)), schema, PARTITIONS)


def test_a_topic_that_was_made_anew_is_refused_until_it_is_to_begin_again(tmp_path):
    table = DeltaTable(tmp_path)
    table.claim(identity := table.judge("t", "c", "old", SETTINGS))
    assert table.begin(identity, SCHEMA, PARTITIONS) == {}
    end = dict.fromkeys(PARTITIONS, ROWS)
    table.commit(0, written(table, 0, {}, end), end)
    with pytest.raises(StorageError, match="deleted and created again"):
        DeltaTable(tmp_path).judge("t", "c", "new", SETTINGS)
    again = DeltaTable(tmp_path)
    anew = again.judge("t", "c", "new", TableSettings(restart=True))
    assert again.begin(anew, SCHEMA, PARTITIONS) == {}
    again.commit(0, written(again, 0, {}, end), end)
    # Said once more, it lands nothing once more.
    third = DeltaTable(tmp_path)
    assert third.begin(third.judge("t", "c", "new", TableSettings(restart=True)), SCHEMA, PARTITIONS) == end
    assert offsets_of(tmp_path) == everything(1) + everything(1)


def test_a_table_with_rows_that_a_deletion_vector_takes_away_is_known(tmp_path):
    Job(tmp_path, 1).run()
    assert not DeltaTable(tmp_path).has_deletes()
    logged = map(json.loads, (tmp_path / "_delta_log" / f"{1:020}.json").read_text().splitlines())
    add = next(action["add"] for action in logged if "add" in action)
    vector = {
        "storageType": "i",
        "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000005c8Xg00000",
        "sizeInBytes": 34,
        "cardinality": 1,
    }
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors", "appendOnly"]}
    actions = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        {"remove": {"path": add["path"], "partitionValues": add["partitionValues"], "dataChange": True}},
        {"add": {**add, "deletionVector": vector}},
    ]
    (tmp_path / "_delta_log" / f"{2:020}.json").write_text("\n".join(map(json.dumps, actions)))
    assert DeltaTable(tmp_path).has_deletes()
    spark = object()  # which is not asked
    with pytest.raises(StorageError, match="has rows deleted that its files still hold"):
        landed_rows(spark, tmp_path)


def test_rows_are_put_into_no_table_whose_constraints_nobody_has_held_them_against(tmp_path):
    table, end = DeltaTable(tmp_path), dict.fromkeys(PARTITIONS, ROWS)
    begun(table)
    files = written(table, 0, {}, end)
    deltalake.DeltaTable(tmp_path).alter.add_constraint({"small": "offset < 3"})
    with pytest.raises(StorageError, match=r"its property delta\.constraints\.small is a constraint"):
        table.commit(0, files, end)
    with pytest.raises(StorageError, match=r"its property delta\.constraints\.small is a constraint"):
        begun(DeltaTable(tmp_path))
    assert not offsets_of(tmp_path)
    deltalake.DeltaTable(tmp_path).alter.drop_constraint("small")
    Job(tmp_path, 1).run()
    assert offsets_of(tmp_path) == everything(1)


@pytest.mark.parametrize(
    ("nullable", "metadata", "mapping", "said"),
    [
        (False, {}, None, "its column 'value' takes no null, which is not looked at here"),
        (True, {"delta.invariants": '{"expression":{"expression":"true"}}'}, None, "'value' has an invariant"),
        (True, {"delta.generationExpression": "x'00'"}, None, "'value' is generated"),
        (True, {"delta.columnMapping.physicalName": "col-1", "delta.columnMapping.id": 3}, "name", "called 'col-1' in"),
        (True, {"delta.columnMapping.physicalName": "value", "delta.columnMapping.id": 3}, "id", "columns by ids"),
    ],
)
def test_rows_are_put_into_no_table_whose_columns_have_rules_or_other_names_in_its_files(
    tmp_path, nullable, metadata, mapping, said
):
    table, end = DeltaTable(tmp_path), dict.fromkeys(PARTITIONS, ROWS)
    begun(table)
    files = written(table, 0, {}, end)
    altered(tmp_path, nullable, metadata, mapping)
    with pytest.raises(StorageError, match=said):
        table.commit(0, files, end)
    with pytest.raises(StorageError, match=said):
        begun(DeltaTable(tmp_path))
    assert deltalake.DeltaTable(tmp_path).count() == 0


def test_rows_are_put_into_a_table_whose_columns_are_mapped_to_their_own_names(tmp_path):
    begun(DeltaTable(tmp_path))
    altered(tmp_path, True, {"delta.columnMapping.physicalName": "value", "delta.columnMapping.id": 3}, "name")
    Job(tmp_path, 1).run()
    assert deltalake.DeltaTable(tmp_path).count() == 2 * ROWS


def altered(out: Path, nullable: bool, metadata: dict[str, object], mapping: str | None) -> None:
    """Commits another definition of the column `value`, as another engine does."""
    log = out / "_delta_log"
    actions = [json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines()]
    defined = next(action["metaData"] for action in actions if "metaData" in action)
    schema = json.loads(defined["schemaString"])
    for number, field in enumerate(schema["fields"], 1):
        own = {"delta.columnMapping.physicalName": field["name"], "delta.columnMapping.id": number} if mapping else {}
        mine = field["name"] == "value"
        field |= {"metadata": metadata if mine else own, "nullable": nullable or not mine}
    defined["schemaString"] = json.dumps(schema)
    if mapping:
        defined["configuration"] |= {"delta.columnMapping.mode": mapping, "delta.columnMapping.maxColumnId": "9"}
    protocol = {"minReaderVersion": 2, "minWriterVersion": 5}
    (log / f"{1:020}.json").write_text("\n".join(map(json.dumps, [{"protocol": protocol}, {"metaData": defined}])))
