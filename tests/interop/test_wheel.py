"""The wheel carries the compiled kernels: it installs, and works, where there is no compiler."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest

from .built_wheel import built

ROOT = Path(__file__).parents[2]


def dependencies(wheel: Path) -> set[str]:
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return set(message_from_bytes(archive.read(name)).get_all("Requires-Dist"))


@pytest.mark.timeout(900)
def test_a_wheel_without_kernels_needs_what_one_with_kernels_needs(tmp_path: Path) -> None:
    """Whatever the environment says when it is built."""
    wheel = built(tmp_path, TAGWIRE_PURE="1")
    assert wheel.name.endswith("-py3-none-any.whl")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {line for line in dependencies(wheel) if "extra ==" not in line}
    assert {re.split("[<>=;]", line)[0] for line in declared} == {
        re.split("[<>=;]", line)[0] for line in project["dependencies"]
    }


@pytest.mark.timeout(900)
def test_the_wheel_works_where_there_is_no_compiler(wheel: Path, tmp_path: Path) -> None:
    assert "manylinux" in wheel.name or sys.platform != "linux"
    kernels = [each for each in ZipFile(wheel).infolist() if each.filename.endswith(".so")]
    assert sum(kernel.file_size for kernel in kernels) < 8 << 20
    home = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    python = home / "bin" / "python"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TAGWIRE"))}
    environment["PATH"] = str(home / "bin")
    install = [str(python), "-m", "pip", "install", "-q", "--no-deps", str(wheel)]
    subprocess.run(install, check=True, env=environment)
    # Its dependencies are those of this environment: what is tried here is the wheel alone.
    packages = next((home / "lib").glob("python*/site-packages"))
    (packages / "zz_dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    assert shutil.which("cc", path=environment["PATH"]) is None
    tried = ROOT / "scripts" / "try_wheel.py"
    ran = subprocess.run([str(python), str(tried)], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert ran.stdout == f"{packages / 'tagwire' / '__init__.py'} works\n", ran.stderr
