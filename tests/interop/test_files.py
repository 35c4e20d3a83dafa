"""Segments that Apache Kafka's broker wrote read as kafka-dump-log prints them, and kafka-dump-log reads ours."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer
from confluent_kafka import Producer as RdProducer
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from confluent_kafka.admin import NewTopic as RdNewTopic

from tagwire import records
from tagwire.broker import Broker
from tagwire.client import Admin, NewTopic, Producer
from tagwire.records import Record
from tagwire.records.files import PartitionFiles, Segment, kind_of, partitions
from tagwire.records.files.checkpoints import read_offsets
from tagwire.records.files.side_files import rows_of
from tagwire.records.files.verify import verify_partition
from tagwire.records.internal_topics import CLUSTER_METADATA, HIDDEN, decode_key, decode_record, decode_value

from .conftest import Count
from .dumped import as_text, canonical, dumped
from .real_broker import RELEASE, RealBroker
from .real_node import SECONDS

HOUR: Final = 3_600_000
NOW: Final = 1_700_000_000_000
HEADERS: Final = [("origin", b"EWR"), ("origin", None), ("", b"")]
TOPICS: Final = {
    "codecs": {},
    "appended": {"message.timestamp.type": "LogAppendTime"},
    "transactions": {},
    "compacted": {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.0001",
        "min.compaction.lag.ms": "0",
        "segment.ms": "60000",
    },
}
KEYS_OF_COMPACTED: Final = 5
PRODUCER: Final = {
    "producerId": "producerId",
    "producerEpoch": "epoch",
    "coordinatorEpoch": "coordinatorEpoch",
    "currentTxnFirstOffset": "currentTxnFirstOffset",
    "lastTimestamp": "timestamp",
    "lastSequence": "lastSequence",
    "lastOffset": "lastOffset",
    "offsetDelta": "offsetDelta",
}
"""What kafka-dump-log prints of a producer, by the names of its message."""


@pytest.fixture(scope="session")
def data(kafka: RealBroker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a Kafka broker that was put to work and shut down."""
    folder = tmp_path_factory.mktemp("kafka")
    with kafka.running(folder) as bootstrap:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        topics = [RdNewTopic(name, 1, 1, config=config) for name, config in TOPICS.items()]
        for created in admin.create_topics(topics).values():
            created.result(SECONDS)
        _fill(bootstrap)
        _transact(bootstrap)
        _commit_offsets(bootstrap)
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        user = UserScramCredentialUpsertion("alice", credential, b"a-password-nobody-has", b"a-salt-of-hers")
        for changed in admin.alter_user_scram_credentials([user]).values():
            changed.result(SECONDS)
        _await_compaction(folder / "data")
    return folder / "data"


def _produce(bootstrap: str, topic: str, rows: Sequence[Record], **config: Any) -> None:
    producer = RdProducer({"bootstrap.servers": bootstrap, "linger.ms": 200, "log_level": 0, **config})
    for row in rows:
        producer.produce(topic, row.value, row.key, headers=list(row.headers), timestamp=row.timestamp)
    assert producer.flush(SECONDS) == 0


def _fill(bootstrap: str) -> None:
    for codec in records.CODECS:
        rows = [Record(b"key-%d" % i, b"value " * (i % 9), HEADERS[: i % 4], NOW + i) for i in range(200)]
        rows += [Record(None, b"no key", (), NOW), Record(b"key", None, (), NOW - 5)]
        _produce(bootstrap, "codecs", rows, **{"compression.codec": codec})
        _produce(bootstrap, "codecs", rows, **{"compression.codec": codec, "enable.idempotence": True})
        _produce(bootstrap, "appended", rows, **{"compression.codec": codec})
    for turn in range(4):
        rows = [Record(b"key-%d" % i, b"turn %d" % turn, (), NOW + turn * HOUR) for i in range(KEYS_OF_COMPACTED)]
        rows.insert(0, Record(b"turn-%d" % turn, b"the only one of its key", (), NOW + turn * HOUR))
        rows.append(Record(b"gone", None if turn else b"here", (), NOW + turn * HOUR))
        _produce(bootstrap, "compacted", rows)


