"""Schemas of every type, and rows: as a peer's serializer takes and gives them, and as columns have them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

UTC = UTC
_UUID: Final = "6b0f1c1e-3c4d-4f5a-8b6c-7d8e9f0a1b2c"


def _field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind}


def _logical(kind: str, logical: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical, **more}


AVRO_FIELDS: Final = [
    _field("boolean_", "boolean"),
    _field("int_", "int"),
    _field("long_", "long"),
    _field("float_", "float"),
    _field("double_", "double"),
    _field("bytes_", "bytes"),
    _field("string_", "string"),
    _field("enum_", {"type": "enum", "name": "Letter", "symbols": ["A", "B"]}),
    _field("fixed_", {"type": "fixed", "name": "Four", "size": 4}),
    _field("array_", {"type": "array", "items": ["null", "int"]}),
    _field("map_", {"type": "map", "values": "long"}),
    _field(
        "record_",
        {"type": "record", "name": "Inner", "fields": [_field("x", "int"), _field("y", ["null", "string"])]},
    ),
    _field("records", {"type": "array", "items": "Inner"}),
    _field("nullable", ["null", "string"]),
    _field("nullable_last", ["string", "null"]),
    _field("union_", ["null", "int", "string", {"type": "array", "items": "string"}]),
    _field("union_of_one", ["int"]),
    _field("int_or_long", ["int", "long"]),
    _field("float_or_double", ["null", "float", "double"]),
    _field("decimal_bytes", _logical("bytes", "decimal", precision=9, scale=2)),
    _field("decimal_fixed", _logical("fixed", "decimal", name="Eight", size=8, precision=18, scale=4)),
    _field("date_", _logical("int", "date")),
    _field("time_millis", _logical("int", "time-millis")),
    _field("time_micros", _logical("long", "time-micros")),
    _field("timestamp_millis", _logical("long", "timestamp-millis")),
    _field("timestamp_micros", _logical("long", "timestamp-micros")),
    _field("local_millis", _logical("long", "local-timestamp-millis")),
    _field("local_micros", _logical("long", "local-timestamp-micros")),
    _field("uuid_", _logical("string", "uuid")),
    _field("duration_", _logical("fixed", "duration", name="Twelve", size=12)),
]
"""Every type and logical type of Avro that the peers have, one a field."""

AVRO: Final = json.dumps({"type": "record", "name": "All", "namespace": "tagwire", "fields": AVRO_FIELDS})


def _avro_row(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    sign, full = (-1) ** number, number % 3 > 0
    at = datetime(2013, 7, 4, 12, 30, 15, 123000) + sign * timedelta(days=100 * number)
    fine = at + timedelta(microseconds=number)
    union = (None, -5, "five", ["f", ""])[number % 4]
    both = {
        "boolean_": full,
        "int_": sign * (2**31 - number) if number else -(2**31),
        "long_": sign * (2**63 - 1 - number),
        "float_": sign * number / 4,
        "double_": sign * number / 3,
        "bytes_": bytes(range(number)),
        "string_": "é€𝄞"[: number % 4] + "x" * number,
        "enum_": "AB"[number % 2],
        "fixed_": bytes([number] * 4),
        "array_": [None, number, -number][: number % 4],
        "map_": {f"k{each}": each * sign for each in range(number % 3)},
        "record_": {"x": number, "y": "y" if full else None},
        "records": [{"x": each, "y": None} for each in range(number % 3)],
        "nullable": "here" if full else None,
        "nullable_last": None if full else "there",
        "union_of_one": number,
        "int_or_long": number * 2**33,
        "float_or_double": number / 8 if full else None,
        "decimal_bytes": Decimal(sign * number * 101) / 100,
        "decimal_fixed": Decimal(sign * number * 10001) / 10000,
        "date_": at.date(),
        "timestamp_millis": at.replace(tzinfo=UTC),
        "timestamp_micros": fine.replace(tzinfo=UTC),
        "local_millis": at,
        "local_micros": fine,
        "duration_": bytes(range(number, number + 12)),
    }
    peers = both | {
        "union_": union,
        "time_millis": time(23, 59, number, 7000),
        "time_micros": time(1, 2, number, number + 1),
        "uuid_": UUID(_UUID),
    }
    columns = both | {
        "union_": _members(union),
        "time_millis": ((23 * 60 + 59) * 60 + number) * 1000 + 7,
        "time_micros": ((1 * 60 + 2) * 60 + number) * 1_000_000 + number + 1,
        "uuid_": _UUID,
    }
    return peers, columns


def _members(union: Any) -> dict[str, Any] | None:
    if union is None:
        return None
    place = [int, str, list].index(type(union))
    return {f"member{index}": union if index == place else None for index in range(3)}


AVRO_ROWS: Final = [_avro_row(number) for number in range(24)]
"""As confluent-kafka's Avro serializer takes and gives them, and as columns have them."""

