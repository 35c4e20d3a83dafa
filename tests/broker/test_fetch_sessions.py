"""Fetch sessions (KIP-227): what an answer leaves out, what ends a session, and how many there may be."""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

import pytest

from tagwire import messages
from tagwire.broker.fetch_sessions import EVICTABLE_MS, FetchSessions
from tagwire.client import Reader
from tagwire.errors import Error, KafkaError
from tagwire.records import read

Request = messages.FetchRequest
FAR = 30_000


def ask(wire, session_id=0, epoch=0, wanted=(), forgotten=(), version=12, **options):
    """The answer to a Fetch of `wanted`, (topic, partition, offset)s, in a session that lets go of `forgotten`."""
    return wire.ask(request(session_id, epoch, wanted, forgotten, **options), version)


def request(session_id=0, epoch=0, wanted=(), forgotten=(), max_wait_ms=0, max_bytes=2**31 - 1, **options):
    topics, gone = [], []
    for topic, partition, offset in wanted:
        part = Request.FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=options.get("partition_max_bytes", 1 << 20)
        )
        topics.append(Request.FetchTopic(**_named(topic), partitions=[part]))
    for topic, partition in forgotten:
        gone.append(Request.ForgottenTopic(**_named(topic), partitions=[partition]))
    return Request(
        session_id=session_id,
        session_epoch=epoch,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=topics,
        forgotten_topics_data=gone,
    )


def _named(topic):
    return {"topic_id": topic} if isinstance(topic, UUID) else {"topic": topic}


def told(answer):
    """{(topic, partition): the values} of an answer without an error."""
    assert answer.error_code == 0
    return {
        (topic.topic or topic.topic_id, part.partition_index): [
            record.value for batch in read(part.records) for record in batch.records()
        ]
        for topic in answer.responses
        for part in topic.partitions
    }


@pytest.fixture
def topic(wire):
    wire.create("t", 3)
    return "t"


ALL = [("t", 0, 0), ("t", 1, 0), ("t", 2, 0)]


@pytest.mark.parametrize("version", range(7, 13))
def test_a_full_fetch_begins_a_session_whose_answers_tell_only_what_changed(wire, topic, make, version):
    wire.produce("t", make.records(b"a"), partition=1)
    first = ask(wire, wanted=ALL, version=version)
    assert told(first) == {("t", 0): [], ("t", 1): [b"a"], ("t", 2): []}
    assert first.session_id > 0
    again = ask(wire, first.session_id, 1, [("t", 1, 1)], version=version)
    assert (told(again), again.session_id) == ({}, first.session_id)
    wire.produce("t", make.records(b"b"), partition=2)
    assert told(ask(wire, first.session_id, 2, version=version)) == {("t", 2): [b"b"]}


@pytest.mark.parametrize("version", [13, 16])
def test_a_session_by_topic_ids_knows_its_topics_by_them(wire, make, version):
    topic_id = wire.create("t", 2).topic_id
    first = ask(wire, wanted=[(topic_id, 0, 0), (topic_id, 1, 0)], version=version)
    assert told(first) == {(topic_id, 0): [], (topic_id, 1): []}
    wire.produce("t", make.records(b"a"))
    assert told(ask(wire, first.session_id, 1, version=version)) == {(topic_id, 0): [b"a"]}
    other = ask(wire, first.session_id, 2, version=12)
    assert (other.error_code, other.session_id) == (Error.FETCH_SESSION_TOPIC_ID_ERROR, 0)
    by_name = ask(wire, wanted=[("t", 0, 0)]).session_id
    assert ask(wire, by_name, 1, version=version).error_code == Error.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_topic_of_a_session_that_was_deleted_or_made_anew_is_told(wire, topic):
    topic_id = wire.metadata("t").topics[0].topic_id
    unknown = UUID(int=7)
    session = ask(wire, wanted=[(topic_id, 0, 0), (unknown, 0, 0)], version=13).session_id
    wire.ask(messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=5000), 5)
    answer = ask(wire, session, 1, version=13, max_wait_ms=FAR)
    codes = {topic.topic_id: topic.partitions[0].error_code for topic in answer.responses}
    assert codes == {topic_id: Error.UNKNOWN_TOPIC_OR_PARTITION, unknown: Error.UNKNOWN_TOPIC_ID}
    wire.create("t")
    answer = ask(wire, session, 2, forgotten=[(unknown, 0)], version=13, max_wait_ms=FAR)
    assert [topic.partitions[0].error_code for topic in answer.responses] == [Error.INCONSISTENT_TOPIC_ID]


