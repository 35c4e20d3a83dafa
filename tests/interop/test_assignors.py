"""Kafka's own assignors and ours give the same group the same partitions, and write the same bytes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tagwire.client import GroupMetadata, TopicPartition
from tagwire.client.consuming.assignors import ASSIGNORS
from tagwire.client.consuming.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)

from .conftest import Count, Programs
from .peer import Peer
from .real_broker import RELEASES

GROUPS = 400
"""How many groups of each assignor are tried; each then goes through a second rebalance."""

RACKS = ("a", "b", "c")

Ask = Callable[[list[dict[str, Any]]], list[Any]]


@pytest.fixture(scope="module", params=[RELEASES[0], RELEASES[-1]])
def java(request: pytest.FixtureRequest, programs: Programs) -> Ask:
    """Asks the assignors of one release."""
    peer = Peer(f"broker-{request.param}", programs(request.param).jars)

    def ask(asked: list[dict[str, Any]]) -> list[Any]:
        return [json.loads(answer) for answer in peer.ask("Assignors", map(json.dumps, asked))]

    return ask


class Group:
    """A group of a few members, of which each may want other topics.

    Attributes:
        topics: those that exist.
        members: what each tells, by member id.
    """

    def __init__(self, seed: int, assignor: str) -> None:
        self.dice, self.assignor = random.Random(seed), assignor
        dice = self.dice
        names = [f"{dice.choice(('orders', 'clicks', 't'))}-{n}" for n in range(dice.randint(1, 6))]
        placed = dice.choice((None, None, 1, 2))
        count = dice.choice((None, dice.randint(1, 12)))
        self.topics: dict[str, dict[int, frozenset[str]]] = {
            name: {
                partition: frozenset(dice.sample(RACKS, placed)) if placed else frozenset()
                for partition in range(count or dice.randint(1, 15))
            }
            for name in names
        }
        self.names = [*names, "gone"] if dice.random() < 0.3 else names
        self.uniform = dice.random() < 0.5
        self.wanted = dice.sample(self.names, dice.randint(1, len(self.names)))
        self.members: dict[str, Subscription] = {}
        for _ in range(dice.randint(1, 12)):
            self.join()

    def join(self) -> None:
        dice = self.dice
        wanted = self.wanted if self.uniform else dice.sample(self.names, dice.randint(1, len(self.names)))
        member = f"{dice.choice(('consumer', 'Verbraucher-ä'))}-{dice.getrandbits(64):x}"
        rack = dice.choice((None, *RACKS)) if any(map(any, self.topics.values())) or dice.random() < 0.1 else None
        instance = f"static-{len(self.members)}-{dice.getrandbits(8)}" if dice.random() < 0.2 else None
        self.members[member] = self.told(Subscription(tuple(wanted), rack=rack, instance_id=instance), (), -1)

    def told(self, before: Subscription, partitions: tuple[TopicPartition, ...], generation: int) -> Subscription:
        """What a member tells that had these partitions; version 0 and 1 have no generation."""
        assignor = ASSIGNORS[self.assignor]()
        if generation >= 0:
            assignor.on_assignment(Assignment(partitions), GroupMetadata("g", generation))
        data = assignor.subscription_user_data(before.topics, partitions)
        owned = partitions if self.assignor == "cooperative-sticky" else ()
        whole = Subscription(before.topics, data, owned, generation, before.rack, before.instance_id)
        version = self.dice.choice((1, 2, 3, 3, 3)) if self.assignor == "cooperative-sticky" else 3
        return decode_subscription(encode_subscription(whole, version), before.instance_id)

    def rebalance(self, assigned: Mapping[str, Assignment]) -> None:
        """Some leave, some come, topics grow, some have slept through a generation."""
        dice = self.dice
        for topic in self.topics.values():
            if dice.random() < 0.2:
                topic.update({len(topic) + more: next(iter(topic.values())) for more in range(dice.randint(1, 4))})
        stale = dice.random() < 0.3
        for member, subscription in list(self.members.items()):
            if dice.random() < 0.2 and len(self.members) > 1:
                del self.members[member]
                continue
            partitions = assigned[member].partitions
            if stale and dice.random() < 0.5:
                others = [one for other in assigned.values() for one in other.partitions]
                mixed = {*partitions, *dice.sample(others, min(len(others), 3))}
                self.members[member] = self.told(subscription, tuple(sorted(mixed)), dice.choice((-1, 3, 4, 5)))
            else:
                self.members[member] = self.told(subscription, partitions, 5)
            if not self.uniform and dice.random() < 0.2:
                wanted = sorted(dice.sample(self.names, dice.randint(1, len(self.names))))
                self.members[member] = replace(self.members[member], topics=tuple(wanted))
        for _ in range(dice.randint(0, 3)):
            self.join()

    def ours(self) -> dict[str, Assignment]:
        return ASSIGNORS[self.assignor]().assign(self.topics, self.members)

    def question(self) -> dict[str, Any]:
        return {
            "asked": "assign",
            "assignor": self.assignor,
            "topics": {name: [sorted(racks) for racks in topic.values()] for name, topic in self.topics.items()},
            "members": [
                {"id": member, "instance": told.instance_id, "subscription": encode_subscription(told).hex()}
                for member, told in self.members.items()
            ],
        }


def wrong_by_law(group: Group, answer: Mapping[str, str]) -> bool:
    """Whether Java fails, or gives a member a topic that it has not subscribed to: what a member had in an older
    generation is moved back to it by Kafka, whether it still wants it or not."""
    if "error" in answer:
        return True
    return any(
        one.topic not in told.topics
        for member, told in group.members.items()
        for one in decode_assignment(bytes.fromhex(answer[member])).partitions
    )


def compare(java: Ask, groups: list[Group]) -> int:
    """Fails at the first group that is assigned in another way; how many were not compared."""
    left_out = 0
    for group, answer in zip(groups, java([group.question() for group in groups]), strict=True):
        if wrong_by_law(group, answer):
            left_out += 1
            continue
        assert {member: encode_assignment(given).hex() for member, given in group.ours().items()} == answer
    return left_out


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_each_group_is_assigned_as_by_java_byte_for_byte(java: Ask, assignor: str, count: Count) -> None:
    groups = [Group(seed, assignor) for seed in range(GROUPS)]
    assert compare(java, groups) == 0
    for group in groups:
        group.rebalance(group.ours())
    left_out = compare(java, groups)
    assert left_out < GROUPS // 20, "most groups are to be compared"
    count(f"{assignor}: {2 * GROUPS - left_out} groups are assigned as by Java, {left_out} are not compared")


def test_user_data_is_written_as_by_java(java: Ask) -> None:
    dice = random.Random(1)
    asked, ours = [], []
    for assignor, kind in ASSIGNORS.items():
        for generation in (None, -1, 0, 7, 2**31 - 1):
            names = dice.sample(
                ["orders", "clicks", "t-1", "t-2", *(f"topic.{n}" for n in range(30))], dice.randint(0, 30)
            )
            partitions = [TopicPartition(name, index) for name in names for index in range(dice.randint(1, 4))]
            dice.shuffle(partitions)
            mine = kind()
            question = {"asked": "user data", "assignor": assignor, "partitions": partitions}
            if generation is not None:
                mine.on_assignment(Assignment(tuple(partitions)), GroupMetadata("g", generation))
                question["generation"] = generation
            data = mine.subscription_user_data((), partitions)
            asked.append(question)
            ours.append(None if data is None else data.hex())
    assert java(asked) == ours


def test_subscriptions_and_assignments_are_written_as_by_java(java: Ask) -> None:
    dice = random.Random(2)
    asked, ours = [], []
    for version in range(4):
        for _ in range(25):
            topics = [f"{dice.choice('abc')}-{n}" for n in range(dice.randint(0, 6))]
            partitions = [TopicPartition(topic, index) for topic in topics for index in range(dice.randint(0, 4))]
            dice.shuffle(partitions)
            data = dice.choice((None, b"", b"data"))
            rack, generation = dice.choice((None, "here")), dice.choice((-1, 3))
            told = Subscription(tuple(topics), data, tuple(partitions), generation, rack)
            given = Assignment(tuple(partitions), data)
            question = {"user_data": None if data is None else data.hex(), "partitions": partitions, "version": version}
            asked.append(
                {**question, "asked": "subscription", "topics": topics, "rack": rack, "generation": generation}
            )
            ours.append(encode_subscription(told, version).hex())
            asked.append({**question, "asked": "assignment"})
            ours.append(encode_assignment(given, version).hex())
    assert java(asked) == ours