def _transact(bootstrap: str) -> None:
    producer = RdProducer({"bootstrap.servers": bootstrap, "transactional.id": "tx", "log_level": 0})
    producer.init_transactions(SECONDS)
    for number, commit in enumerate([True, False, True, False]):
        producer.begin_transaction()
        for i in range(7):
            producer.produce("transactions", b"%d of %d" % (i, number), b"key", timestamp=NOW + i)
            producer.produce("compacted", b"%d of %d" % (i, number), b"tx-%d" % i, timestamp=NOW + (4 + number) * HOUR)
        assert producer.flush(SECONDS) == 0  # what was not sent yet would be dropped by an abort
        if commit:
            producer.commit_transaction(SECONDS)
        else:
            producer.abort_transaction(SECONDS)
    _produce(bootstrap, "compacted", [Record(b"last", b"", (), NOW + 9 * HOUR)])


def _commit_offsets(bootstrap: str) -> None:
    for protocol in ("classic", "consumer"):
        config = {"bootstrap.servers": bootstrap, "group.id": f"group-{protocol}", "auto.offset.reset": "earliest"}
        consumer = Consumer({**config, "group.protocol": protocol, "enable.auto.commit": False})
        consumer.subscribe(["codecs"])
        try:
            until = time.monotonic() + SECONDS
            while (message := consumer.poll(1)) is None or message.error():
                assert time.monotonic() < until
            consumer.commit(message, asynchronous=False)
        finally:
            consumer.close()


