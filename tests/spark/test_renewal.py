"""A Spark test that hangs fails alone: the tests after it have a session of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LATE = """
import sys

tries = []

def test_late_twice():
    tries.append(None)
    if len(tries) < 3:
        raise OSError("Timed out while waiting for the Python worker to connect back")

def test_says_it_on_stderr_once(capsys):
    tries.append(None)
    if len(tries) < 5:
        print("Spark: Python worker failed to connect back.", file=sys.stderr)
        assert False

def test_wrong():
    tries.append(None)
    assert False

def test_always_late():
    tries.append(None)
    raise OSError("Python worker failed to connect back.")

def test_how_often_they_ran():
    assert len(tries) == 3 + 2 + 1 + 4
"""

ROOT = Path(__file__).parents[2]

# The first test starts Spark, so that the limit of the second is for its own work.
PLANTED = """
import threading

import pytest
from pyspark.sql import functions as F

from tests.spark.conftest import _running, broker, spark

processes = []

def answers(spark):
    processes.append(spark.sparkContext._gateway.proc.pid)
    assert [row.id for row in spark.range(3).collect()] == [0, 1, 2]
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"

def test_before(spark):
    answers(spark)

@pytest.fixture
def asks_when_it_ends(spark):
    yield
    with pytest.raises(Exception):
        spark.range(1).count()

@pytest.mark.timeout(3)
def test_that_waits_for_java(spark, asks_when_it_ends):
    spark._jvm.java.lang.Thread.sleep(600_000)

def test_after_it(spark):
    answers(spark)

@pytest.mark.timeout(3)
def test_that_waits_for_python(spark):
    def forever(batches):
        threading.Event().wait()
        yield from batches
    try:
        spark.range(1).mapInArrow(forever, "id bigint").collect()
    except BaseException as error:
        raise RuntimeError("which hides what it was") from error

def test_after_that(spark):
    answers(spark)

def test_each_got_a_process_of_its_own():
    assert len(set(processes)) == 3
"""


def run(tmp_path: Path, text: str) -> tuple[str, set[str]]:
    """What pytest prints of planted tests, and which of them failed."""
    planted = tmp_path / "test_planted.py"
    planted.write_text(text)
    plugins = ("-p", "no:cacheprovider", "-p", "tests.conftest", "-p", "tests.spark.conftest")
    command = [sys.executable, "-m", "pytest", "-q", *plugins, "--rootdir", str(tmp_path), str(planted)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    failed = {line.split("::")[1].split()[0] for line in done.stdout.splitlines() if line.startswith("FAILED")}
    return done.stdout + done.stderr, failed


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.long
def test_a_test_that_hangs_fails_alone(tmp_path: Path) -> None:
    said, failed = run(tmp_path, PLANTED)
    assert failed == {"test_that_waits_for_java", "test_that_waits_for_python"}, said
    assert "2 failed, 4 passed" in said


@pytest.mark.long
def test_a_test_whose_worker_spark_did_not_wait_for_runs_again_and_no_other(tmp_path: Path) -> None:
    said, failed = run(tmp_path, LATE)
    assert failed == {"test_wrong", "test_always_late"}, said
    assert "2 failed, 3 passed" in said
