"""The bytes that the pages show, each of them, are the bytes that the code writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tagwire import message_class, messages, records
from tagwire.errors import Error
from tagwire.records import Record
from tagwire.records.files.producer_snapshot import format_producer_snapshot
from tagwire.rpc import Connection

from . import hex_blocks, test_chapters

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
    told = Record(b"k", b"v", headers=[(1, b"app"), (0x00100010, b"\1")], timestamp=1000)
    bare = Record(None, b"v", timestamp=1000)
    return b"".join(records.write([each], dialect="int-headers", base_offset=at) for each, at in ((told, 5), (bare, 0)))


def key_prefix(key: int) -> bytes:
    """The byte that an int header key begins with; before it stand 30 bytes of a message, a size and a count."""
    return records.write([Record(None, b"", headers=[(key, b"")])], dialect="int-headers")[32:33]


def primitive(kind: str, version: int) -> bytes:
    """A null; version 1 is flexible, and ends with an empty tag section."""
    one = message_class(f"""{{ "name": "One", "type": "data", "validVersions": "0-1", "flexibleVersions": "1+",
        "fields": [ {{ "name": "Value", "type": "{kind}", "versions": "0+", "nullableVersions": "0+" }} ] }}""")
    return one(value=None).encode(version)[: -1 if version else None]


def uvarint(value: int) -> bytes:
    """As the tag of an empty value, the only one of a message."""
    bare = message_class(
        '{ "name": "A", "type": "data", "validVersions": "0", "flexibleVersions": "0+", "fields": [] }'
    )
    one = bare()
    one.unknown_tags = {value: b""}
    return one.encode(0)[1:-1]


def frame_of_api_versions() -> bytes:
    return Connection("client", client_id="xyz").send(messages.ApiVersionsRequest(), 0, correlation_id=7)


EXAMPLES: dict[str, dict[str, Callable[[], bytes]]] = {
    "commands.md": {"the frame of an ApiVersions request": frame_of_api_versions},
    "wire-format.md": {
        "a null string": lambda: primitive("string", 0),
        "a compact null string": lambda: primitive("string", 1),
        "null bytes": lambda: primitive("bytes", 0),
        "compact null bytes": lambda: primitive("bytes", 1),
        "a null array": lambda: primitive("[]int32", 0),
        "a compact null array": lambda: primitive("[]int32", 1),
        "what a nullable struct begins with": lambda: STRUCTS().encode(0)[1:2],
        "a null struct": lambda: STRUCTS().encode(0)[:1],
        "127": lambda: uvarint(127),
        "128": lambda: uvarint(128),
        "8192": lambda: uvarint(8192),
        "2147483647": lambda: uvarint(2147483647),
        "a null struct in its position": lambda: STRUCTS(a=None).encode(0)[:1],
        "a null struct in a tag": lambda: STRUCTS(d=None).encode(0)[-1:],
        "nullable structs, all set": all_set,
        "nullable structs, all null": lambda: STRUCTS(a=None, b=None, c=None, d=None).encode(0),
        "nullable structs, at their defaults": lambda: STRUCTS().encode(0),
        "a refusal of ApiVersions": refused_api_versions,
    },
    "record-formats.md": {
        "a record batch": two_records,
        "a COMMIT": commit_marker,
        "what snappy begins with": lambda: records.compress("snappy", b"value")[:16],
    },
    "log-files.md": {"a producer snapshot": snapshot},
    "dialects.md": {
        "optional fields, one at its default": lambda: FOO(foos=[FOO.Foo(baz=7)]).encode(9),
        "optional fields": lambda: FOO(user_agent="x/1", foos=[FOO.Foo(bar="hey", baz=7)]).encode(9),
        "a version without optional fields": lambda: FOO(foos=[FOO.Foo(baz=7)]).encode(8),
        "a key of 8 bits": lambda: key_prefix(0xFF),
        "a key of 16 bits": lambda: key_prefix(0xFFFF),
        "a key of 32 bits": lambda: key_prefix(0x7FFFFFFF),
        "a negative key of 8 bits": lambda: key_prefix(-0x80),
        "a negative key of 16 bits": lambda: key_prefix(-0x8000),
        "a negative key of 32 bits": lambda: key_prefix(-0x80000000),
        "int header keys": int_headers,
    },
}

CHAPTERS = {
    page: [one.encode(version) for (_, version), one in told.items()] for page, told in test_chapters.EXAMPLES.items()
}
"""What tests/test_chapters.py holds against the messages that these pages name."""

BLOCKS = 48
"""Runs of bytes on hand-written pages; those of the reference are counted by tests/reference/test_examples.py."""


@pytest.mark.parametrize(("page", "example"), [(page, example) for page, told in EXAMPLES.items() for example in told])
def test_a_page_shows_the_bytes_that_are_written(page: str, example: str) -> None:
    assert EXAMPLES[page][example]().hex() in hex_blocks.shown(DOCS / page)


def test_all_48_runs_of_bytes_on_hand_written_pages_are_what_the_code_writes() -> None:
    """One that a page shows and nothing here writes is not held against anything: an example of it belongs above."""
    written = {page: [make() for make in told.values()] for page, told in EXAMPLES.items()} | CHAPTERS
    found = {path.name: hex_blocks.shown(path) for path in hex_blocks.PAGES}
    for name, shown in found.items():
        assert sorted(shown) == sorted(each.hex() for each in written.pop(name, [])), name
    assert written == {}
    assert sum(map(len, found.values())) == BLOCKS