def _await_compaction(data: Path) -> None:
    """Waits until all of the closed segments were compacted."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        checkpoint = data / "cleaner-offset-checkpoint"
        cleaned = read_offsets(checkpoint.read_bytes()) if checkpoint.exists() else {}
        if cleaned.get(("compacted", 0), 0) >= PartitionFiles(data / "compacted-0").segments[-1].base_offset:
            return
        time.sleep(0.2)
    raise AssertionError("Kafka compacted nothing")


def _of_topic(segments: Path, topic: str) -> list[Segment]:
    return [segment for files in partitions(segments) if files.topic == topic for segment in files.segments]


def test_plain_segments_read_as_kafka_dumps_them(kafka: RealBroker, data: Path, count: Count) -> None:
    segments = [segment for topic in TOPICS for segment in _of_topic(data, topic)]
    ours = [line for segment in segments for line in dumped(segment, as_text)]
    assert kafka.dump([segment.path for segment in segments], "--print-data-log") == ours
    batches = [batch for segment in segments for _, batch in segment.batches()]
    assert {batch.compression for batch in batches} == set(records.CODECS)
    assert {batch.timestamp_type for batch in batches} == {"CreateTime", "LogAppendTime"}
    assert any(batch.delete_horizon is not None for batch in batches)
    assert any(batch.is_transactional and not batch.is_control for batch in batches)
    assert any(batch.last_offset_delta + 1 > batch.count for batch in batches)
    rows = sum(line.startswith("|") for line in ours)
    count(f"Kafka {RELEASE}: {len(batches)} batches, {rows} records of {len(segments)} segments read as it dumps them")


def test_tombstones_and_headers_survive(data: Path) -> None:
    (segment,) = _of_topic(data, "codecs")
    found = list(segment.records())
    assert {tuple(record.headers) for record in found} == {tuple(HEADERS[:size]) for size in range(4)}
    assert any(record.value is None for record in found)
    kept = [record.key for segment in _of_topic(data, "compacted")[:-1] for record in segment.records() if record.key]
    assert kept.count(b"key-0") == 1


def test_aborted_transactions_are_left_out_by_what_their_index_says(data: Path) -> None:
    files = PartitionFiles(data / "transactions-0")
    values = [
        value.as_py().decode()
        for segment in files.segments
        for value in segment.to_arrow(columns=("value",), aborted=files.aborted()).column(0)
    ]
    assert values == [f"{i} of {number}" for number in (0, 2) for i in range(7)]


def _decoded(topic: str) -> Any:
    def contents(record: Record) -> str:
        key, value = decode_key(topic, record.key), decode_value(topic, record.key, record.value)
        if topic == CLUSTER_METADATA:
            assert value is not None
            name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", value.message.spec.name).upper()
            told = {"type": name, "version": value.version, "data": value.message.to_json(value.version)}
            return f" payload: {json.dumps(told)}"
        assert key is not None
        text = json.dumps({"type": str(key.api_key), "data": key.to_json(0)})
        if value is None:
            return f" key: {text} payload: <DELETE>"
        document = decode_record(topic, record.key, record.value).to_json()["value"]
        for member in document.get("members", ()):
            for field in ("subscription", "assignment"):
                if isinstance(member.get(field), dict):
                    member[field].pop("version")
        return f" key: {text} payload: {json.dumps({'version': str(value.version), 'data': document})}"

    return contents


@pytest.mark.parametrize(
    ("topic", "option", "types"),
    [
        ("__consumer_offsets", "--offsets-decoder", {"OffsetCommit", "GroupMetadata", "ConsumerGroupMetadata"}),
        ("__transaction_state", "--transaction-log-decoder", {"TransactionLog"}),
        ("__cluster_metadata", "--cluster-metadata-decoder", {"Topic", "Partition", "Config", "UserScramCredential"}),
    ],
)
def test_kafkas_own_topics_decode_as_kafka_decodes_them(
    kafka: RealBroker, data: Path, topic: str, option: str, types: set[str], count: Count
) -> None:
    segments = _of_topic(data, topic)
    if topic == CLUSTER_METADATA:
        segments += PartitionFiles(data / f"{topic}-0").snapshots
    ours = [canonical(line) for segment in segments for line in dumped(segment, _decoded(topic))]
    theirs = [canonical(line) for line in kafka.dump([segment.path for segment in segments], option)]
    assert [line for line in theirs if line[:1] in "|b"] == [line for line in ours if line[:1] in "|b"]
    found = {
        decode_record(topic, record.key, record.value).type
        for segment in segments
        for _, batch in segment.batches()
        if not batch.is_control
        for record in batch.records()
    }
    assert types <= found
    count(f"Kafka {RELEASE}: {len(found)} record types of {topic} decode as it decodes them")


def test_credentials_are_hidden_in_what_people_see(data: Path) -> None:
    segments = _of_topic(data, CLUSTER_METADATA)
    shown = [
        decode_record(CLUSTER_METADATA, record.key, record.value).to_json()
        for segment in segments
        for _, batch in segment.batches()
        if not batch.is_control
        for record in batch.records()
    ]
    (alice,) = [each["value"] for each in shown if each["type"] == "UserScramCredential"]
    assert (alice["name"], alice["salt"], alice["storedKey"], alice["serverKey"]) == ("alice", HIDDEN, HIDDEN, HIDDEN)


def test_nothing_that_kafka_wrote_is_at_fault(data: Path) -> None:
    assert [str(fault) for files in partitions(data) for fault in verify_partition(files)] == []


def _entries(path: Path) -> Iterator[str]:
    for row in rows_of(path, kind_of(path.name)):
        first, second = row.items()
        if path.suffix == ".timeindex":
            yield f"timestamp: {first[1]} offset: {second[1]}"
        else:
            yield f"offset: {first[1]} position: {second[1]}"


def test_the_files_beside_the_log_read_as_kafka_dumps_them(kafka: RealBroker, data: Path, count: Count) -> None:
    beside = [path for files in partitions(data) for kind in ("index", "timeindex") for path in files.files(kind)]
    beside = [path for path in beside if path.stat().st_size]
    ours = [line for path in beside for line in (f"Dumping {path}", *_entries(path))]
    assert [line for line in kafka.dump(beside) if line] == ours
    aborted = [path for files in partitions(data) for path in files.files("txnindex")]
    theirs = [re.findall(r"-?\d+$|-?\d+(?= )", line) for line in kafka.dump(aborted) if line.startswith("version")]
    rows = [row for path in aborted for row in rows_of(path, "txnindex")]
    assert [["0", *map(str, row.values())] for row in rows] == theirs
    assert len(theirs) > 2
    snapshots = [path for files in partitions(data) for path in files.files("producers")]
    dumps = [line for line in kafka.dump(snapshots) if line.startswith("producerId")]
    assert [
        {name: said[1] for name in PRODUCER if (said := re.search(rf"\b{name}: (?:OptionalLong\[)?(-?\d+|Opt)", line))}
        for line in dumps
    ] == [
        {
            name: "Opt" if (name, row[field]) == ("currentTxnFirstOffset", -1) else str(row[field])
            for name, field in PRODUCER.items()
        }
        for path in snapshots
        for row in rows_of(path, "producers")
    ]
    assert dumps
    texts = [path for files in partitions(data) for kind in ("epochs", "topic-id") for path in files.files(kind)]
    assert all(list(rows_of(path, kind_of(path.name))) for path in texts)
    count(f"Kafka {RELEASE}: {len(ours) - len(beside)} index entries read as it dumps them")


def test_kafka_dumps_what_we_wrote(kafka: RealBroker, tmp_path: Path, count: Count) -> None:
    with Broker(tmp_path, fsync="never") as broker:
        with Admin(broker.bootstrap) as admin:
            configs = {"retention.ms": "-1", "segment.bytes": "100000"}
            admin.create_topics([NewTopic("ours", num_partitions=1, configs=configs)])
        for codec in records.CODECS:
            with Producer(broker.bootstrap, compression=codec, batch_bytes=8000) as producer:
                for i in range(2000):
                    producer.send("ours", b"value " * (i % 9), b"key-%d" % i, HEADERS[: i % 4], NOW + i, 0)
    files = PartitionFiles(tmp_path / "ours-0")
    assert len(files.segments) > 1
    ours = [line for segment in files.segments for line in dumped(segment, as_text)]
    assert kafka.dump([segment.path for segment in files.segments], "--print-data-log") == ours
    assert list(verify_partition(files)) == []
    indexes = [*files.files("index"), *files.files("timeindex")]
    checked = kafka.dump([path for path in indexes if path.stat().st_size], "--index-sanity-check")
    assert sum("passed sanity check" in line for line in checked) == sum(path.stat().st_size > 0 for path in indexes)
    count(f"Kafka {RELEASE} dumped {sum(line.startswith('|') for line in ours)} records that our broker stored")


@pytest.mark.parametrize("magic", [0, 1])
def test_kafka_dumps_old_message_sets_that_we_wrote(kafka: RealBroker, tmp_path: Path, magic: int) -> None:
    path = tmp_path / "00000000000000000000.log"
    rows = [Record(b"key-%d" % i, b"value-%d" % i, (), NOW + i if magic else -1) for i in range(20)]
    codecs = [codec for codec in records.CODECS if codec != "zstd"]
    path.write_bytes(
        b"".join(
            records.write(rows, magic=magic, compression=codec, base_offset=20 * at) for at, codec in enumerate(codecs)
        )
    )
    lines = kafka.dump([path], "--print-data-log")
    told = [re.search(r"^\| offset: (\d+) .*key: (\S+) payload: (\S+)", line) for line in lines if line[0] == "|"]
    assert [found.groups() for found in told if found] == [
        (str(20 * at + i), f"key-{i}", f"value-{i}") for at in range(len(codecs)) for i in range(20)
    ]
    assert not any("false" in line.lower() for line in lines if "isvalid" in line.lower())
