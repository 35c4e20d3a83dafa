"""Where PySpark is not installed, every command and every function that needs it says so in the same sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SAID = "pyspark is not installed: pip install 'tagwire[spark]'"
WITHOUT = "import sys; sys.modules['pyspark'] = None; "

COMMANDS = [
    "land",
    "land --bootstrap 127.0.0.1:1 orders --to out",
    "replay --files folder --bootstrap 127.0.0.1:1 orders",
    "lag --spark --bootstrap 127.0.0.1:1",
    "lag --files folder",
    "audit --spark folder",
]
IMPORTS = [
    "from tagwire.spark.functions import from_message",
    "from tagwire.spark.jobs.land import land",
    "from tagwire.spark.jobs.replay import replay",
    "from tagwire.spark.jobs.lag import lag_of_cluster",
    "from tagwire.spark.jobs.audit import gather",
    "from tagwire.spark.session import session",
    "import tagwire.spark",
]


def ran(folder: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT + program, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_that_needs_it_says_so_in_one_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "kafka-request.log").write_text("no request\n")
    done = ran(tmp_path, "from tagwire.cli import main; sys.exit(main())", *line.split())
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"tagwire: {SAID}\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder"]


@pytest.mark.parametrize("statement", IMPORTS)
def test_what_needs_it_says_so_when_it_is_imported(tmp_path: Path, statement: str) -> None:
    done = ran(tmp_path, statement)
    assert done.stderr.splitlines()[-1] == f"tagwire.extras.MissingExtraError: {SAID}"


def test_what_pyspark_itself_looks_for_formats_in_stays_silent(tmp_path: Path) -> None:
    done = ran(tmp_path, "import pyspark_tagwire, pyspark_tagwire_capture, pyspark_tagwire_segments")
    assert (done.returncode, done.stderr) == (0, "")
