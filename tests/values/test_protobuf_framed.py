"""Protobuf behind a registry's framing: written and read with ids, message indexes, references and several writers."""

from __future__ import annotations

import pickle

import pyarrow as pa

from tagwire.values.framing import prefix_of
from tagwire.values.options import value_settings
from tagwire.values.value_decoder import plan_decoder
from tagwire.values.value_encoder import plan_encoder

from .protobuf_schemas import message_class, proto
from .registry_server import registry_server

OLDER = """
syntax = "proto3"; package shop;
message Other { int32 x = 1; }
message Order { int64 id = 1; message Line { string item = 1; } repeated Line lines = 2; }
"""
NEWER = OLDER.replace("repeated Line lines = 2;", "repeated Line lines = 2; string note = 3;")
BROKEN = OLDER.replace("int64 id", "string id")


def test_values_of_several_schemas_and_messages_are_one_column_and_go_back_as_they_were_framed() -> None:
    with registry_server() as server:
        older, broken, newer = (server.add("t-value", text, "PROTOBUF") for text in (OLDER, BROKEN, NEWER))
        given = {
            "value.format": "protobuf",
            "value.message": "shop.Order",
            "schema.registry.url": server.url,
            "max.retries": "0",
        }
        settings = value_settings("value", given)
        decoder = pickle.loads(pickle.dumps(plan_decoder(settings, "t")))
        old, new = (message_class(proto(text), "shop.Order") for text in (OLDER, NEWER))
        values = [
            prefix_of(older, (1,)) + old(id=1, lines=[{"item": "a"}]).SerializeToString(),
            None,
            prefix_of(newer, (1,)) + new(id=2, note="n").SerializeToString(),
            prefix_of(newer, (0,)) + b"\x08\x05",
            prefix_of(broken, (1,)) + b"\x0a\x01x",
            prefix_of(newer, (1,)) + b"\x08",
        ]
        column, bad = decoder.decode(pa.array(values, pa.binary()))
        rows = [
            {"id": 1, "lines": [{"item": "a"}], "note": None},
            None,
            {"id": 2, "lines": [], "note": "n"},
            None,
            None,
            None,
        ]
        assert column.to_pylist() == rows
        assert bad.to_pylist() == [False, False, False, True, True, True]
        reasons = [decoder.refusal(value) for value in values[3:] if value is not None]
        assert "the value is a shop.Other, and shop.Order is read" in reasons[0]
        assert "field 1 of shop.Order (id) is int64, and was written as string" in reasons[1]
        assert "a varint that is cut off" in reasons[2]
        encoder = pickle.loads(pickle.dumps(plan_encoder(settings, "t", column.type)))
        written, wrong = encoder.encode(column.slice(0, 3))
        assert wrong.to_pylist() == [False] * 3
        assert written[2].as_py() == values[2]
        assert written[0].as_py() == prefix_of(newer, (1,)) + values[0][len(prefix_of(older, (1,))) :]  # type: ignore[index]
