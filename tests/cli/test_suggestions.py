"""What somebody may have meant: topics, groups and configs that are not there are told with those that are."""

from __future__ import annotations

import pytest

from tagwire.client import Admin
from tagwire.suggestions import did_you_mean, near


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("flihgts", ["flights"]),
        ("FLIGHTS", ["flights"]),
        ("order", ["orders"]),
        ("x", []),
        ("", []),
    ],
)
def test_what_looks_alike_is_near(name, found):
    assert near(name, ["flights", "orders", "__consumer_offsets"]) == found


def test_a_name_from_the_wire_is_told_printably():
    assert did_you_mean("oders\x1b", ["orders\x1b"]) == r". Did you mean 'orders\\x1b'?"
    assert did_you_mean("x", ["orders"]) == ""


@pytest.mark.parametrize(
    "command",
    [
        ("consume", "{0}"),
        ("topics", "describe", "{0}"),
        ("topics", "alter", "{0}", "--partitions", "9"),
        ("topics", "trim", "{0}", "--before", "latest"),
        ("topics", "delete", "{0}"),
        ("configs", "describe", "topic/{0}"),
        ("configs", "alter", "topic/{0}", "--set", "retention.ms=1"),
        ("groups", "offsets", "reset", "newcomer", "--to", "latest", "--topic", "{0}"),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_a_topic_that_is_not_there_is_told_with_what_it_is_like(run, fill, command):
    topic = fill()
    ran = run(*(part.format(f"{topic}x") for part in command))
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert f"Did you mean '{topic}'" in ran.err


@pytest.mark.parametrize("command", [("groups", "describe"), ("groups", "delete")], ids=" ".join)
def test_a_group_that_is_not_there_is_told_with_what_it_is_like(run, fill, bootstrap, command):
    topic = fill()
    with Admin(bootstrap) as admin:
        admin.alter_group_offsets(f"readers of {topic}", {(topic, 0): 0})
    ran = run(*command, f"raeders of {topic}")
    assert (ran.code, ran.out) == (2, "")
    assert f"Did you mean 'readers of {topic}'" in ran.err


def test_a_config_that_is_not_there_is_told_with_what_it_is_like(run, fill):
    topic = fill()
    for command in (
        ("configs", "alter", f"topic/{topic}", "--set", "retention.sm=1"),
        ("topics", "create", f"{topic}.more", "--config", "retnetion.ms=1"),
    ):
        ran = run(*command)
        assert (ran.code, ran.out) == (2, "")
        assert "Did you mean 'retention.ms'" in ran.err
    assert "Did you mean 'topic'" in run("configs", "describe", f"topc/{topic}").err


def test_an_api_that_is_not_there_is_told_with_what_it_is_like(run):
    ran = run("capture", "show", "--api", "Fetc", "x.pcap")
    assert (ran.code, ran.out) == (2, "")
    assert "no API is called 'Fetc'. Did you mean 'Fetch'" in ran.err
