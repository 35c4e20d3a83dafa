"""Whether columns can be written by a JSON Schema: they and its properties meet by name."""

from __future__ import annotations

from tagwire.extras import Needs

with Needs("arrow"):
    import pyarrow as pa

from tagwire.errors import ValueSchemaError
from tagwire.values.json_schema import shapes
from tagwire.values.json_schema.shapes import Shape


def fit(shape: Shape, columns: pa.DataType, where: str = "") -> None:
    """Refuses columns that the schema has no place for.

    Raises:
        ValueSchemaError: which column, and why.
    """
    if pa.types.is_dictionary(columns):
        columns = columns.value_type
    if pa.types.is_null(columns):
        return
    if shape.kind == shapes.STRUCT and pa.types.is_struct(columns):
        _fit_struct(shape, columns, where)
    elif shape.kind == shapes.LIST and _is_list(columns):
        assert shape.item is not None
        fit(shape.item, columns.value_type, f"{where}[]")
    elif shape.kind == shapes.MAP and pa.types.is_map(columns) and _is_text(columns.key_type):
        assert shape.item is not None
        fit(shape.item, columns.item_type, f"{where}.*")
    elif shape.kind == shapes.ENTRIES and pa.types.is_map(columns):
        key, value = shape.properties
        fit(key.shape, columns.key_type, f"{where}.key")
        fit(value.shape, columns.item_type, f"{where}.value")
    elif not _is_fitting(shape, columns):
        raise ValueSchemaError(f"{_called(where)} is {columns}; the schema has {_named(shape)} there")


def _fit_struct(shape: Shape, columns: pa.StructType, where: str) -> None:
    names = [field.name for field in columns]
    for name in names:
        if names.count(name) > 1:
            raise ValueSchemaError(f"{_called(f'{where}.{name}')} is there twice")
    by_name = {one.name: one for one in shape.properties}
    for field in columns:
        if field.name not in by_name:
            raise ValueSchemaError(f"{_called(f'{where}.{field.name}')} is no property of the schema")
        fit(by_name[field.name].shape, field.type, f"{where}.{field.name}")
    for one in shape.properties:
        if one.is_required and one.name not in names:
            raise ValueSchemaError(f"{_called(f'{where}.{one.name}')} is missing, which the schema requires")


def _is_fitting(shape: Shape, columns: pa.DataType) -> bool:
    types = pa.types
    if shape.kind == shapes.INTEGER:
        most = shape.bits if types.is_signed_integer(columns) else shape.bits - 1
        return types.is_integer(columns) and columns.bit_width <= most
    if shape.kind == shapes.NUMBER:
        is_narrow = types.is_floating(columns) and columns.bit_width <= shape.bits
        return is_narrow or (shape.bits == 64 and (types.is_integer(columns) or types.is_decimal(columns)))
    if shape.kind == shapes.DECIMAL:
        if types.is_integer(columns):
            return True
        whole = shape.precision - shape.scale
        return types.is_decimal(columns) and columns.scale <= shape.scale and columns.precision - columns.scale <= whole
    if shape.kind in (shapes.STRING, shapes.ANY):
        return _is_text(columns)
    if shape.kind in (shapes.DATE, shapes.DAYS):
        return bool(types.is_date(columns))
    if shape.kind in (shapes.TIMESTAMP, shapes.MILLIS):
        return types.is_timestamp(columns) and columns.tz is not None
    if shape.kind == shapes.BYTES:
        return types.is_binary(columns) or types.is_large_binary(columns) or types.is_fixed_size_binary(columns)
    return shape.kind == shapes.BOOLEAN and types.is_boolean(columns)


def _is_list(columns: pa.DataType) -> bool:
    return pa.types.is_list(columns) or pa.types.is_large_list(columns) or pa.types.is_fixed_size_list(columns)


def _is_text(columns: pa.DataType) -> bool:
    return pa.types.is_string(columns) or pa.types.is_large_string(columns)


def _called(where: str) -> str:
    return f"column {where.lstrip('.')}" if where else "the value"


def _named(shape: Shape) -> str:
    if shape.kind == shapes.ANY:
        return "a value of any type, which is a string column of JSON"
    if shape.kind in (shapes.INTEGER, shapes.NUMBER):
        return f"{shape.kind} ({shape.bits} bits)"
    if shape.kind in (shapes.DATE, shapes.TIMESTAMP):
        return f"string (format {shape.kind})" + (", a time with a zone" if shape.kind == shapes.TIMESTAMP else "")
    return shape.kind
