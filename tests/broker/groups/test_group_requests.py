"""Groups over a socket: every version of their requests, and what they leave on the disk and find there again."""

from __future__ import annotations

import os
import shutil
import time

import pytest

from tagwire import messages
from tagwire.broker import Broker, clock, scheduler
from tagwire.broker.groups import coordinator
from tagwire.errors import Error
from tagwire.records import read
from tagwire.records.internal_topics import OFFSETS, decode_record

WEEK_MS = coordinator.OFFSETS_RETENTION_MS
Join, Sync = messages.JoinGroupRequest, messages.SyncGroupRequest


SUBSCRIPTION = b"\0\0\0\0\0\1\0\1t\0\0\0\0"


def join(
    wire,
    member_id="",
    version=9,
    group="g",
    session=10_000,
    instance=None,
    reply=True,
    kind="consumer",
    subscription=SUBSCRIPTION,
):
    protocols = [Join.JoinGroupRequestProtocol(name="range", metadata=subscription)]
    request = Join(
        group_id=group,
        session_timeout_ms=session,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=kind,
        protocols=protocols,
    )
    wire.send(request, version)
    return wire.receive() if reply else None


def join_with_id(wire, version=9, **options):
    """Join as a client does that has no id yet."""
    answer = join(wire, version=version, **options)
    if answer.error_code == Error.MEMBER_ID_REQUIRED:
        answer = join(wire, answer.member_id, version, **options)
    assert answer.error_code == 0
    return answer


def sync(wire, joined, version=5, group="g", data=b"all", kind="consumer", name="range"):
    assigned = [Sync.SyncGroupRequestAssignment(member_id=m.member_id, assignment=data) for m in joined.members]
    request = Sync(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type=kind,
        protocol_name=name,
        assignments=assigned,
    )
    return wire.ask(request, version)


def beat(wire, joined, version=4, group="g"):
    request = messages.HeartbeatRequest(group_id=group, generation_id=joined.generation_id, member_id=joined.member_id)
    return Error.of(wire.ask(request, version).error_code)


def commit(wire, offset, joined=None, *, partition=0, version=9, group="g", metadata="m", topic="t"):
    request = messages.OffsetCommitRequest
    asked = request.OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=metadata
    )
    message = request(
        group_id=group,
        generation_id_or_member_epoch=joined.generation_id if joined else -1,
        member_id=joined.member_id if joined else "",
        topics=[request.OffsetCommitRequestTopic(name=topic, partitions=[asked])],
    )
    return Error.of(wire.ask(message, version).topics[0].partitions[0].error_code)


