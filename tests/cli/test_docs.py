"""`tagwire docs`: the reference as text, as JSON, as files and on a loopback address."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tagwire.spec.api_keys import API_NAMES

from .processes import start

PROPOSAL = {
    "apiKey": 4321,
    "type": "request",
    "listeners": ["broker"],
    "name": "GreetRequest",
    "validVersions": "0-1",
    "deprecatedVersions": "0",
    "flexibleVersions": "1+",
    "fields": [{"name": "Name", "type": "string", "versions": "0+", "about": "Whom to greet."}],
}


@pytest.fixture
def proposal(tmp_path: Path) -> Path:
    directory = tmp_path / "proposal"
    directory.mkdir()
    (directory / "GreetRequest.json").write_text(json.dumps(PROPOSAL))
    response = {**PROPOSAL, "type": "response", "name": "GreetResponse"}
    del response["listeners"], response["deprecatedVersions"]
    (directory / "GreetResponse.json").write_text(json.dumps(response))
    return directory


def test_a_page_says_what_an_api_is_for_its_fields_releases_errors_and_versions(run):
    code, out, err = run("docs", "Heartbeat")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "Heartbeat"
    assert "GroupInstanceId  string  3-4       nullable; default null" in out.replace("    groupId", "")
    assert any(line.split()[:2] == ["NOT_COORDINATOR", "16"] for line in lines)
    assert any(line.startswith("2.8 or newer") and line.split()[-1] == "0-4" for line in lines)
    assert {"Version 4", "Version 0"} <= set(lines)


def test_a_version_is_asked_for_behind_an_at_sign_and_is_told_with_every_byte(run):
    code, out, _ = run("docs", "Heartbeat@v4")
    assert code == 0
    assert out.startswith("Heartbeat v4\n")
    assert out.count("hex: ") == 2
    assert run("docs", "heartbeat@4").out == out
    shown = next(line.removeprefix("hex: ") for line in out.splitlines() if line.startswith("hex: "))
    decoded = run("decode", "--frame", "--hex", shown, "--json")
    assert json.loads(decoded.out)["api"] == "Heartbeat"


@pytest.mark.parametrize(
    "name", ["FetchResponse", "fetch", "OffsetCommitValue", "TopicRecord", "errors", "kips", "diff"]
)
def test_pages_go_by_the_names_of_apis_messages_record_types_and_of_themselves(run, name):
    assert run("docs", name).code == 0


def test_a_name_that_is_not_there_is_told_with_one_that_may_be_meant(run):
    code, out, err = run("docs", "Fecth")
    assert (code, out) == (2, "")
    assert "Did you mean 'Fetch'?" in err
    assert "Heartbeat has no version 9: it has 0-4" in run("docs", "Heartbeat@v9").err
    assert "no page" in run("docs", "errors@v1").err or "is no API" in run("docs", "errors@v1").err


def test_json_is_one_object_with_each_field_and_of_a_version_with_each_byte(run):
    found = json.loads(run("docs", "Heartbeat@v4", "--json").out)
    assert found["api_key"] == 12
    assert [message["name"] for message in found["messages"]] == ["HeartbeatRequest", "HeartbeatResponse"]
    (version,) = found["details"]
    assert version["version"] == 4
    assert version["request"]["header_version"] == 2
    assert "".join(run["bytes"] for run in version["request"]["bytes"]) == version["request"]["hex"]


def test_specs_of_a_users_own_have_pages_with_what_they_mark(run, proposal):
    for arguments in (("--specs", proposal, "Greet"), (proposal / "GreetRequest.json",)):
        code, out, _ = run("docs", *arguments)
        assert code == 0
        assert "Whom to greet." in out
        assert "Deprecated by the spec of the request" in out


def test_all_pages_are_written_as_files_that_open_without_a_server(run, proposal, tmp_path):
    out = tmp_path / "reference"
    code, said, _ = run("docs", "--specs", proposal, "--to", out, "--json")
    assert code == 0
    told = json.loads(said)
    assert told["pages"] == len(list(out.rglob("index.html")))
    assert told["first"] == str(out / "index.html")
    assert (out / "specs" / "Greet" / "index.html").is_file()
    assert all((out / "apis" / name / "index.html").is_file() for name in API_NAMES.values())
    assert run("docs", "Fetch", "--to", out).code == 2


def test_without_a_name_all_pages_are_served_on_loopback_until_it_is_interrupted() -> None:
    with start("docs", "--no-browser", "--json", text=True) as process:
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            assert url.startswith("http://127.0.0.1:")
            with urlopen(f"{url}apis/Fetch", timeout=30) as answer:  # without the slash: it leads to the directory
                assert answer.url == f"{url}apis/Fetch/"
                assert b'id="v12"' in answer.read()
            with urlopen(f"{url}releases.csv", timeout=30) as answer:
                assert answer.read().startswith(b"release,")
            with pytest.raises(HTTPError, match="404"):
                urlopen(f"{url}apis/Nothing/", timeout=30)
            with pytest.raises(HTTPError, match="421"):  # a name of somebody else's that leads here
                urlopen(Request(url, headers={"Host": "example.org"}), timeout=30)
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_the_command_takes_no_longer_to_start_for_the_pages_it_does_not_make() -> None:
    told = "import sys, tagwire.cli.docs; print([name for name in sys.modules if name.startswith('tagwire.reference')])"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
