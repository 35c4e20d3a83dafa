"""Times as a person says them, in every option that takes one."""

from __future__ import annotations

import json
import time

import pytest

from tagwire.cli.times import milliseconds
from tagwire.client import Admin
from tagwire.records import Record

NOW = 1_372_917_600.25  # 2013-07-04T06:00:00.250Z
MINUTE = 60_000


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("now", 0),
        ("-5m", 5 * MINUTE),
        ("-90s", 90_000),
        ("-2h", 120 * MINUTE),
        ("-1h30m", 90 * MINUTE),
        ("-1d", 1440 * MINUTE),
        ("-2w3d", 17 * 1440 * MINUTE),
        ("-0s", 0),
    ],
)
def test_a_time_is_said_from_now(text, ago):
    assert milliseconds(text, NOW) == 1_372_917_600_250 - ago


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("@1372917600250", 1_372_917_600_250),
        ("2013-07-04T06:00", 1_372_917_600_000),
        ("2013-07-04T08:00+02:00", 1_372_917_600_000),
        ("20130704", 1_372_896_000_000),
        ("1900-01-01", 0),
        ("-9999w", 0),
    ],
)
def test_a_time_is_said_by_the_calendar_or_the_clock_of_records(text, at):
    assert milliseconds(text, NOW) == at


@pytest.mark.parametrize(
    "text", ["", "-", "-5", "5m", "-5x", "-m", "-5m2h", "--5m", "@", "@-1", "yesterday", "-999999999w", "@" + "9" * 19]
)
def test_what_is_no_time_is_none(text):
    assert milliseconds(text, NOW) is None


@pytest.fixture
def hours(fill):
    """A topic with a record of two hours ago and one of a minute ago."""
    now = int(time.time() * 1000)
    return fill([Record(None, b"old", timestamp=now - 120 * MINUTE), Record(None, b"new", timestamp=now - MINUTE)])


@pytest.mark.parametrize(
    ("options", "values"),
    [
        (("--from", "-1h"), ["new"]),
        (("--from", "-3h"), ["old", "new"]),
        (("--to", "-1h"), ["old"]),
        (("--from", "now"), []),
        (("--from=-3h", "--to=-1h"), ["old"]),
        (("-o", "-3h:-1h"), ["old"]),
        (("-o", "-1h"), ["new"]),
    ],
)
def test_records_are_read_from_so_long_ago(run, hours, options, values):
    ran = run("consume", hours, "--raw", *options)
    assert (ran.code, ran.out.split()) == (0, values)


def test_groups_and_topics_are_moved_to_so_long_ago(run, hours, bootstrap):
    with Admin(bootstrap) as admin:
        admin.alter_group_offsets(f"g.{hours}", {(hours, 0): 0})
    for where, after in (("-1h", 1), ("-3h", 0), ("now", 2), ("@1", 0)):
        ran = run("groups", "offsets", "reset", f"g.{hours}", "--to", where, "--json")
        assert (ran.code, json.loads(ran.out)["after"]) == (0, after)
    ran = run("topics", "trim", hours, "--before", "-1h", "--json")
    assert (ran.code, json.loads(ran.out)["after"]) == (0, 1)


@pytest.mark.parametrize(
    "command",
    [
        ("consume", "t", "--from", "-5x"),
        ("consume", "t", "--to", "-5x"),
        ("replay", "t", "--files", "f", "--from", "-5x"),
        ("replay", "t", "--files", "f", "--to", "yesterday"),
        ("groups", "offsets", "reset", "g", "--to", "-5x"),
        ("topics", "trim", "t", "--before", "-5x"),
    ],
    ids=" ".join,
)
def test_what_is_no_time_is_refused_with_those_that_are(run, command):
    ran = run(*command)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "-5m, -2h or now" in ran.err
