"""The coordinator's assignors: each partition has one member that wants it, evenly, and it stays if it can."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire.broker.groups.assignors import ASSIGNORS, MemberSpec, Target, assign_range, assign_uniform

T1, T2, T3 = (UUID(int=n) for n in (1, 2, 3))
EACH = pytest.mark.parametrize("assignor", ASSIGNORS)
Group = tuple[dict[UUID, int], dict[str, MemberSpec]]


@st.composite
def groups(draw: st.DrawFn, *, uniform: bool | None = None) -> Group:
    """Topics and the members that want some of them, and perhaps one that is gone."""
    topics = draw(st.dictionaries(st.uuids(), st.integers(1, 9), min_size=1, max_size=5))
    wishes = st.sets(st.sampled_from([*topics, T1]), min_size=1).map(frozenset)
    shared = draw(wishes) if (draw(st.booleans()) if uniform is None else uniform) else None
    members = draw(st.lists(st.text("abcde", min_size=1, max_size=3), unique=True, min_size=1, max_size=8))
    return topics, {member: MemberSpec(draw(wishes) if shared is None else shared) for member in members}


def again(topics: Mapping[UUID, int], members: Mapping[str, MemberSpec], target: Target) -> Target:
    """What becomes of a uniform target when it is made anew."""
    return assign_uniform(topics, {m: MemberSpec(members[m].topics, target.get(m, {})) for m in members})


def pairs(partitions: Mapping[UUID, frozenset[int]]) -> set[tuple[UUID, int]]:
    return {(topic, number) for topic, numbers in partitions.items() for number in numbers}


def check(topics: Mapping[UUID, int], members: Mapping[str, MemberSpec], target: Target) -> None:
    assert list(target) == list(members)
    wanted = {topic for member in members.values() for topic in member.topics} & topics.keys()
    everything = Counter((topic, number) for topic in wanted for number in range(topics[topic]))
    assert Counter(pair for given_to in target.values() for pair in pairs(given_to)) == everything
    for member, given_to in target.items():
        assert given_to.keys() <= members[member].topics
        assert all(given_to.values()), "no topic without partitions"


@EACH
@given(group=groups())
def test_each_partition_has_one_member_that_wants_it(assignor: str, group: Group) -> None:
    check(*group, ASSIGNORS[assignor](*group))


@EACH
@given(group=groups(), other=groups())
def test_what_members_had_of_other_groups_and_topics_does_not_change_that(
    assignor: str, group: Group, other: Group
) -> None:
    topics, members = group
    had = assign_uniform(*other)
    smaller = {topic: max(1, count - 3) for topic, count in topics.items()}
    mine = assign_uniform(topics, members)
    told = {m: MemberSpec(spec.topics, {**had.get(m, {}), **mine[m]}) for m, spec in members.items()}
    check(smaller, told, ASSIGNORS[assignor](smaller, told))


@given(group=groups(uniform=True))
def test_members_of_equal_wishes_have_equal_shares(group: Group) -> None:
    sizes = [len(pairs(given_to)) for given_to in assign_uniform(*group).values()]
    assert max(sizes) - min(sizes) <= 1


@given(group=groups())
def test_of_one_topic_no_subscriber_has_what_would_leave_another_with_two_less(group: Group) -> None:
    topics, members = group
    target = assign_uniform(topics, members)
    for member, spec in members.items():
        for given_to in target.values():
            if given_to.keys() & spec.topics:
                assert len(pairs(given_to)) - len(pairs(target[member])) <= 1


@given(group=groups())
def test_a_group_that_has_not_changed_keeps_its_target(group: Group) -> None:
    topics, members = group
    target = assign_uniform(topics, members)
    assert again(topics, members, target) == target


@given(group=groups(uniform=True), data=st.data())
def test_who_stays_keeps_what_it_has_when_another_leaves(group: Group, data: st.DataObject) -> None:
    topics, members = group
    target = assign_uniform(topics, members)
    gone = data.draw(st.sampled_from(sorted(members)))
    left = {member: spec for member, spec in members.items() if member != gone}
    after = again(topics, left, target) if left else {}
    assert all(pairs(target[member]) <= pairs(after[member]) for member in left)


@given(group=groups(uniform=True))
def test_no_more_moves_than_a_new_member_gets(group: Group) -> None:
    topics, members = group
    target = assign_uniform(topics, members)
    after = again(topics, {**members, "new member": next(iter(members.values()))}, target)
    lost = sum(len(pairs(target[member]) - pairs(after[member])) for member in members)
    assert lost == len(pairs(after["new member"]))


def test_range_gives_stretches_to_static_members_first() -> None:
    members = {
        "a": MemberSpec({T1, T2}),
        "b": MemberSpec({T1, T2}, instance_id="z"),
        "c": MemberSpec({T1, T2}, instance_id="y"),
    }
    stretches = {"c": {0, 1, 2}, "b": {3, 4}, "a": {5, 6}}
    assert assign_range({T1: 7, T2: 7}, members) == {
        member: dict.fromkeys((T1, T2), stretches[member]) for member in members
    }


def test_uniform_keeps_the_larger_share_with_who_has_it() -> None:
    members = {"a": MemberSpec({T1}, {T1: {0, 1}}), "b": MemberSpec({T1}, {T1: {2, 3, 4}})}
    assert assign_uniform({T1: 5}, members) == {"a": {T1: {0, 1}}, "b": {T1: {2, 3, 4}}}


def test_uniform_evens_what_members_of_different_wishes_had() -> None:
    members = {"a": MemberSpec({T1, T2}, {T1: {0, 1, 2, 3}, T2: {0, 1}}), "b": MemberSpec({T1}), "c": MemberSpec({T3})}
    assert assign_uniform({T1: 4, T2: 2, T3: 1}, members) == {
        "a": {T1: {0}, T2: {0, 1}},
        "b": {T1: {1, 2, 3}},
        "c": {T3: {0}},
    }


@EACH
def test_a_group_of_nobody_has_no_target(assignor: str) -> None:
    assert ASSIGNORS[assignor]({T1: 3}, {}) == {}


@pytest.mark.parametrize("alike", [True, False])
@EACH
def test_a_thousand_members_have_ten_thousand_partitions(assignor: str, alike: bool) -> None:
    dice = random.Random(1)
    topics = {UUID(int=n): 100 for n in range(100)}
    members = {f"m-{n}": MemberSpec(frozenset(topics if alike else dice.sample(list(topics), 50))) for n in range(1000)}
    check(topics, members, ASSIGNORS[assignor](topics, members))
