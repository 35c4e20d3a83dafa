"""One Spark for all tests of a process, given up for a new one after a test that was cut short.

PySpark asks its Java process over a socket. A test that is stopped between a question and its answer leaves that answer
to be read by the next one: everything after it is off by one. And it does not stop while PySpark, on its way out, waits
for another answer. So the process goes first, then the test.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import ExitStack, suppress
from pathlib import Path
from subprocess import Popen
from typing import TYPE_CHECKING

import pytest
from _pytest.runner import runtestprotocol

from .preloaded import python_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class RunningSpark:
    """The session that tests share; started when it is first asked for, and again when it was given up."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._session: SparkSession | None = None

    def session(self) -> SparkSession:
        from pyspark import SparkContext

        from tagwire.spark.session import SETTINGS, session

        SETTINGS["spark.sql.shuffle.partitions"] = "4"  # rows are few here, and each task of a shuffle takes a worker

        if self._session is None or SparkContext._active_spark_context is not self._session.sparkContext:
            self.stop()
            with pytest.MonkeyPatch.context() as patched:
                patched.setenv("PYTHONPATH", python_path())
                self._session = self._stack.enter_context(session(self._folder / "spark.log"))
        return self._session

    def stop(self) -> None:
        self._session = None
        with suppress(Exception):  # of a session whose Java is gone already
            self._stack.close()


def was_cut_short(error: BaseException) -> bool:
    """Whether a test ended by what is no Exception, which may come between any two steps, or with its Java."""
    java = _java()
    return not isinstance(error, (Exception, pytest.skip.Exception)) or (java is not None and java.poll() is not None)


ATTEMPTS = 4
_TOO_LATE = "worker to connect back", "worker failed to connect back"


def came_too_late(report: pytest.TestReport) -> bool:
    """Whether Spark did not wait for a worker: it gives its start ten seconds, and has no setting for them."""
    return report.failed and any(text in report.longreprtext + report.capstderr for text in _TOO_LATE)


def run_until_workers_are_in_time(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Runs a test, and on a machine that is too busy for Spark's limit again."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for _ in range(ATTEMPTS):
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        if not any(map(came_too_late, reports)):
            break
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def end_java() -> None:
    """Ends the Java process of this one, if there is any: who waits for its answer gets an error instead."""
    java = _java()
    if java is not None:
        java.kill()
        java.wait()


def _java() -> Popen[bytes] | None:
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkContext

    return None if SparkContext._gateway is None else SparkContext._gateway.proc


def give_up() -> None:
    """Ends the Java process and forgets it, so that the next session is of a new one."""
    end_java()
    if "pyspark" not in sys.modules:
        return
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway, context = SparkContext._gateway, SparkContext._active_spark_context
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that Java is gone
        if context is not None:
            context.stop()
        if gateway is not None:
            gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
