"""The table on disk: each batch once wherever the process stops, and nothing that is not ours is touched."""

from __future__ import annotations

import errno
import json
import shutil
from collections import Counter
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwire.errors import StorageError
from tagwire.spark.jobs.land_run import LandRun, _landed_ends
from tagwire.spark.jobs.landed import LandListener, Progress
from tagwire.spark.tables import local_files, parquet_table
from tagwire.spark.tables.parquet_table import ParquetTable
from tagwire.spark.tables.table_settings import BatchSettings, TableSettings

DATES = ("2013-01-01", "2013-01-02", "2013-12-31")
ROWS = 4
STEPS_BEFORE_MOVING = 4 + len(DATES)
"""Of a job's first micro-batch: a file of each date is written."""


class Killed(BaseException):
    """The process stops here."""


class Job:
    """A landing job and Spark's checkpoint, as far as the table sees them: batches are planned, written, committed."""

    def __init__(self, out: Path, until: int) -> None:
        self.out = out
        self.until = until

    def run(self, kill_after: int | None = None) -> None:
        """Land every batch not committed; stop dead after so many steps."""
        self.steps = 0
        self.kill_after = kill_after
        table = ParquetTable(self.out)
        table.inspect()
        self.step()
        with table.lock():
            table.claim(table.judge("t", "c", "", TableSettings(headers=("h",), partition_by="date")))
            self.step()
            for batch in range(self.newest(table, "commits") + 1, self.until):
                self.log(table, "offsets", batch)
                self.step()
                if table.holds(batch):
                    table.clear(batch + 1)
                else:
                    self.write(table, batch)
                self.log(table, "commits", batch)
                self.step()

    def write(self, table: ParquetTable, batch: int) -> None:
        table.clear(batch)
        self.step()
        staged = table.stage(batch)
        for number, date in enumerate(DATES):
            write_rows(staged / f"date={date}" / f"part-{number}.parquet", number, batch * ROWS, ROWS)
            self.step()
        table.publish(batch, staged, names_of(staged), moved=lambda path: self.step())
        self.step()

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.kill_after:
            raise Killed

    def log(self, table: ParquetTable, kind: str, batch: int) -> None:
        (table.checkpoint / kind).mkdir(exist_ok=True)
        (table.checkpoint / kind / str(batch)).write_text("v1\n")

    def newest(self, table: ParquetTable, kind: str) -> int:
        return max((int(path.name) for path in (table.checkpoint / kind).glob("*")), default=-1)


def write_rows(path: Path, partition: int, start: int, count: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    offsets = pa.array(range(start, start + count), pa.int64())
    pq.write_table(pa.table({"partition": pa.array([partition] * count, pa.int32()), "offset": offsets}), path)


def rows_of(out: Path) -> Counter[tuple[int, int]]:
    if not ParquetTable(out).files():
        return Counter()
    found = ds.dataset(out, format="parquet", partitioning="hive").to_table(columns=["partition", "offset"])
    return Counter(zip(found["partition"].to_pylist(), found["offset"].to_pylist()))


def all_rows(batches: int) -> Counter[tuple[int, int]]:
    return Counter((partition, offset) for partition in range(len(DATES)) for offset in range(batches * ROWS))


@pytest.mark.long
@settings(max_examples=60)
@given(kills=st.lists(st.integers(1, 30), max_size=4))
def test_wherever_a_job_is_killed_and_run_again_every_row_is_there_once(tmp_path_factory, kills):
    out = tmp_path_factory.mktemp("out") / "t"
    job = Job(out, until=3)
    for kill_after in kills:
        try:
            job.run(kill_after)
        except Killed:
            assert set(rows_of(out).values()) <= {1}
    job.run()
    assert rows_of(out) == all_rows(3)
    before = {path: path.stat().st_mtime_ns for path in ParquetTable(out).files()}
    job.run()
    assert {path: path.stat().st_mtime_ns for path in ParquetTable(out).files()} == before


def test_the_table_holds_parquet_files_in_date_directories_and_nothing_else(tmp_path):
    Job(tmp_path / "t", until=2).run()
    found = sorted(str(path.relative_to(tmp_path / "t")) for path in (tmp_path / "t").glob("[!_]*/*"))
    assert found == sorted(
        f"date={date}/batch-{batch:08d}-{number:04d}.parquet" for batch in range(2) for number, date in enumerate(DATES)
    )
    others = {path.name for path in (tmp_path / "t").iterdir()} - {f"date={date}" for date in DATES}
    assert others == {"_tagwire", "_checkpoint", "_staging"}


def test_a_batch_written_again_after_a_crash_replaces_later_batches_too(tmp_path):
    job = Job(tmp_path / "t", until=3)
    job.run()
    (tmp_path / "t/_checkpoint/commits/1").unlink()
    (tmp_path / "t/_checkpoint/commits/2").unlink()
    job.run()
    assert rows_of(tmp_path / "t") == all_rows(3)


def test_a_directory_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "thesis.doc").write_text("mine")
    with pytest.raises(StorageError, match="holds other files"):
        ParquetTable(tmp_path).inspect()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.doc"]


