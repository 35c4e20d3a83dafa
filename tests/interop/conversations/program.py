"""A program: requests as plain values, in which what each broker decides for itself has a name."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, Protocol

UNKNOWN_PRODUCER: Final = 987_654
"""The id of a producer that never got one."""


class Symbols(Protocol):
    """What one broker has decided so far."""

    tag: str
    """Before the names of topics, groups and transactional ids, so that no two runs meet."""
    topic_ids: dict[str, str]
    producers: dict[str, tuple[int, int]]
    members: dict[str, str]
    numbers: dict[str, int]
    now: int
    older_epochs: int
    """How many epochs a group of KIP-848 has had when its first member is there."""


class Symbol(Protocol):
    """A value that is another one at each broker."""

    def of(self, symbols: Symbols) -> Any: ...


@dataclass(frozen=True)
class Named:
    """A name of the run's own: of a topic, a group, a transactional id."""

    name: str

    def of(self, symbols: Symbols) -> str:
        return symbols.tag + self.name


@dataclass(frozen=True)
class TopicId:
    topic: str

    def of(self, symbols: Symbols) -> str:
        nobody = base64.urlsafe_b64encode(self.topic.encode().ljust(16, b"\1")[:16]).decode().rstrip("=")
        return symbols.topic_ids.get(self.topic, nobody)


@dataclass(frozen=True)
class ProducerId:
    producer: str

    def of(self, symbols: Symbols) -> int:
        return symbols.producers.get(self.producer, (UNKNOWN_PRODUCER, 0))[0]


@dataclass(frozen=True)
class ProducerEpoch:
    producer: str
    more: int = 0

    def of(self, symbols: Symbols) -> int:
        return max(symbols.producers.get(self.producer, (UNKNOWN_PRODUCER, 0))[1] + self.more, -1)


@dataclass(frozen=True)
class Member:
    """The id that a member was given; until then, its own name."""

    member: str

    def of(self, symbols: Symbols) -> str:
        return symbols.members.get(self.member, self.member)


@dataclass(frozen=True)
class Number:
    """One that an answer told: the id of a fetch session, a generation."""

    name: str
    more: int = 0

    def of(self, symbols: Symbols) -> int:
        return symbols.numbers.get(self.name, 0) + self.more


@dataclass(frozen=True)
class Address:
    """An IP address of the run's own."""

    def of(self, symbols: Symbols) -> str:
        return ".".join(["10", *(str(byte) for byte in bytes.fromhex(symbols.tag[1:7]))])


@dataclass(frozen=True)
class Now:
    """The time of the run's start, in milliseconds, and some more."""

    more: int = 0

    def of(self, symbols: Symbols) -> int:
        return symbols.now + self.more


def resolved(value: Any, symbols: Symbols) -> Any:
    """The value with each symbol replaced by what it is at one broker."""
    if isinstance(value, Mapping):
        return {name: resolved(one, symbols) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [resolved(one, symbols) for one in value]
    return value.of(symbols) if hasattr(value, "of") else value


@dataclass(frozen=True)
class Step:
    """A request.

    Attributes:
        api: its name, such as "Produce".
        body: its JSON form, with symbols.
        learns: what the answer decides: "producer", "member", "session", "generation", "topics"; and under which name.
        connection: which of the run's connections it goes by.
    """

    api: str
    version: int
    body: Mapping[str, Any]
    learns: tuple[str, str] | None = None

    def __str__(self) -> str:
        learnt = f"  -> {self.learns[0]} {self.learns[1]}" if self.learns else ""
        return f"{self.api} {self.version} {dict(self.body)}{learnt}"


@dataclass(frozen=True)
class Program:
    """What is said: the topics first, which are there before the rest begins.

    Attributes:
        topics: name -> (partitions, configurations).
    """

    topics: Mapping[str, tuple[int, Mapping[str, str]]]
    steps: Sequence[Step]


Versions = Callable[[str], Sequence[int]]
"""The versions of an API that both brokers serve; none where one of them does not."""


@dataclass
class Talk:
    """What a vocabulary draws from: chance, and a rough idea of what the brokers know by now.

    Attributes:
        versions: of each API, those that both brokers serve.
        topics: with the number of their partitions.
        notes: what a vocabulary remembers, such as the next sequence of a producer in a partition.
    """

    random: Random
    versions: Versions
    topics: dict[str, int]
    notes: dict[Any, Any] = field(default_factory=dict)

    def version(self, api: str, lowest: int = 0, highest: int = 99) -> int:
        """Any of an API, the newest most often."""
        there = [version for version in self.versions(api) if lowest <= version <= highest]
        return there[-1] if self.random.random() < 0.4 else self.random.choice(there)

    def one_of(self, *values: Any) -> Any:
        return self.random.choice(values)

    def mostly(self, usual: Any, *others: Any, chance: float = 0.85) -> Any:
        """The usual value, or seldom one of the others."""
        return usual if not others or self.random.random() < chance else self.random.choice(others)

    def partition(self) -> tuple[str, int]:
        """Mostly one that exists."""
        topic = self.mostly(self.random.choice([*self.topics]), "nowhere", chance=0.96)
        return topic, self.mostly(self.random.randrange(self.topics.get(topic, 1)), 7, -1, chance=0.97)


Topics = dict[str, tuple[int, dict[str, str]]]
"""Name -> (partitions, configurations)."""


@dataclass(frozen=True)
class Subject:
    """What may be talked about.

    Attributes:
        topics: draws the topics.
        words: what makes a step -> how often, next to the others.
        prelude: what every program begins with.
    """

    topics: Callable[[Random], Topics]
    words: Mapping[Callable[[Talk], Step], float]
    prelude: Callable[[Talk], Sequence[Step]] = lambda talk: ()

    def program(self, seed: int, versions: Versions, steps: int) -> Program:
        """The program of a seed."""
        random = Random(seed)
        topics = self.topics(random)
        talk = Talk(random, versions, {name: partitions for name, (partitions, _) in topics.items()})
        said = list(self.prelude(talk))
        drawn = random.choices([*self.words], [*self.words.values()], k=max(0, steps - len(said)))
        return Program(topics, [*said, *(word(talk) for word in drawn)])
