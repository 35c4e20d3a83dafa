"""A column of JSON values as structs of a Spark schema, by Arrow's JSON reader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    MapType,
    StructField,
    StructType,
    TimestampNTZType,
)

from tagwire.errors import ConfigError
from tagwire.spark.columns import arrow_type
from tagwire.spark.values.column_format import Headers
from tagwire.values.json_values import decode_by_halves, read_lines

_UNREAD = (DayTimeIntervalType, MapType, TimestampNTZType)


@dataclass(frozen=True)
class JsonFormat:
    """Values are JSON objects of the type that is given, of which any field may be null, as in Spark's `from_json`."""

    given: StructType

    needs_headers: ClassVar[bool] = False

    @cached_property
    def type(self) -> StructType:
        """What a value becomes."""
        return _nullable(self.given)

    def planned(self, topic: str | None) -> JsonFormat:
        """Itself: the schema is given."""
        return self

    def fixed(self) -> dict[str, str]:
        """The schema as JSON, as it was given: tables remember it."""
        return {"schema": self.given.json()}

    def narrowed(self, fields: Sequence[str]) -> JsonFormat:
        """The same for some of the fields."""
        return JsonFormat(StructType([self.given[name] for name in fields]))

    def decoded(self, values: pa.Array, headers: pa.Array | None) -> tuple[pa.Array, pa.Array]:
        """The values as structs, and which rows are no such JSON."""
        return decode_json(values, arrow_type(self.type))

    def refusal(self, value: bytes, headers: Headers | None) -> str:
        """Why a value is no such JSON."""
        return json_refusal(value, arrow_type(self.type))


def _nullable(kind: StructType) -> StructType:
    return StructType([StructField(each.name, _of_nullables(each.dataType), True, each.metadata) for each in kind])


def _of_nullables(kind: DataType) -> DataType:
    if isinstance(kind, StructType):
        return _nullable(kind)
    return ArrayType(_of_nullables(kind.elementType)) if isinstance(kind, ArrayType) else kind


def refuse_types(schema: DataType, where: str = "value.schema") -> None:
    """Raises ConfigError for a type that is not read from JSON, or a field that is there twice."""
    if isinstance(schema, StructType):
        if not schema.fields:
            raise ConfigError(f"option {where}: names no field")
        names = schema.fieldNames()
        if twice := [name for name in names if names.count(name) > 1]:
            raise ConfigError(f"option {where}: names field {twice[0]!r} twice")
        for field in schema.fields:
            refuse_types(field.dataType, f"{where}, {field.name}")
    elif isinstance(schema, ArrayType):
        refuse_types(schema.elementType, where)
    elif isinstance(schema, _UNREAD):
        raise ConfigError(f"option {where}: {schema.simpleString()} is not read from JSON; take string or struct")


def decode_json(values: pa.Array, kind: pa.StructType) -> tuple[pa.StructArray, pa.Array]:
    """The values, binary, as structs of `kind`, and which of them are no such JSON. Those and nulls are null."""
    readable = _readable(kind)

    def read(some: pa.Array) -> tuple[pa.Array, list[int]]:
        found = read_lines(some, readable)
        # JSON's `null` is no object: from_json calls it malformed, too.
        return found.cast(kind), pc.indices_nonzero(found.is_null()).to_pylist() if found.null_count else []

    return decode_by_halves(values, kind, read, lambda one: (pa.nulls(len(one), kind), list(range(len(one)))))


def json_refusal(value: bytes, kind: pa.StructType) -> str:
    """Why a value is no such JSON."""
    try:
        read_lines(pa.array([value], pa.binary()), _readable(kind))
    except pa.ArrowInvalid as error:
        return str(error).replace("/v/[]/", "").replace("/v/[]", "/v").replace(" in row 0", "")
    return "no JSON object"


def _readable(kind: pa.DataType) -> pa.DataType:
    """The type that Arrow's reader takes for `kind`: dates are read as times of whole seconds."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _readable(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_readable(kind.value_type))
    return pa.timestamp("s") if pa.types.is_date(kind) else kind
