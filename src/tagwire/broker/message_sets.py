"""Message sets (magic 0 and 1), as producers before Kafka 0.11 send them, made into the record batch that is stored.

Offsets are given anew, as to every batch; keys, values and timestamps stay, and so does the compression. Source:
docs/record-formats.md#message-sets.
"""

from __future__ import annotations

from tagwire.errors import CorruptRecordError, Error, KafkaError
from tagwire.records import Record, read, write
from tagwire.records.compression import MAX_DECOMPRESSED

MESSAGE_BYTES = 256
"""What a message takes as an object besides its key and value: many that hold nothing are many all the same."""


def to_record_batch(data: memoryview) -> memoryview:
    """The message set in `data` as one record batch.

    Raises:
        KafkaError: CORRUPT_MESSAGE or INVALID_RECORD, with what is wrong.
    """
    rows: list[Record] = []
    compression, taken, left = "none", 0, MAX_DECOMPRESSED
    try:
        for entry in read(data):
            if entry.magic > 1:
                raise KafkaError(Error.INVALID_RECORD, f"magic {entry.magic} needs a newer version of Produce")
            records = list(entry.records(max_decompressed=left))
            left -= sum(MESSAGE_BYTES + len(row.key or b"") + len(row.value or b"") for row in records)
            rows += records
            compression = entry.compression if entry.compression != "none" else compression
            taken += entry.size
            if left < 0:
                raise KafkaError(Error.INVALID_RECORD, f"a message set of over {MAX_DECOMPRESSED} bytes is not taken")
    except CorruptRecordError as error:
        raise KafkaError(Error.CORRUPT_MESSAGE, str(error)) from None
    if taken != len(data):
        raise KafkaError(Error.CORRUPT_MESSAGE, f"{len(data) - taken} bytes end inside a message")
    if any(row.timestamp < -1 for row in rows):
        raise KafkaError(Error.INVALID_TIMESTAMP, "a timestamp is below -1")
    return memoryview(write(rows, compression=compression))
