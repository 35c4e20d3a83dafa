"""Every program below examples/ runs as it stands; those that need Spark or other packages run in tests/interop."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
ELSEWHERE = {"arrow_into_duckdb_and_polars.py", "exactly_once.py", "migrate_a_spark_job.py"}
"""tests/interop/test_examples.py runs these."""


def ran(*command: str) -> subprocess.CompletedProcess[str]:
    source = os.pathsep.join(sys.path)
    environment = {**os.environ, "PYTHONPATH": source}
    command = (sys.executable, "-W", "error", *command)
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_says_at_its_top_what_it_shows(path: Path) -> None:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    title, _, about = text.partition("\n\n")
    assert title.endswith(".")
    assert len(about) > 100


@pytest.mark.parametrize(
    "path",
    sorted(path for path in EXAMPLES.glob("*.py") if path.name not in ELSEWHERE and not path.name.startswith("test_")),
    ids=lambda path: path.stem,
)
def test_an_example_runs_as_it_stands(path: Path) -> None:
    done = ran(str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_the_suite_with_faults_passes() -> None:
    done = ran("-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLES / "test_orders.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


def test_there_are_twelve_examples() -> None:
    assert len(list(EXAMPLES.glob("*.py"))) == 12
    assert all((EXAMPLES / name).is_file() for name in ELSEWHERE)
