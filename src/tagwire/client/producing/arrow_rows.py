"""Arrow rows to record batches, each for one partition: keys are hashed a column at a time, rows are copied once."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from tagwire import records
from tagwire.client.producing.partitioner import TopicPartitioner
from tagwire.errors import EncodeError
from tagwire.escaping import told
from tagwire.extras import Needs
from tagwire.kernel import partitioning as kernel
from tagwire.partitions import TopicPartition

with Needs("arrow"):
    import pyarrow as pa
    import pyarrow.compute as pc

# What brokers take as one batch by default, less some room (max.message.bytes of Kafka).
MAX_BATCH_BYTES = 1 << 20

# Rows are partitioned so many at a time: what is moved for it is bounded.
SLICE_ROWS = 1 << 18

_ANYWHERE = -1

# How alike two names of columns are that are meant to be the same (difflib's ratio).
_ALIKE = 0.8


_COLUMNS = ("key", "value", "headers", "timestamp", "partition")


def check_rows(rows: object) -> None:
    """Raises EncodeError for what are no Arrow rows, and for rows that would be written as empty records: those without
    keys and values, and those that lack a column whose name another one nearly has."""
    if not isinstance(rows, (pa.RecordBatch, pa.Table)):
        raise EncodeError(
            f"rows must be a pyarrow.RecordBatch or a pyarrow.Table, not {type(rows).__name__}: write "
            'pyarrow.table({"key": [...], "value": [...]}), or pyarrow.Table.from_pandas(frame)'
        )
    given = list(rows.schema.names)
    for name in _COLUMNS:
        if (count := given.count(name)) > 1:
            raise EncodeError(f"column {name} is there {count} times")
    missing = [name for name in _COLUMNS if name not in given]
    for name in given:
        near = [] if name in _COLUMNS else get_close_matches(name.lower(), missing, 1, _ALIKE)
        if near:
            raise EncodeError(f"column {told(name)!r} is not looked at: is it meant to be {near[0]!r}?")
    if "key" in missing and "value" in missing:
        raise EncodeError(
            f"rows have neither a column 'key' nor 'value', but {told(', '.join(map(repr, given))) or 'none'}: "
            "name them so, as in rows.rename_columns([...])"
        )


def greatest_partition(rows: pa.RecordBatch | pa.Table) -> int | None:
    """The greatest number in the column `partition`; None where no row has one."""
    position = rows.schema.get_field_index("partition")
    if position < 0 or not pa.types.is_integer(rows.column(position).type):
        return None
    found: int | None = pc.max(rows.column(position)).as_py()
    return found


def row_batches(
    rows: pa.RecordBatch | pa.Table,
    partitioner: TopicPartitioner,
    partition: int | None,
    batch_bytes: int,
    now: int,
    dialect: str | None = None,
    register: records.HeaderRegister | None = None,
) -> Iterator[tuple[TopicPartition, bytes]]:
    """The rows as record batches, made one by one, and where each goes.

    Args:
        partition: where all of them go; None as their columns say. See `Producer.send_arrow`, also for errors.
        batch_bytes: of records before compression, at most; one record alone may be longer.
        now: the timestamp of rows without one, milliseconds since 1970 UTC.
        dialect, register: of `tagwire.records.from_arrow`.
    """
    for piece in _pieces(_timed(rows, now)):
        for number, own in [(partition, piece)] if partition is not None else _spread(piece, partitioner):
            for data in records.batches_from_arrow(
                own,
                max_batch_bytes=batch_bytes,
                compression=partitioner.compression,
                level=partitioner.level,
                dialect=dialect,
                register=register,
            ):
                tp = partitioner.partition_for(None, None if number == _ANYWHERE else number)
                partitioner.batch_closed(tp.partition, len(data))
                yield tp, data


def _timed(rows: pa.RecordBatch | pa.Table, now: int) -> pa.RecordBatch | pa.Table:
    """The rows with a timestamp for each: `now`, where there is none."""
    position = rows.schema.get_field_index("timestamp")
    column = None if position < 0 else rows.column(position)
    if column is not None and not column.null_count:
        return rows
    if column is None or column.null_count == rows.num_rows:
        times = pa.repeat(pa.scalar(now, pa.int64()), rows.num_rows)
    else:
        is_time = pa.types.is_timestamp(column.type)
        kind = pa.timestamp("ms", column.type.tz) if is_time else pa.int64()
        try:
            times = pc.fill_null(column, pa.scalar(now, kind).cast(column.type, safe=not is_time))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise EncodeError(f"column timestamp is {column.type}, with nulls: {error}") from None
    return rows.append_column("timestamp", times) if column is None else rows.set_column(position, "timestamp", times)


def _pieces(rows: pa.RecordBatch | pa.Table) -> Iterator[pa.RecordBatch]:
    for batch in rows.to_batches() if isinstance(rows, pa.Table) else [rows]:
        for start in range(0, batch.num_rows, SLICE_ROWS):
            yield batch.slice(start, SLICE_ROWS)


def _spread(rows: pa.RecordBatch, partitioner: TopicPartitioner) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each partition, in order; -1 is for those that may go anywhere."""
    where = _partitions(rows, partitioner)
    if where is None:
        yield _ANYWHERE, rows
        return
    counts = {entry["values"]: entry["counts"] for entry in pc.value_counts(where).to_pylist()}
    # The sort is stable: rows keep their order within a partition.
    moved = rows if len(counts) == 1 else rows.take(pc.array_sort_indices(where))
    start = 0
    for number, count in sorted(counts.items()):
        yield number, moved.slice(start, count)
        start += count


