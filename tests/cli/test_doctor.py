"""`tagwire doctor`: its lines, its exit codes, and that it runs where the command itself cannot."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest

from tagwire.doctor import Finding
from tagwire.doctor.__main__ import main as without_command


@pytest.fixture
def finds(monkeypatch):
    """Makes the doctor find these."""

    def find(*findings: Finding) -> None:
        monkeypatch.setattr("tagwire.doctor.examine", lambda *given, **options: iter(findings))

    return find


WELL = Finding("java", "ok", "Java 17")
SLOW = Finding("kernels", "warning", "not compiled", "unset TAGWIRE_PURE")
BAD = Finding("workers", "problem", "python3 has no tagwire", "export PYSPARK_PYTHON=python")


@pytest.mark.parametrize(
    ("findings", "code", "last"),
    [
        ([WELL], 0, "all is well"),
        ([WELL, SLOW], 0, "1 warning"),
        ([BAD, SLOW, BAD], 1, "2 problems and 1 warning"),
    ],
)
def test_the_exit_code_says_whether_there_is_a_problem(run, finds, findings, code, last):
    finds(*findings)
    ran = run("doctor")
    assert (ran.code, ran.out.splitlines()[-1], ran.err) == (code, last, "")


def test_each_line_has_its_state_and_what_to_do(run, finds):
    finds(WELL, BAD)
    assert run("doctor").out.splitlines()[:3] == [
        "ok       java        Java 17",
        "problem  workers     python3 has no tagwire",
        "                     -> export PYSPARK_PYTHON=python",
    ]


def test_json_is_one_finding_a_line(run, finds):
    finds(WELL, BAD)
    ran = run("doctor", "--json")
    assert ran.code == 1
    assert [json.loads(line)["state"] for line in ran.out.splitlines()] == ["ok", "problem"]
    assert set(json.loads(ran.out.splitlines()[0])) == {"check", "state", "said", "advice"}


@pytest.mark.parametrize("arguments", [["nowhere"], ["--timeout", "0"], ["--nope"]], ids=" ".join)
def test_misuse_is_2(run, arguments):
    assert run("doctor", *arguments).code == 2


def test_brokers_come_from_the_argument_the_environment_or_the_properties(run, monkeypatch):
    asked = []
    monkeypatch.setattr("tagwire.doctor.examine", lambda properties, **options: asked.append(properties) or iter(()))
    run("doctor")  # TAGWIRE_BOOTSTRAP is set here
    run("doctor", "kafka-1:9092")
    monkeypatch.delenv("TAGWIRE_BOOTSTRAP")
    run("-X", "bootstrap.servers=kafka-2:9092", "-X", "client.id=me", "doctor")
    run("doctor")
    assert [given and given["bootstrap.servers"] for given in asked][1:] == ["kafka-1:9092", "kafka-2:9092", None]
    assert asked[0]["bootstrap.servers"].startswith("127.0.0.1:")
    assert asked[2]["client.id"] == "me"


def test_it_runs_where_the_command_itself_cannot(tmp_path, bootstrap):
    for name in ("typer", "rich", "pyspark"):
        (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError('No module named {name}', name='{name}')\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    command = [sys.executable, "-m", "tagwire.doctor", bootstrap, "-X", "client.id=doctor", "--json"]
    environment = {**os.environ, "PYTHONPATH": path}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    told = {finding["check"]: finding for finding in map(json.loads, ran.stdout.splitlines())}
    assert told["broker"]["state"] == "ok", ran
    assert told["pyspark"]["state"] == "ok"
    assert "pip install 'tagwire[spark]'" in told["pyspark"]["said"]
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_property_that_is_not_understood_stays_untold():
    command = [sys.executable, "-m", "tagwire.doctor", "-X", "sasl.password:hunter2"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "hunter2" not in ran.stderr


def interrupted():
    yield WELL
    raise KeyboardInterrupt


def test_where_the_command_cannot_run_ctrl_c_ends_the_doctor_quietly_with_130(monkeypatch, capsys):
    monkeypatch.setattr("tagwire.doctor.__main__.examine", lambda *given, **options: interrupted())
    assert without_command([]) == 130
    assert capsys.readouterr() == ("ok       java        Java 17\n", "")


def test_where_the_command_cannot_run_a_reader_that_has_seen_enough_leaves_its_answer(monkeypatch):
    monkeypatch.setattr("tagwire.doctor.__main__.examine", lambda *given, **options: iter([BAD]))
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as stdout:
        monkeypatch.setattr("sys.stdout", stdout)
        assert without_command([]) == 1


def test_where_the_command_cannot_run_what_the_terminal_cannot_show_is_an_escape(monkeypatch):
    found = Finding("java", "ok", "Java in /opt/é")
    monkeypatch.setattr("tagwire.doctor.__main__.examine", lambda *given, **options: iter([found]))
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, "ascii"))
    assert without_command([]) == 0
    assert written.getvalue().startswith(rb"ok       java        Java in /opt/\xe9")
