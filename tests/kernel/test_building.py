"""What setup.py leaves the kernels uncompiled for, and what the C compiler would refuse."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MEMORY = ROOT / "src" / "tagwire" / "kernel" / "memory.pxd"

PRETENDING = """
import platform, runpy, sys, sysconfig
from collections import namedtuple
import setuptools

said = sysconfig.get_config_var
sysconfig.get_config_var = lambda name: {free_threaded} if name == "Py_GIL_DISABLED" else said(name)
platform.python_implementation = lambda: "{implementation}"
sys.version_info = namedtuple("version_info", "major minor micro releaselevel serial")({version}, 0, "final", 0)
sys.argv = ["setup.py", "--name"]
runpy.run_path("setup.py", run_name="__main__")
"""


def told(version: str = "3, 12", implementation: str = "CPython", free_threaded: int = 0, pure: str = "0") -> str:
    """What setup.py says on standard error to another interpreter that asks it for the project's name."""
    code = PRETENDING.format(version=version, implementation=implementation, free_threaded=free_threaded)
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "TAGWIRE_PURE": pure},
        capture_output=True,
        text=True,
    )
    assert ran.stdout.strip() == "tagwire", ran.stderr
    return ran.stderr


OTHERS = [
    ({"free_threaded": 1}, "this CPython is free-threaded, and they need its global lock"),
    ({"version": "3, 15"}, "they know how CPython 3.11 to 3.14 lay out objects, and this is 3.15"),
    ({"version": "3, 10"}, "they know how CPython 3.11 to 3.14 lay out objects, and this is 3.10"),
    ({"implementation": "PyPy"}, "they need CPython 3.11 to 3.14, and this is PyPy"),
]


@pytest.mark.parametrize(("interpreter", "reason"), OTHERS, ids=[str(row[0]) for row in OTHERS])
def test_the_kernels_are_left_uncompiled_for_an_interpreter_they_do_not_know(
    interpreter: dict[str, str | int], reason: str
) -> None:
    said = told(**interpreter)  # type: ignore[arg-type]
    assert said == f"tagwire: the kernels are left uncompiled, and slow: {reason}.\n"
    assert told(**interpreter, pure="1") == ""  # type: ignore[arg-type]
    assert told() == ""


def compiled_with(tmp_path: Path, *definitions: str) -> str:
    """What the C compiler says of the C in memory.pxd."""
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"there is no {compiler[0]}")
    (found,) = re.findall(r'cdef extern from \*:\n    """\n(.*?)"""', MEMORY.read_text(), re.DOTALL)
    source = tmp_path / "memory.c"
    source.write_text(f"#include <Python.h>\n{''.join(definitions)}{found}")
    include = sysconfig.get_path("include")
    ran = subprocess.run(
        [*compiler, "-fsyntax-only", "-w", f"-I{include}", str(source)], capture_output=True, text=True
    )
    return ran.stderr


def test_the_c_of_the_kernels_refuses_what_setup_leaves_out(tmp_path: Path) -> None:
    """Whoever compiles it otherwise than by setup.py."""
    assert compiled_with(tmp_path) == ""
    assert "do not run on free-threaded CPython" in compiled_with(tmp_path, "#define Py_GIL_DISABLED 1\n")
    for version in ("0x030A0000", "0x030F0000", "0x040000F0"):
        definitions = f"#undef PY_VERSION_HEX\n#define PY_VERSION_HEX {version}\n"
        assert "know how CPython 3.11 to 3.14 lay out objects" in compiled_with(tmp_path, definitions)
