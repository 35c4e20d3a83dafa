"""`tagwire decode --frame`: size, header and body of requests and answers."""

from __future__ import annotations

import base64
import io
import json
import sys

import pytest

from tagwire import messages
from tagwire.rpc.headers import RequestHeader, encode_request_header, encode_response_header

METADATA = messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name="flights")])


def framed(data):
    return len(data).to_bytes(4, "big") + data


REQUEST = framed(encode_request_header(RequestHeader(3, 12, 8, "app", {9: b"tag"})) + METADATA.encode(12))
ASKS = framed(encode_request_header(RequestHeader(18, 0, 7, "app")))
ANSWER = framed(encode_response_header(3, 12, 8) + messages.MetadataResponse(cluster_id="c").encode(12))
OLD_ANSWER = framed(encode_response_header(18, 3, 7) + messages.ApiVersionsResponse().encode(3))


def test_a_request_says_itself_what_it_is(run):
    ran = run("decode", "--frame", "--hex", REQUEST.hex())
    document = json.loads(ran.out)
    assert (ran.code, ran.err) == (0, "")
    assert (document["api"], document["version"], document["message"]) == ("Metadata", 12, "MetadataRequest")
    assert document["size"] == len(REQUEST) - 4
    assert (document["header"]["correlationId"], document["header"]["clientId"]) == (8, "app")
    assert document["body"]["topics"][0]["name"] == "flights"


def test_an_answer_is_read_as_what_was_asked_for(run):
    for name in ("Metadata", "MetadataResponse"):
        document = json.loads(run("decode", name, "--version", 12, "--frame", "--hex", ANSWER.hex()).out)
        assert (document["message"], document["header"], document["body"]["clusterId"]) == (
            "MetadataResponse",
            {"correlationId": 8},
            "c",
        )
    # ApiVersions is answered without tags in the header, whatever the version.
    document = json.loads(run("decode", "ApiVersions", "--version", 3, "--frame", "--hex", OLD_ANSWER.hex()).out)
    assert (document["header"], document["body"]["errorCode"]) == ({"correlationId": 7}, 0)


def test_frames_that_follow_each_other_are_a_line_each(run):
    ran = run("decode", "--frame", "--json", "--hex", (ASKS + REQUEST).hex())
    assert [json.loads(line)["api"] for line in ran.out.splitlines()] == ["ApiVersions", "Metadata"]


def test_a_header_that_is_wrong_is_told_at_its_byte_and_read_where_java_reads_it(run):
    wrong = REQUEST.replace(b"app", b"a\xffp")
    ran = run("decode", "--frame", "--json", "--hex", (ASKS + wrong).hex())
    assert f"RequestHeader v2, client_id at byte {len(ASKS) + 15}: not UTF-8" in ran.err
    ran = run("decode", "--frame", "--json", "--lenient", "--hex", (ASKS + wrong).hex())
    assert [json.loads(line)["header"]["clientId"] for line in ran.out.splitlines()] == ["app", "a\ufffdp"]


def test_every_byte_of_a_frame_is_annotated(run):
    data = ASKS + REQUEST
    ran = run("decode", "--frame", "--annotate", "--json", "--hex", data.hex())
    spans = [json.loads(line) for line in ran.out.splitlines()]
    assert b"".join(bytes.fromhex(span["bytes"]) for span in spans) == data
    assert [span["byte"] for span in spans][:2] == [0, 4]
    told = {span["field"]: span["value"] for span in spans if span["byte"] >= len(ASKS)}
    assert told["(size)"] == str(len(REQUEST) - 4)
    assert (told["header.correlation_id"], told["header.client_id"]) == ("8", "'app'")
    assert told["body.topics[0].name"] == "'flights'"
    shown = run("decode", "MetadataResponse", "--version", 12, "--frame", "--annotate", "--hex", ANSWER.hex()).out
    assert "header.(tags)" in shown
    assert "body.cluster_id" in shown


@pytest.mark.parametrize("way", ["hex", "hex with colons", "hex -", "base64", "base64 -", "file", "standard input"])
def test_bytes_come_in_every_way(run, tmp_path, monkeypatch, way):
    text = base64.b64encode(REQUEST).decode() if way.startswith("base64") else REQUEST.hex(" ")
    path = tmp_path / "frame.bin"
    path.write_bytes(REQUEST)
    typed = io.TextIOWrapper(io.BytesIO(REQUEST if way == "standard input" else f"{text}\n".encode()))
    monkeypatch.setattr(sys, "stdin", typed)
    options = {
        "hex": ("--hex", text),
        "hex with colons": ("--hex", REQUEST.hex(":")),
        "hex -": ("--hex", "-"),
        "base64": ("--base64", text),
        "base64 -": ("--base64", "-"),
        "file": ("--file", path),
        "standard input": (),
    }[way]
    ran = run("decode", "--frame", "--json", *options)
    assert (ran.code, json.loads(ran.out)["api"]) == (0, "Metadata")


@pytest.mark.parametrize(
    ("arguments", "data", "said"),
    [
        ((), ASKS[:-1], "frame at byte 0: claims 13 bytes, 12 are there"),
        ((), b"", "frame at byte 0: ends inside its size"),
        ((), b"\xff\xff\xff\xff" + ASKS, "frame at byte 0: claims -1 bytes"),
        ((), framed(b"\0\x03\0\x0c"), "at byte"),
        ((), framed(b"\x03\xe7\0\0\0\0\0\x01\xff\xff"), "no API has key 999"),
        ((), framed(ASKS[4:] + b"\0"), "at byte 17"),
        (("FetchRequest",), REQUEST, "the frame holds Metadata v12 (correlation id 8), which was not requested"),
        (("MetadataRequest", "--version", 9), REQUEST, "the frame holds Metadata v12"),
        (("Metadata",), ANSWER, "does not say which version it has: give --version"),
        (("Metadat", "--version", 1), ANSWER, "Did you mean 'Metadata"),
        (("MetadataResponse", "--version", 99), ANSWER, "no version 99"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_such_frame_is_told_in_one_line(run, arguments, data, said):
    ran = run("decode", *arguments, "--frame", "--hex", data.hex())
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert said in ran.err


def test_the_frames_before_a_broken_one_are_told(run):
    ran = run("decode", "--frame", "--json", "--hex", (ASKS + REQUEST[:3]).hex())
    assert (ran.code, json.loads(ran.out)["api"]) == (2, "ApiVersions")
    assert f"frame at byte {len(ASKS)}: ends inside its size" in ran.err


def test_what_can_be_read_of_a_broken_frame_is_annotated(run):
    ran = run("decode", "--frame", "--annotate", "--hex", framed(ASKS[4:] + b"\0").hex())
    assert ran.code == 2
    assert "header.client_id" in ran.out
    assert "at byte 17: 1 bytes follow the message" in ran.err


def test_a_body_alone_has_to_be_named(run):
    assert "'MESSAGE'" in run("decode", "--hex", "00").err
    assert "'--version'" in run("decode", "MetadataRequest", "--hex", "00").err
    assert run("decode", "--frame", "--base64", "?").code == 2
