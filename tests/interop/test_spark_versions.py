"""Older PySpark, of every kind that the package takes, does what docs/spark.md says of it, and says what it lacks.

So do the sessions of Spark Connect, of the newest PySpark: their client has no JVM. All other tests are about classic
sessions of the newest.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tagwire.broker import Broker
from tagwire.client import Admin, NewTopic, Producer

from ..spark.log_files import NOON, LogDirectory
from ..spark.test_segments import offset_commit
from ..values.registry_server import registry_server
from .conftest import Count, not_run_without
from .python_packages import fetched

HERE = Path(__file__).parent
SECONDS = 400
LINE = re.compile(r"(ok|FAILED) (\w+)(?:: (.*))?")
CONNECT = ("grpcio>=1.76", "grpcio-status>=1.76", "googleapis-common-protos>=1.71", "zstandard>=0.25", "protobuf>=6")

_UNLIMITED = {
    "stream_with_limits": "ConfigError: option maxOffsetsPerTrigger: needs PySpark 4.2",
    "land": "ConfigError: landing needs PySpark 4.2",
}
_ARROW = (
    "stream_write",
    "exactly_once",
    "functions",
    "stream_written_by_a_registry",
    "functions_by_a_registry",
)
_NO_ARROW = "ConfigError: .*needs PySpark 4.1"
LACKING: dict[str, dict[str, str]] = {
    "4.2.1": {},
    "4.1.4": _UNLIMITED,
    "4.0.5": _UNLIMITED | dict.fromkeys(_ARROW, _NO_ARROW),
    "connect": {},
}
"""What does not work, and what is said of it."""

OLDEST, BETWEEN = "4.0.5", ("4.2.1", "4.1.4")

TYPED = """{"type": "record", "name": "Typed", "fields": [
  {"name": "n", "type": "long"}, {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}}]}"""


@dataclass(frozen=True)
class Topics:
    """A broker with the topics that the cases read, and files of a broker's."""

    bootstrap: str
    folder: Path


@pytest.fixture
def topics(tmp_path: Path) -> Iterator[Topics]:
    with Broker(tmp_path / "broker", fsync="never") as broker, registry_server() as registry:
        registry.add("typed-value", TYPED)
        (tmp_path / "registry").write_text(registry.url)
        settings = {"retention.ms": "-1"}
        with Admin(broker.bootstrap) as admin:
            names = ("flights", "copies", "exact", "typed")
            admin.create_topics([NewTopic(name, num_partitions=2, configs=settings) for name in names])
            admin.alter_group_offsets("g", {("flights", 0): 1})
        with Producer(broker.bootstrap) as producer:
            for number in range(20):
                value, headers = b'{"n":%d}' % number, [("h", b"1")]
                producer.send("flights", value, key=b"k", headers=headers, timestamp=NOON, partition=number % 2)
        log = LogDirectory(tmp_path / "log", "flights-0")
        log.numbered(5)
        log.numbered(5)
        LogDirectory(tmp_path / "log", "__consumer_offsets-0").append([offset_commit("g", "flights", 0, 4)])
        yield Topics(broker.bootstrap, tmp_path)


def run(topics: Topics, packages: list[Path], *how: str) -> tuple[str, dict[str, str | None]]:
    """The version that ran the cases, and each case with its error."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, packages)),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx1g",
    }
    command = [sys.executable, str(HERE / "spark_cases.py"), topics.bootstrap, str(topics.folder), *how]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    lines = ran.stdout.splitlines()
    said = f"{ran.stdout[-2000:]}\n{ran.stderr[-3000:]}"
    assert ran.returncode == 0, said
    assert lines[-1].startswith("version "), said
    found = {match[2]: match[3] for line in lines if (match := LINE.fullmatch(line))}
    return lines[-1].removeprefix("version "), found


def as_expected(found: dict[str, str | None], lacking: dict[str, str]) -> None:
    wrong = {
        name: error
        for name, error in found.items()
        if (error is not None) != (name in lacking) or (error and not re.search(lacking[name], error))
    }
    assert not wrong
    assert lacking.keys() <= found.keys()
    assert len(found) > 12


@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", [*(pytest.param(name, marks=pytest.mark.nightly) for name in BETWEEN), OLDEST])
def test_a_pyspark_does_all_but_what_it_is_known_to_lack(version: str, topics: Topics, count: Count) -> None:
    with not_run_without():
        packages = [fetched(f"pyspark-{version}", [f"pyspark=={version}", "py4j==0.10.9.9"], alone=True)]
    ran, found = run(topics, packages)
    assert ran == version
    as_expected(found, LACKING[version])
    count(f"PySpark {version}: {len(found) - len(LACKING[version])} of {len(found)} cases work")


@pytest.mark.timeout(600)
def test_spark_connect_does_all_but_what_it_is_known_to_lack(topics: Topics, count: Count) -> None:
    with not_run_without():
        packages = [fetched("connect", CONNECT)]
    _, found = run(topics, packages, "connect")
    as_expected(found, LACKING["connect"])
    count(f"Spark Connect: {len(found) - len(LACKING['connect'])} of {len(found)} cases work")
