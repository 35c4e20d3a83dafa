"""The command in this process, against a broker in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import pytest

from tagwire.broker import Broker
from tagwire.cli import main
from tagwire.client import Admin, NewTopic, Producer
from tagwire.records import Record


class Ran(NamedTuple):
    """What a command did: its exit code, and what it wrote."""

    code: int
    out: str
    err: str


class Run(Protocol):
    def __call__(self, *arguments: object) -> Ran: ...


class Fill(Protocol):
    def __call__(self, records: Sequence[Record] = (), *, partitions: int = 1, partition: int | None = None) -> str: ...


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """Where a broker listens that all tests here share."""
    with Broker(fsync="never") as broker:
        yield broker.bootstrap


@pytest.fixture
def run(bootstrap: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `tagwire` with these arguments; its brokers are the shared one unless they say otherwise."""
    monkeypatch.setenv("TAGWIRE_BOOTSTRAP", bootstrap)

    def run(*arguments: object) -> Ran:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture
def fill(bootstrap: str, request: pytest.FixtureRequest) -> Fill:
    """Creates a topic of the test's own, puts records in it, and tells its name."""
    names = iter(f"{request.node.name[:100].translate(_NAME)}.{count}" for count in range(100))

    def fill(records: Sequence[Record] = (), *, partitions: int = 1, partition: int | None = None) -> str:
        name = next(names)
        with Admin(bootstrap) as admin:
            admin.create_topics([NewTopic(name, num_partitions=partitions, configs={"retention.ms": "-1"})])
        with Producer(bootstrap) as producer:
            for record in records:
                timestamp = record.timestamp if record.timestamp >= 0 else None
                producer.send(name, record.value, record.key, record.headers, timestamp, partition)
        return name

    return fill


# A test's name as a topic's: parameters stand in brackets.
_NAME = {ord(char): "-" for char in map(chr, range(128)) if not (char.isalnum() or char in "._-")}
