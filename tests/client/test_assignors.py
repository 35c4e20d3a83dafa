"""Assignors: whatever a group is like, each partition has one member that wants it, and it stays there if it can."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tagwire.client import ClusterMetadata, GroupMetadata, Node, PartitionMetadata, TopicMetadata, TopicPartition
from tagwire.client.consuming.assignors import (
    ASSIGNORS,
    Assignor,
    CooperativeStickyAssignor,
    RangeAssignor,
    RebalanceProtocol,
    RoundRobinAssignor,
    StickyAssignor,
    TopicRacks,
    topic_racks,
)
from tagwire.client.consuming.consumer_protocol import Assignment, Subscription

EACH = pytest.mark.parametrize("kind", ASSIGNORS.values(), ids=ASSIGNORS)
STICKY = pytest.mark.parametrize("kind", [StickyAssignor, CooperativeStickyAssignor])
FEW = settings(max_examples=40)
Kind = Callable[[], Assignor]
Group = tuple[dict[str, dict[int, frozenset[str]]], dict[str, Subscription]]

MOST_STEPS = 8
"""Rebalances in which a cooperative group has given up what is to move, and got it."""

RACKS = ["a", "b", "c"]
NAMES = ["orders", "clicks", "t-1", "t-2"]


@st.composite
def groups(draw: st.DrawFn, *, uniform: bool | None = None, racks: bool | None = None) -> Group:
    """Topics and their members' subscriptions; some name a topic that is not there."""
    with_racks = draw(st.booleans()) if racks is None else racks
    placed = st.frozensets(st.sampled_from(RACKS), max_size=2) if with_racks else st.just(frozenset[str]())
    topics = {
        name: dict(enumerate(draw(st.lists(placed, min_size=1, max_size=9))))
        for name in draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1))
    }
    wishes = st.lists(st.sampled_from([*topics, "gone"]), unique=True, min_size=1).map(tuple)
    members = draw(st.lists(st.text("abcdeä", min_size=1, max_size=3), unique=True, min_size=1, max_size=7))
    alike = draw(st.booleans()) if uniform is None else uniform
    shared = draw(wishes)
    return topics, {
        member: Subscription(
            shared if alike else draw(wishes),
            rack=draw(st.sampled_from([None, *RACKS])) if with_racks else None,
            instance_id=draw(st.sampled_from([None, f"static-{member}"])),
        )
        for member in members
    }


def joined(
    kind: Kind, subscription: Subscription, partitions: tuple[TopicPartition, ...] = (), generation: int = 1
) -> Subscription:
    """What a member tells that had these partitions in this generation."""
    assignor = kind()
    assignor.on_assignment(Assignment(partitions), GroupMetadata("g", generation))
    owned = partitions if RebalanceProtocol.COOPERATIVE in assignor.protocols else ()
    data = assignor.subscription_user_data(subscription.topics, owned)
    return Subscription(subscription.topics, data, owned, generation, subscription.rack, subscription.instance_id)


def settled(kind: Kind, topics: TopicRacks, members: Mapping[str, Subscription]) -> dict[str, set[TopicPartition]]:
    """What members have when nothing is to be given up any more."""
    told = dict(members)
    for generation in range(4, 4 + MOST_STEPS):
        assigned = {member: set(one.partitions) for member, one in kind().assign(topics, told).items()}
        if kind is not CooperativeStickyAssignor or all(set(told[m].owned_partitions) <= assigned[m] for m in told):
            return assigned
        told = {m: joined(kind, members[m], tuple(sorted(assigned[m])), generation) for m in told}
    raise AssertionError(f"members still give up what they have after {MOST_STEPS} rebalances")


def wanted(topics: TopicRacks, members: Mapping[str, Subscription]) -> set[TopicPartition]:
    asked = {topic for told in members.values() for topic in told.topics}
    return {TopicPartition(topic, index) for topic in asked & topics.keys() for index in topics[topic]}


def check(topics: TopicRacks, members: Mapping[str, Subscription], assigned: Mapping[str, set[TopicPartition]]) -> None:
    assert assigned.keys() == members.keys()
    assert Counter(one for given_to in assigned.values() for one in given_to) == Counter(wanted(topics, members))
    for member, given_to in assigned.items():
        assert {one.topic for one in given_to} <= set(members[member].topics)


@EACH
@FEW
@given(group=groups())
def test_each_partition_has_one_member_that_wants_it(kind: Kind, group: Group) -> None:
    check(*group, settled(kind, *group))


