"""The command as a whole: help, version, exit codes, and one line for whatever goes wrong."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys

import pytest

import tagwire
from tagwire import kernel
from tagwire.records import Record

from .processes import start

COMMANDS = [
    ("topics",),
    ("topics", "list"),
    ("topics", "describe"),
    ("topics", "create"),
    ("topics", "alter"),
    ("topics", "trim"),
    ("topics", "delete"),
    ("produce",),
    ("consume",),
    ("groups",),
    ("groups", "list"),
    ("groups", "describe"),
    ("groups", "delete"),
    ("groups", "offsets", "reset"),
    ("groups", "offsets", "delete"),
    ("configs",),
    ("configs", "list"),
    ("configs", "describe"),
    ("configs", "alter"),
    ("versions",),
    ("broker",),
    ("doctor",),
    ("land",),
    ("log",),
    ("lag",),
    ("headers",),
    ("headers", "check"),
    ("headers", "list"),
    ("schema",),
    ("schema", "list"),
    ("schema", "show"),
    ("schema", "check"),
    ("schema", "register"),
    ("spec",),
    ("spec", "list"),
    ("spec", "check"),
    ("spec", "show"),
    ("spec", "diff"),
    ("decode",),
    ("encode",),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(run, command):
    ran = run(*command, "--help")
    assert ran.code == 0
    assert "Example" in ran.out
    assert ran.out.count(f"tagwire {' '.join(command)}") >= 2  # the usage line, and an example
    assert "\x1b" not in ran.out


@pytest.mark.parametrize("group", [("capture",), ("groups", "offsets")], ids=" ".join)
def test_a_group_that_lists_nothing_says_in_one_line_that_it_takes_a_command(run, group):
    said = f"tagwire: Missing command (see tagwire {' '.join(group)} --help)\n"
    assert run(*group) == (2, "", said)


def test_help_lists_every_command(run):
    listed = run("--help").out.partition("Commands:")[2]
    assert re.findall(r"^  (\S+)", listed, re.MULTILINE) == [
        "topics",
        "produce",
        "consume",
        "groups",
        "configs",
        "acls",
        "users",
        "quotas",
        "reassign",
        "elect-leaders",
        "features",
        "versions",
        "broker",
        "doctor",
        "audit",
        "capture",
        "tap",
        "land",
        "replay",
        "lag",
        "log",
        "spec",
        "headers",
        "schema",
        "decode",
        "encode",
        "docs",
    ]
    assert run().out == run("--help").out


def test_the_version_says_whether_kernels_are_compiled(run):
    said = run("--version").out
    assert said.startswith(f"tagwire {tagwire.__version__} ")
    assert ("kernels compiled" in said) == kernel.compiled
    assert ("not compiled" in said) != kernel.compiled


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from tagwire.cli import main; main(['--help']); main(['land', '--help']);"
        "heavy = {'pyarrow', 'pyspark', 'asyncio', 'rich', 'numpy', 'tagwire.client', 'tagwire.rpc'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["nope"], "nope"),
        (["--nope"], "--nope"),
        (["consume"], "TOPIC"),
        (["consume", "t", "--from", "yesterday"], "--from"),
        (["consume", "t", "--to", "x"], "--to"),
        (["consume", "t", "--follow", "--to", "5"], "--to"),
        (["consume", "t", "--limit", "0"], "--limit"),
        (["consume", "t", "--limit", "many"], "--limit"),
        (["consume", "t", "--partition", "-1"], "--partition"),
        (["consume", "t", "--bootstrap", "nowhere"], "--bootstrap"),
        (["consume", "t", "--bootstrap", "host:99999"], "--bootstrap"),
        (["topics", "nope"], "nope"),
        (["topics", "create"], "NAME"),
        (["topics", "create", "t", "--partitions", "0"], "--partitions"),
        (["topics", "create", "t", "--config", "retention.ms"], "--config"),
        (["topics", "create", "t", "--bootstrap", "x"], "--bootstrap"),
        (["produce", "t", "--compression", "bzip"], "--compression"),
        (["produce", "t", "--acks", "2"], "--acks"),
        (["produce", "t", "--header", "novalue"], "--header"),
        (["produce", "t", "--key", "k", "--key-separator", ":"], "--key-separator"),
        (["produce", "t", "--key-separator", ""], "--key-separator"),
        (["produce", "t", "--json", "--key", "k"], "--json"),
        (["produce", "t", "--keep-partitions"], "--keep-partitions"),
        (["produce", "t", "--file", "/does/not/exist"], "/does/not/exist"),
        (["versions", "host:1", "--bootstrap", "host:2"], "--bootstrap"),
        (["versions", "host"], "host"),
        (["broker"], "--data"),
        (["broker", "--data", "d", "--listen", "9092"], "--listen"),
        (["broker", "--data", "d", "--fsync", "sometimes"], "--fsync"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_misuse_is_told_in_one_line_that_names_it(run, tmp_path, monkeypatch, arguments, named):
    monkeypatch.chdir(tmp_path)
    ran = run(*arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("tagwire: ")
    assert ran.err.count("\n") == 1
    assert named in ran.err
    assert "--help)" in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["topcs"], "'topics'"),
        (["LAG"], "'lag'"),
        (["topics", "lsit"], "'list'"),
        (["groups", "offsets", "rset"], "'reset'"),
        (["topics", "--bootstap", "h:1"], "--bootstrap"),
        (["consume", "t", "--fron", "0"], "--from"),
        (["lag", "--sumary"], "--summary"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_misspelt_is_told_with_what_it_is_like(run, arguments, meant):
    ran = run(*arguments)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert meant in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["topics"],
        ["topics", "create", "t"],
        ["topics", "delete", "t"],
        ["consume", "t"],
        ["produce", "t", "--file", __file__],
    ],
    ids=" ".join,
)
def test_a_broker_that_cannot_be_reached_is_named_in_one_line(run, arguments):
    address = _free_address()
    ran = run(*arguments, "--bootstrap", address)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("tagwire: ")
    assert ran.err.count("\n") == 1
    assert address in ran.err


def test_an_address_that_cannot_be_listened_on_is_named(run, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for arguments in (
            ("docs", "--port", port),
            ("tap", "--listen", f"127.0.0.1:{port}", "--upstream", "127.0.0.1:1", "--out", tmp_path),
        ):
            ran = run(*arguments)
            assert (ran.code, ran.out) == (2, "")
            assert ran.err.startswith(f"tagwire: cannot listen on 127.0.0.1:{port}: ")
            assert "in use" in ran.err.lower()
    ran = run("tap", "--listen", "nobody.invalid:9093", "--upstream", "127.0.0.1:1", "--out", tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("tagwire: cannot listen on nobody.invalid:9093: ")


def test_a_reader_that_has_seen_enough_is_no_error(bootstrap, fill):
    topic = fill([Record(None, b"x" * 1000)] * 2000)
    command = f"'{sys.executable}' -m tagwire consume {topic} --full --bootstrap {bootstrap} | head -1"
    ran = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert ran.returncode == 0
    assert ran.stdout.startswith(f"{topic}/0@0")
    assert ran.stderr == ""


@pytest.mark.parametrize("command", ["spec diff 3.9 4.0", "log --verify", "headers check"])
def test_a_reader_that_has_seen_enough_does_not_change_an_answer(tmp_path, command):
    wrong = tmp_path / "wrong"
    (wrong / "t-0").mkdir(parents=True)
    (wrong / "t-0" / f"{0:020}.log").write_bytes(b"\xff" * 1000)
    (wrong / "headers.toml").write_text("[[header]]\nkey = 1\n")
    given = {"log --verify": wrong / "t-0", "headers check": wrong / "headers.toml"}.get(command, "")
    tagwire = f"'{sys.executable}' -m tagwire {command} {given}"
    for reader, code in (("cat", 1), ("head -c 1", 1), ("exec 0<&-; sleep 1", 1)):
        line = f"{tagwire} | ({reader}) >/dev/null; exit ${{PIPESTATUS[0]}}"
        ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        assert (reader, ran.returncode, ran.stderr) == (reader, code, "")


@pytest.mark.parametrize("command", ["spec list", "spec diff 3.9 4.0"])
def test_what_could_not_be_said_is_no_answer(command):
    line = f"'{sys.executable}' -m tagwire {command} >/dev/full"
    ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (2, "tagwire: No space left on device\n")


@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full"])
def test_without_a_standard_error_output_and_exit_code_are_the_same(tmp_path, where):
    log = tmp_path / "request.log"
    log.write_text("noise\n")
    for arguments, code in ((f"audit '{log}' --json", 2), ("topics --json", 2), ("spec list --json", 0)):
        command = f"'{sys.executable}' -m tagwire {arguments} {where}"
        environment = {**os.environ, "TAGWIRE_BOOTSTRAP": _free_address()}
        ran = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, env=environment, check=False)
        assert (arguments, ran.returncode) == (arguments, code)
        assert all(line.startswith(b"{") for line in ran.stdout.splitlines())


def test_ctrl_c_ends_a_follow_quietly_with_130(bootstrap, fill):
    topic = fill([Record(b"k", b"v")])
    with start("consume", topic, "--follow", "--bootstrap", bootstrap, text=True) as process:
        assert process.stdout.readline().startswith(f"{topic}/0@0")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert (process.returncode, said) == (130, "")


def test_progress_stays_on_the_terminal_and_out_of_the_output(bootstrap, fill):
    topic = fill([Record(b"k", b"v%d" % index) for index in range(5)])
    terminal, stderr = os.openpty()
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "tagwire", "consume", topic, "--json", "--bootstrap", bootstrap],
            stdout=subprocess.PIPE,
            stderr=stderr,
            check=True,
        )
        assert len(ran.stdout.splitlines()) == 5
        assert b"\x1b" not in ran.stdout
        shown = os.read(terminal, 65536)
        assert topic.encode()[:10] in shown
        assert b'"value"' not in shown
    finally:
        os.close(terminal)
        os.close(stderr)


def _free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"
