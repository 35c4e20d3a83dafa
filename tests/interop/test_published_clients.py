"""Published clients, unmodified, against a broker of ours: each folder here with a run.sh is one.

A run.sh prints `ok NAME`, `FAIL NAME: why` or `NOT RUN NAME: why` for each of its cases, or `NOT RUN: why` when the
client cannot be had here. It ends with 0, or FAILED when a case did. `allow` beside it names the cases that are known
to fail, one a line; FINDINGS.md says why. A case on that list that passes is a failure too: the list stays honest.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Count

HERE = Path(__file__).parent
CLIENTS = sorted(script.parent.name for script in HERE.glob("*/run.sh"))
SECONDS = 420
FAILED = 3
LINE = re.compile(r"(ok|FAIL|NOT RUN) (\S+?)(?:: (.*))?")


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_gets_what_it_expects_of_a_broker(client, count: Count):
    output, code = run(HERE / client / "run.sh")
    if missing := re.search(r"^NOT RUN: (.*)$", output, re.MULTILINE):
        pytest.skip(f"NOT RUN: {missing[1]}")
    cases = {match[2]: (match[1], match[3]) for line in output.splitlines() if (match := LINE.fullmatch(line))}
    by_fate = {fate: {name for name in cases if cases[name][0] == fate} for fate in ("ok", "FAIL", "NOT RUN")}
    allowed = allow_list(HERE / client / "allow")
    count(f"{client}: {len(by_fate['ok'])} cases ok, {len(by_fate['FAIL'])} failed, {len(allowed)} of them known")
    for name in sorted(by_fate["NOT RUN"]):
        count(f"{client}: NOT RUN {name}: {cases[name][1]}")
    assert code in (0, FAILED), output[-20000:]
    assert by_fate["ok"], f"no case passed:\n{output[-5000:]}"
    assert by_fate["FAIL"] - allowed == set(), output[-20000:]
    assert allowed <= by_fate["FAIL"] | by_fate["NOT RUN"], "these pass now, take them off the list"


def allow_list(path: Path) -> set[str]:
    """The names in a list of one a line, in which # begins a remark."""
    lines = [line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    return {line for line in lines if line}


def run(script: Path) -> tuple[str, int]:
    """Everything a script printed, and its exit code. Whatever it started ends with it."""
    process = subprocess.Popen(
        ["bash", str(script)],
        env={**os.environ, "PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        return process.communicate(timeout=SECONDS)[0], process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        output = process.communicate()[0]
        raise AssertionError(f"{script} took longer than {SECONDS} seconds:\n{output[-5000:]}") from None
