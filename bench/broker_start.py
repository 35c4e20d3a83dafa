"""Claim: a broker in a program starts in under 100 ms: every test can have its own.   make bench WHAT=broker_start"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from tagwire.broker import Broker
from tagwire.client import Producer

ROUNDS = 21
TOPICS = 20


def started(**options: object) -> float:
    """Milliseconds until a broker can be talked to; it is stopped again."""
    begun = time.perf_counter()
    with Broker(**options) as _:  # type: ignore[arg-type]
        return (time.perf_counter() - begun) * 1000


def acknowledged() -> float:
    """Milliseconds until a record that a program sends to a broker of its own is on the disk."""
    begun = time.perf_counter()
    with Broker() as broker, Producer(broker.bootstrap) as producer:
        producer.send("t", b"v").result()
        return (time.perf_counter() - begun) * 1000


def filled(data: Path) -> Path:
    with Broker(data, fsync="never") as broker, Producer(broker.bootstrap) as producer:
        for number in range(TOPICS):
            producer.send(f"t{number}", b"v" * 1000)
    return data


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        kept = filled(Path(directory) / "data")
        measured = {
            "start, nothing kept": [started() for _ in range(ROUNDS)],
            f"start on {TOPICS} topics": [started(data_dir=kept) for _ in range(ROUNDS)],
            "start to first record on the disk": [acknowledged() for _ in range(ROUNDS)],
        }
    for what, times in measured.items():
        print(f"{what:36} median {statistics.median(times):6.1f} ms   worst {max(times):6.1f} ms")


if __name__ == "__main__":
    main()
