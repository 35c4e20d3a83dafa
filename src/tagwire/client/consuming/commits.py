"""Offsets that a consumer commits, and finds committed: OffsetCommit (key 8) and OffsetFetch (key 9) as a member.

Kafka's class is CommitRequestManager, and ConsumerCoordinator before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Set
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from tagwire import messages
from tagwire.client.admin.api_driver import by_topic
from tagwire.client.admin.group_offsets import (
    OffsetAndMetadata,
    OffsetsOfTopic,
    check_told,
    topics_to_commit,
)
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.consuming.group_coordinator import GroupCoordinator
from tagwire.client.consuming.membership import Membership
from tagwire.client.consuming.pending_commit import AutomaticCommit, PendingCommit
from tagwire.client.network_client import NetworkClient
from tagwire.client.offsets import NO_OFFSET
from tagwire.client.producing.transaction_manager import GroupMetadata
from tagwire.client.scheduling import Wait, sleep
from tagwire.errors import CommitFailedError, Error, KafkaError, RemoteProtocolError, RequestTimeoutError
from tagwire.partitions import TopicPartition
from tagwire.rpc.version_gates import OFFSET_FETCH_GROUPS, OFFSET_FETCH_REQUIRE_STABLE

# From 10 on these requests name topics by ids, and offsets of topics that are gone could not be told of.
_HIGHEST: Final = 9

_POLL: Final = (
    "call poll() until the group has settled, which gives or takes partitions, and commit what is still yours"
)
_SLOW: Final = (
    "its partitions may be others' by now, who read again what was not committed. If processing takes long between two "
    "calls of poll(), raise max.poll.interval.ms or lower max.poll.records"
)
_WHY: Final = {
    Error.REBALANCE_IN_PROGRESS: f"the group is rebalancing: {_POLL}",
    Error.UNKNOWN_MEMBER_ID: f"the consumer is no member of its group any more: {_SLOW}",
    Error.ILLEGAL_GENERATION: f"the group has rebalanced without this consumer: {_SLOW}",
    Error.FENCED_MEMBER_EPOCH: f"the group has given this consumer's partitions away: {_SLOW}",
    Error.STALE_MEMBER_EPOCH: f"the group has moved on, and the consumer has not heard of it yet: {_POLL}",
    Error.FENCED_INSTANCE_ID: "another consumer has the same group.instance.id and took its place; give it its own",
}


class OffsetCommits:
    """The commits of one consumer, one after the other, so that none overtakes another; and what its group has
    committed.

    Args:
        membership: whom it commits as; gives None while partitions are assigned by hand.
        coordinator: where it commits then; a membership has its own.
    """

    def __init__(
        self,
        network: NetworkClient,
        coordinator: GroupCoordinator,
        group: str,
        membership: Callable[[], Membership | None],
    ) -> None:
        self._network = network
        self._coordinator = coordinator
        self._group = group
        self._membership = membership
        self._turns: deque[PendingCommit | AutomaticCommit] = deque()  # in the order in which they were asked for

    async def commit(
        self, pending: PendingCommit | AutomaticCommit, deadline: float
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Commits, and gives what was committed. What may succeed later is tried again until the deadline.

        Raises:
            CommitFailedError: the consumer is no member of the group, the group rebalances, or a partition was lost
                while the commit waited.
            KafkaError: naming the partition. RequestTimeoutError, ConnectError, ...: no coordinator.
        """
        if not pending.offsets:
            return {}
        async with self._turn(pending, deadline):
            retry = self._network.retry(deadline)
            while True:
                sent = self._member()
                offsets = pending.owned()
                if not offsets:
                    return {}
                refused: dict[TopicPartition, int] = {}
                try:
                    await self._group_coordinator().send(
                        partial(_commit_request, sent, offsets),
                        partial(self._codes, offsets, refused),
                        deadline,
                        f"commit of group {self._group!r}",
                        highest=_HIGHEST,
                        # Who loses a partition because its topic was deleted commits inside of `poll`, before it gives
                        # that up, and would hold up the group. Source: Kafka's CommitRequestManager.
                        gives_topics_up=True,
                    )
                except KafkaError as error:
                    membership = self._membership()
                    if membership is not None and membership.commit_refused(error, sent):
                        await sleep(retry.pause_until(_named(error, refused), anyway=True))
                        continue
                    raise _named(error, refused) from error
                return offsets

    def is_committing(self, partitions: Set[TopicPartition]) -> bool:
        """Whether a commit of any of these has begun and is not done: until then nobody knows what is committed."""
        return any(each.is_about(partitions) for each in self._turns)

    async def settled(self, partitions: Set[TopicPartition], deadline: float) -> None:
        """Waits until the commits of any of these that have begun are done. Each may be tried again, and what is asked
        about it meanwhile would be told as it was before. Raises RequestTimeoutError."""
        before = [each for each in self._turns if each.is_about(partitions)]

        def is_settled() -> bool:
            return not any(each in self._turns for each in before)

        await Wait(is_settled, deadline)
        if not is_settled():
            raise RequestTimeoutError(f"offsets of group {self._group!r}: a commit of them has no response yet")

    async def finish(self, deadline: float) -> None:
        """Waits until the commits that have begun are done, or the deadline is over."""
        await Wait(lambda: not self._turns, deadline)

    async def committed(
        self, partitions: Collection[TopicPartition], deadline: float
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the group has committed of these partitions, without those that it has committed nothing of. Waits for
        commits of them that were asked for before, and for transactions that commit offsets of them (KIP-447).

        Raises:
            KafkaError, RequestTimeoutError, ...: as `commit`.
        """
        if not partitions:
            return {}
        wanted, found = set(partitions), dict[TopicPartition, OffsetAndMetadata]()
        await self.settled(wanted, deadline)
        response = await self._group_coordinator().send(
            lambda connection: self._fetch_request(connection, wanted),
            lambda response: self._take(response, wanted, found),
            deadline,
            f"offsets of group {self._group!r}",
            highest=_HIGHEST,
        )
        self._take(response, wanted, found)
        return found

    @asynccontextmanager
    async def _turn(self, turn: PendingCommit | AutomaticCommit, deadline: float) -> AsyncIterator[None]:
        self._turns.append(turn)
        try:
            await Wait(lambda: self._turns[0] is turn, deadline)
            if self._turns[0] is not turn:
                raise RequestTimeoutError(f"commit of group {self._group!r}: one before it has no response yet")
            yield
        finally:
            self._turns.remove(turn)

    def _group_coordinator(self) -> GroupCoordinator:
        membership = self._membership()
        return self._coordinator if membership is None else membership.coordinator

    def _member(self) -> GroupMetadata:
        membership = self._membership()
        if membership is None:
            return GroupMetadata(self._group)
        try:
            return membership.require_member()
        except KafkaError as error:
            raise _named(error, {}) from error

    def _codes(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        refused: dict[TopicPartition, int],
        response: messages.OffsetCommitResponse,
    ) -> list[int]:
        """The error codes of a response. Raises RemoteProtocolError where it is about other partitions."""
        refused.clear()
        told = {
            TopicPartition(topic.name, each.partition_index): each.error_code
            for topic in response.topics
            for each in topic.partitions
        }
        if told.keys() != offsets.keys():
            odd = min(told.keys() ^ offsets.keys())
            what = "was not asked about" if odd in told else "is missing in the response"
            raise RemoteProtocolError(f"commit of group {self._group!r}: {odd} {what}")
        refused |= {partition: code for partition, code in told.items() if code}
        return list(refused.values())

    def _fetch_request(
        self, connection: BrokerConnection, wanted: Iterable[TopicPartition]
    ) -> messages.OffsetFetchRequest:
        kind = messages.OffsetFetchRequest
        version = connection.version(kind.api_key, _HIGHEST)
        listed = by_topic(sorted(wanted)).items()  # in one order, whatever strings hash to
        if version < OFFSET_FETCH_GROUPS:
            return kind(
                group_id=self._group,
                topics=[kind.OffsetFetchRequestTopic(name=name, partition_indexes=own) for name, own in listed],
                require_stable=version >= OFFSET_FETCH_REQUIRE_STABLE,
            )
        topics = [kind.OffsetFetchRequestTopics(name=name, partition_indexes=own) for name, own in listed]
        return kind(groups=[kind.OffsetFetchRequestGroup(group_id=self._group, topics=topics)], require_stable=True)

    def _take(
        self,
        response: messages.OffsetFetchResponse,
        wanted: set[TopicPartition],
        found: dict[TopicPartition, OffsetAndMetadata],
    ) -> list[int]:
        """Fills `found`; the error codes of a response."""
        found.clear()
        told: messages.OffsetFetchResponse | messages.OffsetFetchResponse.OffsetFetchResponseGroup = response
        if response.groups:
            if [each.group_id for each in response.groups] != [self._group]:
                raise RemoteProtocolError(f"offsets of group {self._group!r}: the response is about another group")
            told = response.groups[0]
        if told.error_code:
            return [told.error_code]
        topics: list[OffsetsOfTopic] = list(told.topics)
        check_told(topics, wanted, self._group)
        codes = []
        for topic in topics:
            for each in topic.partitions:
                codes.append(each.error_code)
                if not each.error_code and each.committed_offset != NO_OFFSET:
                    found[TopicPartition(topic.name, each.partition_index)] = OffsetAndMetadata(
                        each.committed_offset, each.committed_leader_epoch, each.metadata or ""
                    )
        return codes


def _commit_request(
    sent: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata], _: BrokerConnection
) -> messages.OffsetCommitRequest:
    return messages.OffsetCommitRequest(
        group_id=sent.group,
        generation_id_or_member_epoch=sent.generation,
        member_id=sent.member_id,
        group_instance_id=sent.instance_id,
        topics=topics_to_commit(offsets),
    )


def _named(error: KafkaError, refused: Mapping[TopicPartition, int]) -> KafkaError:
    """The refusal of a commit as users see it: why, and what to do, or of which partition."""
    why = _WHY.get(error.error)
    if why is not None:
        return CommitFailedError(error.code, why)
    about = next((f", partition {partition}" for partition, code in refused.items() if code == error.code), "")
    return KafkaError(error.code, error.message + about)
