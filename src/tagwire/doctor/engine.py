"""What Spark needs here: Java, a PySpark that knows data sources in Python, and workers that find tagwire.

No JVM is started, but by `read`: how Spark looks for formats is done again in the Python that it would do it in.
Source: pyspark.sql.worker.lookup_data_sources.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import metadata, util
from pathlib import Path
from typing import Any, Final

import tagwire
from tagwire.doctor.findings import OK, PROBLEM, WARNING, Finding
from tagwire.doctor.machine import fits

FORMATS: Final = ("tagwire", "tagwire-segments", "tagwire-capture")

_OLDEST_JAVA: Final = 17
_FIRST_WITHOUT_SUBJECT: Final = 23
"""From this Java on `Subject.getSubject` raises, by which the Hadoop of Spark before 4.2 asks who runs it
(SPARK-54276)."""
_PYTHONS: Final = ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON")
_JAVA_SECONDS: Final = 20.0
_PROBE_SECONDS: Final = 60.0
_READ_SECONDS: Final = 180.0

# As pyspark.sql.worker.lookup_data_sources does it, and what of it fails.
_LOOKUP: Final = """
import json, pkgutil, sys
told = {"executable": sys.executable, "version": list(sys.version_info[:3]), "formats": [], "broken": {}}
try:
    import tagwire
    told["tagwire"] = tagwire.__version__
except BaseException:
    pass
try:
    import tagwire.spark.source.topic, tagwire.spark.segments.source, tagwire.spark.captures, pyarrow
except BaseException as error:
    told["lacks"] = f"{type(error).__name__}: {error}"
for found in pkgutil.iter_modules():
    if found.name.startswith("pyspark_"):
        try:
            module = __import__(found.name)
            if hasattr(module, "DefaultSource"):
                told["formats"].append(module.DefaultSource.name())
        except BaseException as error:
            told["broken"][found.name] = f"{type(error).__name__}: {error}"
print("\\n" + json.dumps(told))
"""

# One record, through an embedded broker, as a program of the user's would read it: PYSPARK_PYTHON is left as it is.
_READ: Final = """
from tagwire.broker import Broker
from tagwire.client import Producer
from pyspark.sql import SparkSession
with Broker(fsync="never") as broker:
    with Producer(broker.bootstrap) as producer:
        producer.send("doctor", b"well")
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    read = spark.read.format("tagwire").option("kafka.bootstrap.servers", broker.bootstrap)
    rows = read.option("subscribe", "doctor").load().collect()
    assert [bytes(row.value) for row in rows] == [b"well"], rows
    print("\\nread with Spark", spark.version)
    spark.stop()