def _partitions(rows: pa.RecordBatch, partitioner: TopicPartitioner) -> pa.Array | None:
    """The partition of each row as int32; None where all may go anywhere. Where only some may, they go where such
    records go now: in one partition rows keep their order, whether they have keys or not."""
    named, keys = _column(rows, "partition"), _keys(rows, partitioner)
    if named is None:
        return None if keys is None else _by_key(keys, partitioner)
    if not pa.types.is_integer(named.type):
        raise EncodeError(f"column partition is {named.type}, not integers")
    for bound in pc.min_max(named).as_py().values():
        partitioner.checked(bound)
    named = named.cast(pa.int32())
    if not named.null_count:
        return named
    return pc.coalesce(named, _anywhere(partitioner) if keys is None else _by_key(keys, partitioner))


def _anywhere(partitioner: TopicPartitioner) -> pa.Scalar:
    return pa.scalar(partitioner.sticky.current, pa.int32())


def _by_key(keys: pa.Array, partitioner: TopicPartitioner) -> pa.Array:
    try:
        keys = keys.cast(pa.binary())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise EncodeError(f"column key is {keys.type}, not binary or string of less than 2 GiB") from None
    if not partitioner.hashes_by_column:
        found = [partitioner.partition_of_key(key) for key in keys.to_pylist()]
        return pc.fill_null(pa.array(found, pa.int32()), _anywhere(partitioner))
    _, ends, data = keys.buffers()
    hashes = bytearray(4 * len(keys))
    kernel.partitions_of(
        memoryview(ends).cast("i")[keys.offset : keys.offset + len(keys) + 1],
        memoryview(data or b"").cast("B"),
        len(partitioner),
        memoryview(hashes).cast("i"),
    )
    hashed = pa.Array.from_buffers(pa.int32(), len(keys), [None, pa.py_buffer(hashes)])
    return pc.if_else(keys.is_null(), _anywhere(partitioner), hashed) if keys.null_count else hashed


def _keys(rows: pa.RecordBatch, partitioner: TopicPartitioner) -> pa.Array | None:
    """The keys that partitions depend on; None where all rows may go anywhere."""
    keys = _column(rows, "key")
    if keys is None and partitioner.partition_of_key(None) is not None:
        return pa.nulls(rows.num_rows, pa.binary())
    return keys


def _column(rows: pa.RecordBatch, name: str) -> pa.Array | None:
    """A column, unless it is missing or says nothing."""
    position = rows.schema.get_field_index(name)
    column = None if position < 0 else rows.column(position)
    return None if column is None or column.null_count == rows.num_rows else column
