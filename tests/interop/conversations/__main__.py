"""`python -m tests.interop.conversations KAFKA`: as many seeds as are wanted, against a broker that runs."""

from __future__ import annotations

import argparse

from .kafka import ours
from .running import Brokers, told
from .talks import SUBJECTS


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kafka", help="host:port of a broker of Kafka of one node")
    parser.add_argument("--subject", choices=SUBJECTS, default="logs")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--release", default="4.3")
    asked = parser.parse_args()
    subject = SUBJECTS[asked.subject]
    seen: set[tuple[str, frozenset[str]]] = set()
    with ours(asked.release) as broker:
        brokers = Brokers(asked.kafka, broker.bootstrap)
        for seed in range(asked.first, asked.first + asked.seeds):
            program = subject.program(seed, brokers.versions, asked.steps)
            found = brokers.run(program)
            if found is None:
                continue
            kind = found.step.api, found.paths
            if kind in seen:
                print(f"seed {seed}: again {found.step.api} {sorted(found.paths)} {found.theirs} {found.ours}"[:600])
                continue
            seen.add(kind)
            print(f"=== seed {seed}\n{told(*brokers.shortened(program, found))}", flush=True)
        print(f"{asked.seeds} seeds, {brokers.asked} requests, known: {brokers.known}")


if __name__ == "__main__":
    main()
