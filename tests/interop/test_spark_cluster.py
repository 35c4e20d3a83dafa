"""Exactly once on a standalone cluster of Spark: a worker dies, an attempt stands still. Executors have nothing but the
installed package."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

pytest.importorskip("pyspark")

from ..spark.exactly_once_query import until
from .conftest import Programs
from .exactly_once_rows import LIMIT, Rows
from .real_broker import RELEASE
from .real_node import RealNode
from .spark_cluster import SETTINGS, SparkCluster
from .spark_job import SparkJob

SPECULATION: Final = {
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.minTaskRuntime": "1s",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.efficiency.enabled": "false",
    "spark.python.task.killTimeout": "10min",  # the attempt that stands still is not needed, but not killed either
}


@pytest.fixture(scope="module")
def bootstrap(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    jars = programs(RELEASE).jars
    node = RealNode.alone(tmp_path_factory.mktemp("kafka"))
    node.format(jars)
    with node.running(jars):
        yield node.address()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with SparkCluster.running(tmp_path_factory.mktemp("spark"), 3) as cluster:
        yield cluster


@pytest.fixture
def rows(bootstrap: str, tmp_path: Path) -> Rows:
    return Rows.new(bootstrap, tmp_path)


def test_an_attempt_that_stood_still_while_another_was_committed_adds_nothing(
    cluster: SparkCluster, rows: Rows
) -> None:
    """By speculation. It goes on when its micro-batch is over."""
    rows.grow(2)
    told = rows.query(2, "stop:0")
    stopped = Path(told["faultAt"])
    job = SparkJob(rows.folder / "log", cluster.master, SETTINGS | SPECULATION)
    try:
        job.begin(**told)
        until(lambda: stopped.exists() and len(rows.seen()) >= LIMIT)
        os.kill(int(stopped.read_text()), signal.SIGCONT)
        assert job.ended() is None
        until(lambda: len(rows.seen("read_uncommitted")) > len(rows.values))
        rows.grow(1)
        assert job.run(**rows.query(2)) is None
    finally:
        job.close()
    assert rows.all_are_seen_once()
    assert not rows.are_held_up()


def test_a_worker_that_is_killed_in_the_middle_of_its_task_loses_and_doubles_nothing(
    cluster: SparkCluster, rows: Rows
) -> None:
    rows.grow(3)
    told = rows.query(6, "stop:3")
    stopped = Path(told["faultAt"])
    job = SparkJob(rows.folder / "log", cluster.master, SETTINGS)
    try:
        job.begin(**told)
        until(lambda: stopped.exists() and bool(stopped.read_text()))
        cluster.kill_worker_of(int(stopped.read_text()))
        assert job.ended() is None
    finally:
        job.close()
    assert rows.all_are_seen_once()
