"""Partitions come and go while they are fetched, and none of them waits for another: by a clock that is made up."""

from __future__ import annotations

from typing import Any

import pytest

from tagwire import records
from tagwire.client.config import FetchSettings, offset_reset_of
from tagwire.client.fetch_positions import UNKNOWN, FetchPosition
from tagwire.client.offset_reset import OffsetReset, offset_reset
from tagwire.client.reader_core import ReaderCore
from tagwire.client.reader_settings import DecodingSettings
from tagwire.errors import ConfigError, Error, KafkaError, NoOffsetError
from tagwire.partitions import LATEST, TopicPartition
from tagwire.records import Record

from .fake_broker import Close, Silence
from .fetching_in_memory import T0, T1, TIMEOUT, Brokers, Fetching
from .logs import batch_of, fill


@pytest.fixture
def cluster() -> Brokers:
    """Topic `t` of two partitions, each led by a broker of its own, with 30 records each."""
    cluster = Brokers(2)
    for log in cluster.topic("t", 2):
        fill(log, 3)
    return cluster


def both() -> list[FetchPosition]:
    return [FetchPosition(T0, 0), FetchPosition(T1, 0)]


# One leader and another ----------------------------------------------------------------------------------------------


def test_a_leader_that_swallows_packets_holds_up_no_partition_of_another(cluster: Brokers) -> None:
    fetching = Fetching(cluster, both())
    fetching.driver.unreachable.add("kafka-1")
    began = fetching.driver.now()
    assert fetching.offsets(30) == list(range(30))
    fill(cluster.topics["t"][0], 1)
    assert fetching.offsets(10) == list(range(30, 40))
    assert fetching.driver.now() - began < 1


def test_a_reader_gives_what_one_leader_has_while_another_swallows_packets(cluster: Brokers) -> None:
    fetching = Fetching(cluster)  # of its network alone
    core = ReaderCore(fetching.network, FetchSettings(max_wait_ms=100), DecodingSettings(batch_rows=1))
    fetching.driver.run(core.open({("t", 0): 0, ("t", 1): 0}, None, False))
    fetching.driver.unreachable.add("kafka-1")
    began = fetching.driver.now()
    found: list[int] = []
    while len(found) < 30:
        batch = core.batch()
        if batch is None:
            fetching.driver.run(core.fetch())
        else:
            found += batch.column("offset").to_pylist()
    assert found == list(range(30))
    assert fetching.driver.now() - began < 1


def test_a_leader_that_keeps_silent_is_found_again_when_the_timeout_is_over(cluster: Brokers) -> None:
    fetching = Fetching(cluster, [FetchPosition(T0, 0)])
    cluster.script("Fetch", Silence())
    began = fetching.driver.now()
    assert fetching.offsets(30, seconds=TIMEOUT + 5) == list(range(30))
    assert TIMEOUT < fetching.driver.now() - began < TIMEOUT + 2


def test_a_topic_that_is_missing_holds_up_no_other(cluster: Brokers) -> None:
    fetching = Fetching(cluster, [FetchPosition(TopicPartition("none", 0), 0), *both()])
    began = fetching.driver.now()
    assert sorted(fetching.offsets(60) + fetching.offsets(0)) == list(range(30))
    assert fetching.driver.now() - began < 1
    fill(cluster.topic("none")[0], 1)
    assert [record.topic for record in fetching.records(10)] == ["none"] * 10


# Partitions come and go ----------------------------------------------------------------------------------------------


def test_a_partition_that_is_added_is_fetched_beside_the_others(cluster: Brokers) -> None:
    fetching = Fetching(cluster, [FetchPosition(T0, 0)])
    assert fetching.offsets(30) == list(range(30))
    fetching.fetcher.add([FetchPosition(T1, 5)])
    assert fetching.offsets(25, partition=1) == list(range(5, 30))


