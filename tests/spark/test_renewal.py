"""A Spark test that hangs fails alone: the tests after it have a session of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_test_that_hangs_fails_alone(tmp_path: Path) -> None:
    (tmp_path / "test_planted.py").write_text(PLANTED)
    plugins = ("-p", "no:cacheprovider", "-p", "tests.conftest", "-p", "tests.spark.conftest")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        *plugins,
        "--rootdir",
        str(tmp_path),
        str(tmp_path / "test_planted.py"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    failed = {line.split("::")[1].split()[0] for line in done.stdout.splitlines() if line.startswith("FAILED")}
    assert failed == {"test_that_waits_for_java", "test_that_waits_for_python"}, done.stdout + done.stderr
    assert "2 failed, 4 passed" in done.stdout
