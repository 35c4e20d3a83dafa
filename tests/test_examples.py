"""Every program below examples/ runs as it stands; those that need Spark or other packages run in tests/interop."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import site_examples

EXAMPLES = Path(__file__).parents[1] / "examples"
ELSEWHERE = {"arrow_into_duckdb_and_polars.py", "exactly_once.py", "migrate_a_spark_job.py"}
"""tests/interop/test_examples.py runs these."""
PROJECTS = ("pipeline",)
"""Directories with a run.py; tests/interop/test_pipelines.py runs this one."""
PROGRAMS = sorted([*EXAMPLES.glob("*.py"), *(EXAMPLES / name / "run.py" for name in PROJECTS)])


def ran(*command: str) -> subprocess.CompletedProcess[str]:
    source = os.pathsep.join(sys.path)
    environment = {**os.environ, "PYTHONPATH": source}
    command = (sys.executable, "-W", "error", *command)
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
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


def test_there_are_thirteen_examples() -> None:
    assert len(PROGRAMS) == 13
    assert all(path.is_file() for path in PROGRAMS)
    assert all((EXAMPLES / name).is_file() for name in ELSEWHERE)
    assert {path.parent.name for path in EXAMPLES.glob("*/*.*")} - {"__pycache__"} == set(PROJECTS)


def test_the_gallery_shows_each_example_and_all_files_of_one_that_has_several() -> None:
    pages = site_examples.pages()
    assert len(pages) == len(PROGRAMS) + 1
    for name in PROJECTS:
        for path in (path for path in (EXAMPLES / name).rglob("*.*") if path.is_file() and path.suffix != ".pyc"):
            assert path.read_text(encoding="utf-8").split('"""\n')[-1].strip() in pages[f"examples/{name}.md"], path


def test_what_the_page_on_pipelines_shows_stands_in_the_example() -> None:
    page = (EXAMPLES.parent / "docs" / "pipelines.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```(?:py|sql)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    files = [path for path in (EXAMPLES / "pipeline").rglob("*.*") if path.suffix in (".py", ".sql")]
    source = "\n".join(path.read_text(encoding="utf-8") for path in files)
    assert len(shown) > 2
    assert [block for block in shown if block not in source] == []
