"""The rules of a consumer, by a made-up clock: what it gives, commits and gives up, whatever happens meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwire import messages
from tagwire.client import OffsetAndMetadata, RebalanceListener
from tagwire.errors import (
    CommitFailedError,
    ConfigError,
    ConsumerStateError,
    Error,
    KafkaError,
    LogTruncationError,
    RemoteProtocolError,
    RequestTimeoutError,
    TagwireError,
)
from tagwire.partitions import TopicPartition
from tagwire.records import Record

from .fake_broker import Close, Late
from .fetch_refusals import fetch_error
from .fetching_in_memory import Brokers
from .logs import batch_of
from .memory_consumers import MemoryConsumer, Room, subscribed

AT = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)


def offsets(found: Sequence[Record]) -> list[int]:
    return [record.offset for record in found]


def test_what_was_given_before_the_last_poll_is_committed_automatically_and_nothing_beyond() -> None:
    room = Room()
    room.fill(30)
    consumer = subscribed(room, auto_commit=True, auto_commit_interval=5.0, max_poll_records=10)
    assert offsets(consumer.drained(10)) == [*range(10)]
    room.pass_time(60)
    assert room.committed == {}
    assert offsets(consumer.poll()) == [*range(10, 20)]
    room.pass_time(60)
    assert room.committed == {AT: 10}
    consumer.close()
    assert room.committed == {AT: 20}


@pytest.mark.parametrize("comes", ["at once", "late"])
def test_a_topic_that_no_broker_names_keeps_nothing_from_being_committed(
    comes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = Room()
    room.cluster.topic("nameless")
    nameless, described = room.cluster.ids["nameless"], room.cluster._Metadata

    def without_its_name(message: Any, node: int) -> Any:
        response = described(message, node)
        for topic in response.topics:
            if topic.topic_id == nameless:
                topic.name, topic.error_code, topic.partitions = None, Error.UNKNOWN_TOPIC_ID, []
        return response

    monkeypatch.setattr(room.cluster, "_Metadata", without_its_name)
    room.fill(30)
    consumer = room.consumer(protocol="consumer", auto_commit=True, auto_commit_interval=5.0, max_poll_records=10)
    consumer.call(consumer.core.subscribe(["t", "nameless"], None, None))
    assert offsets(consumer.drained(10)) == [*range(10)]
    consumer.poll()
    if comes == "late":  # as behind a Fetch: the member waits for the name nearly all of the time
        room.cluster.script("Metadata", *[Late(29.0)] * 20)
    room.pass_time(25)
    assert room.committed == {AT: 10}


def test_an_automatic_commit_that_is_due_amid_a_rebalance_is_made_right_after_it() -> None:
    room = Room()
    room.fill(10)
    consumer = subscribed(room, auto_commit=True, auto_commit_interval=100.0, assignors="cooperative-sticky")
    assert offsets(consumer.drained(10)) == [*range(10)]
    consumer.poll()
    room.pass_time(95)
    room.cluster.script("JoinGroup", *[Close()] * 20)
    consumer.call(consumer.core.rejoin("a test"))
    room.pass_time(10)
    assert room.committed == {}
    room.pass_time(20)
    assert len(room.cluster.requests("JoinGroup")) > 20
    assert room.committed == {AT: 10}


def test_polls_wake_the_work_only_where_it_has_something_to_do() -> None:
    room = Room()
    room.fill(10)
    consumer = subscribed(room, max_poll_interval=10.0)
    consumer.drained(10)
    before = consumer.wakeups
    for _ in range(3):
        room.fill(10)
        assert len(consumer.drained(10)) == 10
        assert consumer.poll(0.1) == []
    assert consumer.wakeups == before
    room.pass_time(20)
    consumer.poll()  # it was no member any more, and joins again
    assert consumer.wakeups == before + 1


def test_records_read_one_by_one_count_as_given_up_to_the_one_that_was_asked_for() -> None:
    room = Room()
    room.fill(30)
    consumer = subscribed(room)
    reader = consumer.call(consumer.core.read())
    assert [next(reader).offset for _ in range(7)] == [*range(7)]
    assert consumer.call(consumer.core.position(AT, 0)) == 7
    consumer.call(consumer.core.commit(None, None))
    assert room.committed == {AT: 7}
    assert offsets(consumer.poll(most=3)) == [7, 8, 9]  # what is read in another way goes on where that one was
    consumer.call(consumer.core.seek(AT, 20))
    assert offsets(consumer.drained(10)) == [*range(20, 30)]
    assert next(reader, None) is None


def test_the_position_is_where_the_first_record_comes_from_before_any_was_given() -> None:
    room = Room()
    consumer = room.consumer(max_poll_records=10)
    for count in (0, 30):
        if count:
            room.fill(count)
        consumer.call(consumer.core.assign([AT]))
        assert consumer.call(consumer.core.position(AT, 10)) == 0
        room.pass_time(1.0)  # what there is was fetched
        assert consumer.call(consumer.core.position(AT, 10)) == 0
        consumer.call(consumer.core.commit(None, None))
        assert room.committed == {AT: 0}
    assert offsets(consumer.drained(10)) == [*range(10)]


def refusing_offsets(error: Error) -> Callable[[Any], Any]:
    """An action that refuses to tell the offset of partition 1."""
    kind = messages.ListOffsetsResponse

    def refuse(message: Any) -> Any:
        partition = kind.ListOffsetsPartitionResponse(partition_index=1, error_code=error, offset=-1)
        return kind(topics=[kind.ListOffsetsTopicResponse(name="t", partitions=[partition])])

    return refuse


def test_a_position_is_waited_for_though_records_of_another_partition_are_there() -> None:
    room = Room(2)
    room.fill(5)
    room.offsets.committed["g"] = {AT: 2}
    room.cluster.script("ListOffsets", *[refusing_offsets(Error.NOT_LEADER_OR_FOLLOWER)] * 8)
    consumer = room.consumer()
    consumer.call(consumer.core.assign([AT, OTHER]))
    room.pass_time(0.1)
    assert consumer.core.work.fetched.has_any
    assert consumer.call(consumer.core.position(OTHER, 20)) == 0
    assert consumer.call(consumer.core.position(AT, 20)) == 2


@pytest.mark.parametrize("call", ["poll", "consume"])
@pytest.mark.parametrize("way", ["seek", "assign"])
def test_what_was_wrong_before_a_seek_is_not_raised_after_it(way: str, call: str) -> None:
    room = Room(2)
    room.fill(5)
    room.fill(3, 1)
    consumer = room.consumer(offset_reset="none")
    consumer.call(consumer.core.assign({AT: 0, OTHER: 100}))
    room.pass_time(1.0)
    first = consumer.call(consumer.core.consume(9, 5.0)) if call == "consume" else consumer.poll(1.0)
    assert offsets(first) == [*range(5)]
    if way == "seek":
        consumer.call(consumer.core.seek(OTHER, 0))
        assert offsets(consumer.drained(3)) == [0, 1, 2]
    else:
        consumer.call(consumer.core.assign({AT: 0}))
        assert offsets(consumer.drained(5)) == [*range(5)]


def test_a_position_that_cannot_be_found_is_an_error() -> None:
    room = Room(2)
    room.offsets.committed["g"] = {AT: 2}
    room.cluster.script("ListOffsets", refusing_offsets(Error.TOPIC_AUTHORIZATION_FAILED))
    consumer = room.consumer()
    consumer.call(consumer.core.assign([AT, OTHER]))
    for raising in (lambda: consumer.call(consumer.core.position(OTHER, 20)), lambda: consumer.poll(1.0)):
        with pytest.raises(KafkaError, match=r"TOPIC_AUTHORIZATION_FAILED .*t-1"):
            raising()
    assert consumer.call(consumer.core.position(OTHER, 20)) == 0


@pytest.mark.parametrize("protocol", [{"assignors": "range"}, {"protocol": "consumer"}], ids=["classic", "KIP-848"])
@pytest.mark.parametrize("ends", ["unsubscribe", "close"])
@pytest.mark.parametrize("way", ["unsubscribe", "close"])
def test_a_listener_that_gives_everything_up_itself_hears_of_it_once(
    way: str, ends: str, protocol: dict[str, Any]
) -> None:
    room = Room()
    room.fill(5)
    heard: list[Sequence[TopicPartition]] = []

    def give_up(how: str) -> None:
        core = consumer.core
        consumer.call(core.unsubscribe() if how == "unsubscribe" else core.close(5.0, leaves=None))

    class Listener(RebalanceListener):
        def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
            heard.append(partitions)
            give_up(way)

    consumer = subscribed(room, Listener(), **protocol)
    consumer.drained(5)
    give_up(ends)
    assert heard == [[AT]]
    assert not consumer.core.assignment
    other = subscribed(room, **protocol)
    assert offsets(other.drained(5)) == [*range(5)]
    assert room.driver.now() < 1030  # it had left, and nobody waited for the end of its session


@pytest.mark.parametrize("timeout", [5.0, 90.0], ids=["shorter", "longer"])
def test_offsets_are_looked_up_for_as_long_as_the_caller_says(timeout: float) -> None:
    """Shorter than the client's operations may take, or longer."""
    room = Room()
    room.fill(5)
    consumer = room.consumer()
    began, there = room.driver.now(), room.cluster.topics.pop("t")
    room.cluster.topics["t"] = [replace(there[0], leader=-1)]

    def come_back() -> None:
        room.cluster.topics["t"] = there

    room.driver.after(60.0, come_back)
    room.driver.after(6.0, lambda: None)  # else time would not stop before
    looked_up = consumer.core.list_offsets({AT: "latest"}, timeout)
    if timeout > 60:
        assert consumer.call(looked_up) == {AT: 5}
    else:
        with pytest.raises(KafkaError, match=r"LEADER_NOT_AVAILABLE .*t-0 has no leader"):
            consumer.call(looked_up)
        assert room.driver.now() <= began + 6


