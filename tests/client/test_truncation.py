"""What was read and is cut off the log is noticed, whoever leads it now (KIP-320, KIP-595), and what brokers tell of it
that cannot be is an error."""

from __future__ import annotations

import pickle
from typing import Any
from uuid import UUID

import pytest

from tagwire import messages
from tagwire.client.fetch_positions import FetchPosition
from tagwire.errors import Error, LogTruncationError, RemoteProtocolError

from .fake_broker import SERVED, FakePartition, Silence
from .fetching_in_memory import T0, T1, Brokers, Fetching
from .logs import batch_of, fill


def led(epoch: int, **settings: Any) -> tuple[Brokers, FakePartition, Fetching]:
    """Partition 0 of two, which a broker leads since `epoch`, with 30 records that were appended in that epoch, all of
    them read."""
    cluster = Brokers(2)
    logs = cluster.topic("t", 2)
    logs[0].epoch = epoch
    fill(logs[0], 3, partition_leader_epoch=epoch)
    fill(logs[1], 1)
    fetching = Fetching(cluster, [FetchPosition(T0, 0)], **settings)
    assert fetching.offsets(30) == list(range(30))
    return cluster, logs[0], fetching


def asked(cluster: Brokers) -> list[tuple[int, int, int]]:
    """Of each OffsetForLeaderEpoch: partition, current leader epoch, leader epoch."""
    return [
        (one.partition, one.current_leader_epoch, one.leader_epoch)
        for message in cluster.requests("OffsetForLeaderEpoch")
        for topic in message.topics
        for one in topic.partitions
    ]


def moved(cluster: Brokers, log: FakePartition, epoch: int) -> None:
    log.leader, log.epoch = 1 - log.leader, epoch


def test_a_position_knows_the_leader_epoch_of_the_record_before_it() -> None:
    cluster = Brokers(1)
    log = cluster.topic("t")[0]
    log.epoch = 5
    for epoch in (1, 1, 4, 5):
        fill(log, 1, partition_leader_epoch=epoch)
    fetching = Fetching(cluster, [FetchPosition(T0, 0)])
    found = [(fetching.offsets(5)[-1], fetching.position().given.leader_epoch) for _ in range(8)]
    assert found == [(4, 1), (9, 1), (14, 1), (19, 1), (24, 4), (29, 4), (34, 5), (39, 5)]
    fetching.run(seconds=0.2)
    assert [
        (one.current_leader_epoch, one.last_fetched_epoch)
        for message in cluster.requests("Fetch")
        for topic in message.topics
        for one in topic.partitions
    ][:2] == [(5, -1), (5, 5)]


def test_a_new_leader_is_asked_before_it_is_fetched_from() -> None:
    cluster, log, fetching = led(3)
    moved(cluster, log, 4)
    fill(log, 1, partition_leader_epoch=4)
    assert fetching.offsets(10) == list(range(30, 40))
    assert asked(cluster) == [(0, 4, 3)]
    names = [name for node, name, _, _ in cluster.seen if node == 1 and name in ("Fetch", "OffsetForLeaderEpoch")]
    assert names[0] == "OffsetForLeaderEpoch"


def test_a_committed_position_with_its_epoch_is_validated_before_it_is_fetched() -> None:
    cluster, _, fetching = led(3)
    fetching.fetcher.seek(T0, 10, 2)
    assert fetching.offsets(20) == list(range(10, 30))
    assert asked(cluster) == [(0, 3, 2)]
    fetching.fetcher.seek(T0, 10)  # nobody knows after which record
    assert fetching.offsets(20) == list(range(10, 30))
    assert len(asked(cluster)) == 1


