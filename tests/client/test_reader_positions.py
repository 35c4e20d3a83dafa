"""Where a reader starts, ends and stands: times, committed offsets, lag, another position, offsets that are gone."""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tagwire.broker import Broker
from tagwire.client import (
    EARLIEST,
    LATEST,
    Admin,
    AtTimestamp,
    Client,
    Committed,
    Lag,
    NewTopic,
    OffsetAndMetadata,
    Producer,
    Reader,
    TopicPartition,
)
from tagwire.errors import ConfigError, Error, KafkaError
from tagwire.rpc import api_key

from .fake_broker import FakeCluster
from .logs import fill, offsets


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as one:
        yield one


# Times: the records' timestamps are their offsets -------------------------------------------------------------------


def test_reading_starts_and_ends_at_a_time(cluster: FakeCluster) -> None:
    for log in cluster.topic("t", 2):
        fill(log, 3)
    starts: dict[tuple[str, int], Any] = {("t", 0): AtTimestamp(7), ("t", 1): 28}
    with Reader(cluster.bootstrap, starts, end_offsets={("t", 0): AtTimestamp(13), ("t", 1): LATEST}) as reader:
        assert offsets(reader) == {("t", 0): list(range(7, 13)), ("t", 1): [28, 29]}


def test_a_time_after_the_last_record_is_the_end(cluster: FakeCluster) -> None:
    fill(cluster.topic("t")[0], 1)
    with Reader(cluster.bootstrap, {("t", 0): AtTimestamp(5000)}, stop_at_end=True) as reader:
        assert reader.position(("t", 0)) == 10
        assert list(reader) == []


def test_a_time_before_1970_is_the_first_record_of_all(cluster: FakeCluster) -> None:
    fill(cluster.topic("t")[0], 1)
    with Reader(cluster.bootstrap, {("t", 0): AtTimestamp(-2)}, stop_at_end=True) as reader:
        assert offsets(reader) == {("t", 0): list(range(10))}
    assert [message.topics[0].partitions[0].timestamp for message in cluster.requests("ListOffsets")] == [0, -1]


# Lag ----------------------------------------------------------------------------------------------------------------


def test_lag_is_what_lies_between_position_and_end(cluster: FakeCluster) -> None:
    logs = cluster.topic("t", 2)
    fill(logs[0], 3)
    with Reader(cluster.bootstrap, {("t", 0): 5, ("t", 1): 0}, batch_rows=10, max_wait_ms=1) as reader:
        assert reader.lag() == {("t", 0): Lag(end=30, position=5, lag=25), ("t", 1): Lag(end=0, position=0, lag=0)}
        next(reader)
        fill(logs[0], 1)
        assert reader.lag()["t", 0].position + reader.lag()["t", 0].lag == 30  # as the last answer told
        while next(reader).column("offset")[-1].as_py() < 39:
            pass
        assert reader.lag()[TopicPartition("t", 0)] == Lag(40, 40, 0)
    assert len(cluster.requests("ListOffsets")) == 1  # later on, answers to Fetch tell


# Another position -----------------------------------------------------------------------------------------------------


def test_a_reader_goes_on_from_another_position(cluster: FakeCluster) -> None:
    for log in cluster.topic("t", 2):
        fill(log, 5)
    with Reader(cluster.bootstrap, {("t", 0): 0, ("t", 1): 0}, stop_at_end=True, batch_rows=10) as reader:
        next(reader)
        for index, start in enumerate((42, EARLIEST)):
            reader.seek(("t", index), start)
            assert reader.position(("t", index)) == max(start, 0)
        assert offsets(reader) == {("t", 0): list(range(42, 50)), ("t", 1): list(range(50))}
        reader.seek(("t", 0), AtTimestamp(48))
        assert offsets(reader) == {("t", 0): [48, 49]}
        with pytest.raises(KeyError):
            reader.seek(("t", 2), 0)


