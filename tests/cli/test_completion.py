"""What a shell offers when Tab is pressed; in processes, as shells ask, in the end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tagwire.cli import main
from tagwire.client import Admin

from ..client.fake_broker import FakeCluster, Silence
from ..values.registry_server import Answer, registry_server

SHELLS = ("bash", "zsh", "fish")


@pytest.fixture
def complete(bootstrap, monkeypatch, capsys):
    """What is offered behind a line, its last word begun; nothing may be said on stderr."""

    def complete(*words, **environment):
        line = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
        with monkeypatch.context() as during:
            asked = {"TAGWIRE_BOOTSTRAP": bootstrap, **environment, "_TAGWIRE_COMPLETE": "complete_bash", **line}
            for name, value in asked.items():
                during.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main([])
        said = capsys.readouterr()
        assert (ended.value.code, said.err) == (0, "")
        return said.out.split()

    return complete


@pytest.fixture
def named(fill, bootstrap):
    """A topic, and a group that has committed in it."""
    topic = fill()
    with Admin(bootstrap) as admin:
        admin.alter_group_offsets(f"readers-of-{topic}", {(topic, 0): 0})
    return topic


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("tagwire", "con"), ["consume", "configs"]),
        (("tagwire", "groups", "offsets", "re"), ["reset"]),
        (("tagwire", "lag", "--sum"), ["--summary"]),
        (("tagwire", "spec", "show", "FetchS"), ["FetchSnapshotRequest", "FetchSnapshotResponse"]),
        (("tagwire", "decode", "MetadataReq"), ["MetadataRequest"]),
        (("tagwire", "capture", "show", "--api", "Prod"), ["Produce"]),
        (("tagwire", "versions", "--against", "3.9"), ["3.9"]),
        (("tagwire", "configs", "describe", "broker_"), ["broker_logger/"]),
        (("tagwire", "acls", "add", "--operation", "alter"), ["alter", "alter_configs"]),
        (("tagwire", "acls", "list", "--resource-pattern-type", "p"), ["prefixed"]),
        (("tagwire", "users", "add", "--mechanism", "SCRAM-SHA-5"), ["SCRAM-SHA-512"]),
        (("tagwire", "quotas", "alter", "--reset", "prod"), ["producer_byte_rate"]),
        (("tagwire", "elect-leaders", "--election-type", "u"), ["unclean"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_commands_options_messages_and_apis_are_offered(complete, words, offered):
    assert complete(*words) == offered


def test_topics_and_groups_are_asked_of_the_cluster(complete, named):
    begun = named[:-1]
    for words in (("consume",), ("topics", "describe"), ("lag", "--topic"), ("land",), ("acls", "add", "--topic")):
        assert complete("tagwire", *words, begun) == [named]
    assert complete("tagwire", "configs", "describe", f"topic/{begun}") == [f"topic/{named}"]
    assert complete("tagwire", "features", "upgrade", "group.") == ["group.version="]
    for words in (("groups", "describe"), ("lag", "--group"), ("consume", "t", "--group")):
        assert complete("tagwire", *words, f"readers-of-{begun}") == [f"readers-of-{named}"]


def test_the_cluster_is_the_one_that_the_line_names(complete, named, bootstrap):
    nowhere = {"TAGWIRE_BOOTSTRAP": "127.0.0.1:1"}
    assert complete("tagwire", "consume", named, **nowhere) == []
    assert complete("tagwire", "consume", "--bootstrap", bootstrap, named, **nowhere) == [named]
    assert complete("tagwire", "consume", "-X", f"bootstrap.servers={bootstrap}", named, **nowhere) == [named]
    assert complete("tagwire", "-X", f"bootstrap.servers={bootstrap}", "consume", named, **nowhere) == [named]
    assert complete("tagwire", "topics", "--bootstrap", bootstrap, "describe", named, **nowhere) == [named]


def test_a_cluster_that_cannot_be_asked_offers_nothing_in_silence(complete):
    with FakeCluster() as silent:
        silent.topic("t")
        silent.script("Metadata", *[Silence()] * 9)
        assert complete("tagwire", "consume", "t", TAGWIRE_BOOTSTRAP=silent.bootstrap) == []
    assert complete("tagwire", "consume", "t", TAGWIRE_BOOTSTRAP="no address at all") == []
    assert complete("tagwire", "consume", "-X", "security.protocol=nonsense", "t") == []


def test_subjects_are_asked_of_the_registry(complete):
    with registry_server() as registry:
        registry.add("orders-value", '"int"')
        named = {"TAGWIRE_REGISTRY": registry.url}
        for command in ("show", "check", "register", "list"):
            assert complete("tagwire", "schema", command, "ord", **named) == ["orders-value"]
        assert complete("tagwire", "schema", "show", "--registry", registry.url, "ord") == ["orders-value"]
        registry.misbehave = lambda request: Answer(silence=30)
        assert complete("tagwire", "schema", "show", "ord", **named) == []
    assert complete("tagwire", "schema", "show", "ord", TAGWIRE_REGISTRY="no URL at all") == []


@pytest.mark.parametrize("shell", SHELLS)
def test_a_line_in_the_shells_start_file_is_all_it_takes(shell):
    environment = {**os.environ, "_TAGWIRE_COMPLETE": f"source_{shell}"}
    ran = subprocess.run(
        [sys.executable, "-m", "tagwire"], env=environment, capture_output=True, text=True, timeout=30, check=True
    )
    assert f"_TAGWIRE_COMPLETE=complete_{shell}" in ran.stdout


def test_bash_offers_what_the_command_tells_it(bootstrap, named, tmp_path: Path):
    command = tmp_path / "tagwire"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tagwire "$@"\n')
    command.chmod(0o755)
    script = (
        'eval "$(_TAGWIRE_COMPLETE=source_bash tagwire)"; '
        f"COMP_WORDS=(tagwire consume {named[:-1]}); COMP_CWORD=2; _tagwire_completion tagwire; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "TAGWIRE_BOOTSTRAP": bootstrap}
    ran = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=30, check=True
    )
    assert (ran.stdout, ran.stderr) == (f"{named}\n", "")
