"""What a judge finds: its name, what is wrong in one sentence, and the events that show it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tests.simulation.history import Event, Operation


@dataclass(frozen=True, slots=True)
class Anomaly:
    """`events`: the shortest part of the history that shows it, in the order in which they happened."""

    name: str
    what: str
    events: tuple[Event, ...]

    def story(self) -> str:
        """The finding in lines to be read."""
        return "\n".join([f"{self.name}: {self.what}", *(f"  {event}" for event in self.events)])

    def __str__(self) -> str:
        return self.story()


def anomaly(name: str, what: str, *shown: Operation | Event | Iterable[Event]) -> Anomaly:
    """An anomaly that is shown by calls and events: each once, in their order."""
    events: dict[int, Event] = {}
    for part in shown:
        if isinstance(part, Event):
            events.setdefault(part.index, part)
        else:
            for event in part.events if isinstance(part, Operation) else part:
                events.setdefault(event.index, event)
    return Anomaly(name, what, tuple(events[index] for index in sorted(events)))


def excerpt(operation: Operation, topic: str, partition: int, *offsets: int) -> list[Event]:
    """The events of a read with the records near `offsets` alone: those themselves, and their neighbours."""
    return [replace(event, value=_cut(event.value, topic, partition, offsets)) for event in operation.events]


def _cut(value: dict, topic: str, partition: int, offsets: tuple[int, ...]) -> dict:
    if "read" in value:
        read = [part for part in value["read"] if (part["topic"], part["partition"]) == (topic, partition)]
        return value | {"read": [part | {"records": _near(part["records"], offsets)} for part in read]}
    if "records" in value:
        return value | {"records": _near(value["records"], offsets)}
    return value


def _near(records: list[list], offsets: tuple[int, ...]) -> list[list]:
    kept = set()
    for offset in offsets:
        before = [at for at, _ in records if at < offset]
        after = [at for at, _ in records if at > offset]
        kept |= {offset, *before[-1:], *after[:1]}
    return [record for record in records if record[0] in kept]
