"""Keys and values of what was fetched, as their schemas say: many records at a time.

Decoding may wait for a schema registry, and takes the processor long. So it is done by whoever asked for records, where
they wait for other things, too: `Undecoded` tells them what is to be done before they ask again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tagwire.client.value_formats import NULL, RAISE, ValueFormats
from tagwire.errors import DecodeError, TagwireError
from tagwire.partitions import TopicPartition
from tagwire.records import Record

if TYPE_CHECKING:
    import pyarrow as pa

    from tagwire.values.value_decoder import ValueDecoder

_LONGEST: Final = 400


class Undecoded(Exception):
    """Nothing is given out yet: `call` is to be called once, which may wait for a schema registry, and then what raised
    this is to be done again.

    Attributes:
        call: for any thread. It raises what keeps the values from being decoded at all, such as SchemaRegistryError.
    """

    def __init__(self, call: Callable[[], None]) -> None:
        super().__init__("values are not decoded yet")
        self.call = call


class Decoded(NamedTuple):
    """Records that were decoded.

    Attributes:
        records: in their order, without those that were dropped.
        places: for each, which of those that were given it is.
        taken: how many of those that were given are done with.
        error: what is wrong with the one after them.
    """

    records: list[Record]
    places: Sequence[int]
    taken: int
    error: TagwireError | None = None


class ValueDecoding:
    """Decodes for one reader or consumer, which asks for one thing after the other."""

    def __init__(self, formats: ValueFormats) -> None:
        self._formats = formats
        self._decoders: dict[tuple[str, str], ValueDecoder] = {}
        self._records: tuple[list[Record], list[Record | None], TagwireError | None] | None = None
        self._batch: tuple[object, pa.RecordBatch, int | None, TagwireError | None] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are not bytes."""
        return self._formats.columns

    @property
    def needs_headers(self) -> bool:
        """Whether headers may say which schema wrote a value."""
        return any(_needs_headers(self._formats, which) for which in self.columns)

    # Records -------------------------------------------------------------------------------------------------------

    def records(self, records: list[Record]) -> Decoded:
        """Records of one partition, or as many of the first as were decoded together. Raises Undecoded."""
        done = self._records
        if done is None or not done[0] or done[0][0] is not records[0]:
            raise Undecoded(partial(self._decode_records, records))
        given, found, error = done
        count = min(len(records), len(found))
        if count < len(found):
            self._records = given[count:], found[count:], error
            error = None
        elif error is not None:
            self._records = given[count:], [], error
        else:
            self._records = None
        kept = [(place, one) for place, one in enumerate(found[:count]) if one is not None]
        return Decoded([one for _, one in kept], [place for place, _ in kept], count, error)

    def _decode_records(self, records: list[Record]) -> None:
        import pyarrow as pa

        topic, partition = records[0].topic or "", records[0].partition
        headers = None
        if self.needs_headers and any(each.headers for each in records):
            headers = _header_array([each.headers for each in records])
        columns: dict[str, list[object]] = {}
        bad: dict[int, Callable[[], DecodeError]] = {}
        for which in self.columns:
            values = pa.array([getattr(each, which) for each in records], pa.binary())
            decoder = self._decoder(which, topic)
            decoded, is_bad = decoder.decode(values, headers)
            columns[which], without = _objects(decoded)
            reasons: dict[int, Callable[[], str]] = {
                place: partial(self._reason, decoder, values, headers, place) for place in _places(is_bad)
            }
            for place, reason in (without | reasons).items():
                at = TopicPartition(topic, partition or 0), records[place].offset
                bad[place] = partial(_bad, which, *at, reason)
        found: list[Record | None] = []
        error: TagwireError | None = None
        for place, record in enumerate(records):
            if place in bad and self._formats.bad != NULL:
                if self._formats.bad == RAISE:
                    error = bad[place]()
                    break
                found.append(None)
                continue
            fields: dict[str, Any] = {which: objects[place] for which, objects in columns.items()}
            found.append(record.replace(**fields))
        self._records = records, found, error

    # Arrow batches -------------------------------------------------------------------------------------------------

    def batch(
        self, batch: pa.RecordBatch, partition: TopicPartition
    ) -> tuple[pa.RecordBatch, int | None, TagwireError | None]:
        """A batch of one partition with columns of their types, which ends before the first row that is bad, if that is
        to be raised; then also its offset and the error. Raises Undecoded.

        Args:
            batch: with the columns offset, and headers where `needs_headers`.
        """
        done, self._batch = self._batch, None
        if done is None or done[0] is not batch:
            raise Undecoded(partial(self._decode_batch, batch, partition))
        return done[1:]

    def _decode_batch(self, batch: pa.RecordBatch, partition: TopicPartition) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        names = list(batch.schema.names)
        headers = batch.column("headers") if self.needs_headers else None
        found, bad = batch, None
        first: tuple[int, str, ValueDecoder] | None = None
        for which in self.columns:
            if which not in names:
                continue
            decoder = self._decoder(which, partition.topic)
            decoded, wrong = decoder.decode(batch.column(which), headers)
            if wrong.true_count:
                place = _places(wrong)[0]
                first = (place, which, decoder) if first is None or place < first[0] else first
                bad = wrong if bad is None else pc.or_(bad, wrong)
            found = found.set_column(names.index(which), pa.field(which, decoded.type), decoded)
        if first is None or bad is None or self._formats.bad == NULL:
            self._batch = batch, found, None, None
        elif self._formats.bad == RAISE:
            place, which, decoder = first
            offset = batch.column("offset")[place].as_py()
            reason = partial(self._reason, decoder, batch.column(which), headers, place)
            self._batch = batch, found.slice(0, place), offset, _bad(which, partition, offset, reason)
        else:
            self._batch = batch, found.filter(pc.invert(bad)), None, None

    # Parts ---------------------------------------------------------------------------------------------------------

    def _decoder(self, which: str, topic: str) -> ValueDecoder:
        """By the schema that the topic's subject has when the first of its records are read: it stays the same."""
        found = self._decoders.get((which, topic))
        if found is None:
            from tagwire.values.value_decoder import plan_decoder

            settings = self._formats.of(which)
            assert settings is not None
            found = self._decoders[which, topic] = plan_decoder(settings, topic)
        return found

    def _reason(self, decoder: ValueDecoder, values: pa.Array, headers: pa.Array | None, place: int) -> str:
        value = values[place].as_py()
        pairs = None if headers is None else headers[place].as_py()
        return decoder.refusal(value, [(each["key"], each["value"]) for each in pairs or ()])


