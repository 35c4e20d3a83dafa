"""Members of groups of another make, who follow: a classic one that joins again when its leader is away, one of KIP-848
that speaks of the epoch before, and a static one that goes away with partitions that it was to give up."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

from tagwire import messages
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.client.metadata import TopicMetadata
from tests.simulation.workload.foreign import KINDS, REQUEST_S, Enough
from tests.simulation.workload.foreign_members import BEAT_S, LONG_MS, ROUNDS, TYPE, ForeignMembers, _Member
from tests.simulation.workload.foreign_waiting import BEGUN_S
from tests.simulation.workload.probing import REFUSED, coordinator_of, error_of

LED: Final = "foreign-led"
LAGGING: Final = "foreign-lagging"
AWAY: Final = "foreign-away"
REBALANCE_MS: Final = 4000
OVER: Final = "UNKNOWN_MEMBER_ID, when the time to synchronize was over"


class ForeignFollowers(ForeignMembers):
    """Its members leave when all is asked. Two of them have connections of their own: of one, requests are answered in
    their order."""

    other: AsyncClient

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        async with (
            AsyncClient(properties) as client,
            AsyncClient(properties) as other,
            AsyncAdmin(properties) as admin,
        ):
            self.client, self.other = client, other
            known = await self.topics_of(admin, *KINDS)
            if not known:
                return
            with suppress(*REFUSED, Enough):
                await self._led()
            topic = max(known, key=lambda topic: len(topic.partitions))
            for act in (self._lagging, self._away) if len(topic.partitions) > 1 else ():
                with suppress(*REFUSED, Enough):
                    await act(topic)

    # The classic protocol ----------------------------------------------------------------------------------------

    async def _led(self) -> None:
        """Who joins again with another subscription begins a rebalance, and leads where the leader does not come."""
        node = await coordinator_of(self.client, LED, 0)
        about = f"a member of {LED} that joins"
        began = self.history.now
        first = await self.said(node, _join("one", "", b""), about, "NONE")
        await self._synced(node, "one", first, began)
        began = self.history.now
        joining = asyncio.ensure_future(self.other.request(_join("two", "", b""), node=node))
        await asyncio.sleep(BEGUN_S + self.stage.round_trip_s)  # by then it waits for the first one
        try:
            first = await self.said(node, _join("one", first.member_id, b""), about, "NONE")
        finally:
            second = await joining
        if first.generation_id != second.generation_id or first.leader != first.member_id:
            return  # one came when the other was done
        await self._synced(node, "one", first, began)
        await self._synced(node, "two", second, began)
        again = await self.said(node, _join("two", second.member_id, b"another"), about, "NONE")
        due = [second.generation_id + 1, second.member_id]
        about = f"generation and leader of {LED}, when a member has joined again and its leader has not"
        self.holds(node, "JoinGroup", about, [again.generation_id, again.leader], due)
        kind = messages.LeaveGroupRequest
        members = [
            kind.MemberIdentity(member_id=member.member_id, group_instance_id=name)
            for name, member in (("one", first), ("two", second))
        ]
        await self.client.request(kind(group_id=LED, members=members), node=node)

    async def _synced(self, node: int, name: str, joined: Any, began: float) -> None:
        """Synchronizes who has begun to join then. Who has not within the time of a rebalance, as on a slow network, is
        no member any more."""
        kind = messages.SyncGroupRequest
        assignments = [
            kind.SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"some") for member in joined.members
        ]
        request = kind(
            group_id=LED,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=name,
            protocol_type=TYPE,
            protocol_name="any",
            assignments=assignments,
        )

        def of(response: Any) -> str:
            answer = error_of(response)
            is_late = self.history.now - began >= REBALANCE_MS / 1000
            return OVER if answer == "UNKNOWN_MEMBER_ID" and is_late else answer

        await self.said(node, request, f"a member of {LED} that has joined", "NONE", of=of, otherwise=(OVER,))

    # KIP-848 -----------------------------------------------------------------------------------------------------

    async def _lagging(self, topic: TopicMetadata) -> None:
        """Who speaks of the epoch before goes on with what it has now, and with nothing that it had then."""
        node = await coordinator_of(self.client, LAGGING, 0)
        first, second = _Member("foreign-1", topic), _Member("foreign-2", topic)
        held = await self._holds_all(node, LAGGING, first)
        await self._beat_in(node, LAGGING, second)
        await self._beat_in(node, LAGGING, first)
        before, kept = first.epoch, set(first.has)
        if kept == held:
            return
        await self._beat_in(node, LAGGING, first, says=kept)
        if first.epoch != before + 1:
            return
        about = f"a member of {LAGGING} that speaks of the epoch before"
        for says, answer in ((kept, "NONE"), (held, "FENCED_MEMBER_EPOCH")):
            told = first.beat(says) | {"group_id": LAGGING, "member_epoch": before}
            await self._said_as(node, first, told, f"{about}, with {len(says)} partitions", answer)
        await self._leave(node, LAGGING, first, second)

    async def _away(self, topic: TopicMetadata) -> None:
        """What a static member was to give up is another's when it is away, and what is its own is not."""
        node = await coordinator_of(self.client, AWAY, 0)
        first, second = _Member("foreign-1", topic), _Member("foreign-2", topic)
        held = await self._holds_all(node, AWAY, first, instance_id="one")
        await self._beat_in(node, AWAY, second)
        await self._beat_in(node, AWAY, first, instance_id="one")
        kept = set(first.has)
        if kept == held:
            return
        away = first.beat() | {"group_id": AWAY, "member_epoch": -2, "instance_id": "one"}
        await self._said_as(node, first, away, f"a static member of {AWAY} that goes away for a while", "NONE")
        for _ in range(ROUNDS):
            await self._beat_in(node, AWAY, second)
            await self.sleep(BEAT_S)
        if self.history.now - first.heard < self.stage.session_s:  # to go away is no sign of life
            about = f"partitions of {AWAY} that a member has, whom a static one was to give some and went away"
            self.holds(node, "ConsumerGroupHeartbeat", about, len(second.has), len(held - kept))
        await self._leave(node, AWAY, second)
        gone = first.beat() | {"group_id": AWAY, "member_epoch": -1, "instance_id": "one"}
        await self._said_as(node, first, gone, f"a static member of {AWAY} that leaves for good", "NONE")

    async def _holds_all(self, node: int, group: str, member: _Member, **more: str) -> set[tuple[Any, int]]:
        """What the only member of a group has, which says so. Raises Enough where it is given nothing."""
        for _ in range(ROUNDS):
            await self._beat_in(node, group, member, **more)
            if member.has:
                await self._beat_in(node, group, member, says=set(member.has), **more)
                return set(member.has)
            await self.sleep(BEAT_S)
        raise Enough

    async def _beat_in(
        self, node: int, group: str, member: _Member, says: set[tuple[Any, int]] | None = None, **more: str
    ) -> None:
        without = ("UNSUPPORTED_VERSION",) if member.epoch == 0 else ()  # a broker may have no such groups
        began, beat = self.history.now, member.beat(says) | {"group_id": group} | more
        about = f"{member.name} of {group} in epoch {member.epoch}"
        member.take(await self._said_as(node, member, beat, about, "NONE", otherwise=without))
        member.heard, member.joined = began, min(member.joined, began)

    async def _leave(self, node: int, group: str, *members: _Member) -> None:
        for member in members:
            gone = member.beat() | {"group_id": group, "member_epoch": -1}
            await self._said_as(node, member, gone, f"a member of {group} that leaves", "NONE")


def _join(instance: str, member: str, metadata: bytes) -> Any:
    kind = messages.JoinGroupRequest
    return kind(
        group_id=LED,
        session_timeout_ms=LONG_MS,
        rebalance_timeout_ms=REBALANCE_MS,
        member_id=member,
        group_instance_id=instance,
        protocol_type=TYPE,
        protocols=[kind.JoinGroupRequestProtocol(name="any", metadata=metadata)],
    )