JSON: Final = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Flight",
        "type": "object",
        "properties": {
            "carrier": {"type": "string"},
            "number": {"type": "integer"},
            "delay": {"oneOf": [{"type": "null"}, {"type": "number"}]},
            "stops": {"type": "array", "items": {"type": "string"}},
            "crew": {"type": "object", "properties": {"pilot": {"type": "string"}, "seats": {"type": "integer"}}},
            "charter": {"type": "boolean"},
        },
        "required": ["carrier", "number"],
    }
)

JSON_ROWS: Final = [
    {
        "carrier": "ÜA" if number % 2 else "B6",
        "number": number,
        "delay": number / 4 if number % 3 else None,
        "stops": ["EWR", "IAH"][: number % 3],
        "crew": {"pilot": f"p{number}", "seats": number},
        "charter": number % 2 == 0,
    }
    for number in range(20)
]

PROTO: Final = """
syntax = "proto3";
package tagwire;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
message Other { string name = 1; }
message Outer {
  enum Letter { A = 0; B = 1; }
  message Inner { int32 x = 1; optional string y = 2; }
  message All {
    bool boolean_ = 1;
    int32 int32_ = 2;
    sint32 sint32_ = 3;
    sfixed32 sfixed32_ = 4;
    uint32 uint32_ = 5;
    fixed32 fixed32_ = 6;
    int64 int64_ = 7;
    sint64 sint64_ = 8;
    sfixed64 sfixed64_ = 9;
    uint64 uint64_ = 10;
    fixed64 fixed64_ = 11;
    float float_ = 12;
    double double_ = 13;
    string string_ = 14;
    bytes bytes_ = 15;
    Letter enum_ = 16;
    Inner message_ = 17;
    repeated Inner messages = 18;
    repeated sint64 numbers = 19;
    repeated string texts = 20;
    map<string, int64> map_ = 21;
    map<int32, Inner> inners = 22;
    optional int32 optional_ = 23;
    oneof choice { int64 number = 24; string text = 25; }
    google.protobuf.Timestamp timestamp_ = 26;
    google.protobuf.Duration duration_ = 27;
    google.protobuf.Int64Value wrapped = 28;
    repeated Letter letters = 29;
  }
}
"""
PROTO_MESSAGE: Final = "tagwire.Outer.All"


def _proto_row(number: int) -> dict[str, Any]:
    """As arguments of the message's class. Nothing is at its default, which the wire would not tell from absence."""
    sign = (-1) ** number
    moment = datetime(2013, 7, 4, 12, 30, 15, 123456) + sign * timedelta(days=100 * number)
    return {
        "boolean_": True,
        **{f"{kind}_": sign * (2**31 - 1 - number) for kind in ("int32", "sint32", "sfixed32")},
        **{f"{kind}_": 2**31 - 1 - number for kind in ("uint32", "fixed32")},
        **{f"{kind}_": sign * (2**63 - 1 - number) for kind in ("int64", "sint64", "sfixed64")},
        **{f"{kind}_": 2**63 - 1 - number for kind in ("uint64", "fixed64")},
        "float_": sign * (number + 1) / 4,
        "double_": sign * (number + 1) / 3,
        "string_": "é€𝄞"[: number % 4] + "x" * (number + 1),
        "bytes_": bytes(range(number + 1)),
        "enum_": "B",
        "message_": {"x": number + 1, "y": "y" if number % 2 else None},
        "messages": [{"x": each, "y": ""} for each in range(1, number % 3 + 1)],
        "numbers": [sign * each for each in range(number % 4)],
        "texts": ["", "t"][: number % 3],
        "map_": {f"k{each}": each * sign for each in range(number % 3)},
        "inners": {each: {"x": 7, "y": None} for each in range(number % 3)},
        "optional_": 0 if number % 2 else None,
        "number": number + 1 if number % 3 == 0 else None,
        "text": "t" if number % 3 == 1 else None,
        "timestamp_": moment.replace(tzinfo=UTC),
        "duration_": sign * timedelta(days=number, microseconds=number),
        "wrapped": {"value": number * 2**40} if number % 2 else None,
        "letters": ["A", "B"][: number % 3],
    }


PROTO_ROWS: Final = [_proto_row(number) for number in range(24)]
"""As columns have them, and, without what is None, as the message's class takes them."""
