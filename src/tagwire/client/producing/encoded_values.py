"""Keys and values that are sent, as their schemas say: of one record, or a column of Arrow rows.

What a topic's subject has is asked for once, which may wait for a schema registry: `Unplanned` tells whoever sends what
is to be done before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tagwire.client.value_formats import ValueFormats
from tagwire.errors import EncodeError, ValueSchemaError
from tagwire.records import Record
from tagwire.values.decimals import is_far

if TYPE_CHECKING:
    import pyarrow as pa

    from tagwire.values.value_encoder import ValueEncoder

# Sets of fields that values of a topic had, each with what encodes them.
_MOST_KEPT: Final = 1000
_LONGEST: Final = 400


class Unplanned(Exception):
    """How a value is to be encoded is not known yet: `call` is to be called once, from any thread. It raises
    ValueSchemaError, SchemaRegistryError or ConfigError where that cannot be known."""

    def __init__(self, call: Callable[[], None]) -> None:
        super().__init__("how values are encoded is not known yet")
        self.call = call


class ValueEncoding:
    """Encodes for one producer. For any thread."""

    def __init__(self, formats: ValueFormats) -> None:
        self._formats = formats
        self._types: dict[tuple[str, str], pa.DataType] = {}
        self._encoders: dict[tuple[str, str, object], ValueEncoder] = {}

    # One record ----------------------------------------------------------------------------------------------------

    def record(self, topic: str, record: Record) -> Record:
        """A record with bytes.

        Raises:
            EncodeError: a key or value does not fit its schema. Unplanned.
        """
        for which in self._formats.columns:
            given = getattr(record, which)
            if given is None:
                continue
            data, header = self._one(which, topic, given)
            fields: dict[str, Any] = {which: data}
            if header is not None:
                fields["headers"] = (*record.headers, header)
            record = record.replace(**fields)
        return record

    def _one(self, which: str, topic: str, given: object) -> tuple[bytes, tuple[str, bytes] | None]:
        encoder = self._encoders.get((which, topic, None))  # of a type that is no struct
        if encoder is None and type(given) is dict:
            encoder = self._encoders.get((which, topic, frozenset(given)))
        if encoder is not None:
            data = encoder.encode_one(given)
            if data is not None:
                return data, encoder.header
        return self._one_as_column(which, topic, given)

    def _one_as_column(self, which: str, topic: str, given: object) -> tuple[bytes, tuple[str, bytes] | None]:
        import pyarrow as pa

        from tagwire.values.python_rows import python_row

        kind = self._types.get((which, topic))
        if kind is None:
            raise Unplanned(partial(self._plan_type, which, topic))
        where = f"{which} of a record for {topic!r}"
        _check(given, kind, where)
        names: object = None
        if pa.types.is_struct(kind):
            if not isinstance(given, Mapping):
                raise EncodeError(f"{where}: needs a dict of {_fields(kind)}, not {type(given).__name__}")
            names = frozenset(given)
            kind = pa.struct([field for field in kind if field.name in given])
        encoder = self._encoders.get((which, topic, names))
        if encoder is None:
            raise Unplanned(partial(self._plan, which, topic, names, kind, where))
        try:
            column = pa.array([given], kind)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise EncodeError(f"{where}: {str(error)[:_LONGEST]}") from None
        encoded, bad = encoder.encode(column)
        if bad[0].as_py() or not encoded[0].is_valid:
            raise EncodeError(f"{where}: {encoder.refusal(python_row(column, 0))[:_LONGEST]}")
        data: bytes = encoded[0].as_py()
        return data, encoder.header

    def _plan_type(self, which: str, topic: str) -> None:
        from tagwire.values.formats import body_format
        from tagwire.values.value_decoder import reader_schema

        settings = self._formats.of(which)
        assert settings is not None
        schema = reader_schema(settings, topic)[0]
        self._types[which, topic] = body_format(settings.format).reader_schema(schema, settings.message).type

    def _plan(self, which: str, topic: str, names: object, kind: pa.DataType, where: str) -> None:
        if len(self._encoders) >= _MOST_KEPT:
            self._encoders.clear()
        try:
            self._encoders[which, topic, names] = self._planned(which, topic, kind)
        except ValueSchemaError as error:
            if names is None or kind == self._types[which, topic]:
                raise
            raise EncodeError(f"{where}: {error}") from None  # a field is missing

    def _planned(self, which: str, topic: str, kind: pa.DataType) -> ValueEncoder:
        from tagwire.values.value_encoder import plan_encoder

        settings = self._formats.of(which)
        assert settings is not None
        return plan_encoder(settings, topic, kind)

    # Arrow rows ----------------------------------------------------------------------------------------------------

    def rows(self, topic: str, rows: pa.RecordBatch | pa.Table) -> pa.RecordBatch | pa.Table:
        """Rows with keys and values as bytes, and the headers that say by which schema. It may wait for a registry.

        Raises:
            ValueSchemaError: a column does not fit its schema. EncodeError: a row does not; its text has its number.
            SchemaRegistryError: the registry does not answer.
        """
        import pyarrow as pa

        from tagwire.values.python_rows import python_row

        for which in self._formats.columns:
            position = rows.schema.get_field_index(which)
            if position < 0:
                continue
            column = rows.column(position)
            key = (which, topic, column.type)
            encoder = self._encoders.get(key)
            if encoder is None:
                encoder = self._encoders[key] = self._planned(which, topic, column.type)
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            encoded = []
            before = 0
            for chunk in chunks:
                data, bad = encoder.encode(chunk)
                if bad.true_count:
                    place = bad.index(True).as_py()
                    reason = encoder.refusal(python_row(chunk, place))
                    raise EncodeError(f"row {before + place}: {which}: {reason[:_LONGEST]}")
                encoded.append(data)
                before += len(chunk)
            made = pa.chunked_array(encoded, pa.binary()) if isinstance(column, pa.ChunkedArray) else encoded[0]
            rows = rows.set_column(position, pa.field(which, pa.binary()), made)
            if encoder.header is not None:
                rows = _with_header(rows, encoder.header)
        return rows


def _check(given: object, kind: pa.DataType, where: str) -> None:
    """Refuses what Arrow would pass over, cut off, or end the process at.

    Those are names that the type lacks, fractions of whole numbers, what is no pair in a map, and decimals of millions
    of places, zeros too, in which Arrow leaves its stack.
    """
    import pyarrow as pa

    types = pa.types
    if types.is_struct(kind) and isinstance(given, Mapping):
        for name, value in given.items():
            if not isinstance(name, str) or kind.get_field_index(name) < 0:
                raise EncodeError(f"{where}: {name!r} is no field of the schema; there are {_fields(kind)}")
            _check(value, kind.field(name).type, f"{where}, {name}")
    elif types.is_map(kind) and given is not None:
        pairs = given.items() if isinstance(given, Mapping) else given
        if not isinstance(given, (Mapping, list, tuple)) or not all(_is_pair(pair) for pair in pairs):  # type: ignore[attr-defined]
            raise EncodeError(f"{where}: needs a dict, or a list of pairs")
        for name, value in pairs:  # type: ignore[attr-defined]
            _check(name, kind.key_type, where)
            _check(value, kind.item_type, f"{where}, {str(name)[:_LONGEST]}")
    elif types.is_list(kind) and isinstance(given, (list, tuple)):
        for value in given:
            _check(value, kind.value_type, where)
    elif types.is_integer(kind) and isinstance(given, (float, Decimal)) and not _is_whole(given):
        raise EncodeError(f"{where}: {given} is no whole number")
    elif types.is_decimal(kind) and isinstance(given, Decimal) and is_far(given):
        raise EncodeError(f"{where}: {str(given)[:_LONGEST]} is no {kind}")


def _is_pair(given: object) -> bool:
    return isinstance(given, tuple) and len(given) == 2


def _is_whole(given: float | Decimal) -> bool:
    if isinstance(given, float):
        return given.is_integer()
    return given.is_finite() and given == given.to_integral_value()


def _fields(kind: pa.DataType) -> str:
    return ", ".join(field.name for field in kind)[:_LONGEST]


def _with_header(rows: pa.RecordBatch | pa.Table, header: tuple[str, bytes]) -> pa.RecordBatch | pa.Table:
    """Rows whose records have one header more, the last."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = pa.struct([("key", pa.string()), ("value", pa.binary())])
    from tagwire.values.framing import counted

    count = rows.num_rows
    own = pa.array([{"key": header[0], "value": header[1]}], kind).take(pa.repeat(pa.scalar(0), count))
    position = rows.schema.get_field_index("headers")
    if position < 0:
        found = pa.ListArray.from_arrays(counted(count + 1).cast(pa.int32()), own)
        return rows.append_column(pa.field("headers", found.type), found)
    given = rows.column(position)
    if isinstance(given, pa.ChunkedArray):
        given = pa.concat_arrays(given.chunks) if given.num_chunks else pa.array([], given.type)
    try:
        if given.null_count:  # a null may stand over entries; taken by rows, it stands over none
            given = given.take(counted(count))
        flat = pc.list_flatten(given).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError) as error:
        raise EncodeError(f"headers: need a list of structs of key and value: {error}") from None
    parents = pa.concat_arrays([pc.list_parent_indices(given).cast(pa.int64()), counted(count)])
    order = pc.array_sort_indices(parents)  # a stable sort: a row's own header stays behind those that it had
    lengths = pc.add(pc.fill_null(pc.list_value_length(given), 0).cast(pa.int64()), 1)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    found = pa.ListArray.from_arrays(offsets, pa.concat_arrays([flat, own]).take(order))
    return rows.set_column(position, pa.field("headers", found.type), found)
