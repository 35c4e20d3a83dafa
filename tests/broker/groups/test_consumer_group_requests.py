"""Groups of KIP-848 over a socket: every version of their requests, and what they leave on the disk and find there."""

from __future__ import annotations

from uuid import UUID

import pytest

from tagwire import messages
from tagwire.broker import Broker
from tagwire.errors import ConfigError, Error
from tagwire.records import read
from tagwire.records.internal_topics import OFFSETS, decode_record

from ..conftest import Wire
from .test_group_requests import beat, committed, describe, join, join_with_id, sync

Beat = messages.ConsumerGroupHeartbeatRequest
EVERYTHING = b"\0\0\0\0\0\1\0\1t\0\0\0\2\0\0\0\0\0\0\0\1\xff\xff\xff\xff"
"""Partitions 0 and 1 of topic t, as an assignment of the classic protocol."""

JOINING = {"member_epoch": 0, "rebalance_timeout_ms": 5000, "topic_partitions": []}


@pytest.fixture
def broker(tmp_path):
    with Broker(tmp_path / "data", num_partitions=2) as running:
        yield running


@pytest.fixture
def topic(wire):
    wire.create("t", 2)
    return wire.metadata("t").topics[0].topic_id


def say(wire, member, version=1, **said):
    """A heartbeat of a member."""
    return wire.ask(Beat(group_id=said.pop("group", "g"), member_id=member, **said), version)


def enter(wire, member="a", version=1, topics=("t",), **said):
    answer = say(wire, member, version, subscribed_topic_names=list(topics), **{**JOINING, **said})
    assert answer.error_code == 0, answer
    return answer


def described(wire, group="g", version=1):
    return wire.ask(messages.ConsumerGroupDescribeRequest(group_ids=[group]), version).groups[0]


def commit(wire, member="", epoch=-1, version=10, *, topic=None, offset=7, group="g"):
    request = messages.OffsetCommitRequest
    asked = request.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    named = {"topic_id": topic} if version >= 10 else {"name": "t"}
    message = request(
        group_id=group,
        generation_id_or_member_epoch=epoch,
        member_id=member,
        topics=[request.OffsetCommitRequestTopic(partitions=[asked], **named)],
    )
    return Error.of(wire.ask(message, version).topics[0].partitions[0].error_code)


def fetch_offsets(wire, member=None, epoch=-1, version=10, *, topics=None, group="g"):
    request = messages.OffsetFetchRequest
    asked = request.OffsetFetchRequestGroup(group_id=group, member_id=member, member_epoch=epoch, topics=topics)
    return wire.ask(request(groups=[asked]), version).groups[0]


def kinds(wire):
    """The types of what is in __consumer_offsets, and whether each record deletes."""
    records = [record for batch in read(wire.fetch(OFFSETS, 0).records) for record in batch.records()]
    return [(decode_record(OFFSETS, r.key, r.value).type, r.value is None) for r in records]


def test_a_member_without_a_subscription_has_an_epoch_that_it_can_heartbeat_in(wire, topic):
    entered = enter(wire, "a", topics=())
    assert (entered.error_code, entered.member_epoch) == (0, 1)
    again = say(wire, "a", member_epoch=1)
    assert (again.error_code, again.member_epoch) == (0, 1)


@pytest.mark.parametrize(("release", "error"), [(None, Error.NONE), ("4.0", Error.FENCED_MEMBER_EPOCH)])
def test_a_member_that_was_fenced_joins_again_at_once_as_from_kafka_4_3_on(connect, release, error):
    with Broker(as_release=release) as broker:
        wire = connect(broker.bootstrap)
        wire.create("t")
        enter(wire, "a", topics=["t"])
        assert say(wire, "a", member_epoch=1, subscribed_topic_names=["t", "u"]).member_epoch == 2
        assert say(wire, "a", member_epoch=9).error_code == Error.FENCED_MEMBER_EPOCH
        again = say(wire, "a", subscribed_topic_names=["t"], **JOINING)
        assert again.error_code == error