def test_of_a_partition_that_is_removed_nothing_more_is_given(cluster: Brokers) -> None:
    fetching = Fetching(cluster, both())
    fetching.run(lambda: len(fetching.cluster.requests("Fetch")) == 2)  # both are on their way
    fetching.fetcher.remove([T1, TopicPartition("t", 7)])
    assert {record.partition for record in fetching.records(60, seconds=1)} == {0}
    fetching.fetcher.add([FetchPosition(T1, 20)])
    assert fetching.offsets(10, partition=1) == list(range(20, 30))


def test_what_waits_of_a_removed_partition_is_dropped_though_it_is_added_again(cluster: Brokers) -> None:
    fetching = Fetching(cluster, [FetchPosition(T0, 0)])
    fetching.run(lambda: fetching.buffer.has_any)
    fetching.fetcher.remove([T0])
    fetching.fetcher.add([FetchPosition(T0, 25)])
    assert fetching.offsets(5) == list(range(25, 30))


def test_a_session_is_told_of_partitions_that_come_and_go() -> None:
    cluster = Brokers(1)
    cluster.sessions.keep = True
    for log in cluster.topic("t", 3):
        fill(log, 1)
    fetching = Fetching(cluster, [FetchPosition(TopicPartition("t", index), 0) for index in range(2)])
    assert len(fetching.records(20)) == 20
    fetching.fetcher.add([FetchPosition(TopicPartition("t", 2), 0)])
    fetching.fetcher.remove([T0])
    assert fetching.offsets(10, partition=2) == list(range(10))
    told = cluster.requests("Fetch")
    assert [one for message in told for topic in message.forgotten_topics_data for one in topic.partitions] == [0]
    assert {message.session_id for message in told[1:]} == {101}


# Pauses and bounds ---------------------------------------------------------------------------------------------------


def test_a_paused_partition_is_left_out_of_fetches_and_what_waits_of_it_is_kept(cluster: Brokers) -> None:
    fetching = Fetching(cluster, both())
    fetching.run(lambda: all(fetching.position(one).offset == 30 for one in (T0, T1)))
    fetching.fetcher.pause([T0])
    assert fetching.offsets(60, partition=1, seconds=1) == list(range(30))
    before = len(cluster.sources(0))
    fill(cluster.topics["t"][0], 1)
    assert fetching.records(1, seconds=2) == []
    assert len(cluster.sources(0)) == before
    fetching.fetcher.resume([T0])
    assert fetching.offsets(40) == list(range(40))


def test_where_to_begin_in_a_paused_partition_is_asked_again_as_soon_as_in_another(cluster: Brokers) -> None:
    position = FetchPosition(T0)
    position.is_paused = True
    cluster.script("ListOffsets", Close())
    fetching = Fetching(cluster, [position], offset_reset="earliest")
    fetching.run(lambda: position.given.offset != UNKNOWN)
    assert position.given.offset == 0


def test_what_arrives_of_a_paused_partition_waits_for_its_turn(cluster: Brokers) -> None:
    fetching = Fetching(cluster, [FetchPosition(T0, 0)])
    fetching.run(lambda: cluster.requests("Fetch") != [])
    fetching.fetcher.pause([T0])
    assert fetching.records(1, seconds=1) == []
    assert fetching.position().offset == 30
    assert fetching.position().given.offset == 0
    fetching.fetcher.resume([T0])
    assert fetching.offsets(30) == list(range(30))


def test_partitions_that_wait_to_be_given_are_not_fetched_beyond_the_bound() -> None:
    cluster = Brokers(1)
    for log in cluster.topic("t", 2):
        fill(log, 50)
    size = len(cluster.topics["t"][0].batches[0][2])
    fetching = Fetching(cluster, both(), max_buffered=size * 6, max_partition_bytes=size, max_bytes=size * 2)
    fetching.run(seconds=5)
    held = sum(position.buffered_bytes for position in fetching.fetcher.positions.values())
    assert size * 6 <= held <= size * 8
    assert sorted(fetching.offsets(1000) + fetching.offsets(0)) == list(range(500))


