"""Fetch sessions (KIP-227): a broker is told changes only, and whatever it thinks of a session, no record is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tagwire import messages
from tagwire.client import Client, Reader
from tagwire.errors import Error, KafkaError, ProtocolError

from ..limits import wait_until
from .fake_broker import SERVED, Close, FakeCluster
from .logs import fill, offsets


@pytest.fixture(params=[12, 18], ids=["by name", "by topic id"])
def cluster(request: pytest.FixtureRequest) -> Iterator[FakeCluster]:
    with FakeCluster(served={**SERVED, 1: (4, request.param)}) as one:
        one.sessions.keep = True
        yield one


def reader_of(cluster: FakeCluster, partitions: int, **options: Any) -> Reader:
    """A reader of `t` that gets one batch in each answer and waits for nothing."""
    limit = max((len(data) for log in cluster.topics["t"] for _, _, data in log.batches), default=1)
    settings = {"max_partition_bytes": limit, "max_wait_ms": 0, "batch_rows": 1, **options}
    return Reader(cluster.bootstrap, {("t", index): 0 for index in range(partitions)}, **settings)


def asked(cluster: FakeCluster) -> list[tuple[int, int, list[int], list[int]]]:
    """Of each Fetch: session id, epoch, partitions told, partitions forgotten."""
    return [
        (
            message.session_id,
            message.session_epoch,
            [partition.partition for topic in message.topics for partition in topic.partitions],
            [partition for topic in message.forgotten_topics_data for partition in topic.partitions],
        )
        for message in cluster.requests("Fetch")
    ]


def test_a_session_begins_with_everything_and_goes_on_with_changes(cluster: FakeCluster) -> None:
    logs = cluster.topic("t", 3)
    fill(logs[0], 2)
    fill(logs[1], 1)
    with reader_of(cluster, 3) as reader:
        found = [next(reader).column("offset").to_pylist() for _ in range(3)]
        fill(logs[2], 1)
        found.append(next(reader).column("offset").to_pylist())
    assert sorted(found) == [list(range(10))] * 3 + [list(range(10, 20))]
    said = asked(cluster)
    assert said[0] == (0, 0, [0, 1, 2], [])
    assert said[1] == (101, 1, [0, 1], [])  # partition 2 had nothing: it is still wanted from 0
    assert all(session == 101 and not forgotten for session, _, _, forgotten in said[1:])
    assert [epoch for _, epoch, _, _ in said[1:-1]] == list(range(1, len(said) - 1))


def test_what_has_been_read_to_its_end_is_forgotten(cluster: FakeCluster) -> None:
    logs = cluster.topic("t", 3)
    for count, log in enumerate(logs):
        fill(log, count + 1)
    with reader_of(cluster, 3, stop_at_end=True) as reader:
        assert offsets(reader) == {("t", index): list(range(10 * (index + 1))) for index in range(3)}
    assert wait_until(lambda: not cluster.sessions.kept)
    assert asked(cluster) == [
        (0, 0, [0, 1, 2], []),
        (101, 1, [1, 2], [0]),
        (101, 2, [2], [1]),
        (101, -1, [], []),
    ]


def test_a_closed_reader_ends_its_sessions(cluster: FakeCluster) -> None:
    for log in cluster.topic("t", 2):
        fill(log, 3)
    with reader_of(cluster, 2) as reader:
        next(reader)
        next(reader)
    assert wait_until(lambda: not cluster.sessions.kept)


def test_a_single_partition_takes_no_session(cluster: FakeCluster) -> None:
    fill(cluster.topic("t")[0], 3)
    with reader_of(cluster, 1, stop_at_end=True) as reader:
        assert offsets(reader) == {("t", 0): list(range(30))}
    assert asked(cluster) == [(0, -1, [0], [])] * 3


def test_without_sessions_every_request_is_a_full_one(cluster: FakeCluster) -> None:
    cluster.sessions.keep = False
    for log in cluster.topic("t", 2):
        fill(log, 2)
    with reader_of(cluster, 2, stop_at_end=True) as reader:
        assert offsets(reader) == {("t", index): list(range(20)) for index in range(2)}
    assert [row[:2] for row in asked(cluster)] == [(0, 0)] * 2


def refusal(error: Error) -> Any:
    return lambda _: messages.FetchResponse(error_code=error)


TROUBLES: list[tuple[str, Any, tuple[int, int]]] = [
    ("the broker forgot it", refusal(Error.FETCH_SESSION_ID_NOT_FOUND), (0, 0)),
    ("the broker lost count", refusal(Error.INVALID_FETCH_SESSION_EPOCH), (101, 0)),
    ("topics are named otherwise", refusal(Error.FETCH_SESSION_TOPIC_ID_ERROR), (101, 0)),
    ("the connection ends", Close(), (101, 0)),
    ("the answer is of another session", lambda _: messages.FetchResponse(session_id=7), (0, 0)),
    ("the answer ends the session", lambda _: messages.FetchResponse(session_id=0), (0, 0)),
]


@pytest.mark.parametrize(("name", "action", "then"), TROUBLES, ids=[row[0] for row in TROUBLES])
def test_a_session_in_trouble_is_begun_anew_without_loss(
    cluster: FakeCluster, name: str, action: Any, then: tuple[int, int]
) -> None:
    for log in cluster.topic("t", 2):
        fill(log, 4)
    with reader_of(cluster, 2, stop_at_end=True) as reader:
        first = [next(reader) for _ in range(2)]
        before = len(cluster.requests("Fetch"))
        cluster.script("Fetch", action)
        found = offsets(reader)
    assert {batch.column("partition")[0].as_py() for batch in first} == {0, 1}
    assert found == {("t", index): list(range(10, 40)) for index in range(2)}
    later = asked(cluster)[before:]
    assert next((session, epoch) for session, epoch, told, _ in later if epoch == 0) == then
    assert next(sorted(told) for _, epoch, told, _ in later if epoch == 0) == [0, 1]


def test_after_the_highest_epoch_comes_the_first(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tagwire.client.fetch_sessions.MAX_EPOCH", 2)
    for log in cluster.topic("t", 2):
        fill(log, 5)
    expected = iter([1, 2, 1, 2, 1])

    def wrapped(message: Any) -> Any:
        if message.session_epoch > 0:
            assert message.session_epoch == next(expected)
            cluster.sessions.kept[101].epoch = message.session_epoch  # as a broker counts that has come to its last
        return cluster.respond("Fetch", message, 0)

    cluster.script("Fetch", *[wrapped] * 5)
    with reader_of(cluster, 2, stop_at_end=True) as reader:
        assert offsets(reader) == {("t", index): list(range(50)) for index in range(2)}
    assert [row[:2] for row in asked(cluster)][:5] == [(0, 0), (101, 1), (101, 2), (101, 1), (101, 2)]


def test_a_broker_that_refuses_every_session_is_asked_with_pauses_until_the_timeout(cluster: FakeCluster) -> None:
    cluster.topic("t", 2)
    cluster.script("Fetch", *[refusal(Error.FETCH_SESSION_ID_NOT_FOUND)] * 500)
    with Client(cluster.bootstrap, timeout=1) as client:
        reader = Reader(client, {("t", index): 0 for index in range(2)})
        with pytest.raises(KafkaError, match="FETCH_SESSION_ID_NOT_FOUND"):
            next(reader)
    assert len(cluster.requests("Fetch")) < 30


def test_a_full_answer_that_leaves_a_partition_out_begins_no_session(cluster: FakeCluster) -> None:
    logs = cluster.topic("t", 2)
    fill(logs[1], 1)
    cluster.script("Fetch", lambda _: messages.FetchResponse(session_id=55))
    with reader_of(cluster, 2, stop_at_end=True) as reader:
        assert offsets(reader) == {("t", 1): list(range(10))}


def test_an_answer_in_a_session_about_another_partition_is_an_error(cluster: FakeCluster) -> None:
    for log in cluster.topic("t", 2):
        fill(log, 2)
    kind = messages.FetchResponse
    other = kind.FetchableTopicResponse(
        topic="t", topic_id=cluster.ids["t"], partitions=[kind.PartitionData(partition_index=5)]
    )
    with reader_of(cluster, 2) as reader:
        next(reader)
        cluster.script("Fetch", *[lambda _: kind(session_id=101, responses=[other])] * 2)
        next(reader)  # what was under way already
        with pytest.raises(ProtocolError, match="t-5 twice, or not requested"):
            list(reader)
