"""Members of a group that are there when a broker ends, and still when it is back: it stores who is in a group and who
has what, and gives each its time anew."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from tagwire import messages
from tagwire.client.aio import AsyncClient
from tests.simulation.workload.foreign import REQUEST_S, Enough, Speaking
from tests.simulation.workload.probing import REFUSED, coordinator_of
from tests.simulation.workload.stage import Spec, Stage

GROUP: Final = "foreign-abiding"
TYPE: Final = "foreign"
LONG_MS: Final = 600_000
"""Much longer than a broker is away."""

GIVEN: Final = b"what it was given"
NAMES: Final = (None, "instance")
"""Of members: one that has none of its own, and a static one."""


class Abiding(Speaking):
    """Joins, as the only member of each of its groups.

    Attributes:
        joined: by group, what it was answered.
    """

    def __init__(self, stage: Stage, spec: Spec) -> None:
        super().__init__(stage, spec)
        self.joined: dict[str, Any] = {}

    async def ask(self) -> None:
        async with AsyncClient(self.stage.properties(self.process, REQUEST_S)) as client:
            self.client = client
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


class Abides(Speaking):
    """Looks whether that member is one still, and has what it had; then it leaves."""

    def __init__(self, stage: Stage, spec: Spec, before: Abiding) -> None:
        super().__init__(stage, spec)
        self._before = before

    async def ask(self) -> None:
        async with AsyncClient(self.stage.properties(self.process, REQUEST_S)) as client:
            self.client = client
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
