"""What Kafka's controller does: decides who leads and holds partitions, as nodes come and go and as it is asked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from tagwire.broker.cluster_image import ClusterImage
from tagwire.broker.leadership import Leadership
from tagwire.broker.partition import Partition
from tagwire.broker.serial_tasks import SerialTasks
from tagwire.broker.topics import Topics
from tagwire.errors import Error, KafkaError, StorageError

logger = logging.getLogger("tagwire.broker")


class Controller:
    """Changes leaders one after the other, so that each decision follows from the last. One that has begun goes on when
    whoever asked for it goes away: else its epoch would be in the log, and nobody lead in it.

    Args:
        topics: whose partitions are led.
        image: the nodes.
    """

    def __init__(self, topics: Topics, image: ClusterImage) -> None:
        self._topics = topics
        self._image = image
        self._decisions = SerialTasks()

    async def _decide(self, decision: Coroutine[object, None, None]) -> None:
        await self._decisions.run("", decision)

    async def close(self) -> None:
        """Finish what has been decided."""
        await self._decisions.close()

    async def set_live(self, change: Callable[[Sequence[int]], Iterable[int]]) -> None:
        """Note which nodes run, from those that ran, and let others lead what those led that do not."""
        await self._decide(self._set_live(change))

    async def _set_live(self, change: Callable[[Sequence[int]], Iterable[int]]) -> None:
        self._image.set_live(change(self._image.live))
        await asyncio.gather(*(self._elect_again(partition) for partition in self._topics.partitions()))

    async def _elect_again(self, partition: Partition) -> None:
        following = self._image.elect(partition.leadership)
        if following == partition.leadership:
            return
        with suppress(StorageError):  # an offline log has no leader, whoever would be it
            await partition.lead(following)

    async def move_leader(self, partition: Partition, node_id: int) -> None:
        """Let a node lead a partition, in a new epoch. One that does not hold it takes the place of the leader.

        Raises:
            KafkaError: BROKER_NOT_AVAILABLE: it does not run.
            StorageError: the disk refused, or the log is offline.
        """
        await self._decide(self._move_leader(partition, node_id))

    async def _move_leader(self, partition: Partition, node_id: int) -> None:
        self._check_live(node_id)
        was = partition.leadership
        replicas = was.replicas
        if node_id not in replicas:
            gone = was.leader if was.leader in replicas else replicas[0]
            replicas = tuple(node_id if each == gone else each for each in replicas)
        await partition.lead(Leadership(node_id, was.epoch, replicas, self._image.in_sync(replicas)))

    async def truncate(self, partition: Partition, offset: int) -> None:
        """Lose the records of a partition from an offset on, as `Topics.truncate`. Nobody else begins to lead it
        meanwhile: its log takes no epoch then.

        Raises:
            StorageError: the disk refused, and the partition is offline, or it was.
        """
        await self._decide(self._topics.truncate(partition, offset))

    async def move_coordinator(self, kind: int, key: str, node_id: int) -> None:
        """Let a node coordinate a group or a transactional id.

        Raises:
            KafkaError: BROKER_NOT_AVAILABLE: it does not run.
        """
        await self._decide(self._move_coordinator(kind, key, node_id))

    async def _move_coordinator(self, kind: int, key: str, node_id: int) -> None:
        self._check_live(node_id)
        self._image.set_coordinator(kind, key, node_id)

    async def reassign(self, partition: Partition, replicas: Sequence[int], *, as_many: bool = False) -> None:
        """Let other nodes hold a partition, at once: there is nothing to copy. It has a new leader if its own is not
        among them.

        Args:
            as_many: whether as many nodes have to hold it as do when its turn has come.

        Raises:
            KafkaError: INVALID_REPLICA_ASSIGNMENT: a node is named twice or does not exist, or none runs.
                INVALID_REPLICATION_FACTOR: they are more or fewer than `as_many` allows.
                UNKNOWN_TOPIC_OR_PARTITION: its topic has just been deleted.
            StorageError: the disk refused, or the log is offline.
        """
        await self._decide(self._reassign(partition, replicas, as_many=as_many))

    async def _reassign(self, partition: Partition, replicas: Sequence[int], *, as_many: bool) -> None:
        _check_exists(partition)
        self.check_replicas(replicas)
        before = partition.leadership.replicas
        if as_many and len(replicas) != len(before):
            problem = f"the replication factor would change from {len(before)} to {len(replicas)}"
            raise KafkaError(Error.INVALID_REPLICATION_FACTOR, problem)
        in_sync = self._image.in_sync(replicas)
        if not in_sync:
            raise KafkaError(Error.INVALID_REPLICA_ASSIGNMENT, f"none of the brokers {list(replicas)} runs")
        was = partition.leadership
        leader = was.leader if was.leader in in_sync else in_sync[0]
        await partition.lead(Leadership(leader, was.epoch, tuple(replicas), in_sync))

    async def elect(self, partition: Partition, *, unclean: bool) -> None:
        """Let the preferred replica lead a partition; `unclean`: one that has no leader, any replica that runs.

        Raises:
            KafkaError: ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE, ELIGIBLE_LEADERS_NOT_AVAILABLE;
                UNKNOWN_TOPIC_OR_PARTITION: its topic has just been deleted.
            StorageError: the disk refused, or the log is offline.
        """
        await self._decide(self._elect(partition, unclean=unclean))

    async def _elect(self, partition: Partition, *, unclean: bool) -> None:
        _check_exists(partition)
        was = partition.leadership
        running = self._image.in_sync(was.replicas)
        if was.leader in (running if unclean else was.replicas[:1]):
            raise KafkaError(Error.ELECTION_NOT_NEEDED, f"broker {was.leader} leads it")
        able = running if unclean else tuple(each for each in was.replicas[:1] if each in was.isr)
        if not set(able) & set(running):
            error = Error.ELIGIBLE_LEADERS_NOT_AVAILABLE if unclean else Error.PREFERRED_LEADER_NOT_AVAILABLE
            raise KafkaError(error, f"of its replicas {list(was.replicas)} run {list(running)}")
        await partition.lead(replace(was, leader=able[0], isr=running))

    def check_replicas(self, replicas: Sequence[int]) -> None:
        """Raises KafkaError INVALID_REPLICA_ASSIGNMENT: no node is named, or one twice, or one that is not there."""
        if not replicas or len(set(replicas)) < len(replicas) or not set(replicas) <= set(self._image.node_ids):
            known = ", ".join(map(str, self._image.node_ids))
            problem = f"{list(replicas)} are not brokers that there are ({known}), each named once"
            raise KafkaError(Error.INVALID_REPLICA_ASSIGNMENT, problem)

    def _check_live(self, node_id: int) -> None:
        if node_id not in self._image.live:
            raise KafkaError(Error.BROKER_NOT_AVAILABLE, f"broker {node_id} does not run")


def _check_exists(partition: Partition) -> None:
    if partition.deleted:
        problem = f"topic {partition.topic} has just been deleted"
        raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION, problem)