def test_a_partition_without_anything_is_fetched_though_another_fills_the_bound(cluster: Brokers) -> None:
    fetching = Fetching(cluster, [FetchPosition(T0, 0)], max_buffered=1)
    fetching.run(lambda: fetching.buffer.has_any)
    fetching.fetcher.add([FetchPosition(T1, 0)])
    fetching.run(lambda: fetching.position(T1).offset == 30, seconds=1)
    assert len(fetching.records(60)) == 60


# Seeks and resets ----------------------------------------------------------------------------------------------------


def test_a_seek_drops_what_was_fetched_before_wherever_it_is(cluster: Brokers) -> None:
    fetching = Fetching(cluster, [FetchPosition(T0, 0)])
    assert fetching.offsets(3) == [0, 1, 2]  # the rest of the batch is made, the rest of the fetch is not
    fetching.fetcher.seek(T0, 20)
    assert fetching.position().given.offset == 20
    assert fetching.offsets(5) == [20, 21, 22, 23, 24]
    fetching.run(lambda: len(cluster.requests("Fetch")) == 3)
    fetching.fetcher.seek(T0, 7)
    assert fetching.offsets(23) == list(range(7, 30))


def test_an_offset_out_of_range_that_was_sought_away_from_is_no_error(cluster: Brokers) -> None:
    fetching = Fetching(cluster, [FetchPosition(T0, 99)])
    fetching.run(lambda: cluster.requests("Fetch") != [])
    fetching.fetcher.seek(T0, 25)
    assert fetching.offsets(5) == list(range(25, 30))
    fetching.fetcher.seek(T0, 99)
    fetching.run(lambda: len(cluster.requests("ListOffsets")) == 1)  # it is told of, and what is held is looked up
    fetching.fetcher.seek(T0, 28)
    assert fetching.offsets(2) == [28, 29]


def test_an_offset_out_of_range_is_told_again_until_it_is_sought_away_from(cluster: Brokers) -> None:
    fetching = Fetching(cluster, [FetchPosition(T0, 99)])
    for _ in range(2):
        error = fetching.error()
        assert isinstance(error, KafkaError)
        assert str(error) == "OFFSET_OUT_OF_RANGE (1): t-0: no offset 99; the partition holds offsets 0 to 29"
    fetching.fetcher.seek(T0, 29)
    assert fetching.offsets(1) == [29]


@pytest.mark.parametrize(
    ("reset", "expected"), [("earliest", 3), ("latest", 30), ("by_duration:PT9.7S", 16), ("by_duration:PT0S", 30)]
)
def test_positions_that_are_missing_or_out_of_range_go_on_as_auto_offset_reset_says(reset: str, expected: int) -> None:
    cluster = Brokers(1)
    fetching = Fetching(cluster, offset_reset=reset)
    log, now = cluster.topic("t", 2)[0], int(fetching.driver.wall_clock() * 1000)
    log.end = log.start = 3
    for offset in range(3, 30):
        log.put(_at(offset, now - 10_000 + (offset - 15) * 600))
    log.first_from = lambda timestamp: next(  # type: ignore[method-assign]
        (offset for offset in range(3, 30) if now - 10_000 + (offset - 15) * 600 >= timestamp), -1
    )
    fetching.fetcher.add([FetchPosition(T0)])
    assert fetching.position().given.offset == -1
    fetching.run(lambda: fetching.position().offset >= 0)
    assert fetching.position().offset == expected
    fetching.fetcher.seek(T0, 1 << 40)
    fetching.run(lambda: fetching.position().offset < 1 << 40)
    fetching.run(lambda: fetching.position().offset >= 0)
    fetching.collector.records(1)
    assert fetching.position().given.offset >= expected


def _at(offset: int, timestamp: int) -> bytes:
    return records.write([Record(b"k", b"%d" % offset, timestamp=timestamp)], base_offset=offset)


