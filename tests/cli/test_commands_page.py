"""docs/commands.md says what is so: its commands run, and `--json` is one JSON object a line with every command."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tagwire.client import Admin
from tagwire.records import Record

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
# What these commands do needs an authorizer, a password, a plan or features to update: their own tests have those.
ELSEWHERE = {"acls", "users", "quotas", "reassign", "upgrade", "unclean"}
REGISTER = 'space = "local"\n[[entries]]\nkey = 1114000\nname = "app.name"\n'


def commands():
    """The arguments of every command on the page; what follows a pipe, and the shells' own lines, are left out."""
    lines = [line.strip() for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("    ")]
    parts = [part.strip() for line in lines for part in line.split(" | ")]
    return [shlex.split(part)[1:] for part in parts if part.startswith("tagwire ")]


def test_the_page_has_commands():
    assert len(commands()) >= 8


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_every_command_of_the_page_is_understood(run, fill, bootstrap, arguments):
    fill()
    assert run(*arguments, "--help").code == 0  # its options are there
    if not {"kafka-1:9093", "response.bin", "encode", "schema", "specs/", "consume", *ELSEWHERE} & set(arguments):
        assert run(*arguments).code == (1 if "diff" in arguments else 0)


@pytest.mark.parametrize(
    "command",
    [
        ("topics",),
        ("topics", "list"),
        ("topics", "describe", "{topic}"),
        ("topics", "create", "{topic}", "--if-not-exists"),
        ("topics", "alter", "{topic}", "--partitions", "2", "--dry-run"),
        ("topics", "trim", "{topic}", "--before", "now", "--dry-run"),
        ("consume", "{topic}"),
        ("groups",),
        ("groups", "describe", "--all"),
        ("groups", "describe", "g.{topic}"),
        ("groups", "offsets", "reset", "g.{topic}", "--by", "1", "--dry-run"),
        ("groups", "offsets", "delete", "g.{topic}", "--dry-run"),
        ("configs",),
        ("configs", "describe", "topic/{topic}"),
        ("configs", "alter", "topic/{topic}", "--set", "retention.ms=-1", "--dry-run"),
        ("elect-leaders", "{topic}"),
        ("features",),
        ("versions",),
        ("lag",),
        ("lag", "--summary"),
        ("lag", "--members"),
        ("spec",),
        ("spec", "show", "FetchRequest"),
        ("spec", "diff", "4.2", "4.3"),
        ("headers",),
        ("headers", "check", "headers.toml"),
        ("decode", "MetadataRequest", "--version", "12", "--hex", "00010000"),
        ("decode", "MetadataRequest", "--version", "12", "--hex", "00010000", "--annotate"),
    ],
    ids=" ".join,
)
def test_json_is_one_object_a_line_and_nothing_else(run, fill, bootstrap, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "headers.toml").write_text(REGISTER)
    topic = fill([Record(None, b"v")])
    with Admin(bootstrap) as admin:
        admin.alter_group_offsets(f"g.{topic}", {(topic, 0): 0})
    ran = run(*(part.format(topic=topic) for part in command), "--json")
    assert ran.code == 0
    told = [json.loads(line) for line in ran.out.splitlines()]
    assert told
    assert all(isinstance(one, dict) for one in told)