def test_truncation_is_an_error_that_tells_where_the_logs_diverge_until_it_is_sought_away_from() -> None:
    cluster, log, fetching = led(3)
    cluster.epoch_ends[0] = (3, 17)
    moved(cluster, log, 4)
    for _ in range(2):
        error = fetching.error()
        assert isinstance(error, LogTruncationError)
        assert (error.partition, error.offset, error.diverging_offset) == (T0, 30, 17)
        assert "t-0: what was read up to offset 30 was cut off the log, which from offset 17 on" in str(error)
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
    fetching.fetcher.seek(T0, 17)
    assert fetching.offsets(13) == list(range(17, 30))


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_with_a_reset_truncation_goes_on_where_the_logs_diverge_with_a_warning(
    reset: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster, log, fetching = led(3, offset_reset=reset)
    cluster.epoch_ends[0] = (3, 17)
    moved(cluster, log, 4)
    assert fetching.offsets(13) == list(range(17, 30))
    assert "cut off the log" in caplog.text
    assert "going on at 17" in caplog.text
    assert fetching.position().given == (30, 3)


@pytest.mark.parametrize(("reset", "expected"), [("earliest", 0), ("latest", 30)])
def test_where_no_leader_knows_the_epoch_truncation_goes_on_as_the_reset_says(reset: str, expected: int) -> None:
    cluster, log, fetching = led(3, offset_reset=reset)
    cluster.epoch_ends[0] = (-1, -1)
    moved(cluster, log, 4)
    fetching.run(lambda: fetching.buffer.has_any)
    fill(log, 1, partition_leader_epoch=4)
    assert fetching.offsets(40 - expected) == list(range(expected, 40))


def test_where_no_leader_knows_the_epoch_and_without_a_reset_truncation_is_an_error() -> None:
    cluster, log, fetching = led(3)
    cluster.epoch_ends[0] = (-1, -1)
    moved(cluster, log, 4)
    error = fetching.error()
    assert isinstance(error, LogTruncationError)
    assert error.diverging_offset is None


@pytest.mark.parametrize("epoch", [2, 4])
def test_a_leader_epoch_that_broker_and_client_see_differently_is_looked_up_anew(epoch: int) -> None:
    _, log, fetching = led(3)
    log.epoch = epoch  # the broker's, without a word of it: FENCED_LEADER_EPOCH, or UNKNOWN_LEADER_EPOCH
    fill(log, 1, partition_leader_epoch=3)
    fetching.run(seconds=1)
    log.epoch = max(epoch, 3)
    assert fetching.offsets(10) == list(range(30, 40))


def test_a_broker_that_cannot_tell_of_epochs_is_fetched_from_all_the_same() -> None:
    cluster, log, fetching = led(3)
    cluster.served = dict(SERVED)
    moved(cluster, log, 4)
    fill(log, 1, partition_leader_epoch=4)
    assert fetching.offsets(10) == list(range(30, 40))
    assert asked(cluster) == []


def test_a_validation_that_gets_no_response_holds_up_no_other_partition() -> None:
    cluster, log, fetching = led(3)
    cluster.script("OffsetForLeaderEpoch", Silence())
    fetching.fetcher.add([FetchPosition(T1, 0)])
    moved(cluster, log, 4)
    fetching.network.forget({"t"})
    assert fetching.offsets(10, partition=1, seconds=2) == list(range(10))
    fill(log, 1, partition_leader_epoch=4)
    assert fetching.offsets(10, seconds=60) == list(range(30, 40))


# What a Fetch response tells -----------------------------------------------------------------------------------------


def test_where_a_fetch_response_tells_that_the_logs_diverge_that_is_truncation() -> None:
    cluster, _, fetching = led(3)
    cluster.diverging[0] = (2, 12)
    error = fetching.error()
    assert isinstance(error, LogTruncationError)
    assert (error.offset, error.diverging_offset) == (30, 12)


def test_a_log_that_diverges_by_its_epoch_alone_is_read_on_with_the_epoch_told() -> None:
    cluster, log, fetching = led(3)
    cluster.diverging[0] = (2, 40)
    fill(log, 1, partition_leader_epoch=3)
    assert fetching.offsets(10) == list(range(30, 40))
    assert not fetching.errors


@pytest.mark.parametrize(
    "told", [(4, 12), (3, 30), (3, 99), (-1, 12), (2, -5)], ids=["up", "at it", "beyond it", "no epoch", "negative"]
)
def test_logs_that_cannot_diverge_as_told_are_an_error_and_cost_nothing(told: tuple[int, int]) -> None:
    cluster, log, fetching = led(3, offset_reset="earliest")
    cluster.diverging[0] = told
    error = fetching.error()
    assert isinstance(error, RemoteProtocolError)
    assert "told that the log of t-0 diverges at offset" in str(error)
    fill(log, 1, partition_leader_epoch=3)
    assert fetching.offsets(10) == list(range(30, 40))


def test_logs_that_diverge_at_every_response_are_read_no_faster_than_responses_come() -> None:
    cluster, _, fetching = led(3)
    for epoch in (2, 1, 0):
        cluster.diverging[0] = (epoch, 40)
        fetching.run(lambda: 0 not in cluster.diverging)
    cluster.diverging[0] = (0, 40)
    assert isinstance(fetching.error(), RemoteProtocolError)


# What OffsetForLeaderEpoch tells -------------------------------------------------------------------------------------


@pytest.mark.parametrize("told", [(4, 30), (3, -7), (-3, 12)])
def test_an_end_of_an_epoch_that_cannot_be_is_an_error(told: tuple[int, int]) -> None:
    cluster, log, fetching = led(3, offset_reset="earliest")
    cluster.epoch_ends[0] = told
    moved(cluster, log, 4)
    error = fetching.error()
    assert isinstance(error, RemoteProtocolError)
    assert "leader epoch 3 of t-0 ends as epoch" in str(error)
    del cluster.epoch_ends[0]
    fill(log, 1, partition_leader_epoch=4)
    assert fetching.offsets(10) == list(range(30, 40))


def test_ends_of_epochs_of_other_partitions_are_an_error() -> None:
    cluster, log, fetching = led(3)
    kind = messages.OffsetForLeaderEpochResponse
    other = kind.OffsetForLeaderTopicResult(
        topic="t", partitions=[kind.EpochEndOffset(partition=7, leader_epoch=3, end_offset=30)]
    )
    cluster.script("OffsetForLeaderEpoch", lambda _: kind(topics=[other]))
    moved(cluster, log, 4)
    assert "told the end of an epoch of t-7 twice, or not requested" in str(fetching.error())


def test_a_response_without_the_partition_is_asked_for_again() -> None:
    cluster, log, fetching = led(3)
    cluster.script("OffsetForLeaderEpoch", lambda _: messages.OffsetForLeaderEpochResponse(topics=[]))
    moved(cluster, log, 4)
    fill(log, 1, partition_leader_epoch=4)
    assert fetching.offsets(10) == list(range(30, 40))
    assert not fetching.errors
    assert len(cluster.requests("OffsetForLeaderEpoch")) == 2


@pytest.mark.parametrize("error", [Error.FENCED_LEADER_EPOCH, Error.UNKNOWN_LEADER_EPOCH, Error.OFFSET_NOT_AVAILABLE])
def test_a_leader_that_cannot_tell_yet_is_asked_again_with_pauses(error: Error) -> None:
    cluster, log, fetching = led(3)
    cluster.epoch_ends[0] = error
    moved(cluster, log, 4)
    assert fetching.records(1, seconds=3) == []
    assert 2 < len(asked(cluster)) < 12
    del cluster.epoch_ends[0]
    fill(log, 1, partition_leader_epoch=4)
    assert fetching.offsets(10) == list(range(30, 40))


def test_batches_of_no_epoch_leave_none() -> None:
    cluster = Brokers(1)
    log = cluster.topic("t")[0]
    log.put(batch_of(0, 10))
    fetching = Fetching(cluster, [FetchPosition(T0, 0)])
    assert fetching.offsets(10) == list(range(10))
    assert fetching.position().given == (10, -1)


def test_a_position_of_a_later_epoch_than_that_of_the_metadata_waits_for_newer_metadata() -> None:
    cluster, log, fetching = led(4, offset_reset="earliest")
    cluster.epoch_ends[0] = (-1, -1)  # who led in epoch 4 knows of no later one
    fetching.fetcher.seek(T0, 20, 5)
    fetching.run(seconds=3.0)
    assert asked(cluster) == []
    fill(log, 1, partition_leader_epoch=5)
    cluster.epoch_ends.clear()
    moved(cluster, log, 5)
    assert fetching.offsets(20) == list(range(20, 40))
    assert asked(cluster) == [(0, 5, 5)]


def test_metadata_that_never_gets_newer_is_not_waited_for_for_ever() -> None:
    cluster, _, fetching = led(4, offset_reset="earliest")
    cluster.epoch_ends[0] = (-1, -1)
    fetching.fetcher.seek(T0, 20, 5)
    assert fetching.offsets(30, seconds=60.0) == list(range(30))
    assert asked(cluster) == [(0, 4, 5)]


def test_a_position_in_a_topic_that_was_made_anew_waits_for_no_epoch_of_the_one_before() -> None:
    cluster, log, fetching = led(4, offset_reset="earliest")
    cluster.epoch_ends[0] = (-1, -1)
    cluster.ids["t"] = UUID(int=77)
    moved(cluster, log, 0)
    before = fetching.driver.now()
    assert fetching.offsets(30) == list(range(30))
    assert asked(cluster) == [(0, 0, 4)]
    assert fetching.driver.now() - before < 5.0


@pytest.mark.parametrize("told_by", ["Fetch", "OffsetForLeaderEpoch"])
@pytest.mark.parametrize(("reset", "expected"), [("earliest", 0), ("latest", 30)])
def test_where_a_topic_that_was_made_anew_diverges_from_the_one_before_is_no_place_to_go_on(
    told_by: str, reset: str, expected: int
) -> None:
    cluster, log, fetching = led(3, offset_reset=reset)
    cluster.ids["t"] = UUID(int=77)
    if told_by == "Fetch":
        fetching.network.forget({"t"})
        fetching.run(lambda: getattr(fetching.network.known_topic("t"), "topic_id", None) == UUID(int=77))
        cluster.diverging[0] = (3, 17)
    else:
        cluster.epoch_ends[0] = (3, 17)
        moved(cluster, log, 4)
    fetching.run(lambda: fetching.buffer.has_any)
    fill(log, 1, partition_leader_epoch=4)
    assert fetching.offsets(40 - expected) == list(range(expected, 40))
