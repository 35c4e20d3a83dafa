"""Spark for a command: started here, and gone with the command, however that ends."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def local_spark() -> Iterator[SparkSession]:
    """A session of `tagwire.spark.session`, whose log goes away with it.

    Raises:
        ConfigError: there is no PySpark or no Java that can run it.
    """
    folder = Path(tempfile.mkdtemp(prefix="tagwire-"))
    try:
        with leaving_at_once(folder=folder):
            from tagwire.spark.session import session

            with session(folder / "spark.log") as spark:
                yield spark
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def leaving_at_once(said: str = "interrupted", folder: Path | None = None) -> Iterator[None]:
    """Ctrl-C, SIGTERM and SIGHUP end the process at once, with one line and a shell's exit code, and Java with it.

    Python's own way is no use here: the exception would rise out of PySpark's waiting for an answer, and what clears up
    on the way would ask for more, which may take long or never end. A second signal does not wait for Java.

    Outside of the main thread, where signals never arrive, nothing is changed.

    Args:
        said: the line.
        folder: is removed.
    """

    from tagwire.spark.java import end_java

    def leave(number: int, frame: FrameType | None) -> None:
        for each in replaced:
            signal.signal(each, lambda number, frame: os._exit(128 + number))
        cursor = b"\x1b[?25h\n" if sys.stderr.isatty() else b""
        with suppress(OSError):
            os.write(2, cursor + f"tagwire: {said}\n".encode())
        end_java()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.getsignal(each) for each in _SIGNALS}
    # Who ignores a signal, as nohup does SIGHUP, goes on ignoring it.
    replaced = [each for each, handler in before.items() if handler is not signal.SIG_IGN]
    for each in replaced:
        signal.signal(each, leave)
    try:
        yield
    finally:
        for each in replaced:
            signal.signal(each, before[each])
