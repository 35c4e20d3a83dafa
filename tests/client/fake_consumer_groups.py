"""Groups of both protocols of a `FakeCluster`, by the made-up clock: the embedded broker's own groups."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from tagwire import messages
from tagwire.broker.groups.consumer_group import ConsumerGroup
from tagwire.broker.groups.consumer_member import by_topic
from tagwire.broker.groups.consumer_steps import Heartbeat, Step
from tagwire.broker.groups.stored_changes import partitions_of
from tagwire.errors import KafkaError
from tagwire.spec.api_keys import ApiKey

from .fake_broker import FakeCluster
from .fake_groups import FakeGroups
from .memory_network import MemoryDriver

SESSION_MS = 10_000
HEARTBEAT_MS = 1_000


class _Topics:
    """What groups see of the cluster's topics."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster

    @property
    def version(self) -> int:
        return sum(map(len, self._cluster.topics.values()))

    def get(self, name: str) -> Any:
        found = self._cluster.topics.get(name)
        if found is None:
            return None
        return SimpleNamespace(name=name, topic_id=self._cluster.ids[name], partitions=tuple(found))

    def by_id(self, topic_id: UUID) -> Any:
        return next((topic for topic in self if topic.topic_id == topic_id), None)

    def __iter__(self) -> Iterator[Any]:
        return iter([self.get(name) for name in self._cluster.topics])


class FakeConsumerGroups(FakeGroups):
    """Serves ConsumerGroupHeartbeat as well. A group has the protocol that its first member speaks."""

    def __init__(self, cluster: FakeCluster, driver: MemoryDriver, coordinator: int = 0) -> None:
        super().__init__(cluster, driver, coordinator)
        self.consumer_groups: dict[str, ConsumerGroup] = {}
        self._topics = _Topics(cluster)
        cluster.serve({ApiKey.CONSUMER_GROUP_HEARTBEAT: (0, 1)}, {"ConsumerGroupHeartbeat": self.consumer_heartbeat})

    def consumer_group(self, name: str) -> ConsumerGroup:
        if name not in self.consumer_groups:
            self.consumer_groups[name] = ConsumerGroup(name, self._topics, SESSION_MS)
        return self.consumer_groups[name]

    def consumer_heartbeat(self, message: Any) -> Any:
        kind = messages.ConsumerGroupHeartbeatResponse
        group = self.consumer_group(message.group_id)
        names = message.subscribed_topic_names
        beat = Heartbeat(
            message.member_id,
            message.member_epoch,
            message.instance_id,
            message.rack_id,
            message.rebalance_timeout_ms,
            None if names is None else frozenset(names),
            message.subscribed_topic_regex,
            message.server_assignor,
            None if message.topic_partitions is None else partitions_of(message.topic_partitions),
        )
        try:
            result = self._take(group, group.heartbeat(beat))
        except KafkaError as error:
            return kind(error_code=error.code, error_message=error.message)
        assignment = None
        if result.assigned is not None:
            topics = [
                kind.TopicPartitions(topic_id=topic_id, partitions=indexes)
                for topic_id, indexes in by_topic(result.assigned)
            ]
            assignment = kind.Assignment(topic_partitions=topics)
        return kind(
            member_id=result.member_id,
            member_epoch=result.epoch,
            heartbeat_interval_ms=HEARTBEAT_MS,
            assignment=assignment,
        )

    def check_commit(self, message: Any) -> None:
        if message.group_id not in self.consumer_groups:
            super().check_commit(message)
            return
        group = self.consumer_group(message.group_id)
        group.check_commit(message.member_id, message.generation_id_or_member_epoch, 9)

    def _take(self, group: ConsumerGroup, step: Step[Any]) -> Any:
        group.apply(step.changes)
        step.then(self.now_ms)
        deadline = group.next_deadline_ms
        if deadline is not None:
            self._driver.after(max(deadline - self.now_ms, 1) / 1000, lambda: self._expire(group))
        return step.result

    def _expire(self, group: ConsumerGroup) -> None:
        while (step := group.tick(self.now_ms)) is not None:
            self._take(group, step)
