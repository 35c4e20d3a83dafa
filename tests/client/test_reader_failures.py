"""The reader in trouble: what passes is tried again, what does not says where, after the records before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tagwire import messages, records
from tagwire.client import EARLIEST, Client, Reader
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
)
from tagwire.records import Record

from .fake_broker import Close, FakeCluster, Piecemeal, Silence
from .fetch_refusals import fetch_error
from .logs import batch_of, fill, offsets


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as one:
        yield one


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


@pytest.mark.parametrize("as_records", [False, True])
def test_seek_goes_on_after_an_error_and_skips_nothing_elsewhere(cluster: FakeCluster, as_records: bool) -> None:
    short, long = cluster.topic("t", 2)
    fill(short, 2)
    fill(long, 2)
    short.start = 5
    bounds = {("t", 0): 2, ("t", 1): 0}
    with Reader(cluster.bootstrap, bounds, stop_at_end=True, max_partition_bytes=1) as reader:
        offsets: list[tuple[int, int]] = []

        def read() -> None:
            if as_records:
                for record in reader.records():
                    offsets.append((record.partition or 0, record.offset))
            else:
                for batch in reader:
                    rows = batch.select(["partition", "offset"]).to_pylist()
                    offsets.extend((row["partition"], row["offset"]) for row in rows)

        with pytest.raises(KafkaError, match="t-0: no offset 2"):
            read()
        reader.seek(("t", 0), 1)
        with pytest.raises(KafkaError, match="t-0: no offset 1"):
            read()
        reader.seek(("t", 0), "earliest")
        read()
    assert sorted(offsets) == [(0, offset) for offset in range(5, 20)] + [(1, offset) for offset in range(20)]


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
        "a message set too short for its format",
        b"\0" * 8 + b"\0\0\0\x0f\0\0\0\0\x01" + b"\0" * 80,
        CorruptRecordError,
        "t-0@10: .*size 15 leaves no room for the fields of magic 1",
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
    with (
        Reader(cluster.bootstrap, {("t", 0): 0}) as reader,
        pytest.raises(ProtocolError, match=r"t-0@0: .* of a batch"),
    ):
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
        pytest.raises(ProtocolError, match="u-0 twice, or not requested"),
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
    ({"end_offsets": {("t", 0): -3}}, "end_offsets: t-0=-3: allowed is an offset"),
    ({"end_offsets": {("u", 0): 5}}, "end offset of u-0: the partition is not assigned"),
]


@pytest.mark.parametrize(("options", "says"), WRONG_OPTIONS, ids=[row[1] for row in WRONG_OPTIONS])
def test_a_wrong_option_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Reader("127.0.0.1:1", {("t", 0): 0}, **options)


def test_the_position_of_a_partition_that_is_not_assigned_is_an_error(cluster: FakeCluster) -> None:
    with Reader(cluster.bootstrap, {("t", 0): 0}) as reader, pytest.raises(KeyError):
        reader.position(("t", 1))


@pytest.mark.parametrize("left", [80, 10])
def test_a_log_that_ends_inside_a_batch_is_told_as_such(cluster: FakeCluster, left: int) -> None:
    log = cluster.topic("t")[0]
    fill(log, 2)
    first, after, data = log.batches[-1]
    log.batches[-1] = (first, after, data[:left])
    says = rf"t-0@10: the broker has {left} bytes of a batch.*: its log is cut off there; .* a later offset"
    reader = Reader(cluster.bootstrap, {("t", 0): 10}, stop_at_end=True)
    with reader, pytest.raises(ProtocolError, match=says):
        next(reader)
