"""What brokers have to refuse, asked of every node when nothing is wrong: who does not lead or coordinate says so, and
whoever is of an older epoch or generation, or of none, changes nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from tagwire import messages
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.client.metadata import TopicMetadata
from tagwire.errors import Error
from tagwire.partitions import LATEST, TopicPartition
from tagwire.records import batch_headers
from tests.simulation.workload.owning import OF_VERSION_1, batch
from tests.simulation.workload.probing import NOT_NOW, PATIENCE, REFUSED, Probing, coordinator_of, error_of
from tests.simulation.workload.stage import Spec, always

GROUP, TRANSACTION = 0, 1
MOST: Final = 2
"""Partitions of each topic that are asked for."""

NEWER: Final = 1000
"""How much greater than a member's epoch one is that nobody has yet."""

COMMIT_BY_EPOCH: Final = 9
"""The version that members of KIP-848 may commit with, and that names topics."""

COMMIT_BY_NAME: Final = 8
"""A version of OffsetCommit that every release has, and that names topics."""

NOBODY: Final = "nobody"
DESCRIBED_AGAIN_S: Final = 1.0
LONG_WAIT_MS: Final = 30_000
SOON_S: Final = 30.0
"""Of a fetch that was to be answered when the leader moved: so long it waits if it is told nothing."""

REQUEST_S: Final = 45.0
LATE: Final = "late"

NOT_LEADER: Final = ("NOT_LEADER_OR_FOLLOWER",)
NOT_COORDINATOR: Final = ("NOT_COORDINATOR",)
FENCED: Final = ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "INVALID_PRODUCER_ID_MAPPING")
NOT_OF_IT: Final = (
    "UNKNOWN_MEMBER_ID",
    "ILLEGAL_GENERATION",
    "STALE_MEMBER_EPOCH",
    "FENCED_INSTANCE_ID",
    "GROUP_ID_NOT_FOUND",
)


