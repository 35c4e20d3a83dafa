"""A local Spark session for the jobs of this package: quiet, on this machine alone, running this Python.

What Java and Spark have to say goes into a log file, so that a person sees the job and not its engine.
Source of the settings: Spark's page on configuration.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tagwire.errors import ConfigError
from tagwire.spark.java import Java, end_java

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.shuffle.partitions": "16",
}
"""Settings that a job needs, of its own session or one that it is given."""

_CONTEXT = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
_JAVA = "Spark needs Java 17 or newer"


@contextmanager
def session(log: Path, given: SparkSession | None = None) -> Iterator[SparkSession]:
    """A session of its own with `SETTINGS`: of the Spark that already runs in this process, else of a local one.

    Args:
        log: file that takes the output of a local Spark; its directory exists.
        given: a session whose Spark it is to be of.

    Raises:
        ConfigError: there is no PySpark or no Java that can run it.
    """
    if given is not None:
        spark = given.newSession()
        _set(spark)
        yield spark
        return
    check_spark()
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    running = SparkContext._active_spark_context
    context = running
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # PySpark 4.3 about pandas 3, which nothing here uses
            context = running or _local(log)
            spark = SparkSession(context).newSession()
        _set(spark)
        yield spark
    except KeyboardInterrupt:
        # In the middle of a call to the JVM: the next call would get its result.
        if running is None:
            _leave_java()
            context = None
        raise
    finally:
        if running is None and context is not None:
            context.stop()


def _leave_java() -> None:
    """Ends Java without a word to it, so that the next session starts another."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    end_java()
    with SparkContext._lock:
        SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
        SparkSession._instantiatedSession = None


def _set(spark: SparkSession) -> None:
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)


def _local(log: Path) -> SparkContext:
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError

    java = _java()
    # Workers run `python3` of the PATH unless told otherwise, which in a virtual environment is another Python.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    conf = SparkConf(loadDefaults=False).setMaster("local[*]").setAppName("tagwire")
    for name, value in (_CONTEXT | SETTINGS).items():
        conf.set(name, value)
    gateway = None
    if SparkContext._gateway is None:
        with log.open("wb") as output:
            try:
                gateway = Java().launch(conf, output)
            except PySparkRuntimeError:
                raise ConfigError(_why_java_left(java, log)) from None
    with _own_interrupt():
        context = SparkContext(conf=conf, gateway=gateway)
    context.setLogLevel("ERROR")
    be_quiet_about_java()
    return context


def be_quiet_about_java() -> None:
    """Has no trace printed of what fails in Java, or with it, as it ends: the failure itself is raised."""
    for name in ("DataFrameQueryContextLogger", "py4j"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Some of it py4j logs as nobody's."""
    return record.module != "java_gateway"


@contextmanager
def _own_interrupt() -> Iterator[None]:
    """Ctrl-C stays what it was: a SparkContext takes it over when it starts."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def check_spark(given: SparkSession | None = None) -> None:
    """See whether a job can run here, before anything is written.

    Args:
        given: a session that runs already.

    Raises:
        ConfigError: there is no Java, or no PySpark that takes data sources in Python.
    """
    if given is None:
        _java()
    try:
        import pyspark.sql.datasource  # noqa: F401
    except ImportError as error:
        raise ConfigError(f"the job needs PySpark 4.0 or newer: pip install 'tagwire[spark]' ({error})") from None


def check_streams() -> None:
    """See whether a job that lands a stream can run: it reads with limits.

    Raises:
        ConfigError: PySpark does not stream from Python with limits.
    """
    try:
        import pyspark.sql.streaming.datasource  # noqa: F401
    except ImportError:
        raise ConfigError("landing needs PySpark 4.2 or newer: older ones read no stream with limits") from None


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None:
        raise ConfigError(f"{_JAVA}: there is no java on the PATH and JAVA_HOME is not set")
    if not os.access(java, os.X_OK):
        raise ConfigError(f"{_JAVA}: JAVA_HOME={home} holds no bin/java")
    return java


def _why_java_left(java: str, log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    if any("UnsupportedClassVersionError" in line for line in lines):
        return f"{_JAVA}: {java} is older"
    return f"{_JAVA}: {java} ended at once, saying {(lines or ['nothing'])[-1][:200]!r}"
