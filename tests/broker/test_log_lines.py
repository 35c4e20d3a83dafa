"""What the broker logs of its clients: one line each, which steers no terminal and has an end."""

from __future__ import annotations

import json
import logging
import struct

import pytest

from tagwire.broker.telemetry.log_format import logging_to_stderr

EVIL = "\x1b[2J\nERROR another line\u202e"


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_line_stays_a_line(form, capsys):
    with logging_to_stderr(form, "info"):
        logging.getLogger("tagwire.broker").info("closed on a request of %s", EVIL)
    told = capsys.readouterr().err
    assert told.endswith("\n")
    assert told[:-1].isprintable()
    if form == "json":
        assert json.loads(told)["message"].endswith(EVIL)


def test_a_traceback_stays_readable(capsys):
    with logging_to_stderr("text", "info"):
        try:
            raise ZeroDivisionError
        except ZeroDivisionError:
            logging.getLogger("tagwire.broker").exception("failed")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith("ERROR failed")
    assert lines[-1] == "ZeroDivisionError"


def test_what_an_error_says_is_one_line_of_its_traceback(capsys):
    with logging_to_stderr("text", "info"):
        try:
            try:
                raise ValueError(EVIL)
            except ValueError as error:
                raise LookupError(EVIL) from error
        except LookupError:
            logging.getLogger("tagwire.broker").exception("failed")
    lines = capsys.readouterr().err.split("\n")
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith("ERROR") for line in lines)
    assert sum(r"\x1b[2J\nERROR another line\u202e" in line for line in lines) == 2
    assert "Traceback (most recent call last):" in lines
    assert "The above exception was the direct cause of the following exception:" in lines


def test_a_clients_name_for_itself_is_escaped_and_cut(wire, caplog):
    name = (EVIL + "x" * 30_000).encode()
    body = struct.pack(">hhih", 999, 0, 7, len(name)) + name
    wire.socket.sendall(struct.pack(">i", len(body)) + body)
    assert wire.is_closed()
    (line,) = [record.getMessage() for record in caplog.records if "closed on" in record.getMessage()]
    assert line.isprintable()
    assert len(line) < 1000
    assert r"\x1b[2J" in line