@EACH
@FEW
@given(group=groups(), data=st.data())
def test_what_members_claim_does_not_change_that(kind: Kind, group: Group, data: st.DataObject) -> None:
    topics, members = group
    claims = st.lists(
        st.builds(TopicPartition, st.sampled_from([*NAMES, "gone"]), st.integers(-1, 12)), max_size=12
    ).map(tuple)
    told = {
        member: joined(kind, subscription, data.draw(claims), data.draw(st.integers(-1, 3)))
        for member, subscription in members.items()
    }
    check(topics, members, settled(kind, topics, told))


@EACH
@FEW
@given(group=groups(), junk=st.binary(max_size=40))
def test_user_data_of_another_software_is_no_user_data(kind: Kind, group: Group, junk: bytes) -> None:
    topics, members = group
    told = {member: Subscription(one.topics, junk, (), -1, one.rack) for member, one in members.items()}
    check(topics, members, {m: set(given.partitions) for m, given in kind().assign(topics, told).items()})


@FEW
@given(group=groups(uniform=True))
@EACH
def test_members_of_equal_wishes_have_equal_shares(kind: Kind, group: Group) -> None:
    topics, members = group
    assigned = settled(kind, topics, members)
    if kind is RangeAssignor:
        for topic in topics:
            sizes = [sum(one.topic == topic for one in given) for given in assigned.values()]
            assert max(sizes) - min(sizes) <= 1
        return
    sizes = [len(given) for given in assigned.values()]
    assert max(sizes) - min(sizes) <= 1


@STICKY
@FEW
@given(group=groups(racks=False))
def test_no_partition_could_move_to_a_member_with_two_less(kind: Kind, group: Group) -> None:
    topics, members = group
    assigned = settled(kind, topics, members)
    for member, subscription in members.items():
        for given_to in assigned.values():
            if any(one.topic in subscription.topics for one in given_to):
                assert len(given_to) - len(assigned[member]) <= 1


@STICKY
@FEW
@given(group=groups(racks=False))
def test_a_group_that_has_not_changed_keeps_all(kind: Kind, group: Group) -> None:
    topics, members = group
    before = settled(kind, topics, members)
    told = {member: joined(kind, members[member], tuple(sorted(before[member])), 7) for member in members}
    after = kind().assign(topics, told)
    assert {member: set(given.partitions) for member, given in after.items()} == before


@STICKY
@FEW
@given(group=groups(uniform=True, racks=False), data=st.data())
def test_who_stays_keeps_what_it_has_when_another_leaves(kind: Kind, group: Group, data: st.DataObject) -> None:
    topics, members = group
    before = settled(kind, topics, members)
    gone = data.draw(st.sampled_from(sorted(members)))
    left = {member: one for member, one in members.items() if member != gone}
    after = settled(
        kind, topics, {member: joined(kind, one, tuple(sorted(before[member]))) for member, one in left.items()}
    )
    assert all(before[member] <= after[member] for member in left)


@STICKY
@FEW
@given(group=groups(uniform=True, racks=False))
def test_no_more_moves_than_a_new_member_gets(kind: Kind, group: Group) -> None:
    topics, members = group
    before = settled(kind, topics, members)
    told = {member: joined(kind, one, tuple(sorted(before[member]))) for member, one in members.items()}
    told["new member"] = Subscription(next(iter(members.values())).topics)
    after = settled(kind, topics, told)
    lost = sum(len(before[member] - after[member]) for member in members)
    assert lost == len(after["new member"])
    sizes = [len(given_to) for given_to in after.values()]
    assert max(sizes) - min(sizes) <= 1


@FEW
@given(group=groups(), data=st.data())
def test_in_a_cooperative_rebalance_nothing_is_given_that_another_still_has(group: Group, data: st.DataObject) -> None:
    topics, members = group
    before = settled(CooperativeStickyAssignor, topics, members)
    wishes = st.lists(st.sampled_from([*topics]), unique=True, min_size=1).map(tuple)
    told = {
        member: joined(CooperativeStickyAssignor, one, tuple(sorted(before[member])))
        for member, one in members.items()
        if data.draw(st.booleans())
    }
    told["new member"] = Subscription(data.draw(wishes))
    owner = {partition: member for member, one in told.items() for partition in one.owned_partitions}
    for member, assigned in CooperativeStickyAssignor().assign(topics, told).items():
        assert {owner.get(partition, member) for partition in assigned.partitions} <= {member}


