"""Message sets of magic 0 and 1, and control batches: Kafka reads what we write, and we read what it writes."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tagwire import messages, records
from tagwire.records import ControlRecord, Record

from .conftest import NEW, OLD, Count, Peers
from .test_records import CONTENTS, NOW, OF_BATCH, described, hexadecimal, numbered, summary

OF_ENTRY: Final = tuple(name for name in OF_BATCH if name != "count")
"""What both sides say of a message set's entry; Kafka does not count what one wraps."""

PLAIN: Final = {
    name: [row.replace(headers=()) for row in rows] for name, rows in CONTENTS.items() if name not in ("headers",)
}
FORMATS: Final = [(magic, codec) for magic in (0, 1) for codec in ("none", "gzip", "snappy", "lz4")]
OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "placed": {"base_offset": 2**40},
    "appended": {"timestamp_type": "LogAppendTime"},
}
MARKER: Final = {
    "coordinator_epoch": 347,
    "producer_id": 73,
    "producer_epoch": 13,
    "timestamp": NOW,
    "base_offset": 983,
    "partition_leader_epoch": 29,
}
RELEASES: Final = [OLD, NEW]


def cases_of(magic: int) -> list[tuple[str, str]]:
    return [(content, options) for content in PLAIN for options in OPTIONS if magic or options != "appended"]


def expected(content: str, options: str, magic: int) -> list[dict[str, Any]]:
    """The records as both sides read them."""
    rows = numbered(PLAIN[content], OPTIONS[options].get("base_offset", 0))
    latest = max(row.timestamp for row in rows)
    if magic == 0:
        return [described(row, -1) for row in rows]
    return [described(row, latest if options == "appended" else None) for row in rows]


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
@pytest.mark.parametrize("release", RELEASES)
def test_kafka_reads_the_message_sets_that_we_write(
    peers: Peers, release: str, magic: int, codec: str, count: Count
) -> None:
    cases = cases_of(magic)
    sets = [
        records.write(PLAIN[content], magic=magic, compression=codec, **OPTIONS[options]) for content, options in cases
    ]
    answers = peers(release).ask("Records", (f"read {data.hex()}" for data in sets))
    for (content, options), data, answer in zip(cases, sets, answers, strict=True):
        assert not answer.startswith("!"), (content, options, answer)
        said = json.loads(answer)
        found = [record for entry in said for record in entry["records"]]
        assert found == expected(content, options, magic), (content, options)
        entries = [{name: entry[name] for name in OF_ENTRY} for entry in said]
        assert entries == [{name: getattr(batch, name) for name in OF_ENTRY} for batch in records.read(data)]
    count(f"magic {magic}, {codec}: Kafka {release} read {len(sets)} message sets of ours")


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
@pytest.mark.parametrize("release", RELEASES)
def test_we_read_the_message_sets_that_kafka_writes(
    peers: Peers, release: str, magic: int, codec: str, count: Count
) -> None:
    cases = cases_of(magic)
    asked = [asked_of_kafka(content, options, magic, codec) for content, options in cases]
    answers = peers(release).ask("Records", (f"write {json.dumps(batch)}" for batch in asked))
    for (content, options), answer in zip(cases, answers, strict=True):
        assert not answer.startswith("!"), (content, options, answer)
        data = bytes.fromhex(answer)
        read = list(records.read(data))
        assert {(batch.magic, batch.compression) for batch in read} == {(magic, codec)}
        assert [described(record) for batch in read for record in batch.records()] == expected(content, options, magic)
        columns = records.to_arrow(data, columns=("offset", "key", "value")).to_pylist()
        assert [(row["offset"], hexadecimal(row["key"]), hexadecimal(row["value"])) for row in columns] == [
            (row["offset"], row["key"], row["value"]) for row in expected(content, options, magic)
        ]
        if codec == "none":
            assert records.write(PLAIN[content], magic=magic, **OPTIONS[options]) == data, (content, options)
    count(f"magic {magic}, {codec}: we read {len(asked)} message sets of Kafka {release}")