def test_a_session_adds_moves_and_forgets_partitions(wire, topic, make):
    for partition in range(3):
        wire.produce("t", make.records(b"a", b"b"), partition=partition)
    session = ask(wire, wanted=[("t", 0, 2)]).session_id
    assert told(ask(wire, session, 1, [("t", 1, 2)])) == {("t", 1): []}
    assert told(ask(wire, session, 2, [("t", 0, 1)])).keys() == {("t", 0)}
    assert told(ask(wire, session, 3, [("t", 2, 0)], [("t", 0), ("t", 9), ("x", 0)])).keys() == {("t", 2)}
    assert told(ask(wire, session, 4, forgotten=[("t", 2)])) == {}
    # With its last partition the session is over.
    ended = ask(wire, session, 5, forgotten=[("t", 1)])
    assert (ended.error_code, ended.session_id, ended.responses) == (0, 0, [])
    assert ask(wire, session, 6).error_code == Error.FETCH_SESSION_ID_NOT_FOUND


def test_an_error_is_told_in_every_answer_and_its_end_too(wire, topic, make):
    session = ask(wire, wanted=[("t", 0, 5), ("t", 1, 0)]).session_id
    for epoch in (1, 2):
        answer = ask(wire, session, epoch, max_wait_ms=FAR)
        assert [part.error_code for part in answer.responses[0].partitions] == [Error.OFFSET_OUT_OF_RANGE]
    assert told(ask(wire, session, 3, [("t", 0, 0)])) == {("t", 0): []}
    assert told(ask(wire, session, 4)) == {}


def test_an_epoch_out_of_turn_and_a_session_that_is_not_there_are_refused(wire, topic):
    session = ask(wire, wanted=ALL).session_id
    for epoch in (2, 5, -2):
        answer = ask(wire, session, epoch)
        assert (answer.error_code, answer.session_id) == (Error.INVALID_FETCH_SESSION_EPOCH, 0)
    assert ask(wire, session, 1).error_code == 0
    assert ask(wire, session, 1).error_code == Error.INVALID_FETCH_SESSION_EPOCH
    for missing in (0, -1, session ^ 1):
        assert ask(wire, missing, 1).error_code == Error.FETCH_SESSION_ID_NOT_FOUND


def test_epochs_0_and_minus_1_ask_for_all_whatever_the_id_and_end_the_session(wire, topic):
    for version in (11, 16):
        name = "t" if version < 13 else wire.metadata("t").topics[0].topic_id
        for session_id in (0, -1, 77):
            answer = ask(wire, session_id, -1, [(name, 0, 0)], version=version)
            assert (told(answer), answer.session_id) == ({(name, 0): []}, 0)
    session = ask(wire, wanted=ALL).session_id
    other = ask(wire, session, 0, ALL).session_id
    assert other not in (0, session)
    assert ask(wire, session, 1).error_code == Error.FETCH_SESSION_ID_NOT_FOUND
    assert ask(wire, other, -1, max_wait_ms=FAR).session_id == 0
    assert ask(wire, other, 1).error_code == Error.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_goes_on_over_another_connection(wire, topic, broker, connect, make):
    session = ask(wire, wanted=ALL).session_id
    wire.produce("t", make.records(b"a"))
    assert told(ask(connect(broker.bootstrap), session, 1)) == {("t", 0): [b"a"]}


def test_of_two_requests_of_a_session_the_one_that_waited_is_refused(wire, topic, broker, connect, make):
    session = ask(wire, wanted=ALL).session_id
    wire.send(request(session, 1, max_wait_ms=FAR), 12)
    other = connect(broker.bootstrap)
    while ask(other, session, 2).error_code:
        pass  # until the broker has begun with the first
    connect(broker.bootstrap).produce("t", make.records(b"a"))
    answer = wire.receive()
    assert (answer.error_code, answer.responses) == (Error.INVALID_FETCH_SESSION_EPOCH, [])
    assert told(ask(other, session, 3)) == {("t", 0): [b"a"]}


def test_a_waiting_request_of_a_session_is_answered_when_any_of_its_partitions_has_records(
    wire, topic, broker, connect, make
):
    session = ask(wire, wanted=ALL).session_id
    wire.send(request(session, 1, max_wait_ms=FAR), 12)
    connect(broker.bootstrap).produce("t", make.records(b"a"), partition=2)
    assert told(wire.receive()) == {("t", 2): [b"a"]}


