"""KIP-35's version 1 that must not be used, from its spec to every place that tells of it, and on a connection."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from tagwire.broker import Broker
from tagwire.client import Client
from tagwire.rpc import api_of

REQUEST = """
{ "apiKey": 9000, "type": "request", "name": "CountRequest", "validVersions": "0-2", "flexibleVersions": "none",
  "deprecatedVersions": "0",
  "doNotUseVersions": { "1": "counts what was deleted" },
  "fields": [] }
"""
RESPONSE = """
{ "apiKey": 9000, "type": "response", "name": "CountResponse", "validVersions": "0-2", "flexibleVersions": "none",
  "fields": [ { "name": "Version", "type": "int16", "versions": "0+" } ] }
"""
Count = api_of(REQUEST, RESPONSE)


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "CountRequest.json").write_text(REQUEST)
    (folder / "CountResponse.json").write_text(RESPONSE)
    return folder


@pytest.fixture
def bootstrap():
    with Broker() as broker:
        broker.register(Count, lambda call: Count.response(version=call.version))
        yield broker.bootstrap


def rows_of(out: str) -> dict[str, dict]:
    return {row["api"]: row for row in map(json.loads, out.splitlines()) if "api" in row}


def test_a_bad_version_that_was_back_ported_shows_everywhere_and_is_never_chosen(run, specs, bootstrap, caplog):
    checked = run("spec", "check", specs)
    assert checked.code == 0
    assert "versions 0-2, deprecated 0, do not use 1 (counts what was deleted)" in checked.out

    page = run("docs", "Count", "--specs", specs).out
    assert "Not to be used" in page
    assert "counts what was deleted" in page
    assert "Deprecated" in page
    files = specs.parent / "reference"
    assert run("docs", "--specs", specs, "--to", files).code == 0
    assert any("counts what was deleted" in found.read_text() for found in (files / "specs" / "Count").iterdir())

    shown = run("versions", bootstrap, "--specs", specs)
    line = next(line for line in shown.out.splitlines() if line.startswith("Count "))
    assert line.split() == ["Count", "0-2", "2", "deprecated", "0;", "do", "not", "use", "1"]
    assert "Count 1 must not be used: counts what was deleted" in shown.out
    row = rows_of(run("versions", bootstrap, "--specs", specs, "--json").out)["Count"]
    assert (row["all"], row["tagwire"]) == ([0, 2], 2)
    assert (row["deprecated"], row["do_not_use"]) == ("0", {"1": "counts what was deleted"})

    with caplog.at_level(logging.WARNING, "tagwire.client"):
        with Client(bootstrap, apis=Count) as client:
            assert client.request(Count.request()).version == 2
            assert client.request(Count.request(), version=1).version == 1
        assert caplog.messages == []
        with Client(bootstrap, apis=Count, exclude={"9000": [2]}) as client:
            assert client.request(Count.request()).version == 0
        assert len(caplog.messages) == 1
