"""Kafka's published classes at the last release before 4.0 and at the newest, and a count of what they were asked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tagwire.spec import releases

from .peer import NotRunError, Peer

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

Count = Callable[[str], None]
Peers = Callable[[str], Peer]


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
            try:
                fetched[release] = Peer.fetch(release, MODULES[release])
            except NotRunError as error:
                pytest.skip(f"NOT RUN: {error}")
        return fetched[release]

    return of


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the counts, which a passing test cannot."""
    for line in COUNTS:
        terminalreporter.write_line(line)
