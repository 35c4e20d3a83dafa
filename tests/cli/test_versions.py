"""`tagwire versions`: what brokers serve, what they share, what tagwire speaks."""

from __future__ import annotations

import json

import pytest

from ..client.fake_broker import SERVED, FakeCluster


@pytest.fixture
def modern():
    with FakeCluster() as cluster:
        yield cluster


@pytest.fixture
def old():
    with FakeCluster() as cluster:
        cluster.served.clear()
        cluster.served.update({**SERVED, 0: (3, 9), 1: (4, 11), 3: (0, 2), 337: (0, 1)})
        yield cluster


def test_one_broker_shows_its_ranges_and_what_tagwire_speaks(run, modern):
    ran = run("versions", modern.bootstrap)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0].split() == ["API", "127.0.0.1", "tagwire"]
    assert lines[1].split() == ["Produce", "3-12", "12"]
    assert lines[-1] == "1 broker; everything tagwire uses is there."


def test_several_brokers_show_what_they_share(run, modern, old):
    ran = run("versions", f"{modern.bootstrap},{old.bootstrap}")
    assert ran.code == 0
    titles, *lines = [line.split() for line in ran.out.splitlines()]
    rows = {name: ranges for name, *ranges in lines}
    assert titles == ["API", modern.bootstrap, old.bootstrap, "both", "tagwire"]
    assert rows["Produce"] == ["3-12", "3-9", "3-9", "9"]
    assert rows["Metadata"] == ["0-12", "0-2", "0-2", "none"]
    assert rows["API"] == ["337", "-", "0-1", "-"]
    assert ran.out.splitlines()[-1] == "2 brokers; tagwire has no version in common for Metadata."


def test_json_tells_the_same_for_programs(run, modern, old):
    ran = run("versions", f"{modern.bootstrap},{old.bootstrap}", "--json")
    assert ran.code == 0
    rows = {row["api"]: row for row in map(json.loads, ran.out.splitlines())}
    assert rows["Produce"] == {
        "api": "Produce",
        "key": 0,
        "brokers": {modern.bootstrap: [3, 12], old.bootstrap: [3, 9]},
        "all": [3, 9],
        "tagwire": 9,
        "tagwire_range": [3, 12],
    }
    assert (rows["Metadata"]["all"], rows["Metadata"]["tagwire"]) == ([0, 2], None)
    unknown = rows["API 337"]
    assert (unknown["brokers"][modern.bootstrap], unknown["all"], unknown["tagwire_range"]) == (None, None, None)


def test_a_broker_that_cannot_be_reached_is_named(run, modern):
    with FakeCluster() as gone:
        address = gone.bootstrap
    ran = run("versions", f"{modern.bootstrap},{address}")
    assert (ran.code, ran.out) == (1, "")
    assert address in ran.err
    assert ran.err.count("\n") == 1
