"""Columns as Delta has them, and what it lacks.

Sources: Delta's protocol, "Schema Serialization Format", "Column Mapping", "Column Invariants", "Generated Columns".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from tagwire.errors import ConfigError, StorageError
from tagwire.extras import Needs

if TYPE_CHECKING:
    import pyarrow as pa

_FORBIDDEN = " ,;{}()\n\t="
"""What readers refuse in names of columns of a table without column mapping, as Parquet's in Spark once did."""

_PHYSICAL = "delta.columnMapping.physicalName"
_INVARIANTS = "delta.invariants"
_GENERATED = "delta.generationExpression"


def delta_schema(where: str, schema: pa.Schema) -> Any:
    """The columns as a `deltalake.Schema`, every one nullable.

    Raises:
        ConfigError: Delta has no such type, or no such name.
    """
    with Needs("delta"):
        from deltalake import Schema

    _refuse_twice("", schema)
    for field in schema:
        _check(where, field, field.name)
    return Schema.from_arrow(schema)


def added_columns(where: str, there: Any, wanted: Any) -> list[Any]:
    """The columns that the rows have and the table has not, and the structs of which it lacks fields.

    Args:
        there, wanted: `deltalake.Schema`. Columns that are there and not wanted become null.

    Raises:
        StorageError: a column has another type, or the rows lack a field of a struct.
    """
    known = {field.name: json.loads(field.type.to_json()) for field in there.fields}
    wanted_types = {field.name: json.loads(field.type.to_json()) for field in wanted.fields}
    return [
        field
        for field in wanted.fields
        if field.name not in known or _grows(where, field.name, known[field.name], wanted_types[field.name])
    ]


def refuse_unheld(where: str, there: Any) -> None:
    """Raises StorageError where a table asks of rows what nothing here holds them against, or has its columns by other
    names in its files than landed rows have them.

    Args:
        there: `deltalake.Schema`.
    """
    for path, field in _named("", json.loads(there.to_json())):
        metadata = field["metadata"]
        physical = metadata.get(_PHYSICAL, field["name"])
        if not field["nullable"]:
            rule = "takes no null"
        elif _INVARIANTS in metadata:
            rule = "has an invariant"
        elif _GENERATED in metadata:
            rule = "is generated"
        elif physical != field["name"]:
            raise StorageError(
                f"{where}: its column {path!r} is called {physical!r} in its files (column mapping), where readers "
                "would find none of what is landed; choose another place"
            )
        else:
            continue
        raise StorageError(f"{where}: its column {path!r} {rule}, which is not looked at here; take that away")


def _named(above: str, kind: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The columns of a type as Delta's log writes it, and the fields in them, by their paths."""
    if not isinstance(kind, dict):
        return
    for field in kind.get("fields", ()):
        yield above + field["name"], field
        yield from _named(f"{above}{field['name']}.", field["type"])
    for name in ("elementType", "keyType", "valueType"):
        yield from _named(above, kind.get(name))


def _grows(where: str, path: str, there: Any, wanted: Any) -> bool:
    """Whether a type has fields that the table's lacks. Both are as Delta's log writes types."""
    if there == wanted:
        return False
    kind = there.get("type") if isinstance(there, dict) else None
    if kind is None or not isinstance(wanted, dict) or wanted.get("type") != kind:
        raise StorageError(
            f"{where}: its column {path!r} is {_said(there)}, and would be {_said(wanted)}: a column keeps its type"
        )
    if kind == "struct":
        known = {field["name"]: field["type"] for field in there["fields"]}
        fields = {field["name"]: field["type"] for field in wanted["fields"]}
        for name, inner in known.items():
            if name not in fields:
                raise StorageError(f"{where}: its column {path!r} has a field {name!r}, which values would lack")
            _grows(where, f"{path}.{name}", inner, fields[name])
        return known != fields
    inner = {"array": ["elementType"], "map": ["keyType", "valueType"]}[kind]
    # Each is looked at, whatever the one before it says.
    return sum(_grows(where, path, there[name], wanted[name]) for name in inner) > 0


def _check(where: str, field: pa.Field, path: str) -> None:
    import pyarrow as pa

    wrong = sorted(set(field.name) & set(_FORBIDDEN))
    if wrong:
        raise ConfigError(
            f"column {path!r}: Delta allows no {wrong[0]!r} in the name of a column; land it with the format parquet"
        )
    kind = field.type
    if pa.types.is_duration(kind) or pa.types.is_interval(kind) or pa.types.is_time(kind) or pa.types.is_null(kind):
        raise ConfigError(f"column {path!r}: Delta has no type for {kind}; land it with the format parquet")
    if pa.types.is_struct(kind):
        if not kind.num_fields:
            raise ConfigError(f"column {path!r}: is a struct without fields, which Parquet has none of")
        _refuse_twice(f"{path}.", kind)
    if pa.types.is_nested(kind):
        for index in range(kind.num_fields):
            child = kind.field(index)
            inner = child if pa.types.is_struct(kind) else child.with_name("element")
            _check(where, inner, f"{path}.{inner.name}")


def _refuse_twice(above: str, fields: Iterable[pa.Field]) -> None:
    """Names that differ in case alone are one to Delta."""
    seen: dict[str, str] = {}
    for field in fields:
        lower = field.name.lower()
        if lower in seen:
            raise ConfigError(
                f"columns {above + seen[lower]!r} and {above + field.name!r}: names in Delta have to differ in more "
                "than case; land them with the format parquet"
            )
        seen[lower] = field.name


def _said(kind: Any) -> str:
    return str(kind["type"] if isinstance(kind, dict) else kind)
