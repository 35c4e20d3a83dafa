"""`tagwire headers`: check, list."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

LOCAL = """space = "local"
[[entries]]
key = 1114000
name = "app.name"
by = "IG"
"""


@pytest.fixture
def register(tmp_path: Path):
    def write(text: str, name: str = "headers.toml") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_check_counts_a_good_registers_headers(run, register):
    ran = run("headers", "check", register(LOCAL))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith("headers.toml: 1 header beside Kafka's own\n")


def test_check_tells_all_that_is_wrong_and_exits_1(run, register):
    ran = run("headers", "check", register(LOCAL + "[[entries]]\nkey = 5\nname = 'client.id'\n[[entries]]\nkey = 4\n"))
    assert ran.code == 1
    assert [line.partition(", ")[2] for line in ran.out.splitlines()] == [
        "entries[1]: key 5 of 'client.id' is in the kafka space, not local",
        "entries[2]: name is missing",
    ]


def test_check_tells_it_to_programs(run, register):
    path = register(LOCAL.replace("1114000", "5"))
    ran = run("headers", "check", path, "--json")
    assert ran.code == 1
    assert json.loads(ran.out) == {
        "file": str(path),
        "ok": False,
        "problems": [f"{path}, entries[0]: key 5 of 'app.name' is in the kafka space, not local"],
    }
    assert json.loads(run("headers", "check", register(LOCAL), "--json").out)["ok"] is True


def test_a_register_that_is_not_there_is_one_clear_line(run, tmp_path):
    ran = run("headers", "check", tmp_path / "none.toml")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"tagwire: {tmp_path}/none.toml: No such file or directory\n"


def test_list_shows_ranges_and_registered_keys(run, register):
    lines = run("headers", "list", register(LOCAL)).out.splitlines()
    assert any(line.split() == ["0x00100000", "0x0010FFFF", "local/infrastructure"] for line in lines)
    assert any(line.split()[:3] == ["1", "client.id", "kafka"] for line in lines if line)
    assert any(line.split() == ["1114000", "app.name", "local/infrastructure", "IG"] for line in lines)


def test_list_shows_the_old_scheme(run):
    lines = run("headers", "list", "--scheme", "old").out.splitlines()
    assert any(line.split() == ["-128", "-1", "local"] for line in lines)


def test_list_tells_it_to_programs(run, register):
    rows = [json.loads(line) for line in run("headers", "list", register(LOCAL), "--json").out.splitlines()]
    assert {"range": [0, 65535], "namespace": "kafka"} in rows
    (row,) = [row for row in rows if row.get("name") == "app.name"]
    assert (row["key"], row["by"], row["namespace"]) == (1114000, "IG", "local/infrastructure")


@pytest.mark.parametrize("scheme", ["older", "old"])
def test_a_scheme_that_is_unknown_or_not_the_registers_is_misuse(run, register, scheme):
    ran = run("headers", "list", register(LOCAL), "--scheme", scheme)
    assert (ran.code, ran.out) == (2, "")
    assert "--scheme" in ran.err


def test_list_refuses_a_register_that_breaks_the_rules(run, register):
    ran = run("headers", "list", register(LOCAL.replace("1114000", "5")))
    assert ran.code == 2
    assert "key 5 of 'app.name' is in the kafka space" in ran.err
