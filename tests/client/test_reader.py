"""The reader: every record once and in order, batches of a fair size, an exact end."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from tagwire import records
from tagwire.client import EARLIEST, LATEST, Client, Reader
from tagwire.records import Record

from .fake_broker import SERVED, FakeCluster
from .logs import batch_of, fill, offsets


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as one:
        yield one


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
    assert cluster.requests("Fetch") == []


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
    """A COMMIT marker (docs/record-formats.md#record-batches, docs/record-formats.md#control-batches)."""
    data = bytearray(
        bytes.fromhex(
            "00000000000003d7 00000042 0000001d 02 050d7e51 0030 00000000 0000018bcfe56800 0000018bcfe56800"
            "0000000000000049 000d ffffffff 00000001 20 00 00 00 08 00000001 0c 00000000015b 00"
        )
    )
    records.assign_offsets(data, offset, 0)
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


def test_a_batch_ends_before_its_rows_when_it_has_bytes_enough(cluster: FakeCluster) -> None:
    fill(cluster.topic("t")[0], 100, size=100)
    options = {"batch_rows": 2000, "batch_bytes": 5000}
    with Reader(cluster.bootstrap, {("t", 0): 0}, stop_at_end=True, **options) as reader:
        batches = list(reader)
    assert sum(batch.num_rows for batch in batches) == 10_000
    assert all(batch.column("value").nbytes + batch.column("key").nbytes < 3 * 5000 for batch in batches)


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
    assert [message.topics[0].partitions[0].fetch_offset for message in cluster.requests("Fetch")] == [0, 10, 20]


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
    message = cluster.requests("Fetch")[0]
    asked = (message.max_bytes, message.topics[0].partitions[0].partition_max_bytes, message.max_wait_ms)
    assert asked == (1000, 900, 7)
    assert message.min_bytes == 4
    assert (message.session_id, message.session_epoch, message.replica_state.replica_id) == (0, -1, -1)


def test_no_more_is_asked_for_than_a_response_may_have_whoever_sets_that(cluster: FakeCluster) -> None:
    fill(cluster.topic("t")[0], 1)
    most = 128 * 1024 * 1024
    options = {"max_bytes": 2**40, "max_partition_bytes": 2**31 - 1, "batch_bytes": 2**70, "batch_rows": 2**70}
    with Reader(cluster.bootstrap, {("t", 0): 0}, stop_at_end=True, **options) as reader:  # type: ignore[arg-type]
        assert [batch.num_rows for batch in reader] == [10]
    message = cluster.requests("Fetch")[0]
    assert (message.max_bytes, message.topics[0].partitions[0].partition_max_bytes) == (most, most)


def test_a_fetch_waits_for_half_of_the_time_that_requests_behind_it_have(cluster: FakeCluster) -> None:
    fill(cluster.topic("t")[0], 1)
    properties = {
        "bootstrap.servers": cluster.bootstrap,
        "request.timeout.ms": "4000",
        "fetch.max.wait.ms": "20000",
    }
    with Client.from_properties(properties) as client:
        list(Reader(client, {("t", 0): 0}, stop_at_end=True))
    assert [message.max_wait_ms for message in cluster.requests("Fetch")] == [2000]


@pytest.mark.parametrize("highest", [4, 6, 7, 11, 12, 13, 15, 16, 18])
def test_the_highest_fetch_in_common_is_spoken(highest: int) -> None:
    with FakeCluster(served={**SERVED, 1: (0, highest)}) as cluster:
        fill(cluster.topic("t")[0], 2)
        with Reader(cluster.bootstrap, {("t", 0): 0}, stop_at_end=True) as reader:
            assert offsets(reader) == {("t", 0): list(range(20))}
        assert set(cluster.requested_versions("Fetch")) == {highest}


def test_where_no_topic_ids_are_told_topics_are_fetched_by_name() -> None:
    with FakeCluster(served={**SERVED, 1: (0, 18), 3: (0, 9)}) as cluster:
        fill(cluster.topic("t")[0], 2)
        with Reader(cluster.bootstrap, {("t", 0): 0}, stop_at_end=True) as reader:
            assert offsets(reader) == {("t", 0): list(range(20))}
        assert set(cluster.requested_versions("Fetch")) == {12}
