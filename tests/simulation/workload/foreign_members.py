"""Members of groups of another make, when everything is over: two of one instance id, one who leads and joins again,
and two of KIP-848 of whom one takes its time to say what it has."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, Final

from tagwire import messages
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.client.metadata import TopicMetadata
from tests.simulation.workload.foreign import KINDS, REQUEST_S, Enough, Speaking
from tests.simulation.workload.probing import REFUSED, coordinator_of, error_of

STATIC: Final = "foreign-static"
LED: Final = "foreign-led"
SHARED: Final = "foreign-members"
INSTANCE: Final = "instance"
TYPE: Final = "foreign"
"""A kind of groups that a broker need not understand."""

LONG_MS: Final = 30_000
BEAT_S: Final = 0.5
GIVEN_UP: Final = "UNKNOWN_MEMBER_ID or GROUP_ID_NOT_FOUND, when its time was over"
"""A group whose last member is gone is forgotten, where it has committed nothing."""

ROUNDS: Final = 3
"""Heartbeats within which a member has been told all there is to tell."""

BY_MEMBER: Final = 8
"""A version of OffsetCommit that every release has, and that names topics."""


class ForeignMembers(Speaking):
    """Its members leave when all is asked."""

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        async with AsyncClient(properties) as client, AsyncAdmin(properties) as admin:
            self.client = client
            known = await self.topics_of(admin, *KINDS)
            if not known:
                return
            with suppress(*REFUSED, Enough):
                await self._static(known[0])
            with suppress(*REFUSED, Enough):
                await self._led()
            with suppress(*REFUSED, Enough):
                await self._shared(max(known, key=lambda topic: len(topic.partitions)))

    # The classic protocol ----------------------------------------------------------------------------------------

    async def _static(self, topic: TopicMetadata) -> None:
        """The second member of an instance id has the place of the first, who is refused from then on."""
        node = await coordinator_of(self.client, STATIC, 0)
        first, has = await self._joined(node, b"of the first")
        second, has_still = await self._joined(node, b"of the second")
        about = f"what the second member of an instance of {STATIC} has, who came back within its session"
        self.holds(node, "SyncGroup", about, has_still.decode(), has.decode())
        generation = second.generation_id
        about = f"the first member of an instance of {STATIC}, where the second has its place"
        member = {"group_id": STATIC, "member_id": first.member_id}
        of_instance = {**member, "generation_id": generation, "group_instance_id": INSTANCE}
        await self.said(node, messages.HeartbeatRequest(**of_instance), about, "FENCED_INSTANCE_ID")
        sync = messages.SyncGroupRequest(**of_instance, protocol_type=TYPE, protocol_name="any")
        await self.said(node, sync, about, "FENCED_INSTANCE_ID")
        await self.said(node, _join(STATIC, first.member_id, INSTANCE), about, "FENCED_INSTANCE_ID")
        commit = _commit(topic, first.member_id, generation)
        await self.said(node, commit, about, "FENCED_INSTANCE_ID", version=BY_MEMBER)
        nameless = messages.HeartbeatRequest(**member, generation_id=generation)
        await self.said(node, nameless, f"{about}, without its name", "UNKNOWN_MEMBER_ID")
        living = {"group_id": STATIC, "member_id": second.member_id, "generation_id": generation}
        about = f"the second member of an instance of {STATIC}"
        beat = messages.HeartbeatRequest(**living, group_instance_id=INSTANCE)
        await self.said(node, beat, about, "NONE")
        older = messages.HeartbeatRequest(**{**living, "generation_id": generation - 1}, group_instance_id=INSTANCE)
        await self.said(node, older, f"{about} in the generation before", "ILLEGAL_GENERATION")
        other = messages.HeartbeatRequest(**living, group_instance_id="another")
        await self.said(node, other, f"{about} by another name", "UNKNOWN_MEMBER_ID")
        kind = messages.LeaveGroupRequest
        gone = kind.MemberIdentity(member_id=second.member_id, group_instance_id=INSTANCE)
        await self.said(node, kind(group_id=STATIC, members=[gone]), about, "NONE")

    async def _joined(self, node: int, assigns: bytes) -> tuple[Any, bytes]:
        """A new member, who would assign this, and what it has."""
        about = f"a member of an instance of {STATIC} that joins"
        joined = await self.said(node, _join(STATIC, "", INSTANCE), about, "NONE")
        sync = _sync(STATIC, joined, assigns, INSTANCE)
        return joined, (await self.said(node, sync, about, "NONE")).assignment

    async def _led(self) -> None:
        """A leader that joins again before it has assigned had no answer; once it has, it wants to assign anew, though
        it says nothing new of itself: what its topics are is not told."""
        node = await coordinator_of(self.client, LED, 0)
        about = f"who is alone in {LED} and joins"
        first = await self.said(node, _join(LED, ""), about, "NONE", "MEMBER_ID_REQUIRED")
        member = first.member_id
        joined = await self.said(node, _join(LED, member), about, "NONE") if first.error_code else first
        again = await self.said(node, _join(LED, member), about, "NONE")
        generation = joined.generation_id
        about = f"the generation of {LED} whose leader has joined again"
        self.holds(node, "JoinGroup", f"{about} before it has assigned", again.generation_id, generation)
        await self.said(node, _sync(LED, again, b"all"), f"the leader of {LED}", "NONE")
        anew = await self.said(node, _join(LED, member), f"the leader of {LED} that joins again", "NONE")
        self.holds(node, "JoinGroup", about, anew.generation_id, generation + 1)
        given = await self.said(node, _sync(LED, anew, b"more"), f"the leader of {LED} that assigns anew", "NONE")
        self.holds(node, "SyncGroup", f"what the leader of {LED} has", given.assignment.decode(), "more")
        kind = messages.LeaveGroupRequest
        gone = kind.MemberIdentity(member_id=member)
        leave = kind(group_id=LED, members=[gone])
        await self.said(node, leave, f"the leader of {LED} that leaves", "NONE")

    # KIP-848 -----------------------------------------------------------------------------------------------------

    async def _shared(self, topic: TopicMetadata) -> None:
        """What a member has not said that it gave up is nobody else's; what it has is the other's soon."""
        if len(topic.partitions) < 2:
            return
        node = await coordinator_of(self.client, SHARED, 0)
        first, second = _Member("foreign-1", topic), _Member("foreign-2", topic)
        for _ in range(ROUNDS):
            await self._beat(node, first)
            if first.has:
                break
            await self.sleep(BEAT_S)
        else:
            return
        held = set(first.has)
        await self._beat(node, first, says=held)
        for _ in range(ROUNDS):
            await self._beat(node, second)
            await self.sleep(BEAT_S)
            await self._beat(node, first)
            about = f"partitions of {SHARED} that one member has, and another did not give up"
            self.holds(node, "ConsumerGroupHeartbeat", about, len(held & second.has), 0)
        kept = set(first.has)
        for _ in range(ROUNDS):
            await self._beat(node, first, says=kept)
            await self._beat(node, second)
            await self.sleep(BEAT_S)
        about = f"partitions of {SHARED} that two members have, of whom one gave up what it was to"
        self.holds(node, "ConsumerGroupHeartbeat", about, len(kept | second.has), len(topic.partitions))
        newer = first.beat() | {"member_epoch": first.epoch + 1000}
        about = f"a member of {SHARED} in an epoch that nobody has"
        await self._said_as(node, first, newer, about, "FENCED_MEMBER_EPOCH")
        for member in (first, second):
            gone = member.beat() | {"member_epoch": -1}
            await self._said_as(node, member, gone, f"a member of {SHARED} that leaves", "NONE")

    async def _beat(self, node: int, member: _Member, says: set[tuple[Any, int]] | None = None) -> None:
        about = f"{member.name} of {SHARED} in epoch {member.epoch}"
        without = ("UNSUPPORTED_VERSION",) if member.epoch == 0 else ()  # a broker may have no such groups
        began = self.history.now
        member.take(await self._said_as(node, member, member.beat(says), about, "NONE", otherwise=without))
        member.heard, member.joined = began, min(member.joined, began)

    async def _said_as(
        self,
        node: int,
        member: _Member,
        beat: dict[str, Any],
        about: str,
        *answers: str,
        otherwise: tuple[str, ...] = (),
    ) -> Any:
        """As `said`; a member may be none any more where its requests took longer than its session, or than it may
        take to give something up."""

        def of(response: Any) -> str:
            answer, now = error_of(response), self.history.now
            is_late = now - member.heard >= self.stage.session_s or now - member.joined >= LONG_MS / 1000
            return GIVEN_UP if answer in ("UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND") and is_late else answer

        request = messages.ConsumerGroupHeartbeatRequest(**beat)
        return await self.said(node, request, about, *answers, of=of, otherwise=(*otherwise, GIVEN_UP))


class _Member:
    """One of KIP-848: what it was told that it has; when it joined, and when it said last that it is there."""

    def __init__(self, name: str, topic: TopicMetadata) -> None:
        self.name = name
        self.epoch = 0
        self.has: set[tuple[Any, int]] = set()
        self.joined = self.heard = math.inf
        self._topic = topic

    def beat(self, says: set[tuple[Any, int]] | None = None) -> dict[str, Any]:
        kind = messages.ConsumerGroupHeartbeatRequest
        told: dict[str, Any] = {"group_id": SHARED, "member_id": self.name, "member_epoch": self.epoch}
        if self.epoch == 0:
            return told | {
                "rebalance_timeout_ms": LONG_MS,
                "subscribed_topic_names": [self._topic.name],
                "topic_partitions": [],
            }
        if says is not None:
            indexes = sorted(index for _, index in says)
            own = [kind.TopicPartitions(topic_id=self._topic.topic_id, partitions=indexes)] if indexes else []
            told["topic_partitions"] = own
        return told

    def take(self, response: Any) -> None:
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.has = {(of.topic_id, index) for of in response.assignment.topic_partitions for index in of.partitions}


def _join(group: str, member: str, instance: str | None = None) -> Any:
    kind = messages.JoinGroupRequest
    return kind(
        group_id=group,
        session_timeout_ms=LONG_MS,
        rebalance_timeout_ms=LONG_MS,
        member_id=member,
        group_instance_id=instance,
        protocol_type=TYPE,
        protocols=[kind.JoinGroupRequestProtocol(name="any", metadata=b"")],
    )


def _sync(group: str, joined: Any, assigns: bytes, instance: str | None = None) -> Any:
    """By a member that assigns all there is to itself, if it leads."""
    kind = messages.SyncGroupRequest
    return kind(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=instance,
        protocol_type=TYPE,
        protocol_name="any",
        assignments=[kind.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assigns)],
    )


def _commit(topic: TopicMetadata, member: str, generation: int) -> Any:
    kind = messages.OffsetCommitRequest
    part = kind.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    return kind(
        group_id=STATIC,
        generation_id_or_member_epoch=generation,
        member_id=member,
        group_instance_id=INSTANCE,
        topics=[kind.OffsetCommitRequestTopic(name=topic.name, partitions=[part])],
    )
