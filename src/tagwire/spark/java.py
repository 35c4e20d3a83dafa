"""The Java of a local Spark: started for this process, and ended with it, however that ends.

PySpark forgets the Java that it was about to start when it is interrupted, and takes away the directory in which that
would tell where it listens: such a Java then fails, and stays. So a Java gets a process group of its own, whose leader
is a guard: a shell that waits for the end of a pipe from this process, which no kill can keep open, and then ends the
group. Ctrl-C on the terminal goes to this process alone.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkConf

PATIENCE = 5
"""Seconds that Java has for taking away its temporary files; then it is killed."""

_MOMENT, _PAUSE = 0.5, 0.01

# The guard is told Java's process when that is known. Before, nothing is worth waiting for.
_GUARD = f"""
trap "" HUP INT QUIT TERM
java=
while read -r line; do java=$line; done
if [ -n "$java" ]; then
    kill -TERM 0
    left={PATIENCE * 10}
    while [ "$left" -gt 0 ] && kill -0 "$java"; do sleep 0.1; left=$((left - 1)); done
fi
kill -KILL 0
"""


_running: list[Java] = []


def end_java() -> None:
    """Ends every Java that this process has started: see `Java.end`. PySpark's own objects do not learn of it."""
    for java in tuple(_running):
        java.end()


atexit.register(end_java)


class Java:
    """A Java that listens for PySpark, and what ends it."""

    def __init__(self) -> None:
        null = subprocess.DEVNULL
        self._process: subprocess.Popen[bytes] | None = None
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD], stdin=subprocess.PIPE, stdout=null, stderr=null, process_group=0
        )
        _running.append(self)

    def launch(self, conf: SparkConf, output: Any) -> Any:
        """Starts it; the gateway to it.

        Args:
            output: file that takes what Java and Spark have to say.

        Raises:
            PySparkRuntimeError: it ended before it listened.
        """
        from pyspark.java_gateway import launch_gateway

        gateway = launch_gateway(conf, {"stdout": output, "stderr": output, "process_group": self._guard.pid})
        self._process = gateway.proc
        # One that PYSPARK_GATEWAY_PORT names is not ours.
        if self._process is not None and self._guard.stdin is not None:
            self._guard.stdin.write(b"%d\n" % self._process.pid)
            self._guard.stdin.flush()
        return gateway

    def end(self) -> None:
        """Ends it, and waits for that: a few tenths of a second, a little more than `PATIENCE` at most."""
        if self in _running:
            _running.remove(self)
        processes = [process for process in (self._process, self._guard) if process is not None]
        for process in processes:
            if process.stdin is not None:
                with suppress(OSError):
                    process.stdin.close()
        deadline = time.monotonic() + PATIENCE + 1
        # All that PySpark has started there: what it has not told of, too.
        with suppress(ChildProcessError):
            while time.monotonic() < deadline:
                if os.waitpid(-self._guard.pid, os.WNOHANG) == (0, 0):
                    time.sleep(_PAUSE)
        # What those had started is killed by now, too, and a moment later gone.
        deadline = time.monotonic() + _MOMENT
        with suppress(OSError):
            while time.monotonic() < deadline:
                os.killpg(self._guard.pid, 0)
                time.sleep(_PAUSE)
        for process in processes:
            process.poll()
