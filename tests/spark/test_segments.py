"""Kafka's log files in Spark, no broker running."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tagwire import messages
from tagwire.broker import Broker
from tagwire.client import Admin, Producer
from tagwire.errors import ConfigError, CorruptRecordError, StorageError
from tagwire.partitions import TopicPartition
from tagwire.records import Record, rewrite, write, write_end_transaction
from tagwire.records import read as read_batches
from tagwire.records.files.checkpoints import format_offsets
from tagwire.records.files.producer_snapshot import format_producer_snapshot
from tagwire.spark.columns import topic_schema
from tagwire.spark.failure import reason
from tagwire.spark.segments.source import SegmentsDataSource

from .log_files import NOON, LogDirectory, transactional

pytestmark = pytest.mark.spark


def read(spark: SparkSession, path: Path | str, schema: str | StructType | None = None, **options: str) -> DataFrame:
    reader = spark.read.format("tagwire-segments").options(**options)
    return (reader if schema is None else reader.schema(schema)).load(str(path))


def offsets(frame: DataFrame) -> list[int]:
    return sorted(row.offset for row in frame.select("offset").collect())


def break_second_batch(path: Path) -> int:
    """Changes a byte of the second batch of a segment; where that batch starts."""
    data = bytearray(path.read_bytes())
    start = int.from_bytes(data[8:12], "big") + 12
    data[start + 70] ^= 1
    path.write_bytes(data)
    return start


@pytest.fixture
def flights(tmp_path) -> LogDirectory:
    """Two segments: offsets 0-299 in three compressed batches, 300-499 in two."""
    log = LogDirectory(tmp_path, "flights-3")
    for _ in range(3):
        log.numbered(100, compression="lz4")
    log.roll()
    for _ in range(2):
        log.numbered(100)
    return log


def test_a_directory_is_read_like_its_topic(spark, flights, tmp_path):
    frame = read(spark, tmp_path, includeHeaders="true")
    assert frame.schema == topic_schema(True)
    rows = sorted(frame.collect(), key=lambda row: row.offset)
    assert [(row.offset, row.value) for row in rows] == [(i, b"%d" % i) for i in range(500)]
    assert {(row.topic, row.partition, row.key, row.timestampType) for row in rows} == {("flights", 3, b"k", 0)}
    assert [tuple(header) for header in rows[0].headers] == [("h", b"1")]
    (first,) = read(spark, flights.segment).selectExpr("min(unix_millis(timestamp)) as ms").collect()
    assert first.ms == NOON + 300


def test_filters_leave_out_files_that_hold_nothing_wanted(spark, flights, tmp_path):
    LogDirectory(tmp_path, "flights-4").numbered(10)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        for text, tasks, expected in (
            ("partition = 3 and offset >= 299", 2, range(299, 500)),
            ("offset < 7 and topic = 'flights' and partition = 3", 1, range(7)),
        ):
            found = read(spark, tmp_path, filterPushdown="true").where(text)
            assert [found.rdd.getNumPartitions(), offsets(found)] == [tasks, list(expected)]
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_a_segment_is_split_at_batches_and_every_record_read_once(spark, tmp_path):
    log = LogDirectory(tmp_path, "t-0")
    for _ in range(40):
        log.numbered(25)
    url = f"file://{tmp_path}"
    packed = shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path, "t-0")
    for place in (tmp_path, url.replace("file://", "local://"), f"zip://t-0::file://{packed}"):  # two of them by fsspec
        frame = read(spark, place, maxPartitionBytes=str(log.segment.stat().st_size // 8))
        assert frame.rdd.getNumPartitions() >= 7
        assert offsets(frame) == list(range(1000))
    log.segment.with_suffix(".index").unlink()
    frame = read(spark, url, "offset bigint", maxPartitionBytes=str(log.segment.stat().st_size // 8))
    assert frame.rdd.getNumPartitions() >= 7
    assert offsets(frame) == list(range(1000))


def test_batches_are_told_with_what_is_wrong_with_them(spark, flights):
    first = sorted(flights.path.glob("*.log"))[0]
    break_second_batch(first)
    rows = sorted(read(spark, flights.path, view="batches").collect(), key=lambda row: row.baseOffset)
    assert [(row.baseOffset, row.lastOffset, row.records) for row in rows] == [
        (i, i + 99, 100) for i in range(0, 500, 100)
    ]
    assert [row.compression for row in rows] == ["lz4"] * 3 + ["none"] * 2
    assert [row.error is None for row in rows] == [True, False, True, True, True]
    assert "checksum" in rows[1].error
    assert rows[1].position == rows[0].size
    assert rows[0].path == str(first)


def test_a_broken_batch_ends_the_read_or_is_left_out(spark, flights):
    first = sorted(flights.path.glob("*.log"))[0]
    size = break_second_batch(first)
    with pytest.raises(Exception) as caught:
        read(spark, flights.path).count()
    found = reason(caught.value)
    assert type(found) is CorruptRecordError
    assert f"{first}, batch at byte {size}" in str(found)
    assert offsets(read(spark, flights.path, broken="skip")) == [*range(100), *range(200, 500)]


def test_a_cut_batch_is_normal_only_where_the_log_ends(spark, flights):
    older, newest = sorted(flights.path.glob("*.log"))
    whole = newest.read_bytes()
    newest.write_bytes(whole[:-10])
    assert offsets(read(spark, flights.path)) == list(range(400))
    newest.write_bytes(whole[:-10] + bytes(5000))
    with pytest.raises(Exception) as caught:
        read(spark, flights.path).count()
    assert "batch at byte" in str(reason(caught.value))
    newest.write_bytes(whole + bytes(5000))  # zeros are space allocated ahead
    assert offsets(read(spark, flights.path)) == list(range(500))
    older.write_bytes(older.read_bytes()[:-10])
    with pytest.raises(Exception) as caught:
        read(spark, flights.path, subscribe="flights").count()
    assert str(older) in str(reason(caught.value))


def test_zeros_between_batches_are_damage_wherever_a_task_ends(tmp_path, monkeypatch):
    log = LogDirectory(tmp_path, "t-0")
    log.numbered(3)
    with open(log.segment, "ab") as file:
        file.write(bytes(4096))
    log.numbered(1000)
    size = log.segment.stat().st_size
    split = {"maxPartitionBytes": str(size // 2 + 1)}  # the second task begins with the second batch
    for options in (split, {}):
        with pytest.raises(
            CorruptRecordError, match=r"zeros, and something else after them|batch length 0 is below 14"
        ):
            offsets_alone(tmp_path, **options)
        assert offsets_alone(tmp_path, broken="skip", **options)[:3] == [0, 1, 2]
    log.segment.write_bytes(log.segment.read_bytes()[: size // 8] + bytes(9 << 20))
    monkeypatch.setattr("tagwire.spark.segments.chunks.CHUNK_BYTES", 1 << 20)
    assert offsets_alone(tmp_path) == [0, 1, 2]


@pytest.mark.parametrize("kept", [1, 2])
@pytest.mark.parametrize("broken", ["fail", "skip"])
@pytest.mark.parametrize("view", ["records", "batches"])
def test_a_segment_that_compaction_replaces_while_tasks_read_it_ends_the_read(flights, tmp_path, view, broken, kept):
    options = {"path": str(tmp_path), "maxPartitionBytes": "1", "view": view, "broken": broken}
    source = SegmentsDataSource(options)
    reader = source.reader(source.schema())
    tasks = reader.partitions()
    assert len(tasks) == 5
    first = flights.path / "00000000000000000000.log"
    data, ends = first.read_bytes(), [0]
    while ends[-1] < len(data):
        ends.append(ends[-1] + 12 + int.from_bytes(data[ends[-1] + 8 : ends[-1] + 12], "big"))
    list(reader.read(tasks[0]))
    (tmp_path / "new").write_bytes(data[ends[kept] :])
    (tmp_path / "new").replace(first)
    for task in tasks[1:3]:
        with pytest.raises(StorageError, match=r"0\.log: has [0-9,]+ bytes, and had .*: a broker has cut or replaced"):
            list(reader.read(task))
    assert sum(batch.num_rows for task in tasks[3:] for batch in reader.read(task)) == (200 if view == "records" else 2)


def test_committed_records_are_told_from_aborted_and_open_ones(spark, tmp_path):
    log = LogDirectory(tmp_path, "t-0")
    log.numbered(2)
    aborted = log.numbered(2, **transactional(7))
    committed = log.numbered(2, **transactional(8))
    log.end_transaction(7, aborted, commit=False)
    log.end_transaction(8, committed, commit=True)
    log.roll()
    again = log.numbered(2, **transactional(7))
    log.end_transaction(7, again, commit=True)
    log.numbered(1)
    log.numbered(1, **transactional(9))  # its end is not there yet
    log.numbered(1)
    everything = [0, 1, 2, 3, 4, 5, 8, 9, 11, 12, 13]
    assert offsets(read(spark, tmp_path)) == everything
    for size in ("1", "1000000"):  # a task for each batch, and one for each segment
        seen = offsets(read(spark, tmp_path, isolation="read_committed", maxPartitionBytes=size))
        assert seen == [0, 1, 4, 5, 8, 9, 11]


def test_aborted_records_are_known_by_their_markers_where_segments_were_copied_alone(tmp_path):
    log = LogDirectory(tmp_path / "there", "t-0")
    log.numbered(1)
    aborted = log.numbered(2, **transactional(7))
    committed = log.numbered(1, **transactional(8))
    log.roll()
    log.end_transaction(7, aborted, commit=False)
    log.end_transaction(8, committed, commit=True)
    log.numbered(1, **transactional(7))
    log.end_transaction(7, log.next - 1, commit=True)
    copy = tmp_path / "copy" / "t-0"
    copy.mkdir(parents=True)
    for segment in log.path.glob("*.log"):
        shutil.copy(segment, copy)
    assert committed_offsets(log.path) == committed_offsets(copy) == [0, 3, 6]


def test_records_that_were_deleted_before_their_segment_is_are_none(flights, tmp_path):
    starts = tmp_path / "log-start-offset-checkpoint"
    starts.write_bytes(format_offsets({TopicPartition("flights", 3): 250, TopicPartition("gone", 0): 7}))
    assert offsets_alone(tmp_path) == list(range(250, 500))
    assert offsets_alone(tmp_path / "flights-*", isolation="read_committed") == list(range(250, 500))
    (tmp_path / "latest").symlink_to(flights.path)
    assert offsets_alone(tmp_path / "latest") == list(range(250, 500))
    # What lies on the disk all the same is seen by who names its file.
    assert offsets_alone(flights.path / f"{0:020}.log") == list(range(300))
    starts.write_bytes(format_offsets({TopicPartition("flights", 3): 700}))  # and recovery found no more of the log
    assert offsets_alone(tmp_path) == []
    starts.write_bytes(b"0\n7\n")
    assert offsets_alone(tmp_path) == list(range(500))


def test_records_that_a_client_has_deleted_are_none_in_the_files_either(tmp_path):
    with Broker(tmp_path) as broker, Producer(broker.bootstrap) as producer, Admin(broker.bootstrap) as admin:
        admin.create_topics("flights")
        for number in range(5):
            producer.send("flights", b"%d" % number)
        producer.flush()
        admin.delete_records({("flights", 0): 3})
        assert offsets_alone(tmp_path, subscribe="flights") == [3, 4]


@pytest.mark.parametrize("damage", ["cut", "zeros", "overwritten", "removed with the other indexes"])
def test_aborted_records_are_known_by_their_markers_where_a_broker_would_make_the_index_of_them_anew(tmp_path, damage):
    log = LogDirectory(tmp_path, "t-0")
    log.numbered(1)
    aborted = log.numbered(2, **transactional(7))
    log.end_transaction(7, aborted, commit=False)
    opened = log.numbered(1, **transactional(8))
    first = log.segment
    log.roll()
    held = {"producer_id": 8, "current_txn_first_offset": opened}
    entries = [messages.ProducerSnapshot.ProducerEntry(last_offset=opened, **held)]
    snapshot = format_producer_snapshot(messages.ProducerSnapshot(producer_entries=entries))
    log.segment.with_suffix(".snapshot").write_bytes(snapshot)
    log.end_transaction(8, opened, commit=True)
    assert committed_offsets(log.path) == [0, 4]
    index = first.with_suffix(".txnindex")
    if damage == "cut":
        index.write_bytes(index.read_bytes()[:-1])
    elif damage in ("zeros", "overwritten"):
        index.write_bytes(index.read_bytes()[:2] + (b"\0" if damage == "zeros" else b"\1") * 40)
    else:
        index.unlink()
        first.with_suffix(".index").unlink()
    assert committed_offsets(log.path) == [0, 4]


@pytest.mark.parametrize("size", ["1", "1000000"])
def test_where_broken_batches_are_left_out_a_broken_marker_hides_no_later_transaction(tmp_path, size):
    log = LogDirectory(tmp_path, "t-0")
    aborted = log.numbered(1, **transactional(7))
    place = log.segment.stat().st_size
    log.end_transaction(7, aborted, commit=False)
    data = bytearray(log.segment.read_bytes())
    data[place + 20] ^= 1
    log.segment.write_bytes(data)
    for _ in range(2):
        log.end_transaction(7, log.numbered(1, **transactional(7)), commit=True)
    assert offsets_alone(log.path, isolation="read_committed", broken="skip", maxPartitionBytes=size) == [2, 4]


def test_what_was_open_at_an_older_snapshot_is_not_open_where_a_newer_one_says_so(tmp_path):
    """The older one is gone by where an index was lost; of the transaction compaction has left nothing, nor its end."""
    log = LogDirectory(tmp_path, "t-0")
    log.numbered(1)
    opened = log.next
    log.append([Record(b"k", b"v")])  # what came in place of its only record
    log.roll()
    held = {"producer_id": 7, "last_offset": opened, "current_txn_first_offset": opened}
    entry = messages.ProducerSnapshot.ProducerEntry(**held)
    for entries in ([entry], []):
        snapshot = format_producer_snapshot(messages.ProducerSnapshot(producer_entries=entries))
        log.segment.with_suffix(".snapshot").write_bytes(snapshot)
        log.numbered(1)
        log.numbered(1)
        log.roll()
    log.numbered(1)
    (log.path / f"{opened + 1:020}.index").unlink()
    assert committed_offsets(log.path) == [0, 1, 2, 3, 4, 5, 6]


def test_an_end_that_compaction_has_emptied_is_one(tmp_path):
    log = LogDirectory(tmp_path, "t-0")
    log.numbered(1)
    entry = messages.ProducerSnapshot.ProducerEntry(producer_id=7, last_offset=0, current_txn_first_offset=0)
    snapshot = format_producer_snapshot(messages.ProducerSnapshot(producer_entries=[entry]))
    (log.path / f"{1:020}.snapshot").write_bytes(snapshot)
    end = write_end_transaction(
        commit=False, producer_id=7, base_offset=1, coordinator_epoch=0, producer_epoch=0, timestamp=NOON
    )
    (batch,) = read_batches(end)
    log.append_bytes(rewrite(batch, []))
    log.numbered(1)
    assert committed_offsets(log.path) == [0, 2]


def test_a_first_message_that_shrinks_a_hundredfold_is_among_the_committed(tmp_path):
    log = LogDirectory(tmp_path, "t-0")
    log.segment.write_bytes(write([Record(b"k", bytes(1 << 21))], magic=1, compression="gzip"))
    assert committed_offsets(log.path) == [0]


def test_what_compaction_has_emptied_opens_no_transaction(tmp_path):
    log = LogDirectory(tmp_path, "t-0")
    log.numbered(1)
    (batch,) = read_batches(write([Record(b"k", b"v")], base_offset=log.next, **transactional(7)))
    log.append_bytes(rewrite(batch, []))  # the last of its producer, whose marker went
    log.numbered(1)
    assert committed_offsets(log.path) == [0, 2]


def committed_offsets(path: Path) -> list[int]:
    return offsets_alone(path, isolation="read_committed")


def offsets_alone(path: Path, **options: str) -> list[int]:
    """The offsets of the view records, read without Spark."""
    source = SegmentsDataSource({"path": str(path), **options})
    reader = source.reader(source.schema())
    batches = [batch for task in reader.partitions() for batch in reader.read(task)]
    return sorted(offset for batch in batches for offset in batch.column("offset").to_pylist())


def offset_commit(group: str, topic: str, partition: int, offset: int | None) -> Record:
    key = messages.OffsetCommitKey(group=group, topic=topic, partition=partition)
    value = messages.OffsetCommitValue(offset=offset or 0, metadata="m", commit_timestamp=NOON)
    packed = None if offset is None else b"\0\3" + value.encode(3)
    return Record(b"\0\1" + key.encode(0), packed, (), NOON)


def test_committed_offsets_groups_and_lag_come_from_files_alone(spark, flights, tmp_path):
    log = LogDirectory(tmp_path, "__consumer_offsets-4")
    log.append([offset_commit("g", "flights", 3, 100), offset_commit("g", "elsewhere", 0, 5)])
    log.append([offset_commit("gone", "flights", 3, 7)])
    log.append([offset_commit("gone", "flights", 3, None)])
    log.append([offset_commit("g", "flights", 3, 499)], **transactional(5))  # in an aborted transaction
    log.end_transaction(5, 4, commit=False)
    log.roll()
    log.append([offset_commit("g", "flights", 3, 450)], **transactional(6))
    log.end_transaction(6, log.next, commit=True)
    log.append([offset_commit("g", "flights", 3, 460)], **transactional(6))  # not committed yet
    member = messages.GroupMetadataValue.MemberMetadata(
        member_id="m",
        client_id="c",
        client_host="h",
        rebalance_timeout=1,
        session_timeout=1,
        subscription=b"",
        assignment=b"",
    )
    state = messages.GroupMetadataValue(
        protocol_type="consumer",
        generation=3,
        protocol="range",
        leader="m",
        current_state_timestamp=1,
        members=[member],
    )
    key = messages.GroupMetadataKey(group="g")
    log.append([Record(b"\0\2" + key.encode(0), b"\0\2" + state.encode(2), (), NOON)])
    rows = read(spark, tmp_path, view="offsets").orderBy("topic").collect()
    assert [(row.group, row.topic, row.partition, row.offset, row.logEndOffset, row.lag) for row in rows] == [
        ("g", "elsewhere", 0, 5, None, None),
        ("g", "flights", 3, 450, 500, 50),
    ]
    (group,) = read(spark, tmp_path, view="groups").collect()
    assert (group.group, group.type, group.state, group.members) == ("g", "classic", "Stable", 1)
    assert (group.generation, group.protocol) == (3, "range")


def test_transactions_and_metadata_are_decoded(spark, tmp_path):
    value = messages.TransactionLogValue(
        producer_id=9,
        producer_epoch=1,
        transaction_timeout_ms=60_000,
        transaction_status=1,
        transaction_partitions=[messages.TransactionLogValue.PartitionsSchema(topic="t", partition_ids=[0, 2])],
        transaction_last_update_timestamp_ms=NOON,
        transaction_start_timestamp_ms=NOON,
    )
    key = messages.TransactionLogKey(transactional_id="tx")
    LogDirectory(tmp_path, "__transaction_state-0").append(
        [Record(b"\0\0" + key.encode(0), b"\0\0" + value.encode(0), (), NOON)]
    )
    (row,) = read(spark, tmp_path, view="transactions").collect()
    assert (row.transactionalId, row.producerId, row.state, row.timeoutMs) == ("tx", 9, "Ongoing", 60_000)
    assert [tuple(each) for each in row.partitions] == [("t", 0), ("t", 2)]
    topic = messages.TopicRecord(name="flights")
    LogDirectory(tmp_path, "__cluster_metadata-0").append(
        [Record(None, b"\1\2\0" + topic.encode(0), (), NOON), Record(None, b"\1\2\x63", (), NOON)]
    )
    good, newer = read(spark, tmp_path, view="metadata").orderBy("offset").collect()
    assert (good.type, good.version, good.error) == ("Topic", 0, None)
    assert '"name": "flights"' in good.document
    assert newer.error is not None


@pytest.mark.parametrize(
    ("options", "path", "kind", "said"),
    [
        ({"veiw": "batches"}, ".", ConfigError, "option veiw: unknown"),
        ({"view": "offset"}, ".", ConfigError, "needs records, batches, offsets"),
        ({"view": "offsets"}, ".", ConfigError, "its topic is not among the files"),
        ({}, "nothing-here", StorageError, "nothing-here: No such file"),
        ({}, "s3s://bucket", ConfigError, "s3s"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(spark, flights, tmp_path, options, path, kind, said):
    with pytest.raises(Exception) as caught:
        read(spark, path if "://" in path else tmp_path / path, **options).count()
    found = reason(caught.value)
    assert type(found) is kind
    assert said in str(found)


@pytest.mark.parametrize("source", ["tagwire-segments", "tagwire-capture"])
def test_a_stream_of_files_is_refused_in_one_line(spark, tmp_path, source):
    (tmp_path / "log").mkdir()
    stream = spark.readStream.format(source).schema("partition int").load(str(tmp_path / "log"))
    with pytest.raises(Exception) as raised:
        stream.writeStream.format("noop").start().processAllAvailable()
    assert f"format {source}: has no stream; files are read as they are now, by spark.read" in str(reason(raised.value))
