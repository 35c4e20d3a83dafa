"""What a producer's batch must be before it may enter a log.

A batch that is stored is served to every reader for as long as it is kept, so whatever would stop a reader is found
here, before anything is written: header, checksum, compression and every record in it. Source: facts/kafka_protocol.md
5.1, 5.3; facts/hostile_inputs.md E.3.
"""

from __future__ import annotations

from collections.abc import Callable

from tagwire.broker.message_sets import to_record_batch
from tagwire.broker.storage.batch import Batch, batch_of
from tagwire.broker.topic_config import TopicConfig
from tagwire.errors import CorruptRecordError, Error, KafkaError
from tagwire.kernel import records as kernel
from tagwire.records import BatchHeader, RecordBatch, batch_headers, rewrite
from tagwire.records.batch import HEADER_SIZE
from tagwire.records.compression import MAX_DECOMPRESSED
from tagwire.rpc.since import PRODUCE_RECORD_BATCHES, PRODUCE_ZSTD


def check_batch(
    records: memoryview | None, version: int, config: TopicConfig, check_transaction: Callable[[int, int], None]
) -> Batch:
    """The one batch in `records`, the bytes a Produce request of `version` holds for a partition; before version 3,
    what is made of the message set in it.

    Args:
        check_transaction: called with the producer id and epoch of a transactional batch: raises KafkaError for one
            that is not of an open transaction.

    Raises:
        KafkaError: INVALID_RECORD, CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE or
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
        claims = f"{header.count} records with last offset delta {header.last_offset_delta}"
        raise KafkaError(Error.INVALID_RECORD, f"a producer's batch cannot have {claims}")
    if header.is_control:
        raise KafkaError(Error.INVALID_RECORD, "a client may not write control records")
    if header.is_transactional and header.producer_id < 0:
        raise KafkaError(Error.INVALID_RECORD, "a transactional batch needs a producer id")
    if header.producer_id >= 0 and (header.producer_epoch < 0 or header.base_sequence < 0):
        numbers = f"epoch {header.producer_epoch} and sequence {header.base_sequence}"
        raise KafkaError(Error.INVALID_RECORD, f"a batch of producer {header.producer_id} cannot have {numbers}")
    if header.has_delete_horizon or header.timestamp_type != "CreateTime":
        raise KafkaError(Error.INVALID_RECORD, "a producer's batch cannot have append time or a delete horizon")
    if header.base_timestamp < -1 or header.max_timestamp < -1:
        raise KafkaError(Error.INVALID_TIMESTAMP, "a timestamp is below -1")
    if header.compression == "zstd" and version < PRODUCE_ZSTD:
        raise KafkaError(
            Error.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs Produce {PRODUCE_ZSTD} or newer, not {version}"
        )
    _check_records(header, records)
    if config.compacts:
        _check_keys(records)
    if header.is_transactional:
        check_transaction(header.producer_id, header.producer_epoch)
    return batch_of(header, _compressed(records, header, config))


def _check_keys(data: memoryview) -> None:
    for number, record in enumerate(RecordBatch(data, 0).records(max_decompressed=MAX_DECOMPRESSED)):
        if record.key is None:
            raise KafkaError(Error.INVALID_RECORD, f"record {number} has no key, and the topic is compacted")


def _compressed(data: memoryview, header: BatchHeader, config: TopicConfig) -> memoryview:
    """The batch as compression.type asks for it."""
    wanted = {"producer": header.compression, "uncompressed": "none"}.get(
        config.compression_type, config.compression_type
    )
    if header.compression == wanted:
        return data
    batch = RecordBatch(data, 0)
    rewritten = rewrite(batch, batch.records(max_decompressed=MAX_DECOMPRESSED), compression=wanted)
    config.check_size(len(rewritten))
    return memoryview(rewritten)


def _check_records(header: BatchHeader, data: memoryview) -> None:
    origin = 0 if header.compression != "none" else HEADER_SIZE
    nothing_kept = kernel.Columns(None, None, None, None, None, None, None, None)
    try:
        nothing_kept.decode(
            header.payload(data, MAX_DECOMPRESSED),
            header.count,
            origin,
            0,
            header.last_offset_delta,
            0,
            0,
            False,
            0,
            0,
            False,
        )
    except CorruptRecordError as error:
        raise KafkaError(Error.INVALID_RECORD, str(error)) from None
