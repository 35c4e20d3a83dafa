"""From records to the rows that Spark is given: the columns of a schema, headers as columns, keys and values decoded.

Only what the schema names is decoded and built. Source: Spark's KafkaRecordToRowConverter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING

from pyspark.sql.types import BinaryType, DataType, StructField, StructType

from tagwire.errors import ConfigError, DecodeError
from tagwire.spark.columns import HEADERS, arrow_schema, chosen, record_name, topic_schema
from tagwire.spark.values.modes import DROPMALFORMED, FAILFAST
from tagwire.spark.values.options import DecodedColumn, decoded_columns

if TYPE_CHECKING:
    import pyarrow as pa

HEADER_COLUMNS = "headers.columns"


@dataclass(frozen=True)
class RowOptions:
    """The options that change the columns of a row.

    Attributes:
        header_columns: names of headers that become binary columns: the value of a record's last header of that name.
        decoded: how keys and values are decoded; what is not named stays bytes.
    """

    include_headers: bool = False
    header_columns: tuple[str, ...] = ()
    decoded: tuple[DecodedColumn, ...] = ()

    def planned(self, topic: str | None) -> RowOptions:
        """The options of a read of `topic`, whose columns are fixed from now on: see `ColumnFormat.planned`."""
        return replace(self, decoded=tuple(each.planned(topic) for each in self.decoded))

    def schema(self) -> StructType:
        """The columns of a read that names no schema of its own."""
        decoded = {name: kind for each in self.decoded for name, kind in each.columns().items()}
        own = topic_schema(self.include_headers)
        columns: dict[str, DataType] = {field.name: decoded.get(field.name, field.dataType) for field in own.fields}
        for name, kind in (*((name, BinaryType()) for name in self.header_columns), *decoded.items()):
            columns.setdefault(name, kind)
        return StructType([StructField(name, kind) for name, kind in columns.items()])


def row_options(given: Mapping[str, str], *, include_headers: bool) -> RowOptions:
    """The options that change the columns of a row, checked.

    Raises:
        ConfigError: an option has a wrong value, or two columns would have one name.
    """
    header_columns = (
        tuple(name.strip() for name in given.get(HEADER_COLUMNS, "").split(",")) if HEADER_COLUMNS in given else ()
    )
    decoded = decoded_columns(given)
    taken = {name.lower() for name in topic_schema(True).fieldNames()}
    for option, name in (
        *((HEADER_COLUMNS, name) for name in header_columns),
        *((each.corrupt_option, each.corrupt) for each in decoded if each.corrupt),
    ):
        if not name:
            raise ConfigError(f"option {option}={given[option]!r}: needs names of headers, separated by commas")
        if name.lower() in taken:
            raise ConfigError(f"option {option}: {name!r} would be a second column of that name")
        taken.add(name.lower())
    return RowOptions(include_headers, header_columns, decoded)


class RowConverter:
    """Makes the rows of one read. Pickled to the workers.

    Args:
        options: planned.

    Attributes:
        columns: of `tagwire.records.to_arrow`: what has to be decoded.
        schema: Arrow's, of the batches that Spark is given.

    Raises:
        ConfigError: the schema names what is not there.
    """

    def __init__(self, schema: StructType, options: RowOptions) -> None:
        self.options = options
        self.spark = _checked(schema, options)
        self.schema = arrow_schema(self.spark)
        names = self.spark.fieldNames()
        self.decoded = tuple(_narrowed(each, self.spark) for each in options.decoded if _is_needed(each, names))
        decoded = [each.name for each in self.decoded]
        own = topic_schema(True).fieldNames()
        needed = [name for name in names if name in own and name not in decoded] + decoded
        wants_headers = any(name in options.header_columns for name in names)
        if wants_headers or any(each.format.needs_headers for each in self.decoded):
            needed += [HEADERS] if HEADERS not in needed else []
        needed += ["offset"] if decoded and "offset" not in needed else []
        self.columns = tuple(map(record_name, needed))
        self.plain = needed == names and not decoded

    def converted(self, batches: Iterator[pa.RecordBatch], where: str) -> Iterator[pa.RecordBatch]:
        """Batches of `columns` as batches of `schema`; those that end up without rows are left out.

        Args:
            where: the partition's name, for errors.

        Raises:
            DecodeError: a key or value that cannot be decoded, by its partition and offset (FAILFAST).
            SchemaRegistryError: a schema cannot be asked for.
        """
        import pyarrow as pa

        for batch in batches:
            found = pa.RecordBatch.from_arrays(batch.columns, schema=self.schema) if self.plain else None
            found = self._built(batch, where) if found is None else found
            if found.num_rows:
                yield found

    def _built(self, batch: pa.RecordBatch, where: str) -> pa.RecordBatch:
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = dict(zip(self.columns, batch.columns))
        bytes_of = {each.name: columns[each.name] for each in self.decoded}
        kept: pa.Array | None = None
        refused: list[tuple[int, DecodedColumn]] = []
        for each in self.decoded:
            values = bytes_of[each.name]
            columns[each.name], bad = each.format.decoded(values, columns.get(HEADERS))
            if bad.true_count:
                if each.mode == FAILFAST:
                    refused.append((bad.index(True).as_py(), each))
                if each.mode == DROPMALFORMED:
                    kept = pc.invert(bad) if kept is None else pc.and_not(kept, bad)
            if each.corrupt:
                columns[each.corrupt] = _where(bad, values)
        if refused:
            row, each = min(refused, key=itemgetter(0))
            raise self._refusal(each, columns, bytes_of[each.name], row, where)
        header_columns = [name for name in self.options.header_columns if name in self.spark.fieldNames()]
        if header_columns:
            columns |= _last_headers(columns[HEADERS], header_columns)
        arrays = [columns[record_name(field.name)] for field in self.spark.fields]
        found = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        return found if kept is None else found.filter(kept)

    def _refusal(
        self, column: DecodedColumn, columns: dict[str, pa.Array], values: pa.Array, row: int, where: str
    ) -> DecodeError:
        headers = None
        if column.format.needs_headers:
            headers = [(each["key"], each["value"]) for each in columns[HEADERS][row].as_py() or ()]
        return column.refuse(values[row].as_py(), headers, f"{where}@{columns['offset'][row].as_py()}")


def _is_needed(column: DecodedColumn, names: list[str]) -> bool:
    return column.name in names or column.corrupt in names or column.mode in (DROPMALFORMED, FAILFAST)


def _narrowed(column: DecodedColumn, schema: StructType) -> DecodedColumn:
    """The column with the fields that the schema names."""
    there, wanted = column.format.type, column.format.type
    if column.name in schema.fieldNames():
        wanted = schema[column.name].dataType
    if wanted == there or not isinstance(wanted, StructType):
        return column
    return replace(column, format=column.format.narrowed(wanted.fieldNames()))


def _checked(schema: StructType, options: RowOptions) -> StructType:
    """`schema`, once it names columns there are; of a decoded column also some of its fields."""
    if HEADERS in schema.fieldNames() and not options.include_headers:
        raise ConfigError("schema column headers: needs option includeHeaders=true")
    there = {field.name: field.dataType for field in options.schema().fields}
    for each in options.decoded:
        wanted = schema[each.name].dataType if each.name in schema.fieldNames() else None
        if isinstance(wanted, StructType) and isinstance(each.format.type, StructType):
            chosen(wanted, each.format.type)
            there[each.name] = wanted
    return chosen(schema, StructType([StructField(name, kind) for name, kind in there.items()]))


def _last_headers(headers: pa.Array, names: list[str]) -> dict[str, pa.Array]:
    """The values of each record's last header of each name."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    pairs = headers.flatten()
    keys, values = pairs.field("key"), pairs.field("value")
    rows = pc.list_parent_indices(headers).to_numpy()
    found = {}
    for name in names:
        found_at = np.flatnonzero(pc.equal(keys, name).to_numpy(zero_copy_only=False))
        taken = np.full(len(headers), -1, np.int64)
        taken[rows[found_at]] = found_at  # of several, the last one stays
        found[name] = values.take(pa.array(taken, mask=taken < 0))
    return found


def _where(mask: pa.Array, values: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(mask, values, pa.scalar(None, values.type))
