"""Fetch over a socket: what comes back, how much, and when."""

from __future__ import annotations

from threading import Event
from uuid import uuid4

import pytest

from tagwire import messages
from tagwire.broker.storage.files import Files
from tagwire.broker.storage.readable_log import ReadableLog
from tagwire.errors import Error
from tagwire.records import next_offset, read

from .asking import add_partitions, begin, end, send_in_transaction

FAR = 30_000


def values(answer):
    return [record.value for batch in read(answer.records) for record in batch.records()]


@pytest.mark.parametrize("version", range(4, 13))
def test_every_version_reads_from_an_offset_and_tells_the_ends(wire, make, version):
    wire.create("t")
    for value in (b"a", b"b", b"c"):
        wire.produce("t", make.records(value))
    answer = wire.fetch("t", 1, version=version)
    assert values(answer) == [b"b", b"c"]
    assert (answer.error_code, answer.high_watermark, answer.last_stable_offset) == (0, 3, 3)
    assert answer.log_start_offset == (0 if version >= 5 else -1)


@pytest.mark.parametrize("version", range(13, 17))
def test_a_topic_is_read_by_its_id(wire, make, version):
    topic_id = wire.create("t").topic_id
    wire.produce("t", make.records(b"a"))
    assert values(wire.fetch(topic_id, 0, version=version)) == [b"a"]
    assert wire.fetch(uuid4(), 0, version=version, max_wait_ms=FAR).error_code == Error.UNKNOWN_TOPIC_ID
    assert wire.fetch(topic_id, 0, partition=1, version=version).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


def test_at_the_end_there_is_nothing_and_past_it_is_out_of_range(wire, make):
    wire.create("t")
    wire.produce("t", make.records(b"a", b"b"))
    at_end = wire.fetch("t", 2)
    assert (at_end.error_code, at_end.high_watermark, len(at_end.records)) == (0, 2, 0)
    for offset in (3, -1, 2**62):
        assert wire.fetch("t", offset, max_wait_ms=FAR).error_code == Error.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(("topic", "partition"), [("missing", 0), ("t", 1), ("t", -1), ("..", 0)])
def test_a_partition_that_does_not_exist_is_unknown_at_once(wire, topic, partition):
    wire.create("t")
    answer = wire.fetch(topic, 0, partition=partition, max_wait_ms=FAR)
    assert answer.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert len(answer.records) == 0


@pytest.mark.parametrize(("version", "error"), [(9, Error.UNSUPPORTED_COMPRESSION_TYPE), (10, Error.NONE)])
def test_who_does_not_know_zstd_is_given_none_of_a_topic_that_is_compressed_with_it(wire, make, version, error):
    wire.create("t", compression_type="zstd")
    wire.produce("t", make.records(b"v"))
    answer = wire.fetch("t", 0, version=version)
    assert answer.error_code == error
    assert bool(answer.records) is (error is Error.NONE)


def test_who_does_not_know_zstd_is_told_so_wherever_it_would_read(wire, make):
    wire.create("t", compression_type="zstd")
    for offset in (0, 99):
        assert wire.fetch("t", offset, version=9).error_code == Error.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize(("version", "error"), [(5, Error.NOT_LEADER_OR_FOLLOWER), (6, Error.KAFKA_STORAGE_ERROR)])
def test_who_does_not_know_of_broken_disks_is_told_to_look_for_another_leader(wire, make, broker, version, error):
    wire.create("t")
    broker.disk.fail("sync", times=1)
    wire.produce("t", make.records(b"lost"))
    assert wire.fetch("t", 0, version=version).error_code == error


def test_a_fetch_waits_until_there_is_something(wire, make, broker, connect):
    wire.create("t")
    wire.send(make.fetch("t", 0, max_wait_ms=FAR), 12)
    other = connect(broker.bootstrap)
    other.produce("t", make.records(b"late"))
    assert values(wire.receive().responses[0].partitions[0]) == [b"late"]


def test_a_fetch_waits_until_there_is_enough(wire, make, broker, connect):
    wire.create("t")
    batch = make.records(b"v" * 100)
    wire.produce("t", batch)
    wire.send(make.fetch("t", 0, max_wait_ms=FAR, min_bytes=3 * len(batch)), 12)
    other = connect(broker.bootstrap)
    other.produce("t", batch)
    other.produce("t", batch)
    assert len(values(wire.receive().responses[0].partitions[0])) == 3


