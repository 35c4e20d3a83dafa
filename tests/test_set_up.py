"""What `make` does first: kernels are compiled once, and again where something changed; how far it is is shown."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import set_up

ROOT = Path(__file__).parents[1]
KERNEL = """
import cython

COMPILED = cython.compiled


def twice(number: cython.longlong) -> cython.longlong:
    return 2 * number
"""


class Project:
    """One with a small kernel, built as ours is."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.kernel = root / "src" / "tagwire" / "kernel" / "small.py"
        self.types = self.kernel.with_suffix(".pxd")
        self.kernel.parent.mkdir(parents=True)
        for package in (self.kernel.parent, self.kernel.parent.parent):
            (package / "__init__.py").touch()
        self.kernel.write_text(KERNEL)
        self.types.write_text("cdef long long _seen\n")
        setup = (ROOT / "setup.py").read_text(encoding="utf-8")
        assert '"-O3"' in setup
        (root / "setup.py").write_text(setup.replace('"-O3"', '"-O0"'), encoding="utf-8")  # what it computes is not run
        (root / "pyproject.toml").write_text(
            '[project]\nname = "tagwire"\nversion = "0"\n[tool.setuptools.packages.find]\nwhere = ["src"]\n'
        )

    def build(self) -> str:
        """Compile what is to be compiled; all that is printed."""
        ran = subprocess.run(
            [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
            cwd=self.root,
            env={**os.environ, "TAGWIRE_PURE": "0"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=100,
        )
        assert ran.returncode == 0, ran.stdout
        return ran.stdout

    @property
    def library(self) -> Path:
        (found,) = (self.root / "build").glob("lib*/tagwire/kernel/small.*.so")
        return found

    def made(self) -> int:
        """When the library was linked."""
        return self.library.stat().st_mtime_ns

    def newer(self, path: Path) -> None:
        """As if the file was changed after the last build."""
        later = self.made() + 2_000_000_000
        os.utime(path, ns=(later, later))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.build()
    return made


@pytest.mark.long
def test_a_kernel_is_compiled_when_something_of_it_changed_and_at_no_other_time(project: Project) -> None:
    before = project.made()
    assert project.build() == "kernel 1 of 1: tagwire.kernel.small\n"
    assert project.made() == before
    for changed in (project.kernel, project.types, project.root / "setup.py"):
        project.newer(changed)
        project.build()
        assert project.made() > before, changed
        before = project.made()


def test_a_build_that_was_killed_goes_on_and_trusts_nothing_that_is_half_made(project: Project) -> None:
    library = project.library
    whole = library.stat().st_size
    library.write_bytes(b"half")
    library.with_suffix(".unfinished").touch()
    (translated,) = (project.root / "build" / "cython").rglob("small.c")
    translated.write_text("half")
    (project.root / "build" / "cython" / "unfinished").touch()
    project.build()
    assert project.library.stat().st_size == whole
    assert list(project.root.rglob("*unfinished")) == []


def test_kernels_are_stripped(project: Project) -> None:
    if sys.platform == "linux":
        assert b".symtab" not in project.library.read_bytes()
        assert b".debug_info" not in project.library.read_bytes()


def step(code: str, kind: type[set_up.Step] = set_up.Step) -> set_up.Step:
    return kind("packages", [sys.executable, "-c", code])


def test_a_line_says_how_far_it_is_while_nothing_else_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert set_up.SECONDS_BETWEEN_LINES <= 10
    monkeypatch.setattr(set_up, "SECONDS_BETWEEN_LINES", 0.2)
    set_up.finish(step("import time; time.sleep(1)"))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 2
    assert all(line.startswith("set-up: ") and "packages: starting" in line for line in lines)


def test_a_step_that_fails_ends_the_others_and_tells_what_it_said(capsys: pytest.CaptureFixture[str]) -> None:
    other = step("import time; time.sleep(60)")
    with pytest.raises(SystemExit, match=r"no such package\n(?s:.*)set-up: packages failed"):
        set_up.finish(other, step("raise SystemExit('no such package')"))
    assert not other.running()


@pytest.mark.parametrize(
    ("lines", "progress"),
    [
        (["Collecting rich==15.0.0 (from x)", "Requirement already satisfied: pip"], "2 of about "),
        (
            ["Collecting a", "  Downloading a-1.whl.metadata (2 kB)", "Downloading a-1.whl (5 MB)"],
            "1 found, fetching a-1.whl (5 MB)",
        ),
        (["Building wheel for pyspark (pyproject.toml): started"], "building pyspark"),
        (["Installing collected packages: a, b, c"], "installing 3"),
    ],
)
def test_progress_is_read_from_what_pip_prints(lines: list[str], progress: str) -> None:
    packages = step("", set_up.Packages)
    for line in lines:
        packages.see(line.strip())
    packages.stop()
    assert packages.progress.startswith(progress)