def test_a_member_is_described_with_what_it_has_until_it_has_given_that_up(wire, topic):
    wire.create("u")
    enter(wire, "a")
    assert say(wire, "a", member_epoch=1, subscribed_topic_names=["u"]).error_code == 0
    (found,) = described(wire).members
    assert [one.topic_name for one in found.assignment.topic_partitions] == ["t"]
    assert [one.topic_name for one in found.target_assignment.topic_partitions] == ["u"]


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_joins_heartbeats_and_leaves_in_every_version(wire, topic, version):
    answer = enter(wire, "" if version == 0 else "a", version)
    member = answer.member_id
    assert member == "a" if version else len(member) == 36
    assert (answer.member_epoch, answer.heartbeat_interval_ms) == (1, 5000)
    assert [(one.topic_id, one.partitions) for one in answer.assignment.topic_partitions] == [(topic, [0, 1])]
    again = say(wire, member, version, member_epoch=1)
    assert (again.error_code, again.member_epoch, again.assignment) == (0, 1, None)
    group = described(wire, version=version)
    assert (group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name) == (
        "Stable",
        1,
        1,
        "uniform",
    )
    (found,) = group.members
    assert (found.member_id, found.member_epoch, found.subscribed_topic_names) == (member, 1, ["t"])
    assert found.client_host == "/127.0.0.1"
    assert found.assignment == found.target_assignment
    assert [(one.topic_name, one.partitions) for one in found.assignment.topic_partitions] == [("t", [0, 1])]
    assert found.subscribed_topic_regex == ""
    assert found.member_type == (1 if version else -1)
    gone = say(wire, member, version, member_epoch=-1)
    assert (gone.member_epoch, gone.heartbeat_interval_ms) == (-1, 0)
    assert described(wire).group_state == "Empty"


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"group": ""}, Error.INVALID_REQUEST),
        ({"group": " "}, Error.INVALID_REQUEST),
        ({"instance_id": ""}, Error.INVALID_REQUEST),
        ({"rack_id": " "}, Error.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, Error.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -2}, Error.INVALID_REQUEST),
        ({"topic_partitions": None}, Error.INVALID_REQUEST),
        ({"topic_partitions": [Beat.TopicPartitions(partitions=[0])]}, Error.INVALID_REQUEST),
        ({"subscribed_topic_names": None}, Error.INVALID_REQUEST),
        ({"member_epoch": -2}, Error.INVALID_REQUEST),
        ({"member_epoch": -3}, Error.INVALID_REQUEST),
        ({"server_assignor": "mine"}, Error.UNSUPPORTED_ASSIGNOR),
        ({"server_assignor": "x" * 30_000}, Error.UNSUPPORTED_ASSIGNOR),
        ({"subscribed_topic_regex": "("}, Error.INVALID_REGULAR_EXPRESSION),
        ({"subscribed_topic_regex": "a" * 30_000}, Error.INVALID_REGULAR_EXPRESSION),
        ({"member_epoch": 1}, Error.GROUP_ID_NOT_FOUND),
        ({"member_epoch": -1}, Error.GROUP_ID_NOT_FOUND),
    ],
)
def test_what_no_member_may_say_is_refused_and_nothing_is_kept(wire, broker, topic, said, error):
    answer = say(wire, "a", **{"subscribed_topic_names": ["t"], **JOINING, **said})
    assert Error.of(answer.error_code) is error
    assert 0 < len(answer.error_message) < 500
    assert broker.stats()["groups"] == 0


def test_a_member_without_an_id_is_refused_from_version_1_on(wire, topic):
    answer = say(wire, "", subscribed_topic_names=["t"], **JOINING)
    assert Error.of(answer.error_code) is Error.INVALID_REQUEST


def test_who_it_was_and_what_it_had_is_there_after_a_restart_and_the_member_goes_on(
    tmp_path, wire, connect, topic, broker
):
    enter(wire, "a", instance_id="i", rack_id="r", subscribed_topic_regex="t|u", server_assignor="range")
    before = described(wire)
    assert commit(wire, "a", 1, topic=topic) is Error.NONE
    broker.stop()
    with Broker(tmp_path / "data") as again:
        wire = connect(again.bootstrap)
        assert described(wire) == before
        assert (before.members[0].instance_id, before.members[0].rack_id) == ("i", "r")
        assert (before.members[0].subscribed_topic_regex, before.assignor_name) == ("t|u", "range")
        answer = say(wire, "a", member_epoch=1)
        assert (answer.error_code, answer.member_epoch, answer.assignment) == (0, 1, None)
        assert committed(wire, version=9).committed_offset == 7


def test_a_group_is_kept_in_kafkas_own_records_and_deleted_by_them(wire, topic):
    enter(wire, subscribed_topic_regex="t")
    assert {kind for kind, deletes in kinds(wire) if not deletes} == {
        "ConsumerGroupMetadata",
        "ConsumerGroupPartitionMetadata",
        "ConsumerGroupMemberMetadata",
        "ConsumerGroupTargetAssignmentMetadata",
        "ConsumerGroupTargetAssignmentMember",
        "ConsumerGroupCurrentMemberAssignment",
        "ConsumerGroupRegularExpression",
    }
    say(wire, "a", member_epoch=-1)
    assert wire.ask(messages.DeleteGroupsRequest(groups_names=["g"]), 2).results[0].error_code == 0
    last = dict(kinds(wire))
    assert all(last.values()), last
    assert Error.of(described(wire).error_code) is Error.GROUP_ID_NOT_FOUND


