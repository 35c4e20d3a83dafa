"""A client of another make whose transactions are told apart from what happens to them: offsets that are deleted, time
that is over, and what is noted with an offset."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from tagwire import messages
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.client.metadata import TopicMetadata
from tagwire.partitions import TopicPartition
from tests.simulation.workload.foreign import COMMIT_BY_NAME, REQUEST_S, Enough, Speaking
from tests.simulation.workload.owning import Owner
from tests.simulation.workload.probing import NOT_NOW, PATIENCE, REFUSED, coordinator_of

TIMEOUT_S: Final = 20.0
ADDED_S: Final = 13.0
"""When a transaction is added to: in its time, and by then another one would not be over when it is ended."""

OVER_S: Final = 13.0
SHORT_S: Final = 3.0
LONGER_S: Final = 6.0
"""A time for transactions, and one by which one of that time is over."""

FENCED: Final = ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")
EPOCH: Final = 5
NOTED: Final = "as far as this"


class ForeignOwners(Speaking):
    """Of topics of which nothing is deleted."""

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        async with AsyncClient(properties) as client, AsyncAdmin(properties) as admin:
            self.client, self.admin = client, admin
            topics = await self.topics_of(admin, "steady")
            for act in (self._noted, self._deleted, self._timed, self._over) if topics else ():
                topic = max(topics, key=lambda topic: len(topic.partitions))
                with suppress(*REFUSED, Enough):
                    await act(topic, self.random.choice(sorted(topic.partitions)))

    async def _noted(self, topic: TopicMetadata, index: int) -> None:
        """What is committed with an offset is told with it."""
        at, group = TopicPartition(topic.name, index), "foreign-noted"
        node = await coordinator_of(self.client, group, 0)
        await self.said(
            node, _commit(group, at, 1), f"{group} with an epoch and a note", "NONE", version=COMMIT_BY_NAME
        )
        found = (await self.admin.group_offsets(group)).get(at)
        told = None if found is None else [found.offset, found.leader_epoch, found.metadata]
        self.holds(node, "OffsetFetch", f"{group} of {at}, its leader epoch and its note", told, [1, EPOCH, NOTED])

    async def _deleted(self, topic: TopicMetadata, index: int) -> None:
        """Offsets that are deleted while a transaction has others of them do not come back with its end."""
        at, group = TopicPartition(topic.name, index), "foreign-deleted"
        node = await coordinator_of(self.client, group, 0)
        await self.said(node, _commit(group, at, 1), f"{group} before a transaction", "NONE", version=COMMIT_BY_NAME)
        owner = await Owner.begun(self, self.client, group, topic, index, int(2000 * PATIENCE))
        await owner.commit_offset(group, 2)
        kind = messages.OffsetDeleteRequest
        part = kind.OffsetDeleteRequestPartition(partition_index=index)
        request = kind(group_id=group, topics=[kind.OffsetDeleteRequestTopic(name=topic.name, partitions=[part])])
        await self.said(node, request, f"offsets of {group} that a transaction has", "NONE")
        if await owner.end(commit=True) != "NONE":
            return
        found = await self.admin.group_offsets(group)
        about = f"{group} whose offset of {at} was deleted when a transaction had another, which ended then"
        self.holds(node, "OffsetFetch", about, found[at].offset if at in found else None, None)

    async def _timed(self, topic: TopicMetadata, index: int) -> None:
        """Who takes a transactional id over has the time that it asks for, and not that of the one before."""
        name = "foreign-timed"
        node = await coordinator_of(self.client, name, 1)
        before = messages.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=int(1000 * SHORT_S))
        about = f"{name}, whose transactions are over after {SHORT_S:g} s"
        await self.said(node, before, about, "NONE")
        owner = await Owner.begun(self, self.client, name, topic, index, int(2000 * PATIENCE))
        await self.sleep(LONGER_S)
        about = f"{about}, by the next one, who has asked for more and ends it {LONGER_S:g} s later"
        op = self.history.invoke(
            self.process, "probe", node=owner.coordinator, api="EndTxn", about=about, answers=["NONE", *NOT_NOW]
        )
        self.history.ok(op, answer=await owner.end(commit=True))

    async def _over(self, topic: TopicMetadata, index: int) -> None:
        """A transaction is over its time, whatever was added to it meanwhile."""
        others = [one for one in sorted(topic.partitions) if one != index]
        if not others:
            return
        owner = await Owner.begun(self, self.client, "foreign-over", topic, index, int(1000 * TIMEOUT_S))
        await self.sleep(ADDED_S)
        add = messages.AddPartitionsToTxnRequest
        request = add(
            v3_and_below_transactional_id=owner.name,
            v3_and_below_producer_id=owner.producer_id,
            v3_and_below_producer_epoch=owner.epoch,
            v3_and_below_topics=[add.AddPartitionsToTxnTopic(name=topic.name, partitions=others[:1])],
        )
        about = f"a transaction of {TIMEOUT_S:g} s that is added to after {ADDED_S:g}"
        await self.said(owner.coordinator, request, about, "NONE", otherwise=FENCED)
        await self.sleep(OVER_S)
        answer = await owner.end(commit=True)
        op = self.history.invoke(
            self.process,
            "probe",
            node=owner.coordinator,
            api="EndTxn",
            about=f"{about}, and ended {OVER_S:g} s later",
            answers=[*FENCED, *NOT_NOW],
        )
        self.history.ok(op, answer=answer)


def _commit(group: str, at: TopicPartition, offset: int) -> Any:
    kind = messages.OffsetCommitRequest
    part = kind.OffsetCommitRequestPartition(
        partition_index=at.partition,
        committed_offset=offset,
        committed_leader_epoch=EPOCH,
        committed_metadata=NOTED,
    )
    return kind(group_id=group, topics=[kind.OffsetCommitRequestTopic(name=at.topic, partitions=[part])])