def _needs_headers(formats: ValueFormats, which: str) -> bool:
    settings = formats.of(which)
    return settings is not None and settings.registry is not None and settings.location != "prefix"


def _bad(which: str, partition: TopicPartition, offset: int, reason: Callable[[], str]) -> DecodeError:
    return DecodeError(reason()[:_LONGEST], path=f"{which} of {partition}@{offset}")


def _places(bad: pa.Array) -> list[int]:
    import pyarrow.compute as pc

    found: list[int] = pc.indices_nonzero(bad).to_pylist()
    return found


def _objects(values: pa.Array) -> tuple[list[object], dict[int, Callable[[], str]]]:
    """Each value as Python has it, and by their places why it has some not."""
    try:
        return _as_python(values), {}
    except (ValueError, OverflowError):  # a time or a date that Python has none for
        found: list[object] = []
        without: dict[int, Callable[[], str]] = {}
        for place in range(len(values)):
            try:
                found += _as_python(values[place : place + 1])
            except (ValueError, OverflowError) as error:
                found.append(None)
                without[place] = f"Python has no such value: {error}".__str__
        return found, without


def _as_python(values: pa.Array) -> list[object]:
    """Maps as dicts, where their keys can be those of a dict. Structs a field at a time: Arrow's own way is slow."""
    import pyarrow as pa

    names = [field.name for field in values.type] if pa.types.is_struct(values.type) else []
    if names and len(set(names)) == len(names):
        rows = zip(*map(_as_python, values.flatten()))
        if not values.null_count:
            return [dict(zip(names, row)) for row in rows]
        return [dict(zip(names, row)) if there else None for row, there in zip(rows, values.is_valid().to_pylist())]
    try:
        found: list[object] = values.to_pylist(maps_as_pydicts="strict")
    except (KeyError, TypeError):  # a key that is there twice, or a struct
        found = values.to_pylist()
    return found


def _header_array(headers: Sequence[Sequence[tuple[object, bytes | None]]]) -> pa.Array:
    import pyarrow as pa

    rows = [[{"key": key, "value": value} for key, value in each if isinstance(key, str)] for each in headers]
    return pa.array(rows, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))