def test_a_group_with_members_is_not_deleted_and_its_topics_offsets_neither(wire, topic):
    enter(wire)
    assert commit(wire, "a", 1, topic=topic) is Error.NONE
    delete = messages.DeleteGroupsRequest(groups_names=["g"])
    assert Error.of(wire.ask(delete, 2).results[0].error_code) is Error.NON_EMPTY_GROUP
    request = messages.OffsetDeleteRequest
    partition = request.OffsetDeleteRequestPartition(partition_index=0)
    topics = [request.OffsetDeleteRequestTopic(name="t", partitions=[partition])]
    answer = wire.ask(request(group_id="g", topics=topics), 0)
    assert Error.of(answer.topics[0].partitions[0].error_code) is Error.GROUP_SUBSCRIBED_TO_TOPIC
    say(wire, "a", member_epoch=-1)
    assert wire.ask(request(group_id="g", topics=topics), 0).topics[0].partitions[0].error_code == 0
    assert committed(wire).committed_offset == -1


def test_a_group_is_listed_by_its_type_and_is_no_classic_one(wire, topic):
    enter(wire)

    def listed(*types, version=5):
        answer = wire.ask(messages.ListGroupsRequest(types_filter=list(types)), version)
        return [(group.group_id, group.protocol_type, group.group_state, group.group_type) for group in answer.groups]

    assert listed() == listed("Consumer") == [("g", "consumer", "Stable", "consumer")]
    assert listed("classic") == []
    found = describe(wire)
    assert (found.group_state, found.error_code) == ("Dead", 0)
    found = describe(wire, version=6)
    assert (found.group_state, Error.of(found.error_code)) == ("Dead", Error.GROUP_ID_NOT_FOUND)
    assert "not a classic one" in found.error_message
    assert Error.of(describe(wire, "other", version=6).error_code) is Error.GROUP_ID_NOT_FOUND


def test_a_classic_group_is_none_of_kip_848(wire, topic):
    sync(wire, join_with_id(wire))
    found = described(wire)
    assert (Error.of(found.error_code), found.group_state) == (Error.GROUP_ID_NOT_FOUND, "")
    assert Error.of(described(wire, "").error_code) is Error.INVALID_GROUP_ID


def test_offsets_are_committed_in_a_members_epoch(wire, topic):
    enter(wire)
    assert commit(wire, "a", 1, topic=topic) is Error.NONE
    assert commit(wire, "a", 1, 9) is Error.NONE
    assert commit(wire, "a", 1, 8) is Error.UNSUPPORTED_VERSION
    assert commit(wire, "a", 0, topic=topic) is Error.STALE_MEMBER_EPOCH
    assert commit(wire, "b", 1, topic=topic) is Error.UNKNOWN_MEMBER_ID
    assert commit(wire, topic=topic) is Error.UNKNOWN_MEMBER_ID
    assert commit(wire, "a", 1, topic=topic, group="other") is Error.GROUP_ID_NOT_FOUND
    assert commit(wire, "a", 1, topic=UUID(int=9)) is Error.UNKNOWN_TOPIC_ID
    say(wire, "a", member_epoch=-1)
    assert commit(wire, topic=topic, offset=9) is Error.NONE


def test_offsets_are_fetched_by_members_and_topics_by_their_ids(wire, topic):
    enter(wire)
    commit(wire, "a", 1, topic=topic)
    wanted = messages.OffsetFetchRequest.OffsetFetchRequestTopics
    topics = [wanted(topic_id=topic, partition_indexes=[0, 1]), wanted(topic_id=UUID(int=9), partition_indexes=[3])]
    found = fetch_offsets(wire, "a", 1, topics=topics)
    assert [
        (one.topic_id, p.partition_index, p.committed_offset, Error.of(p.error_code))
        for one in found.topics
        for p in one.partitions
    ] == [
        (topic, 0, 7, Error.NONE),
        (topic, 1, -1, Error.NONE),
        (UUID(int=9), 3, -1, Error.UNKNOWN_TOPIC_ID),
    ]
    assert [one.topic_id for one in fetch_offsets(wire).topics] == [topic]
    assert [one.name for one in fetch_offsets(wire, version=9).topics] == ["t"]
    assert Error.of(fetch_offsets(wire, "a", 0).error_code) is Error.STALE_MEMBER_EPOCH
    assert Error.of(fetch_offsets(wire, "b", 1, 9).error_code) is Error.UNKNOWN_MEMBER_ID
    assert fetch_offsets(wire, "b", 1, group="other").error_code == 0


