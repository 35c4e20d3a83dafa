"""Batches and compressed streams that Kafka's own code wrote: tests/vectors/records.jsonl.gz."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tagwire import records
from tagwire.errors import CorruptRecordError, UnsupportedVersionError

with gzip.open(Path(__file__).parents[1] / "vectors" / "records.jsonl.gz", "rt", encoding="utf-8") as lines:
    LINES: dict[str, dict[str, Any]] = {line["name"]: line for line in map(json.loads, lines)}

BATCHES = [name for name, line in LINES.items() if "batches" in line and line["batches"][0]["magic"] == 2]
MESSAGE_SETS = [name for name, line in LINES.items() if "batches" in line and line["batches"][0]["magic"] < 2]
STREAMS = [name for name in LINES if name.startswith("stream/") and not name.startswith("stream/lz4/magic0")]
OLD_LZ4_STREAMS = [name for name in LINES if name.startswith("stream/lz4/magic0")]


def hexed(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def expected_rows(name: str) -> list[tuple[Any, ...]]:
    return [
        (
            record["offset"],
            record["timestamp"],
            record["keyHex"],
            record["valueHex"],
            [tuple(header) for header in record["headers"]],
        )
        for batch in LINES[name]["batches"]
        for record in batch["records"]
    ]


def test_every_kind_of_line_is_among_the_vectors() -> None:
    assert (len(BATCHES), len(MESSAGE_SETS), len(STREAMS), len(OLD_LZ4_STREAMS)) == (28, 14, 17, 1)


@pytest.mark.parametrize("name", BATCHES)
def test_a_batch_has_the_header_kafka_gave_it(name: str) -> None:
    read = list(records.read(bytes.fromhex(LINES[name]["hex"])))
    attributes = {
        "magic": "magic",
        "baseOffset": "base_offset",
        "lastOffset": "last_offset",
        "sizeInBytes": "size_in_bytes",
        "crc": "crc",
        "compression": "compression",
        "timestampType": "timestamp_type",
        "maxTimestamp": "max_timestamp",
        "producerId": "producer_id",
        "producerEpoch": "producer_epoch",
        "baseSequence": "base_sequence",
        "partitionLeaderEpoch": "partition_leader_epoch",
        "transactional": "is_transactional",
        "control": "is_control",
        "count": "count",
    }
    expected = [{key: batch[key] for key in attributes} for batch in LINES[name]["batches"]]
    assert [{key: getattr(batch, name) for key, name in attributes.items()} for batch in read] == expected


@pytest.mark.parametrize("name", BATCHES)
def test_the_records_are_those_kafka_wrote(name: str, read_rows: Callable[..., list[tuple[Any, ...]]]) -> None:
    rows = [
        (offset, timestamp, hexed(key), hexed(value), [(name, hexed(data)) for name, data in headers])
        for offset, timestamp, key, value, headers in read_rows(bytes.fromhex(LINES[name]["hex"]))
    ]
    assert rows == expected_rows(name)


# These are byte for byte what `write` makes of the same records: nothing in them that it does not set, and no codec
# whose bytes depend on the library.
@pytest.mark.parametrize(
    "name", ["none/headers", "none/noTimestamp", "none/two", "snappy/headers", "snappy/nulls/base37"]
)
def test_written_bytes_are_those_kafka_writes(name: str) -> None:
    data = bytes.fromhex(LINES[f"magic2/{name}"]["hex"])
    (batch,) = records.read(data)
    assert data == records.write(
        batch.records(),
        compression=batch.compression,
        base_offset=batch.base_offset,
        partition_leader_epoch=batch.partition_leader_epoch,
    )


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("position", [27, 43, 51, -1])
def test_a_flipped_bit_under_the_checksum_is_found(name: str, position: int) -> None:
    data = bytearray.fromhex(LINES[name]["hex"])
    assert [header.crc_ok for header in records.batch_headers(data, verify=True)] == [True]
    data[position] ^= 0x10
    assert [header.crc_ok for header in records.batch_headers(data, verify=True)] == [False]
    with pytest.raises(
        CorruptRecordError, match=f"batch at offset {LINES[name]['batches'][0]['baseOffset']} .*checksum"
    ):
        list(records.read(data))


@pytest.mark.parametrize("name", MESSAGE_SETS)
def test_a_message_set_is_refused_by_its_magic(name: str, read_rows: Callable[..., list[tuple[Any, ...]]]) -> None:
    magic = LINES[name]["batches"][0]["magic"]
    with pytest.raises(UnsupportedVersionError, match=f"magic {magic}"):
        read_rows(bytes.fromhex(LINES[name]["hex"]))


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_decompresses_to_what_kafka_compressed_and_back(name: str) -> None:
    codec, plain = name.split("/")[1], LINES[name]["plain"].encode()
    assert records.decompress(codec, bytes.fromhex(LINES[name]["hex"]), 1000) == plain
    assert records.decompress(codec, records.compress(codec, plain), 1000) == plain


@pytest.mark.parametrize("name", OLD_LZ4_STREAMS)
def test_the_lz4_header_checksum_of_message_format_0_is_wrong_in_a_batch(name: str) -> None:
    with pytest.raises(CorruptRecordError, match="checksum"):
        records.decompress("lz4", bytes.fromhex(LINES[name]["hex"]), 1000)
