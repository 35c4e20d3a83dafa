"""Every file of bench/ runs, at the least size of its work: what it measures is for `make bench` to say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).parents[1] / "bench"
PARTS = {"brokers", "rounds", "spark_delta", "spark_sources"}
"""Parts of benches, which are no benches themselves; `run` starts each of those."""

NEED = {
    "audit_volume": "Spark, and captures of half a GiB",
    "broker": "Kafka's own broker",
    "land": "Spark",
    "land_commits": "the packages of Spark, Delta and Iceberg",
    "land_tables": "the packages of Spark, Delta and Iceberg, and jars",
    "spark": "Spark and Kafka's own broker",
    "spark_sinks": "Spark and Kafka's own broker",
    "values": "Spark and Kafka's own broker",
}
"""What is not here in every run of the tests: of these benches only the command line is tried."""

NAMES = sorted({path.stem for path in BENCHES.glob("*.py")} - PARTS - {"run"})


def ran(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHES / f"{name}.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


HELP = """
import os, runpy, sys
import pyarrow.parquet, tagwire.broker, tagwire.client
try:
    import pyspark.sql, tagwire.spark
except ImportError:
    pass
folder, *names = sys.argv[1:]
for name in names:
    if os.fork() == 0:
        sys.argv = [name + ".py", "--help"]
        sys.path[0] = folder
        runpy.run_path(os.path.join(folder, name + ".py"), run_name="__main__")
        os._exit(1)
    print("\\f" + name, os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""


@pytest.fixture(scope="module")
def helped() -> dict[str, tuple[str, str]]:
    """{bench: what it says when it is asked for help, its status}, of processes that begin with what most import."""
    command = [sys.executable, "-c", HELP, str(BENCHES), *NAMES]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said = re.split(r"\f(\w+) (-?\d+)\n", done.stdout)
    return {
        name: (text, status + done.stderr) for text, name, status in zip(*(said[n::3] for n in range(3)), strict=False)
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_bench_says_what_it_claims_when_asked_for_help(name: str, helped: dict[str, tuple[str, str]]) -> None:
    if name in ("spark", "spark_sinks", "land", "land_commits", "land_tables", "audit_volume", "values"):
        pytest.importorskip("pyspark")
    said, status = helped[name]
    assert status == "0"
    assert "WHAT=" in said


SMALLEST = [name for name in NAMES if name not in NEED and name != "client_producing"]
NIGHTLY = ("growth", "guard", "limits")


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.nightly if name in NIGHTLY else ()) for name in SMALLEST]
)
def test_a_bench_runs_at_its_smallest_size(name: str) -> None:
    # client runs client_producing, too
    done = ran(name, "--smallest")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout


def test_the_benches_that_are_not_run_are_there() -> None:
    assert NEED.keys() <= set(NAMES)


def test_a_bench_that_is_not_there_is_told_beside_those_that_are() -> None:
    told = ran("run", "nosuch")
    assert told.returncode == 2
    assert "no bench 'nosuch'" in told.stderr
    assert all(name in told.stderr for name in NAMES if name != "client_producing")
