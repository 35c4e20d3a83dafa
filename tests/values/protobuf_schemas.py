"""Schemas and messages that the tests of Protobuf share."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tagwire.values.protobuf import ProtobufFormat
from tagwire.values.protobuf.descriptors import file_of
from tagwire.values.schemas import PROTOBUF, Schema

FORMAT = ProtobufFormat()


def proto(text: str, **references: str) -> Schema:
    """A schema of a text, that refers to others by `NAME.proto`."""
    return Schema(text, PROTOBUF, tuple((f"{name}.proto", proto(each)) for name, each in references.items()))


def proto3(fields: str, besides: str = "") -> Schema:
    """A schema whose first message is M."""
    return proto(f'syntax = "proto3"; package t; message M {{ {fields} }} {besides}')


def proto2(fields: str, besides: str = "") -> Schema:
    return proto(f'syntax = "proto2"; package t; message M {{ {fields} }} {besides}')


def message_class(schema: Schema, name: str = "t.M") -> Any:
    """The class of a message, by Protobuf's own library."""
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(file_of(schema).pool.FindMessageTypeByName(name))


def decoded(schema: Schema, *bodies: bytes | None, fields: list[str] | None = None) -> list[Any]:
    """Bodies as Python values, "bad" for those that are."""
    decoder = FORMAT.reader_schema(schema).decoder(schema, fields, (0,))
    values, bad = decoder.decode(pa.array(bodies, pa.binary()))
    values.validate(full=True)
    return ["bad" if wrong else value for value, wrong in zip(values.to_pylist(), bad.to_pylist())]