"""

_ELSEWHERE: Final = "not looked at: SPARK_REMOTE names a server of Spark Connect, which has its own"

_CAUSES: Final = {
    "DATA_SOURCE_NOT_FOUND": "see the lines about workers and formats: Spark looks for formats in the workers' Python",
    "PYTHON_VERSION_MISMATCH": f"export PYSPARK_PYTHON={sys.executable}",
    "JAVA_GATEWAY_EXITED": "see the line about java",
    "UnsupportedClassVersionError": "see the line about java: it is older than this Spark needs",
    "getSubject is ": "this Spark is older than this Java: set JAVA_HOME to Java 17 or 21",
    "ModuleNotFoundError": "install what is missing in the workers' Python",
}


def java() -> Iterator[Finding]:
    """Which Java Spark would start, and whether this Spark runs on it."""
    spark = pyspark_version()
    if spark is None:
        yield Finding("java", OK, "not looked at: there is no PySpark that would need it")
        return
    if _is_elsewhere():
        yield Finding("java", OK, _ELSEWHERE)
        return
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java")
    install = f"install Java {_OLDEST_JAVA} or 21 (on Debian: apt-get install openjdk-17-jre-headless)"
    if found is None:
        said = "there is no java on the PATH, and JAVA_HOME is not set"
        yield Finding("java", PROBLEM, said, f"{install}, or set JAVA_HOME to where it is")
        return
    if not os.access(found, os.X_OK):
        other = shutil.which("java")
        instead = f"unset JAVA_HOME: {other} is on the PATH" if other else install
        said = f"JAVA_HOME={home} holds no bin/java"
        yield Finding("java", PROBLEM, said, f"set JAVA_HOME to the directory that has bin/java, or {instead}")
        return
    where = f"{found}{' (by JAVA_HOME)' if home else ''}"
    try:
        code, out, error = _ran([found, "-version"], _JAVA_SECONDS, dict(os.environ))
    except OSError as failed:
        yield Finding("java", PROBLEM, f"{where} does not run: {failed}", install)
        return
    if code is None:
        yield Finding("java", PROBLEM, f"{where} does not run: no response within {_JAVA_SECONDS:.0f} s", install)
        return
    told = error or out
    version = re.search(r'version "(?:1\.)?(\d+)[^"]*"', told)
    if code or version is None:
        said = f"{where} does not run: {(told.strip().splitlines() or ['it says nothing'])[0]}"
        yield Finding("java", PROBLEM, said, install)
    elif int(version[1]) < _OLDEST_JAVA:
        said = f"{where} is Java {version[1]}; Spark 4 needs {_OLDEST_JAVA} or newer"
        yield Finding("java", PROBLEM, said, f"{install}, and set JAVA_HOME to it")
    elif int(version[1]) >= _FIRST_WITHOUT_SUBJECT and not fits(spark, ">=4.2"):
        said = f"{where} is Java {version[1]}; PySpark {spark} does not start on Java {_FIRST_WITHOUT_SUBJECT} or newer"
        yield Finding("java", PROBLEM, said, f"{install}, and set JAVA_HOME to it, or pip install 'pyspark>=4.2'")
    else:
        yield Finding("java", OK, f"Java {version[1]} at {where}")


def pyspark() -> Iterator[Finding]:
    """Which PySpark there is, what of tagwire it can run, and whether SPARK_HOME is of the same release."""
    version = pyspark_version()
    if version is None:
        yield Finding("pyspark", OK, "not installed; where Spark is wanted: pip install 'tagwire[spark]'")
        return
    if not fits(version, ">=4.0"):
        said = f"PySpark {version} knows no data sources in Python: it finds no format tagwire"
        yield Finding("pyspark", PROBLEM, said, "pip install 'tagwire[spark]', which takes PySpark 4")
    elif not fits(version, ">=4.2"):
        lacks = "limits of streams and landing" + ("" if fits(version, ">=4.1") else ", and writing as a stream")
        said = f"PySpark {version} reads; it does not have {lacks}"
        yield Finding("pyspark", WARNING, said, "pip install 'pyspark>=4.2'")
    else:
        yield Finding("pyspark", OK, f"PySpark {version}")
    home = os.environ.get("SPARK_HOME")
    if home:
        yield from _spark_home(home, version)


def workers() -> Iterator[Finding]:
    """Which Python Spark's workers are, and whether tagwire is there."""
    if pyspark_version() is None:
        yield Finding("workers", OK, "not looked at: there is no PySpark")
        return
    if _is_elsewhere():
        yield Finding("workers", OK, f"{_ELSEWHERE}: tagwire has to be installed there, too")
        return
    python, by = _workers_python()
    same = f"export PYSPARK_PYTHON={sys.executable}"
    if by.startswith(_PYTHONS[0]):
        same = f"unset {_PYTHONS[0]}, and {same}"
    told = _probed(python)
    if "failed" in told:
        yield Finding("workers", PROBLEM, f"{by} does not run: {told['failed']}", same)
        return
    version = ".".join(map(str, told["version"]))
    where = f"{by}: Python {version} at {told['executable']}"
    if tuple(told["version"][:2]) != sys.version_info[:2]:
        here = f"{sys.version_info[0]}.{sys.version_info[1]}"
        yield Finding("workers", PROBLEM, f"{where}, while the driver is {here} (PYTHON_VERSION_MISMATCH)", same)
    elif "tagwire" not in told:
        said = f"{where}, which has no tagwire that can be imported ({told['lacks']})"
        yield Finding("workers", PROBLEM, said, f"{same}, or pip install 'tagwire[spark]' there")
    elif "lacks" in told:
        said = f"{where}, where tagwire lacks something ({told['lacks']})"
        yield Finding("workers", PROBLEM, said, f"{same}, or pip install 'tagwire[spark]' there")
    elif told["tagwire"] != tagwire.__version__:
        said = f"{where}, with tagwire {told['tagwire']}, while the driver has {tagwire.__version__}"
        yield Finding("workers", WARNING, said, f"{same}, or pip install tagwire=={tagwire.__version__} there")
    else:
        yield Finding("workers", OK, f"{where}, with tagwire {told['tagwire']}")


def formats() -> Iterator[Finding]:
    """Whether Spark's own search would find the formats."""
    version = pyspark_version()
    if version is None:
        yield Finding("formats", OK, "not looked at: there is no PySpark")
        return
    if _is_elsewhere():
        yield Finding("formats", OK, _ELSEWHERE)
        return
    python, _ = _workers_python()
    told = _probed(python)
    if "failed" in told:
        yield Finding("formats", PROBLEM, "not found: the workers' Python does not run", "see the line about workers")
        return
    for name, reason in told["broken"].items():
        said = f"{name} cannot be imported ({reason}), so that Spark finds no Python data source at all"
        yield Finding("formats", PROBLEM, said, f"uninstall or mend the package that {name} belongs to")
    if told["broken"]:
        return
    missing = [name for name in FORMATS if name not in told["formats"]]
    if not missing:
        yield Finding("formats", OK, f"Spark finds {', '.join(FORMATS)}")
    else:
        old = not fits(version, ">=4.0")
        advice = "see the line about pyspark" if old else "see the line about workers"
        said = f"Spark does not find {', '.join(missing)} in {told['executable']} (DATA_SOURCE_NOT_FOUND)"
        yield Finding("formats", PROBLEM, said, advice)


