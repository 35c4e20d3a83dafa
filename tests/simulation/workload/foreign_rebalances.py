"""Members of another make in the midst of a rebalance, when everything is over: one who asks for its assignment when
the next rebalance has begun, one who had no answer and says all again, and one who gives nothing up."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from typing import Any, Final

from tagwire import messages
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.client.metadata import TopicMetadata
from tests.simulation.workload.foreign import KINDS, REQUEST_S, Enough, Speaking
from tests.simulation.workload.foreign_waiting import BEGUN_S
from tests.simulation.workload.probing import NOT_NOW, REFUSED, coordinator_of, error_of

JOINED: Final = "foreign-joined"
KEEPING: Final = "foreign-keeping"
TYPE: Final = "foreign"

LONG_MS: Final = 60_000
SOON_S: Final = 10.0
"""Within which a request is answered that waits for nobody."""

LATE: Final = "nothing"
BEAT_S: Final = 0.5
ROUNDS: Final = 3
"""Heartbeats within which a member has been told all there is to tell."""

GIVES_UP_MS: Final = 4000
WAITS_MS: Final = 1500
"""How long members may take to give something up: one who keeps it, and one who has nothing to give up."""

GONE: Final = ("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH", "GROUP_ID_NOT_FOUND")
NEAR_S: Final = 0.5
"""A round trip, spikes and all, of who is near enough that nobody thinks it gone meanwhile."""


class ForeignRebalances(Speaking):
    """Its members leave when all is asked."""

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        async with (
            AsyncClient(properties) as client,
            AsyncClient(properties) as other,
            AsyncAdmin(properties) as admin,
        ):
            self.client, self.other = client, other
            if self.stage.round_trip_s + self.stage.spikes_s > NEAR_S:
                return
            with suppress(*REFUSED, Enough):
                await self._joined()
            known = [topic for topic in await self.topics_of(admin, *KINDS) if len(topic.partitions) > 1]
            if known:
                with suppress(*REFUSED, Enough):
                    await self._keeping(self.random.choice(known))

    # The classic protocol ----------------------------------------------------------------------------------------

    async def _joined(self) -> None:
        """Who asks for its assignment while others join is told to join as well, at once: they wait for it."""
        node = await coordinator_of(self.client, JOINED, 0)
        first = await self._member(node)
        generation = {"group_id": JOINED, "member_id": first.member_id, "generation_id": first.generation_id}
        about = f"who is alone in {JOINED}"
        await self.said(node, _sync(first, {first.member_id: b"all"}), f"{about} and assigns", "NONE")
        second = await self.other.request(_join(""), node=node)
        if error_of(second) != "MEMBER_ID_REQUIRED":
            raise Enough
        second_id = second.member_id
        joining = asyncio.create_task(self.other.request(_join(second_id), node=node))
        try:
            await self.sleep(BEGUN_S + self.stage.round_trip_s)
            await self._has_members(node, 2)
            about = f"a member of {JOINED} in the generation before, while another one joins"
            for request in (messages.HeartbeatRequest(**generation), _sync(first, {})):
                if await self._at_once(node, request, about, "REBALANCE_IN_PROGRESS") != "REBALANCE_IN_PROGRESS":
                    return
            again = await self.said(node, _join(first.member_id), f"{about}, that joins again", "NONE")
            joined = await joining
            told = [joined.error_code, joined.generation_id, joined.leader]
            self.holds(node, "JoinGroup", f"the other one in {JOINED}", told, [0, again.generation_id, again.leader])
            self.holds(node, "JoinGroup", f"the next one in {JOINED}", again.generation_id, first.generation_id + 1)
            await self._assigned(node, again, joined)
        finally:
            joining.cancel()
            for member in (first.member_id, second_id):
                kind = messages.LeaveGroupRequest
                left = kind(group_id=JOINED, members=[kind.MemberIdentity(member_id=member)])
                with suppress(*REFUSED):
                    await self.client.request(left, node=node)

    async def _has_members(self, node: int, count: int) -> None:
        """Waits for those whose requests are on their way still, as where the network loses some."""
        for _ in range(int(REQUEST_S)):
            described = await self.client.request(messages.DescribeGroupsRequest(groups=[JOINED]), node=node)
            if len(described.groups[0].members) == count:
                return
            await self.sleep(1.0)
        raise Enough

    async def _assigned(self, node: int, first: Any, second: Any) -> None:
        """Each has what the leader gave it, whoever of them asks first."""
        given = {first.member_id: b"one", second.member_id: b"two"}
        leads = first.leader == first.member_id
        wait = asyncio.create_task(self.other.request(_sync(second, {} if leads else given), node=node))
        own = await self.said(node, _sync(first, given if leads else {}), f"a member of {JOINED} with another", "NONE")
        others = await wait
        told = [own.assignment.decode(), others.assignment.decode()]
        self.holds(node, "SyncGroup", f"what the leader of {JOINED} gave two members", told, ["one", "two"])

    async def _member(self, node: int) -> Any:
        about = f"who joins {JOINED}"
        first = await self.said(node, _join(""), about, "NONE", "MEMBER_ID_REQUIRED")
        return await self.said(node, _join(first.member_id), about, "NONE") if first.error_code else first

    async def _at_once(self, node: int, request: Any, about: str, *answers: str) -> str:
        """What is answered soon to a request that waits for nobody; `LATE` where nothing is."""
        api = type(request).__name__.removesuffix("Request")
        asked = {"node": node, "api": api, "about": about, "answers": [*answers, *NOT_NOW]}
        op = self.history.invoke(self.process, "probe", **asked)
        try:
            async with asyncio.timeout(SOON_S + 2 * self.stage.round_trip_s):
                answer = error_of(await self.client.request(request, node=node))
        except TimeoutError:
            answer = LATE
        self.history.ok(op, answer=answer)
        return answer

    # KIP-848 -----------------------------------------------------------------------------------------------------

    async def _keeping(self, topic: TopicMetadata) -> None:
        """A member that says all again, as one does that had no answer, is told all again; one that keeps what it is to
        give up is given up when its time for that is over, and not the one that waits for it, whose time is shorter."""
        node = await coordinator_of(self.client, KEEPING, 0)
        keeps, waits = _Member("keeps", topic, GIVES_UP_MS), _Member("waits", topic, WAITS_MS)
        for _ in range(ROUNDS):
            if await self._beat(node, keeps, keeps.beat(), "NONE", otherwise=("UNSUPPORTED_VERSION",)) != "NONE":
                return
            await self.sleep(BEAT_S)
        if len(keeps.has) < len(topic.partitions):
            return
        held = set(keeps.has)
        keeps.has = set()
        await self._beat(node, keeps, keeps.says_all(held), "NONE")
        about = f"a member of {KEEPING} that says again what it wants and has: how many partitions it is told"
        self.holds(node, "ConsumerGroupHeartbeat", about, len(keeps.has), len(held))
        began = self.history.now
        while self.history.now - began < 3 * GIVES_UP_MS / 1000:
            if await self._beat(node, waits, waits.beat(), "NONE") != "NONE":
                return
            answer = await self._beat(node, keeps, keeps.says(held), "NONE", *GONE)
            if answer != "NONE" or len(waits.has) == len(topic.partitions):
                break
            await self.sleep(BEAT_S)
        about = f"a member of {KEEPING} that has kept for {3 * GIVES_UP_MS / 1000:g} s what it was to give up in"
        self.holds(node, "ConsumerGroupHeartbeat", f"{about} {GIVES_UP_MS / 1000:g}", answer in GONE, True)
        for _ in range(ROUNDS):
            await self.sleep(BEAT_S)
            if await self._beat(node, waits, waits.beat(), "NONE") != "NONE":
                return
        about = f"how much a member of {KEEPING} has when the other one was given up"
        self.holds(node, "ConsumerGroupHeartbeat", about, len(waits.has), len(topic.partitions))
        await self._beat(node, waits, waits.beat() | {"member_epoch": -1}, "NONE")

    async def _beat(
        self, node: int, member: _Member, beat: dict[str, Any], *answers: str, otherwise: tuple[str, ...] = ()
    ) -> str:
        """What is answered; what a member has and its epoch are noted in it. One that was silent for its session while
        its request was under way may be gone."""
        began = self.history.now

        def of(response: Any) -> str:
            answer = error_of(response)
            is_late = self.history.now - member.heard >= self.stage.session_s
            return "gone, when its time was over" if answer in GONE and is_late else answer

        about = f"{member.name} of {KEEPING} in epoch {member.epoch}"
        response = await self.said(
            node,
            messages.ConsumerGroupHeartbeatRequest(**beat),
            about,
            *answers,
            of=of,
            otherwise=(*otherwise, "gone, when its time was over"),
        )
        answer = of(response)
        if answer == "NONE":
            member.take(response)
            member.heard = began
        return answer


class _Member:
    """One of KIP-848: what it was told that it has, and when it said last that it is there."""

    def __init__(self, name: str, topic: TopicMetadata, gives_up_ms: int) -> None:
        self.name = f"{KEEPING}-{name}"
        self.epoch = 0
        self.has: set[tuple[Any, int]] = set()
        self.heard = math.inf
        self._topic = topic
        self._gives_up_ms = gives_up_ms

    def beat(self) -> dict[str, Any]:
        """What it says when it joins, then what it has, which is all that it was told."""
        return self.says(self.has) if self.epoch else self.says_all(set())

    def says(self, has: set[tuple[Any, int]]) -> dict[str, Any]:
        kind = messages.ConsumerGroupHeartbeatRequest
        indexes = sorted(index for _, index in has)
        own = [kind.TopicPartitions(topic_id=self._topic.topic_id, partitions=indexes)] if indexes else []
        return {
            "group_id": KEEPING,
            "member_id": self.name,
            "member_epoch": self.epoch,
            "topic_partitions": own,
        }

    def says_all(self, has: set[tuple[Any, int]]) -> dict[str, Any]:
        """With what it wants, and how long it may take to give something up."""
        return self.says(has) | {
            "rebalance_timeout_ms": self._gives_up_ms,
            "subscribed_topic_names": [self._topic.name],
        }

    def take(self, response: Any) -> None:
        self.epoch = max(response.member_epoch, 0)
        if response.assignment is not None:
            self.has = {(of.topic_id, index) for of in response.assignment.topic_partitions for index in of.partitions}


def _join(member: str) -> Any:
    kind = messages.JoinGroupRequest
    return kind(
        group_id=JOINED,
        session_timeout_ms=LONG_MS,
        rebalance_timeout_ms=LONG_MS,
        member_id=member,
        protocol_type=TYPE,
        protocols=[kind.JoinGroupRequestProtocol(name="any", metadata=b"")],
    )


def _sync(joined: Any, given: dict[str, bytes]) -> Any:
    kind = messages.SyncGroupRequest
    return kind(
        group_id=JOINED,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type=TYPE,
        protocol_name="any",
        assignments=[
            kind.SyncGroupRequestAssignment(member_id=member, assignment=data) for member, data in given.items()
        ],
    )
