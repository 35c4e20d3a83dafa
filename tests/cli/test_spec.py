"""`tagwire spec`: check, show, diff."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

GOOD = """{ "type": "request", "name": "FooRequest", "apiKey": 9000, "validVersions": "0-1", "flexibleVersions": "1+",
  "fields": [{ "name": "Id", "type": "int32", "versions": "0+", "default": "-1", "about": "Which one." },] }"""
UNUSUAL = ("CreateTopicsRequest", "InitProducerIdRequest")


@pytest.fixture
def spec(tmp_path: Path):
    def write(text: str, name: str = "FooRequest.json") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return write


def test_check_names_a_good_files_message(run, spec):
    ran = run("spec", "check", spec(GOOD))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith("FooRequest.json: FooRequest, versions 0-1\n")


def test_check_tells_all_that_is_wrong_and_exits_1(run, spec):
    bad = spec(GOOD.replace("int32", "int7").replace('"0-1"', '"0+"'), "Bad.json")
    ran = run("spec", "check", bad, spec(GOOD))
    assert ran.code == 1
    assert "Bad.json: validVersions 0+ does not specify a maximum version" in ran.out
    assert "Bad.json, Id: 'int7' is no type" in ran.out
    assert "FooRequest, versions 0-1" in ran.out


def test_check_tells_it_to_programs(run, spec):
    ran = run("spec", "check", spec("{"), "--json")
    (row,) = map(json.loads, ran.out.splitlines())
    assert ran.code == 1
    assert row["ok"] is False
    assert "not JSON" in row["problems"][0]


def test_check_of_a_directory_checks_its_files_together(run, spec):
    request = spec(GOOD, "specs/FooRequest.json")
    ran = run("spec", "check", request.parent)
    assert ran.code == 1
    assert "FooRequest.json: apiKey 9000 has a request and no response" in ran.out
    spec(GOOD.replace("request", "response").replace("FooRequest", "FooResponse"), "specs/FooResponse.json")
    ran = run("spec", "check", request.parent)
    assert (ran.code, ran.out.splitlines()[-1]) == (0, f"{request.parent}: 2 messages")
    (request.parent / "empty").mkdir()
    assert "there are no spec files" in run("spec", "check", request.parent / "empty").err


MARKED = GOOD.replace(
    '"fields"', '"deprecatedVersions": "0", "doNotUseVersions": { "1": "for brokers alone" }, "fields"'
)


def test_check_and_show_tell_marked_versions(run, spec):
    path = spec(MARKED)
    assert run("spec", "check", path).out.endswith("versions 0-1, deprecated 0, do not use 1 (for brokers alone)\n")
    (row,) = map(json.loads, run("spec", "check", path, "--json").out.splitlines())
    assert (row["ok"], row["deprecated"], row["do_not_use"]) == (True, "0", {"1": "for brokers alone"})
    shown = run("spec", "show", path, "--version", 1).out.splitlines()
    assert "shown 1 (flexible, not to be used)" in shown[1]
    assert shown[2] == "do not use 1: for brokers alone"
    message = json.loads(run("spec", "show", path, "--json").out.splitlines()[0])
    assert message["do_not_use_versions"] == {"1": "for brokers alone"}


def test_diff_tells_marks_that_come_and_go_and_nothing_breaks(run, spec):
    old, new = spec(GOOD, "old.json"), spec(MARKED, "new.json")
    ran = run("spec", "diff", old, new)
    assert ran.code == 0
    assert ran.out.splitlines()[:2] == [
        "FooRequest: deprecated: served as before (versions 0)",
        "FooRequest: not to be used: for brokers alone (versions 1)",
    ]


def test_show_tells_the_header_version_of_a_version(run):
    assert run("spec", "show", "FetchRequest").out.splitlines()[1].endswith("header 0-11 under 1, 12+ under 2")
    assert "header 1, shown 11" in run("spec", "show", "FetchRequest", "--version", 11).out
    message = json.loads(run("spec", "show", "FetchResponse", "--json").out.splitlines()[0])
    assert message["header_versions"] == {"0-11": "0", "12+": "1"}


HEADER = (
    """{ "type": "header", "name": "RequestHeader", "validVersions": "1-3", "flexibleVersions": "2+", "fields": [] }"""
)


def test_check_knows_header_versions_by_the_headers_that_are_named_with_the_file(run, spec):
    request = spec(GOOD.replace('"fields"', '"headerVersions": { "0": "1", "1+": "3" }, "fields"'), "specs/Foo.json")
    ran = run("spec", "check", request)
    assert ran.code == 1
    assert ran.out == "Foo.json: headerVersions: 1+ cannot have header version 3: RequestHeader has 0-2\n"
    header = spec(HEADER, "specs/RequestHeader.json")
    assert run("spec", "check", request, header).code == 0
    together = run("spec", "check", request.parent).out
    assert "headerVersions" not in together
    assert "has a request and no response" in together


def test_show_marks_deprecated_and_unstable_versions(run):
    assert "deprecated 0-1" in run("spec", "show", "CreateTopicsRequest").out
    assert "unstable 6" in run("spec", "show", "InitProducerIdRequest").out
    assert "shown 1 (deprecated)" in run("spec", "show", "CreateTopicsRequest", "--version", 1).out


def test_show_tells_programs_of_deprecated_and_unstable_versions(run):
    first = [json.loads(run("spec", "show", name, "--json").out.splitlines()[0]) for name in UNUSUAL]
    assert [message["deprecated_versions"] for message in first] == ["0-1", "none"]
    assert [message["unstable_version"] for message in first] == [None, 6]


def test_show_marks_map_keys_and_encodings_of_a_fields_own(run):
    assert "map key" in run("spec", "show", "CreateTopicsRequest").out
    assert "compact in none" in run("spec", "show", "RequestHeader").out


def test_show_a_version_has_only_its_fields(run, spec):
    ran = run("spec", "show", "FetchRequest", "--version", 12)
    names = [line.split()[0] for line in ran.out.splitlines()]
    assert "Topics.Topic" in names
    assert "Topics.TopicId" not in names
    assert "default -1" in run("spec", "show", spec(GOOD)).out


def test_show_tells_it_to_programs(run, spec):
    message, row = map(json.loads, run("spec", "show", spec(GOOD), "--json").out.splitlines())
    assert (message["message"], message["api_key"], message["versions"]) == ("FooRequest", 9000, "0-1")
    assert (row["field"], row["type"], row["default"]) == ("Id", "int32", "-1")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("spec", "show", "NoSuchRequest"), "neither a message of Kafka's nor a spec file"),
        (("spec", "show", "FetchRequest", "--version", "99"), "has no version 99"),
        (("spec", "diff", "nowhere", "nowhere"), "no such file"),
    ],
)
def test_what_is_not_there_is_one_line_and_exit_code_2(run, arguments, said):
    ran = run(*arguments)
    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_diff_of_what_breaks_exits_1_and_says_so(run, spec):
    old = spec(GOOD, "old/FooRequest.json")
    new = spec(GOOD.replace("int32", "int64"), "new/FooRequest.json")
    ran = run("spec", "diff", old, new)
    assert ran.code == 1
    assert "FooRequest.Id: type changed: was int32, is int64 (versions 0-1)  BREAKS" in ran.out
    (row,) = map(json.loads, run("spec", "diff", old.parent, new.parent, "--json").out.splitlines())
    assert (row["rule"], row["field"], row["versions"], row["compatible"]) == ("type changed", "Id", [0, 1], False)


def test_diff_of_what_does_not_break_exits_0(run, spec):
    ran = run("spec", "diff", spec(GOOD), spec(GOOD, "again.json"))
    assert (ran.code, ran.out) == (0, "1 message compared, 0 of 0 findings break old or new.\n")


def test_diff_knows_the_tags_of_the_past(run, spec):
    def tagged(name: str) -> str:
        return f'{{ "name": "{name}", "type": "int32", "versions": "1+", "tag": 0, "taggedVersions": "1+" }}'

    past = spec(GOOD.replace("},]", f"}}, {tagged('Hint')}]"), "past/FooRequest.json")
    new = spec(GOOD.replace("},]", f"}}, {tagged('Trace')}]"), "new.json")
    assert run("spec", "diff", spec(GOOD), new).code == 0
    ran = run("spec", "diff", spec(GOOD), new, "--history", past.parent)
    assert ran.code == 1
    assert "tag reused" in ran.out


def test_a_message_that_is_gone_breaks(run, spec):
    old = spec(GOOD, "old/FooRequest.json")
    spec(GOOD.replace("Foo", "Bar"), "old/BarRequest.json")
    spec(GOOD, "new/FooRequest.json")
    ran = run("spec", "diff", old.parent, old.parent.parent / "new")
    assert ran.code == 1
    assert "BarRequest: message removed  BREAKS" in ran.out


def test_a_file_that_is_not_among_the_new_ones_breaks(run, spec):
    old, other = spec(GOOD, "old/FooRequest.json"), spec(GOOD.replace("Foo", "Bar"), "new/BarRequest.json")
    ran = run("spec", "diff", old, other.parent)
    assert ran.code == 1
    assert "FooRequest: message removed  BREAKS" in ran.out


def test_two_files_of_one_message_are_no_revision_but_may_be_a_history(run, spec):
    first, _ = spec(GOOD, "specs/A.json"), spec(GOOD, "specs/B.json")
    ran = run("spec", "diff", first.parent, first)
    assert (ran.code, ran.out) == (2, "")
    assert "2 files describe FooRequest; a revision has one" in ran.err
    assert run("spec", "diff", first, first, "--history", first.parent).code == 0


def test_a_pipe_in_a_directory_of_specs_is_passed_over_with_a_note(run, tmp_path):
    os.mkfifo(tmp_path / "PipeRequest.json")
    good = {"apiKey": 7000, "type": "request", "name": "AskRequest", "validVersions": "0", "flexibleVersions": "none"}
    (tmp_path / "AskRequest.json").write_text(json.dumps({**good, "listeners": [], "fields": []}))
    for command in (["spec", "check", tmp_path], ["spec", "diff", tmp_path, tmp_path]):
        ran = run(*command)
        assert f"{tmp_path / 'PipeRequest.json'}: not read, no file" in ran.err


def test_every_message_is_listed_with_the_releases_that_serve_it(run):
    told = [json.loads(line) for line in run("spec", "list", "--json").out.splitlines()]
    by_name = {row["message"]: row for row in told}
    assert by_name["FetchRequest"]["api_key"] == 1
    assert by_name["FetchRequest"]["releases"][0] == "0.8.2"
    assert by_name["RequestHeader"]["releases"] is None
    requests = run("spec", "list", "--type", "request").out.splitlines()
    assert len(requests) - 1 == sum(row["type"] == "request" for row in told)
    assert requests[0].split() == ["message", "type", "key", "versions", "releases"]
    headers = run("spec", "list", "--type", "header").out.splitlines()
    assert headers[1].split() == ["RequestHeader", "header", "0-2", "-"]  # and no key


def test_two_releases_are_compared_api_by_api_and_field_by_field(run):
    ran = run("spec", "diff", "3.9", "4.3", "--json")
    told = [json.loads(line) for line in ran.out.splitlines()]
    apis = {row["api"]: row for row in told if "api" in row}
    fields = {(row["message"], row["field"]): row for row in told if "field" in row}
    assert ran.code == 1  # Produce 0-2 and others went
    assert apis["Produce"] | {"note": ""} == {
        "api": "Produce",
        "api_key": 0,
        "old": [0, 11],
        "new": [3, 13],
        "note": "",
    }
    assert apis["Produce"]["note"] == "drops 0-2, adds 12-13"
    assert apis["ShareFetch"]["note"] == "comes"
    assert "ApiVersions" not in apis
    assert fields["ProduceRequest", "TopicData.TopicId"]["note"] == "comes"
    assert fields["OffsetCommitRequest", "Topics.Partitions.CommitTimestamp"]["note"] == "goes"
    assert not any(message.startswith("ShareFetch") for message, _ in fields)  # it came as a whole


def test_releases_between_which_nothing_went_are_told_with_exit_code_0(run):
    assert run("spec", "diff", "4.3", "4.3").out == "0 APIs differ; nothing that 4.3 serves is gone in 4.3.\n"
    ran = run("spec", "diff", "4.2", "4.3")
    assert ran.code == 0
    assert ran.out.splitlines()[-1].endswith("nothing that 4.2 serves is gone in 4.3.")


def test_a_release_that_is_not_known_is_told_with_those_that_are(run):
    ran = run("spec", "diff", "3.9", "9.9")
    assert (ran.code, ran.out) == (2, "")
    assert "release='9.9'" in ran.err
    assert run("spec", "diff", "3.9", "nowhere").code == 2


@pytest.mark.parametrize("arguments", [("2.8", "nosuch"), ("nosuch", "2.8")])
def test_of_a_release_and_what_is_none_the_one_that_is_none_is_told(run, arguments):
    ran = run("spec", "diff", *arguments)
    assert (ran.code, "release='nosuch': not in the table" in ran.err) == (2, True)


def test_a_misspelt_message_is_told_with_what_it_is_like(run):
    for command in (("spec", "show", "FetchReqest"), ("decode", "fetchrequest", "--version", 1, "--hex", "00")):
        ran = run(*command)
        assert (ran.code, ran.out) == (2, "")
        assert "Did you mean 'FetchRequest'" in ran.err
