"""Schemas that are too long, too wide or too deep, as a registry may hold them: a value or a bad row, and no harm."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest

from tagwire.values.framing import prefix_of
from tagwire.values.options import value_settings
from tagwire.values.value_decoder import plan_decoder

from .registry_server import RegistryServer, registry_server

WIDE = 10_000
DEEP = 1_000
LONG = 9_900_000


def _nested(start: str, end: str, inner: str) -> str:
    return "".join(start % number for number in range(DEEP)) + inner + end * DEEP


_AVRO = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
_JSON = {"type": "object", "properties": {"a": {"type": "integer"}}}
SCHEMAS = {
    "avro": (
        "AVRO",
        json.dumps(_AVRO),
        b"\2",
        {
            "long": json.dumps({**_AVRO, "doc": "x" * LONG}),
            "wide": json.dumps(
                {**_AVRO, "fields": [{"name": f"{'ab'[n > 0]}{n or ''}", "type": "int"} for n in range(WIDE)]}
            ),
            "deep": _nested('{"type": "record", "name": "R%d", "fields": [{"name": "a", "type": ', "}]}", '"int"'),
        },
    ),
    "json-schema": (
        "JSON",
        json.dumps(_JSON),
        b'{"a": 1}',
        {
            "long": json.dumps({**_JSON, "description": "x" * LONG}),
            "wide": json.dumps({**_JSON, "properties": {f"{'ab'[n > 0]}{n or ''}": {} for n in range(WIDE)}}),
            "deep": _nested('{"type": "object", "title": "%d", "properties": {"a": ', "}}", "{}"),
        },
    ),
    "protobuf": (
        "PROTOBUF",
        'syntax = "proto3"; message M { int32 a = 1; }',
        b"\x08\1",
        {
            "long": f'syntax = "proto3"; /* {"x" * LONG} */ message M {{ int32 a = 1; }}',
            "wide": 'syntax = "proto3"; message M { int32 a = 1; '
            + "".join(f"int32 f{n} = {n};" for n in range(2, WIDE))
            + "}",
            "deep": 'syntax = "proto3"; ' + _nested("message M%d {", "}", "int32 a = 1;"),
        },
    ),
}


@pytest.fixture(scope="module")
def registry() -> Iterator[RegistryServer]:
    with registry_server() as server:
        yield server


@pytest.mark.parametrize("shape", ["long", "wide", "deep"])
@pytest.mark.parametrize("name", SCHEMAS)
def test_a_writers_schema_of_any_size_gives_a_value_or_a_bad_row(
    registry: RegistryServer, name: str, shape: str
) -> None:
    kind, reader, body, shapes = SCHEMAS[name]
    registry.add(f"{name}-value", reader, kind)
    writer = registry.add(f"{name}-{shape}", shapes[shape], kind)
    settings = {"value.format": name, "schema.registry.url": registry.url, "value.schema": reader}
    decoder = plan_decoder(value_settings("value", settings), "t")
    value = prefix_of(writer, (0,) if name == "protobuf" else None) + body
    found, bad = decoder.decode(pa.array([value, None]))
    told = decoder.refusal(value)
    assert found.to_pylist() in ([{"a": 1}, None], [None, None])
    assert bad.to_pylist() == [found[0].as_py() is None, False]
    assert told.startswith(f"schema id {writer}: ")
    assert len(told) < 2_000
