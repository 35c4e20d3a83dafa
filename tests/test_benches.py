"""Every file of bench/ runs, at the least size of its work: what it measures is for `make bench` to say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).parents[1] / "bench"
PARTS = {"brokers", "rounds", "spark_sources"}
"""Parts of benches, which are no benches themselves; `run` starts each of those."""

NEED = {
    "audit_volume": "Spark, and captures of half a GiB",
    "broker": "Kafka's own broker",
    "land": "Spark",
    "spark": "Spark and Kafka's own broker",
    "spark_sinks": "Spark and Kafka's own broker",
}
"""What is not here in every run of the tests: of these benches only the command line is tried."""

NAMES = sorted({path.stem for path in BENCHES.glob("*.py")} - PARTS - {"run"})


def ran(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHES / f"{name}.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", NAMES)
def test_a_bench_says_what_it_claims_when_asked_for_help(name: str) -> None:
    if name in ("spark", "spark_sinks", "land", "audit_volume"):
        pytest.importorskip("pyspark")
    told = ran(name, "--help")
    assert told.returncode == 0, told.stderr
    assert "WHAT=" in told.stdout


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NEED and name != "client_producing"])
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
