"""The rules of a group of KIP-848, with the time told to it: no broker, no clock, no sleep."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwire.broker.groups import topic_regex
from tagwire.broker.groups.consumer_group import MAX_MEMBERS
from tagwire.broker.groups.consumer_member import CurrentAssignment, MemberState, TopicIdPartition, reconciled
from tagwire.broker.groups.consumer_records import MAX_GROUP_BYTES, ConsumerGroupState
from tagwire.errors import Error, KafkaError

from .consumer_talk import REBALANCE, SESSION, Talk, shape


@pytest.fixture
def talk():
    return Talk()


def refused(act, *args, **options):
    with pytest.raises(KafkaError) as caught:
        act(*args, **options)
    return caught.value.error


# Joining, moving, leaving -----------------------------------------------------------------------------------------


def test_one_member_joins_and_has_everything_at_once(talk):
    result = talk.join("a", assignor="range")
    assert (result.epoch, talk.has("a")) == (1, {"t-0", "t-1", "t-2", "t-3"})
    assert talk.group.state is ConsumerGroupState.STABLE


def test_a_second_member_gets_partitions_only_when_the_first_has_given_them_up(talk):
    talk.join("a", assignor="range")
    result = talk.join("b")
    assert (result.epoch, result.assigned) == (2, frozenset())
    assert talk.group.members["b"].current.state is MemberState.UNRELEASED_PARTITIONS
    assert talk.group.state is ConsumerGroupState.RECONCILING
    told = talk.beat("a", owned=None)
    assert (told.epoch, talk.names(told.assigned)) == (1, {"t-0", "t-1"})
    assert talk.group.members["a"].current.state is MemberState.UNREVOKED_PARTITIONS
    assert talk.beat("b").assigned is None
    assert talk.beat("a", owned=talk.at("t-0", "t-1", "t-2")).assigned is None
    assert talk.beat("a", owned=talk.at("t-0", "t-1")).epoch == 2
    assert talk.names(talk.beat("b").assigned) == {"t-2", "t-3"}
    assert talk.group.state is ConsumerGroupState.STABLE


def test_who_leaves_leaves_its_partitions_to_the_others_at_their_next_heartbeat(talk):
    talk.join("a")
    talk.join("b")
    talk.settle()
    assert talk.leave("b").epoch == -1
    assert talk.group.state is ConsumerGroupState.ASSIGNING
    talk.settle("a")
    assert talk.has("a") == {"t-0", "t-1", "t-2", "t-3"}
    talk.leave("a")
    assert talk.group.state is ConsumerGroupState.EMPTY


def test_a_heartbeat_that_says_nothing_new_stores_nothing(talk):
    talk.join("a")
    stored = len(talk.records)
    assert talk.beat("a", owned=None).assigned is None
    assert len(talk.records) == stored


def test_a_full_heartbeat_is_told_everything_again(talk):
    talk.join("a")
    told = talk.beat("a", topics=["t"], rebalance_timeout_ms=REBALANCE)
    assert talk.names(told.assigned) == talk.has("a")


def test_another_subscription_is_a_new_epoch_and_other_partitions():
    talk = Talk(t=2, u=1)
    talk.join("a")
    assert talk.beat("a", topics=["u"], owned=None).epoch == 1
    talk.settle()
    assert (talk.group.epoch, talk.has("a")) == (2, {"u-0"})


def test_a_topic_that_comes_grows_or_goes_is_noticed_at_the_next_heartbeat():
    talk = Talk(t=1)
    talk.join("a", "t", "later")
    assert talk.has("a") == {"t-0"}
    talk.topics.put("later", 1)
    talk.settle()
    assert talk.has("a") == {"t-0", "later-0"}
    talk.topics.put("t", 3)
    talk.settle()
    assert talk.has("a") == {"t-0", "t-1", "t-2", "later-0"}
    talk.topics.put("other", 3)
    epoch = talk.group.epoch
    talk.settle()
    assert talk.group.epoch == epoch
    talk.topics.drop("later")
    talk.told["a"] = talk.told["a"][0], talk.at("t-0", "t-1", "t-2")
    talk.settle()
    assert talk.has("a") == {"t-0", "t-1", "t-2"}


def test_a_topic_made_anew_is_another_one():
    talk = Talk(t=1)
    talk.join("a")
    before = talk.told["a"][1]
    talk.topics.drop("t")
    talk.topics.put("t", 1)
    talk.beat("a", owned=None)
    talk.told["a"] = talk.told["a"][0], frozenset()
    talk.settle()
    assert talk.has("a") == {"t-0"}
    assert not talk.told["a"][1] & before


def test_most_members_choose_the_assignor(talk):
    talk.join("a", assignor="range")
    talk.join("b", assignor="range")
    talk.join("c")
    assert talk.group.assignor == "range"


# Regular expressions --------------------------------------------------------------------------------------------------


def test_a_regular_expression_stands_for_the_topics_that_there_are_and_that_come():
    talk = Talk(t=1, orders=1)
    talk.join("a", regex="t.*")
    assert talk.has("a") == {"t-0"}
    talk.topics.put("t2", 1)
    talk.settle()
    assert talk.has("a") == {"t-0", "t2-0"}
    talk.beat("a", regex="")
    talk.told["a"] = talk.told["a"][0], frozenset()
    talk.settle()
    assert (talk.has("a"), talk.group.regexes) == (set(), {})


def test_what_a_regular_expression_stands_for_follows_who_may_see_the_topics():
    talk = Talk(t1=1, t2=1)
    granted = {"t1"}
    talk.join("a", regex="t.*", sees=granted.__contains__, acl_version=1)
    assert talk.has("a") == {"t1-0"}
    granted.add("t2")
    talk.beat("a", sees=granted.__contains__, acl_version=2)
    assert talk.has("a") == {"t1-0", "t2-0"}
    granted.remove("t1")
    talk.beat("a", sees=granted.__contains__, acl_version=3)
    talk.beat("a", sees=granted.__contains__, acl_version=3)
    assert talk.has("a") == {"t2-0"}
    epoch = talk.group.epoch
    talk.beat("a", sees=granted.__contains__, acl_version=4)
    assert talk.group.epoch == epoch


def test_names_and_a_regular_expression_hold_together():
    talk = Talk(t=1, orders=1, other=1)
    talk.join("a", "other", regex="t.*", topics=["orders"])
    assert talk.has("a") == {"t-0", "orders-0"}


def test_a_regular_expression_is_kept_for_as_long_as_a_member_has_it():
    talk = Talk(t=1)
    talk.join("a", regex="t")
    talk.join("b", regex="t")
    talk.settle()
    talk.leave("a")
    assert set(talk.group.regexes) == {"t"}
    talk.leave("b")
    assert talk.group.regexes == {}
    assert talk.restarted().regexes == {}


def test_a_regular_expression_that_new_topics_make_too_costly_stands_for_what_it_did(monkeypatch):
    talk = Talk(t=1)
    talk.join("a", regex="t.*")
    monkeypatch.setattr(topic_regex, "MOST_STEPS", 10)
    talk.topics.put("t2", 1)
    talk.settle()
    assert talk.has("a") == {"t-0"}
    assert refused(talk.join, "b", regex="t2.*") is Error.INVALID_REGULAR_EXPRESSION


def test_a_regular_expression_that_is_none_is_refused_and_nothing_is_stored(talk):
    assert refused(talk.join, "a", regex="(") is Error.INVALID_REGULAR_EXPRESSION
    assert (talk.records, talk.group.members) == ([], {})


# Epochs ---------------------------------------------------------------------------------------------------------------


def test_an_epoch_that_is_not_the_members_is_fenced(talk):
    talk.join("a")
    assert refused(talk.beat, "a", 2) is Error.FENCED_MEMBER_EPOCH
    assert refused(talk.beat, "a", 2**31 - 1) is Error.FENCED_MEMBER_EPOCH
    assert refused(talk.beat, "nobody", 1) is Error.UNKNOWN_MEMBER_ID
    talk.join("b")
    talk.settle()
    talk.leave("b")
    talk.settle("a")
    assert refused(talk.beat, "a", 1) is Error.FENCED_MEMBER_EPOCH


def test_a_lost_response_is_given_again_to_who_has_nothing_else(talk):
    talk.join("a")
    assert talk.beat("a", 0, owned=frozenset()).epoch == 1
    talk.join("b")
    talk.settle()
    talk.leave("b")
    talk.settle("a")
    epoch = talk.group.members["a"].current.previous_epoch
    assert epoch < talk.told["a"][0]
    assert talk.beat("a", epoch, owned=talk.at("t-0")).epoch == talk.told["a"][0]
    assert refused(talk.beat, "a", epoch, owned=None) is Error.FENCED_MEMBER_EPOCH
    beyond = talk.told["a"][1] | {TopicIdPartition(talk.topics.get("t").topic_id, 99)}
    assert refused(talk.beat, "a", epoch, owned=beyond) is Error.FENCED_MEMBER_EPOCH


def test_partitions_that_nobody_gave_are_not_had_by_saying_so(talk):
    talk.join("a")
    talk.join("b")
    everything = talk.at("t-0", "t-1", "t-2", "t-3")
    assert talk.beat("b", owned=everything).assigned is None
    talk.settle("a", "b")
    assert not talk.told["a"][1] & talk.told["b"][1]


@pytest.mark.parametrize(
    ("state", "owned", "reached"),
    [
        (MemberState.STABLE, None, (1, MemberState.UNREVOKED_PARTITIONS, {0}, {1})),
        (MemberState.STABLE, {0}, (9, MemberState.STABLE, {0, 2}, set())),
        (MemberState.STABLE, {0, 1}, (1, MemberState.UNREVOKED_PARTITIONS, {0}, {1})),
        (MemberState.UNRELEASED_PARTITIONS, {0}, (9, MemberState.STABLE, {0, 2}, set())),
    ],
)
def test_a_member_comes_to_its_target_by_what_it_says_it_has(state, owned, reached):
    def at(indexes):
        return frozenset(TopicIdPartition(None, index) for index in indexes)

    current = CurrentAssignment(1, 0, state, at({0, 1}))
    new = reconciled(current, 9, at({0, 2}), lambda partition: False, None if owned is None else at(owned))
    assert (new.epoch, new.state, new.assigned, new.revoking) == (*reached[:2], at(reached[2]), at(reached[3]))
    assert new.previous_epoch == 1


def test_a_state_of_a_newer_broker_is_fenced_unless_the_member_has_nothing():
    current = CurrentAssignment(1, 0, MemberState.UNKNOWN)
    for owned in (None, frozenset({TopicIdPartition(None, 1)})):
        with pytest.raises(KafkaError, match="FENCED_MEMBER_EPOCH"):
            reconciled(current, 9, frozenset(), lambda partition: False, owned)
    assert reconciled(current, 9, frozenset(), lambda partition: False, frozenset()).is_reconciled_to(9)


# Static members -------------------------------------------------------------------------------------------------------


def test_a_static_member_comes_back_to_what_it_had_without_a_new_epoch(talk):
    talk.join("a", instance="i")
    talk.join("b")
    talk.settle()
    had, epoch = talk.has("a"), talk.group.epoch
    assert talk.leave("a", "i", comes_back=True).epoch == -2
    assert talk.group.members["a"].current.epoch == -2
    talk.settle("b")
    assert talk.join("a2", instance="i").epoch == epoch
    assert (talk.has("a2"), talk.group.epoch) == (had, epoch)
    assert set(talk.group.members) == {"a2", "b"}
    assert refused(talk.beat, "a", epoch, instance="i") is Error.FENCED_INSTANCE_ID


def test_an_instance_id_is_had_by_one_member_until_it_says_that_it_is_away(talk):
    talk.join("a", instance="i")
    assert refused(talk.join, "a2", instance="i") is Error.UNRELEASED_INSTANCE_ID
    assert refused(talk.beat, "a", 1, instance="other") is Error.UNKNOWN_MEMBER_ID


def test_a_static_member_that_leaves_for_good_leaves_its_partitions(talk):
    talk.join("a", instance="i")
    talk.leave("a", "i")
    assert talk.group.members == {}
    assert talk.join("a2", instance="i").epoch == 3


def test_a_static_member_that_does_not_come_back_in_its_session_is_given_up(talk):
    talk.join("a", instance="i")
    talk.leave("a", "i", comes_back=True)
    talk.wait(SESSION - 1)
    assert talk.group.members
    talk.wait(1)
    assert not talk.group.members


# Time -----------------------------------------------------------------------------------------------------------------


def test_a_silent_member_is_given_up_after_its_session(talk):
    talk.join("a")
    talk.join("b")
    talk.settle()
    talk.wait(SESSION - 1)
    talk.beat("a")
    talk.wait(1)
    assert set(talk.group.members) == {"a"}
    talk.settle("a")
    assert len(talk.has("a")) == 4
    assert refused(talk.beat, "b", 2) is Error.UNKNOWN_MEMBER_ID


def test_who_does_not_give_its_partitions_up_in_time_is_given_up_though_it_heartbeats(talk):
    talk.join("a", rebalance=2 * SESSION)
    talk.join("b")
    talk.beat("a", owned=None)
    for _ in range(4):
        talk.wait(SESSION // 2 - 1)
        talk.beat("a", owned=None)
        talk.beat("b", owned=None)
    talk.wait(SESSION // 2)
    assert set(talk.group.members) == {"b"}
    talk.settle("b")
    assert len(talk.has("b")) == 4


def test_what_time_has_made_is_tried_again_when_it_could_not_be_stored(talk):
    talk.join("a")
    talk.refuses = True
    talk.wait(SESSION)
    assert talk.group.members
    assert talk.group.next_deadline_ms == talk.now + 1000
    talk.refuses = False
    talk.wait(1000)
    assert not talk.group.members


def test_what_is_not_stored_has_not_been(talk):
    talk.join("a")
    before = shape(talk.group)
    talk.refuses = True
    talk.join("b")
    talk.leave("a")
    assert shape(talk.group) == before


# Limits ---------------------------------------------------------------------------------------------------------------


def test_a_group_has_so_many_members(talk):
    for number in range(MAX_MEMBERS):
        talk.group.members[f"m{number}"] = None
    assert refused(talk.join, "a") is Error.GROUP_MAX_SIZE_REACHED


def test_what_members_say_may_take_so_much_together(talk):
    names = [f"{number}-{'x' * 200}" for number in range(30_000)]
    talk.join("a", *names)
    talk.join("b", *names)
    assert refused(talk.join, "c", *names) is Error.GROUP_MAX_SIZE_REACHED
    assert talk.group.held_bytes <= MAX_GROUP_BYTES
    talk.leave("a")
    talk.join("c", *names)


# Commits --------------------------------------------------------------------------------------------------------------


def test_a_member_commits_in_its_epoch_and_nobody_else_does(talk):
    group = talk.group
    group.check_commit("", -1, 9)
    talk.join("a")
    group.check_commit("a", 1, 9)
    assert refused(group.check_commit, "a", 1, 8) is Error.UNSUPPORTED_VERSION
    assert refused(group.check_commit, "a", 2, 9) is Error.STALE_MEMBER_EPOCH
    assert refused(group.check_commit, "a", 2, None) is Error.ILLEGAL_GENERATION
    assert refused(group.check_commit, "b", 1, 9) is Error.UNKNOWN_MEMBER_ID
    assert refused(group.check_commit, "", -1, 9) is Error.UNKNOWN_MEMBER_ID
    group.check_fetch(None, -1)
    group.check_fetch("a", 1)
    assert refused(group.check_fetch, "a", 0) is Error.STALE_MEMBER_EPOCH
    assert refused(group.check_fetch, "b", 1) is Error.UNKNOWN_MEMBER_ID


# Whatever happens -----------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c", "d"])
ACTS = st.one_of(
    st.tuples(st.just("join"), NAMES, st.sampled_from([("t",), ("t", "u"), ("u", "missing")])),
    st.tuples(st.just("static"), NAMES, st.sampled_from(["i", "j"])),
    st.tuples(st.just("regex"), NAMES, st.sampled_from(["t|u", ".*", ""])),
    st.tuples(st.just("beat"), NAMES),
    st.tuples(st.just("silent"), NAMES),
    st.tuples(st.just("lost"), NAMES),
    st.tuples(st.just("leave"), NAMES, st.booleans()),
    st.tuples(st.just("wait"), st.sampled_from([1, 10_000, SESSION])),
    st.tuples(st.just("grow"), st.sampled_from(["t", "u", "v"]), st.integers(1, 5)),
    st.tuples(st.just("drop"), st.sampled_from(["t", "u", "v"])),
)


def act(talk, what, *args):
    """Do it; whatever a member is refused, it gives everything up."""
    if what == "wait":
        talk.wait(*args)
    elif what == "grow":
        known = talk.topics.get(args[0])
        talk.topics.put(args[0], max(args[1], len(known.partitions) if known else 0))
    elif what == "drop":
        if talk.topics.get(args[0]):
            talk.topics.drop(args[0])
    else:
        member = args[0]
        known = talk.group.members.get(member)
        instance = known.subscription.instance_id if known is not None else None
        before = talk.told.get(member)
        try:
            if what == "join":
                talk.join(member, *args[1])
            elif what == "static":
                talk.join(member, instance=args[1])
            elif what == "regex":
                talk.join(member, regex=args[1])
            elif what == "leave" and member in talk.told:
                talk.leave(member, instance, comes_back=args[1] and instance is not None)
            elif member in talk.told:
                talk.beat(member, instance=instance, owned=None if what == "silent" else "as told")
                if what == "lost":
                    talk.told[member] = before
        except KafkaError:
            talk.told.pop(member, None)


@settings(max_examples=150, deadline=None)
@given(st.lists(ACTS, max_size=25), st.integers(0, 100))
def test_whatever_happens_no_partition_is_had_twice_and_a_restart_finds_what_was(acts, compacted):
    talk = Talk(t=3, u=2)
    for one in acts:
        act(talk, *one)
        owned = [partition for member in talk.group.members.values() for partition in member.current.owned]
        assert len(owned) == len(set(owned))
    restarted = talk.restarted()
    assert shape(restarted) == shape(talk.group)
    assert shape(talk.restarted(talk.compacted(compacted * len(talk.records) // 100))) == shape(restarted)
    for member in restarted.members.values():
        assert restarted.is_owned(next(iter(member.current.owned))) if member.current.owned else True
    assert talk.group.held_bytes >= 0


@settings(max_examples=80, deadline=None)
@given(st.lists(ACTS, max_size=20))
def test_whatever_happened_members_that_go_on_come_to_have_everything_once(acts):
    talk = Talk(t=3, u=2)
    for one in acts:
        act(talk, *one)
    talk.wait(10 * REBALANCE)  # whoever is still a member joins anew
    assert not talk.group.members
    talk.told.clear()
    talk.group = talk.restarted()
    for member in ("a", "b"):
        talk.join(member, regex=".*")
    talk.settle()
    everything = {f"{topic.name}-{index}" for topic in talk.topics for index in range(len(topic.partitions))}
    assert talk.has("a") | talk.has("b") == everything
    assert not talk.has("a") & talk.has("b")


def test_a_member_may_commit_what_it_has_had_since_an_older_epoch_and_nothing_else(talk):
    talk.join("a")
    talk.join("b")
    talk.settle()
    for group in (talk.group, talk.restarted()):
        for partition in talk.at("t-0", "t-1", "t-2", "t-3"):
            if partition in talk.told["a"][1]:
                group.check_commit("a", 1, 9, [partition])
                group.check_commit("a", 1, None, [partition])
                assert refused(group.check_commit, "a", 1, 9) is Error.STALE_MEMBER_EPOCH
                assert refused(group.check_commit, "a", 0, 9, [partition]) is Error.STALE_MEMBER_EPOCH
                assert refused(group.check_commit, "a", 3, 9, [partition]) is Error.STALE_MEMBER_EPOCH
            else:
                assert refused(group.check_commit, "a", 1, 9, [partition]) is Error.STALE_MEMBER_EPOCH
                assert refused(group.check_commit, "a", 1, None, [partition]) is Error.ILLEGAL_GENERATION
                assert refused(group.check_commit, "b", 1, 9, [partition]) is Error.STALE_MEMBER_EPOCH
                group.check_commit("b", 2, 9, [partition])


def test_a_member_may_commit_in_an_older_epoch_what_it_is_to_give_up(talk):
    talk.join("a")
    talk.join("b")
    talk.settle()
    talk.join("c")
    talk.join("d")
    talk.beat("a")
    current = talk.group.members["a"].current
    assert current.revoking
    talk.group.check_commit("a", 1, 9, current.owned)
    assert refused(talk.group.check_commit, "a", 1, 9, talk.told["b"][1]) is Error.STALE_MEMBER_EPOCH


def test_a_partition_that_comes_back_is_of_the_epoch_in_which_it_does(talk):
    talk.join("a")
    talk.join("b")
    talk.settle()
    given = talk.told["b"][1]
    talk.leave("b")
    talk.settle("a")
    assert given <= talk.told["a"][1]
    assert refused(talk.group.check_commit, "a", 2, 9, given) is Error.STALE_MEMBER_EPOCH
    talk.group.check_commit("a", 2, 9, talk.told["a"][1] - given)


def test_what_was_stored_without_epochs_was_granted_in_the_members_own():
    at = frozenset({TopicIdPartition(UUID(int=1), 0)})
    before = CurrentAssignment(3, 2, assigned=at)
    assert before == CurrentAssignment(3, 2, assigned=at, granted=dict.fromkeys(at, 3))
    after = reconciled(before, 5, at, lambda partition: True, at)
    assert after.granted == dict.fromkeys(at, 3)
