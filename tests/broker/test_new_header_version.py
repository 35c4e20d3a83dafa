"""Request header 3 as data: a spec of it, and a `headerVersions` that names it, on a real connection (KIP-1313)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

import tagwire
from tagwire import messages
from tagwire.client import Client
from tagwire.codec.annotate import annotate
from tagwire.errors import ConfigError, EncodeError, SpecError
from tagwire.rpc import Connection, RequestHeader, api_of, decode_request_header, encode_request_header

from ..capture.traffic import Talk, pcap

HEADER = """
{ "type": "header", "name": "RequestHeader", "validVersions": "1-3", "flexibleVersions": "2+",
  "fields": [
    { "name": "RequestApiKey", "type": "int16", "versions": "0+" },
    { "name": "RequestApiVersion", "type": "int16", "versions": "0+" },
    { "name": "CorrelationId", "type": "int32", "versions": "0+" },
    { "name": "ClientId", "type": "string", "versions": "1+", "nullableVersions": "1+", "ignorable": true,
      "flexibleVersions": "none" },
    { "name": "ClientInstanceId", "type": "uuid", "versions": "3+", "taggedVersions": "3+", "tag": 0 }
  ] }
"""
RESPONSE_HEADER = """
{ "type": "header", "name": "ResponseHeader", "validVersions": "0-2", "flexibleVersions": "1+",
  "fields": [
    { "name": "CorrelationId", "type": "int32", "versions": "0+" },
    { "name": "Load", "type": "int16", "versions": "2+" }
  ] }
"""
REQUEST = """
{ "apiKey": 47, "type": "request", "listeners": ["broker"], "name": "OffsetDeleteRequest", "validVersions": "0-1",
  "flexibleVersions": "1+", "headerVersions": { "0": "1", "1+": "3" },
  "fields": [ { "name": "GroupId", "type": "string", "versions": "0+", "entityType": "groupId" } ] }
"""
RESPONSE = """
{ "apiKey": 47, "type": "response", "name": "OffsetDeleteResponse", "validVersions": "0-1", "flexibleVersions": "1+",
  "headerVersions": { "0": "0", "1+": "2" },
  "fields": [ { "name": "Seen", "type": "string", "versions": "0+", "nullableVersions": "0+" } ] }
"""
INSTANCE = uuid.UUID(int=0x0123456789ABCDEF0123456789ABCDEF)

OffsetDelete = api_of(REQUEST, RESPONSE, request_header=HEADER, response_header=RESPONSE_HEADER)


def seen(call):
    said = call.header.fields.get("client_instance_id")
    return OffsetDelete.response(seen=None if said is None else str(said))


def test_a_header_version_that_is_data_travels_both_ways_beside_kafkas_own(broker):
    broker.register(OffsetDelete, seen)
    with Client(broker.bootstrap, apis=OffsetDelete, header_fields={"client_instance_id": INSTANCE}) as client:
        assert client.request(OffsetDelete.request(group_id="g")).seen == str(INSTANCE)
        assert client.request(OffsetDelete.request(group_id="g"), version=0).seen is None
        assert client.request(messages.MetadataRequest(topics=None)).brokers
        assert client.negotiated()["OffsetDelete"] == 0  # the lowest that was spoken


def test_its_bytes_are_those_of_its_spec(broker, connect):
    broker.register(OffsetDelete, seen)
    wire = connect(broker.bootstrap)
    header = "002f 0001 00000007 0004 74657374" + "01 00 10" + INSTANCE.bytes.hex()
    body = "02 67 00"
    frame = bytes.fromhex(header + body)
    wire.socket.sendall(len(frame).to_bytes(4, "big") + frame)
    answer = wire.socket.recv(200)
    assert answer[4:].hex() == "00000007" + "0000" + "00" + OffsetDelete.response(seen=str(INSTANCE)).encode(1).hex()
    read, position = decode_request_header(memoryview(frame), apis={47: OffsetDelete})
    assert (read.client_id, read.fields, frame[position:].hex()) == ("test", {"client_instance_id": INSTANCE}, "026700")
    assert encode_request_header(read, {47: OffsetDelete}) == frame[:position]
    shown = [(span.path, span.value) for span in annotate(OffsetDelete.request_header.spec, frame[:position], 3)]
    assert ("client_instance_id", str(INSTANCE)) in shown


def test_a_header_of_that_version_without_the_field_is_as_long_as_one_of_version_2():
    header = encode_request_header(RequestHeader(47, 1, 10, ""), {47: OffsetDelete})
    assert len(header) == 11
    read, _ = decode_request_header(memoryview(header), apis={47: OffsetDelete})
    assert read.fields == {"client_instance_id": uuid.UUID(int=0)}


def test_a_field_of_the_header_that_is_no_value_of_its_type_is_refused():
    connection = Connection("client", header_fields={"client_instance_id": "me"}, apis={47: OffsetDelete})
    with pytest.raises(EncodeError, match="client_instance_id"):
        connection.send(OffsetDelete.request(), 1)
    assert connection.send(OffsetDelete.request(), 0)


def test_header_fields_are_a_dict():
    with pytest.raises(ConfigError, match="header_fields"):
        Client("kafka-1:9092", header_fields=["client_instance_id"])


PROGRAM = """
import sys, uuid
from tagwire import cli, messages
from tagwire.broker import Broker
from tagwire.client import Client
from tagwire.rpc import RequestHeader, api_of, encode_request_header

