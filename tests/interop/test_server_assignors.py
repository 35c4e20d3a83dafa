"""The assignors of Kafka's group coordinator and the broker's give members the same target."""

from __future__ import annotations

import base64
import json
import random
from typing import Any
from uuid import UUID

import pytest

from tagwire.broker.groups.assignors import ASSIGNORS, MemberSpec, Target

from .conftest import Count, Programs, ends_of
from .peer import Peer
from .real_broker import RELEASES

GROUPS = 400


def java_id(topic: UUID) -> str:
    return base64.urlsafe_b64encode(topic.bytes).decode().rstrip("=")


class Group:
    """A group that is assigned, changes, and is assigned again."""

    def __init__(self, seed: int) -> None:
        self.dice = dice = random.Random(seed)
        self.topics = {UUID(int=dice.getrandbits(128)): dice.randint(1, 20) for _ in range(dice.randint(1, 7))}
        self.uniform = dice.random() < 0.5
        self.members: dict[str, MemberSpec] = {}
        self.wanted = self.some_topics()
        for _ in range(dice.randint(1, 12)):
            self.join()

    def some_topics(self) -> frozenset[UUID]:
        return frozenset(self.dice.sample(list(self.topics), self.dice.randint(1, len(self.topics))))

    def join(self) -> None:
        wanted = self.wanted if self.uniform else self.some_topics()
        instance = f"static-{len(self.members)}" if self.dice.random() < 0.2 else None
        self.members[f"{self.dice.getrandbits(64):x}"] = MemberSpec(wanted, {}, instance)

    def change(self, target: Target) -> None:
        """Some leave, some come, topics grow, some want others."""
        dice = self.dice
        if self.uniform and dice.random() < 0.3:
            self.wanted = self.some_topics()
        for topic in self.topics:
            self.topics[topic] += dice.choice((0, 0, 0, 3))
        for member, spec in list(self.members.items()):
            if dice.random() < 0.2 and len(self.members) > 1:
                del self.members[member]
                continue
            wanted = self.wanted if self.uniform else (self.some_topics() if dice.random() < 0.2 else spec.topics)
            self.members[member] = MemberSpec(wanted, target[member], spec.instance_id)
        for _ in range(dice.randint(0, 3)):
            self.join()

    def question(self, assignor: str) -> str:
        return json.dumps(
            {
                "assignor": assignor,
                "topics": {java_id(topic): count for topic, count in self.topics.items()},
                "members": [
                    {
                        "id": member,
                        "instance": spec.instance_id,
                        "topics": [java_id(topic) for topic in spec.topics],
                        "target": {java_id(topic): sorted(numbers) for topic, numbers in spec.target.items()},
                    }
                    for member, spec in self.members.items()
                ],
            }
        )

    def ours(self, assignor: str, answer: dict[str, Any]) -> dict[str, Any]:
        """Our target of the topics in the order in which Java took them."""
        order = {topic: place for place, topic in enumerate(answer["order"])}
        topics = dict(sorted(self.topics.items(), key=lambda topic: order.get(java_id(topic[0]), -1)))
        return {
            member: {java_id(topic): sorted(numbers) for topic, numbers in given.items()}
            for member, given in ASSIGNORS[assignor](topics, self.members).items()
        }


@pytest.mark.parametrize("release", ends_of(RELEASES[1:]))
@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_each_group_has_the_target_that_java_gives_it(
    programs: Programs, release: str, assignor: str, count: Count
) -> None:
    peer = Peer(f"broker-{release}", programs(release).jars)
    groups = [Group(seed) for seed in range(GROUPS)]
    for _ in range(3):
        answers = map(json.loads, peer.ask("ServerAssignors", [group.question(assignor) for group in groups]))
        for group, answer in zip(groups, answers, strict=True):
            assert group.ours(assignor, answer) == answer.get("target"), answer
        for group in groups:
            group.change(ASSIGNORS[assignor](group.topics, group.members))
    count(f"Kafka {release}: {3 * GROUPS} targets of the assignor {assignor}")
