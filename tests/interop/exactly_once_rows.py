"""The rows of a query of Spark that is written exactly once: what it reads, and what is seen of what it wrote."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

from tagwire.client import EARLIEST, LATEST, Admin, Client, NewTopic, Producer, Reader, TopicPartition

LIMIT: Final = 20
"""Rows of a micro-batch."""

_numbers = count()


@dataclass
class Rows:
    """A topic that a query of Spark reads, and the one that it writes; what it is told in all of a test."""

    bootstrap: str
    folder: Path
    source: str
    target: str
    values: list[bytes] = field(default_factory=list)

    @classmethod
    def new(cls, bootstrap: str, folder: Path) -> Rows:
        name = f"rows-{next(_numbers)}"
        with Admin(bootstrap) as admin:
            admin.create_topics([NewTopic(name, num_partitions=2), NewTopic(f"{name}-target", num_partitions=2)])
        return cls(bootstrap, folder, name, f"{name}-target")

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def grow(self, batches: int) -> None:
        """As many rows more as these micro-batches take."""
        new = [b"v%d" % number for number in range(len(self.values), len(self.values) + batches * LIMIT)]
        with Producer(self.bootstrap) as producer:
            for number, value in enumerate(new):
                producer.send(self.source, value, partition=number % 2)
        self.values += new

    def query(self, tasks: int = 3, fault: str = "", **options: str) -> dict[str, Any]:
        """The query, as a job is told it; a fault happens once for each of its names."""
        return {
            "bootstrap": self.bootstrap,
            "source": self.source,
            "target": self.target,
            "limit": str(LIMIT),
            "tasks": tasks,
            "checkpoint": str(self.checkpoint),
            "fault": fault,
            "faultAt": str(self.folder / fault.replace(":", "-")),
            "options": options,
        }

    def seen(self, isolation: str = "read_committed") -> list[bytes]:
        """What readers see, in no order."""
        starts = {(self.target, number): EARLIEST for number in range(2)}
        with Reader(self.bootstrap, starts, stop_at_end=True, isolation=isolation) as reader:
            return sorted(record.value or b"" for record in reader.records())

    def are_held_up(self) -> bool:
        """Whether something is open in the topic."""
        at = [TopicPartition(self.target, number) for number in range(2)]
        with Client(self.bootstrap) as client:
            ends = [
                client.list_offsets(dict.fromkeys(at, LATEST), isolation=level)
                for level in ("read_committed", "read_uncommitted")
            ]
        return ends[0] != ends[1]

    def all_are_seen_once(self) -> bool:
        return self.seen() == sorted(self.values)
