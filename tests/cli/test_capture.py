"""`tagwire audit`, `tagwire capture` and `tagwire tap`: from evidence to an answer."""

from __future__ import annotations

import gzip
import json
import re
import signal
import struct
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tagwire import messages
from tagwire.client import Client
from tagwire.rpc.headers import RequestHeader, encode_request_header

from ..capture.traffic import Talk, asks, offers, pcap, request, response, talk_frames

LINE = (
    "[2025-11-20 03:04:05,678] DEBUG Completed request:RequestHeader(apiKey={api}, apiVersion={version}, "
    "clientId={client}, correlationId=6) -- {{}},response:{{error_code=0}} from connection "
    "10.0.0.1:9092-10.0.0.8:61040-0;totalTime:2.4,securityProtocol:PLAINTEXT,principal:User:ANONYMOUS,"
    "listener:PLAINTEXT (kafka.request.logger)\n"
)


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    """A directory with a request log and a capture, both of clients that one release or another breaks."""
    folder = tmp_path / "evidence"
    folder.mkdir()
    log = "noise\n" + LINE.format(api="JOIN_GROUP", version=1, client="telegraf")
    log += LINE.format(api="PRODUCE", version=0, client="<b>netscaler</b>")
    (folder / "kafka-request.log.gz").write_bytes(gzip.compress(log.encode()))
    talk = Talk().open().client(asks(1)).broker(offers(1, Metadata=(0, 12)))
    password = messages.SaslAuthenticateRequest(auth_bytes=b"\0alice\0swordfish")
    talk.client(request(messages.SaslHandshakeRequest(mechanism="PLAIN"), 1, 2))
    talk.broker(response(messages.SaslHandshakeResponse(error_code=33), 1, 2))
    talk.client(request(password, 2, 3)).broker(response(messages.SaslAuthenticateResponse(), 2, 3))
    talk.client(request(messages.MetadataRequest(topics=None), 12, 4))
    talk.broker(response(messages.MetadataResponse(cluster_id="c"), 12, 4))
    (folder / "a.pcap").write_bytes(pcap(talk.packets()))
    return folder


def test_one_client_of_one_request_is_counted_as_one(run, tmp_path):
    log = tmp_path / "kafka-request.log"
    log.write_text(LINE.format(api="JOIN_GROUP", version=1, client="telegraf"))
    assert "\n1 client, 1 request; on 4.0.0: 1 breaks." in run("audit", log, "--target", "4.0.0").out


def test_audit_says_who_breaks_why_and_where_it_was_seen(run, evidence):
    ran = run("audit", evidence, "--target", "4.0.0,4.0.1")
    assert ran.code == 1
    rows = [line.split() for line in ran.out.splitlines()[:4]]
    assert rows[0] == ["software", "client", "id", "principal", "address", "requests", "4.0.0", "4.0.1"]
    assert rows[1] == ["-", "<b>netscaler</b>", "-", "10.0.0.8", "1", "breaks", "breaks"]
    assert rows[2] == ["-", "telegraf", "-", "10.0.0.8", "1", "breaks", "works"]
    assert rows[3] == ["librdkafka", "1.2.3", "billing", "User:alice", "10.0.0.9", "4", "works", "works"]
    assert "JoinGroup v1: 2-9 are served, the client was not seen to ask for versions (1 request," in ran.out
    assert f"{evidence}/kafka-request.log.gz at byte 6)" in ran.out
    assert "It works until Kafka 3.9." in ran.out
    assert "3 clients, 6 requests; on 4.0.0: 1 works, 2 break; on 4.0.1: 2 work, 1 breaks." in ran.out
    assert "Left out: 1 x a line that tells of no request" in ran.out


def test_audit_exits_with_0_where_nobody_breaks(run, evidence):
    assert run("audit", evidence / "a.pcap", "--target", "4.3").code == 0
    assert run("audit", evidence, "--target", "3.9").code == 0


