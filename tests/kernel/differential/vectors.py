"""What is mutated: messages, batches, message sets, frames and captures as they should be.

Kafka's own bytes out of tests/vectors, and what fills the gaps between them: versions that Kafka dropped, the first
KIP-482's optional fields, longer arrays and texts, int headers.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from tagwire import message_class, messages, records
from tagwire.codec import MessageObject
from tagwire.records import Record
from tagwire.rpc import RequestHeader, encode_request_header, encode_response_header
from tagwire.spec import Field, Struct, catalog
from tagwire.spec.model import INTEGER_RANGES

from ...capture.test_damage import CORPUS
from ...records.message_sets import message, raw

VECTORS = Path(__file__).parents[2] / "vectors"
OPTIONAL_FIELDS = """
{ "apiKey": 9001, "type": "request", "name": "OptionalRequest", "validVersions": "0-1", "versionsWithOptional": "1+",
  "fields": [
    { "name": "Id", "type": "int32", "versions": "0+" },
    { "name": "Numbers", "type": "[]int32", "versions": "0+", "nullableVersions": "1+" },
    { "name": "Parts", "type": "[]Part", "versions": "0+",
      "fields": [ { "name": "Big", "type": "int64", "versions": "0+" }, { "name": "Data", "type": "bytes",
        "versions": "0+" } ],
      "optionalFields": [ { "name": "Note", "type": "string", "tag": 1, "nullable": true } ] } ],
  "optionalFields": [
    { "name": "Flag", "type": "bool", "tag": 0 },
    { "name": "Small", "type": "int16", "tag": 1, "default": 300 },
    { "name": "Ratio", "type": "float64", "tag": 3 },
    { "name": "Key", "type": "uuid", "tag": 4 },
    { "name": "Text", "type": "string", "tag": 5, "nullable": true, "default": "x" },
    { "name": "Names", "type": "[]string", "tag": 7 },
    { "name": "Owner", "type": "Owner", "tag": 300, "nullable": true,
      "fields": [ { "name": "Name", "type": "string", "versions": "0+" } ],
      "optionalFields": [ { "name": "Mail", "type": "string", "tag": 65535, "nullable": true } ] },
    { "name": "Batch", "type": "records", "tag": 9, "nullable": true }
  ] }
"""
NUMBERS = """
{ "apiKey": 9002, "type": "request", "name": "NumbersRequest", "validVersions": "0-1", "flexibleVersions": "1+",
  "fields": [
    { "name": "Tiny", "type": "int8", "versions": "0+" },
    { "name": "Short", "type": "int16", "versions": "0+" },
    { "name": "Port", "type": "uint16", "versions": "0+" },
    { "name": "Plain", "type": "int32", "versions": "0+" },
    { "name": "Numbers", "type": "[]int32", "versions": "0+" },
    { "name": "Maybe", "type": "[]int32", "versions": "0+", "nullableVersions": "0+" },
    { "name": "Large", "type": "uint32", "versions": "0+" },
    { "name": "Shorts", "type": "[]int16", "versions": "0+" },
    { "name": "Longs", "type": "[]int64", "versions": "0+" },
    { "name": "Words", "type": "[]uint32", "versions": "0+" },
    { "name": "Ratios", "type": "[]float64", "versions": "0+" },
    { "name": "Flags", "type": "[]bool", "versions": "0+" },
    { "name": "Keys", "type": "[]uuid", "versions": "0+" },
    { "name": "Blobs", "type": "[]bytes", "versions": "0+" },
    { "name": "Tagged", "type": "[]int32", "versions": "1+", "tag": 0, "taggedVersions": "1+" },
    { "name": "Last", "type": "int32", "versions": "0+" },
    { "name": "Rows", "type": "[]Row", "versions": "0+", "fields": [
      { "name": "Left", "type": "int64", "versions": "0+" },
      { "name": "Ids", "type": "[]int32", "versions": "0+" },
      { "name": "Right", "type": "int32", "versions": "0+" },
      { "name": "Hidden", "type": "int64", "versions": "1+", "tag": 0, "taggedVersions": "1+", "default": "-1" } ] } ] }
