"""The reader: every record once and in order, batches of a fair size, an exact end, and errors that say where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from tagwire import messages, records
from tagwire.client import EARLIEST, LATEST, Client, Reader, TopicPartition
from tagwire.errors import (
    ConfigError,
    ConnectError,
    ConnectionLostError,
    CorruptRecordError,
    Error,
    KafkaError,
    ProtocolError,
    RequestTimeoutError,
    TagwireError,
    UnsupportedVersionError,
)
from tagwire.records import Record

from .fake_broker import SERVED, Close, FakeCluster, FakePartition, Piecemeal, Silence


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as one:
        yield one


def batch_of(first: int, count: int, **options: Any) -> bytes:
    """A batch whose values are their offsets."""
    rows = [Record(b"k", b"%d" % offset, timestamp=offset) for offset in range(first, first + count)]
    return records.write(rows, base_offset=first, **options)


def fill(log: FakePartition, batches: int, size: int = 10, **options: Any) -> None:
    for _ in range(batches):
        log.put(batch_of(log.end, size, **options))


def offsets(reader: Reader) -> dict[TopicPartition, list[int]]:
    """Every offset read, per partition, in the order read; checks that the values are those of the offsets."""
    found: dict[TopicPartition, list[int]] = {}
    for batch in reader:
        assert batch.num_rows
        columns = [batch.column(name).to_pylist() for name in ("topic", "partition", "offset", "value")]
        for topic, partition, offset, value in zip(*columns):
            assert value == b"%d" % offset
            found.setdefault(TopicPartition(topic, partition), []).append(offset)
    return found


# What is read -------------------------------------------------------------------------------------------------------


def test_every_record_comes_once_and_in_order() -> None:
    with FakeCluster(nodes=2) as cluster:
        for index, log in enumerate(cluster.topic("t", 5)):
            fill(log, batches=index * 7)
        with Reader(cluster.bootstrap, {("t", index): EARLIEST for index in range(5)}, stop_at_end=True) as reader:
            found = offsets(reader)
            assert {at.partition: read for at, read in found.items()} == {
                index: list(range(70 * index)) for index in range(1, 5)
            }
            assert [reader.position(("t", index)) for index in range(5)] == [70 * index for index in range(5)]
            assert next(reader, None) is None


def test_the_columns_are_those_asked_for(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    log.append(records.write([Record(b"k", b"v", [("h", b"1")], 1234), Record(None, None, timestamp=-1)]))
    columns = ("value", "topic", "partition", "offset", "timestamp", "timestamp_type", "headers", "key")
    reader = Reader(cluster.bootstrap, {("t", 0): 0}, columns=columns, timestamp_unit="us", stop_at_end=True)
    with reader:
        batch = next(reader)
    assert tuple(batch.schema.names) == columns
    assert batch.schema.field("timestamp").type == pa.timestamp("us", "UTC")
    assert batch.drop_columns(["timestamp"]).to_pylist() == [
        {
            "value": b"v",
            "topic": "t",
            "partition": 0,
            "offset": 0,
            "timestamp_type": 0,
            "headers": [{"key": "h", "value": b"1"}],
            "key": b"k",
        },
        {
            "value": None,
            "topic": "t",
            "partition": 0,
            "offset": 1,
            "timestamp_type": 0,
            "headers": None,
            "key": None,
        },
    ]


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_are_read(cluster: FakeCluster, compression: str) -> None:
    fill(cluster.topic("t")[0], 5, compression=compression)
    with Reader(cluster.bootstrap, {("t", 0): 0}, stop_at_end=True) as reader:
        assert offsets(reader) == {("t", 0): list(range(50))}


def test_reading_starts_inside_a_batch(cluster: FakeCluster) -> None:
    fill(cluster.topic("t")[0], 3)
    with Reader(cluster.bootstrap, {("t", 0): 17}, stop_at_end=True) as reader:
        assert offsets(reader) == {("t", 0): list(range(17, 30))}


@pytest.mark.parametrize(("start", "end"), [(0, 30), (5, 25), (17, 18), (10, 20), (29, 30)])
def test_reading_stops_exactly_at_the_end_offset(cluster: FakeCluster, start: int, end: int) -> None:
    fill(cluster.topic("t")[0], 5)
    with Reader(cluster.bootstrap, {("t", 0): start}, end_offsets={("t", 0): end}) as reader:
        assert offsets(reader) == {("t", 0): list(range(start, end))}
        assert reader.position(("t", 0)) == end


@pytest.mark.parametrize(("start", "end"), [(7, 7), (9, 5)])
def test_an_empty_range_asks_for_nothing(cluster: FakeCluster, start: int, end: int) -> None:
    fill(cluster.topic("t")[0], 5)
    with Reader(cluster.bootstrap, {("t", 0): start}, end_offsets={("t", 0): end}) as reader:
        assert list(reader) == []
        assert reader.position(("t", 0)) == start
    assert cluster.asked("Fetch") == []


def test_no_partition_at_all_is_read_at_once() -> None:
    assert list(Reader("127.0.0.1:1", {}, stop_at_end=True)) == []


def test_latest_is_the_end_as_it_is_when_reading_begins(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    fill(log, 2)
    with Reader(cluster.bootstrap, {("t", 0): EARLIEST}, end_offsets={("t", 0): LATEST}) as reader:
        fill(log, 2)
        assert offsets(reader) == {("t", 0): list(range(20))}


def test_gaps_of_compaction_are_passed_over(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    log.put(batch_of(3, 2))
    log.put(batch_of(90, 4))
    with Reader(cluster.bootstrap, {("t", 0): 0}, end_offsets={("t", 0): 92}) as reader:
        assert offsets(reader) == {("t", 0): [3, 4, 90, 91]}
    with Reader(cluster.bootstrap, {("t", 0): 5}, end_offsets={("t", 0): 50}) as reader:
        assert offsets(reader) == {}
        assert reader.position(("t", 0)) == 50


def control_batch(offset: int) -> bytes:
    """A COMMIT marker (facts 5.3, 5.4)."""
    data = bytearray(
        bytes.fromhex(
            "00000000000003d7 00000042 0000001d 02 050d7e51 0030 00000000 0000018bcfe56800 0000018bcfe56800"
            "0000000000000049 000d ffffffff 00000001 20 00 00 00 08 00000001 0c 00000000015b 00"
        )
    )
    records.place(data, offset, 0)
    return bytes(data)


def test_control_batches_are_not_given_and_do_not_hold_up_the_end(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    fill(log, 1)
    log.put(control_batch(10))
    log.put(batch_of(11, 3))
    log.put(control_batch(14))
    with Reader(cluster.bootstrap, {("t", 0): 0}, stop_at_end=True) as reader:
        assert offsets(reader) == {("t", 0): [*range(10), 11, 12, 13]}
        assert reader.position(("t", 0)) == 15


def test_a_log_of_nothing_but_a_marker_ends(cluster: FakeCluster) -> None:
    cluster.topic("t")[0].put(control_batch(0))
    with Reader(cluster.bootstrap, {("t", 0): 0}, stop_at_end=True) as reader:
        assert list(reader) == []
        assert reader.position(("t", 0)) == 1


def test_a_cut_off_batch_at_the_end_of_an_answer_is_fetched_again(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    fill(log, 20)
    size = len(log.batches[0][2])
    with Reader(cluster.bootstrap, {("t", 0): 0}, stop_at_end=True, max_partition_bytes=size * 3 // 2) as reader:
        assert offsets(reader) == {("t", 0): list(range(200))}


def test_a_batch_larger_than_the_limits_is_read(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    fill(log, 2, size=500)
    with Reader(cluster.bootstrap, {("t", 0): 0}, stop_at_end=True, max_bytes=100, max_partition_bytes=10) as reader:
        assert offsets(reader) == {("t", 0): list(range(1000))}


def test_new_records_are_waited_for(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    fill(log, 1)
    with Reader(cluster.bootstrap, {("t", 0): 0}, max_wait_ms=10) as reader:
        assert next(reader).num_rows == 10
        fill(log, 1)
        assert next(reader).column("offset").to_pylist() == list(range(10, 20))
        assert reader.position(("t", 0)) == 20


# Batches --------------------------------------------------------------------------------------------------------------


def test_many_small_batches_become_batches_of_a_fair_size(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    fill(log, 400, size=10)
    limit = len(log.batches[0][2]) * 7
    with Reader(
        cluster.bootstrap, {("t", 0): 0}, stop_at_end=True, batch_rows=1000, max_partition_bytes=limit
    ) as reader:
        sizes = [batch.num_rows for batch in reader]
    assert sum(sizes) == 4000
    assert all(1000 <= size <= 1100 for size in sizes[:-1]), sizes


def test_small_partitions_are_given_together(cluster: FakeCluster) -> None:
    for log in cluster.topic("t", 50):
        fill(log, 1)
    with Reader(cluster.bootstrap, {("t", index): 0 for index in range(50)}, stop_at_end=True) as reader:
        assert [batch.num_rows for batch in reader] == [500]


def test_a_large_answer_is_given_in_pieces(cluster: FakeCluster) -> None:
    fill(cluster.topic("t")[0], 100, size=100)
    with Reader(cluster.bootstrap, {("t", 0): 0}, stop_at_end=True, batch_rows=1000) as reader:
        sizes, positions = [], []
        for batch in reader:
            sizes.append(batch.num_rows)
            positions.append((batch.column("offset")[-1].as_py() + 1, reader.position(("t", 0))))
    assert sizes == [1000] * 10
    assert all(last == position for last, position in positions)


def test_every_partition_gets_its_turn(cluster: FakeCluster) -> None:
    for log in cluster.topic("t", 3):
        fill(log, 50)
    size = len(cluster.topics["t"][0].batches[0][2])
    with Reader(
        cluster.bootstrap, {("t", index): 0 for index in range(3)}, stop_at_end=True, max_bytes=size, batch_rows=10
    ) as reader:
        first = [next(reader).column("partition")[0].as_py() for _ in range(6)]
    assert sorted(first) == [0, 0, 1, 1, 2, 2]


def test_the_next_fetch_is_under_way_while_a_batch_is_handled(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    fill(log, 3)
    limit = len(log.batches[0][2])
    with Reader(cluster.bootstrap, {("t", 0): 0}, stop_at_end=True, max_partition_bytes=limit, batch_rows=10) as reader:
        for expected in (10, 20, 30):
            batch = next(reader)
            assert batch.num_rows == 10
            assert reader.position(("t", 0)) == expected
        assert list(reader) == []
    assert [message.topics[0].partitions[0].fetch_offset for message in cluster.asked("Fetch")] == [0, 10, 20]


def test_settings_of_the_client_are_used(cluster: FakeCluster) -> None:
    fill(cluster.topic("t")[0], 1)
    properties = {
        "bootstrap.servers": cluster.bootstrap,
        "fetch.max.bytes": "1000",
        "max.partition.fetch.bytes": "900",
        "fetch.max.wait.ms": "7",
        "fetch.min.bytes": "3",
    }
    with Client.from_properties(properties) as client:
        list(Reader(client, {("t", 0): 0}, stop_at_end=True, min_bytes=4))
    message = cluster.asked("Fetch")[0]
    asked = (message.max_bytes, message.topics[0].partitions[0].partition_max_bytes, message.max_wait_ms)
    assert asked == (1000, 900, 7)
    assert message.min_bytes == 4
    assert (message.session_id, message.session_epoch, message.replica_state.replica_id) == (0, -1, -1)


@pytest.mark.parametrize(("highest", "spoken"), [(4, 4), (6, 6), (7, 7), (11, 11), (12, 12), (18, 12)])
def test_the_highest_fetch_that_names_topics_is_spoken(highest: int, spoken: int) -> None:
    with FakeCluster(served={**SERVED, 1: (0, highest)}) as cluster:
        fill(cluster.topic("t")[0], 2)
        with Reader(cluster.bootstrap, {("t", 0): 0}, stop_at_end=True) as reader:
            assert offsets(reader) == {("t", 0): list(range(20))}
        assert set(cluster.versions_asked("Fetch")) == {spoken}


# Trouble ------------------------------------------------------------------------------------------------------------


def fetch_error(error: Error) -> Any:
    def refuse(message: Any) -> Any:
        kind = messages.FetchResponse
        return kind(
            responses=[
                kind.FetchableTopicResponse(
                    topic=topic.topic,
                    partitions=[
                        kind.PartitionData(partition_index=partition.partition, error_code=error, high_watermark=-1)
                        for partition in topic.partitions
                    ],
                )
                for topic in message.topics
            ]
        )

    return refuse


PASSING_TROUBLES = [
    ("a leader that moved", fetch_error(Error.NOT_LEADER_OR_FOLLOWER)),
    ("an epoch that changed", fetch_error(Error.FENCED_LEADER_EPOCH)),
    ("an offset not there yet", fetch_error(Error.OFFSET_NOT_AVAILABLE)),
    ("a connection that ends", Close()),
    ("an answer in pieces", Piecemeal(100)),
    ("an error about the whole", lambda _: messages.FetchResponse(error_code=Error.FETCH_SESSION_ID_NOT_FOUND)),
]


@pytest.mark.parametrize(("name", "action"), PASSING_TROUBLES, ids=[row[0] for row in PASSING_TROUBLES])
def test_what_may_pass_is_tried_again(cluster: FakeCluster, name: str, action: Any) -> None:
    log = cluster.topic("t")[0]
    fill(log, 20)
    with Reader(
        cluster.bootstrap, {("t", 0): 0}, stop_at_end=True, max_partition_bytes=len(log.batches[0][2]), batch_rows=10
    ) as reader:
        next(reader)
        cluster.script("Fetch", action, action)
        assert offsets(reader) == {("t", 0): list(range(10, 200))}


def test_a_leader_that_moved_is_followed() -> None:
    with FakeCluster(nodes=2) as cluster:
        log = cluster.topic("t")[0]
        fill(log, 10)
        limit = len(log.batches[0][2])
        with Reader(
            cluster.bootstrap, {("t", 0): 0}, stop_at_end=True, max_partition_bytes=limit, batch_rows=10
        ) as reader:
            next(reader)
            log.leader = 1
            assert offsets(reader) == {("t", 0): list(range(10, 100))}


def test_a_broker_that_comes_back_is_read_on(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    fill(log, 10)
    with Reader(
        cluster.bootstrap, {("t", 0): 0}, stop_at_end=True, max_partition_bytes=len(log.batches[0][2]), batch_rows=10
    ) as reader:
        next(reader)
        cluster.brokers[0].stop()
        cluster.brokers[0].start()
        assert offsets(reader) == {("t", 0): list(range(10, 100))}


def test_a_leader_that_stays_away_is_an_error(cluster: FakeCluster) -> None:
    fill(cluster.topic("t")[0], 1)
    with Client(cluster.bootstrap, timeout=0.6) as client:
        reader = Reader(client, {("t", 0): 0})
        next(reader)
        cluster.brokers[0].stop()
        for _ in range(2):
            with pytest.raises(TagwireError, match=r"127\.0\.0\.1") as caught:
                next(reader)
    assert isinstance(caught.value, ConnectionLostError | ConnectError)


def test_an_offset_out_of_range_names_what_is_held(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    fill(log, 2)
    log.start = 5
    for offset in (2, 21):
        with Reader(cluster.bootstrap, {("t", 0): offset}) as reader:
            with pytest.raises(KafkaError) as caught:
                next(reader)
            assert caught.value.error is Error.OFFSET_OUT_OF_RANGE
            assert str(caught.value) == (
                f"OFFSET_OUT_OF_RANGE (1): t-0: no offset {offset}; the partition holds offsets 5 to 19"
            )
            assert reader.position(("t", 0)) == offset


def test_an_offset_out_of_range_of_an_empty_partition(cluster: FakeCluster) -> None:
    cluster.topic("t")
    with (
        Reader(cluster.bootstrap, {("t", 0): 1}) as reader,
        pytest.raises(KafkaError, match="the partition holds no records, its next offset is 0"),
    ):
        next(reader)


@pytest.mark.parametrize(
    ("error", "says"),
    [(Error.TOPIC_AUTHORIZATION_FAILED, "TOPIC_AUTH"), (Error.UNKNOWN_SERVER_ERROR, "UNKNOWN_SERVER")],
)
def test_a_refusal_that_time_does_not_heal_names_the_partition(cluster: FakeCluster, error: Error, says: str) -> None:
    fill(cluster.topic("t")[0], 1)
    cluster.script("Fetch", fetch_error(error))
    with (
        Reader(cluster.bootstrap, {("t", 0): 3}) as reader,
        pytest.raises(KafkaError, match=f"{says}.* t-0 at offset 3"),
    ):
        next(reader)


@pytest.mark.parametrize("at", [("missing", 0), ("t", 3)])
def test_a_partition_that_does_not_exist_is_named(cluster: FakeCluster, at: tuple[str, int]) -> None:
    cluster.topic("t")
    with Client(cluster.bootstrap, timeout=0.6) as client:
        for start in (EARLIEST, 0):
            with pytest.raises(KafkaError, match=r"UNKNOWN_TOPIC_OR_PARTITION .*(topic 'missing'|partition t-3)"):
                next(Reader(client, {at: start}))


def damaged(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_a_corrupt_batch_is_named_after_what_stands_before_it(cluster: FakeCluster, compression: str) -> None:
    log = cluster.topic("t")[0]
    fill(log, 3, compression=compression)
    log.put(damaged(batch_of(30, 10, compression=compression)))
    fill(log, 1)
    with Reader(cluster.bootstrap, {("t", 0): 5}, stop_at_end=True) as reader:
        assert next(reader).column("offset").to_pylist() == list(range(5, 30))
        assert reader.position(("t", 0)) == 30
        for _ in range(2):
            with pytest.raises(CorruptRecordError, match=r"^t-0@30: batch at offset 30.*checksum"):
                next(reader)


BROKEN_HEADERS: list[tuple[str, bytes, type[TagwireError], str]] = [
    (
        "a length that cannot be",
        b"\0" * 8 + b"\xff\xff\xff\xff" + b"\0" * 80,
        CorruptRecordError,
        "t-0@10: .*length -1",
    ),
    (
        "a magic that is none",
        b"\0" * 8 + b"\0\0\0\x40\0\0\0\0\x09" + b"\0" * 80,
        CorruptRecordError,
        "t-0@10: .*magic 9",
    ),
    (
        "an old message set",
        b"\0" * 8 + b"\0\0\0\x20\0\0\0\0\x01" + b"\0" * 80,
        UnsupportedVersionError,
        "t-0@10: .*magic 1",
    ),
    ("a batch of earlier offsets", batch_of(3, 2), CorruptRecordError, "t-0@10: .*ends before it, at 4"),
]


@pytest.mark.parametrize(("name", "data", "kind", "says"), BROKEN_HEADERS, ids=[row[0] for row in BROKEN_HEADERS])
def test_a_header_that_contradicts_itself_is_named_after_what_stands_before_it(
    cluster: FakeCluster, name: str, data: bytes, kind: type[TagwireError], says: str
) -> None:
    log = cluster.topic("t")[0]
    fill(log, 1)
    log.batches.append((10, 99, data))
    log.end = 99
    with Reader(cluster.bootstrap, {("t", 0): 0}) as reader:
        assert next(reader).num_rows == 10
        with pytest.raises(kind, match=says):
            next(reader)
        assert reader.position(("t", 0)) == 10


def test_bytes_that_never_make_a_batch_are_an_error(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    log.batches.append((0, 10, batch_of(0, 10)[:-1]))
    log.end = 10
    with Reader(cluster.bootstrap, {("t", 0): 0}) as reader, pytest.raises(ProtocolError, match=r"t-0@0: .* no whole"):
        next(reader)


def test_a_batch_that_would_unpack_beyond_the_limit_is_refused(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    log.append(records.write([Record(None, b"\0" * 3_000_000)], compression="zstd"))
    with Reader(cluster.bootstrap, {("t", 0): 0}, stop_at_end=True) as reader:
        assert next(reader).num_rows == 1
    with (
        Reader(cluster.bootstrap, {("t", 0): 0}, max_decompressed=1_000_000) as reader,
        pytest.raises(CorruptRecordError, match="t-0@0"),
    ):
        next(reader)


def test_one_bad_partition_does_not_take_records_of_the_others_away(cluster: FakeCluster) -> None:
    good, bad = cluster.topic("t", 2)
    fill(good, 3)
    bad.put(damaged(batch_of(0, 10)))
    with Reader(cluster.bootstrap, {("t", 0): 0, ("t", 1): 0}, stop_at_end=True) as reader:
        assert next(reader).column("offset").to_pylist() == list(range(30))
        with pytest.raises(CorruptRecordError, match="t-1@0"):
            next(reader)


def test_an_answer_about_another_partition_is_an_error(cluster: FakeCluster) -> None:
    fill(cluster.topic("t")[0], 1)
    kind = messages.FetchResponse
    other = kind.FetchableTopicResponse(topic="u", partitions=[kind.PartitionData(partition_index=0)])
    cluster.script("Fetch", lambda _: kind(responses=[other]))
    with (
        Reader(cluster.bootstrap, {("t", 0): 0}) as reader,
        pytest.raises(ProtocolError, match="u-0, which was not as"),
    ):
        next(reader)


def test_a_broker_that_never_answers_is_given_up(cluster: FakeCluster) -> None:
    fill(cluster.topic("t")[0], 1)
    cluster.script("Fetch", Silence())
    with (
        Client(cluster.bootstrap, timeout=0.6) as client,
        pytest.raises(RequestTimeoutError, match="did not answer Fetch v12"),
    ):
        next(Reader(client, {("t", 0): 0}, max_wait_ms=0))


def test_an_end_that_the_partition_never_reaches_is_an_error(cluster: FakeCluster) -> None:
    fill(cluster.topic("t")[0], 1)
    with Client(cluster.bootstrap, timeout=0.6) as client:
        reader = Reader(client, {("t", 0): 0}, end_offsets={("t", 0): 50})
        assert next(reader).num_rows == 10
        with pytest.raises(RequestTimeoutError, match=r"no data at offset 10 .* ends at 50, the partition at 10"):
            next(reader)


def test_a_client_that_was_given_stays_open(cluster: FakeCluster) -> None:
    fill(cluster.topic("t")[0], 1)
    with Client(cluster.bootstrap) as client:
        for _ in range(3):
            with Reader(client, {("t", 0): 0}, stop_at_end=True) as reader:
                assert len(list(reader)) == 1
    assert cluster.brokers[0].connections == 1


def test_an_abandoned_reader_does_not_disturb_its_client(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    fill(log, 10)
    with Client(cluster.bootstrap) as client:
        reader = Reader(client, {("t", 0): 0}, max_partition_bytes=len(log.batches[0][2]), batch_rows=10)
        next(reader)
        assert client.metadata().topics["t"].partitions
        assert offsets(Reader(client, {("t", 0): 0}, stop_at_end=True)) == {("t", 0): list(range(100))}


WRONG_OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"columns": ("offset", "colour")}, "colour"),
    ({"columns": ("offset", "offset")}, "twice"),
    ({"timestamp_unit": "days"}, "days"),
    ({"batch_rows": 0}, "batch_rows=0"),
    ({"max_bytes": 0}, "max_bytes=0"),
    ({"max_wait_ms": -1}, "max_wait_ms=-1"),
    ({"end_offsets": {("t", 0): -3}}, "offset -3 of t-0"),
    ({"end_offsets": {("u", 0): 5}}, "end offset of u-0: the partition is not assigned"),
]


@pytest.mark.parametrize(("options", "says"), WRONG_OPTIONS, ids=[row[1] for row in WRONG_OPTIONS])
def test_a_wrong_option_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Reader("127.0.0.1:1", {("t", 0): 0}, **options)


def test_the_position_of_a_partition_that_is_not_assigned_is_an_error(cluster: FakeCluster) -> None:
    with Reader(cluster.bootstrap, {("t", 0): 0}) as reader, pytest.raises(KeyError):
        reader.position(("t", 1))