def test_a_fetch_of_committed_records_ends_when_a_marker_shows_enough(wire, make, broker, connect):
    wire.create("t")
    other = connect(broker.bootstrap)
    who = begin(other, "x")
    add_partitions(other, "x", who, "t", 0)
    send_in_transaction(other, "x", who, "t", 0, 0, b"v" * 1000)
    wire.send(make.fetch("t", 0, max_wait_ms=FAR, min_bytes=1000, isolation_level=1), 12)
    other.metadata()  # by then it waits
    end(other, "x", who, commit=True)
    wire.socket.settimeout(FAR / 3000)
    (found, _) = values(wire.receive().responses[0].partitions[0])
    assert found == b"v" * 1000


def test_what_is_published_while_a_fetch_reads_is_counted_once(wire, make, broker, connect, monkeypatch):
    wire.create("t")
    batch = make.records(b"v" * 100)
    wire.produce("t", batch)
    begun, read = Event(), ReadableLog.fetch
    published = Event()

    def late(log, *given, **named):
        begun.set()
        assert published.wait(10)
        return read(log, *given, **named)

    monkeypatch.setattr(ReadableLog, "fetch", late)
    wire.send(make.fetch("t", 0, max_wait_ms=FAR, min_bytes=3 * len(batch)), 12)
    assert begun.wait(10)
    other = connect(broker.bootstrap)
    other.produce("t", batch)
    published.set()
    other.fetch("t", 0)  # the broker is through with the first read
    other.produce("t", batch)
    assert len(values(wire.receive().responses[0].partitions[0])) == 3


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("isolation", [0, 1])
def test_what_a_fetch_waits_for_takes_a_disk_thread_only_where_it_is_not_in_memory(
    wire, make, broker, connect, monkeypatch, in_memory, isolation
):
    def read_cached(files, path, size, position):
        return bytearray(path.read_bytes()[position : position + size]) if in_memory else None

    given, fetch = [], ReadableLog.fetch

    def noted(log, *arguments, **named):
        found = fetch(log, *arguments, **named)
        given.append(len(found.records))
        return found

    monkeypatch.setattr(Files, "read_cached", read_cached)
    monkeypatch.setattr(ReadableLog, "fetch", noted)
    wire.create("t", 2)
    wire.produce("t", make.records(b"before"))
    request = make.fetch("t", 1, max_wait_ms=FAR, isolation_level=isolation)
    request.topics[0].partitions += make.fetch("t", 0, 1).topics[0].partitions
    wire.send(request, 12)
    other = connect(broker.bootstrap)
    other.produce("t", make.records(b"late"), partition=1)
    first, second = wire.receive().responses[0].partitions
    assert (values(first), values(second)) == ([], [b"late"])
    assert (first.high_watermark, second.high_watermark, second.last_stable_offset) == (1, 1, 1)
    assert any(given) != in_memory


def test_a_waiting_fetch_gets_as_much_as_it_may_of_what_is_more_than_is_read_at_once(wire, make, broker, connect):
    wire.create("t")
    large = make.records(b"v" * 50_000)
    wire.send(make.fetch("t", 0, max_wait_ms=FAR, min_bytes=3 * len(large)), 12)
    other = connect(broker.bootstrap)
    for _ in range(3):
        other.produce("t", large)
    assert len(values(wire.receive().responses[0].partitions[0])) == 3
    wire.send(make.fetch("t", 3, max_wait_ms=FAR, max_bytes=1), 12)
    other.produce("t", large)
    assert len(values(wire.receive().responses[0].partitions[0])) == 1  # the first one, though it is larger


def test_a_fetch_answers_with_what_there_is_when_its_time_is_up(wire, make):
    wire.create("t")
    wire.produce("t", make.records(b"a"))
    assert values(wire.fetch("t", 0, max_wait_ms=50, min_bytes=10**6)) == [b"a"]
    assert values(wire.fetch("t", 1, max_wait_ms=50)) == []