def test_records_go_on_from_another_position_in_the_middle_of_a_batch(cluster: FakeCluster) -> None:
    fill(cluster.topic("t")[0], 5)
    with Reader(cluster.bootstrap, {("t", 0): 0}, stop_at_end=True) as reader:
        found = []
        for record in reader.records():
            found.append(record.offset)
            if record.offset == 13:
                reader.seek(("t", 0), 47)
        assert found == [*range(14), 47, 48, 49]
        assert reader.position(("t", 0)) == 50


def test_what_came_with_other_records_before_a_position_was_set_is_not_given(cluster: FakeCluster) -> None:
    for log in cluster.topic("t", 2):
        fill(log, 5)
    found: dict[int | None, list[int | None]] = {0: [], 1: []}
    with Reader(cluster.bootstrap, {("t", 0): 0, ("t", 1): 0}, stop_at_end=True) as reader:
        for record in reader.records():
            if record.partition == 0 and not found[0]:
                reader.seek(("t", 1), 47)
            found[record.partition].append(record.offset)
    assert found == {0: list(range(50)), 1: [47, 48, 49]}


# Offsets that are gone ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("reset", "expected"), [("earliest", {("t", 0): list(range(10, 30))}), ("latest", {})])
def test_an_offset_that_is_gone_may_mean_one_end_of_the_log(
    cluster: FakeCluster, reset: str, expected: dict[Any, list[int]], caplog: pytest.LogCaptureFixture
) -> None:
    log = cluster.topic("t")[0]
    fill(log, 3)
    log.start = 10
    with (
        caplog.at_level(logging.WARNING, "tagwire.client"),
        Reader(cluster.bootstrap, {("t", 0): 3}, offset_reset=reset, stop_at_end=True) as reader,
    ):
        assert offsets(reader) == expected
        assert reader.position(("t", 0)) == 30
    assert "t-0: no offset 3; the partition holds offsets 10 to 29; going on at" in caplog.text


