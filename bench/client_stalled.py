"""Claim: a record is delivered within 50 ms while another broker of the cluster has stopped reading, and one of a topic
that is new to the producer as well.   make bench WHAT=client_stalled

Two brokers of the client's tests, which answer from memory; one of them stops in the middle of what is sent to it.
`linger` is 0. What is measured is one record, from `send` to its answer, one after the other.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median

from rounds import alternate, arguments, sized

sys.path.insert(0, str(Path(__file__).parent.parent))

from tagwire.client import Client, Producer
from tagwire.errors import TagwireError
from tests.client.fake_broker import FakeCluster, Stalled

MIB = 1024 * 1024
RECORDS = sized(200, 5)
ROUNDS = sized(5, 1)


@contextmanager
def producer(*, stalls: bool) -> Iterator[tuple[FakeCluster, Producer]]:
    """A producer that has written to both brokers, of which the second one may have stopped since."""
    with FakeCluster(2) as cluster, Client(cluster.bootstrap, timeout=60) as client:
        cluster.topic("t", 2)
        made = Producer(client, batch_bytes=4 * MIB, buffer_memory=64 * MIB, linger=0)
        for partition in (0, 1):
            made.send("t", b"first", partition=partition).result(10)
        if stalls:
            stalled = Stalled()
            cluster.script("Produce", stalled)
            made.send("t", b"second", partition=1)
            stalled.begun.wait(10)
            for _ in range(24):
                made.send("t", bytes(MIB), partition=1)
        yield cluster, made
        with suppress(TagwireError):
            made.close(0.1)


def main() -> None:
    arguments(__doc__).parse_args()
    longest: dict[str, list[float]] = {"both answer": [], "one has stopped": []}
    found: dict[str, list[float]] = {name: [] for name in longest}

    def work(name: str) -> None:
        with producer(stalls=name == "one has stopped") as (cluster, made):
            taken = []
            for _ in range(RECORDS):
                started = time.perf_counter()
                made.send("t", b"v", partition=0).result(60)
                taken.append(time.perf_counter() - started)
            cluster.topic("new", 1)
            started = time.perf_counter()
            made.send("new", b"v").result(60)
            found[name].append(time.perf_counter() - started)
            longest[name].append(max(taken))
            medians[name].append(median(taken))

    medians: dict[str, list[float]] = {name: [] for name in longest}
    alternate({name: lambda name=name: work(name) for name in longest}, rounds=ROUNDS, warmup=1)
    print(f"milliseconds for a record, medians of {ROUNDS} rounds of {RECORDS}")
    print(f"  {'':20} {'median':>8} {'longest':>8} {'first of a new topic':>22}")
    for name in longest:
        figures = [median(kept[name][1:]) * 1000 for kept in (medians, longest, found)]
        print(f"  {name:20} {figures[0]:8.2f} {figures[1]:8.2f} {figures[2]:22.2f}")


if __name__ == "__main__":
    main()
