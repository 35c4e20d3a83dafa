"""Kafka's published classes at the last release before 4.0 and at the newest, and a count of what they were asked."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tagwire.client import Client
from tagwire.client.versions import OURS
from tagwire.rpc import api_name, negotiate
from tagwire.spec import releases

from ..certificates import Certificates
from .built_wheel import built
from .peer import NotRunError, Peer
from .real_broker import RELEASES, RealBroker
from .real_node import RealNode

MODULES = {
    releases.patches("3.9")[-1]: (
        "kafka-group-coordinator",
        "kafka-metadata",
        "kafka-raft",
        "kafka-storage",
        "kafka-streams",
        "kafka-transaction-coordinator",
    ),
    releases.patches(releases.names()[-1])[-1]: (
        "kafka-group-coordinator",
        "kafka-metadata",
        "kafka-raft",
        "kafka-share-coordinator",
        "kafka-storage",
        "kafka-transaction-coordinator",
    ),
}
OLD, NEW = MODULES
COUNTS: list[str] = []
_COUNTS = "tagwire counts"
WORKER = "PYTEST_XDIST_WORKER"

Count = Callable[[str], None]
Peers = Callable[[str], Peer]
Programs = Callable[[str], RealBroker]


@contextmanager
def not_run_without() -> Iterator[None]:
    """What is fetched inside is needed: a test that cannot have it is skipped as NOT RUN."""
    try:
        yield
    except NotRunError as error:
        pytest.skip(f"NOT RUN: {error}")


@pytest.fixture(scope="session")
def count() -> Count:
    """Keeps a line for the end of the run."""
    return COUNTS.append


@pytest.fixture(scope="session")
def peers() -> Peers:
    """Release -> its classes. A test whose classes cannot be had is skipped as NOT RUN."""
    fetched: dict[str, Peer] = {}

    def of(release: str) -> Peer:
        if release not in fetched:
            with not_run_without():
                fetched[release] = Peer.fetch(release, MODULES[release])
        return fetched[release]

    return of


@pytest.fixture(scope="session")
def programs() -> Programs:
    """Release -> its broker's programs. A test whose jars cannot be had is skipped as NOT RUN."""

    def of(release: str) -> RealBroker:
        with not_run_without():
            return RealBroker.fetch(release)

    return of


@pytest.fixture(scope="session")
def kafka() -> RealBroker:
    """A broker of the newest release, with its command-line tools."""
    with not_run_without():
        return RealBroker.fetch(tools=True)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel with compiled kernels, built once, by whichever process asks first."""
    folder = tmp_path_factory.getbasetemp()
    if WORKER in os.environ:
        folder = folder.parent
    with open(folder / "wheel.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        place = folder / "wheel"
        if not place.is_dir():
            place.mkdir()
            return built(place)
        (wheel,) = place.glob("project/dist/tagwire-*.whl")
        return wheel


def ends_of(names: Sequence[str]) -> list[Any]:
    """The first and the last of these names; those between for `make nightly` alone."""
    return [pytest.param(name, marks=() if name in (names[0], names[-1]) else pytest.mark.nightly) for name in names]


_SHORT_HEARTBEATS = """
group.consumer.min.heartbeat.interval.ms=300
group.consumer.heartbeat.interval.ms=300
"""
"""Members of KIP-848 learn of what has changed by them: by Kafka's own every five seconds."""


@pytest.fixture(scope="session", params=ends_of(RELEASES))
def node(
    request: pytest.FixtureRequest,
    programs: Programs,
    certificates: Certificates,
    count: Count,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RealNode]:
    """A broker of one release after the other."""
    jars = programs(request.param).jars
    node = RealNode.alone(tmp_path_factory.mktemp(f"kafka-{request.param}"), certificates)
    node.settings = _SHORT_HEARTBEATS
    node.format(jars)
    with node.running(jars):
        with Client(node.address()) as client:
            shared = negotiate(OURS, client.versions())
        spoken = ", ".join(f"{api_name(api)} {shared[api]}" for api in (0, 1, 3, 9, 26))
        count(f"Kafka {request.param} and our client speak {len(shared)} of {len(OURS)} APIs, among them {spoken}")
        yield node


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Takes what a process of the run has counted."""
    COUNTS.extend(getattr(node, "workeroutput", {}).get(_COUNTS, ()))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if WORKER in os.environ:
        session.config.workeroutput[_COUNTS] = COUNTS  # type: ignore[attr-defined]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the counts, which a passing test cannot."""
    for line in COUNTS:
        terminalreporter.write_line(line)
