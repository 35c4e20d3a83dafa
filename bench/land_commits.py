"""What a commit of a landed table costs, by how many there were before it.   make bench WHAT=land_commits

Processor time when a table has had ten, a thousand and ten thousand commits, in the median; a checkpoint or manifest is
written now and then, which the longest tells. And the most memory that the process has had until then. A table is
brought near the thousandth and ten thousandth in a short way: Iceberg's by commits of a hundred files, Delta's by its
log written as commits leave it.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import deltalake
import pyarrow as pa
from rounds import arguments, sized

from tagwire.spark.tables.data_files import FileWriter, collected
from tagwire.spark.tables.opening import DELTA, FORMATS, ICEBERG, PARQUET, open_table
from tagwire.spark.tables.table_format import LandTable, Written
from tagwire.spark.tables.table_settings import TableSettings

COMMITS = sized((10, 1_000, 10_000), (10, 20))
MEASURED = sized(50, 2)
AT_ONCE = 100
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)


def commits(folder: Path) -> None:
    """What one commit costs, by how many there were."""
    print("processor time of a commit, ms: median and longest; the most memory until then, MiB")
    print(f"  {'commits before it':22}" + "".join(f"{number:>24,}" for number in COMMITS))
    for format in FORMATS:
        # A process of its own: what one has had most is told, and not taken back.
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            cells = pool.submit(costs, folder, format).result()
        print(f"  {format:22}" + "".join(f"{cell:>24}" for cell in cells), flush=True)


def costs(folder: Path, format: str) -> list[str]:
    """What commits to a table of this format cost."""
    cells = []
    with tempfile.TemporaryDirectory(dir=folder) as place:
        growing = Growing(open_table(Path(place) / "table", format), Path(place) / "table")
        for number in COMMITS:
            growing.until(number - MEASURED if number > MEASURED else 0)
            taken = [growing.commit() for _ in range(MEASURED)]
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            cells.append(f"{statistics.median(taken) * 1000:.1f} ({max(taken) * 1000:.0f}), {most:,}")
    return cells


class Growing:
    """A table that gets files of ten rows."""

    def __init__(self, table: LandTable, out: Path) -> None:
        self.table = table
        self.out = out
        self.commits = 0
        self.rows = 0
        table.own()
        self._begin()

    def _begin(self) -> None:
        identity = self.table.judge("rows", "", "", TableSettings())
        self.table.claim(identity)
        self.table.begin(identity, SCHEMA, [0])

    def until(self, number: int) -> None:
        """Brings the table to where it has had so many commits."""
        if self.table.name == DELTA and self.commits < number:
            self._log_until(number)
        while self.commits < number:
            at_once = min(AT_ONCE, number - self.commits) if self.table.name == ICEBERG else 1
            self._commit(self._written(at_once))
            self.commits += at_once

    def _log_until(self, number: int) -> None:
        """Writes what commits write to Delta's log, and a checkpoint; the files are not there."""
        log = self.out / "_delta_log"
        actions = [json.loads(line) for line in max(log.glob("*.json")).read_text("utf-8").splitlines()]
        newest = int(max(log.glob("*.json")).stem)
        for version in range(newest + 1, newest + 1 + number - self.commits):
            self.commits += 1
            self.rows += 10
            for action in actions:
                if "txn" in action:
                    of_partition = action["txn"]["appId"].count("/") == 2
                    action["txn"]["version"] = self.rows if of_partition else self.commits
                if "add" in action:
                    action["add"]["path"] = f"part-{version}.parquet"
            text = "\n".join(json.dumps(action) for action in actions)
            (log / f"{version:020d}.json").write_text(text + "\n", "utf-8")
        deltalake.DeltaTable(str(self.out)).create_checkpoint()
        self.table = open_table(self.out, DELTA)
        self._begin()

    def commit(self) -> float:
        """The seconds that one takes."""
        written = self._written(1)
        started = time.process_time()
        self._commit(written)
        self.commits += 1
        return time.process_time() - started

    def _written(self, files: int) -> Written:
        writer = FileWriter(self.table.destination(self.commits), self.table.columns(SCHEMA), (), (), 1 << 20, 10, ())
        batch = self._rows(10 * files)
        return collected(row for told in writer.write(iter([batch])) for row in told.to_pylist())

    def _rows(self, count: int) -> pa.RecordBatch:
        offsets = pa.array(range(self.rows, self.rows + count))
        columns = [pa.array([b"k"] * count), pa.array([b"v"] * count), pa.array([0] * count, pa.int32()), offsets]
        return pa.record_batch([*columns, offsets.cast(SCHEMA.field("timestamp").type)], schema=SCHEMA)

    def _commit(self, written: Written) -> None:
        if self.table.name == PARQUET:  # which goes by what Spark has planned
            planned = self.table.checkpoint_location() / "offsets" / str(self.commits)
            planned.parent.mkdir(parents=True, exist_ok=True)
            planned.write_text("")
        self.rows += written.rows
        self.table.commit(self.commits, written, {0: self.rows})


if __name__ == "__main__":
    arguments(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        commits(Path(folder))