# Groups that change their protocol ------------------------------------------------------------------------------------


def assigned(answer):
    message = messages.ConsumerProtocolAssignment.decode(answer.assignment[2:], 0)
    return {(topic.topic, index) for topic in message.assigned_partitions for index in topic.partitions}


def test_a_live_classic_group_becomes_one_of_kip_848_and_is_served_on(wire, connect, broker, topic):
    old = join_with_id(wire)
    sync(wire, old, data=EVERYTHING)
    other = connect(broker.bootstrap)
    new = enter(other)
    assert (new.member_epoch, new.assignment.topic_partitions) == (old.generation_id + 1, [])
    assert {(m.member_id, m.member_type) for m in described(wire).members} == {(old.member_id, 0), ("a", 1)}
    assert beat(wire, old) is Error.REBALANCE_IN_PROGRESS
    again = join(wire, old.member_id)
    assert (again.generation_id, again.leader, again.protocol_name) == (new.member_epoch, "", "range")
    half = assigned(sync(wire, again))
    assert len(half) == 1
    mine = say(other, "a", member_epoch=new.member_epoch).assignment.topic_partitions
    assert {("t", index) for one in mine for index in one.partitions} == {("t", 0), ("t", 1)} - half
    assert beat(wire, again) is Error.NONE
    assert ("GroupMetadata", True) in kinds(wire)


def test_a_group_is_a_classic_one_again_when_its_last_member_of_kip_848_has_gone(wire, connect, broker, topic):
    old = join_with_id(wire)
    sync(wire, old, data=EVERYTHING)
    other = connect(broker.bootstrap)
    enter(other)
    again = join(wire, old.member_id)
    sync(wire, again)
    say(other, "a", member_epoch=-1)
    assert (describe(wire).group_state, describe(wire).protocol_type) == ("PreparingRebalance", "consumer")
    last = join(wire, old.member_id)
    assert (last.leader, last.generation_id) == (old.member_id, again.generation_id + 1)
    assert [m.member_id for m in last.members] == [old.member_id]
    assert sync(wire, last, data=b"mine").assignment == b"mine"


@pytest.mark.parametrize(("migration", "may"), [("disabled", False), ("downgrade", False), ("upgrade", True)])
def test_a_group_changes_its_protocol_only_where_that_is_allowed(connect, migration, may):
    with Broker(group_migration=migration, num_partitions=2) as broker:
        wire, other = connect(broker.bootstrap), connect(broker.bootstrap)
        wire.create("t", 2)
        sync(wire, join_with_id(wire), data=EVERYTHING)
        answer = say(other, "a", subscribed_topic_names=["t"], **JOINING)
        assert Error.of(answer.error_code) is (Error.NONE if may else Error.GROUP_ID_NOT_FOUND)
        if may:
            say(other, "a", member_epoch=-1)
            assert described(wire).group_state == "Assigning"


def test_an_empty_group_becomes_what_the_first_to_join_speaks(wire, topic):
    enter(wire)
    commit(wire, "a", 1, topic=topic)
    say(wire, "a", member_epoch=-1)
    joined = join_with_id(wire)
    sync(wire, joined)
    assert describe(wire).group_state == "Stable"
    leave = messages.LeaveGroupRequest
    wire.ask(leave(group_id="g", members=[leave.MemberIdentity(member_id=joined.member_id)]), 5)
    assert enter(wire, "b").member_epoch == 1
    assert committed(wire).committed_offset == 7


def test_a_static_member_that_goes_on_by_the_classic_protocol_rebalances_nobody(wire, topic):
    enter(wire, instance_id="i")
    joined = join(wire, instance="i")
    assert (describe(wire).group_state, describe(wire).members[0].group_instance_id) == ("Stable", "i")
    assert beat(wire, joined) is Error.NONE
    assert assigned(sync(wire, joined)) == {("t", 0), ("t", 1)}


def test_a_member_of_kip_848_is_made_to_leave_as_a_classic_one_is(wire, connect, broker, topic):
    sync(wire, join_with_id(wire), data=EVERYTHING)
    enter(connect(broker.bootstrap))
    enter(connect(broker.bootstrap), "b")
    leave = messages.LeaveGroupRequest
    answer = wire.ask(leave(group_id="g", members=[leave.MemberIdentity(member_id="a")]), 5)
    assert answer.members[0].error_code == 0
    assert "a" not in [member.member_id for member in described(wire).members]


