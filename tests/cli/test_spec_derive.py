"""`tagwire spec derive`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

LICENCE = "// Kept: a licence.\n/* And { this. */\n"
REQUEST = (
    LICENCE
    + """{ "type": "request", "name": "FooRequest", "apiKey": 9000, "validVersions": "0-1",
  "flexibleVersions": "none", // what is inside is not kept
  "fields": [{ "name": "Id", "type": "int32", "versions": "0+", "about": "Which one." },] }"""
)
RESPONSE = """{ "type": "response", "name": "FooResponse", "apiKey": 9000, "validVersions": "0-1",
  "flexibleVersions": "1+", "fields": [] }"""
HEADER = """{ "type": "header", "name": "RequestHeader", "validVersions": "0-2", "flexibleVersions": "2+",
  "fields": [] }"""


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    folder = tmp_path / "specs"
    folder.mkdir()
    for name, text in (("FooRequest", REQUEST), ("FooResponse", RESPONSE), ("RequestHeader", HEADER)):
        (folder / f"{name}.json").write_text(text)
    return folder


def test_each_message_is_told_and_written_with_what_stood_before_it(run, specs, tmp_path):
    to = tmp_path / "next"
    ran = run("spec", "derive", specs, "--to", to, "--field", "TraceId:string")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "FooRequest: versions 0-2, optional fields in 2",
        "FooResponse: versions 0-1, tagged fields",
        "  FooResponse.TraceId: tagged field added: tag 0 (versions 1)",
        "RequestHeader: unchanged: a header's versions are named by other messages",
        "3 specs written: 2 changed, 1 with a new version; nothing breaks.",
    ]
    assert (to / "FooRequest.json").read_text() == LICENCE + (
        """{
  "type": "request",
  "name": "FooRequest",
  "apiKey": 9000,
  "validVersions": "0-2",
  "versionsWithOptional": "2+",
  "fields": [
    { "name": "Id", "type": "int32", "versions": "0+", "about": "Which one." }
  ],
  "optionalFields": [
    { "name": "TraceId", "type": "string", "tag": "0x0001", "nullable": true }
  ]
}
"""
    )
    assert (to / "RequestHeader.json").read_text() == HEADER
    assert run("spec", "check", to).code == 0
    assert run("spec", "diff", specs, to).code == 0


def test_it_is_told_to_programs(run, specs, tmp_path):
    ran = run("spec", "derive", specs, "--to", tmp_path / "next", "--field", "Hops:[]int32:0x0100", "--json")
    assert ran.code == 0
    rows = {row["message"]: row for row in map(json.loads, ran.out.splitlines())}
    assert rows["FooRequest"] == {
        "message": "FooRequest",
        "file": str(tmp_path / "next" / "FooRequest.json"),
        "versions": "0-2",
        "new_version": 2,
        "dialect": "optional",
        "unchanged": None,
        "findings": [],
    }
    assert rows["RequestHeader"]["unchanged"] == "a header's versions are named by other messages"
    assert '"tag": "0x0100"' in (tmp_path / "next" / "FooRequest.json").read_text()


def test_the_shipped_language_and_a_version_for_every_message_may_be_asked_for(run, specs, tmp_path):
    ran = run("spec", "derive", specs, "--to", tmp_path, "--dialect", "tagged", "--every", "--field", "Trace:uuid")
    assert ran.out.splitlines()[:2] == [
        "FooRequest: versions 0-2, tagged fields in 2",
        "FooResponse: versions 0-2, tagged fields in 2",
    ]


def test_a_version_that_is_unstable_stays_the_newest_of_its_api(run, specs, tmp_path):
    request = REQUEST.replace('"flexibleVersions": "none"', '"flexibleVersions": "1+", "latestVersionUnstable": true')
    (specs / "FooRequest.json").write_text(request)
    ran = run("spec", "derive", specs, "--to", tmp_path, "--dialect", "tagged", "--every", "--field", "Trace:uuid")
    assert ran.code == 0
    for name in ("FooRequest", "FooResponse"):
        text = (tmp_path / f"{name}.json").read_text()
        assert '"validVersions": "0-1"' in text
        assert '"Trace"' in text


def test_what_would_break_somebody_is_exit_code_1_and_nothing_is_written(run, specs, tmp_path):
    (specs / "RequestHeader.json").write_text(HEADER.replace('"0-2"', '"0-1"'))
    ran = run("spec", "derive", specs, "--to", tmp_path / "next", "--dialect", "tagged")
    said = "FooRequest.json: headerVersions: 2+ cannot have header version 2: RequestHeader has 0-1"
    assert (ran.code, ran.out) == (1, f"{said}\n")
    told = run("spec", "derive", specs, "--to", tmp_path / "next", "--dialect", "tagged", "--json")
    assert json.loads(told.out) == {"problem": said}
    assert not (tmp_path / "next").exists()


def test_files_are_written_over_only_if_it_is_said(run, specs, tmp_path):
    to = tmp_path / "next"
    assert run("spec", "derive", specs, "--to", to).code == 0
    before = (to / "FooRequest.json").read_text()
    again = run("spec", "derive", specs, "--to", to, "--field", "TraceId:string")
    assert again.code == 2
    assert "FooRequest.json, FooResponse.json, RequestHeader.json is there: --force writes over" in again.err
    assert (to / "FooRequest.json").read_text() == before
    assert run("spec", "derive", specs, "--to", specs).code == 2
    assert run("spec", "derive", specs, "--to", to, "--field", "TraceId:string", "--force").code == 0
    assert (to / "FooRequest.json").read_text() != before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "there is no such directory"),
        (["{empty}"], "there are no spec files"),
        (["{specs}", "--field", "TraceId"], "is no NAME:TYPE[:TAG]"),
        (["{specs}", "--field", "TraceId:text"], "is no NAME:TYPE[:TAG]"),
        (["{specs}", "--field", "TraceId:[]Row"], "is no NAME:TYPE[:TAG]"),
        (["{specs}", "--field", "TraceId:string:x"], "is no NAME:TYPE[:TAG]"),
        (["{specs}", "--field", "TraceId:string:70000"], "tag must be a number from 0 to 65535"),
        (["{specs}", "--field", "Id:string"], "FooRequest.json, Id: the name is already taken in this struct"),
        (["{specs}", "--dialect", "odd"], "odd"),
        (["{broken}"], "Broken.json: not JSON"),
    ],
)
def test_what_cannot_be_done_is_exit_code_2_and_nothing_is_written(run, specs, tmp_path, arguments, said):
    for name in ("empty", "broken"):
        (tmp_path / name).mkdir()
    (tmp_path / "broken" / "Broken.json").write_text("{")
    places = {name: str(tmp_path / name) for name in ("specs", "empty", "broken")}
    ran = run("spec", "derive", *(text.format(**places) for text in arguments), "--to", tmp_path / "next")
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert not (tmp_path / "next").exists()