"""
MADE = (OPTIONAL_FIELDS, NUMBERS)


class Vector(NamedTuple):
    """Bytes as they should be.

    Attributes:
        kind: what they are: "message", "batches", "message set", "int headers", "request", "response" or "capture".
        about: what a reader must know beside the bytes: of a message the spec (the catalog's name, a file of
            tests/vectors/specs, or JSON) and the version; of a response the request's name and version.
    """

    kind: str
    about: tuple[Any, ...]
    data: bytes


@cache
def class_of(spec: str) -> type[MessageObject]:
    if spec.startswith("specs/"):
        return message_class(VECTORS / spec)
    return message_class(spec) if "{" in spec else getattr(messages, spec)  # type: ignore[no-any-return]


def lines(name: str) -> list[dict[str, Any]]:
    with gzip.open(VECTORS / name, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@cache
def vectors() -> dict[str, list[Vector]]:
    """All of them by kind, the same ones in every run and process."""
    found: dict[str, list[Vector]] = {}
    for source in (message_vectors, batch_vectors, message_set_vectors, frame_vectors, capture_vectors):
        for vector in source():
            found.setdefault(vector.kind, []).append(vector)
    return found


def message_vectors() -> Iterator[Vector]:
    written = set()
    for line in lines("messages.jsonl.gz"):
        if "hex" in line:
            of_tests = line["module"] == "clients-test"
            spec = f"specs/{line['message']}.json" if of_tests else line["message"]
            written.add((spec, line["version"]))
            yield Vector("message", (spec, line["version"]), bytes.fromhex(line["hex"]))
    for spec in (*catalog.names(), *MADE):
        kind = class_of(spec)
        chance = Random(kind.spec.name)
        for version in kind.valid_versions:
            for _ in range(30 if spec in MADE else 0 if (spec, version) in written else 2):
                data = filled(kind.spec.root, version, kind, chance).encode(version)
                yield Vector("message", (spec, version), data)


def filled(struct: Struct, version: int, kind: type[MessageObject], chance: Random) -> Any:
    """An object of `struct` with any values in the fields of `version`."""
    maker: Any = kind if struct is kind.spec.root else getattr(kind, struct.name)
    given = {each.attribute: value(each, version, kind, chance) for each in struct.fields if version in each.versions}
    extended = kind.spec.is_flexible(version) or version in kind.spec.optional_versions
    if extended and chance.random() < 0.2:
        given["unknown_tags"] = {chance.choice((1000, 20_000, 65_534)): chance.randbytes(chance.randrange(1, 5))}
    return maker(**given)


def value(each: Field, version: int, kind: type[MessageObject], chance: Random) -> Any:
    if version in each.nullable_versions and chance.random() < 0.2:
        return None
    if not each.type.is_array:
        return element(each, version, kind, chance)
    long = each.struct is None and chance.random() < 0.1
    return [element(each, version, kind, chance) for _ in range(chance.choice((126, 127, 200) if long else (0, 1, 3)))]


def element(each: Field, version: int, kind: type[MessageObject], chance: Random) -> Any:
    name = each.type.element
    if each.struct is not None:
        return filled(each.struct, version, kind, chance)
    if name in INTEGER_RANGES:
        lowest, highest = INTEGER_RANGES[name]
        wanted = chance.choice((0, 1, -1, 127, 255, 1 << 24, lowest, highest, chance.randint(lowest, highest)))
        return min(max(wanted, lowest), highest)
    made: dict[str, Callable[[], Any]] = {
        "bool": lambda: chance.random() < 0.5,
        "float64": lambda: chance.choice((0.0, -1.5, 1e300)),
        "uuid": lambda: UUID(int=chance.choice((0, 1, chance.getrandbits(128)))),
        "string": lambda: "aé€😀"[: chance.randrange(5)] * chance.choice((1, 1, 1, 40)),
        "bytes": lambda: chance.randbytes(chance.choice((0, 1, 5, 130))),
        "records": lambda: chance.randbytes(chance.choice((0, 1, 5, 130))),
    }
    return made[name]()


def any_records(chance: Random, count: int) -> list[Record]:
    def some() -> bytes | None:
        return chance.choice((None, b"", b"k", chance.randbytes(chance.choice((3, 40, 70, 200)))))

    keys = ("a", "trace-id", "é", "n" * 70)
    return [
        Record(some(), some(), [(chance.choice(keys), some()) for _ in range(chance.choice((0, 0, 1, 2, 5)))], time)
        for time in sorted(chance.choice((-1, 0, 1_700_000_000_000, chance.getrandbits(40))) for _ in range(count))
    ]


def batch_vectors() -> Iterator[Vector]:
    for line in lines("records.jsonl.gz"):
        if "batches" in line:
            kind = "batches" if line["batches"][0]["magic"] == 2 else "message set"
            yield Vector(kind, (), bytes.fromhex(line["hex"]))
    chance = Random("batches")
    for _ in range(40):
        parts, offset = [], chance.choice((0, 7, 1 << 40))
        for _ in range(chance.choice((1, 1, 2, 4))):
            count = chance.choice((1, 2, 5, 20))
            codec = chance.choice(("none", "none", "none", "gzip", "lz4", "zstd", "snappy"))
            parts.append(records.write(any_records(chance, count), compression=codec, base_offset=offset))
            offset += count
        yield Vector("batches", (), b"".join(parts))


def message_set_vectors() -> Iterator[Vector]:
    chance = Random("message sets")
    for number in range(60):
        magic = number % 3
        codec = chance.choice(("none", "none", "gzip", "lz4", "snappy"))
        rows = any_records(chance, chance.choice((1, 2, 6)))
        keys = [0, 1, -1, 127, 128, -33, 70_000, -(1 << 31)]
        given = [
            record.replace(
                headers=[(key, b"v" * chance.randrange(3)) for key in chance.sample(keys, chance.choice((0, 1, 4)))]
                if magic == 2
                else ()
            )
            for record in rows
        ]
        dialect = {"dialect": "int-headers"} if magic == 2 else {"magic": magic}
        kind = "int headers" if magic == 2 else "message set"
        yield Vector(kind, (), records.write(given, compression=codec, base_offset=chance.choice((0, 9)), **dialect))
    yield Vector("message set", (), message(0) + message(1, b"k", None) + message(5, magic=0))
    yield Vector("int headers", (), message(0, magic=2) + raw(1, b"\2\x10" + bytes(8) + b"\xff\xff\xff\xff\3\1\5\0"))


def frame_vectors() -> Iterator[Vector]:
    for line in lines("framing.jsonl.gz"):
        if line["name"].startswith("request/"):
            yield Vector("request", (), bytes.fromhex(line["framed"]))
    for spec in catalog.names():
        kind = class_of(spec)
        if kind.spec.type not in ("request", "response"):
            continue
        chance = Random(f"frames of {spec}")
        for version in {kind.valid_versions.lowest, kind.valid_versions.highest}:
            body = filled(kind.spec.root, version, kind, chance).encode(version)
            if kind.spec.type == "request":
                yield Vector("request", (), framed_request(kind, version, body, chance))
            else:
                asked = spec.removesuffix("Response") + "Request"
                yield Vector("response", (asked, version), framed(kind, version, body))


def framed_request(kind: type[MessageObject], version: int, body: bytes, chance: Random) -> bytes:
    client_id = chance.choice((None, "", "cli", "é" * 70))
    header = encode_request_header(RequestHeader(kind.api_key, version, chance.getrandbits(31), client_id))
    return (len(header) + len(body)).to_bytes(4, "big") + header + body


def framed(kind: type[MessageObject], version: int, body: bytes) -> bytes:
    header = encode_response_header(kind.api_key, version, 7)
    return (len(header) + len(body)).to_bytes(4, "big") + header + body


def capture_vectors() -> Iterator[Vector]:
    for data in CORPUS[:3]:
        yield Vector("capture", (), data)