@pytest.mark.parametrize("timeout", [0.0, 5.0])
@pytest.mark.parametrize("protocol", [{"assignors": "range"}, {"protocol": "consumer"}], ids=["classic", "KIP-848"])
def test_who_has_no_time_left_after_its_commit_leaves_all_the_same(protocol: dict[str, Any], timeout: float) -> None:
    room = Room()
    room.fill(5)
    consumer = subscribed(room, auto_commit=True, **protocol)
    consumer.drained(5)
    if timeout:
        room.cluster.script("OffsetCommit", Late(20.0))
    began = room.driver.now()
    consumer.call(consumer.core.close(timeout, leaves=None))
    consumer.kill()
    assert room.driver.now() <= began + timeout + 1
    other = subscribed(room, **protocol)
    other.poll(5.0)
    assert other.core.assignment == {AT}


def test_who_commits_without_an_interval_commits_soon_and_rests_between() -> None:
    room = Room()
    room.fill(10)
    consumer = subscribed(room, auto_commit=True, auto_commit_interval=0.0)
    consumer.drained(10)
    consumer.poll()
    room.pass_time(0.1)
    assert room.committed == {AT: 10}
    work = consumer.core.work
    room.pass_time(0.01)
    work.step()
    assert work.until() > room.driver.now()


