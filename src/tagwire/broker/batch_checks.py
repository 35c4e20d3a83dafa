"""Validation of a producer's batch before it is appended to a log.

A batch that is stored is served to every reader for as long as it is kept, so whatever would stop a reader is found
here, before anything is written: header, checksum, compression and every record in it. What the header says of the
greatest timestamp is not taken on trust: like Kafka, the broker writes what the records say. Source: Kafka's
LogValidator.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final

from tagwire.broker.clock import wall_ms
from tagwire.broker.message_sets import to_record_batch
from tagwire.broker.record_refusals import MOST_TOLD, NO_TIMESTAMP, refuse, untimely
from tagwire.broker.storage.batch import Batch, batch_of
from tagwire.broker.topic_config import CREATE_TIME, TopicConfig
from tagwire.errors import CorruptRecordError, Error, KafkaError
from tagwire.kernel import records as kernel
from tagwire.messages import ProduceRequest
from tagwire.records import BatchHeader, RecordBatch, batch_headers, rewrite, set_max_timestamp
from tagwire.records.batch import HEADER_SIZE, TRANSACTIONAL
from tagwire.records.batch_bounds import MAGIC_AT
from tagwire.records.compression import MAX_DECOMPRESSED
from tagwire.rpc.dialects import dialect_of
from tagwire.rpc.version_gates import PRODUCE_RECORD_BATCHES, PRODUCE_ZSTD

_LOW_ATTRIBUTES_AT: Final = 22


def check_batch(
    records: memoryview | None, version: int, config: TopicConfig, check_transaction: Callable[[int, int], None]
) -> Batch:
    """The one batch in `records`, the bytes a Produce request of `version` holds for a partition; before version 3,
    what is made of the message set in it.

    Args:
        check_transaction: called with the producer id and epoch of a transactional batch: raises KafkaError for one
            that is not of an open transaction.

    Raises:
        RecordsRefusedError: INVALID_TIMESTAMP or INVALID_RECORD, for what some of its records are.
        KafkaError: INVALID_RECORD, INVALID_TIMESTAMP, CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE or
            UNSUPPORTED_COMPRESSION_TYPE, with what is wrong; as `check_transaction`.
    """
    if not records:
        raise KafkaError(Error.INVALID_RECORD, "there is no record batch")
    if version < PRODUCE_RECORD_BATCHES:
        records = to_record_batch(records)
    config.check_size(len(records))
    try:
        header = next(batch_headers(records, verify=True), None)
    except CorruptRecordError as error:
        raise KafkaError(Error.CORRUPT_MESSAGE, str(error)) from None
    if header is None:
        raise KafkaError(Error.CORRUPT_MESSAGE, f"{len(records)} bytes end inside the batch")
    if header.magic != 2:
        raise KafkaError(Error.INVALID_RECORD, f"message format magic {header.magic} is not stored, only 2")
    if header.size != len(records):
        raise KafkaError(
            Error.INVALID_RECORD, f"{len(records) - header.size} bytes follow the batch; only one is taken"
        )
    if not header.crc_ok:
        raise KafkaError(Error.CORRUPT_MESSAGE, f"the batch does not have the checksum {header.crc:08x} it claims")
    if header.base_offset:
        raise KafkaError(Error.INVALID_RECORD, f"a producer's batch cannot have base offset {header.base_offset}")
    if header.count < 1 or header.last_offset_delta != header.count - 1:
        stated = f"{header.count} records with last offset delta {header.last_offset_delta}"
        raise KafkaError(Error.INVALID_RECORD, f"a producer's batch cannot have {stated}")
    if header.is_control:
        raise KafkaError(Error.INVALID_RECORD, "a client may not write control records")
    if header.is_transactional and header.producer_id < 0:
        raise KafkaError(Error.INVALID_RECORD, "a transactional batch needs a producer id")
    if header.producer_id >= 0 and (header.producer_epoch < 0 or header.base_sequence < 0):
        numbers = f"epoch {header.producer_epoch} and sequence {header.base_sequence}"
        raise KafkaError(Error.INVALID_RECORD, f"a batch of producer {header.producer_id} cannot have {numbers}")
    if header.has_delete_horizon:
        raise KafkaError(Error.INVALID_RECORD, "a producer's batch cannot have a delete horizon")
    if header.timestamp_type != CREATE_TIME:
        raise KafkaError(Error.INVALID_TIMESTAMP, "a producer's batch cannot have append time")
    if header.compression == "zstd" and version < PRODUCE_ZSTD:
        raise KafkaError(
            Error.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs Produce {PRODUCE_ZSTD} or newer, not {version}"
        )
    if header.is_transactional:
        check_transaction(header.producer_id, header.producer_epoch)
    times = _times(header, records)
    greatest = max(max(times), NO_TIMESTAMP)
    refuse(
        {} if config.dates_records else untimely(times, greatest, config, wall_ms()),
        _without_key(records) if config.compacts else {},
    )
    data = _compressed(records, header, config)
    if not config.dates_records:
        data = _dated(data, greatest)
    return batch_of(next(batch_headers(data)), data)


def has_transactional(request: ProduceRequest) -> bool:
    """Whether any of what a Produce request holds says of itself that it is of a transaction; it is not checked. A
    dialect knows none: what stands there in its messages is something else."""
    return dialect_of(request) is None and any(
        partition.records is not None and _says_transactional(partition.records)
        for topic in request.topic_data
        for partition in topic.partition_data
    )


def _says_transactional(records: bytes | bytearray | memoryview) -> bool:
    is_batch = len(records) > _LOW_ATTRIBUTES_AT and records[MAGIC_AT] == 2
    return is_batch and bool(records[_LOW_ATTRIBUTES_AT] & TRANSACTIONAL)


def transactional_header(records: memoryview | None) -> BatchHeader | None:
    """The header of the first batch in what a Produce request holds for a partition, None for one that is of no
    transaction or cut off; its checksum is not looked at."""
    if records is None or not _says_transactional(records):
        return None
    try:
        return next(batch_headers(records), None)
    except CorruptRecordError:
        return None


def _dated(data: memoryview, greatest: int) -> memoryview:
    """The batch with a header that says what its greatest timestamp is."""
    if next(batch_headers(data)).max_timestamp == greatest:
        return data
    changed = memoryview(bytearray(data))
    set_max_timestamp(changed, greatest)
    return changed


def _without_key(data: memoryview) -> dict[int, str]:
    records = RecordBatch(data, 0).records(max_decompressed=MAX_DECOMPRESSED)
    problem = "has no key, and the topic is compacted"
    found = ((number, problem) for number, record in enumerate(records) if record.key is None)
    return dict(islice(found, MOST_TOLD))


def _compressed(data: memoryview, header: BatchHeader, config: TopicConfig) -> memoryview:
    """The batch as compression.type asks for it."""
    wanted = {"producer": header.compression, "uncompressed": "none"}.get(
        config.compression_type, config.compression_type
    )
    if header.compression == wanted:
        return data
    batch = RecordBatch(data, 0)
    records = batch.records(max_decompressed=MAX_DECOMPRESSED)
    rewritten = rewrite(batch, records, compression=wanted, level=config.level_of(wanted))
    config.check_size(len(rewritten))
    return memoryview(rewritten)


def _times(header: BatchHeader, data: memoryview) -> list[int]:
    """The timestamps of the records, every one of which is read."""
    origin = 0 if header.compression != "none" else HEADER_SIZE
    try:
        payload = header.payload(data, MAX_DECOMPRESSED)
        # A count that is too large is found out before the last of these is needed.
        times = memoryview(bytearray(8 * min(header.count, len(payload) // kernel.MIN_RECORD_SIZE))).cast("q")
        columns = kernel.Columns(None, times, None, None, None, None, None, None)
        columns.decode(
            payload,
            header.count,
            origin,
            0,
            header.last_offset_delta,
            header.base_timestamp,
            0,
            False,
            0,
            header.count,
            False,
        )
    except CorruptRecordError as error:
        raise KafkaError(Error.INVALID_RECORD, str(error)) from None
    return times.tolist()