def test_an_audit_of_brokers_alone_says_that_nobody_was_judged(run, tmp_path):
    log = tmp_path / "kafka-request.log"
    log.write_text(LINE.format(api="FETCH", version=8, client="broker-2-fetcher-0"))
    ran = run("audit", log, "--target", "4.0.0")
    assert (ran.code, ran.out) == (2, "")
    assert "no client's request in it" in ran.err
    assert "1 client, 1 request; on 4.0.0: 1 works." in run("audit", log, "--target", "4.0.0", "--brokers").out


def test_a_line_of_releases_is_judged_as_its_newest_patch(run, evidence):
    ran = run("audit", evidence, "--target", "4.0,4.0.0")
    assert "on 4.0 (as 4.0.2): 2 work, 1 breaks; on 4.0.0: 1 works, 2 break." in ran.out


def test_the_verdict_that_help_looks_for_is_there_without_a_target(run, evidence):
    (looked_for,) = re.findall(r'verdicts\["(.+?)"\]', run("audit", "--help").out)
    verdicts = [json.loads(line)["verdicts"] for line in run("audit", evidence, "--json").out.splitlines()]
    assert [list(each) for each in verdicts] == [[looked_for]] * len(verdicts)


def test_audit_tells_programs_the_same(run, evidence):
    ran = run("audit", evidence, "--target", "4.0.0", "--json")
    assert ran.code == 1
    assert "Left out: 1 x a line that tells of no request" in ran.err
    clients = {document["client_id"]: document for document in map(json.loads, ran.out.splitlines())}
    broken = clients["telegraf"]["verdicts"]["4.0.0"]
    assert (broken["outcome"], broken["works_until"]) == ("breaks", "3.9")
    (finding,) = broken["findings"]
    assert (finding["api"], finding["version"], finding["served"]) == ("JoinGroup", 1, "2-9")
    assert finding["evidence"] == [{"file": str(evidence / "kafka-request.log.gz"), "position": 6}]
    assert clients["billing"]["apis"]["Metadata"] == {"12": 1}
    assert clients["billing"]["asks_versions"] is True


