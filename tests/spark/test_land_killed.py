"""The landing job, with typed values and small files, killed dead at each step and run again: nothing lost or twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from tagwire.records import Record
from tagwire.spark.jobs.land import TableSettings, land
from tagwire.spark.jobs.table import Table

NOON = 1_372_939_200_000  # 2013-07-04 12:00 UTC
DAY = 86_400_000
RECORDS = 30
BATCH = 20

# Step and its occurrence. A micro-batch has files of three days, in three directories: `moved` stops between two files.
STEPS = [
    ("checked", 1),
    ("locked", 1),
    ("claimed", 1),
    ("started", 1),
    ("cleared", 1),
    ("staged", 1),
    ("moved", 2),
    ("published", 1),
    ("committed", 1),
    ("landed", 1),
]

# One process runs a job for each step, every job on a table of its own, and each stands still when it is at its step.
# When all stand, the process dies with its Spark: each table is as a kill at that step leaves it.
JOBS = """
import os, signal, sys, threading, traceback
from pathlib import Path
from tagwire.spark.jobs.land import BatchSettings, LandListener, TableSettings, land
from tagwire.spark.session import session

bootstrap, topic, out, batch, *steps = sys.argv[1:]
standing = threading.Semaphore(0)

def job(wanted, left):
    def on_step(name):
        nonlocal left
        left -= name == wanted
        if left == 0 and name == wanted:
            standing.release()
        if left <= 0:
            threading.Event().wait()
    try:
        values = {"value.format": "json", "value.schema": "n int"}
        folder = Path(out, f"{wanted}-{left}")
        table = TableSettings(values=values, partition_by="date")
        small = BatchSettings(batch_offsets=int(batch), file_rows=4)
        listener = LandListener(on_step=on_step)
        land(bootstrap, topic, folder, table=table, batches=small, listener=listener)
    finally:
        traceback.print_exc()
        os._exit(3)  # the step was not reached

with session(Path(out, "spark.log")):
    for step in steps:
        name, at = step.split("-")
        threading.Thread(target=job, args=(name, int(at)), daemon=True).start()
        standing.acquire()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def offsets_of(out: Path) -> Counter[tuple[int, int]]:
    if not Table(out).files():
        return Counter()
    table = ds.dataset(out, format="parquet", partitioning="hive").to_table(columns=["partition", "offset"])
    return Counter(zip(table["partition"].to_pylist(), table["offset"].to_pylist()))


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.long
def test_a_job_killed_at_any_step_and_run_again_lands_every_record_once(spark, broker, topic, produce, tmp_path):
    records = [Record(None, b'{"n":%d}' % i, (), NOON + (i % 3) * DAY) for i in range(RECORDS)]
    produce(topic, {0: records, 1: records})
    names = [f"{step}-{at}" for step, at in STEPS]
    command = [sys.executable, "-c", JOBS, broker.bootstrap, topic, str(tmp_path), str(BATCH), *names]
    killed = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    left = {name: offsets_of(tmp_path / name) for name in names}
    assert all(set(found.values()) <= {1} for found in left.values())
    assert not left["staged-1"]
    assert 0 < len(left["moved-2"]) < len(left["published-1"]) == len(left["committed-1"]) < len(left["landed-1"])
    for name in names:
        land(broker.bootstrap, topic, tmp_path / name, table=TableSettings(partition_by="date"))
    everything = Counter((partition, offset) for partition in (0, 1) for offset in range(RECORDS))
    assert {name: offsets_of(tmp_path / name) for name in names} == dict.fromkeys(names, everything)
    table = ds.dataset(tmp_path / names[-1], format="parquet", partitioning="hive").to_table()
    assert {(row["offset"], row["value"]["n"]) for row in table.to_pylist()} == {(n, n) for n in range(RECORDS)}