def test_what_came_before_the_offsets_that_are_gone_is_not_lost(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    fill(log, 4)

    def meanwhile(message: Any) -> Any:
        log.start = 20
        return cluster.respond("Fetch", message, 0)

    cluster.script("Fetch", lambda message: cluster.respond("Fetch", message, 0), meanwhile)
    limit = len(log.batches[0][2])
    with Reader(
        cluster.bootstrap, {("t", 0): 3}, offset_reset="earliest", stop_at_end=True, max_partition_bytes=limit
    ) as reader:
        assert offsets(reader) == {("t", 0): [*range(3, 10), *range(20, 40)]}


def test_another_reset_is_refused() -> None:
    with pytest.raises(ConfigError, match="offset_reset=sometimes: allowed is none, earliest, latest"):
        Reader("127.0.0.1:1", {}, offset_reset="sometimes")


# What a group has committed, on the embedded broker ------------------------------------------------------------------


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap


@pytest.fixture
def topic(bootstrap: str, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"\W", "-", request.node.name)
    with Admin(bootstrap) as admin, Producer(bootstrap) as producer:
        admin.create_topics([NewTopic(name, num_partitions=2)])
        for number in range(20):
            producer.send(name, b"%d" % (number // 2), partition=number % 2)
    return name


def test_a_reader_goes_on_where_its_group_stands(bootstrap: str, topic: str) -> None:
    starts: dict[tuple[str, int], Any] = {(topic, index): Committed() for index in range(2)}
    with Reader(bootstrap, starts, group="landing", end_offsets={(topic, 0): 4, (topic, 1): 0}) as reader:
        assert reader.committed() == {}
        assert offsets(reader) == {(topic, 0): list(range(4))}
        reader.commit()
        assert reader.committed() == {
            (topic, 0): OffsetAndMetadata(4, leader_epoch=0),
            (topic, 1): OffsetAndMetadata(0),
        }
    with Reader(bootstrap, starts, group="landing", stop_at_end=True) as reader:
        assert offsets(reader) == {(topic, 0): list(range(4, 10)), (topic, 1): list(range(10))}
        reader.commit({(topic, 1): OffsetAndMetadata(7, metadata="by hand")})
    with Admin(bootstrap) as admin:
        assert admin.group_offsets("landing", starts) == {
            (topic, 0): OffsetAndMetadata(4, leader_epoch=0),
            (topic, 1): OffsetAndMetadata(7, metadata="by hand"),
        }


@pytest.mark.parametrize(("fallback", "start"), [(EARLIEST, 0), (LATEST, 10), (3, 3), (AtTimestamp(0), 0)])
def test_a_group_that_has_committed_nothing_starts_at_the_fallback(
    bootstrap: str, topic: str, fallback: int | AtTimestamp, start: int
) -> None:
    with Reader(bootstrap, {(topic, 0): Committed(fallback)}, group="new") as reader:
        assert reader.position((topic, 0)) == start


def test_without_a_fallback_a_group_that_has_committed_nothing_is_an_error(bootstrap: str, topic: str) -> None:
    with pytest.raises(ConfigError, match=f"{topic}-0: group 'new' has committed no offset, and no fallback is given"):
        Reader(bootstrap, {(topic, 0): Committed(fallback=None)}, group="new")


def test_offsets_of_a_group_need_the_group(cluster: FakeCluster) -> None:
    cluster.topic("t")
    with pytest.raises(ConfigError, match="t-0 starts where a group stands: give the group"):
        Reader(cluster.bootstrap, {("t", 0): Committed()})
    with Reader(cluster.bootstrap, {("t", 0): 0}) as reader:
        for ask in (reader.commit, reader.committed):
            with pytest.raises(ConfigError, match="the reader has no group"):
                ask()


def test_a_committed_offset_that_was_deleted_meanwhile_is_an_error_or_a_reset(bootstrap: str, topic: str) -> None:
    with Client(bootstrap) as client:
        with Reader(client, {(topic, 0): 2}, group="behind") as reader:
            reader.commit()
        if api_key("DeleteRecords") not in client.versions():
            pytest.skip("the broker deletes no records")
        Admin(client).delete_records({(topic, 0): 6})
        with pytest.raises(KafkaError, match="no offset 2; the partition holds offsets 6 to 9") as caught:
            next(Reader(client, {(topic, 0): Committed()}, group="behind"))
        assert caught.value.error is Error.OFFSET_OUT_OF_RANGE
        with Reader(
            client, {(topic, 0): Committed()}, group="behind", offset_reset="earliest", stop_at_end=True
        ) as reader:
            assert offsets(reader) == {(topic, 0): list(range(6, 10))}


# Reading that breaks off ----------------------------------------------------------------------------------------------


def test_records_asked_for_again_go_on_after_the_last_one_given(cluster: FakeCluster) -> None:
    for log in cluster.topic("t", 2):
        fill(log, 3)
    found: dict[int | None, list[int]] = {0: [], 1: []}
    with Reader(cluster.bootstrap, {("t", index): 0 for index in range(2)}, stop_at_end=True) as reader:
        for count in (3, 0, 25, 1, 31):
            for record in itertools.islice(reader.records(), count):
                found[record.partition].append(record.offset)
        assert list(reader.records()) == []
    assert found == {index: list(range(30)) for index in range(2)}


@pytest.mark.parametrize(
    "place", ["tagwire.client.blocking_driver.BlockingDriver.poll", "tagwire.records.arrow.arrow_chunks"]
)
def test_an_interrupted_reader_goes_on_without_loss(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    log = cluster.topic("t")[0]
    fill(log, 6)

    def interrupted(*_: object, **__: object) -> object:
        raise KeyboardInterrupt

    found: list[int] = []
    limit = len(log.batches[0][2])
    with Reader(cluster.bootstrap, {("t", 0): 0}, stop_at_end=True, max_partition_bytes=limit, batch_rows=10) as reader:
        for _ in range(4):
            found += next(reader).column("offset").to_pylist()
            with monkeypatch.context() as patched:
                patched.setattr(place, interrupted)
                with pytest.raises(KeyboardInterrupt):
                    next(reader)
        found += [offset for batch in reader for offset in batch.column("offset").to_pylist()]
    assert found == list(range(60))