def test_a_file_in_the_place_of_the_directory_is_named(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(StorageError, match="out: not a directory"):
        ParquetTable(tmp_path / "out").inspect()


def test_a_table_somewhere_else_than_on_this_machine_is_refused():
    with pytest.raises(StorageError, match="s3://bucket/t: "):
        ParquetTable("s3://bucket/t")


def test_a_checkpoint_of_another_program_is_left_alone(tmp_path):
    (tmp_path / "cp/offsets").mkdir(parents=True)
    with pytest.raises(StorageError, match="no checkpoint of ours"):
        ParquetTable(tmp_path / "t", tmp_path / "cp").inspect()


def test_a_checkpoint_whose_mark_was_cut_short_is_taken_up_again(tmp_path, monkeypatch):
    def full(path):
        if path.name.startswith("_tagwire.json"):
            raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as disk:
        disk.setattr(local_files, "sync", full)
        with pytest.raises(StorageError, match="No space left"):
            landed(tmp_path / "t")
    ParquetTable(tmp_path / "t").inspect()
    Job(tmp_path / "t", until=1).run()
    assert rows_of(tmp_path / "t") == all_rows(1)


def test_two_jobs_cannot_write_one_table(tmp_path):
    first, second = ParquetTable(tmp_path / "t"), ParquetTable(tmp_path / "t")
    with first.lock(), pytest.raises(StorageError, match=r"in use by process \d+"), second.lock():
        pytest.fail("both hold the lock")
    with second.lock():
        (tmp_path / "t/_tagwire/lock").unlink()
        with pytest.raises(StorageError, match="in use by process"), first.lock():
            pytest.fail("both hold the lock, whose file was deleted")
    with first.lock():
        pass


def names_of(staged: Path) -> list[str]:
    """The files that the tasks of a batch have told of."""
    return [str(path.relative_to(staged)) for path in sorted(staged.rglob("*.parquet"))]


def landed(out: Path, checkpoint: Path | None = None, headers: tuple[str, ...] = ("h",)) -> ParquetTable:
    """A table with one batch in it."""
    table = ParquetTable(out, checkpoint)
    with table.lock():
        table.claim(table.judge("t", "c", "", TableSettings(headers=headers, partition_by="date")))
    job = Job(out, until=1)
    job.log(table, "offsets", 0)
    staged = table.stage(0)
    write_rows(staged / "date=2013-01-01" / "a.parquet", 0, 0, ROWS)
    table.publish(0, staged, names_of(staged))
    job.log(table, "commits", 0)
    return table


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("u", "c", "", TableSettings()), "holds topic 't', not 'u'"),
        (("t", "d", "", TableSettings()), "of cluster c, not of d"),
        (("t", "c", "", TableSettings(headers=("h", "i"))), "was begun with headers h, not h,i"),
        (("t", "c", "", TableSettings(headers=())), r"was begun with headers h, not \(none\)"),
        (("t", "c", "", TableSettings(text=True)), "key and value as bytes"),
        (("t", "c", "", TableSettings(partition_by="month")), "was begun with partition_by=date, not month"),
    ],
)
def test_a_table_stays_what_it_was_begun_as(tmp_path, asked, said):
    table = landed(tmp_path / "t")
    with pytest.raises(StorageError, match=said):
        table.judge(*asked)


@pytest.mark.parametrize(
    "asked", [("t", "c", "", TableSettings()), ("t", "", "", TableSettings(headers=("h",), text=False))]
)
def test_a_table_is_taken_up_again_by_what_it_was_begun_with(tmp_path, asked):
    table = landed(tmp_path / "t")
    assert table.judge(*asked) == table.identity()


def test_a_topic_that_was_deleted_and_created_again_is_another_topic(tmp_path):
    table = landed(tmp_path / "t")
    first, other = str(UUID(int=1)), str(UUID(int=2))
    with table.lock():
        table.claim(table.judge("t", "c", first, TableSettings()))  # one that was begun with brokers that tell no ids
    assert judged(table)
    with pytest.raises(StorageError, match=rf"deleted and created again since \(its id was {first}, and is {other}\)"):
        table.judge("t", "c", other, TableSettings())


