"""Batches and compressed streams that Kafka's own code wrote: tests/vectors/records.jsonl.gz."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tagwire import records
from tagwire.errors import CorruptRecordError

with gzip.open(Path(__file__).parents[1] / "vectors" / "records.jsonl.gz", "rt", encoding="utf-8") as lines:
    LINES: dict[str, dict[str, Any]] = {line["name"]: line for line in map(json.loads, lines)}

ENTRIES = [name for name, line in LINES.items() if "batches" in line]
BATCHES = [name for name in ENTRIES if LINES[name]["batches"][0]["magic"] == 2]
STREAMS = [name for name in LINES if name.startswith("stream/")]


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
    assert (len(ENTRIES), len(BATCHES), len(STREAMS)) == (42, 28, 18)


@pytest.mark.parametrize("name", ENTRIES)
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
        "lastSequence": "last_sequence",
        "partitionLeaderEpoch": "partition_leader_epoch",
        "transactional": "is_transactional",
        "control": "is_control",
    }
    expected = [{key: batch[key] for key in attributes} for batch in LINES[name]["batches"]]
    assert [{key: getattr(batch, name) for key, name in attributes.items()} for batch in read] == expected
    for batch, line in zip(read, LINES[name]["batches"], strict=True):
        assert batch.count == len(line["records"])
        assert batch.delete_horizon == line.get("deleteHorizonMs")


@pytest.mark.parametrize("name", ENTRIES)
def test_the_records_are_those_kafka_wrote(name: str, read_rows: Callable[..., list[tuple[Any, ...]]]) -> None:
    rows = [
        (offset, timestamp, hexed(key), hexed(value), [(name, hexed(data)) for name, data in headers])
        for offset, timestamp, key, value, headers in read_rows(bytes.fromhex(LINES[name]["hex"]))
    ]
    assert rows == expected_rows(name)


# Where a codec compressed them, its version shows in the bytes; what was compressed is the same.
@pytest.mark.parametrize("name", ENTRIES)
def test_records_are_written_as_the_bytes_they_were_read_from(name: str) -> None:
    for batch in records.read(bytes.fromhex(LINES[name]["hex"])):
        written = records.rewrite(batch, batch.records())
        (again,) = records.read(written)
        assert again.decompress().payload == batch.decompress().payload
        if batch.compression == "none":
            assert written == bytes(batch.data)


@pytest.mark.parametrize("name", ["none/headers", "none/noTimestamp", "none/two", "snappy/headers"])
def test_new_batches_are_the_bytes_that_kafka_writes(name: str) -> None:
    data = bytes.fromhex(LINES[f"magic2/{name}"]["hex"])
    (batch,) = records.read(data)
    assert data == records.write(
        batch.records(),
        compression=batch.compression,
        base_offset=batch.base_offset,
        partition_leader_epoch=batch.partition_leader_epoch,
    )


@pytest.mark.parametrize("name", [name for name in ENTRIES if name not in BATCHES])
def test_new_message_sets_are_the_bytes_that_kafka_writes(name: str) -> None:
    data = bytes.fromhex(LINES[name]["hex"])
    read = list(records.read(data))
    rows = [record for batch in read for record in batch.records()]
    appended = read[0].timestamp_type == "LogAppendTime"
    written = records.write(
        rows,
        magic=read[0].magic,
        compression=read[0].compression,
        base_offset=rows[0].offset,
        timestamp_type="LogAppendTime" if appended else "CreateTime",
    )
    if read[0].compression == "none":
        assert written == data
    (again,) = records.read(written) if len(read) == 1 else read[:1]
    assert again.decompress().payload == read[0].decompress().payload


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


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_decompresses_to_what_kafka_compressed_and_back(name: str) -> None:
    _, codec, magic, _ = name.split("/")
    plain, format_ = LINES[name]["plain"].encode(), int(magic[-1])
    assert records.decompress(codec, bytes.fromhex(LINES[name]["hex"]), 1000, magic=format_) == plain
    assert records.decompress(codec, records.compress(codec, plain, magic=format_), 1000, magic=format_) == plain


def test_the_lz4_header_checksum_of_message_format_0_is_wrong_in_a_batch() -> None:
    data = bytes.fromhex(LINES["stream/lz4/magic0/len0"]["hex"])
    for magic in (1, 2):
        with pytest.raises(CorruptRecordError, match="checksum"):
            records.decompress("lz4", data, 1000, magic=magic)
