"""Claim: a directory of captures of any size is audited in bounded memory, and its cost grows with its size.

    make bench WHAT=audit_volume          python bench/audit_volume.py 1 2.5 10

Directories of so many GiB, in files of half a GiB, gathered by Spark with two cores and a heap of 1 GiB, one after
another in one session. Told of each: seconds, and the most memory that the largest worker, and the JVM, had resident.
The files are written first, the largest directory's, and need its room under the temporary directory.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

from audit import BROKER, START, exchanges  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

from tagwire.capture import Endpoint  # noqa: E402
from tagwire.capture.recording import FILE_HEADER, Recording  # noqa: E402
from tagwire.spark.jobs.audit import gather  # noqa: E402

GIB = 1 << 30
FILE_BYTES = GIB // 2
CLIENTS = 50
REQUESTS = 200
LOOK_SECONDS = 0.2


def write_capture(path: Path, number: int) -> int:
    """A capture of clients of its own, who connect again and again; how many requests are in it."""
    (_, asked, offered), (_, sent, stored) = exchanges()
    block = bytearray()
    for client in range(1, CLIENTS + 1):
        recording = Recording(Endpoint(f"10.{number}.0.{client}", 20_000), BROKER)
        block += recording.opened(START) + recording.sent(asked, START, by_client=True)
        block += recording.sent(offered, START, by_client=False)
        for _ in range(REQUESTS):
            block += recording.sent(sent, START, by_client=True) + recording.sent(stored, START + 5, by_client=False)
        block += recording.closed(START)
    blocks = 0
    with open(path, "wb") as out:
        out.write(FILE_HEADER)
        while out.tell() < FILE_BYTES:
            out.write(block)
            blocks += 1
    return blocks * CLIENTS * (REQUESTS + 1)


def status(process: int) -> dict[str, str]:
    with suppress(OSError):
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return {}


def started_by(process: int) -> list[dict[str, str]]:
    """What is known of all processes that this one started, and that they did."""
    processes = [status(int(name)) for name in os.listdir("/proc") if name.isdigit()]
    found, parents = [], {str(process)}
    while children := [one for one in processes if one.get("PPid") in parents]:
        found += children
        parents = {one["Pid"] for one in children}
    return found


class Memory:
    """The most that the JVM, and the largest of Python's workers, had resident since `reset`, in MiB."""

    def __init__(self) -> None:
        self.reset()
        threading.Thread(target=self._look, daemon=True).start()

    def reset(self) -> None:
        self.java = self.worker = 0

    def _look(self) -> None:
        while True:
            for one in started_by(os.getpid()):
                resident = int(one.get("VmRSS", "0 kB").split()[0]) >> 10
                if one["Name"] == "java":
                    self.java = max(self.java, resident)
                elif one["Name"].startswith("python"):
                    self.worker = max(self.worker, resident)
            time.sleep(LOOK_SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", type=float, nargs="*", default=[1, 2.5, 10], help="in GiB")
    sizes = parser.parse_args().sizes
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, f"capture-{number:03}.pcap") for number in range(round(max(sizes) * GIB / FILE_BYTES))]
        written = [write_capture(path, number) for number, path in enumerate(files)]
        builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "1g")
        spark = (
            builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false").getOrCreate()
        )
        spark.sparkContext.setLogLevel("ERROR")
        memory = Memory()
        gather(spark, [str(files[0])])
        for size in sizes:
            wanted = [str(path) for path in files[: round(size * GIB / FILE_BYTES)]]
            memory.reset()
            started = time.perf_counter()
            census, losses = gather(spark, wanted)
            seconds = time.perf_counter() - started
            assert not losses.counts
            requests = sum(usage.count for usage in census.usages())
            assert requests == sum(written[: len(wanted)])
            print(
                f"  {size:5.1f} GiB {requests:12,} requests {seconds:7.1f} s {seconds / size:6.2f} s/GiB"
                f"   largest worker {memory.worker} MiB, JVM {memory.java} MiB",
                flush=True,
            )
        spark.stop()


if __name__ == "__main__":
    main()
