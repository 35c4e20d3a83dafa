"""Claims: a broker in a program starts in under 100 ms: every test can have its own. After a kill -9 one of 500
partitions starts within two seconds.   make bench WHAT=broker_start"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from rounds import arguments, sized

from tagwire.broker import Broker
from tagwire.client import Producer

ROUNDS = sized(21, 1)
TOPICS = sized(20, 2)
PARTITIONS = sized(500, 5)
KILLED_ROUNDS = sized(7, 1)


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


def many(data: Path) -> Path:
    """A directory of 500 partitions with some batches each."""
    with Broker(data, fsync="never", num_partitions=PARTITIONS) as broker, Producer(broker.bootstrap) as producer:
        for number in range(20 * PARTITIONS):
            producer.send("many", b"v" * 1000, partition=number % PARTITIONS)
    return data


def after_a_kill(data: Path) -> float:
    """Milliseconds until a broker can be talked to that has to check what a killed one left."""
    (data / ".kafka_cleanshutdown").unlink()
    return started(data_dir=data)


def main() -> None:
    arguments(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as directory:
        kept = filled(Path(directory) / "data")
        measured = {
            "start, nothing kept": [started() for _ in range(ROUNDS)],
            f"start on {TOPICS} topics": [started(data_dir=kept) for _ in range(ROUNDS)],
            "start to first record on the disk": [acknowledged() for _ in range(ROUNDS)],
        }
        large = many(Path(directory) / "many")
        # Alternately, so that what else the machine does meets both.
        pairs = [(started(data_dir=large), after_a_kill(large)) for _ in range(KILLED_ROUNDS)]
    clean, killed = map(list, zip(*pairs))
    measured[f"start on {PARTITIONS} partitions"] = clean
    measured["the same after a kill -9"] = killed
    for what, times in measured.items():
        print(f"{what:36} median {statistics.median(times):6.1f} ms   worst {max(times):6.1f} ms")
    ratio = statistics.median(killed) / statistics.median(clean)
    print(f"after a kill -9 it takes {ratio:.1f} times as long as after a clean stop (medians)")


if __name__ == "__main__":
    main()