class Refusing(Probing):
    """All of it, once. Its spec: groups; describes: whether members are there, whose groups are described."""

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, 20.0)
        with suppress(*REFUSED):
            async with AsyncClient(properties) as client, AsyncAdmin(properties) as admin:
                nodes = sorted((await client.metadata()).brokers)
                topics = [topic for topic in await admin.list_topics() if topic.name in self.stage.topics]
                for topic in topics:
                    if topic.error is Error.NONE:
                        with suppress(*REFUSED):
                            await self._leaders(client, nodes, topic)
                for group in self.spec["groups"]:
                    with suppress(*REFUSED):
                        await self._group(client, admin, nodes, group)
                await self._transactions(client, admin, nodes, topics)

    # Leaders ---------------------------------------------------------------------------------------------------------

    async def _leaders(self, client: AsyncClient, nodes: list[int], topic: TopicMetadata) -> None:
        for index in self.random.sample(sorted(topic.partitions), min(MOST, len(topic.partitions))):
            known = topic.partitions[index]
            where = f"{topic.name}-{index}"
            for node in nodes:
                if node != known.leader:
                    for request, version in _of_leaders(topic, index):
                        await self.probe(client, node, request, f"{where}, which it does not lead", NOT_LEADER, version)
            if known.leader in nodes and known.leader_epoch >= 0:
                for epoch, answer in ((-1, "FENCED_LEADER_EPOCH"), (1, "UNKNOWN_LEADER_EPOCH")):
                    if (told := known.leader_epoch + epoch) >= 0:
                        for request in _in_epoch(topic, index, told):
                            await self.probe(
                                client, known.leader, request, f"{where} in leader epoch {told}", (answer,)
                            )

    # Groups ----------------------------------------------------------------------------------------------------------

    async def _group(self, client: AsyncClient, admin: AsyncAdmin, nodes: list[int], group: str) -> None:
        coordinator = await self._coordinator(client, nodes, group, GROUP)
        offsets = await admin.group_offsets(group)
        offset = {partition: offsets[partition].offset for partition in sorted(offsets)[:1]}
        for node in nodes:
            if coordinator is not None and node != coordinator:
                for request in _of_coordinators(group, offset):
                    await self.of_group(
                        client, node, request, f"{group}, which it does not coordinate", NOT_COORDINATOR
                    )
        if coordinator is None:
            return
        for _ in range(
            2 if self.spec.get("describes") else 0
        ):  # what stays as it is for a while is not on its way to be something else
            await self._describe(admin, group)
            await self.sleep(DESCRIBED_AGAIN_S)
        for request in _of_strangers(group, offset):
            await self.of_group(client, coordinator, request, f"one who is no member of {group}", NOT_OF_IT)
        if (known := self._member(group)) is not None and offset:
            member, generation, protocol = known
            wrong = generation - 1 if protocol == "classic" else generation + NEWER
            if wrong > 0:
                request = _commit(group, offset, member, wrong)
                told = f"a member of {group} in generation {wrong}, not {generation}"
                await self.of_group(client, coordinator, request, told, NOT_OF_IT)

    async def of_group(
        self, client: AsyncClient, node: int, request: Any, about: str, answers: tuple[str, ...]
    ) -> None:
        version = None
        if isinstance(request, messages.OffsetCommitRequest):
            version = COMMIT_BY_EPOCH if request.generation_id_or_member_epoch > NEWER else COMMIT_BY_NAME
        await self.probe(client, node, request, about, answers, version)

    async def _describe(self, admin: AsyncAdmin, group: str) -> None:
        async def described() -> dict[str, Any]:
            found = (await admin.describe_groups(group))[group]
            offsets = await admin.group_offsets(group)
            return {
                "state": str(found.state),
                "members": {each.member_id: [list(one) for one in sorted(each.assignment)] for each in found.members},
                "offsets": [[*partition, offsets[partition].offset] for partition in sorted(offsets)],
            }

        with suppress(*REFUSED):
            await self.noted("describe_group", {"group": group}, described, lambda found: found, has_no_effect=always)

    def _member(self, group: str) -> tuple[str, int, str] | None:
        """The member that was last heard of: its id, its generation and the group's protocol, if all have the same."""
        protocols = {
            event.value.get("protocol")
            for event in self.history.events
            if event.f == "subscribe" and event.value.get("group") == group
        }
        if len(protocols) != 1 or None in protocols:
            return None
        for event in reversed(self.history.events):
            if event.f == "assign" and event.value.get("group") == group and event.value.get("member"):
                return event.value["member"], event.value["generation"] or 0, str(*protocols)
        return None

    async def _coordinator(self, client: AsyncClient, nodes: list[int], key: str, kind: int) -> int | None:
        """Who coordinates it, as all nodes say; None where one of them does not."""
        told: list[int] = []
        for node in nodes:
            told.append(await coordinator_of(client, key, kind, node))
        asked = {"node": nodes[-1], "api": "FindCoordinator", "about": f"who coordinates {key}, which all nodes know"}
        op = self.history.invoke(self.process, "probe", **asked, answers=[told[0]])
        for other in told:
            if other != told[0] or other < 0:
                self.history.ok(op, answer=other)
                return None
        self.history.ok(op, answer=told[0])
        return told[0]

    # Transactions ----------------------------------------------------------------------------------------------------

    async def _transactions(
        self, client: AsyncClient, admin: AsyncAdmin, nodes: list[int], topics: list[TopicMetadata]
    ) -> None:
        try:
            names = sorted(each.transactional_id for each in await admin.list_transactions())
            known = await admin.describe_transactions(names[:4]) if names else {}
        except REFUSED:  # before Kafka 3.0
            return
        there = [
            topic for topic in topics if topic.error is Error.NONE and not self.stage.topics[topic.name]["compacted"]
        ]
        for name, found in known.items():
            coordinator = await self._coordinator(client, nodes, name, TRANSACTION)
            topic = self.random.choice(there) if there else None
            if coordinator is None or topic is None:
                continue
            for node in nodes:
                if node != coordinator:
                    for request in _of_owners(name, found.producer_id, found.producer_epoch, topic.name):
                        about = f"{name}, which it does not coordinate"
                        await self.probe(client, node, request, about, NOT_COORDINATOR)
            if (older := found.producer_epoch - 1) < 0:
                continue
            about = f"{name} in epoch {older}, not {found.producer_epoch}"
            for request in _of_owners(name, found.producer_id, older, topic.name):
                # In version 5 whoever had the epoch before may end a transaction once more.
                version = OF_VERSION_1["EndTxn"] if isinstance(request, messages.EndTxnRequest) else None
                await self.probe(client, coordinator, request, about, FENCED, version)
            groups = await self._coordinator(client, nodes, NOBODY, GROUP)
            if groups is not None:
                await self.probe(client, groups, _offsets_of(name, found.producer_id, older, topic.name), about, FENCED)
            leader = topic.partitions[0].leader
            if leader in nodes:
                await self.probe(client, leader, _batch(name, found.producer_id, older, topic), about, FENCED)


