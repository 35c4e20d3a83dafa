"""From records to the rows that Spark is given: the columns of a schema, headers as columns, values decoded.

Only what the schema names is decoded and built. Source: Spark's KafkaRecordToRowConverter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import BinaryType, DataType, StructField, StructType

from tagwire.errors import ConfigError
from tagwire.spark.columns import HEADERS, arrow_schema, chosen, record_name, topic_schema
from tagwire.spark.values.formats import ValueOptions, value_options
from tagwire.spark.values.modes import DROPMALFORMED, FAILFAST

if TYPE_CHECKING:
    import pyarrow as pa

HEADER_COLUMNS = "headers.columns"


@dataclass(frozen=True)
class RowOptions:
    """The options that change the columns of a row.

    Attributes:
        header_columns: names of headers that become binary columns: the value of a record's last header of that name.
        values: how values are decoded; None leaves them bytes.
    """

    include_headers: bool = False
    header_columns: tuple[str, ...] = ()
    values: ValueOptions | None = None

    def schema(self) -> StructType:
        """The columns of a read that names no schema of its own."""
        decoded = self.values.columns() if self.values else {}
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
    values = value_options(given)
    taken = {name.lower() for name in topic_schema(True).fieldNames()}
    for name in (*header_columns, *([values.corrupt] if values and values.corrupt else [])):
        if not name:
            raise ConfigError(
                f"option {HEADER_COLUMNS}={given[HEADER_COLUMNS]!r}: needs names of headers, separated by commas"
            )
        if name.lower() in taken:
            raise ConfigError(f"option {HEADER_COLUMNS}: {name!r} would be a second column of that name")
        taken.add(name.lower())
    return RowOptions(include_headers, header_columns, values)


class RowConverter:
    """Makes the rows of one read. Pickled to the workers.

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
        values = options.values
        self.decodes = values is not None and (
            "value" in names or values.corrupt in names or values.mode in (DROPMALFORMED, FAILFAST)
        )
        own = topic_schema(True).fieldNames()
        needed = [name for name in names if name in own and not (name == "value" and self.decodes)]
        needed += ["value"] if self.decodes else []
        needed += [HEADERS] if HEADERS not in needed and any(name in options.header_columns for name in names) else []
        needed += ["offset"] if self.decodes and "offset" not in needed else []
        self.columns = tuple(map(record_name, needed))
        self.plain = needed == names and not self.decodes

    def converted(self, batches: Iterator[pa.RecordBatch], where: str) -> Iterator[pa.RecordBatch]:
        """Batches of `columns` as batches of `schema`; those that end up without rows are left out.

        Args:
            where: the partition's name, for errors.

        Raises:
            DecodeError: a value that cannot be decoded, by its partition and offset (FAILFAST).
        """
        import pyarrow as pa

        for batch in batches:
            found = pa.RecordBatch.from_arrays(batch.columns, schema=self.schema) if self.plain else None
            found = self._built(batch, where) if found is None else found
            if found.num_rows:
                yield found

    def _built(self, batch: pa.RecordBatch, where: str) -> pa.RecordBatch:
        import pyarrow as pa

        columns = dict(zip(self.columns, batch.columns))
        kept: pa.Array | None = None
        values = self.options.values
        if values is not None and self.decodes:
            kind = self.spark["value"].dataType if "value" in self.spark.fieldNames() else values.format.type()
            decoded, bad = values.format.decoded(columns["value"], kind)
            if bad.true_count:
                if values.mode == FAILFAST:
                    row = bad.index(True).as_py()
                    at = columns["offset"][row].as_py()
                    raise values.refuse(columns["value"][row].as_py(), f"{where}@{at}")
                kept = _inverted(bad) if values.mode == DROPMALFORMED else None
            if values.corrupt:
                columns[values.corrupt] = _where(bad, columns["value"])
            columns["value"] = decoded
        header_columns = [name for name in self.options.header_columns if name in self.spark.fieldNames()]
        if header_columns:
            columns |= _last_headers(columns[HEADERS], header_columns)
        arrays = [columns[record_name(field.name)] for field in self.spark.fields]
        found = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        return found if kept is None else found.filter(kept)


def _checked(schema: StructType, options: RowOptions) -> StructType:
    """`schema`, once it names columns there are; of a decoded value also some of its fields."""
    if HEADERS in schema.fieldNames() and not options.include_headers:
        raise ConfigError("schema column headers: needs option includeHeaders=true")
    there = options.schema()
    if options.values is not None and "value" in schema.fieldNames():
        value = schema["value"].dataType
        if isinstance(value, StructType):
            chosen(value, options.values.format.type())
            there = StructType(
                [StructField(each.name, value if each.name == "value" else each.dataType) for each in there.fields]
            )
    return chosen(schema, there)


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


def _inverted(mask: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return pc.invert(mask)


def _where(mask: pa.Array, values: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(mask, values, pa.scalar(None, values.type))