def asked_of_kafka(content: str, options: str, magic: int, codec: str) -> dict[str, Any]:
    """A message set for the Java program to write."""
    kind = OPTIONS[options].get("timestamp_type", "CreateTime") if magic else "NoTimestampType"
    rows = expected(content, options, 1)
    return {
        "magic": magic,
        "compression": codec,
        "timestamp_type": kind,
        "base_offset": OPTIONS[options].get("base_offset", 0),
        "append_time": rows[0]["timestamp"] if options == "appended" else -1,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "is_transactional": False,
        "partition_leader_epoch": -1,
        "records": rows,
    }


@pytest.mark.parametrize("release", RELEASES)
def test_the_end_of_a_transaction_is_the_same_to_both(peers: Peers, release: str, count: Count) -> None:
    ends = [{**MARKER, "commit": commit} for commit in (True, False)]
    written = [records.write_end_transaction(**end) for end in ends]
    peer = peers(release)
    if release == OLD:
        # newer brokers may write a later version of the marker
        assert peer.ask("Records", (f"mark {json.dumps(end)}" for end in ends)) == [data.hex() for data in written]
    for data in peer.ask("Records", (f"mark {json.dumps(end)}" for end in ends)):
        (batch,) = records.read(bytes.fromhex(data))
        (record,) = batch.records()
        assert batch.is_control
        assert records.decode_control(record.key, record.value).message == messages.EndTxnMarker(coordinator_epoch=347)
    for commit, data, answer in zip(
        ("COMMIT", "ABORT"), written, peer.ask("Records", (f"read {d.hex()}" for d in written))
    ):
        (said,) = json.loads(answer)
        (record,) = said.pop("records")
        (batch,) = records.read(data)
        assert said == summary(batch)
        assert (record["control"], record["coordinator_epoch"]) == (commit, 347)
    count(f"Kafka {release} read {len(written)} ends of transactions")


@pytest.mark.parametrize("release", RELEASES)
def test_kafka_knows_our_other_control_records_by_name(peers: Peers, release: str, count: Count) -> None:
    controls = [
        ControlRecord("LEADER_CHANGE", messages.LeaderChangeMessage(leader_id=3)),
        ControlRecord("SNAPSHOT_HEADER", messages.SnapshotHeaderRecord(last_contained_log_timestamp=NOW)),
        ControlRecord("KRAFT_VERSION", messages.KRaftVersionRecord(kraft_version=1)),
        ControlRecord("KRAFT_VOTERS", messages.VotersRecord()),
        ControlRecord("SNAPSHOT_FOOTER", messages.SnapshotFooterRecord()),
    ]
    data = records.write_control(controls, NOW)
    (answer,) = peers(release).ask("Records", [f"read {data.hex()}"])
    assert not answer.startswith("!"), answer
    (said,) = json.loads(answer)
    assert [record["control"] for record in said["records"]] == [control.type for control in controls]
    count(f"Kafka {release} read {len(controls)} control records of ours")


@pytest.mark.parametrize("release", RELEASES)
def test_kafka_reads_compacted_and_dated_batches(peers: Peers, release: str, count: Count) -> None:
    rows = [Record(b"k%d" % at, None if at % 2 else b"v", [("h", b"1")], NOW + at) for at in range(6)]
    lines = []
    for codec in records.CODECS:
        (batch,) = records.read(records.write(rows, compression=codec, base_offset=100))
        kept = [record for record in batch.records() if record.offset != 103]
        lines.append((records.rewrite(batch, kept, delete_horizon=NOW + 10**6), kept))
        lines.append((records.rewrite(batch, []), []))
        dated = bytearray(records.write(rows, compression=codec, base_offset=100))
        records.set_append_time(dated, NOW + 77)
        lines.append((bytes(dated), [row.replace(timestamp=NOW + 77) for row in numbered(rows, 100)]))
    answers = peers(release).ask("Records", (f"read {data.hex()}" for data, _ in lines))
    for (data, kept), answer in zip(lines, answers, strict=True):
        assert not answer.startswith("!"), answer
        (said,) = json.loads(answer)
        assert said.pop("records") == [described(record) for record in kept]
        (batch,) = records.read(data)
        assert said == summary(batch)
    count(f"Kafka {release} read {len(lines)} compacted or dated batches of ours")
