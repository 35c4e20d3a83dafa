"""Topics of a record dialect: what its own clients send is stored as it is, what others send and get is bridged.

The int-headers dialect stores message sets whose header keys are ints. Between its records and those of record batches
stands a register of header keys: an int key is a name, or where none is registered its decimal number. Nothing is ever
altered to fit: what cannot be said in the other format is refused. Source: docs/dialects.md#int-header-keys.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from struct import Struct
from typing import Final

from tagwire.broker.clock import wall_ms
from tagwire.broker.record_refusals import refuse, untimely
from tagwire.broker.storage.batch import Batch
from tagwire.broker.topic_config import TopicConfig
from tagwire.errors import CorruptRecordError, EncodeError, Error, KafkaError
from tagwire.kernel import record_writing as kernel
from tagwire.records import BatchOptions, HeaderRegister, Record, RecordBatch, assign_offsets, read, write
from tagwire.records.compression import MAX_DECOMPRESSED
from tagwire.records.writer import seal

MAX_RECORDS: Final = 200_000
"""The most records that are compressed together: each becomes an object when it is checked or bridged."""

_INT64 = Struct(">q")


def check_for_dialect(
    records: memoryview | None,
    spoken: str | None,
    check: Callable[[], Batch],
    config: TopicConfig,
    register: HeaderRegister,
) -> Batch:
    """What is stored of what a producer sends, where either of producer and topic is of a dialect.

    Args:
        records: the bytes a Produce request holds for a partition.
        spoken: the dialect they are in; None for record batches, and message sets of Kafka's.
        check: gives the record batch that they are then, or raises KafkaError.

    Raises:
        KafkaError: INVALID_RECORD, CORRUPT_MESSAGE, INVALID_TIMESTAMP or MESSAGE_TOO_LARGE, with what is wrong; as
            `check`.
    """
    if spoken is None:
        return _bridged(check(), config, register)
    if spoken != config.dialect:
        kept = f"those of {config.dialect}" if config.dialect else "record batches"
        raise KafkaError(Error.INVALID_RECORD, f"records of the dialect {spoken} are sent; the topic keeps {kept}")
    if not records:
        raise KafkaError(Error.INVALID_RECORD, "there is no message")
    config.check_size(len(records))
    return _checked(bytearray(records), spoken, config)


def _checked(data: bytearray, dialect: str, config: TopicConfig) -> Batch:
    """The message set in `data`, whose offsets then count from 0."""
    count, end, times = 0, 0, array("q")
    try:
        for entry in read(data, dialect):
            first, rows = count, _records(entry)
            if entry.timestamp_type != "CreateTime":
                raise KafkaError(Error.INVALID_RECORD, "a producer's message cannot have append time")
            if entry.last_offset_delta != len(rows) - 1:
                raise KafkaError(Error.INVALID_RECORD, "the offsets in a compressed message set have gaps")
            times.extend(row.timestamp for row in rows)
            latest = max(times[first:])
            if latest != entry.max_timestamp:
                problem = f"a message says {entry.max_timestamp} is its greatest timestamp, and it is {latest}"
                raise KafkaError(Error.INVALID_TIMESTAMP, problem)
            count, end = first + len(rows), entry.position + entry.size
            _INT64.pack_into(data, entry.position, count - 1)
    except CorruptRecordError as error:
        raise KafkaError(Error.CORRUPT_MESSAGE, str(error)) from None
    if end != len(data):
        raise KafkaError(Error.CORRUPT_MESSAGE, f"{len(data) - end} bytes end inside a message")
    newest = max(times, default=-1)
    if times and not config.dates_records:
        refuse(untimely(times, newest, config, wall_ms()), {})
    return Batch(memoryview(data), count - 1, newest)


def _bridged(batch: Batch, config: TopicConfig, register: HeaderRegister) -> Batch:
    """A record batch that was checked, in the format of the topic."""
    source = RecordBatch(batch.data, 0)
    if batch.origin is not None:
        problem = f"the dialect {config.dialect} keeps no producer ids, so neither idempotence nor transactions"
        raise KafkaError(Error.INVALID_RECORD, problem)
    try:
        rows = [register.record_to_ints(row, number) for number, row in enumerate(_without_offset(_records(source)))]
        data = write(rows, compression=source.compression, dialect=config.dialect)
    except EncodeError as error:
        raise KafkaError(Error.INVALID_RECORD, f"it cannot be kept in the dialect {config.dialect}: {error}") from None
    config.check_size(len(data))
    return Batch(memoryview(bytearray(data)), batch.last_offset_delta, batch.max_timestamp)


def _records(entry: RecordBatch) -> list[Record]:
    rows = list(islice(entry.records(max_decompressed=MAX_DECOMPRESSED), MAX_RECORDS + 1))
    if len(rows) > MAX_RECORDS:
        problem = f"more than {MAX_RECORDS} records are compressed together"
        raise KafkaError(Error.MESSAGE_TOO_LARGE, f"{problem}, too many for a topic of a record dialect")
    return rows


def _without_offset(rows: Iterable[Record]) -> Iterator[Record]:
    """Errors about what has no offset yet count from the beginning of what was sent."""
    return (row.replace(offset=-1) for row in rows)


def to_record_batches(data: memoryview, dialect: str, leader_epoch: int, register: HeaderRegister) -> bytes:
    """The whole entries of a message set as record batches: messages that stand one by one together, what was
    compressed together as it was.

    Raises:
        CorruptRecordError: they cannot be read.
    """
    batches: list[bytes] = []
    run: list[Record] = []
    kind: tuple[object, ...] = ()
    for entry in read(data, dialect):
        stamped = entry.timestamp_type == "LogAppendTime"
        # In a batch whose broker dated it all records have one timestamp.
        found = entry.compression, entry.max_timestamp if stamped else None
        if run and (found != kind or entry.compression != "none"):
            batches.append(_batch(run, kind, leader_epoch))
            run = []
        kind = found
        run += [register.record_to_strings(row) for row in entry.records(max_decompressed=MAX_DECOMPRESSED)]
    if run:
        batches.append(_batch(run, kind, leader_epoch))
    return b"".join(batches)


def _batch(rows: list[Record], kind: tuple[object, ...], leader_epoch: int) -> bytes:
    compression, stamped = kind
    options = BatchOptions(
        compression=str(compression), timestamp_type="CreateTime" if stamped is None else "LogAppendTime"
    )
    # As they were read: `write` refuses times below -1, and one that is stored must not stop its readers.
    payload, base_timestamp, latest = kernel.encode(rows, as_read=True)
    data = bytearray(seal(payload, len(rows), base_timestamp, latest, options))
    assign_offsets(data, rows[0].offset, leader_epoch)
    return bytes(data)