@pytest.mark.parametrize("kind", [RangeAssignor, RoundRobinAssignor])
@FEW
@given(group=groups(uniform=True), data=st.data())
def test_static_members_have_the_same_under_new_member_ids(kind: Kind, group: Group, data: st.DataObject) -> None:
    topics, members = group
    first = {
        f"m{n}": Subscription(one.topics, rack=one.rack, instance_id=m) for n, (m, one) in enumerate(members.items())
    }
    renamed = dict(zip(data.draw(st.permutations(list(first))), first.values(), strict=True))

    def by_instance(told: Mapping[str, Subscription]) -> dict[str | None, Assignment]:
        return {told[member].instance_id: given for member, given in kind().assign(topics, told).items()}

    assert by_instance(first) == by_instance(renamed)


def test_where_racks_matter_range_and_sticky_give_members_what_is_in_theirs() -> None:
    topics = {"orders": {index: frozenset((RACKS[index % 3],)) for index in range(9)}}
    members = {f"member in {rack}": Subscription(("orders",), rack=rack) for rack in RACKS}
    for kind in (RangeAssignor, StickyAssignor, CooperativeStickyAssignor):
        for member, given_to in kind().assign(topics, members).items():
            racks = {rack for one in given_to.partitions for rack in topics["orders"][one.partition]}
            assert racks == {members[member].rack}


def test_co_partitioned_topics_stay_together_within_racks() -> None:
    topics = {name: {index: frozenset((RACKS[index % 3],)) for index in range(7)} for name in ("orders", "clicks")}
    members = {f"m{n}": Subscription(("orders", "clicks"), rack=RACKS[n]) for n in range(3)}
    for given_to in RangeAssignor().assign(topics, members).values():
        numbers = {name: [one.partition for one in given_to.partitions if one.topic == name] for name in topics}
        assert numbers["orders"] == numbers["clicks"]


def test_racks_of_partitions_are_those_of_their_replicas_brokers() -> None:
    brokers = {1: Node(1, "h", 1, "a"), 2: Node(2, "h", 2, "b"), 3: Node(3, "h", 3)}
    partitions = {0: PartitionMetadata(0, 1, replicas=(1, 2)), 1: PartitionMetadata(1, 3, replicas=(3, 9))}
    metadata = ClusterMetadata(None, 1, brokers, {"orders": TopicMetadata("orders", partitions=partitions)})
    assert topic_racks(metadata) == {"orders": {0: {"a", "b"}, 1: set()}}


@STICKY
def test_the_later_generation_has_what_two_members_claim(kind: Kind) -> None:
    topics: TopicRacks = {"orders": dict.fromkeys(range(4), frozenset())}
    claimed = TopicPartition("orders", 2)
    told = {
        "early": joined(kind, Subscription(("orders",)), (claimed,), 4),
        "late": joined(kind, Subscription(("orders",)), (claimed,), 5),
    }
    for order in (["early", "late"], ["late", "early"]):
        assert claimed in kind().assign(topics, {member: told[member] for member in order})["late"].partitions


@STICKY
def test_what_a_member_had_long_ago_does_not_come_back_to_it_where_it_wants_it_no_more(kind: Kind) -> None:
    topics: TopicRacks = {"clicks": dict.fromkeys(range(6), frozenset()), "orders": {0: frozenset()}}
    all_clicks = tuple(TopicPartition("clicks", index) for index in range(6))
    told = {
        "had one": joined(kind, Subscription(("orders",)), all_clicks[:1], 1),
        "has all": joined(kind, Subscription(("clicks", "orders")), all_clicks, 5),
        "new": Subscription(("clicks",)),
    }
    check(topics, told, settled(kind, topics, told))


def test_of_one_generation_neither_has_what_both_claim_until_both_gave_it_up() -> None:
    topics: TopicRacks = {"orders": dict.fromkeys(range(4), frozenset())}
    claims = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
    told = {
        member: joined(CooperativeStickyAssignor, Subscription(("orders",)), tuple(claims), 5)
        for member in ("m1", "m2")
    }
    for given_to in CooperativeStickyAssignor().assign(topics, told).values():
        assert not set(given_to.partitions) & set(claims)


@pytest.mark.parametrize("seed", range(4))
@EACH
def test_a_thousand_members_have_ten_thousand_partitions(kind: Kind, seed: int) -> None:
    dice = random.Random(seed)
    racks = frozenset(RACKS[:2]) if seed & 1 else frozenset[str]()
    topics = {f"t-{n}": dict.fromkeys(range(100), racks) for n in range(100)}
    members = {
        f"m-{n}": Subscription(
            tuple(dice.sample(list(topics), 50)) if seed & 2 else tuple(topics), rack=dice.choice(RACKS)
        )
        for n in range(1000)
    }
    assigned = kind().assign(topics, members)
    assert sum(len(given_to.partitions) for given_to in assigned.values()) == 10_000


