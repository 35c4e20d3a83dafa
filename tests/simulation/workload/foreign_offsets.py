"""Clients of another make that commit offsets, when everything is over: by a name of their own to a group without
members, for as long as they say, in a transaction while an assignment is waited for; and a member that sends heartbeats
and never asks for what it was given."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

from tagwire import messages
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.client.metadata import TopicMetadata
from tagwire.partitions import TopicPartition
from tests.simulation.workload.foreign import COMMIT_BY_NAME, REQUEST_S, Enough, Speaking
from tests.simulation.workload.owning import Owner
from tests.simulation.workload.probing import NOT_NOW, PATIENCE, REFUSED, coordinator_of, error_of
from tests.simulation.workload.stage import Spec, Stage

KEPT_VERSION: Final = 4
"""The last version of OffsetCommit in which a client says how long an offset is kept."""

SHORT_MS: Final = 1000
DAY_MS: Final = 86_400_000
NOT_SAID: Final = -1

LOOKED_S: Final = 12.0
"""By then a broker has looked at what is too old, as often as plans have it."""

TYPE: Final = "foreign"
REBALANCE_S: Final = 4.0
SESSION_MS: Final = 30_000
BEAT_S: Final = 0.5
NEAR_S: Final = 0.1
"""A round trip, spikes and all, of who is near enough that its group does not think it gone meanwhile."""


class Committing(Speaking):
    """Its spec: none of its own."""

    async def commit(self, node: int, group: str, at: TopicPartition, offset: int, about: str, **said: Any) -> None:
        """Commits, and is answered that it was. `said`: what the request says besides, and its version."""
        version = said.pop("version", COMMIT_BY_NAME)
        await self.said(node, commit(group, at, offset, **said), about, "NONE", version=version)

    async def stands(self, admin: AsyncAdmin, node: int, group: str, at: TopicPartition, due: Any, about: str) -> None:
        """Notes where a group stands, and where it is to."""
        found = await admin.group_offsets(group)
        self.holds(node, "OffsetFetch", about, found[at].offset if at in found else None, due)


class ForeignOffsets(Committing):
    """Its groups have no members when all is asked."""

    def __init__(self, stage: Stage, spec: Spec) -> None:
        super().__init__(stage, spec)
        self._is_near = stage.round_trip_s + stage.spikes_s <= NEAR_S

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        async with AsyncClient(properties) as client, AsyncAdmin(properties) as admin:
            self.client, self.admin = client, admin
            topics = await self.topics_of(admin, "steady")
            if not topics:
                return
            topic = self.random.choice(topics)
            index = self.random.choice(sorted(topic.partitions))
            acts = [self._named, self._kept] + [self._between, self._never_asks] * self._is_near
            for act in acts:
                with suppress(*REFUSED, Enough):
                    await act(topic, index)

    async def _named(self, topic: TopicMetadata, index: int) -> None:
        """To a group without members anybody commits who says no generation, whatever else it says."""
        at, group = TopicPartition(topic.name, index), "foreign-named"
        node = await coordinator_of(self.client, group, 0)
        for number, name in enumerate(("", "a-name", "another-name")):
            about = f"{group}, which has no members, by {name or 'nobody'}"
            await self.commit(node, group, at, number, about, member_id=name)
        await self.stands(self.admin, node, group, at, 2, f"{group}, to which everybody may commit")

    async def _kept(self, topic: TopicMetadata, index: int) -> None:
        """An offset stays for as long as its client says, and for as long as a transaction has another."""
        at = TopicPartition(topic.name, index)
        groups = {"foreign-kept-short": SHORT_MS, "foreign-kept-long": DAY_MS, "foreign-kept-pending": SHORT_MS}
        nodes = {}
        for group, kept in groups.items():
            nodes[group] = node = await coordinator_of(self.client, group, 0)
            about = f"{group}, whose offset is kept for {kept} ms"
            await self.commit(node, group, at, 3, about, version=KEPT_VERSION, retention_time_ms=kept)
        owner = await Owner.begun(self, self.client, "foreign-kept", topic, index, int(2000 * PATIENCE))
        await owner.commit_offset("foreign-kept-pending", 5)
        await asyncio.sleep(LOOKED_S)
        ended = await owner.end(commit=True)
        for group, due in (("foreign-kept-short", None), ("foreign-kept-long", 3), ("foreign-kept-pending", 5)):
            if group != "foreign-kept-pending" or ended == "NONE":
                about = f"{group}, whose offset was to be kept for {groups[group]} ms"
                await self.stands(self.admin, nodes[group], group, at, due, f"{about}, {LOOKED_S:g} s later")

    # Members -----------------------------------------------------------------------------------------------------

    async def _between(self, topic: TopicMetadata, index: int) -> None:
        """A member that has joined, and waits for its assignment, commits in transactions alone."""
        at, group = TopicPartition(topic.name, index), "foreign-between"
        node = await coordinator_of(self.client, group, 0)
        owner = await Owner.begun(self, self.client, group, topic, index, int(2000 * PATIENCE))
        joined = await self._join(node, group)
        own = {"generation_id_or_member_epoch": joined.generation_id, "member_id": joined.member_id}
        add = messages.AddOffsetsToTxnRequest(
            transactional_id=group, producer_id=owner.producer_id, producer_epoch=owner.epoch, group_id=group
        )
        about = f"{group}, whose member waits for its assignment"
        await self.said(owner.coordinator, add, about, "NONE")
        kind = messages.TxnOffsetCommitRequest
        part = kind.TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=7)
        request = kind(
            transactional_id=group,
            group_id=group,
            producer_id=owner.producer_id,
            producer_epoch=owner.epoch,
            **own,
            topics=[kind.TxnOffsetCommitRequestTopic(name=topic.name, partitions=[part])],
        )
        await self._answers(node, request, f"{about}, in a transaction", "NONE")
        beside = commit(group, at, 6, **own)
        await self._answers(node, beside, f"{about}, beside it", "REBALANCE_IN_PROGRESS", version=COMMIT_BY_NAME)
        ended = await owner.end(commit=True)
        await self._leave(node, group, joined.member_id)
        if ended == "NONE":
            await self.stands(self.admin, node, group, at, 7, f"{about}, when its transaction is committed")

    async def _never_asks(self, topic: TopicMetadata, index: int) -> None:
        """A member that does not ask for what it was given is none any more when the time of its rebalance is over,
        though it sends heartbeats."""
        group = "foreign-unasked"
        node = await coordinator_of(self.client, group, 0)
        first = await self._join(node, group)
        await self._sync(node, group, first, [first.member_id])
        # Over connections of its own: on one, the first would wait behind the second.
        async with AsyncClient(self.stage.properties(f"{self.process}-other", REQUEST_S)) as beside:
            coming = asyncio.create_task(self._join(node, group, by=beside))
            try:
                await asyncio.sleep(BEAT_S)  # the second one waits for the first by then
                leader = await self._join(node, group, first.member_id)
            finally:
                other = await coming
        if leader.leader != leader.member_id or leader.generation_id != other.generation_id:
            return
        await self._sync(node, group, leader, [leader.member_id, other.member_id])
        beat = {"group_id": group, "generation_id": other.generation_id, "member_id": other.member_id}
        answer = ""
        for _ in range(int(2 * REBALANCE_S / BEAT_S)):
            await asyncio.sleep(BEAT_S)
            answer = error_of(await self.client.request(messages.HeartbeatRequest(**beat), node=node))
        self.holds(node, "Heartbeat", f"a member of {group} that never asked", answer, "UNKNOWN_MEMBER_ID")
        for member in (leader, other):
            await self._leave(node, group, member.member_id)

    async def _join(self, node: int, group: str, member: str = "", by: AsyncClient | None = None) -> Any:
        """The answer to who joins, by the id that it was given first."""
        kind, client = messages.JoinGroupRequest, by or self.client

        def request(name: str) -> Any:
            return kind(
                group_id=group,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=int(REBALANCE_S * 1000),
                member_id=name,
                protocol_type=TYPE,
                protocols=[kind.JoinGroupRequestProtocol(name="any", metadata=b"")],
            )

        joined = await client.request(request(member), node=node)
        if error_of(joined) == "MEMBER_ID_REQUIRED":
            joined = await client.request(request(joined.member_id), node=node)
        if error_of(joined) != "NONE":
            raise Enough
        return joined

    async def _sync(self, node: int, group: str, leader: Any, members: list[str]) -> None:
        """A leader asks for its own assignment, and assigns to all."""
        kind = messages.SyncGroupRequest
        sync = kind(
            group_id=group,
            generation_id=leader.generation_id,
            member_id=leader.member_id,
            protocol_type=TYPE,
            protocol_name="any",
            assignments=[kind.SyncGroupRequestAssignment(member_id=each, assignment=b"x") for each in members],
        )
        await self.said(node, sync, f"the leader of {group}", "NONE")

    async def _leave(self, node: int, group: str, member: str) -> None:
        """By a version that names members in a list, as every release has."""
        kind = messages.LeaveGroupRequest
        gone = kind.MemberIdentity(member_id=member)
        with suppress(*REFUSED):
            await self.client.request(kind(group_id=group, members=[gone]), node=node)

    async def _answers(self, node: int, request: Any, about: str, due: str, version: int | None = None) -> None:
        """Notes what a request is answered, which may be that a broker cannot do it now, though no other answer."""
        answer = error_of(await self.client.request(request, node=node, version=version))
        answers = [due, *(each for each in NOT_NOW if each != "REBALANCE_IN_PROGRESS")]
        api = type(request).__name__.removesuffix("Request")
        op = self.history.invoke(self.process, "probe", node=node, api=api, about=about, answers=answers)
        self.history.ok(op, answer=answer)


def commit(group: str, at: TopicPartition, offset: int, **said: Any) -> Any:
    """A request that commits one offset. `said`: what else it says."""
    kind = messages.OffsetCommitRequest
    part = kind.OffsetCommitRequestPartition(partition_index=at.partition, committed_offset=offset)
    topics = [kind.OffsetCommitRequestTopic(name=at.topic, partitions=[part])]
    return kind(group_id=group, topics=topics, **said)
