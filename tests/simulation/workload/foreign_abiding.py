"""What is there when a broker ends, and still when it is back: members of a group, whose broker stores who is in it and
who has what, and gives each its time anew; a transaction that is open, from the first record of a partition on; and
that one was aborted, which had a group's offset."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from tagwire import messages
from tagwire.client import NewTopic
from tagwire.client.aio import AsyncAdmin, AsyncClient, AsyncReader
from tagwire.partitions import LATEST, TopicPartition
from tests.simulation.workload.foreign import REQUEST_S, Enough, Speaking
from tests.simulation.workload.owning import Owner
from tests.simulation.workload.probing import NOT_NOW, PATIENCE, REFUSED, coordinator_of
from tests.simulation.workload.stage import Spec, Stage

GROUP: Final = "foreign-abiding"
TYPE: Final = "foreign"
LONG_MS: Final = 600_000
"""Much longer than a broker is away."""

GIVEN: Final = b"what it was given"
NAMES: Final = (None, "instance")
"""Of members: one that has none of its own, and a static one."""

OFFSETS: Final = f"{GROUP}-offsets"
TOPICS: Final = {True: "foreign-abiding-committed", False: "foreign-abiding-aborted"}
"""By what becomes of the transaction in each."""


class Abiding(Speaking):
    """Joins, as the only member of each of its groups, and begins transactions.

    Attributes:
        joined: by group, what it was answered.
        begun: by the name of its topic, who has a transaction open, in which one record was written.
        aborted: of which partition a group's offset was aborted with its transaction; None where it was not.
    """

    def __init__(self, stage: Stage, spec: Spec) -> None:
        super().__init__(stage, spec)
        self.joined: dict[str, Any] = {}
        self.begun: dict[str, Owner] = {}
        self.aborted: TopicPartition | None = None

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        async with AsyncClient(properties) as client, AsyncAdmin(properties) as admin:
            self.client = client
            await admin.create_topics([NewTopic(name, 1, -1, {}) for name in TOPICS.values()])
            for name in TOPICS.values():
                with suppress(*REFUSED, Enough):
                    await self._begin(name)
            with suppress(*REFUSED, Enough):
                await self._abort(TOPICS[False])
            for name in NAMES:
                with suppress(*REFUSED, Enough):
                    await self._join(_group(name), name)

    async def _join(self, group: str, name: str | None) -> None:
        node, kind = await coordinator_of(self.client, group, 0), messages.JoinGroupRequest
        about = f"who joins {group} as {name or 'one without a name'}"

        def request(member: str) -> Any:
            return kind(
                group_id=group,
                session_timeout_ms=LONG_MS,
                rebalance_timeout_ms=LONG_MS,
                member_id=member,
                group_instance_id=name,
                protocol_type=TYPE,
                protocols=[kind.JoinGroupRequestProtocol(name="any", metadata=b"")],
            )

        joined = await self.said(node, request(""), about, "NONE", "MEMBER_ID_REQUIRED")
        if joined.error_code:
            joined = await self.said(node, request(joined.member_id), about, "NONE")
        await self.said(node, _sync(group, name, joined, GIVEN), f"{about}, and is given something", "NONE")
        self.joined[group] = joined

    async def _abort(self, name: str) -> None:
        topic, timeout_ms = await self.client.topic(name), int(2000 * PATIENCE)
        owner = await Owner.begun(self, self.client, OFFSETS, topic, 0, timeout_ms)
        await owner.commit_offset(OFFSETS, 5)
        if await owner.end(commit=False) == "NONE":
            self.aborted = TopicPartition(name, 0)

    async def _begin(self, name: str) -> None:
        owner = await Owner.begun(self, self.client, name, await self.client.topic(name), 0, int(5000 * PATIENCE))
        if await owner.produce() == "NONE":
            self.begun[name] = owner


class Abides(Speaking):
    """Looks whether that member is one still, and has what it had; then it leaves. And whether what was open is open,
    and counts when it is committed, and not when it is aborted."""

    def __init__(self, stage: Stage, spec: Spec, before: Abiding) -> None:
        super().__init__(stage, spec)
        self._before = before

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        async with AsyncClient(properties) as client, AsyncAdmin(properties) as admin:
            self.client = client
            for commits, topic in TOPICS.items():
                if (owner := self._before.begun.get(topic)) is not None:
                    with suppress(*REFUSED, Enough):
                        coordinator = await coordinator_of(client, owner.name, 1)
                        await self._end(replace(owner, client=client, coordinator=coordinator), commits=commits)
            if self._before.aborted is not None:
                with suppress(*REFUSED):
                    found = await admin.group_offsets(OFFSETS)
                    node = await coordinator_of(client, OFFSETS, 0)
                    about = f"{OFFSETS}, whose only offset was aborted with its transaction before"
                    self.holds(node, "OffsetFetch", about, [offset.offset for offset in found.values()], [])
            with suppress(*REFUSED):
                await admin.delete_topics(list(TOPICS.values()))
            for name in NAMES:
                if (joined := self._before.joined.get(_group(name))) is not None:
                    with suppress(*REFUSED, Enough):
                        await self._look(_group(name), name, joined)

    async def _look(self, group: str, name: str | None, joined: Any) -> None:
        node = await coordinator_of(self.client, group, 0)
        about = f"the member of {group} that was there before"
        beat = messages.HeartbeatRequest(
            group_id=group, generation_id=joined.generation_id, member_id=joined.member_id, group_instance_id=name
        )
        await self.said(node, beat, about, "NONE")
        again = await self.said(node, _sync(group, name, joined, b"another"), about, "NONE")
        self.holds(node, "SyncGroup", f"{about}, and what it has", again.assignment.decode(), GIVEN.decode())
        kind = messages.LeaveGroupRequest
        gone = kind.MemberIdentity(member_id=joined.member_id, group_instance_id=name)
        await self.said(node, kind(group_id=group, members=[gone]), f"{about}, and leaves", "NONE")

    async def _end(self, owner: Owner, *, commits: bool) -> None:
        at, isolation = TopicPartition(owner.topic.name, 0), "read_committed"
        node = (await self.client.topic(at.topic)).partitions[0].leader
        (stable,) = (await self.client.list_offsets({at: LATEST}, isolation=isolation)).values()
        about = f"{at}, which begins with a transaction that was open when its broker ended"
        self.holds(node, "ListOffsets", f"where readers of committed records are to stop in {about}", stable, 0)
        asked = {"node": owner.coordinator, "api": "EndTxn", "about": about, "answers": ["NONE", *NOT_NOW]}
        op = self.history.invoke(self.process, "probe", **asked)
        answer = await owner.end(commit=commits)
        self.history.ok(op, answer=answer)
        if answer == "NONE":
            (end,) = (await self.client.list_offsets({at: LATEST}, isolation=isolation)).values()
            async with AsyncReader(self.client, {at: 0}, end_offsets={at: end}, isolation=isolation) as reader:
                count = len([record async for record in reader.records()])
            about = f"records for readers of committed ones in {about}, and was {'committed' if commits else 'aborted'}"
            self.holds(node, "Fetch", about, count, int(commits))


def _group(name: str | None) -> str:
    return f"{GROUP}-{name or 'nameless'}"


def _sync(group: str, name: str | None, joined: Any, given: bytes) -> Any:
    kind = messages.SyncGroupRequest
    return kind(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=name,
        protocol_type=TYPE,
        protocol_name="any",
        assignments=[kind.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=given)],
    )
