"""Groups that have not committed for longer than offsets are kept, when everything is over: while the broker's clock is
set back they commit, and it is right again when their members go on, leave, or have left long ago."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from tagwire import messages
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.partitions import TopicPartition
from tests.simulation.workload.foreign import COMMIT_BY_NAME, REQUEST_S, Enough
from tests.simulation.workload.foreign_offsets import LOOKED_S, ForeignOffsets, commit
from tests.simulation.workload.probing import REFUSED, coordinator_of
from tests.simulation.workload.stage import Spec, Stage

AGO_S: Final = 8 * 86_400.0
"""So long ago they commit: offsets are kept for a week."""

BEAT_S: Final = 3.0
STANDS: Final = 5


class ForeignIdle(ForeignOffsets):
    """Its groups: of one whose member goes on, one whose member leaves only now, one whose member left at once, and one
    that never had any."""

    def __init__(self, stage: Stage, spec: Spec, jump: Callable[[float], object]) -> None:
        """jump: lets the broker's clock jump by so many seconds."""
        super().__init__(stage, spec)
        self._jump = jump

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        async with AsyncClient(properties) as client, AsyncAdmin(properties) as admin:
            self.client, self.admin = client, admin
            topics = await self.topics_of(admin, "steady")
            if topics and self._is_near:
                topic = self.random.choice(topics)
                with suppress(*REFUSED, Enough):
                    await self._idle(TopicPartition(topic.name, self.random.choice(sorted(topic.partitions))))

    async def _idle(self, at: TopicPartition) -> None:
        ends = ("goes-on", "left-now", "left-then", "never")
        nodes = {end: await coordinator_of(self.client, f"foreign-idle-{end}", 0) for end in ends}
        members: dict[str, Any] = {}
        self._jump(-AGO_S)
        try:
            for end, node in nodes.items():
                members[end] = await self._committed(node, f"foreign-idle-{end}", at, is_member=end != "never")
            await self._leave(nodes["left-then"], "foreign-idle-left-then", members["left-then"].member_id)
        finally:
            self._jump(AGO_S)
        await self._leave(nodes["left-now"], "foreign-idle-left-now", members["left-now"].member_id)
        own, beat = members["goes-on"], messages.HeartbeatRequest
        for _ in range(int(LOOKED_S / BEAT_S)):
            await asyncio.sleep(BEAT_S)
            request = beat(group_id="foreign-idle-goes-on", generation_id=own.generation_id, member_id=own.member_id)
            await self.said(nodes["goes-on"], request, "foreign-idle-goes-on, whose member goes on", "NONE")
        for end, due in (("goes-on", STANDS), ("left-now", STANDS), ("left-then", None), ("never", None)):
            about = f"foreign-idle-{end}, which committed last {AGO_S:g} s ago"
            await self.stands(self.admin, nodes[end], f"foreign-idle-{end}", at, due, about)
        await self._leave(nodes["goes-on"], "foreign-idle-goes-on", own.member_id)

    async def _committed(self, node: int, group: str, at: TopicPartition, *, is_member: bool) -> Any:
        """How its member joined, which has committed."""
        said: dict[str, Any] = {}
        joined = None
        if is_member:
            joined = await self._join(node, group)
            await self._sync(node, group, joined, [joined.member_id])
            said = {"generation_id_or_member_epoch": joined.generation_id, "member_id": joined.member_id}
        await self.said(node, commit(group, at, STANDS, **said), group, "NONE", version=COMMIT_BY_NAME)
        return joined
