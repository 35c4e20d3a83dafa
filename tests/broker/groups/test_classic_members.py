"""Members of the classic protocol in a group of KIP-848, with the time told to it, and groups that change protocol."""

from __future__ import annotations

import pytest

from tagwire import messages
from tagwire.broker.groups import classic_members, conversion, embedded_protocol
from tagwire.broker.groups.classic_group import ClassicGroup
from tagwire.broker.groups.consumer_group import ConsumerGroup
from tagwire.broker.groups.membership import GroupMetadata, Joining, MemberMetadata, State
from tagwire.broker.groups.stored import change_records
from tagwire.errors import Error, KafkaError

from .consumer_talk import SESSION, Talk

CLASSIC_SESSION, REBALANCE = 10_000, 60_000


def subscription(*topics, owned=(), version=1):
    """The bytes of what a classic member subscribes to, and owns of topic t."""
    owned = [messages.ConsumerProtocolSubscription.TopicPartition(topic="t", partitions=list(owned))] if owned else []
    message = messages.ConsumerProtocolSubscription(topics=list(topics or ("t",)), owned_partitions=owned)
    return version.to_bytes(2, "big") + message.encode(version)


def assignment(*partitions):
    return embedded_protocol.write_assignment({"t": list(partitions)}, b"\0\0")


class Both(Talk):
    """A group with members of both protocols."""

    def join_classic(self, member="", *, owned=(), instance=None, protocols=None, takes_id=False, **said):
        joining = Joining(
            member,
            instance,
            "c",
            "/h",
            said.get("session", CLASSIC_SESSION),
            REBALANCE,
            said.get("kind", "consumer"),
            protocols or (("range", subscription(owned=owned)),),
            takes_id=takes_id,
        )
        return self.store(classic_members.join(self.group, joining, said.get("new_id", "new")))

    def sync(self, member, generation, instance=None, protocol="range"):
        """The partitions of topic t that it may have."""
        result = classic_members.sync(self.group, member, instance, generation, "consumer", protocol, self.now)
        topics = embedded_protocol.read_assignment(result.assignment).assigned_partitions
        return {index for topic in topics for index in topic.partitions}

    def classic_beat(self, member, generation, instance=None):
        return classic_members.heartbeat(self.group, member, instance, generation, self.now)

    def leave_classic(self, member, instance=None):
        (error,) = self.store(classic_members.leave(self.group, [(member, instance)]))
        return error


@pytest.fixture
def both():
    """One with a member of KIP-848 that has all partitions."""
    talk = Both()
    talk.join("a")
    return talk


def refused(act, *args, **options):
    with pytest.raises(KafkaError) as caught:
        act(*args, **options)
    return caught.value.error


def test_a_classic_member_is_told_its_id_first_and_is_no_member_until_it_comes_with_it(both):
    told = both.join_classic(takes_id=True)
    assert (told.error, told.member_id) == (Error.MEMBER_ID_REQUIRED, "new")
    assert set(both.group.members) == {"a"}
    assert both.join_classic("new", takes_id=True).error is Error.NONE
    assert both.group.members["new"].is_classic


def test_a_classic_member_gets_its_part_when_it_is_free_and_is_told_to_join_again_for_it(both):
    joined = both.join_classic("b")
    assert (joined.generation, joined.leader, joined.protocol) == (2, "", "range")
    assert both.sync("b", 2) == set()
    assert both.classic_beat("b", 2) is Error.NONE
    both.beat("a", owned=None)
    assert both.classic_beat("b", 2) is Error.NONE
    both.beat("a")
    assert both.classic_beat("b", 2) is Error.REBALANCE_IN_PROGRESS
    assert both.join_classic("b").generation == 2
    assert both.sync("b", 2) == {2, 3}
    assert both.classic_beat("b", 2) is Error.NONE


