"""examples/pipeline/ as it stands, on every PySpark that has declarative pipelines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Count, not_run_without
from .python_packages import fetched
from .test_spark_versions import CONNECT

PROGRAM = Path(__file__).parents[2] / "examples" / "pipeline" / "run.py"
SECONDS = 500


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "version",
    [*(pytest.param(version, marks=pytest.mark.nightly) for version in ("4.1.4", "4.2.1")), "installed"],
)
def test_the_example_of_a_pipeline_takes_each_record_once_in_two_runs(version: str, count: Count) -> None:
    with not_run_without():
        packages = [fetched("connect", CONNECT)]
        if version != "installed":
            alone = fetched(f"pyspark-{version}", [f"pyspark=={version}", "py4j==0.10.9.9"], alone=True)
            packages = [alone, *packages]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*map(str, packages), *sys.path]),
        "SPARK_TESTING": "1",  # the pipeline's server takes a free port then, and not 15002
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx1g",
    }
    command = [sys.executable, "-W", "error", str(PROGRAM)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    ran, *lines = done.stdout.splitlines()
    assert ran.startswith("PySpark 4.")
    assert version in ("installed", ran.removeprefix("PySpark "))
    assert sum(line.endswith("Run is COMPLETED.") for line in lines) == 2
    assert "records_of_partitions [{'partition': 0, 'count': 2000}]" in lines
    count(f"Declarative pipelines on {ran}: a streaming table, SQL, views, files and a sink, in two runs")
