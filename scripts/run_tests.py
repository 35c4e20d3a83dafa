"""Runs pytest; the few tests that failed beside others run once more, alone, and are told as unstable where they pass.

Two processors, a Java beside each process of pytest and peers with time limits of their own: what needs a machine to
itself fails now and then for nothing that is in the repo. What fails alone too fails; so does a run in which many did.

    python scripts/run_tests.py -q -n 4 tests
    python scripts/run_tests.py -q -n 4 tests --uncompiled -q tests/codec

What stands behind `--uncompiled` is a run of its own on kernels that are not compiled, which goes on while the other
waits for Java, a disk or a time limit; what it prints comes last.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

FAILED = 1
"""pytest's status when tests failed; whatever else ended it (2 and more) is no test's."""

FEW = 10
"""More tests than this are no accident of the machine, unless they share what their file sets up."""

FEW_FILES = 2

UNCOMPILED = "--uncompiled"

# Each process of pytest rewrites every assertion, and the hundreds of programs that tests start import PySpark, PyArrow
# and tagwire: where no bytecode may be kept each compiles all of it anew. tests/cli and two files of tests/spark took
# 170 s of the processor so, and 134 with bytecode that the run itself had to write.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def main(arguments: list[str]) -> int:
    if UNCOMPILED not in arguments:
        return _run(arguments)
    at = arguments.index(UNCOMPILED)
    with tempfile.TemporaryFile() as told:
        command = [sys.executable, __file__, *arguments[at + 1 :]]
        environment = {**ENVIRONMENT, "TAGWIRE_PURE": "1"}
        beside = subprocess.Popen(command, env=environment, stdout=told, stderr=subprocess.STDOUT)
        try:
            status = _run(arguments[:at])
        finally:
            other = beside.wait()  # whoever interrupts this interrupts that, too
        told.seek(0)
        print(f"\nOn kernels that are not compiled\n{told.read().decode(errors='replace')}", flush=True)
    return status or other


def _run(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="tagwire-tests-") as cache:
        pytest = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments]
        status = subprocess.call(pytest, env=ENVIRONMENT)
        if status != FAILED:
            return status
        failed = _failed(cache)
        files = {test.partition("::")[0] for test in failed}
        if not failed or (len(failed) > FEW and len(files) > FEW_FILES):
            print(f"{len(failed)} failed, in {len(files)} files: too many to run them once more", flush=True)
            return status
        print(f"\nOnce more, alone: {len(failed)} that failed", flush=True)
        status = subprocess.call(
            [*pytest, "-n", "0", "--last-failed", "--last-failed-no-failures", "none"], env=ENVIRONMENT
        )
        still = _failed(cache)
        for test in sorted(failed - still):
            print(f"UNSTABLE {test}: failed beside others, passed alone; its first failure is above", flush=True)
        return status


def _failed(cache: str) -> set[str]:
    file = Path(cache, "v", "cache", "lastfailed")
    return set(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else set()


if __name__ == "__main__":
    try:
        raise SystemExit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        raise SystemExit(130) from None