def read() -> Iterator[Finding]:
    """Starts Spark and reads one record through it: as slow as Spark is, and as certain."""
    if _is_elsewhere():
        yield Finding("spark", OK, _ELSEWHERE)
        return
    code, _, error = _ran([sys.executable, "-c", _READ], _READ_SECONDS, dict(os.environ))
    if code is None:
        said = f"Spark did not read one record within {_READ_SECONDS:.0f} s"
        yield Finding(
            "spark",
            PROBLEM,
            said,
            "the machine may be too busy, or Spark may wait for its own address: see SPARK_LOCAL_IP",
        )
    elif code:
        line = _cause(error)
        advice = next((advice for sign, advice in _CAUSES.items() if sign in error), "docs/troubleshooting.md")
        yield Finding("spark", PROBLEM, line, advice)
    else:
        yield Finding("spark", OK, f"one record read through Spark {pyspark_version()}")


def _is_elsewhere() -> bool:
    """Whether sessions are those of a server of Spark Connect. SPARK_REMOTE=local starts one here."""
    return os.environ.get("SPARK_REMOTE", "").startswith("sc://")


def pyspark_version() -> str | None:
    """The installed PySpark's version, found without importing it; None where there is none."""
    try:
        spec = util.find_spec("pyspark")
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    for folder in spec.submodule_search_locations:
        file = Path(folder, "version.py")
        if file.is_file() and (found := re.search(r"__version__[^=]*=\s*['\"]([^'\"]+)", file.read_text("utf-8"))):
            return found[1]
    try:
        return metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return None


def _spark_home(home: str, version: str) -> Iterator[Finding]:
    jars = sorted(Path(home, "jars").glob("spark-core_*.jar"))
    # 4.2.0, 4.2.0-preview1, or a distributor's 4.0.1-amzn-0: PyPI has the numbers alone
    found = re.search(r"spark-core_[\d.]+-(\d+\.\d+(?:\.\d+)?)[\w.+-]*\.jar", jars[0].name) if jars else None
    if found is None:
        said = f"SPARK_HOME={home} holds no jars/spark-core_*.jar"
        yield Finding("pyspark", PROBLEM, said, "unset SPARK_HOME: PySpark from PyPI brings its own Spark")
    elif found[1].split(".")[:2] != version.split(".")[:2]:
        said = f"SPARK_HOME={home} is Spark {found[1]}, and PySpark here is {version}"
        yield Finding("pyspark", PROBLEM, said, f"unset SPARK_HOME, or pip install pyspark=={found[1]}")
    else:
        yield Finding("pyspark", OK, f"SPARK_HOME={home} is Spark {found[1]}")


def _workers_python() -> tuple[str, str]:
    """The command that Spark runs data sources with (its `PythonUtils.defaultPythonExec`), and how it came to that."""
    for name in _PYTHONS:
        if named := os.environ.get(name):
            return named, f"{name}={named}"
    return "python3", "python3 of the PATH (PYSPARK_PYTHON is not set)"


def _probed(python: str) -> Mapping[str, Any]:
    """What the Python of the workers says of itself, and finds."""
    path = [os.environ.get("PYTHONPATH", "")]
    spec = util.find_spec("pyspark")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path += map(str, sorted(Path(folder, "python", "lib").glob("*.zip")))  # what Spark itself hands to its workers
    return _looked_up(shutil.which(python) or python, os.pathsep.join(filter(None, path)))


@cache
def _looked_up(python: str, path: str) -> Mapping[str, Any]:
    environment = {**os.environ, "PYTHONPATH": path}
    try:
        code, out, error = _ran([python, "-c", _LOOKUP], _PROBE_SECONDS, environment)
    except OSError as failed:
        return {"failed": failed.strerror or str(failed)}
    if code is None:
        return {"failed": f"no response within {_PROBE_SECONDS:.0f} s"}
    try:
        told = json.loads(out.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return {"failed": (error.strip().splitlines() or [f"it ended with {code}"])[-1]}
    return told if isinstance(told, dict) else {"failed": "it is no Python"}


def _ran(command: list[str], seconds: float, environment: dict[str, str]) -> tuple[int | None, str, str]:
    """Exit code (None where the time was up), stdout and stderr. What it started ends with it."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            out, error = process.communicate(timeout=seconds)
        except BaseException as ended:
            # Its JVM too, which is what is waited for where the program itself has ended.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(ended, subprocess.TimeoutExpired):
                return None, "", ""
            raise
        return process.returncode, out, error


def _cause(error: str) -> str:
    """The line of a Spark program's stderr that says why it ended."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    for sign in _CAUSES:
        for line in reversed(lines):
            if sign in line:
                return line[:400]
    return (lines or ["it said nothing"])[-1][:400]