def test_a_position_that_is_looked_up_holds_up_no_other(cluster: Brokers) -> None:
    fetching = Fetching(cluster, [FetchPosition(T0), FetchPosition(T1, 0)], offset_reset="latest")
    cluster.script("ListOffsets", Silence())
    assert fetching.offsets(30, partition=1, seconds=1) == list(range(30))
    assert fetching.position().given.offset == -1
    fetching.run(lambda: fetching.position().given.offset >= 0 or fetching.buffer.has_any, TIMEOUT + 2)
    assert fetching.collector.records(1) == []
    assert fetching.position().given.offset == 30


def test_a_reset_of_some_partitions_may_be_another_one(cluster: Brokers) -> None:
    fetching = Fetching(cluster, both())
    assert len(fetching.records(60)) == 60
    fetching.fetcher.reset([T0], offset_reset("earliest"))
    assert fetching.offsets(30) == list(range(30))
    fetching.fetcher.reset([T1], OffsetReset(LATEST))
    fill(cluster.topics["t"][0], 1)
    assert fetching.offsets(10) == list(range(30, 40))


def test_without_an_offset_and_without_a_reset_the_error_names_the_partition(cluster: Brokers) -> None:
    error = Fetching(cluster, [FetchPosition(T0)]).error()
    assert isinstance(error, NoOffsetError)
    assert str(error) == "t-0: no offset to start from, and auto.offset.reset is none"


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("PT0.5S", 500), ("P1D", 86_400_000), ("P1DT1H1M1S", 90_061_000), ("pt15m", 900_000)],
)
def test_a_reset_by_duration_is_read_as_java_reads_durations(text: str, milliseconds: int) -> None:
    assert offset_reset(f"by_duration:{text}") == OffsetReset(None, milliseconds)


@pytest.mark.parametrize("text", ["by_duration:", "by_duration:P", "by_duration:PT", "by_duration:-PT1S", "last", ""])
def test_a_reset_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="allowed is none, earliest, latest, by_duration"):
        offset_reset_of(text)


# Errors --------------------------------------------------------------------------------------------------------------


def test_an_error_of_one_partition_keeps_no_other_from_being_given(cluster: Brokers) -> None:
    def refused(message: Any) -> Any:
        response = cluster.respond("Fetch", message, cluster.seen[-1][0])
        for topic in response.responses:
            for entry in topic.partitions:
                if entry.partition_index == 0:
                    entry.error_code, entry.records = Error.TOPIC_AUTHORIZATION_FAILED, b""
        return response

    cluster.script("Fetch", *[refused] * 100)
    fetching = Fetching(cluster, both())
    assert fetching.offsets(30, partition=1) == list(range(30))
    fetching.records(1, seconds=3.5)
    assert [str(error) for error in fetching.errors] == [
        "TOPIC_AUTHORIZATION_FAILED (29): fetch of t-0 at offset 0"
    ] * 4  # once a second
    cluster._scripts["Fetch"].clear()
    assert fetching.offsets(30) == list(range(30))  # it is fetched again as soon as that is allowed


def test_a_broken_batch_is_told_again_and_nothing_after_it_is_given(cluster: Brokers) -> None:
    log = cluster.topics["t"][0]
    broken = bytearray(batch_of(30, 10))
    broken[-1] ^= 1
    log.put(bytes(broken))
    fill(log, 1)
    fetching = Fetching(cluster, both())
    assert len(fetching.records(60)) == 60
    for _ in range(3):
        assert str(fetching.error()).startswith("t-0@30: batch at offset 30")
        assert fetching.position().given.offset == 30
    fill(cluster.topics["t"][1], 1)
    fetching.run(lambda: fetching.buffer.has_any)
    assert fetching.offsets(10, partition=1) == list(range(30, 40))
    fetching.fetcher.seek(T0, 40)
    assert fetching.offsets(10) == list(range(40, 50))
