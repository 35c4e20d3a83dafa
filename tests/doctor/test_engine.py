"""The doctor on what Spark needs: Java, PySpark, the workers' Python, the formats. One planted fault for each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tagwire.doctor import OK, PROBLEM, WARNING, Finding, engine
from tagwire.doctor.engine import formats, java, pyspark, read, workers


def one(check) -> Finding:
    (found,) = check()
    return found


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def fake_pyspark(tmp_path, monkeypatch):
    """Puts a PySpark of some version before the one that is installed."""

    def make(version: str) -> None:
        package = tmp_path / "pyspark"
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "version.py").write_text(f'__version__: str = "{version}"\n')
        monkeypatch.delitem(sys.modules, "pyspark", raising=False)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delenv("SPARK_HOME", raising=False)

    return make


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> Path:
    """The Python of an environment in which nothing is installed: what `python3` is where none was activated."""
    home = tmp_path_factory.mktemp("bare") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    return home / "bin" / "python"


@pytest.fixture(autouse=True)
def _nobody_named_a_driver(monkeypatch):
    """Sessions that other tests have started in this process name one."""
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)


# Java ----------------------------------------------------------------------------------------------------------------


def test_no_java_is_a_problem(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    found = one(java)
    assert found.state == PROBLEM
    assert "no java on the PATH" in found.said
    assert "install Java 17" in found.advice


def test_a_java_home_without_java_is_a_problem(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = one(java)
    assert found.state == PROBLEM
    assert f"JAVA_HOME={tmp_path} holds no bin/java" in found.said


@pytest.mark.parametrize(("told", "release"), [("11.0.13", "Java 11"), ("1.8.0_392", "Java 8")])
def test_an_old_java_is_a_problem(monkeypatch, tmp_path, told, release):
    program(tmp_path / "bin" / "java", f"echo 'openjdk version \"{told}\" 2021-10-19' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = one(java)
    assert found.state == PROBLEM
    assert f"is {release}; Spark 4 needs 17 or newer" in found.said
    assert "JAVA_HOME" in found.advice


@pytest.mark.parametrize(
    ("spark", "told", "state"),
    [
        ("4.1.1", "23.0.2", PROBLEM),
        ("4.0.0", "25", PROBLEM),
        ("4.1.1", "21.0.1", OK),
        ("4.2.0", "25.0.1", OK),
    ],
)
def test_a_java_that_is_too_new_for_this_spark_is_a_problem(fake_pyspark, monkeypatch, tmp_path, spark, told, state):
    fake_pyspark(spark)
    program(tmp_path / "bin" / "java", f"echo 'openjdk version \"{told}\" 2025-09-16' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = one(java)
    assert found.state == state
    if state == PROBLEM:
        assert f"PySpark {spark} does not start on Java 23 or newer" in found.said
        assert "install Java 17 or 21" in found.advice
        assert "pyspark>=4.2" in found.advice


def test_a_java_that_does_not_run_is_a_problem(monkeypatch, tmp_path):
    program(tmp_path / "bin" / "java", "echo 'libjvm.so: cannot open shared object file' >&2; exit 1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = one(java)
    assert found.state == PROBLEM
    assert "libjvm.so" in found.said


def test_java_is_named_with_where_it_was_found(monkeypatch, tmp_path):
    program(tmp_path / "bin" / "java", "echo 'openjdk version \"21.0.1\" 2023-10-17' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert one(java) == Finding("java", OK, f"Java 21 at {tmp_path}/bin/java (by JAVA_HOME)")


def test_what_a_java_has_started_ends_with_it_though_it_has_ended_itself(monkeypatch, tmp_path):
    beats = tmp_path / "beats"
    beats.touch()
    program(tmp_path / "bin" / "java", f"(while :; do echo >> {beats}; sleep 0.05; done) & exit 0")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(engine, "_JAVA_SECONDS", 1.0)
    assert "does not run: no response within 1 s" in one(java).said
    time.sleep(0.2)
    before = beats.stat().st_size
    time.sleep(0.5)
    assert beats.stat().st_size == before > 0


# PySpark -------------------------------------------------------------------------------------------------------------


def test_a_pyspark_without_data_sources_in_python_is_a_problem(fake_pyspark):
    fake_pyspark("3.5.9")
    found = one(pyspark)
    assert found.state == PROBLEM
    assert "PySpark 3.5.9 knows no data sources in Python" in found.said


@pytest.mark.parametrize(("version", "lacks"), [("4.0.1", "writing as a stream"), ("4.1.0", "landing")])
def test_a_pyspark_that_has_not_all_of_it_is_a_warning(fake_pyspark, version, lacks):
    fake_pyspark(version)
    found = one(pyspark)
    assert found.state == WARNING
    assert lacks in found.said
    assert found.advice == "pip install 'pyspark>=4.2'"


def test_a_spark_home_of_another_release_is_a_problem(fake_pyspark, monkeypatch, tmp_path):
    fake_pyspark("4.3.0")
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / "spark-core_2.12-3.5.1.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    _, found = pyspark()
    assert found.state == PROBLEM
    assert "is Spark 3.5.1, and PySpark here is 4.3.0" in found.said
    assert "unset SPARK_HOME" in found.advice


@pytest.mark.parametrize("jar", ["4.2.0-preview1", "4.2.0-amzn-0", "4.2.0.3.3.7190.0-91"])
def test_the_spark_of_a_distributor_or_before_its_release_is_a_spark(fake_pyspark, monkeypatch, tmp_path, jar):
    fake_pyspark("4.2.1")
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "spark" / "jars" / f"spark-core_2.13-{jar}.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    _, found = pyspark()
    assert found == Finding("pyspark", OK, f"SPARK_HOME={tmp_path / 'spark'} is Spark 4.2.0")


def test_a_spark_home_that_holds_no_spark_is_a_problem(fake_pyspark, monkeypatch, tmp_path):
    fake_pyspark("4.3.0")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    _, found = pyspark()
    assert found.state == PROBLEM


def test_what_a_server_of_spark_connect_has_of_its_own_is_not_looked_for_here(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", str(tmp_path / "nowhere"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert {one(check).state for check in (java, workers, formats)} == {PROBLEM}
    monkeypatch.setenv("SPARK_REMOTE", "sc://spark.example.org:15002/;token=secret")
    found = [one(check) for check in (java, workers, formats, read)]
    assert [finding.state for finding in found] == [OK] * 4
    assert not any("secret" in finding.said for finding in found)
    monkeypatch.setenv("SPARK_REMOTE", "local")  # a server that is started here
    assert one(java).state == PROBLEM


# Workers and formats -------------------------------------------------------------------------------------------------


def test_workers_of_this_python_find_every_format(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    assert (one(workers).state, one(formats).state) == (OK, OK)
    assert sys.executable in one(workers).said
    assert "tagwire, tagwire-segments, tagwire-capture" in one(formats).said


def test_the_python3_of_an_environment_that_is_not_activated_is_a_problem(monkeypatch, bare):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("PATH", f"{bare.parent}{os.pathsep}{os.environ['PATH']}")
    found, sought = one(workers), one(formats)
    assert (found.state, sought.state) == (PROBLEM, PROBLEM)
    assert "PYSPARK_PYTHON is not set" in found.said
    assert "No module named 'tagwire'" in found.said
    assert f"export PYSPARK_PYTHON={sys.executable}" in found.advice
    assert "DATA_SOURCE_NOT_FOUND" in sought.said


def test_the_drivers_python_goes_before_the_workers(monkeypatch, tmp_path):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv(
        "PYSPARK_DRIVER_PYTHON", str(program(tmp_path / "jupyter", "echo no such option: -c >&2; exit 1"))
    )
    found = one(workers)
    assert found.state == PROBLEM
    assert "PYSPARK_DRIVER_PYTHON" in found.said
    assert "no such option" in found.said
    assert "unset PYSPARK_DRIVER_PYTHON" in found.advice


def test_a_pyspark_python_that_is_not_there_is_a_problem(monkeypatch, tmp_path):
    monkeypatch.setenv("PYSPARK_PYTHON", str(tmp_path / "python"))
    found = one(workers)
    assert found.state == PROBLEM
    assert "No such file or directory" in found.said
    assert one(formats).state == PROBLEM


def test_workers_of_another_python_are_a_problem(monkeypatch, tmp_path):
    told = {"executable": "/usr/bin/python3.9", "version": [3, 9, 1], "formats": [], "broken": {}, "tagwire": "0.1.0"}
    path = program(tmp_path / "python", f"echo '{json.dumps(told)}'")
    monkeypatch.setenv("PYSPARK_PYTHON", str(path))
    found = one(workers)
    assert found.state == PROBLEM
    assert "Python 3.9.1 at /usr/bin/python3.9" in found.said
    assert "PYTHON_VERSION_MISMATCH" in found.said


def test_workers_that_lack_what_tagwire_needs_are_a_problem(monkeypatch, bare):
    sources = Path(__file__).parents[2] / "src"
    monkeypatch.setenv("PYSPARK_PYTHON", str(bare))
    monkeypatch.setenv("PYTHONPATH", str(sources))
    found = one(workers)
    assert found.state == PROBLEM
    assert "No module named" in found.said
    assert "pip install 'tagwire[spark]' there" in found.advice


def test_another_release_of_tagwire_at_the_workers_is_a_warning(monkeypatch, tmp_path):
    here = list(sys.version_info[:3])
    told = {"executable": "python", "version": here, "formats": [], "broken": {}, "tagwire": "0.0.9"}
    monkeypatch.setenv("PYSPARK_PYTHON", str(program(tmp_path / "python", f"echo '{json.dumps(told)}'")))
    found = one(workers)
    assert found.state == WARNING
    assert "with tagwire 0.0.9" in found.said


def test_somebody_elses_module_that_breaks_the_search_is_named(monkeypatch, tmp_path):
    (tmp_path / "pyspark_broken.py").write_text("import nosuchmodule\n")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    found = one(formats)
    assert found.state == PROBLEM
    assert "pyspark_broken cannot be imported" in found.said
    assert "nosuchmodule" in found.said


# A real session ------------------------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(300)
def test_one_record_is_read_through_a_spark_of_its_own(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    found = one(read)
    assert found.state == OK, found
    assert "one record read" in found.said


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_spark_whose_workers_lack_tagwire_says_so(monkeypatch, bare, tmp_path):
    # This environment's packages are the driver's alone: not on the PYTHONPATH, which workers inherit.
    monkeypatch.setenv("PYSPARK_PYTHON", str(bare))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    found = one(read)
    assert found.state == PROBLEM
    assert "DATA_SOURCE_NOT_FOUND" in found.said
    assert "workers" in found.advice