def test_a_classic_member_gives_up_what_it_is_told_to_by_joining_without_it():
    both = Both()
    both.join_classic("b")
    assert both.sync("b", 1) == {0, 1, 2, 3}
    both.join("a")
    assert both.has("a") == set()
    assert both.classic_beat("b", 1) is Error.REBALANCE_IN_PROGRESS
    assert refused(both.sync, "b", 1) is Error.REBALANCE_IN_PROGRESS
    again = both.join_classic("b", owned=(0, 1, 2, 3))
    assert again.generation == 1
    kept = both.sync("b", 1)
    assert len(kept) == 2
    assert both.classic_beat("b", 1) is Error.REBALANCE_IN_PROGRESS
    assert both.join_classic("b", owned=kept).generation == 2
    assert both.sync("b", 2) == kept
    both.settle("a")
    assert {int(name[-1]) for name in both.has("a")} == {0, 1, 2, 3} - kept


def test_who_speaks_of_another_generation_or_is_another_is_refused(both):
    both.join_classic("b")
    both.join_classic("", instance="i", new_id="s")
    assert refused(both.classic_beat, "b", 9) is Error.ILLEGAL_GENERATION
    assert refused(both.classic_beat, "nobody", 2) is Error.UNKNOWN_MEMBER_ID
    assert refused(both.classic_beat, "a", 2) is Error.UNKNOWN_MEMBER_ID
    assert refused(both.classic_beat, "b", 2, "i") is Error.FENCED_INSTANCE_ID
    assert refused(both.classic_beat, "b", 2, "other") is Error.UNKNOWN_MEMBER_ID
    assert refused(both.sync, "b", 2, None, "sticky") is Error.INCONSISTENT_GROUP_PROTOCOL
    assert both.leave_classic("nobody") is Error.UNKNOWN_MEMBER_ID
    assert refused(both.group.check_commit, "b", 9, 9) is Error.ILLEGAL_GENERATION
    both.group.check_commit("b", 2, 8)


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"kind": "connect"}, Error.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": (("sticky", subscription()),)}, Error.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": (("range", b"garbage"),)}, Error.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": (("range", b""),)}, Error.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_what_a_classic_member_may_not_say_is_refused(both, said, error):
    both.join_classic("b")
    assert refused(both.join_classic, "c", **said) is error
    assert refused(both.join_classic, "b", **said) is error, "though it is the only one"


def test_a_classic_member_is_given_up_after_its_own_session(both):
    both.join_classic("b")
    both.sync("b", 2)
    both.wait(CLASSIC_SESSION - 1)
    both.classic_beat("b", 2)
    both.wait(CLASSIC_SESSION - 1)
    assert "b" in both.group.members
    both.wait(1)
    assert set(both.group.members) == {"a"}


