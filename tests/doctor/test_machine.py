"""The doctor on the machine and the installation: one planted fault for each thing that it looks at."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections import namedtuple
from pathlib import Path

import pytest

import tagwire
from tagwire.doctor import OK, PROBLEM, WARNING, Finding
from tagwire.doctor import examine as examine_all
from tagwire.doctor.machine import disk, fits, kernels, packages, python

Usage = namedtuple("Usage", "total used free")


def one(check) -> Finding:
    (found,) = check()
    return found


def planted(folder: Path, monkeypatch: pytest.MonkeyPatch, *required: str) -> None:
    """Metadata of a tagwire that asks for these packages."""
    about = folder / "tagwire-0.1.0.dist-info" / "METADATA"
    about.parent.mkdir()
    lines = "".join(f"Requires-Dist: {text}\n" for text in required)
    about.write_text(f"Metadata-Version: 2.1\nName: tagwire\nVersion: 0.1.0\n{lines}")
    monkeypatch.syspath_prepend(str(folder))


def test_the_python_that_runs_is_named(monkeypatch):
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    found = one(python)
    assert (found.state, found.advice) == (OK, "")
    assert sys.executable in found.said
    assert tagwire.__version__ in found.said


def test_another_environment_than_the_activated_one_is_a_warning(monkeypatch, tmp_path):
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    found = one(python)
    assert found.state == WARNING
    assert str(tmp_path) in found.said


def test_kernels_in_pure_python_are_a_warning():
    code = "from tagwire.doctor.machine import kernels; print(*kernels())"
    environment = {"TAGWIRE_PURE": "1", "PYTHONPATH": ":".join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert "state='warning'" in ran.stdout
    assert "unset TAGWIRE_PURE" in ran.stdout


def test_kernels_that_cannot_be_loaded_are_a_problem(monkeypatch):
    class Broken:
        @property
        def compiled(self):
            raise ImportError("undefined symbol: PyLong_AsInt")

    monkeypatch.setattr(tagwire, "kernel", Broken(), raising=False)
    found = one(kernels)
    assert found.state == PROBLEM
    assert "undefined symbol" in found.said
    assert "pip install --force-reinstall" in found.advice


def test_a_package_that_the_core_needs_and_lacks_is_a_problem(monkeypatch, tmp_path):
    planted(tmp_path, monkeypatch, "nosuch-package>=2", "pytest>=1")
    first, last = packages()
    assert (first.state, first.said) == (PROBLEM, "missing: nosuch-package")
    assert first.advice == "pip install nosuch-package"
    assert last.state == OK


def test_extras_are_told_apart_by_what_is_here(monkeypatch, tmp_path):
    extras = ['pytest>=1; extra == "spark"', 'nosuch-package; extra == "plot"', 'nosuch-two; extra == "dev"']
    planted(tmp_path, monkeypatch, *extras)
    found = one(packages)
    assert found.state == OK
    assert "extras installed: spark" in found.said
    assert "plot (lacks nosuch-package)" in found.said
    assert "pip install 'tagwire[plot]'" in found.said
    assert "nosuch-two" not in found.said


def test_an_extra_that_is_made_of_others_is_installed_where_all_that_they_need_is(monkeypatch, tmp_path):
    arrow = 'nosuch-arrow; extra == "arrow"'
    audit = ['pytest>=1; extra == "audit"', 'tagwire[arrow,cli]; extra == "audit"', 'hypothesis; extra == "cli"']
    planted(tmp_path, monkeypatch, arrow, *audit, 'Cython; extra == "pure"', 'tagwire[arrow]; extra == "all"')
    found = one(packages)
    assert "extras installed: cli; not installed: arrow (lacks nosuch-arrow); audit (lacks nosuch-arrow);" in found.said
    assert "pure" not in found.said
    assert "all" not in found.said.replace("installed", "").replace("install", "")


@pytest.mark.parametrize(("marker", "state"), [('; extra == "spark"', WARNING), ("", PROBLEM)])
def test_a_package_of_a_release_that_is_not_wanted_is_named(monkeypatch, tmp_path, marker, state):
    planted(tmp_path, monkeypatch, f"pytest<2{marker}")
    first, _ = packages()
    assert first.state == state
    assert "wants <2" in first.said
    assert first.advice == "pip install 'pytest<2'"


@pytest.mark.parametrize(
    ("version", "bounds", "fit"),
    [
        ("4.3.0", ">=4.0,<5", True),
        ("3.5.9", ">=4.0,<5", False),
        ("5.0.0rc1", "<5", False),
        ("4", ">=4.0", True),
        ("2.10.1", "~=2.9", True),
        ("3.0", "~=2.9", False),
        ("1.2", "!=1.2", False),
        ("1.2.0", "==1.2", True),
        ("1.0", "", True),
    ],
)
def test_versions_are_compared_by_their_numbers(version, bounds, fit):
    assert fits(version, bounds) == fit


def test_a_directory_for_temporary_files_that_is_not_there_is_a_problem(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},{tmp_path / 'gone'}")
    first, _ = disk()
    assert first.state == PROBLEM
    assert str(tmp_path / "gone") in first.said


def test_no_temporary_file_is_a_problem(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    assert one(disk).state == PROBLEM


@pytest.mark.parametrize(("free", "state"), [(2**40, OK), (2**29, WARNING), (2**20, PROBLEM)])
def test_little_room_on_the_disk_is_told(monkeypatch, free, state):
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(2**41, 0, free))
    assert one(disk).state == state


def test_a_check_that_fails_itself_ends_no_other(monkeypatch):
    def broken():
        raise RuntimeError("nobody foresaw this")

    monkeypatch.setattr("tagwire.doctor.machine.kernels", broken)
    monkeypatch.setattr("tagwire.doctor.engine.workers", list)
    monkeypatch.setattr("tagwire.doctor.engine.formats", list)
    found = {finding.check: finding for finding in examine_all()}
    assert found["kernels"].state == PROBLEM
    assert "RuntimeError: nobody foresaw this" in found["kernels"].said
    assert {"python", "packages", "disk", "java", "pyspark", "brokers"} <= set(found)