class Waiting(Probing):
    """A reader that waits for records, in a fetch session, while another node begins to lead: it is told soon.

    Its spec: topic, partition; `main` ends when it was told.

    Attributes:
        waits: whether its request is on its way. Some are never: `main` ends then.
    """

    waits = False

    async def ask(self) -> None:
        name, index = self.spec["topic"], self.spec["partition"]
        with suppress(*REFUSED):
            async with asyncio.timeout(PATIENCE), AsyncClient(self.stage.properties(self.process, REQUEST_S)) as client:
                topic = await client.topic(name)
                known = topic.partitions[index]
                await self._wait(client, topic, index, known.leader, known.leader_epoch)

    async def _wait(self, client: AsyncClient, topic: TopicMetadata, index: int, leader: int, epoch: int) -> None:
        (end,) = (await client.list_offsets({TopicPartition(topic.name, index): LATEST})).values()
        kind = messages.FetchRequest

        def named(offset: int) -> list[Any]:
            wanted = kind.FetchPartition(
                partition=index, current_leader_epoch=epoch, fetch_offset=offset, partition_max_bytes=1 << 20
            )
            return [kind.FetchTopic(topic=topic.name, topic_id=topic.topic_id, partitions=[wanted])]

        begun = await client.request(
            kind(max_wait_ms=0, min_bytes=1, session_id=0, session_epoch=0, topics=named(end)), node=leader
        )
        if begun.error_code or not begun.session_id or error_of(begun) != "NONE":
            return
        asked = {"node": leader, "api": "Fetch", "about": f"{topic.name}-{index} while it begins to be led by another"}
        answers = ["FENCED_LEADER_EPOCH", *NOT_LEADER, *NOT_NOW]
        began = time.monotonic()
        self.waits = True

        async def answered() -> dict[str, Any]:
            more: list[Any] = []
            for session_epoch in range(1, 100):
                request = kind(
                    max_wait_ms=LONG_WAIT_MS,
                    min_bytes=1,
                    session_id=begun.session_id,
                    session_epoch=session_epoch,
                    topics=more,
                )
                response = await client.request(request, node=leader)
                if time.monotonic() - began > SOON_S:
                    return {"answer": LATE}
                if (error := error_of(response)) != "NONE":
                    return {"answer": error}
                found = [part.records for each in response.responses for part in each.partitions if part.records]
                # A marker was written meanwhile.
                more = named(max(batch.next_offset for batch in batch_headers(memoryview(found[0])))) if found else []
            return {"answer": LATE}

        await self.noted("probe", asked | {"answers": answers}, answered, lambda found: found, has_no_effect=always)


def _of_leaders(topic: TopicMetadata, index: int) -> Iterator[tuple[Any, int | None]]:
    """What only a leader answers, none of which changes anything there."""
    offsets = messages.ListOffsetsRequest
    wanted = offsets.ListOffsetsPartition(partition_index=index, timestamp=LATEST)
    yield offsets(replica_id=-1, topics=[offsets.ListOffsetsTopic(name=topic.name, partitions=[wanted])]), None
    epochs = messages.OffsetForLeaderEpochRequest
    of = epochs.OffsetForLeaderTopic(topic=topic.name, partitions=[epochs.OffsetForLeaderPartition(partition=index)])
    yield epochs(topics=[of]), None
    produce = messages.ProduceRequest
    nothing = produce.PartitionProduceData(index=index, records=b"")
    data = produce.TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=[nothing])
    yield produce(acks=-1, timeout_ms=1000, topic_data=[data]), None
    fetch = messages.FetchRequest  # of a version whose readers know of no followers
    part = fetch.FetchPartition(partition=index, partition_max_bytes=1)
    yield fetch(topics=[fetch.FetchTopic(topic=topic.name, partitions=[part])]), 10
    if not topic.name.startswith("__"):
        delete = messages.DeleteRecordsRequest
        first = delete.DeleteRecordsPartition(partition_index=index, offset=0)
        yield delete(topics=[delete.DeleteRecordsTopic(name=topic.name, partitions=[first])], timeout_ms=1000), None