@pytest.mark.parametrize("forgets", ["to synchronize", "to join again"])
def test_a_classic_member_that_heartbeats_alone_is_given_up_after_its_rebalance_timeout(both, forgets):
    both.join_classic("b")
    if forgets == "to join again":
        both.sync("b", 2)
        both.join("c")
    for _ in range(REBALANCE // 5000):
        assert "b" in both.group.members
        both.classic_beat("b", 2)
        both.beat("a")
        both.wait(5000)
    assert "b" not in both.group.members


def test_a_static_member_goes_on_by_the_other_protocol_with_what_it_had(both):
    both.join("s", instance="i")
    both.settle()
    had = both.has("s")
    assert refused(both.join, "s2", instance="i") is Error.UNRELEASED_INSTANCE_ID
    joined = both.join_classic("", instance="i", new_id="s3")
    assert {f"t-{index}" for index in both.sync("s3", joined.generation, "i")} == had
    assert set(both.group.members) == {"a", "s3"}
    both.join("s4", instance="i")
    assert both.has("s4") == had
    assert not both.group.members["s4"].is_classic


def test_a_static_classic_member_leaves_by_its_instance_id_alone(both):
    both.join_classic("", instance="i", new_id="s")
    assert both.leave_classic("", "i") is Error.NONE
    assert set(both.group.members) == {"a"}


def test_what_classic_members_said_is_there_after_a_restart(both):
    both.join_classic("b")
    restarted = both.restarted()
    assert restarted.members == both.group.members
    both.group = restarted
    both.sync("b", 2)
    both.wait(CLASSIC_SESSION)
    assert set(both.group.members) == {"a"}
    assert SESSION > CLASSIC_SESSION


# Groups that change their protocol ------------------------------------------------------------------------------------


def classic_group(*members, generation=3, kind="consumer"):
    """A stable classic group of (member id, subscription, assignment)."""
    stored = tuple(
        MemberMetadata(name, None, "c", "/h", CLASSIC_SESSION, REBALANCE, said, assigned)
        for name, said, assigned in members
    )
    group = ClassicGroup("g", str)
    group.restore(GroupMetadata(generation, kind, "range", members[0][0], stored), 0)
    return group


def converted(group, topics):
    new = ConsumerGroup("g", topics, SESSION)
    new.apply(conversion.upgraded(group, topics))
    return new


def test_members_of_a_classic_group_have_what_they_had_when_it_becomes_one_of_kip_848():
    talk = Both()
    old = classic_group(("b", subscription(), assignment(0, 1)), ("c", subscription("t", "u"), assignment(2, 3)))
    talk.group = converted(old, talk.topics)
    assert (talk.group.epoch, talk.group.target_epoch) == (3, 3)
    assert {name: talk.names(m.current.assigned) for name, m in talk.group.members.items()} == {
        "b": {"t-0", "t-1"},
        "c": {"t-2", "t-3"},
    }
    assert talk.group.members["c"].subscription.topics == {"t", "u"}
    assert talk.join("a").epoch == 4
    assert talk.group.members["b"].current.epoch == 3


def test_in_the_midst_of_a_rebalance_members_have_what_they_say_they_own_and_nothing_twice():
    talk = Both()
    old = classic_group(("b", subscription(owned=(0, 1)), b""), ("c", subscription(owned=(1, 2, 3)), b""))
    group = converted(old, talk.topics)
    has = [talk.names(member.current.assigned) for member in group.members.values()]
    assert has == [{"t-0", "t-1"}, {"t-2", "t-3"}]


@pytest.mark.parametrize(
    "group",
    [
        classic_group(("b", subscription(), b""), kind="connect"),
        classic_group(("b", b"garbage", b"")),
        classic_group(("b", subscription(), b"\0")),
        classic_group(("b", subscription(), b"\0\0\x7f\xff\xff\xff")),
    ],
)
def test_a_group_that_is_none_of_consumers_or_says_garbage_stays_what_it_is(group):
    assert refused(conversion.upgraded, group, Talk().topics) is Error.GROUP_ID_NOT_FOUND


def test_a_group_of_classic_members_alone_becomes_a_classic_one_with_what_they_were_to_have():
    both = Both()
    both.join_classic("b", protocols=(("range", subscription()), ("sticky", subscription())))
    both.join_classic("c", protocols=(("sticky", subscription()), ("range", subscription())))
    assert both.group.is_classic_without(frozenset())
    metadata, spoken = conversion.downgraded(both.group)
    assert (metadata.generation, metadata.protocol_type) == (both.group.epoch, "consumer")
    group = ClassicGroup("g", str)
    group.restore(metadata, both.now, spoken)
    assert group.state is State.STABLE
    assert [name for name, _ in group.members["c"].protocols] == ["sticky", "range"]
    has = [
        {
            index
            for topic in embedded_protocol.read_assignment(m.assignment).assigned_partitions
            for index in topic.partitions
        }
        for m in group.members.values()
    ]
    assert has[0] | has[1] == {0, 1, 2, 3}
    assert not has[0] & has[1]
    group.begin_rebalance(both.now)
    assert group.heartbeat("b", None, group.generation, both.now) is Error.REBALANCE_IN_PROGRESS


def test_what_deletes_a_group_leaves_nothing_of_it(both):
    both.join_classic("b")
    both.records += change_records("g", both.group.tombstones())
    restarted = both.restarted()
    assert restarted.is_nothing
    assert (restarted.targets, restarted.regexes, restarted.held_bytes) == ({}, {}, 0)
