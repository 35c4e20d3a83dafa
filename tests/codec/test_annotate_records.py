"""Every byte of record batches and message sets is told, and told as the readers read it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tagwire import records
from tagwire.codec.annotate import Span
from tagwire.codec.annotate_records import annotate_records
from tagwire.errors import CorruptRecordError, DecodeError
from tagwire.records import Record

VECTORS = Path(__file__).parents[1] / "vectors" / "records.jsonl.gz"
LINES = [json.loads(line) for line in gzip.decompress(VECTORS.read_bytes()).splitlines()]
BATCHES = {line["name"]: line for line in LINES if "batches" in line}


def told(data: bytes) -> dict[str, Span]:
    return {span.path: span for span in annotate_records(data)}


@pytest.mark.parametrize("name", BATCHES)
def test_the_spans_of_kafkas_batches_have_no_gaps_and_say_what_kafka_read(name: str) -> None:
    data = bytes.fromhex(BATCHES[name]["hex"])
    spans = list(annotate_records(data))
    assert [span.start for span in spans] == [0, *(span.end for span in spans[:-1])]
    assert spans[-1].end == len(data)
    assert not [span for span in spans if "WRONG" in span.rule]
    values = {span.path: span.value for span in spans}
    first = BATCHES[name]["batches"][0]
    if first["magic"] == 2:
        assert int(values["batch[0].baseOffset"]) == first["baseOffset"]
        assert int(values["batch[0].crc"]) == first["crc"]
        assert int(values["batch[0].producerId"]) == first["producerId"]
        if first["compression"] == "none":
            keys = [record["keyHex"] for record in first["records"]]
            shown = [values[f"batch[0].records[{number}].key"] for number in range(len(keys))]
            assert first["control"] or shown == [key if key is not None else "null" for key in keys]


def test_a_wrong_checksum_is_told_where_it_stands() -> None:
    batch = bytearray(records.write([Record(b"key", b"value")]))
    batch[-2] ^= 1
    assert "WRONG" in told(bytes(batch))["batch[0].crc"].rule


def test_headers_and_control_records_are_told() -> None:
    batch = records.write([Record(b"k", None, headers=[("origin", b"EWR")])])
    spans = told(batch)
    assert spans["batch[0].records[0].headers[0].key"].value == "'origin'"
    assert spans["batch[0].records[0].value"].value == "null"
    marker = bytes.fromhex(BATCHES["control/endTxn/COMMIT"]["hex"])
    assert told(marker)["batch[0].records[0].key"].value == "version 0, type 1 (COMMIT)"


@pytest.mark.parametrize("cut", [3, 16, 60, 70])
def test_what_cannot_be_read_is_an_error_after_what_can(cut: int) -> None:
    batch = records.write([Record(b"key", b"value")])
    with pytest.raises(DecodeError):
        list(annotate_records(batch[:cut]))
    grown = bytearray(batch)
    grown[60] = 2  # one record more than there is
    seen: list[Span] = []
    with pytest.raises(DecodeError, match="record"):
        seen.extend(annotate_records(bytes(grown)))
    assert seen[-1].end == len(batch)


@pytest.mark.parametrize(
    ("record", "said"),
    [("0c 00 00 00 01 01 01", "-1 headers"), ("10 00 00 00 01 01 02 01 01", "a header's key of -1 bytes")],
)
def test_what_a_reader_of_records_refuses_is_an_error(record: str, said: str) -> None:
    header = records.write([Record(None, None)])[:61]
    batch = bytearray(header + bytes.fromhex(record))
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    records.set_max_timestamp(batch, -1)  # makes the checksum right
    with pytest.raises(CorruptRecordError, match="does not fit into the record") as read:
        list(next(records.read(batch)).records())
    with pytest.raises(DecodeError, match=said) as told_:
        list(annotate_records(batch))
    assert told_.value.offset == read.value.offset