def test_a_fetch_whose_time_is_up_looks_once_more_though_the_clock_is_a_little_behind(wire, make, monkeypatch):
    # A timer's time, a sum of floats, may be later than the loop's clock shows when it fires.
    looked, shown = [], ReadableLog.stable_offset.fget

    def noted(log):
        looked.append(log)
        return shown(log)

    wire.create("t")
    monkeypatch.setattr(ReadableLog, "stable_offset", property(noted))
    for wait_ms in range(1, 61):
        wire.fetch("t", 0, max_wait_ms=wait_ms, isolation_level=1)
    assert len(looked) <= 2 * 60


def test_a_waiting_fetch_ends_when_its_topic_is_deleted(wire, make, broker, connect):
    wire.create("t")
    wire.send(make.fetch("t", 0, max_wait_ms=FAR), 12)
    other = connect(broker.bootstrap)
    other.ask(delete_request("t"), 5)
    assert wire.receive().responses[0].partitions[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


def test_a_waiting_fetch_ends_when_its_partition_goes_offline(wire, make, broker, connect):
    wire.create("t")
    wire.send(make.fetch("t", 0, max_wait_ms=FAR), 12)
    other = connect(broker.bootstrap)
    other.metadata()  # by then it waits
    broker.disk.fail("sync", times=1)
    assert other.produce("t", make.records(b"lost")).error_code == Error.KAFKA_STORAGE_ERROR
    wire.socket.settimeout(FAR / 3000)
    assert wire.receive().responses[0].partitions[0].error_code == Error.KAFKA_STORAGE_ERROR


def delete_request(name):
    return messages.DeleteTopicsRequest(topic_names=[name], timeout_ms=1000)


def test_partitions_share_max_bytes_and_only_the_very_first_batch_may_exceed_it(wire, make):
    wire.create("t", 3)
    batch = make.records(b"v" * 1000)
    for partition in range(3):
        wire.produce("t", batch, partition=partition)
        wire.produce("t", batch, partition=partition)
    request = make.fetch("t", 0, max_bytes=3 * len(batch))
    request.topics[0].partitions += make.fetch("t", 0, 1).topics[0].partitions
    request.topics[0].partitions += make.fetch("t", 0, 2).topics[0].partitions
    sizes = [len(part.records) // len(batch) for part in wire.ask(request, 12).responses[0].partitions]
    assert sizes == [2, 1, 0]
    request.max_bytes = 1
    sizes = [len(part.records) // len(batch) for part in wire.ask(request, 12).responses[0].partitions]
    assert sizes == [1, 0, 0]


def test_a_whole_topic_is_read_in_order_in_pieces(wire, make):
    wire.create("t", segment_bytes="4096", index_interval_bytes="200")
    for number in range(200):
        wire.produce("t", make.records(b"%d" % number, compression="gzip" if number % 3 else "none"))
    found, offset = [], 0
    while offset < 200:
        answer = wire.fetch("t", offset, partition_max_bytes=700)
        found += values(answer)
        offset = next_offset(answer.records)
    assert found == [b"%d" % number for number in range(200)]


def test_a_reader_of_committed_records_gets_an_empty_list_of_aborted_transactions(wire, make):
    wire.create("t")
    wire.produce("t", make.records(b"a"))
    assert wire.fetch("t", 0, isolation_level=1).aborted_transactions == []
    assert wire.fetch("t", 0, isolation_level=0).aborted_transactions is None


def test_a_fetch_of_nothing_is_answered_at_once(wire):
    for version in (4, 12, 16):
        answer = wire.ask(messages.FetchRequest(max_wait_ms=FAR, min_bytes=1), version)
        assert (answer.error_code, answer.responses) == (0, [])


def test_no_fetch_waits_for_more_than_its_answer_may_hold(wire, make):
    wire.create("t")
    wire.produce("t", make.records(b"v" * 500))
    assert values(wire.fetch("t", 0, max_wait_ms=FAR, min_bytes=10_000, max_bytes=100)) == [b"v" * 500]
    assert values(wire.fetch("t", 1, max_wait_ms=FAR, min_bytes=0)) == []


def test_another_leader_epoch_than_the_present_one_is_refused(wire, make):
    wire.create("t")
    wire.produce("t", make.records(b"a"))
    assert wire.fetch("t", 0, current_leader_epoch=0).error_code == 0
    assert wire.fetch("t", 0, current_leader_epoch=1).error_code == Error.UNKNOWN_LEADER_EPOCH
    assert wire.fetch("t", 0, current_leader_epoch=-2).error_code == 0  # whatever is below 0 says nothing
