"""What was fetched is given out once, in order, and each position tells how far: whatever is called in between."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tagwire import records
from tagwire.client.fetch_collector import FetchCollector
from tagwire.client.fetch_positions import CompletedFetch, FetchBuffer, FetchFailure, FetchPosition
from tagwire.client.reader_settings import DecodingSettings
from tagwire.client.record_decoder import decoder_of
from tagwire.errors import CorruptRecordError, DecodeError, Error, KafkaError
from tagwire.partitions import TopicPartition
from tagwire.records import HeaderSerdes, Record

from .fetching_in_memory import T0, T1, Brokers, Fetching
from .logs import batch_of, fill


class Waiting:
    """A buffer that a test fills as a Fetcher does."""

    def __init__(self, **decoding: Any) -> None:
        self.buffer = FetchBuffer()
        self.collector = FetchCollector(self.buffer, DecodingSettings(**decoding))

    def put(self, position: FetchPosition, *batches: bytes, epoch: int = -1) -> None:
        data = b"".join(batches)
        start = position.offset
        headers = list(records.batch_headers(data))
        position.offset, position.leader_epoch = headers[-1].next_offset, epoch
        position.readable_end = position.offset
        self.buffer.put(CompletedFetch(position, start, memoryview(data), sum(one.count for one in headers)))

    def offsets(self, most: int = 1000) -> list[int]:
        return [record.offset for record in self.collector.records(most)]


def test_lists_have_as_many_records_as_are_there_and_no_more_than_are_wanted() -> None:
    waiting, position = Waiting(), FetchPosition(T0, 3)
    waiting.put(position, batch_of(0, 10), batch_of(10, 10))
    assert waiting.offsets(4) == [3, 4, 5, 6]
    assert position.given.offset == 7
    assert waiting.offsets(10) == list(range(7, 17))
    assert waiting.offsets(10) == [17, 18, 19]
    assert waiting.offsets(10) == []


def test_a_position_goes_beyond_offsets_that_hold_nothing() -> None:
    waiting, position = Waiting(), FetchPosition(T0, 0)
    gap = records.write([Record(None, b"0"), Record(None, b"1")], base_offset=0)
    header = next(records.batch_headers(gap))
    assert header.next_offset == 2
    waiting.put(position, gap)
    position.offset = 40  # a fetch may end beyond its last record
    waiting.buffer.put(CompletedFetch(position, 2, memoryview(b""), 0))
    assert waiting.offsets() == [0, 1]
    assert waiting.offsets() == []
    assert position.given.offset == 40


def test_the_epoch_of_a_position_is_of_the_last_record_given_and_not_of_the_next() -> None:
    waiting, position = Waiting(), FetchPosition(T0, 0, leader_epoch=2)
    data = batch_of(0, 4, partition_leader_epoch=5)
    position.offset = 4
    waiting.buffer.put(CompletedFetch(position, 0, memoryview(data), 4, (), [(5, 4)]))
    assert waiting.collector.records(0) == []
    assert position.given == (0, 2)
    assert waiting.offsets(1) == [0]
    assert position.given == (1, 5)


def test_records_read_one_by_one_count_as_given_when_the_next_one_is_wanted() -> None:
    waiting, position = Waiting(), FetchPosition(T0, 0)
    waiting.put(position, batch_of(0, 10))
    found = waiting.collector.one_by_one()
    assert [next(found).offset, next(found).offset] == [0, 1]
    waiting.collector.note_given()
    assert position.given.offset == 2
    assert waiting.offsets(3) == [2, 3, 4]  # another way to go on
    assert next(found).offset == 5
    assert [record.offset for record in waiting.collector.one_by_one()] == [6, 7, 8, 9]
    assert list(found) == []


def test_a_seek_while_records_are_read_one_by_one_ends_those_of_its_partition() -> None:
    waiting, first, second = Waiting(), FetchPosition(T0, 0), FetchPosition(T1, 0)
    waiting.put(first, batch_of(0, 10))
    waiting.put(second, batch_of(0, 2))
    found = []
    for record in waiting.collector.one_by_one():
        found.append((record.partition, record.offset))
        if record.offset == 3:
            first.seek(50)
    assert found == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)]
    assert first.given.offset == 50


def test_a_paused_partition_gives_way_in_the_middle_and_goes_on_there() -> None:
    waiting, first, second = Waiting(), FetchPosition(T0, 0), FetchPosition(T1, 0)
    waiting.put(first, batch_of(0, 10))
    waiting.put(second, batch_of(0, 3))
    waiting.put(first, batch_of(10, 10))
    assert waiting.offsets(4) == [0, 1, 2, 3]
    first.is_paused = True
    assert waiting.offsets() == [0, 1, 2]
    assert not waiting.collector.has_begun
    assert not waiting.buffer.has_any
    first.is_paused = False
    assert waiting.offsets() == list(range(4, 20))


def test_small_batches_of_a_paused_partition_are_kept_back() -> None:
    waiting, first, second = Waiting(batch_rows=100), FetchPosition(T0, 0), FetchPosition(T1, 0)
    waiting.put(first, batch_of(0, 5))
    waiting.put(second, batch_of(0, 5))
    assert waiting.collector.batch(flush=False) is None
    assert waiting.collector.is_read_as_batches
    first.is_paused = True
    batch = waiting.collector.batch(flush=True)
    assert set(batch.column("partition").to_pylist()) == {1}
    assert (first.given.offset, second.given.offset) == (0, 5)
    first.is_paused = False
    assert waiting.collector.batch(flush=True).column("offset").to_pylist() == [0, 1, 2, 3, 4]


def test_batches_of_a_partition_that_was_sought_or_left_are_dropped_decoded_or_not() -> None:
    waiting, first, second = Waiting(batch_rows=100), FetchPosition(T0, 0), FetchPosition(T1, 0)
    waiting.put(first, batch_of(0, 5))
    waiting.put(second, batch_of(0, 5))
    assert waiting.collector.batch(flush=False) is None
    first.seek(3)
    second.leave()
    assert waiting.collector.batch(flush=True) is None
    assert (first.given.offset, second.given.offset) == (3, 0)


def test_an_error_is_raised_after_what_was_fetched_before_and_once() -> None:
    for as_batches in (False, True):
        waiting, position = Waiting(), FetchPosition(T0, 0)
        waiting.put(position, batch_of(0, 5))
        waiting.buffer.put(FetchFailure(position, KafkaError(Error.TOPIC_AUTHORIZATION_FAILED)))
        give: Any = partial(waiting.collector.batch, flush=True) if as_batches else waiting.offsets
        assert len(give()) == 5
        with pytest.raises(KafkaError):
            give()
        assert not give()


def test_an_error_about_a_partition_that_was_sought_meanwhile_is_not_raised() -> None:
    waiting, position = Waiting(), FetchPosition(T0, 0)
    waiting.buffer.put(FetchFailure(position, KafkaError(Error.OFFSET_OUT_OF_RANGE)))
    position.seek(4)
    assert waiting.offsets() == []


def test_a_broken_batch_of_one_partition_is_raised_again_as_batches_too() -> None:
    waiting, first, second = Waiting(), FetchPosition(T0, 0), FetchPosition(T1, 0)
    broken = bytearray(batch_of(5, 5))
    broken[-1] ^= 1
    waiting.put(first, batch_of(0, 5), bytes(broken))
    assert waiting.collector.batch(flush=True).num_rows == 5
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match="t-0@5"):
            waiting.collector.batch(flush=True)
    waiting.put(first, batch_of(10, 5))  # nothing is skipped
    waiting.put(second, batch_of(0, 5))
    assert set(waiting.collector.batch(flush=True).column("partition").to_pylist()) == {1}
    first.seek(10)
    waiting.put(first, batch_of(10, 5))
    assert waiting.collector.batch(flush=True).column("offset").to_pylist() == list(range(10, 15))


def test_interceptors_and_header_deserializers_see_every_record_of_a_list() -> None:
    waiting, position = Waiting(), FetchPosition(T0, 0)
    rows = [Record(None, b"v", [("n", b"%d" % number)]) for number in range(3)]
    waiting.put(position, records.write(rows))
    serdes = HeaderSerdes({"n": (bytes, int)})
    decoder = decoder_of([lambda record: record.replace(key=b"seen")], serdes)
    found = waiting.collector.records(2, decoder)
    assert [(record.key, record.get_header("n")) for record in found] == [(b"seen", 0), (b"seen", 1)]
    assert decoder_of([], None) is None


def test_a_record_whose_header_cannot_be_deserialized_is_raised_after_those_before_it_until_it_is_passed() -> None:
    waiting, position = Waiting(), FetchPosition(T0, 0)
    rows = [Record(None, b"v", [("n", text)]) for text in (b"0", b"1", b"x", b"3")]
    waiting.put(position, records.write(rows))
    decoder = decoder_of([], HeaderSerdes({"n": (bytes, int)}))
    assert len(waiting.collector.records(10, decoder)) == 2
    for _ in range(2):
        with pytest.raises(DecodeError):
            waiting.collector.records(10, decoder)
        assert position.given.offset == 2


# Everything at once --------------------------------------------------------------------------------------------------

CALLS = st.one_of(
    st.tuples(st.just("records"), st.integers(1, 25)),
    st.tuples(st.just("one by one"), st.integers(1, 12)),
    st.tuples(st.just("batches"), st.booleans()),
    st.tuples(st.just("wait"), st.sampled_from([0.0, 0.002, 0.02, 0.3])),
    st.tuples(st.sampled_from(["seek", "seek", "add"]), st.integers(0, 1), st.integers(0, 60)),
    st.tuples(st.sampled_from(["pause", "resume", "resume", "remove"]), st.integers(0, 1)),
    st.tuples(st.just("move"), st.integers(0, 1)),
    st.tuples(st.just("append"), st.integers(0, 1)),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(CALLS, max_size=30), st.integers(0, 5), st.sampled_from([1, 400, 1 << 40]))
def test_no_record_is_given_twice_and_none_skipped_whatever_is_called(
    calls: list[Any], seed: int, max_buffered: int
) -> None:
    cluster = Brokers(2)
    logs = cluster.topic("t", 2)
    for log in logs:
        log.epoch = 0
        fill(log, 6, partition_leader_epoch=0)
    fetching = Fetching(
        cluster,
        [FetchPosition(T0, 0), FetchPosition(T1, 0)],
        seed=seed,
        max_buffered=max_buffered,
        max_partition_bytes=450,
        decoding=DecodingSettings(batch_rows=16),
    )
    due = {0: 0, 1: 0}
    given_as = ""

    def took(partition: int, offset: int) -> None:
        assert not fetching.position(TopicPartition("t", partition)).is_paused
        assert offset == due[partition]
        due[partition] += 1

    def switch(way: str) -> None:
        """What was begun in one way is fetched again for the other."""
        nonlocal given_as
        if given_as not in ("", way):
            fetching.collector.clear()
            if fetching.fetcher.rewind():
                fetching.fetcher.abandon()
        given_as = way

    for call, *rest in [*calls, ("resume", 0), ("resume", 1), ("wait", 3.0)]:
        partition = TopicPartition("t", rest[0]) if call not in ("records", "one by one", "batches", "wait") else T0
        assigned = partition in fetching.fetcher.positions
        if call == "records":
            switch("records")
            for record in fetching.collector.records(rest[0]):
                took(record.partition, record.offset)
        elif call == "one by one":
            switch("records")
            for count, record in enumerate(fetching.collector.one_by_one()):
                took(record.partition, record.offset)
                if count == rest[0]:
                    fetching.collector.note_given()
                    break
        elif call == "batches":
            switch("batches")
            while (batch := fetching.collector.batch(flush=rest[0])) is not None:
                for index, offset in zip(batch.column("partition").to_pylist(), batch.column("offset").to_pylist()):
                    took(index, offset)
        elif call == "wait":
            fetching.run(seconds=rest[0])
        elif call == "add" and not assigned:
            fetching.fetcher.add([FetchPosition(partition, rest[1])])
            due[rest[0]] = rest[1]
        elif call == "seek" and assigned:
            fetching.fetcher.seek(partition, rest[1])
            due[rest[0]] = rest[1]
        elif call in ("pause", "resume", "remove") and assigned:
            getattr(fetching.fetcher, call)([partition])
        elif call == "move":
            logs[rest[0]].leader, logs[rest[0]].epoch = 1 - logs[rest[0]].leader, logs[rest[0]].epoch + 1
        elif call == "append":
            fill(logs[rest[0]], 1, partition_leader_epoch=logs[rest[0]].epoch)
        for one, position in fetching.fetcher.positions.items():
            assert position.given.offset == due[one.partition]
    switch("records")
    while found := fetching.records(1000, seconds=3):
        for record in found:
            took(record.partition, record.offset)
    for one, position in fetching.fetcher.positions.items():
        assert position.given.offset == max(due[one.partition], logs[one.partition].end)
    assert not fetching.errors


def test_two_threads_hand_over_every_record_once() -> None:
    waiting, positions = Waiting(), [FetchPosition(T0, 0), FetchPosition(T1, 0)]
    rounds, taken = 400, {0: 0, 1: 0}

    def fetch() -> None:
        for number in range(rounds):
            for position in positions:
                waiting.put(position, batch_of(position.offset, 3))
                position.is_paused = number % 7 == 3
        for position in positions:
            position.is_paused = False

    thread = threading.Thread(target=fetch)
    thread.start()
    while thread.is_alive() or waiting.buffer.has_any or waiting.collector.has_begun:
        for record in waiting.collector.records(5):
            assert record.offset == taken[record.partition]
            taken[record.partition] += 1
    thread.join()
    assert taken == {0: 3 * rounds, 1: 3 * rounds}
    assert all(position.buffered_bytes == 0 for position in positions)
