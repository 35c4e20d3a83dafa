"""Control batches: what ends transactions, and what a KRaft log says about itself."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from tagwire import messages, records
from tagwire.errors import ConfigError, CorruptRecordError, DecodeError, EncodeError
from tagwire.records import ControlRecord

NOW = 1_700_000_000_000
COMMIT = bytes.fromhex(
    "00000000000003d7 00000042 0000001d 02 050d7e51 0030 00000000 0000018bcfe56800 0000018bcfe56800 0000000000000049 "
    "000d ffffffff 00000001 20 00 00 00 08 00000001 0c 00000000015b 00"
)
VOTER = messages.VotersRecord.Voter(
    voter_id=1,
    voter_directory_id=uuid.UUID(int=7),
    endpoints=[messages.VotersRecord.Endpoint(name="CONTROLLER", host="localhost", port=9093)],
    kraft_version_feature=messages.VotersRecord.KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
)
CONTROLS = [
    ControlRecord("ABORT", messages.EndTxnMarker(coordinator_epoch=347)),
    ControlRecord("COMMIT", messages.EndTxnMarker(coordinator_epoch=-1)),
    ControlRecord("LEADER_CHANGE", messages.LeaderChangeMessage(version=0, leader_id=3)),
    ControlRecord("SNAPSHOT_HEADER", messages.SnapshotHeaderRecord(version=0, last_contained_log_timestamp=123456789)),
    ControlRecord("SNAPSHOT_FOOTER", messages.SnapshotFooterRecord(version=0)),
    ControlRecord("KRAFT_VERSION", messages.KRaftVersionRecord(version=0, kraft_version=1)),
    ControlRecord("KRAFT_VOTERS", messages.VotersRecord(version=0, voters=[VOTER])),
]
PRODUCER = {"producer_id": 73, "producer_epoch": 13, "transactional": True}


def read_controls(data: bytes) -> list[ControlRecord]:
    (batch,) = records.read(data)
    assert batch.is_control
    return [records.decode_control(record.key, record.value) for record in batch.records()]


def test_the_end_of_a_transaction_is_the_bytes_of_the_specification() -> None:
    written = records.write_end_transaction(
        commit=True,
        coordinator_epoch=347,
        producer_id=73,
        producer_epoch=13,
        timestamp=NOW,
        base_offset=983,
        partition_leader_epoch=29,
    )
    assert written == COMMIT
    (batch,) = records.read(written)
    assert (batch.is_control, batch.is_transactional, batch.base_sequence, batch.last_sequence) == (True, True, -1, -1)
    assert read_controls(written) == [ControlRecord("COMMIT", messages.EndTxnMarker(coordinator_epoch=347))]


@pytest.mark.parametrize("control", CONTROLS, ids=[control.type for control in CONTROLS])
def test_a_control_record_reads_back_as_it_was_written(control: ControlRecord) -> None:
    marker = control.type in ("ABORT", "COMMIT")
    data = records.write_control([control], NOW, base_offset=5, **(PRODUCER if marker else {}))
    assert read_controls(data) == [control]
    (batch,) = records.read(data)
    assert (batch.base_offset, batch.max_timestamp, batch.is_transactional) == (5, NOW, marker)


def test_a_snapshot_begins_with_one_batch_of_several_records() -> None:
    opening = [control for control in CONTROLS if control.type in ("SNAPSHOT_HEADER", "KRAFT_VERSION", "KRAFT_VOTERS")]
    assert read_controls(records.write_control(opening, NOW)) == opening


def test_no_control_records_make_no_batch() -> None:
    assert records.write_control([], NOW) == b""


@pytest.mark.parametrize(
    ("control", "options", "kind", "error"),
    [
        (CONTROLS[0], {}, ConfigError, "ABORT stands in a batch that is transactional"),
        (CONTROLS[2], PRODUCER, ConfigError, "LEADER_CHANGE stands in a batch that is transactional if"),
        (ControlRecord("UNKNOWN", None), {}, EncodeError, "UNKNOWN takes no message"),
        (ControlRecord("LEADER_CHANGE", CONTROLS[0].message), {}, EncodeError, "takes LeaderChangeMessage message"),
        (ControlRecord("SNAPSHOT_FOOTER", None), {}, EncodeError, "takes SnapshotFooterRecord message, not None"),
        (CONTROLS[0], {"transactional": True}, ConfigError, "transactional batch needs a producer_id"),
        (CONTROLS[0], {"transactional": True, "producer_id": 1}, ConfigError, "needs a producer_epoch"),
        (CONTROLS[2], {"magic": 1}, ConfigError, "a message set has no control"),
    ],
)
def test_a_control_record_that_cannot_be_written_is_named(
    control: ControlRecord, options: dict[str, Any], kind: type[Exception], error: str
) -> None:
    with pytest.raises(kind, match=error):
        records.write_control([control], NOW, **options)


@pytest.mark.parametrize("number", [7, 32767, -1])
def test_a_type_that_nobody_knows_is_stepped_over(number: int) -> None:
    key = b"\0\0" + number.to_bytes(2, "big", signed=True)
    assert records.decode_control(key, b"whatever") == ControlRecord("UNKNOWN", None)
    assert records.decode_control(key, None) == ControlRecord("UNKNOWN", None)


def test_later_versions_read_as_the_first() -> None:
    expected = ControlRecord("COMMIT", messages.EndTxnMarker(coordinator_epoch=5))
    assert records.decode_control(bytes.fromhex("0000 0001"), bytes.fromhex("0000 00000005")) == expected
    assert records.decode_control(bytes.fromhex("0007 0001 ffff"), bytes.fromhex("0003 00000005 aa")) == expected


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("", "000000000005"),
        ("000000", "000000000005"),
        ("ffff0001", "000000000005"),
        ("00000001", ""),
        ("00000001", "00"),
        ("00000001", "0000 000000"),
        ("00000000", "ffff 00000005"),
        ("00000001", "8000 00000005"),
        ("00000002", "00"),
        ("00000006", "0000 ffffffff0f"),
    ],
)
def test_a_control_record_that_cannot_be_read_is_refused(key: str, value: str) -> None:
    with pytest.raises(DecodeError):
        records.decode_control(bytes.fromhex(key), bytes.fromhex(value))
    with pytest.raises(DecodeError):
        records.decode_control(bytes.fromhex("00000001"), None)
    with pytest.raises(CorruptRecordError):
        records.decode_control(None, b"")


def test_a_control_batch_of_none_or_two_records_is_read(seal: Callable[..., bytes]) -> None:
    none = seal(b"", 0, attributes=0x20)
    assert read_controls(none) == []
    two = records.write_control(CONTROLS[:2], NOW, **PRODUCER)
    assert [control.type for control in read_controls(two)] == ["ABORT", "COMMIT"]
    assert records.to_arrow(none + two).num_rows == 0
    assert records.to_arrow(none + two, control=True).num_rows == 2
