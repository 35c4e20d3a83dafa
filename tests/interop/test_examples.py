"""The examples that need Spark, or packages that this environment has not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import not_run_without
from .python_packages import fetched

EXAMPLES = Path(__file__).parents[2] / "examples"
PACKAGES = ("duckdb==2.0.0", "polars==2.1.0")


def run(name: str, *paths: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, *paths])}
    environment.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["exactly_once.py", "migrate_a_spark_job.py"])
def test_an_example_on_spark_runs_as_it_stands(name: str) -> None:
    assert run(name)


def test_arrow_goes_into_duckdb_and_polars() -> None:
    with not_run_without():
        packages = fetched("duckdb-polars", PACKAGES)
    assert "[('DL', 3334), ('UA', 6666)]" in run("arrow_into_duckdb_and_polars.py", str(packages))
