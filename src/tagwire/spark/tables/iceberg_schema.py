"""Columns as Iceberg has them, what it lacks, and the ids by which readers find them in files.

Source: Iceberg's table specification, "Schemas and Data Types", "Parquet".
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final

from tagwire.errors import ConfigError, StorageError
from tagwire.extras import Needs
from tagwire.spark.tables.table_settings import DATE, HOUR, MONTH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

_FIELD_ID: Final = b"PARQUET:field_id"
_TIME: Final = "timestamp"
_FIRST_PARTITION_FIELD: Final = 1000


def iceberg_schema(schema: pa.Schema) -> Any:
    """The columns as a `pyiceberg.schema.Schema`, every one optional. A catalog gives them ids of its own.

    Raises:
        ConfigError: Iceberg has no such type, or takes no such name.
    """
    with Needs("iceberg"):
        from pyiceberg.schema import Schema

    return Schema(*_fields(schema, "", count(1)))


def partition_spec(schema: Any, folders: Sequence[str]) -> Any:
    """How a table is partitioned: by time with a transform of the timestamp, so that no column is added.

    Args:
        schema: of `iceberg_schema`.
        folders: the names of columns; month, date and hour are of the timestamp.
    """
    from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
    from pyiceberg.transforms import DayTransform, HourTransform, IdentityTransform, MonthTransform

    if not folders:
        return UNPARTITIONED_PARTITION_SPEC
    of_time = {
        MONTH: (f"{_TIME}_month", MonthTransform()),
        DATE: (f"{_TIME}_day", DayTransform()),
        HOUR: (f"{_TIME}_hour", HourTransform()),
    }
    fields = []
    for number, folder in enumerate(folders, _FIRST_PARTITION_FIELD):
        name, transform = of_time.get(folder, (folder, IdentityTransform()))
        source = schema.find_field(_TIME if folder in of_time else folder).field_id
        fields.append(PartitionField(source, number, transform, name))
    return PartitionSpec(*fields)


def lacking(where: str, there: Any, wanted: Any, path: str = "") -> list[str]:
    """The names of columns and fields that the rows have and the table has not, as far as both are structs.

    Args:
        there, wanted: Iceberg's types, or schemas. Columns that are there and not wanted become null.

    Raises:
        StorageError: a column has another type.
    """
    from pyiceberg.types import ListType, MapType

    fields, others = getattr(there, "fields", None), getattr(wanted, "fields", None)
    if fields is not None and others is not None:
        known = {field.name: field.field_type for field in fields}
        added = []
        for field in others:
            inner = f"{path}.{field.name}" if path else field.name
            if field.name in known:
                added += lacking(where, known[field.name], field.field_type, inner)
            else:
                added.append(inner)
        return added
    for kind, parts in ((ListType, ("element_type",)), (MapType, ("key_type", "value_type"))):
        if isinstance(there, kind) and isinstance(wanted, kind):
            names = (lacking(where, getattr(there, part), getattr(wanted, part), f"{path}.element") for part in parts)
            return [name for each in names for name in each]
    if there != wanted:
        raise StorageError(
            f"{where}: its column {path!r} is {_said(there)}, and would be {_said(wanted)}: a column keeps its type"
        )
    return []


def file_schema(rows: pa.Schema, table: Any) -> pa.Schema:
    """How rows stand in the table's files: with the ids of its columns, and its types.

    Args:
        table: the table's schema; it has all the columns of the rows.
    """
    import pyarrow as pa

    known = {field.name: field for field in table.fields}
    return pa.schema([_identified(field, known[field.name]) for field in rows])


def _fields(fields: pa.Schema | pa.StructType, above: str, ids: Iterator[int]) -> list[Any]:
    from pyiceberg.types import NestedField

    found = []
    for field in fields:
        path = f"{above}.{field.name}" if above else field.name
        number = next(ids)
        found.append(NestedField(number, field.name, _type(field.type, path, ids), required=False))
    return found


def _type(kind: pa.DataType, path: str, ids: Iterator[int]) -> Any:
    import pyarrow as pa
    from pyiceberg import types

    if pa.types.is_struct(kind):
        if not kind.num_fields:
            raise _refused(path, "struct without fields")
        return types.StructType(*_fields(kind, path, ids))
    if pa.types.is_list(kind):
        number = next(ids)
        return types.ListType(number, _type(kind.value_type, f"{path}.element", ids), element_required=False)
    if pa.types.is_map(kind):
        numbers = next(ids), next(ids)
        key = _type(kind.key_type, f"{path}.key", ids)
        return types.MapType(
            numbers[0], key, numbers[1], _type(kind.item_type, f"{path}.value", ids), value_required=False
        )
    if pa.types.is_decimal128(kind):
        return types.DecimalType(kind.precision, kind.scale)
    plain = {
        pa.bool_(): types.BooleanType(),
        pa.int8(): types.IntegerType(),
        pa.int16(): types.IntegerType(),
        pa.int32(): types.IntegerType(),
        pa.int64(): types.LongType(),
        pa.float32(): types.FloatType(),
        pa.float64(): types.DoubleType(),
        pa.string(): types.StringType(),
        pa.binary(): types.BinaryType(),
        pa.date32(): types.DateType(),
        pa.timestamp("us"): types.TimestampType(),
        pa.timestamp("us", "UTC"): types.TimestamptzType(),
    }
    if kind not in plain:
        raise _refused(path, str(kind))
    return plain[kind]


def _refused(path: str, kind: str) -> ConfigError:
    return ConfigError(f"column {path!r}: Iceberg has no type for {kind}; land it with the format parquet")


def _identified(field: pa.Field, column: Any) -> pa.Field:
    """A field, and those within it, with the id that the table's column has."""
    return _field(field.name, field.type, column.field_type, column.field_id, nullable=field.nullable)


def _field(name: str, kind: pa.DataType, of: Any, number: int, *, nullable: bool) -> pa.Field:
    import pyarrow as pa

    if pa.types.is_struct(kind):
        known = {field.name: field for field in of.fields}
        kind = pa.struct([_identified(field, known[field.name]) for field in kind])
    elif pa.types.is_list(kind):
        child = kind.value_field
        kind = pa.list_(_field(child.name, child.type, of.element_type, of.element_id, nullable=child.nullable))
    elif pa.types.is_map(kind):
        key, item = kind.key_field, kind.item_field
        kind = pa.map_(
            _field(key.name, key.type, of.key_type, of.key_id, nullable=False),
            _field(item.name, item.type, of.value_type, of.value_id, nullable=item.nullable),
        )
    elif pa.types.is_int8(kind) or pa.types.is_int16(kind):
        kind = pa.int32()
    return pa.field(name, kind, nullable, {_FIELD_ID: str(number).encode()})


def _said(kind: Any) -> str:
    from pyiceberg.types import PrimitiveType

    if isinstance(kind, PrimitiveType):
        return str(kind)
    return type(kind).__name__.removesuffix("Type").lower()
