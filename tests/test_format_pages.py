"""The bytes that the pages about formats show are the bytes that the code writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tagwire import message_class, messages, records
from tagwire.errors import Error
from tagwire.records import Record
from tagwire.records.files.producer_snapshot import format_producer_snapshot
from tagwire.rpc import Connection

DOCS = Path(__file__).parents[1] / "docs"

STRUCTS = message_class("""{ "name": "Structs", "type": "data", "validVersions": "0", "flexibleVersions": "0+", "fields": [
  { "name": "A", "type": "One", "versions": "0+", "nullableVersions": "0+", "default": "null",
    "fields": [ { "name": "Text", "type": "string", "versions": "0+" }, { "name": "N", "type": "int32", "versions": "0+" } ] },
  { "name": "B", "type": "Two", "versions": "0+", "nullableVersions": "0+",
    "fields": [ { "name": "Text", "type": "string", "versions": "0+" }, { "name": "N", "type": "int32", "versions": "0+" } ] },
  { "name": "C", "type": "Three", "versions": "0+", "nullableVersions": "0+", "taggedVersions": "0+", "tag": 0, "default": "null",
    "fields": [ { "name": "Text", "type": "string", "versions": "0+" }, { "name": "N", "type": "int32", "versions": "0+" } ] },
  { "name": "D", "type": "Four", "versions": "0+", "nullableVersions": "0+", "taggedVersions": "0+", "tag": 1,
    "fields": [ { "name": "Text", "type": "string", "versions": "0+" }, { "name": "N", "type": "int32", "versions": "0+" } ] } ] }""")  # noqa: E501

FOO = message_class("""{ "apiKey": 9000, "type": "response", "name": "FooResponse", "validVersions": "0-9", "versionsWithOptional": "9+",
  "optionalFields": [ { "name": "UserAgent", "type": "string", "nullable": true, "tag": "0x0001" } ],
  "fields": [ { "name": "Foos", "type": "[]Foo", "versions": "0+",
    "optionalFields": [ { "name": "Bar", "type": "string", "tag": "0x0001", "default": "hello world" } ],
    "fields": [ { "name": "Baz", "type": "int16", "versions": "0+" } ] } ] }""")  # noqa: E501


def all_set() -> bytes:
    kinds = STRUCTS.One, STRUCTS.Two, STRUCTS.Three, STRUCTS.Four
    given = {name: kind(text=str(n), n=n) for n, (name, kind) in enumerate(zip("abcd", kinds), 1)}
    return STRUCTS(**given).encode(0)


def refused_api_versions() -> bytes:
    broker = Connection("broker", served={18: (0, 5)})
    header = bytes.fromhex("0012 0063 00000007 0000 00")
    broker.receive(len(header).to_bytes(4, "big") + header)
    entry = messages.ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=5)
    response = messages.ApiVersionsResponse(error_code=Error.UNSUPPORTED_VERSION, api_keys=[entry])
    return broker.send_response(broker.next_event(), response)


def snapshot() -> bytes:
    kind = messages.ProducerSnapshot
    entry = kind.ProducerEntry(
        producer_id=1,
        epoch=2,
        last_sequence=3,
        last_offset=4,
        offset_delta=5,
        timestamp=6,
        coordinator_epoch=7,
        current_txn_first_offset=-1,
    )
    return format_producer_snapshot(kind(producer_entries=[entry]))


def two_records() -> bytes:
    given = [Record(b"key1", b"value1", timestamp=283843), Record(b"key2", b"value2", timestamp=1234)]
    batch = bytearray(records.write(given))
    records.assign_offsets(batch, 0, -1)
    return bytes(batch)


def commit_marker() -> bytes:
    marker = records.write_end_transaction(
        commit=True, producer_id=73, producer_epoch=13, coordinator_epoch=347, timestamp=1_700_000_000_000
    )
    batch = bytearray(marker)
    records.assign_offsets(batch, 983, 29)
    return bytes(batch)


def int_headers() -> bytes:
    record = Record(b"k", b"v", headers=[(1, b"app"), (0x00100010, b"\1")], timestamp=1000)
    return records.write([record], dialect="int-headers", base_offset=5)


EXAMPLES = {
    "wire-format.md: nullable structs, all set": all_set,
    "wire-format.md: nullable structs, all null": lambda: STRUCTS(a=None, b=None, c=None, d=None).encode(0),
    "wire-format.md: nullable structs, at their defaults": lambda: STRUCTS().encode(0),
    "wire-format.md: a refusal of ApiVersions": refused_api_versions,
    "record-formats.md: a record batch": two_records,
    "record-formats.md: a COMMIT": commit_marker,
    "log-files.md: a producer snapshot": snapshot,
    "dialects.md: optional fields, one at its default": lambda: FOO(foos=[FOO.Foo(baz=7)]).encode(9),
    "dialects.md: optional fields": lambda: FOO(user_agent="x/1", foos=[FOO.Foo(bar="hey", baz=7)]).encode(9),
    "dialects.md: a version without optional fields": lambda: FOO(foos=[FOO.Foo(baz=7)]).encode(8),
    "dialects.md: int header keys": int_headers,
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_page_shows_the_bytes_that_are_written(example: str) -> None:
    page = (DOCS / example.partition(":")[0]).read_text(encoding="utf-8")
    assert EXAMPLES[example]().hex() in re.sub(r"[\s|]", "", page)