def test_partitions_that_had_records_stand_behind_the_others_next_time(wire, topic, make):
    batch = make.records(b"v" * 100)
    for partition in range(3):
        for _ in range(2):
            wire.produce("t", batch, partition=partition)
    one = len(batch)
    first = ask(wire, wanted=ALL, max_bytes=1)
    session, offsets = first.session_id, {0: 1, 1: 0, 2: 0}
    found = []
    for epoch in range(1, 6):
        answer = ask(wire, session, epoch, [("t", *at) for at in offsets.items()], max_bytes=one)
        ((_, partition),) = [at for at, values in told(answer).items() if values]
        found.append(partition)
        offsets[partition] += 1
    assert found == [0, 1, 2, 1, 2]


def test_a_reader_of_ours_reads_by_one_session(broker, wire, topic, make):
    for partition in range(3):
        for number in range(4):
            wire.produce("t", make.records(b"%d" % number), partition=partition)
    with broker.intercept("Fetch", lambda call: call.proceed()) as seen:
        starts = {("t", partition): 0 for partition in range(3)}
        limits = {"max_partition_bytes": 80, "batch_rows": 1}
        with Reader(broker.bootstrap, starts, stop_at_end=True, **limits) as reader:
            found = [(row["partition"], row["offset"]) for batch in reader for row in batch.to_pylist()]
    assert sorted(found) == [(partition, offset) for partition in range(3) for offset in range(4)]
    asked = [call.request for call in seen.calls if call.request.session_epoch >= 0]
    assert [one.session_epoch for one in asked[:4]] == [0, 1, 2, 3]
    assert len({one.session_id for one in asked[1:4]}) == 1
    assert asked[1].session_id > 0


class Clock:
    now = 0

    def __call__(self):
        return self.now


def begin(sessions, size=1, name="t"):
    """The id of a new session of so many partitions."""
    context = sessions.begin(request(wanted=[(name, number, 0) for number in range(size)]), 12)
    blank = messages.FetchResponse.PartitionData(high_watermark=0, records=b"")
    return context.respond([blank] * size)[0]


def is_there(sessions, session_id, epoch=1):
    with suppress(KafkaError):
        return bool(sessions.begin(request(session_id, epoch), 12).partitions)
    return False


def test_there_are_no_more_sessions_than_there_may_be():
    clock = Clock()
    sessions = FetchSessions(clock, most=3)
    kept = [begin(sessions) for _ in range(3)]
    assert begin(sessions, 50) == 0
    clock.now += EVICTABLE_MS
    assert begin(sessions, 50) == 0
    assert is_there(sessions, kept[0])
    clock.now += 1
    newest = begin(sessions)
    assert newest > 0
    assert len(sessions) == 3
    assert [is_there(sessions, one, 2 if one == kept[0] else 1) for one in kept] == [True, False, True]


def test_of_old_sessions_in_use_the_smallest_makes_room_for_a_larger_one():
    clock = Clock()
    sessions = FetchSessions(clock, most=2)
    small, large = begin(sessions, 2), begin(sessions, 5)
    clock.now += EVICTABLE_MS + 1
    assert is_there(sessions, small)
    assert is_there(sessions, large)
    assert begin(sessions, 2) == 0
    middle = begin(sessions, 3)
    assert middle > 0
    assert not is_there(sessions, small, 2)
    assert is_there(sessions, large, 2)
    assert begin(sessions, 9) > 0
    assert not is_there(sessions, large, 3)
    assert sessions.partition_count == 12


def test_sessions_remember_no_more_partitions_than_they_may():
    sessions = FetchSessions(most_partitions=10)
    first = begin(sessions, 6)
    assert begin(sessions, 5) == 0
    assert begin(sessions, 4) > 0
    with pytest.raises(KafkaError, match="FETCH_SESSION_ID_NOT_FOUND"):
        sessions.begin(request(first, 1, [("more", 0, 0)]), 12)
    assert (len(sessions), sessions.partition_count) == (1, 4)


def test_after_the_last_epoch_comes_1(monkeypatch):
    monkeypatch.setattr("tagwire.broker.fetch_sessions.MAX_EPOCH", 2)
    sessions = FetchSessions()
    session_id = begin(sessions)
    for epoch in (1, 2, 1, 2):
        assert is_there(sessions, session_id, epoch)
