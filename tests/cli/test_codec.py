"""`tagwire decode` and `tagwire encode`: one message as bytes and as JSON."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

METADATA = "0001000000"


def test_decode_prints_kafkas_json_form(run):
    ran = run("decode", "MetadataRequest", "--version", 12, "--hex", "00010000")
    assert ran.code == 0
    expected = {"topics": None, "allowAutoTopicCreation": True, "includeTopicAuthorizedOperations": False}
    assert json.loads(ran.out) == expected


def test_what_encode_writes_decode_reads(run, tmp_path: Path):
    value, data = tmp_path / "value.json", tmp_path / "value.bin"
    value.write_text('{"topics": [{"name": "é"}]}')
    assert run("encode", "MetadataRequest", "--version", 12, "--file", value, "--out", data).code == 0
    ran = run("decode", "MetadataRequest", "--version", 12, "--file", data)
    assert json.loads(ran.out)["topics"][0]["name"] == "é"
    assert run("encode", "MetadataRequest", "--version", 12, "--file", value).out.strip() == data.read_bytes().hex()


def test_annotate_says_what_every_byte_means(run):
    ran = run("decode", "MetadataRequest", "--version", 12, "--hex", "00010000", "--annotate")
    assert ran.code == 0
    lines = [line.split() for line in ran.out.splitlines()]
    assert lines[0][:3] == ["byte", "bytes", "field"]
    assert [line[:3] for line in lines[1:3]] == [
        ["0", "00", "topics[]"],
        ["1", "01", "allow_auto_topic_creation"],
    ]


def test_unknown_tags_that_json_cannot_carry_are_told(run):
    ran = run("decode", "MetadataRequest", "--version", 12, "--hex", "0001000105" + "01aa")
    assert ran.code == 0
    assert "leaves out unknown tags" in ran.err
    deeper = run("decode", "MetadataRequest", "--version", 12, "--hex", "02" + "00" * 16 + "00" + "010501aa" + "000000")
    assert "leaves out unknown tags" in deeper.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("MetadataRequest", "--version", 12, "--hex", "0001008000"),  # a count in more bytes than it needs
        ("MetadataRequest", "--version", 12, "--hex", "0001000005", "--lenient"),
        ("ListGroupsRequest", "--version", 3, "--hex", "00", "--lenient"),
        ("SaslHandshakeRequest", "--version", 1, "--hex", "7fff" + "ff" * 32767, "--lenient"),  # U+FFFD is three bytes
    ],
)
def test_bytes_that_are_written_otherwise_are_not_taken_for_tags(run, arguments):
    ran = run("decode", *arguments)
    assert (ran.code, ran.err) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--hex", "000100"), "MetadataRequest v12 at byte 3: ends inside a varint"),
        (("--hex", "000100", "--annotate"), "at byte 3"),
        (("--hex", "zz"), "'zz' is not hexadecimal"),
        (("--hex", "00", "--file", "x"), "exclude each other"),
        (("--file", "nowhere"), "nowhere: No such file"),
    ],
)
def test_bad_input_of_decode_is_one_line(run, arguments, said):
    ran = run("decode", "MetadataRequest", "--version", 12, *arguments)
    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_bad_input_of_encode_is_one_line(run, tmp_path: Path):
    value = tmp_path / "value.json"
    for text, said in (('{"topic": null}', "no such key"), ("{", "not JSON")):
        value.write_text(text)
        ran = run("encode", "MetadataRequest", "--version", 12, "--file", value)
        assert ran.code == 2
        assert said in ran.err


@pytest.mark.parametrize("command", [("decode", "--frame"), ("encode", "MetadataRequest", "--version", "12")])
def test_a_device_is_not_read_it_may_have_no_end(run, command):
    ran = run(*command, "--file", "/dev/null")
    assert (ran.code, "/dev/null: a device, where a file should be" in ran.err) == (2, True)


def test_record_batches_are_told_byte_by_byte(run):
    from tagwire import records

    batch = records.write([records.Record(b"key", b"value")])
    spans = [json.loads(line) for line in run("decode", "--records", "--json", "--hex", batch.hex()).out.splitlines()]
    assert b"".join(bytes.fromhex(span["bytes"]) for span in spans) == batch
    assert {"field": "batch[0].records[0].key", "value": "6b6579"}.items() <= spans[-3].items()
    cut = run("decode", "--records", "--hex", batch[:-1].hex())
    assert cut.code == 2
    assert "batch[0]" in cut.err
    assert run("decode", "MetadataRequest", "--records", "--hex", batch.hex()).code == 2


@pytest.mark.parametrize(
    ("arguments", "given", "says"),
    [
        (("decode", "FetchRequest", "--version", 4, "--hex", "-"), b"\xff\xfe", "standard input is no text"),
        (("decode", "FetchRequest", "--version", 4, "--base64", "-"), b"\xff\xfe", "standard input is no text"),
        (("encode", "FetchRequest", "--version", 4), b"\xff\xfe", "-: not JSON"),
        (("encode", "FetchRequest", "--version", 4), b"[" * 200_000, "-: not JSON"),
    ],
)
def test_what_standard_input_has_and_cannot_be_meant_is_told_in_one_line(run, monkeypatch, arguments, given, says):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given), "utf-8"))
    found = run(*arguments)
    assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
    assert says in found.err


def test_closed_standard_input_is_an_empty_one(run, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    found = run("decode", "FetchRequest", "--version", 4)
    assert (found.code, found.out, found.err.count("\n")) == (2, "", 1)
