"""What is said again takes the place of what was said before: in a broker's memory, and, where it is compacted, in the
log from which that is made anew."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from tagwire.client.aio import AsyncAdmin
from tagwire.partitions import TopicPartition
from tests.simulation.workload.probing import PATIENCE, REFUSED, Probing
from tests.simulation.workload.stage import is_refusal
from tests.simulation.workload.storing import ANEW, GROUP, PARTITIONS

TIMES: Final = 30
"""Commits that fill some segments of a coordinator, in worlds where those are small."""


class Repeating(Probing):
    """Commits for the same partitions, of a group that has no member."""

    async def ask(self) -> None:
        places = [TopicPartition(ANEW, partition) for partition in range(PARTITIONS)]
        async with asyncio.timeout(PATIENCE), AsyncAdmin(self.stage.properties(self.process, 20.0)) as admin:
            for number in range(TIMES):
                offsets = dict.fromkeys(places, number)
                asked = {"group": GROUP, "offsets": [[*at, number] for at in places]}
                alter = lambda offsets=offsets: admin.alter_group_offsets(GROUP, offsets)  # noqa: E731
                with suppress(*REFUSED):
                    await self.noted("alter_group_offsets", asked, alter, has_no_effect=is_refusal)
