"""A format of values as small as it can be, in the place of JSON Schema: a body is a number in decimal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tagwire.errors import ValueSchemaError
from tagwire.values.schemas import Schema


@dataclass(frozen=True)
class NumbersDecoder:
    factor: int

    def decode(self, bodies: pa.Array) -> tuple[pa.Array, pa.Array]:
        texts = bodies.to_pylist()
        bad = [text is not None and not text.isdigit() for text in texts]
        found = [None if text is None or wrong else int(text) * self.factor for text, wrong in zip(texts, bad)]
        return pa.array(found, pa.int64()), pa.array(bad, pa.bool_())

    def refusal(self, body: bytes) -> str:
        return f"{body!r} is no number"


@dataclass(frozen=True)
class NumbersReader:
    factor: int

    @property
    def type(self) -> pa.DataType:
        return pa.int64()

    def decoder(
        self, writer: Schema, fields: Sequence[str] | None = None, message_indexes: tuple[int, ...] = ()
    ) -> NumbersDecoder:
        factor = _factor(writer)
        if factor == 0:
            raise ValueSchemaError("a factor of 0 does not resolve")
        return NumbersDecoder(factor)


@dataclass(frozen=True)
class NumbersEncoder:
    def encode(self, column: pa.Array) -> tuple[pa.Array, pa.Array]:
        numbers = column.to_pylist()
        bad = [number is not None and number < 0 for number in numbers]
        found = [None if number is None or wrong else b"%d" % number for number, wrong in zip(numbers, bad)]
        return pa.array(found, pa.binary()), pa.array(bad, pa.bool_())

    def refusal(self, row: object) -> str:
        return f"{row} is below zero"


class NumbersFormat:
    """Its schemas are `{"factor": N}`: what numbers were divided by when they were written."""

    schema_type = "JSON"

    def reader_schema(self, schema: Schema, message: str | None = None) -> NumbersReader:
        return NumbersReader(_factor(schema))

    def encoder(self, schema: Schema, columns: pa.DataType, message: str | None = None) -> NumbersEncoder:
        if columns != pa.int64():
            raise ValueSchemaError(f"{columns} does not fit int64")
        return NumbersEncoder()

    def message_indexes(self, schema: Schema, message: str | None = None) -> tuple[int, ...]:
        return ()

    def compatibility(self, older: Schema, newer: Schema) -> list[str]:
        return [] if _factor(older) == _factor(newer) else ["factor: is another one"]


def _factor(schema: Schema) -> int:
    try:
        return int(json.loads(schema.text)["factor"])
    except (ValueError, LookupError, TypeError) as error:
        raise ValueSchemaError(f"no schema of numbers: {error!r}") from None