def test_a_checkpoint_of_another_table_is_refused(tmp_path):
    landed(tmp_path / "a", tmp_path / "cp")
    with pytest.raises(StorageError, match="is the checkpoint of another table"):
        ParquetTable(tmp_path / "b", tmp_path / "cp").judge("t", "c", "", TableSettings(headers=()))
    assert not (tmp_path / "b").exists()


def test_a_table_without_its_checkpoint_is_refused(tmp_path):
    landed(tmp_path / "t", tmp_path / "cp")
    with pytest.raises(StorageError, match=r"its checkpoint is not in .*_checkpoint"):
        ParquetTable(tmp_path / "t").judge("t", "c", "", TableSettings())


def test_a_checkpoint_older_than_the_table_is_refused(tmp_path):
    table = landed(tmp_path / "t")
    (table.checkpoint / "offsets/0").unlink()
    with pytest.raises(StorageError, match=r"older than the table \(batch -1 against 0\)"):
        table.judge("t", "c", "", TableSettings())


def test_a_checkpoint_whose_table_is_gone_is_refused(tmp_path):
    table = landed(tmp_path / "t", tmp_path / "cp")
    shutil.rmtree(table.out)
    with pytest.raises(StorageError, match="cp: is the checkpoint of another table"):
        table.judge("t", "c", "", TableSettings())


def test_a_table_in_a_folder_of_its_directory_is_not_begun_anew_beside_it(tmp_path):
    (tmp_path / "t/table").mkdir(parents=True)
    (tmp_path / "t/_tagwire").mkdir()
    (tmp_path / "t/_tagwire/table.json").write_text('{"format": 1, "id": "x", "topic": "t"}')
    with pytest.raises(StorageError, match=r"older tagwire, which kept the table in .*t/table; land into another"):
        ParquetTable(tmp_path / "t").inspect()


def remove(files: list[Path]) -> None:
    for path in files:
        path.unlink()


def judged(table: ParquetTable) -> bool:
    return table.judge("t", "c", "", TableSettings()) == table.identity()


def test_a_table_whose_files_are_gone_while_its_checkpoint_stays_is_refused(tmp_path):
    Job(tmp_path / "t", until=3).run()
    table = ParquetTable(tmp_path / "t")
    remove(table.files())
    with pytest.raises(StorageError, match=r"its files are gone, but the checkpoint .*_checkpoint goes on behind them"):
        table.judge("t", "c", "", TableSettings())
    with pytest.raises(StorageError) as refused:
        table.judge("t", "c", "", TableSettings())
    assert "\n" not in str(refused.value)
    (table.state / "landed.json").unlink()  # as the error says, of files that were removed on purpose
    assert judged(table)


@pytest.mark.parametrize("kill_after", range(1, 8))
def test_files_that_are_gone_are_missed_while_a_later_batch_is_under_way(tmp_path, kill_after):
    Job(tmp_path / "t", until=2).run()
    job = Job(tmp_path / "t", until=3)
    with pytest.raises(Killed):
        job.run(kill_after + 2)
    table = ParquetTable(tmp_path / "t")
    assert judged(table)
    remove(table.files())
    with pytest.raises(StorageError, match="are gone"):
        table.judge("t", "c", "", TableSettings())


def test_a_table_that_is_older_than_its_checkpoint_is_refused(tmp_path):
    Job(tmp_path / "t", until=3).run()
    table = ParquetTable(tmp_path / "t")
    remove([path for path in table.files() if "batch-00000002" in path.name])
    with pytest.raises(StorageError, match=r"the files of batch 2 are gone from .*date=2013-01-01, but the checkpoint"):
        table.judge("t", "c", "", TableSettings())


def test_batches_without_rows_leave_nothing_that_could_be_missed(tmp_path):
    table = ParquetTable(tmp_path / "t")
    job = Job(tmp_path / "t", until=0)
    with table.lock():
        table.claim(table.judge("t", "c", "", TableSettings(headers=("h",))))
    for batch in range(3):
        job.log(table, "offsets", batch)
        table.publish(batch, table.stage(batch), [])
        job.log(table, "commits", batch)
        assert judged(table)
    assert not (table.state / "landed.json").exists()