# Whom Java's assignors (kafka-clients 4.4.0) give what; members by id, instance id, rack.
MEMBERS = (("Alice", None, "a"), ("bob", None, "b"), ("carol", "z", "c"), ("dave", None, "b"))
ALIKE = {
    "range": ("clicks-1 orders-2", "clicks-2 orders-3", "clicks-0 orders-0 orders-1", "orders-4"),
    "roundrobin": ("clicks-1 orders-2", "clicks-2 orders-3", "clicks-0 orders-1", "orders-0 orders-4"),
    "sticky": ("clicks-0 orders-1", "clicks-1 orders-2", "clicks-2 orders-3", "orders-0 orders-4"),
    "cooperative-sticky": ("clicks-0 orders-1", "clicks-1 orders-2", "clicks-2 orders-3", "orders-0 orders-4"),
}
WITH_RACKS = {
    "range": ("clicks-0", "clicks-1 orders-1 orders-4", "orders-0 orders-2", "clicks-2 orders-3"),
    "roundrobin": ("clicks-0", "clicks-1 orders-1 orders-4", "orders-0 orders-3", "clicks-2 orders-2"),
    "sticky": ("clicks-0 clicks-2", "clicks-1 orders-4", "orders-2 orders-0", "orders-1 orders-3"),
    "cooperative-sticky": ("clicks-0 clicks-2", "clicks-1 orders-4", "orders-2 orders-0", "orders-1 orders-3"),
}


@pytest.mark.parametrize("name", ASSIGNORS)
def test_members_of_equal_wishes_are_assigned_as_by_java(name: str) -> None:
    topics: TopicRacks = {
        "orders": dict.fromkeys(range(5), frozenset()),
        "clicks": dict.fromkeys(range(3), frozenset()),
    }
    members = {member: Subscription(("clicks", "orders"), instance_id=instance) for member, instance, _ in MEMBERS}
    assigned = ASSIGNORS[name]().assign(topics, members)
    assert tuple(" ".join(map(str, assigned[member].partitions)) for member in members) == ALIKE[name]


@pytest.mark.parametrize("name", ASSIGNORS)
def test_members_of_different_wishes_and_racks_are_assigned_as_by_java(name: str) -> None:
    topics = {
        "orders": {index: frozenset("abcab"[index]) for index in range(5)},
        "clicks": {index: frozenset("abc"[index]) for index in range(3)},
    }
    wishes = (("clicks",), ("clicks", "orders"), ("orders",), ("clicks", "orders"))
    members = {
        member: Subscription(topics_of, rack=rack, instance_id=instance)
        for (member, instance, rack), topics_of in zip(MEMBERS, wishes, strict=True)
    }
    assigned = ASSIGNORS[name]().assign(topics, members)
    assert tuple(" ".join(map(str, assigned[member].partitions)) for member in members) == WITH_RACKS[name]


def test_user_data_has_the_bytes_that_java_writes() -> None:
    partitions = (("orders", 1), ("clicks", 0), ("orders", 0), ("zoo", 7))
    sticky, cooperative = StickyAssignor(), CooperativeStickyAssignor()
    assert sticky.subscription_user_data((), ()) is None
    assert cooperative.subscription_user_data((), ()).hex() == "ffffffff"
    assignment = Assignment(tuple(TopicPartition(*one) for one in partitions))
    for assignor in (sticky, cooperative):
        assignor.on_assignment(assignment, GroupMetadata("g", 5))
    assert cooperative.subscription_user_data((), ()).hex() == "00000005"
    data = sticky.subscription_user_data((), ())
    assert data is not None
    assert data.hex() == (
        "000000030006636c69636b73000000010000000000066f726465727300000002000000010000000000037a6f6f0000000100000007"
        "00000005"
    )


def test_user_data_of_the_first_sticky_members_has_no_generation() -> None:
    topics: TopicRacks = {"orders": dict.fromkeys(range(2), frozenset())}
    version_0 = bytes.fromhex("0000000100066f72646572730000000100000001")
    told = {"m1": Subscription(("orders",), version_0), "m2": Subscription(("orders",))}
    assert StickyAssignor().assign(topics, told)["m1"].partitions == (TopicPartition("orders", 1),)