def committed(wire, group="g", topic="t", partition=0, version=9):
    request = messages.OffsetFetchRequest
    if version >= 8:
        topics = [request.OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
        groups = [request.OffsetFetchRequestGroup(group_id=group, topics=topics)]
        return wire.ask(request(groups=groups), version).groups[0].topics[0].partitions[0]
    topics = [request.OffsetFetchRequestTopic(name=topic, partition_indexes=[partition])]
    return wire.ask(request(group_id=group, topics=topics), version).topics[0].partitions[0]


def describe(wire, group="g", version=5):
    return wire.ask(messages.DescribeGroupsRequest(groups=[group]), version).groups[0]


def stored(wire):
    """What is in __consumer_offsets, decoded as a tool would."""
    batches = read(wire.fetch(OFFSETS, 0).records)
    return [decode_record(OFFSETS, r.key, r.value) for batch in batches for r in batch.records()]


@pytest.mark.parametrize("version", range(5))
def test_this_broker_coordinates_every_group_and_transaction(wire, broker, version):
    request = messages.FindCoordinatorRequest
    if version < 4:
        answer = wire.ask(request(key="g"), version)
    else:
        answers = wire.ask(request(coordinator_keys=["g", "h"], key_type=1), version).coordinators
        assert [entry.key for entry in answers] == ["g", "h"]
        answer = answers[0]
    assert (answer.error_code, f"{answer.host}:{answer.port}") == (0, broker.bootstrap)


def test_a_coordinator_of_an_unknown_kind_is_refused(wire):
    assert wire.ask(messages.FindCoordinatorRequest(key="g", key_type=9), 3).error_code == Error.INVALID_REQUEST


@pytest.mark.parametrize("version", range(10))
def test_every_version_joins_and_synchronizes(wire, version):
    joined = join_with_id(wire, version)
    assert (joined.generation_id, joined.protocol_name, joined.leader) == (1, "range", joined.member_id)
    assert sync(wire, joined, min(version, 5)).assignment == b"all"
    assert beat(wire, joined, min(version, 4)) is Error.NONE
    assert describe(wire).group_state == "Stable"


@pytest.mark.parametrize(
    ("kind", "name"), [(None, None), (None, "range"), ("consumer", None), ("", "range"), ("consumer", "")]
)
def test_a_member_that_synchronizes_says_which_protocol_it_takes_to_be_chosen(wire, kind, name):
    joined = join_with_id(wire)
    answer = sync(wire, joined, kind=kind, name=name)
    assert (answer.error_code, answer.assignment) == (Error.INCONSISTENT_GROUP_PROTOCOL, b"")
    assert sync(wire, joined, 4, kind=kind, name=name).assignment == b"all", "whose fields it has not"


@pytest.mark.parametrize("version", range(6))
def test_every_version_leaves(wire, version):
    joined = join_with_id(wire)
    request = messages.LeaveGroupRequest
    if version < 3:
        answer = wire.ask(request(group_id="g", member_id=joined.member_id), version)
    else:
        members = [request.MemberIdentity(member_id=joined.member_id), request.MemberIdentity(member_id="x")]
        answer = wire.ask(request(group_id="g", members=members), version)
        assert [member.error_code for member in answer.members] == [0, Error.UNKNOWN_MEMBER_ID]
    assert answer.error_code == 0
    assert describe(wire).group_state == "Empty"


def test_a_rebalance_answers_every_member_on_its_own_connection(wire, broker, connect):
    first = join_with_id(wire)
    sync(wire, first)
    other = connect(broker.bootstrap)
    told = join(other)
    join(other, told.member_id, reply=False)
    while beat(wire, first) is not Error.REBALANCE_IN_PROGRESS:
        pass
    first = join(wire, first.member_id)
    second = other.receive()
    assert (first.generation_id, second.generation_id, len(first.members), len(second.members)) == (2, 2, 2, 0)
    request = Sync(
        group_id="g",
        generation_id=2,
        member_id=second.member_id,
        protocol_type="consumer",
        protocol_name="range",
    )
    other.send(request, 5)
    assert sync(wire, first, data=b"half").assignment == b"half"
    assert other.receive().assignment == b"half"


def test_a_member_that_falls_silent_is_gone_after_its_session_timeout(wire):
    joined = join_with_id(wire, session=50)
    sync(wire, joined)
    while describe(wire).group_state != "Empty":
        pass
    assert beat(wire, joined) is Error.UNKNOWN_MEMBER_ID


def test_a_client_that_hangs_up_while_it_joins_does_not_hold_up_the_others(wire, broker, connect):
    first = join_with_id(wire)
    sync(wire, first)
    gone = connect(broker.bootstrap)
    join(gone, join(gone, session=50).member_id, session=50, reply=False)
    while beat(wire, first) is not Error.REBALANCE_IN_PROGRESS:
        pass
    gone.close()
    first = join(wire, first.member_id)
    assert first.error_code == 0
    while len(describe(wire).members) > 1:
        pass


@pytest.mark.parametrize("version", range(2, 10))
def test_every_version_commits_and_the_metadata_comes_back(wire, version):
    wire.create("t", 2)
    assert commit(wire, 41, partition=1, version=version, metadata="note") is Error.NONE
    for reading in range(1, 10):
        found = committed(wire, partition=1, version=reading)
        assert (found.committed_offset, found.metadata, found.error_code) == (41, "note", 0)
    assert committed(wire).committed_offset == -1


@pytest.mark.parametrize("version", [2, 4, 5])
@pytest.mark.parametrize(
    ("asked_ms", "after_ms", "left"),
    [
        (60_000, 0, 41),
        (60_000, 90_000, -1),
        (90 * WEEK_MS, 2 * WEEK_MS, 41),
        (-1, WEEK_MS // 2, 41),
        (-1, 2 * WEEK_MS, -1),
    ],
)
def test_an_offset_is_kept_for_as_long_as_its_client_asks(
    tmp_path, connect, monkeypatch, version, asked_ms, after_ms, left
):
    monkeypatch.setattr(scheduler, "GROUPS_EVERY_S", 600.0)
    request = messages.OffsetCommitRequest
    partition = request.OffsetCommitRequestPartition(partition_index=0, committed_offset=41)
    topics = [request.OffsetCommitRequestTopic(name="t", partitions=[partition])]
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        wire.create("t")
        asked = {"retention_time_ms": asked_ms} if version < 5 else {}
        wire.ask(request(group_id="g", generation_id_or_member_epoch=-1, topics=topics, **asked), version)
    if version == 5:  # it cannot say so
        left = 41 if after_ms < WEEK_MS else -1
    later_ms = clock.wall_ms() + after_ms
    monkeypatch.setattr(coordinator, "wall_ms", lambda: later_ms)
    monkeypatch.setattr(scheduler, "GROUPS_EVERY_S", 0.02)
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        until = time.monotonic() + (0.2 if left == 41 else 20)
        while time.monotonic() < until and committed(wire).committed_offset != -1:
            time.sleep(0.01)
        assert committed(wire).committed_offset == left


def test_all_offsets_of_a_group_can_be_asked_for(wire):
    wire.create("t", 2)
    wire.create("u")
    commit(wire, 1, partition=1)
    commit(wire, 2, topic="u")
    request = messages.OffsetFetchRequest
    answer = wire.ask(request(group_id="g", topics=None), 7)
    assert [(topic.name, topic.partitions[0].committed_offset) for topic in answer.topics] == [("t", 1), ("u", 2)]
    group = wire.ask(request(groups=[request.OffsetFetchRequestGroup(group_id="g", topics=None)]), 9).groups[0]
    assert [topic.name for topic in group.topics] == ["t", "u"]


@pytest.mark.parametrize("version", [7, 9])
def test_a_topic_that_is_named_twice_is_told_twice_each_time_with_its_partitions(wire, version):
    wire.create("t", 3)
    for partition in range(3):
        commit(wire, 10 + partition, partition=partition)
    request = messages.OffsetFetchRequest
    named = [[0, 1], [1, 2]]
    if version >= 8:
        topics = [request.OffsetFetchRequestTopics(name="t", partition_indexes=indexes) for indexes in named]
        message = request(groups=[request.OffsetFetchRequestGroup(group_id="g", topics=topics)])
        told = wire.ask(message, version).groups[0].topics
    else:
        topics = [request.OffsetFetchRequestTopic(name="t", partition_indexes=indexes) for indexes in named]
        told = wire.ask(request(group_id="g", topics=topics), version).topics
    found = [[(each.partition_index, each.committed_offset) for each in topic.partitions] for topic in told]
    assert found == [[(0, 10), (1, 11)], [(1, 11), (2, 12)]]


def test_a_group_that_is_named_twice_is_answered_twice_each_time_with_what_it_asks_for(wire):
    wire.create("t", 3)
    for partition in range(3):
        commit(wire, 10 + partition, partition=partition)
    kind = messages.OffsetFetchRequest
    asked = [[0], [2], None, None]  # all that there is, which may be much, is told once
    groups = [
        kind.OffsetFetchRequestGroup(
            group_id="g",
            topics=None if named is None else [kind.OffsetFetchRequestTopics(name="t", partition_indexes=named)],
        )
        for named in asked
    ]
    told = wire.ask(kind(groups=groups), 8).groups
    found = [[each.committed_offset for each in group.topics[0].partitions] for group in told]
    assert found == [[10], [12], [10, 11, 12]]


def test_what_cannot_be_committed_is_refused_and_the_rest_is_stored(wire):
    wire.create("t")
    for name in ("missing", ""):
        assert commit(wire, 1, topic=name) is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(wire, 1, partition=1) is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(wire, 1, metadata="m" * 4097) is Error.OFFSET_METADATA_TOO_LARGE
    assert commit(wire, 1, group="") is Error.INVALID_GROUP_ID
    joined = join_with_id(wire)
    assert commit(wire, 1, joined) is Error.REBALANCE_IN_PROGRESS
    sync(wire, joined)
    assert commit(wire, 7, joined) is Error.NONE
    assert commit(wire, 8) is Error.UNKNOWN_MEMBER_ID
    joined.generation_id += 1
    assert commit(wire, 8, joined) is Error.ILLEGAL_GENERATION
    assert commit(wire, 8, joined, group="other") is Error.GROUP_ID_NOT_FOUND
    assert commit(wire, 8, joined, group="other", version=8) is Error.ILLEGAL_GENERATION
    assert committed(wire).committed_offset == 7


def test_members_assignments_and_offsets_outlive_a_restart(tmp_path, connect):
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        wire.create("t")
        joined = join_with_id(wire)
        sync(wire, joined)
        commit(wire, 5, joined)
        commit(wire, 6, group="simple")
        assert commit(wire, 9, joined) is Error.NONE
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        assert beat(wire, joined) is Error.NONE
        assert sync(wire, joined).assignment == b"all"
        assert (committed(wire).committed_offset, committed(wire, "simple").committed_offset) == (9, 6)
        assert commit(wire, 10, joined) is Error.NONE


def test_what_is_stored_is_in_kafkas_own_formats(wire):
    wire.create("t")
    joined = join_with_id(wire)
    sync(wire, joined)
    commit(wire, 5, joined)
    group, offset = stored(wire)
    assert (group.type, group.value.version, group.error) == ("GroupMetadata", 3, None)
    assert group.key.message.group == "g"
    assert group.value.message.members[0].member_id == joined.member_id
    assert bytes(group.value.message.members[0].assignment) == b"all"
    assert (offset.type, offset.value.version, offset.value.message.offset) == ("OffsetCommit", 3, 5)


def test_the_brokers_own_topic_is_told_as_such_and_not_written_to_or_deleted(wire, make):
    wire.create("t")
    commit(wire, 1)
    (topic,) = wire.metadata(OFFSETS).topics
    assert topic.is_internal
    assert wire.produce(OFFSETS, make.records(b"v")).error_code == Error.INVALID_TOPIC_EXCEPTION
    answer = wire.ask(messages.DeleteTopicsRequest(topic_names=[OFFSETS], timeout_ms=30_000), 5).responses[0]
    assert answer.error_code == Error.INVALID_TOPIC_EXCEPTION


def listed(wire, version=5, **options):
    return [group.group_id for group in wire.ask(messages.ListGroupsRequest(**options), version).groups]


@pytest.mark.parametrize("version", range(6))
def test_every_version_lists_groups(wire, version):
    wire.create("t")
    commit(wire, 1, group="offsets-only")
    join_with_id(wire)
    assert listed(wire, version) == ["g", "offsets-only"]


def test_groups_are_listed_by_state_and_type(wire):
    wire.create("t")
    commit(wire, 1, group="offsets-only")
    sync(wire, join_with_id(wire))
    assert listed(wire, states_filter=["stable"]) == ["g"]
    assert listed(wire, states_filter=["Empty", "Dead"]) == ["offsets-only"]
    assert listed(wire, types_filter=["Classic"]) == ["g", "offsets-only"]
    assert listed(wire, types_filter=["consumer"]) == []


@pytest.mark.parametrize("version", range(6))
def test_every_version_describes_groups(wire, version):
    joined = join_with_id(wire)
    sync(wire, joined)
    group = describe(wire, version=version)
    assert (group.group_state, group.protocol_type, group.protocol_data) == ("Stable", "consumer", "range")
    (member,) = group.members
    assert (member.member_id, member.client_id, member.client_host) == (joined.member_id, "test", "/127.0.0.1")
    assert bytes(member.member_assignment) == b"all"
    assert describe(wire, "missing", version).group_state == "Dead"


def delete(wire, *names, version=2):
    answer = wire.ask(messages.DeleteGroupsRequest(groups_names=list(names)), version)
    return [Error.of(result.error_code) for result in answer.results]


@pytest.mark.parametrize("version", range(3))
def test_every_version_deletes_groups_without_members(tmp_path, connect, version):
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        wire.create("t")
        commit(wire, 1, group="old")
        join_with_id(wire)
        expected = [Error.NONE, Error.NON_EMPTY_GROUP, Error.GROUP_ID_NOT_FOUND]
        assert delete(wire, "old", "g", "missing", version=version) == expected
        assert committed(wire, "old").committed_offset == -1
    with Broker(tmp_path / "data") as broker:
        assert listed(connect(broker.bootstrap)) == []


def forget(wire, topic="t", partition=0, group="g"):
    request = messages.OffsetDeleteRequest
    asked = [request.OffsetDeleteRequestPartition(partition_index=partition)]
    answer = wire.ask(
        request(group_id=group, topics=[request.OffsetDeleteRequestTopic(name=topic, partitions=asked)]), 0
    )
    return Error.of(answer.error_code or answer.topics[0].partitions[0].error_code)


def test_offsets_are_deleted_unless_the_topic_is_subscribed(wire):
    wire.create("t")
    wire.create("u")
    commit(wire, 1)
    commit(wire, 2, topic="u")
    joined = join_with_id(wire)
    sync(wire, joined)
    assert forget(wire) is Error.GROUP_SUBSCRIBED_TO_TOPIC
    assert forget(wire, "u") is Error.NONE
    assert forget(wire, "missing") is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert forget(wire, group="missing") is Error.GROUP_ID_NOT_FOUND
    assert (committed(wire).committed_offset, committed(wire, topic="u").committed_offset) == (1, -1)


@pytest.mark.parametrize(
    ("kind", "expected"), [("consumer", Error.GROUP_SUBSCRIBED_TO_TOPIC), ("connect", Error.NON_EMPTY_GROUP)]
)
def test_consumers_whose_subscription_cannot_be_read_are_subscribed_to_all_and_others_keep_everything(
    wire, kind, expected
):
    wire.create("t")
    commit(wire, 1)
    sync(wire, join_with_id(wire, kind=kind, subscription=b"?"), kind=kind)
    assert forget(wire) is expected
    assert committed(wire).committed_offset == 1


def test_a_group_whose_last_offset_was_deleted_can_be_deleted_once(wire):
    wire.create("t")
    commit(wire, 1)
    assert forget(wire) is Error.NONE
    assert listed(wire) == []
    assert delete(wire, "g") == [Error.NONE]
    assert delete(wire, "g") == [Error.GROUP_ID_NOT_FOUND]


def test_the_offsets_of_a_deleted_topic_are_forgotten(wire):
    wire.create("t")
    commit(wire, 1)
    wire.ask(messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=30_000), 5)
    wire.create("t")
    assert committed(wire).committed_offset == -1


@pytest.mark.parametrize("killed", [False, True])
def test_a_new_topic_inherits_no_offsets_that_could_not_be_forgotten(tmp_path, connect, monkeypatch, killed):
    monkeypatch.setattr(scheduler, "GROUPS_EVERY_S", 600.0 if killed else 0.05)
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        wire.create("t")
        wire.create("u")
        assert commit(wire, 5) is commit(wire, 6, topic="u") is Error.NONE
        really = broker.disk.write

        def write(fd, buffers, position):
            if OFFSETS in os.readlink(f"/proc/self/fd/{fd}"):
                broker.disk.write = really
                broker.disk.fail("write", times=1)
            really(fd, buffers, position)

        broker.disk.write = write
        answer = wire.ask(messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=10_000), 5).responses[0]
        assert answer.error_code == 0
        if killed:
            shutil.copytree(tmp_path / "data", tmp_path / "copy", ignore=shutil.ignore_patterns("*.sock"))
        else:
            look_until_forgotten(wire)
    if killed:
        with Broker(tmp_path / "copy") as broker:
            look_until_forgotten(connect(broker.bootstrap))


def look_until_forgotten(wire):
    while committed(wire).committed_offset != -1:
        pass
    wire.create("t")
    assert committed(wire).committed_offset == -1
    assert committed(wire, topic="u").committed_offset == 6


def test_there_is_no_group_without_a_name_to_delete(wire):
    (result,) = wire.ask(messages.DeleteGroupsRequest(groups_names=[""]), 2).results
    assert result.error_code == Error.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("timeout", [0, -1, 1_800_001, 2**31 - 1])
def test_a_session_that_may_not_be_so_long_is_told_whether_the_member_is_known_or_not(wire, timeout):
    assert join(wire, session=timeout).error_code == Error.INVALID_SESSION_TIMEOUT
    assert join(wire, "nobody", session=timeout).error_code == Error.INVALID_SESSION_TIMEOUT
    assert join(wire, "nobody").error_code == Error.UNKNOWN_MEMBER_ID