def test_a_batch_that_was_moved_whole_stays_though_spark_runs_it_again(tmp_path):
    """Its rows may not come again: the topic forgets."""
    out = tmp_path / "t"
    job = Job(out, until=3)
    job.run()
    table = ParquetTable(out)
    assert [table.holds(batch) for batch in range(4)] == [False, True, True, False]  # two are noted
    (table.checkpoint / "commits" / "2").unlink()
    for batch in (2, 1):
        run = LandRun(table, table.identity(), BatchSettings(), LandListener(), None, Progress(), None, {})
        run.write(None, batch)
        assert run.progress.rows == 0
        assert rows_of(out) == all_rows(batch + 1)
    assert _landed_ends(table, "t") == {}  # what is planned here has no offsets
    (table.checkpoint / "offsets" / "1").write_text('v1\n{}\n{"t":{"0":8}}')
    (table.checkpoint / "commits" / "1").unlink()
    assert _landed_ends(table, "t") == {0: 8}


@pytest.mark.parametrize("moved", range(1, len(DATES) + 1))
def test_a_batch_of_which_files_were_moved_is_moved_whole_though_spark_runs_it_again(tmp_path, moved):
    """Its rows may not come again: the topic forgets."""
    out = tmp_path / "t"
    with pytest.raises(Killed):
        Job(out, until=1).run(kill_after=STEPS_BEFORE_MOVING + moved)
    assert rows_of(out).total() == moved * ROWS
    table = ParquetTable(out)
    assert judged(table)
    with table.lock():
        assert table.holds(0)
    assert rows_of(out) == all_rows(1)
    assert {path.name for path in table.state.iterdir()} == {"table.json", "landed.json", "lock"}
    assert table.holds(0)
    Job(out, until=2).run()
    assert rows_of(out) == all_rows(2)
    assert not list((out / "_staging").glob("*/*"))


def test_what_was_being_moved_by_another_plan_or_has_gone_since_is_not_moved(tmp_path):
    for lose in (
        lambda table: (table.checkpoint / "offsets/0").write_text("v1\nanother"),
        lambda table: (table.checkpoint / "offsets/0").unlink(),
        lambda table: shutil.rmtree(table.out / "_staging"),
    ):
        out = tmp_path / "t"
        shutil.rmtree(out, ignore_errors=True)
        with pytest.raises(Killed):
            Job(out, until=1).run(kill_after=STEPS_BEFORE_MOVING + 2)
        table = ParquetTable(out)
        lose(table)
        assert not table.holds(0)
        assert rows_of(out).total() == 2 * ROWS
        table.clear(0)
        Job(out, until=1).run()
        assert rows_of(out) == all_rows(1)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"batch": 0, "plan": "", "files": []}'])
def test_a_damaged_note_of_what_is_being_moved_is_named(tmp_path, text):
    table = landed(tmp_path / "t")
    (table.state / "landed.json").unlink()
    (table.state / "moving.json").write_text(text)
    with pytest.raises(StorageError, match=r"moving\.json"):
        table.holds(0)


def test_a_batch_of_which_something_may_be_missing_is_not_held(tmp_path):
    out = tmp_path / "t"
    for lost in (lambda table: shutil.rmtree(out / f"date={DATES[0]}"), lambda table: table.clear(2)):
        shutil.rmtree(out, ignore_errors=True)
        Job(out, until=3).run()
        table = ParquetTable(out)
        lost(table)
        assert not table.holds(2)
    for kill_after in range(1, 12):  # a batch is cleared, and written again, but for the last of its files
        shutil.rmtree(out, ignore_errors=True)
        Job(out, until=1).run()
        (table.checkpoint / "commits" / "0").unlink()
        (table.state / "landed.json").unlink()
        with pytest.raises(Killed):
            Job(out, until=1).run(kill_after)
        assert not table.holds(0) or rows_of(out) == all_rows(1)


def test_days_that_somebody_removed_are_not_missed(tmp_path):
    Job(tmp_path / "t", until=3).run()
    for date in DATES[:-1]:
        shutil.rmtree(tmp_path / "t" / f"date={date}")
        assert judged(ParquetTable(tmp_path / "t"))


def test_files_for_which_one_of_somebody_else_stands_are_not_missed(tmp_path):
    table = ParquetTable(tmp_path / "t")
    with table.lock():
        table.claim(table.judge("t", "c", "", TableSettings(headers=())))
    job = Job(tmp_path / "t", until=1)
    job.log(table, "offsets", 0)
    staged = table.stage(0)
    write_rows(staged / "part-0.parquet", 0, 0, ROWS)
    table.publish(0, staged, names_of(staged))
    job.log(table, "commits", 0)
    write_rows(table.out / "compacted.parquet", 0, 0, ROWS)
    remove([table.out / "batch-00000000-0000.parquet"])
    assert judged(table)
    (table.checkpoint / "offsets/0").unlink()
    with pytest.raises(StorageError, match=r"older than the table \(batch -1 against 0\)"):
        table.judge("t", "c", "", TableSettings())