class Page(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attributes):
        self.links += [value for name, value in attributes if name in ("src", "href", "xlink:href")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_data(self, data):
        self.text += data


def test_audit_writes_a_page_of_its_own_and_tables(run, evidence, tmp_path):
    out = tmp_path / "out"
    ran = run("audit", evidence, "--target", "4.0.0,4.3", "--out", out)
    assert str(out / "report.html") in ran.out
    page = Page()
    source = (out / "report.html").read_text()
    page.feed(source)
    assert page.open == []
    assert all(link.startswith("#client-") for link in page.links)
    assert "<script" not in source
    assert "<b>netscaler</b>" in page.text  # shown as it is, not taken as a tag
    assert "1 of 3 clients breaks on Kafka 4.3" in page.text
    assert "kafka-request.log.gz at byte" in page.text
    assert "Versions in use over time" in page.text
    observations = pq.read_table(out / "observations.parquet")
    assert observations.num_rows == 6
    assert set(observations["api"].to_pylist()) >= {"JoinGroup", "Produce", "Metadata"}
    verdicts = pq.read_table(out / "verdicts.parquet").to_pylist()
    assert {
        (row["client_id"], row["target"], row["outcome"]) for row in verdicts if row["client_id"] == "telegraf"
    } == {
        ("telegraf", "4.0.0", "breaks"),
        ("telegraf", "4.3", "works"),
    }
    assert not list(out.glob("*.part"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.log"], "nowhere.log: no such file, and no file in it"),
        (["{evidence}", "--target", "9.9"], "release='9.9'"),
    ],
)
def test_audit_says_what_is_wrong_in_one_line(run, evidence, arguments, said):
    ran = run("audit", *(argument.format(evidence=evidence) for argument in arguments))
    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_capture_show_prints_requests_with_their_answers(run, evidence):
    ran = run("capture", "show", evidence / "a.pcap")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert len(lines) == 4
    ends = r"10\.0\.0\.9:61040 > 10\.0\.0\.1:9092"
    said = rf"2023-11-14 22:13:20\.\d+  {ends}  billing  Metadata v12 #4  \d+ > \d+ bytes in 1\.000 ms"
    assert re.fullmatch(said, lines[3])


def test_capture_show_does_not_tell_how_long_it_took_where_the_capture_has_no_times(run, tmp_path):
    """As pcapng's simple packets have none."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        size = struct.pack("<I", len(body) + 12)
        return struct.pack("<I", kind) + size + body + size

    capture = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + block(1, struct.pack("<HHI", 1, 0, 0))
    frames = talk_frames()
    (tmp_path / "a.pcapng").write_bytes(
        capture + b"".join(block(3, struct.pack("<I", len(frame)) + frame) for frame in frames)
    )
    found = [json.loads(line) for line in run("capture", "show", tmp_path, "--json").out.splitlines()]
    assert {(each["time"], each["took_us"], each["response_bytes"] is None) for each in found} == {(-1, None, False)}
    shown = run("capture", "show", tmp_path).out
    assert "bytes answered" in shown
    assert " ms" not in shown


def test_the_requests_that_help_looks_for_are_told_by_its_options(run, evidence):
    (example,) = re.findall(r"capture show \S+ (.+) \| jq \.request\n", run("capture", "show", "--help").out)
    found = [
        json.loads(line) for line in run("capture", "show", evidence / "a.pcap", *example.split()).out.splitlines()
    ]
    assert found
    assert all(each["request"] is not None for each in found)


def test_capture_show_tells_errors_by_name(run, evidence):
    said = run("capture", "show", evidence / "a.pcap", "--api", "SaslHandshake").out
    assert said.endswith("bytes in 1.000 ms  UNSUPPORTED_SASL_MECHANISM (33)\n")


def test_capture_show_leaves_passwords_out_of_bodies(run, evidence):
    for form in ([], ["--json"]):
        ran = run("capture", "show", evidence / "a.pcap", "--bodies", *form)
        assert "swordfish" not in ran.out
        assert "AGFsaWNlAHN3b3JkZmlzaA" not in ran.out  # the same in base64
        assert "clusterId" in ran.out


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["--api", "Metadata"], ["Metadata"]),
        (["--api", "3", "--api", "17"], ["SaslHandshake", "Metadata"]),
        (["--errors"], ["SaslHandshake"]),
        (["--client", "librd", "--api", "18"], ["ApiVersions"]),
    ],
)
def test_capture_show_filters(run, evidence, filters, expected):
    ran = run("capture", "show", evidence / "a.pcap", "--json", *filters)
    assert [json.loads(line)["api"] for line in ran.out.splitlines()] == expected


def test_capture_show_prints_a_request_log_as_far_as_it_tells(run, evidence):
    path = evidence / "kafka-request.log.gz"
    ran = run("capture", "show", path)
    assert ran.code == 0
    ends = r"10\.0\.0\.8:61040 > 10\.0\.0\.1:9092"
    assert re.fullmatch(
        rf"2025-11-20 03:04:05\.675  {ends}  telegraf  JoinGroup v1 #6  in 2\.400 ms", ran.out.splitlines()[0]
    )
    row = json.loads(run("capture", "show", path, "--client", "telegraf", "--bodies", "--json").out)
    packets = json.loads(run("capture", "show", evidence / "a.pcap", "--bodies", "--json").out.splitlines()[-1])
    assert row.keys() == packets.keys()
    assert row["time"] + row["took_us"] == 1_763_607_845_678_000
    assert (row["request_bytes"], row["response_bytes"], row["error_codes"]) == (None, None, [])
    assert (row["position"], row["request"], row["response"]) == (6, "{}", "{error_code=0}")


def test_capture_show_says_where_nothing_failed_that_nothing_did(run, evidence):
    ran = run("capture", "show", evidence / "a.pcap", "--api", "Metadata", "--errors")
    assert (ran.code, ran.out, ran.err) == (0, "", "No such request failed.\n")


SWITCHED_OFF = "[2025-11-20 03:04:05,678] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n" * 3


@pytest.mark.parametrize("command", ["audit", "audit --json", "capture show", "capture show --json"])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (SWITCHED_OFF.encode(), ("3 x a line that tells of no request", "--set kafka.request.logger=DEBUG")),
        (b"", ("log4j2.yaml", "log4j.logger.kafka.request.logger=DEBUG, requestAppender")),
        (pcap([]), ("Capture the port where clients reach the broker", "kafka.request.logger=DEBUG")),
        (
            pcap(Talk().open().client(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(505)).packets()),
            ("under TLS, which cannot be read", "kafka.request.logger=DEBUG"),
        ),
    ],
    ids=["server.log", "empty", "no packets", "TLS"],
)
def test_evidence_without_a_request_is_an_error_that_says_how_to_get_some(run, tmp_path, command, content, says):
    path = tmp_path / "server.log"
    path.write_bytes(content)
    ran = run(*command.split(), path)
    assert (ran.code, ran.out) == (2, "")
    said = ran.err.splitlines()[-1]
    assert said.startswith(f"tagwire: {path}: no request in it")
    for part in says:
        assert part in said


def test_an_audit_that_saw_nothing_leaves_the_files_of_the_last_one(run, evidence, tmp_path):
    run("audit", evidence, "--out", tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    (tmp_path / "server.log").write_text(SWITCHED_OFF)
    assert run("audit", tmp_path / "server.log", "--out", tmp_path / "out").code == 2
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_tap_listens_records_and_ends_at_a_signal(run, bootstrap, tmp_path, number):
    command = [sys.executable, "-m", "tagwire", "tap", "--listen", "127.0.0.1:0", "--upstream", bootstrap]
    process = subprocess.Popen([*command, "--out", tmp_path], stdout=subprocess.PIPE, text=True)
    try:
        said = process.stdout.readline()
        address = re.fullmatch(r"Listening on (.*)\.\n", said)[1]
        with Client(address) as client:
            client.versions()
        process.send_signal(number)
        out, _ = process.communicate()
    finally:
        process.kill()
    assert process.returncode == 0
    assert re.fullmatch(r"1 connection, \d+ bytes\.\n", out)
    assert "ApiVersions" in run("capture", "show", tmp_path).out


def test_a_tap_that_was_started_by_nohup_goes_on_when_the_terminal_is_closed(bootstrap, tmp_path):
    command = ["nohup", sys.executable, "-m", "tagwire", "tap", "--listen", "127.0.0.1:0", "--upstream", bootstrap]
    process = subprocess.Popen([*command, "--out", tmp_path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        address = re.fullmatch(r"Listening on (.*)\.\n", process.stdout.readline())[1]
        process.send_signal(signal.SIGHUP)
        for _ in range(2):
            with Client(address) as client:
                client.versions()
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate()
    finally:
        process.kill()
    assert (process.returncode, out.partition(",")[0]) == (0, "2 connections")


def test_a_program_is_told_where_a_tap_listens_and_what_passed(bootstrap, tmp_path):
    command = [sys.executable, "-m", "tagwire", "tap", "--listen", "127.0.0.1:0", "--upstream", bootstrap, "--json"]
    process = subprocess.Popen([*command, "--out", tmp_path], stdout=subprocess.PIPE, text=True)
    try:
        with Client(json.loads(process.stdout.readline())["listening"]) as client:
            client.versions()
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate()
    finally:
        process.kill()
    passed = json.loads(out)
    assert passed.pop("bytes") > 0
    assert passed == {"connections": 1, "left_out": 0, "failure": None}


def test_a_question_in_a_version_that_nobody_here_knows_is_shown_with_its_refusal_and_so_is_what_follows(run, tmp_path):
    newer = encode_request_header(RequestHeader(18, 9, 1, "billing")) + b"\x01\x01\x00"
    refusal = messages.ApiVersionsResponse(error_code=35)
    refusal.api_keys.append(messages.ApiVersionsResponse.ApiVersion(api_key=18, max_version=4))
    talk = Talk().open().client(len(newer).to_bytes(4, "big") + newer).broker(response(refusal, 0, 1))
    talk.client(asks(2)).broker(offers(2))
    (tmp_path / "a.pcap").write_bytes(pcap(talk.packets()))
    shown = [
        json.loads(line)
        for line in run("capture", "show", tmp_path / "a.pcap", "--bodies", "--json").out.split("\n")[:2]
    ]
    assert [(one["version"], one["error_codes"]) for one in shown] == [(9, [35]), (3, [])]
    assert shown[0]["response"] == {"errorCode": 35, "apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 4}]}