def _in_epoch(topic: TopicMetadata, index: int, epoch: int) -> Iterator[Any]:
    offsets = messages.ListOffsetsRequest
    wanted = offsets.ListOffsetsPartition(partition_index=index, timestamp=LATEST, current_leader_epoch=epoch)
    yield offsets(replica_id=-1, topics=[offsets.ListOffsetsTopic(name=topic.name, partitions=[wanted])])
    fetch = messages.FetchRequest
    part = fetch.FetchPartition(partition=index, current_leader_epoch=epoch, partition_max_bytes=1)
    yield fetch(topics=[fetch.FetchTopic(topic=topic.name, topic_id=topic.topic_id, partitions=[part])])
    epochs = messages.OffsetForLeaderEpochRequest
    of = epochs.OffsetForLeaderPartition(partition=index, current_leader_epoch=epoch)
    yield epochs(topics=[epochs.OffsetForLeaderTopic(topic=topic.name, partitions=[of])])


def _of_coordinators(group: str, offset: Spec) -> Iterator[Any]:
    """What only a group's coordinator answers: nothing of it changes anything there."""
    yield from _of_strangers(group, offset)
    fetch = messages.OffsetFetchRequest
    of = fetch.OffsetFetchRequestGroup(group_id=group, topics=None)
    yield fetch(group_id=group, topics=None, groups=[of])
    yield messages.DescribeGroupsRequest(groups=[group])


def _of_strangers(group: str, offset: Spec) -> Iterator[Any]:
    yield messages.HeartbeatRequest(group_id=group, generation_id=1, member_id=NOBODY)
    yield messages.SyncGroupRequest(
        group_id=group, generation_id=1, member_id=NOBODY, protocol_type="consumer", protocol_name="range"
    )
    kind = messages.LeaveGroupRequest
    yield kind(group_id=group, member_id=NOBODY, members=[kind.MemberIdentity(member_id=NOBODY)])
    if offset:
        yield _commit(group, offset, NOBODY, 1)


def _commit(group: str, offset: Spec, member: str, generation: int) -> Any:
    """A commit of what is committed already."""
    kind = messages.OffsetCommitRequest
    topics = [
        kind.OffsetCommitRequestTopic(
            name=at.topic,
            partitions=[kind.OffsetCommitRequestPartition(partition_index=at.partition, committed_offset=committed)],
        )
        for at, committed in offset.items()
    ]
    return kind(group_id=group, generation_id_or_member_epoch=generation, member_id=member, topics=topics)


def _of_owners(name: str, producer_id: int, epoch: int, topic: str) -> Iterator[Any]:
    """What only the owner of a transactional id may ask for."""
    add = messages.AddPartitionsToTxnRequest
    yield add(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=[add.AddPartitionsToTxnTopic(name=topic, partitions=[0])],
    )
    yield messages.AddOffsetsToTxnRequest(
        transactional_id=name, producer_id=producer_id, producer_epoch=epoch, group_id=NOBODY
    )
    yield messages.EndTxnRequest(transactional_id=name, producer_id=producer_id, producer_epoch=epoch, committed=True)


def _offsets_of(name: str, producer_id: int, epoch: int, topic: str) -> Any:
    kind = messages.TxnOffsetCommitRequest
    part = kind.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = [kind.TxnOffsetCommitRequestTopic(name=topic, partitions=[part])]
    return kind(transactional_id=name, group_id=NOBODY, producer_id=producer_id, producer_epoch=epoch, topics=topics)


def _batch(name: str, producer_id: int, epoch: int, topic: TopicMetadata) -> Any:
    kind = messages.ProduceRequest
    part = kind.PartitionProduceData(index=0, records=batch(name, producer_id, epoch))
    topics = [kind.TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=[part])]
    return kind(transactional_id=name, acks=-1, timeout_ms=1000, topic_data=topics)