def test_a_table_emptied_with_its_checkpoint_lands_from_the_start(tmp_path):
    Job(tmp_path / "t", until=3).run()
    table = ParquetTable(tmp_path / "t")
    remove(table.files())
    shutil.rmtree(table.checkpoint)
    Job(tmp_path / "t", until=2).run()
    assert rows_of(tmp_path / "t") == all_rows(2)
    remove(table.files())
    with pytest.raises(StorageError, match="its files are gone"):
        table.judge("t", "c", "", TableSettings())


def test_files_of_others_in_the_table_are_left_alone(tmp_path):
    table = landed(tmp_path / "t")
    write_rows(table.out / "date=2013-01-01" / "compacted.parquet", 0, 100, ROWS)
    assert table.clear(0) == 1
    assert [path.name for path in table.files()] == ["compacted.parquet"]


def test_what_readers_of_directories_pass_over_is_no_part_of_the_table(tmp_path):
    Job(tmp_path, 1).run()
    table = ParquetTable(tmp_path)
    files, totals = table.files(), table.totals()
    for name in (".part-1.parquet", "_part-1.parquet"):
        (tmp_path / "date=2013-01-01" / name).write_bytes(b"PAR1 half")
    assert table.files() == files
    assert table.totals() == totals


def test_a_file_of_somebody_else_that_is_no_parquet_is_named(tmp_path):
    Job(tmp_path, 1).run()
    (tmp_path / "date=2013-01-01" / "theirs.parquet").write_bytes(b"no such thing")
    with pytest.raises(StorageError, match=r"theirs\.parquet: no Parquet file: "):
        ParquetTable(tmp_path).totals()


def test_files_of_a_table_that_is_not_partitioned_stand_side_by_side_and_are_cleared_like_others(tmp_path):
    table = ParquetTable(tmp_path / "t")
    with table.lock():
        table.claim(table.judge("t", "c", "", TableSettings(headers=())))
    Job(tmp_path / "t", until=1).log(table, "offsets", 0)
    staged = table.stage(0)
    for number in range(2):
        write_rows(staged / f"part-{number}.parquet", number, 0, ROWS)
    files = table.publish(0, staged, names_of(staged))
    assert [str(path.relative_to(table.out)) for path in files] == [f"batch-00000000-000{n}.parquet" for n in range(2)]
    write_rows(table.out / "compacted.parquet", 0, 100, ROWS)
    assert table.clear(0) == 2
    assert [path.name for path in table.files()] == ["compacted.parquet"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": []}', '{"0": 1}'])
def test_a_damaged_note_of_the_last_batches_is_named(tmp_path, text):
    table = landed(tmp_path / "t")
    (table.state / "landed.json").write_text(text)
    with pytest.raises(StorageError, match=r"landed\.json"):
        table.judge("t", "c", "", TableSettings())


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 3}', '{"format": 2, "id": "x"}'])
def test_a_damaged_description_of_the_table_is_named(tmp_path, text):
    table = landed(tmp_path / "t")
    (table.state / "table.json").write_text(text)
    with pytest.raises(StorageError, match=r"table\.json"):
        table.inspect()


def test_the_description_is_written_whole(tmp_path):
    table = landed(tmp_path / "t")
    assert json.loads((table.state / "table.json").read_text())["topic"] == "t"
    assert not list(table.state.glob("*.part"))


def test_a_batch_and_its_plan_are_on_the_disk_with_every_name_that_leads_to_them(tmp_path, monkeypatch):
    out, checkpoint = tmp_path / "lake" / "t", tmp_path / "checkpoints" / "t"
    table = ParquetTable(out, checkpoint)
    job = Job(out, 1)
    synced: list[Path] = []
    with table.lock():
        table.claim(table.judge("t", "c", "", TableSettings()))
        job.log(table, "offsets", 0)
        staged = table.stage(0)
        write_rows(staged / "date=2013-01-01" / "part-0.parquet", 0, 0, ROWS)
        monkeypatch.setattr(parquet_table, "sync", synced.append)
        table.publish(0, staged, names_of(staged))
    plan = checkpoint / "offsets" / "0"
    assert {plan, *list(plan.parents)[:3]} <= set(synced)
    assert {out / "date=2013-01-01", out, out.parent} <= set(synced)