def test_members_that_are_made_to_leave_together_are_one_change_of_the_group(wire, connect, broker, topic):
    sync(wire, join_with_id(wire), data=EVERYTHING)
    for name in "abc":
        enter(connect(broker.bootstrap), name)
    before = described(wire).group_epoch
    leave = messages.LeaveGroupRequest
    named = [leave.MemberIdentity(member_id=name) for name in ("a", "nobody", "b", "a")]
    answer = wire.ask(leave(group_id="g", members=named), 5)
    told = [(member.member_id, Error.of(member.error_code)) for member in answer.members]
    unknown = ("nobody", Error.UNKNOWN_MEMBER_ID)
    assert told == [("a", Error.NONE), unknown, ("b", Error.NONE), ("a", Error.NONE)]  # as Kafka tells of one twice
    after = described(wire)
    assert "c" in [member.member_id for member in after.members]
    assert (after.group_epoch, len(after.members)) == (before + 1, 2)


def test_who_is_no_member_leaves_and_nothing_of_the_group_changes(wire, connect, broker, topic):
    enter(wire)
    before = described(wire).group_epoch
    leave = messages.LeaveGroupRequest
    answer = wire.ask(leave(group_id="g", members=[leave.MemberIdentity(member_id="nobody")]), 5)
    assert answer.members[0].error_code == Error.UNKNOWN_MEMBER_ID
    assert described(wire).group_epoch == before


# What is told ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "level", "error"), [(None, 1, 0), ("4.1", 1, 0), ("3.9", None, Error.UNSUPPORTED_VERSION)]
)
def test_the_feature_is_told_where_the_groups_are_served(connect, release, level, error):
    with Broker(as_release=release) as broker:
        wire = connect(broker.bootstrap)
        wire.create("t")
        request = messages.ApiVersionsRequest(client_software_name="a", client_software_version="1")
        told = wire.ask(request, 4 if release != "3.9" else 3)
        for features, told_level in (
            ("finalized_features", "max_version_level"),
            ("supported_features", "max_version"),
        ):
            levels = {one.name: getattr(one, told_level) for one in getattr(told, features)}
            assert levels.get("group.version") == level
        answer = say(wire, "", 0, subscribed_topic_names=["t"], **JOINING)
        assert answer.error_code == error
        if error:
            assert described(wire, version=0).error_code == error


def test_a_release_that_did_not_have_them_does_not_list_them(connect):
    with Broker(as_release="3.6") as broker:
        request = messages.ApiVersionsRequest(client_software_name="a", client_software_version="1")
        keys = {one.api_key for one in connect(broker.bootstrap).ask(request, 3).api_keys}
        assert not keys & {68, 69}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"group_session_timeout_s": 1.0, "group_heartbeat_interval_s": 1.0}, "group_heartbeat_interval_s"),
        ({"group_heartbeat_interval_s": 0}, "group_heartbeat_interval_s"),
        ({"group_migration": "both"}, "group_migration"),
    ],
)
def test_timeouts_and_migration_are_checked_when_a_broker_is_made(options, told):
    with pytest.raises(ConfigError, match=told):
        Broker(**options)


def test_a_member_that_is_silent_for_the_brokers_session_timeout_is_given_up(connect):
    with Broker(group_session_timeout_s=0.3, group_heartbeat_interval_s=0.1) as broker:
        wire = connect(broker.bootstrap)
        wire.create("t")
        assert enter(wire).heartbeat_interval_ms == 100
        while described(wire).members:
            pass
        assert Error.of(say(wire, "a", member_epoch=1).error_code) is Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("release", "error"), [(None, Error.NONE), ("4.3", Error.NONE), ("4.1", Error.STALE_MEMBER_EPOCH)]
)
def test_commits_of_an_older_epoch_are_taken_as_the_release_does(release, error):
    with Broker(as_release=release, num_partitions=2) as broker:
        wire = Wire(broker.bootstrap)
        wire.create("t", 2)
        topic = wire.metadata("t").topics[0].topic_id
        everything = [Beat.TopicPartitions(topic_id=topic, partitions=[0, 1])]
        enter(wire)
        say(wire, "a", member_epoch=1, subscribed_topic_names=["t", "u"], topic_partitions=everything)
        enter(wire, "b", topics=["u"])
        assert say(wire, "a", member_epoch=2, topic_partitions=everything).member_epoch == 3
        assert commit(wire, "a", 2, 9) is error
        assert commit(wire, "a", 0, 9) is Error.STALE_MEMBER_EPOCH