@pytest.mark.parametrize("api", ["Fetch", "ListOffsets"])
def test_a_leader_that_does_not_know_what_is_wrong_with_it_is_asked_again(
    api: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As by Kafka's FetchCollector and OffsetFetcherUtils: the next attempt may do, and a poll is not told."""
    room = Room(2)
    room.fill(5, 1)
    error = Error.UNKNOWN_SERVER_ERROR
    refused = fetch_error(error) if api == "Fetch" else refusing_offsets(error)
    room.cluster.script(api, *[refused] * 3)
    consumer = room.consumer()
    consumer.call(consumer.core.assign([OTHER]))
    assert offsets(consumer.drained(5)) == [*range(5)]
    assert sum("t-1: it is tried again: UNKNOWN_SERVER_ERROR" in said for said in caplog.messages) == 3


@pytest.mark.parametrize("api", ["Fetch", "ListOffsets"])
def test_a_log_that_is_damaged_is_told_instead_of_waiting_for_ever(api: str) -> None:
    room = Room(2)
    room.fill(5, 1)
    refused = fetch_error(Error.CORRUPT_MESSAGE) if api == "Fetch" else refusing_offsets(Error.CORRUPT_MESSAGE)
    room.cluster.script(api, *[refused] * 2)
    consumer = room.consumer()
    consumer.call(consumer.core.assign([OTHER]))
    for _ in range(2):
        with pytest.raises(KafkaError, match=r"CORRUPT_MESSAGE .*t-1"):
            consumer.poll(10.0)
    assert offsets(consumer.drained(5)) == [*range(5)]


@pytest.mark.parametrize("is_assigned", [True, False])
def test_a_topic_that_does_not_exist_is_waited_for_and_that_is_said_once(
    is_assigned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    room = Room()
    consumer = room.consumer(max_wait_ms=100)
    core = consumer.core
    consumer.call(core.assign([("later", 0), ("later", 1)]) if is_assigned else core.subscribe("later", None, None))
    for _ in range(20):
        assert consumer.poll(1.0) == []
    assert len([said for said in caplog.messages if "later" in said and "waited for" in said]) == 1
    room.cluster.topic("later", 2)[0].append(batch_of(0, 3))
    assert offsets(consumer.drained(3)) == [*range(3)]


def test_a_partition_that_is_paused_while_its_records_are_read_goes_on_where_it_was() -> None:
    room = Room(2)
    room.fill(10)
    room.fill(10, 1)
    consumer = subscribed(room)
    reader = consumer.call(consumer.core.read())
    first = next(reader)
    at = TopicPartition("t", first.partition or 0)
    consumer.call(consumer.core.pause([at], is_paused=True))
    rest = [*reader, *consumer.poll(2.0)]
    assert {record.partition for record in rest} <= {1 - at.partition}
    consumer.call(consumer.core.pause([at], is_paused=False))
    found = [record for record in rest + consumer.drained(19 - len(rest)) if record.partition == at.partition]
    assert offsets(found) == [*range(1, 10)]


def test_what_is_unread_is_known_by_the_leader_epoch_of_the_record_before_it() -> None:
    room = Room()
    for epoch in (3, 4):
        room.log[0].put(batch_of(room.log[0].end, 5, partition_leader_epoch=epoch))
    consumer = subscribed(room)
    reader = consumer.call(consumer.core.read())
    found = []
    for record in reader:
        position = consumer.call(consumer.core.positions())[AT]
        found.append((record.offset, position.offset, position.leader_epoch))
    assert found == [(offset, offset + 1, 3 if offset < 5 else 4) for offset in range(10)]


def test_a_partition_that_is_paused_among_its_records_is_validated_before_another_leader_is_read_from() -> None:
    cluster = Brokers(1)
    room = Room(cluster=cluster)
    room.log[0].epoch = 3
    room.log[0].put(batch_of(0, 10, partition_leader_epoch=3))
    room.offsets.committed["g"] = {AT: 0}
    consumer = subscribed(room, offset_reset="none")
    reader = consumer.call(consumer.core.read())
    assert [next(reader).offset for _ in range(8)] == [*range(8)]
    consumer.call(consumer.core.pause([AT], is_paused=True))
    cluster.epoch_ends[0] = (3, 5)
    room.log[0].epoch = 4
    consumer.call(consumer.core.pause([AT], is_paused=False))
    with pytest.raises(LogTruncationError, match="up to offset 8"):
        consumer.drained(1)


def test_nothing_unread_is_given_of_a_partition_that_went_to_another_member() -> None:
    room = Room(2)
    first = subscribed(room, assignors="cooperative-sticky")
    while len(first.core.assignment) < 2:
        assert first.poll(1.0) == []
    room.fill(10)
    room.fill(10, 1)
    room.pass_time(1.0)
    reader = first.call(first.core.read())
    read = [next(reader) for _ in range(3)]
    second = subscribed(room, assignors="cooperative-sticky")
    found = []
    while len(first.core.assignment) == 2 or not second.core.assignment:
        second.poll(0.1)
        rest = first.poll(0.0, 1)
        found += rest if len(first.core.assignment) == 1 else []
        read += rest if len(first.core.assignment) == 2 else []
    (kept,) = first.core.assignment
    found += first.poll(1.0)
    assert {record.partition for record in found} <= {kept.partition}
    assert offsets([record for record in read + found if record.partition == kept.partition]) == [*range(10)]


class Committing(RebalanceListener):
    """Commits what was given when partitions are revoked, as one does who commits by hand."""

    def __init__(self) -> None:
        self.consumer: MemoryConsumer | None = None

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        assert self.consumer is not None
        self.consumer.call(self.consumer.core.commit(None, None))


PROTOCOLS: list[dict[str, Any]] = [
    {"assignors": "range"},
    {"assignors": "cooperative-sticky"},
    {"protocol": "consumer"},
]


def two_partitions_fetched(room: Room, listener: RebalanceListener, **options: Any) -> MemoryConsumer:
    """A member that has both partitions of the room, and has fetched ten records of each."""
    consumer = subscribed(room, listener, **options)
    while len(consumer.core.assignment) < 2:
        assert consumer.poll(0.5) == []
    room.fill(10)
    room.fill(10, 1)
    room.pass_time(1.0)
    return consumer


def joined_beside(room: Room, **options: Any) -> None:
    """Has another member join while the first waits in a call."""
    second = subscribed(room, **options)
    second.core.work.polled(room.driver.now())


@pytest.mark.parametrize("options", PROTOCOLS, ids=lambda options: next(iter(options.values())))
def test_a_listener_commits_nothing_that_is_gathered_and_not_given(options: dict[str, Any]) -> None:
    room, listener = Room(2), Committing()
    consumer = listener.consumer = two_partitions_fetched(room, listener, **options)
    joined_beside(room, **options)
    given = consumer.call(consumer.core.consume(40, 10.0))
    (kept,) = consumer.core.assignment
    assert {record.partition for record in given} == {kept.partition}
    assert offsets(given) == [*range(10)]
    assert room.committed == {AT: 0, OTHER: 0}


def test_a_listener_commits_nothing_that_was_fetched_and_not_read() -> None:
    room, listener = Room(2), Committing()
    consumer = listener.consumer = two_partitions_fetched(room, listener)
    reader = consumer.call(consumer.core.read())
    read = [next(reader) for _ in range(3)]
    consumer.call(consumer.core.rejoin("a test"))
    room.pass_time(1.0)
    consumer.poll(0.0)
    assert {record.partition for record in read} == {0}
    assert room.committed == {AT: 3, OTHER: 0}


def test_a_listener_hears_of_what_goes_though_the_commit_before_was_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[Sequence[TopicPartition]] = []

    class Told(RebalanceListener):
        def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
            told.append(partitions)

    def interrupted(*arguments: object) -> object:
        monkeypatch.undo()
        raise KeyboardInterrupt

    room = Room(2)
    consumer = two_partitions_fetched(room, Told(), auto_commit=True)
    given = consumer.drained(10)
    consumer.call(consumer.core.rejoin("a test"))
    room.pass_time(1.0)
    monkeypatch.setattr(consumer, "result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        consumer.poll(0.0)
    assert told == []
    consumer.poll(0.0)
    assert told == [[AT, OTHER]]
    assert sum(room.committed.values()) == len(given)


@pytest.mark.parametrize("auto_commit", [True, False])
def test_what_is_given_while_its_partition_is_taken_away_is_committed(auto_commit: bool) -> None:
    room, listener = Room(2), Committing()

    def taken_away_meanwhile(record: Record) -> Record:
        if len(room.consumers) == 1:
            joined_beside(room)
            room.pass_time(15.0)
        return record

    options = {"auto_commit": auto_commit, "interceptors": [taken_away_meanwhile]}
    consumer = listener.consumer = two_partitions_fetched(
        room, RebalanceListener() if auto_commit else listener, **options
    )
    given = consumer.poll(1.0)
    assert [event.partitions for event in consumer.core.work.events] == [[AT, OTHER]]
    assert offsets(given) == [*range(10)]
    consumer.poll(0.0)
    assert room.committed == {AT: 10, OTHER: 0}


def test_what_is_gathered_when_a_listener_raises_is_given_by_the_next_call() -> None:
    class Raising(RebalanceListener):
        def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
            raise ValueError("this is the test's")

    room = Room(2)
    options = {"assignors": "cooperative-sticky", "auto_commit": True, "auto_commit_interval": 0.2}
    consumer = two_partitions_fetched(room, Raising(), **options)
    joined_beside(room, **options)
    with pytest.raises(ValueError, match="this is the test's"):
        consumer.call(consumer.core.consume(40, 10.0))
    assert offsets(consumer.drained(10)) == [*range(10)]


def test_a_partition_that_is_paused_while_its_records_are_gathered_goes_on_where_it_was() -> None:
    class Pausing(RebalanceListener):
        def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
            kept = consumer.core.assignment - set(partitions)
            consumer.call(consumer.core.pause(list(kept), is_paused=True))

    room = Room(2)
    options = {"assignors": "cooperative-sticky"}
    consumer = two_partitions_fetched(room, Pausing(), **options)
    joined_beside(room, **options)
    assert consumer.call(consumer.core.consume(40, 10.0)) == []
    consumer.call(consumer.core.pause(None, is_paused=False))
    assert offsets(consumer.drained(10)) == [*range(10)]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_what_went_wrong_with_a_subscription_is_not_raised_of_the_next(protocol: str) -> None:
    room = Room()
    room.fill(10)
    consumer = subscribed(room, protocol=protocol, offset_reset="none")
    consumer.poll()
    room.pass_time(10)
    assert consumer.core.work.failures
    consumer.call(consumer.core.unsubscribe())
    consumer.call(consumer.core.commit({AT: 0}, None))
    consumer.call(consumer.core.subscribe("t", None, None))
    assert offsets(consumer.drained(10)) == [*range(10)]


def test_what_went_wrong_with_a_subscription_is_not_raised_of_the_next_though_leaving_it_was_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room = Room()
    room.fill(10)
    consumer = subscribed(room, offset_reset="none")
    consumer.poll()
    room.pass_time(10)
    assert consumer.core.work.failures
    result = consumer.result

    async def interrupted(function: Callable[[], Any], deadline: float) -> None:
        await result(function, deadline)
        raise KeyboardInterrupt

    monkeypatch.setattr(consumer, "result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        consumer.call(consumer.core.unsubscribe())
    monkeypatch.undo()
    consumer.call(consumer.core.commit({AT: 0}, None))
    consumer.call(consumer.core.subscribe("t", None, None))
    assert offsets(consumer.drained(10)) == [*range(10)]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("way", ["subscribe", "assign"])
def test_what_is_wanted_after_leaving_was_interrupted_is_not_forgotten_when_that_ends(
    protocol: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = Room()
    room.fill(10)
    consumer = subscribed(room, protocol=protocol)
    consumer.drained(10)
    room.cluster.script("OffsetCommit", Late(2.0))  # which leaving waits for
    consumer.call(consumer.core.commit_async({AT: 5}, None))

    async def interrupted(function: Callable[[], Any], deadline: float) -> None:
        consumer.core.tasks.start(object(), function(), lambda _, error: None)
        raise KeyboardInterrupt

    monkeypatch.setattr(consumer, "result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        consumer.call(consumer.core.unsubscribe())
    monkeypatch.undo()
    if way == "subscribe":
        consumer.call(consumer.core.subscribe("t", None, None))
    else:
        consumer.call(consumer.core.assign([AT]))
    room.pass_time(5.0)
    assert offsets(consumer.drained(5)) == [*range(5, 10)]


def test_a_subscription_that_is_refused_leaves_the_listener_of_the_one_before() -> None:
    class Listening(RebalanceListener):
        def __init__(self) -> None:
            self.heard: list[TopicPartition] = []

        def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            self.heard += partitions

    room, listener, other = Room(), Listening(), Listening()
    consumer = subscribed(room, listener)
    with pytest.raises(ConsumerStateError):
        consumer.call(consumer.core.subscribe(None, "t.*", other))
    consumer.poll(10.0)
    assert (listener.heard, other.heard) == ([AT], [])


def test_a_pattern_that_is_none_leaves_the_consumer_as_it_was() -> None:
    room = Room()
    room.fill(10)
    consumer = room.consumer()
    with pytest.raises(ConfigError):
        consumer.call(consumer.core.subscribe(None, "t(", None))
    with pytest.raises(ConsumerStateError, match="nothing is subscribed to"):
        consumer.poll()
    consumer.call(consumer.core.assign([AT]))
    assert offsets(consumer.drained(10)) == [*range(10)]
    consumer.call(consumer.core.unsubscribe())
    consumer.call(consumer.core.subscribe("t", None, None))
    assert offsets(consumer.drained(10)) == [*range(10)]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_listener_may_unsubscribe(protocol: str) -> None:
    class Unsubscribing(RebalanceListener):
        consumer: MemoryConsumer

        def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            self.consumer.call(self.consumer.core.unsubscribe())

    room, listener = Room(), Unsubscribing()
    room.fill(10)
    consumer = listener.consumer = subscribed(room, listener, protocol=protocol)
    assert consumer.poll(30.0) == []
    assert not consumer.core.assignment
    consumer.call(consumer.core.subscribe("t", None, None))
    assert offsets(consumer.drained(10)) == [*range(10)]


def test_nothing_is_fetched_before_the_listener_has_heard_of_a_partition() -> None:
    room = Room()
    room.fill(10)
    fetched: list[int] = []

    class Seeking(RebalanceListener):
        def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            fetched.append(len(room.cluster.requests("Fetch")))
            for partition in partitions:
                consumer.call(consumer.core.seek(partition, 7))

    consumer = subscribed(room, Seeking())
    consumer.poll(0.0)
    room.pass_time(20.0)
    assert offsets(consumer.drained(3)) == [7, 8, 9]
    assert fetched == [0]


def test_what_is_unread_of_a_partition_that_is_assigned_from_elsewhere_is_not_given() -> None:
    room = Room()
    room.fill(30)
    consumer = room.consumer()
    consumer.call(consumer.core.assign({AT: 0}))
    reader = consumer.call(consumer.core.read())
    assert [next(reader).offset for _ in range(3)] == [0, 1, 2]
    consumer.call(consumer.core.assign([AT]))  # goes on
    assert [next(reader).offset for _ in range(3)] == [3, 4, 5]
    consumer.call(consumer.core.assign({AT: 20}))
    assert consumer.call(consumer.core.position(AT, 0)) == 20
    assert list(reader) == []
    assert offsets(consumer.drained(10)) == [*range(20, 30)]


def test_an_interrupted_call_is_as_if_it_had_not_been() -> None:
    room = Room()
    room.fill(30)
    consumer = subscribed(room, max_poll_records=10)
    assert offsets(consumer.drained(10)) == [*range(10)]
    consumer.poll()  # its result is lost: the interrupt came before anybody had it
    consumer.call(consumer.core.rewind())
    assert offsets(consumer.drained(20)) == [*range(10, 30)]


def test_commits_that_may_succeed_later_are_tried_again_and_none_overtakes_another() -> None:
    room = Room()
    room.fill(10)
    consumer = subscribed(room)
    consumer.drained(10)
    kind = messages.OffsetCommitResponse

    def loading(message: Any) -> Any:
        partition = kind.OffsetCommitResponsePartition(partition_index=0, error_code=Error.COORDINATOR_LOAD_IN_PROGRESS)
        return kind(topics=[kind.OffsetCommitResponseTopic(name="t", partitions=[partition])])

    room.cluster.script("OffsetCommit", Close(), loading, loading)
    told: list[tuple[int, object]] = []
    for offset in (3, 7, 5):
        consumer.call(
            consumer.core.commit_async({AT: offset}, lambda found, error: told.append((found[AT].offset, error)))
        )
    consumer.call(consumer.core.commit({AT: 6}, None))
    assert told == [(3, None), (7, None), (5, None)]
    assert room.committed == {AT: 6}


@pytest.mark.parametrize("call", ["poll", "commit", "close"])
def test_what_a_callback_raises_comes_after_all_were_called(call: str) -> None:
    room = Room()
    room.fill(10)
    consumer = subscribed(room)
    consumer.drained(10)
    told: list[int] = []

    def raising(offsets: Any, error: Exception | None) -> None:
        told.append(offsets[AT].offset)
        raise ValueError(str(told))

    for offset in (3, 5, 7):
        consumer.call(consumer.core.commit_async({AT: offset}, raising))
    room.pass_time(1.0)
    with pytest.raises(ValueError, match=r"^\[3\]$"):
        consumer.close() if call == "close" else consumer.poll() if call == "poll" else consumer.call(
            consumer.core.commit({AT: 9}, None)
        )
    assert told == [3, 5, 7]


def test_an_interceptor_that_raises_about_a_commit_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    told: list[object] = []

    class Raising:
        def __call__(self, record: Record) -> None:
            return

        def on_commit(self, committed: object) -> None:
            raise ValueError("this is the test's")

    class Told(Raising):
        def on_commit(self, committed: object) -> None:
            told.append(committed)

    room = Room()
    room.fill(10)
    consumer = subscribed(room, interceptors=[Raising(), Told()])
    consumer.drained(10)
    consumer.call(consumer.core.commit({AT: 4}, None))
    consumer.call(consumer.core.commit_async({AT: 7}, None))
    room.pass_time(1.0)
    assert consumer.poll() == []
    assert room.committed == {AT: 7}
    assert len(told) == 2
    assert caplog.text.count("ValueError: this is the test's") == 2


def test_a_commit_of_who_was_thrown_out_tells_why_and_what_to_do() -> None:
    room = Room()
    room.fill(10)
    consumer = subscribed(room, max_poll_interval=10.0)
    consumer.drained(10)
    room.pass_time(11)
    with pytest.raises(CommitFailedError, match=r"no member of its group any more.*max\.poll\.interval\.ms") as caught:
        consumer.call(consumer.core.commit(None, None))
    assert caught.value.error is Error.UNKNOWN_MEMBER_ID
    assert room.committed == {}
    assert offsets(consumer.drained(10)) == [*range(10)]


def test_nothing_is_given_of_a_partition_that_may_be_anothers() -> None:
    room = Room()
    room.fill(30)
    consumer = subscribed(room, session_timeout=10.0, max_poll_records=10)
    consumer.drained(10)
    room.driver._clock += 11  # the process was stopped meanwhile
    lost: list[Sequence[TopicPartition]] = []

    class Told(RebalanceListener):
        def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
            lost.append(partitions)

    consumer.core._listener = Told()
    assert consumer.poll(0.0) == []
    assert offsets(consumer.drained(10)) == [*range(10)]
    assert lost == [[AT]]


def test_what_ended_the_work_is_raised_by_every_poll() -> None:
    room = Room()
    consumer = subscribed(room)
    consumer.core.work.failed(ValueError("this is the test's"))
    for _ in range(2):
        with pytest.raises(TagwireError, match=r"broke down: ValueError: this is the test's"):
            consumer.poll(1.0)


def test_who_is_no_member_waits_and_does_not_look_again_and_again_at_what_it_may_not_give(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room = Room()
    room.fill(30)
    consumer = subscribed(room, max_poll_records=10)
    consumer.drained(10)
    room.fill(30)
    room.pass_time(1)
    assert consumer.core.work.fetched.has_any
    monkeypatch.setattr(type(consumer.core.work), "is_member", property(lambda _: False))
    assert not consumer.core.work.has_news
    monkeypatch.undo()
    assert consumer.core.work.has_news


@pytest.mark.parametrize("refused", [Error.TOPIC_AUTHORIZATION_FAILED, Error.INVALID_TOPIC_EXCEPTION])
def test_a_topic_that_may_not_be_read_is_told_once_and_the_others_are_given(
    refused: Error, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = Room()
    room.fill(3)
    described = room.cluster._Metadata
    refusals = {"hidden": refused}

    def without_them(message: Any, node: int) -> Any:
        response = described(message, node)
        for topic in response.topics:
            if topic.name in refusals:
                topic.error_code, topic.partitions = refusals[topic.name], []
        return response

    room.cluster.topic("hidden")
    monkeypatch.setattr(room.cluster, "_Metadata", without_them)
    consumer = room.consumer(metadata_max_age=10.0, assignors="range")
    consumer.call(consumer.core.subscribe(["t", "hidden"], None, None))
    with pytest.raises(KafkaError, match=rf"{refused.name} .*hidden"):
        consumer.poll(5.0)
    assert offsets(consumer.drained(3)) == [0, 1, 2]
    room.pass_time(30)
    assert consumer.poll(1.0) == []  # told once
    refusals.clear()
    room.pass_time(30)
    consumer.poll(1.0)
    refusals["hidden"] = refused
    room.pass_time(30)
    with pytest.raises(KafkaError, match=refused.name):  # it was had meanwhile
        consumer.poll(5.0)


def test_a_group_that_may_not_be_joined_is_told_by_every_poll() -> None:
    room = Room()
    refused = messages.JoinGroupResponse(error_code=Error.GROUP_AUTHORIZATION_FAILED)
    room.cluster.script("JoinGroup", lambda _: refused, lambda _: refused)
    room.fill(3)
    consumer = subscribed(room)
    for _ in range(2):
        with pytest.raises(KafkaError, match="GROUP_AUTHORIZATION_FAILED"):
            consumer.poll(5.0)
    assert offsets(consumer.drained(3)) == [0, 1, 2]


def test_offsets_of_partitions_that_nobody_asked_about_are_an_error_in_bounded_time() -> None:
    room = Room()
    kind = messages.OffsetFetchResponse

    def garbled(message: Any) -> Any:
        partition = kind.OffsetFetchResponsePartitions(partition_index=7, committed_offset=3)
        topic = kind.OffsetFetchResponseTopics(name="t", partitions=[partition])
        return kind(groups=[kind.OffsetFetchResponseGroup(group_id="g", topics=[topic])])

    room.cluster.script("OffsetFetch", garbled)
    room.fill(3)
    consumer = subscribed(room)
    with pytest.raises(RemoteProtocolError, match=r"t-7 is told twice, or was not requested"):
        consumer.poll(5.0)
    assert offsets(consumer.drained(3)) == [0, 1, 2]


def test_a_commit_that_tells_of_other_partitions_is_an_error() -> None:
    room = Room()
    room.fill(3)
    consumer = subscribed(room)
    consumer.drained(3)
    room.cluster.script("OffsetCommit", lambda _: messages.OffsetCommitResponse(topics=[]))
    with pytest.raises(RemoteProtocolError, match="t-0 is missing in the response"):
        consumer.call(consumer.core.commit(None, None))


def test_a_commit_behind_one_that_has_no_response_ends_in_its_own_time() -> None:
    room = Room()
    room.fill(3)
    consumer = subscribed(room)
    consumer.drained(3)
    room.cluster.script("OffsetCommit", Late(20.0))
    consumer.call(consumer.core.commit_async({AT: 1}, None))
    began = room.driver.now()
    with pytest.raises(RequestTimeoutError, match="one before it has no response yet"):
        consumer.call(consumer.core.commit({AT: 2}, 1.0))
    assert room.driver.now() - began < 2.0
    room.pass_time(60.0)
    consumer.call(consumer.core.commit({AT: 3}, 1.0))
    assert room.committed == {AT: 3}


class Ledger(RebalanceListener):
    """Holds a consumer to: of a partition that it keeps, each record comes after the one before."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.next: dict[TopicPartition, int] = {}
        self.seen: dict[TopicPartition, set[int]] = {}

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        for partition in partitions:
            assert partition not in self.next
            self.next[partition] = self.room.committed.get(partition, 0)

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        for partition in partitions:
            del self.next[partition]

    def take(self, found: Sequence[Record]) -> None:
        for record in found:
            partition = TopicPartition(record.topic or "", record.partition or 0)
            assert record.offset == self.next[partition], f"{partition}: {record.offset} after {self.next[partition]}"
            assert record.value == b"%d" % record.offset
            self.next[partition] += 1
            self.seen.setdefault(partition, set()).add(record.offset)


PARTITIONS = 3
WHO = st.integers(0, 2)
WHERE = st.integers(0, PARTITIONS - 1)
STEPS = st.one_of(
    st.tuples(st.just("poll"), WHO, st.sampled_from([0.0, 0.05, 1.0])),
    st.tuples(st.just("read"), WHO, st.integers(0, 12)),
    st.tuples(st.just("fill"), WHERE, st.integers(1, 20)),
    st.tuples(st.just("seek"), WHO, st.integers(0, 30)),
    st.tuples(st.sampled_from(["pause", "resume"]), WHO, WHERE),
    st.tuples(st.sampled_from(["commit", "rejoin", "close", "kill", "rewind"]), WHO, st.just(0)),
    st.tuples(st.just("wait"), WHO, st.sampled_from([0.1, 3.0, 12.0])),
)


@given(
    st.lists(STEPS, max_size=30),
    st.sampled_from(["range", "roundrobin", "sticky", "cooperative-sticky", "KIP-848"]),
    st.booleans(),
    st.integers(0, 100),
)
@settings(deadline=None, max_examples=60)
def test_no_record_comes_twice_to_who_keeps_its_partition_and_none_is_left_out(
    steps: list[tuple[str, int, Any]], assignor: str, auto_commit: bool, seed: int
) -> None:
    room = Room(PARTITIONS, seed)
    is_new = assignor == "KIP-848"
    options = {
        **({"protocol": "consumer"} if is_new else {"assignors": assignor, "session_timeout": 10.0}),
        "auto_commit": auto_commit,
        "auto_commit_interval": 0.2,
        "max_poll_records": 7,
        "max_poll_interval": 10.0,
    }
    members: dict[int, tuple[MemoryConsumer, Ledger]] = {}
    seen: dict[TopicPartition, set[int]] = {}

    def member(who: int) -> tuple[MemoryConsumer, Ledger]:
        if who not in members:
            ledger = Ledger(room)
            ledger.seen = seen
            members[who] = subscribed(room, ledger, **options), ledger
        return members[who]

    for step, who, what in steps:
        if step == "fill":
            room.fill(what, who)
            continue
        consumer, ledger = member(who)
        if step == "poll":
            ledger.take(consumer.poll(what))
        elif step == "read" and consumer.core.work.fetched.has_any:
            for partition in range(PARTITIONS):
                room.fill(1, partition)  # it waits for ever for a record, and what was fetched need not hold any
            reader = consumer.call(consumer.core.read())
            ledger.take([record for _, record in zip(range(what), reader)])
        elif step == "seek":
            for partition in consumer.core.assignment & ledger.next.keys():
                if what <= room.log[partition.partition].end:
                    consumer.call(consumer.core.seek(partition, what))
                    ledger.next[partition] = what
        elif step in ("pause", "resume"):
            named = consumer.core.assignment & {TopicPartition("t", what)}
            consumer.call(consumer.core.pause(list(named), is_paused=step == "pause"))
        elif step == "commit":
            try:
                consumer.call(consumer.core.commit(None, 1.0))
            except CommitFailedError:
                continue
            for partition in ledger.next.keys() & room.committed.keys():
                assert room.committed[partition] <= ledger.next[partition]
        elif step == "rejoin":
            consumer.call(consumer.core.rejoin("a test"))
        elif step == "close":
            members.pop(who)
            consumer.close()
        elif step == "kill":
            members.pop(who)
            consumer.kill()
        elif step == "rewind":
            consumer.poll(0.0)  # nobody ever has what it gives
            consumer.call(consumer.core.rewind())
        else:
            room.pass_time(what)
    for consumer, _ in members.values():
        consumer.kill()
    room.pass_time(11.0)
    ledger = Ledger(room)
    last = subscribed(room, ledger, **options)
    wanted = {partition: {*range(room.committed.get(partition, 0), log.end)} for partition, log in _logs(room).items()}
    ledger.take(last.drained(sum(map(len, wanted.values()))))
    assert {partition: found for partition, found in ledger.seen.items() if found} == {
        partition: found for partition, found in wanted.items() if found
    }


def _logs(room: Room) -> dict[TopicPartition, Any]:
    return {TopicPartition("t", index): log for index, log in enumerate(room.log)}


@pytest.mark.parametrize("position", [OffsetAndMetadata(-1), OffsetAndMetadata(-7), OffsetAndMetadata(2**63), 2**63])
@pytest.mark.parametrize("way", ["seek", "assign"])
def test_a_position_that_no_partition_has_is_refused_and_nothing_moves(way: str, position: object) -> None:
    room = Room()
    room.fill(10)
    consumer = room.consumer(max_poll_records=5)
    consumer.call(consumer.core.assign([AT]))
    assert offsets(consumer.drained(5)) == [*range(5)]
    core = consumer.core
    with pytest.raises(ConfigError, match="position: t-0"):
        consumer.call(core.seek(AT, position) if way == "seek" else core.assign({AT: position}))
    assert offsets(consumer.drained(5)) == [*range(5, 10)]


@pytest.mark.parametrize("creates", [True, False])
def test_a_missing_topic_that_is_assigned_by_hand_is_created_where_that_is_allowed(creates: bool) -> None:
    room = Room()
    room.cluster.auto_create = True
    consumer = room.consumer(allow_auto_create=creates)
    consumer.call(consumer.core.assign([("new", 0)]))
    for _ in range(10):
        consumer.poll(1.0)
    assert ("new" in room.cluster.topics) is creates
