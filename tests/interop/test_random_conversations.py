"""Kafka's broker and ours are asked the same by random programs of requests, and say the same; see conversations/.

A program has a seed, and one that is answered otherwise is printed as short as it gets. TAGWIRE_CONVERSATIONS=N runs N
programs of each subject, TAGWIRE_CONVERSATIONS=FIRST:N from that seed on; `python -m tests.interop.conversations` runs
them against a broker that is there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

import pytest

from .conftest import Count, Programs
from .conversations.kafka import SETTINGS, ours
from .conversations.running import Brokers, told
from .conversations.talks import SUBJECTS
from .real_broker import RELEASE
from .real_node import RealNode

PROGRAMS: Final = {
    "logs": 6,
    "transactions": 6,
    "transactions of version 2": 6,
    "groups": 6,
    "administration": 3,
    "all but administration": 4,
}
"""How many there are of each subject, unless it is said: half a minute of them."""

STEPS: Final = 60


def seeds(subject: str) -> range:
    """The seeds of its programs."""
    first, _, count = os.environ.get("TAGWIRE_CONVERSATIONS", "").rpartition(":")
    begin = int(first or 0)
    return range(begin, begin + int(count or PROGRAMS[subject]))


@pytest.fixture(scope="module")
def brokers(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    """Both, with nothing in them."""
    jars = programs(RELEASE).jars
    node = RealNode.alone(tmp_path_factory.mktemp(f"kafka-{RELEASE}"))
    node.settings = SETTINGS
    node.format(jars)
    with node.running(jars), ours(RELEASE) as broker:
        yield Brokers(node.address(), broker.bootstrap)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_random_programs_are_answered_alike(brokers: Brokers, subject: str, count: Count) -> None:
    before = brokers.asked
    ran = seeds(subject)
    for seed in ran:
        program = SUBJECTS[subject].program(seed, brokers.versions, STEPS)
        difference = brokers.run(program)
        if difference is not None:
            shortened = told(*brokers.shortened(program, difference))
            pytest.fail(f"seed {seed} of {subject!r} with Kafka {RELEASE}:\n{shortened}", pytrace=False)
    said = f"{brokers.asked - before} requests by the programs {ran.start} to {ran.stop - 1}"
    count(f"conversations about {subject}: Kafka {RELEASE} and ours answer {said} alike")
