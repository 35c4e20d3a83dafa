"""Arrow types that Spark has no equal of, as the nearest that it has; and arrays made to be of those.

Of times of day Spark's number of milliseconds or microseconds stays, as its own `from_avro` has it.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from tagwire.errors import ValueSchemaError

_MOST_DIGITS = 38
_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_list_view)
_SAME: tuple[tuple[DataType, tuple[str, ...]], ...] = (
    (NullType(), ("null",)),
    (BooleanType(), ("boolean",)),
    (ByteType(), ("int8",)),
    (ShortType(), ("int16", "uint8")),
    (IntegerType(), ("int32", "uint16", "time32")),
    (LongType(), ("int64", "uint32", "time64")),
    (DecimalType(20, 0), ("uint64",)),
    (FloatType(), ("float32", "float16")),
    (DoubleType(), ("float64",)),
    (StringType(), ("string", "large_string", "string_view")),
    (BinaryType(), ("binary", "large_binary", "binary_view", "fixed_size_binary")),
    (DateType(), ("date32", "date64")),
    (DayTimeIntervalType(), ("duration",)),
)
_PLAIN = tuple((getattr(pa.types, f"is_{name}"), kind) for kind, names in _SAME for name in names)


def spark_type(kind: pa.DataType, where: str = "value") -> DataType:
    """The type of Spark that holds every value of an Arrow type. All of it may be null.

    Raises:
        ValueSchemaError: there is none; says where.
    """
    if pa.types.is_struct(kind):
        return StructType([StructField(field.name, spark_type(field.type, f"{where}.{field.name}")) for field in kind])
    if any(fits(kind) for fits in _LISTS):
        return ArrayType(spark_type(kind.value_type, where))
    if pa.types.is_map(kind):
        return MapType(spark_type(kind.key_type, where), spark_type(kind.item_type, where))
    if pa.types.is_timestamp(kind):
        return TimestampNTZType() if kind.tz is None else TimestampType()
    if pa.types.is_decimal(kind) and kind.precision <= _MOST_DIGITS and 0 <= kind.scale <= kind.precision:
        return DecimalType(kind.precision, kind.scale)
    if pa.types.is_dictionary(kind):
        return spark_type(kind.value_type, where)
    for fits, found in _PLAIN:
        if fits(kind):
            return found
    raise ValueSchemaError(f"{where}: Spark has no type for {kind}")


def conformed(values: pa.Array, kind: pa.DataType) -> tuple[pa.Array, pa.Array | None]:
    """Values as `kind`, of which only what differs is copied; and the rows that it cannot hold, which are null.

    Those are times that lie outside of Spark's. None where every row fits.
    """
    if values.type == kind:
        return values, None
    try:
        return values.cast(kind), None
    except pa.ArrowInvalid:
        bad = pa.array(_unfit(values, 0, kind), pa.int64())
    rows = pa.array(range(len(values)), pa.int64())
    broken = pc.is_in(rows, bad)
    kept = values.take(pc.if_else(broken, pa.scalar(None, pa.int64()), rows))
    return kept.cast(kind), broken


def _unfit(values: pa.Array, start: int, kind: pa.DataType) -> list[int]:
    """The rows that a cast refuses, by halves."""
    try:
        values.take(pa.array(range(len(values)), pa.int64())).cast(kind)  # a slice is cast with what lies around it
        return []
    except pa.ArrowInvalid:
        if len(values) == 1:
            return [start]
    half = len(values) // 2
    return _unfit(values[:half], start, kind) + _unfit(values[half:], start + half, kind)