me = uuid.UUID(int=7)
request, response = messages.OffsetDeleteRequest, messages.OffsetDeleteResponse
with Broker() as broker:
    broker.register((request, response), lambda call: response(error_code=call.header.fields["client_instance_id"].int))
    with Client(broker.bootstrap, header_fields={"client_instance_id": me}, apis=api_of(request, response)) as client:
        assert client.request(request(group_id="g")).error_code == 7
        assert client.metadata().brokers
header = encode_request_header(RequestHeader(47, 1, 3, "me", fields={"client_instance_id": me}))
frame = header + request(group_id="g").encode(1)
sys.argv = ["tagwire", "decode", "--frame", "--annotate", "--hex", (len(frame).to_bytes(4, "big") + frame).hex()]
sys.exit(cli.main())
"""


SHOW = "import sys; from tagwire import cli; sys.exit(cli.main())"


def ran_with(folder, program, *arguments):
    """What a program prints that runs the package in `folder`."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", program, *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def test_in_the_catalog_two_changed_files_are_a_new_header_version_and_nothing_else_is(tmp_path):
    package = Path(tagwire.__file__).parent
    shutil.copytree(package, tmp_path / "tagwire", ignore=shutil.ignore_patterns("__pycache__", "*.c"))
    catalog = tmp_path / "tagwire" / "spec" / "catalog"
    (catalog / "RequestHeader.json").write_text(HEADER.replace('"1-3"', '"0-3"'))
    for name, headers in (
        ("OffsetDeleteRequest", '{ "0": "1", "1+": "3" }'),
        ("OffsetDeleteResponse", '{ "0+": "0" }'),
    ):
        text = (catalog / f"{name}.json").read_text().replace('"validVersions": "0"', '"validVersions": "0-1"')
        stated = f'"headerVersions": {headers}, "flexibleVersions": "none"'
        (catalog / f"{name}.json").write_text(text.replace('"flexibleVersions": "none"', stated))
    shown = ran_with(tmp_path, PROGRAM)
    assert "header.client_instance_id" in shown
    assert "00000000-0000-0000-0000-000000000007" in shown
    assert "body.group_id" in shown

    header = "002f 0001 00000007 0004 74657374" + "01 00 10" + INSTANCE.bytes.hex()
    frame = bytes.fromhex(header + "0001 67 00000000")
    talk = Talk().open().client(len(frame).to_bytes(4, "big") + frame)
    (tmp_path / "capture.pcap").write_bytes(pcap(talk.packets()))
    (row,) = map(
        json.loads, ran_with(tmp_path, SHOW, "capture", "show", "capture.pcap", "--bodies", "--json").splitlines()
    )
    assert (row["client_id"], row["request"]["groupId"]) == ("test", "g")


WRONG = [
    ({}, "OffsetDeleteRequest: headerVersions: 1\\+ cannot have header version 3: RequestHeader has 0-2"),
    ({"request_header": HEADER}, "OffsetDeleteResponse: headerVersions: 1\\+ cannot have header version 2"),
    ({"request_header": RESPONSE_HEADER}, "ResponseHeader is no RequestHeader: a header of that name, of the fields"),
    ({"request_header": REQUEST}, "OffsetDeleteRequest is no RequestHeader"),
    ({"request_header": HEADER.replace("RequestApiVersion", "Flags")}, "RequestHeader is no RequestHeader"),
    ({"request_header": HEADER.replace('"ClientId"', '"Name"')}, "RequestHeader is no RequestHeader"),
    ({"request_header": HEADER.replace('"int16", "versions": "0', '"int16", "versions": "2')}, "is no RequestHeader"),
    ({"request_header": HEADER, "response_header": HEADER}, "RequestHeader is no ResponseHeader"),
]


@pytest.mark.parametrize(("headers", "said"), WRONG)
def test_headers_that_nothing_could_be_read_under_are_refused(headers, said):
    with pytest.raises(SpecError, match=said):
        api_of(REQUEST, RESPONSE, **headers)


def test_a_spec_without_header_versions_follows_the_headers_that_it_is_given():
    plain = [json.loads(text) for text in (REQUEST, RESPONSE)]
    for document in plain:
        del document["headerVersions"]
    api = api_of(*map(json.dumps, plain), request_header=HEADER)
    assert encode_request_header(RequestHeader(47, 1, 1, ""), {47: api}) == encode_request_header(
        RequestHeader(46, 1, 1, "")
    ).replace(b"\x00\x2e", b"\x00\x2f")
