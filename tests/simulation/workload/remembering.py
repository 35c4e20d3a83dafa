"""What brokers remember at a moment at which nobody asks them for anything: where groups stand, who owns
transactional ids, and which producers partitions know. Told before and after the broker is restarted, and again when
its upkeep has been at it."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

from tagwire.client.aio import AsyncAdmin
from tests.simulation.workload.log_auditing import RECENT_S
from tests.simulation.workload.probing import PATIENCE, REFUSED, Probing
from tests.simulation.workload.stage import always


class Remembering(Probing):
    """Its spec: groups, and moment, which is told along."""

    async def ask(self) -> None:

        async def remembered() -> dict[str, Any]:
            async with asyncio.timeout(PATIENCE), AsyncAdmin(self.stage.properties(self.process, 20.0)) as admin:
                return {
                    "offsets": [one for group in self.spec["groups"] for one in await self._offsets(admin, group)],
                    "transactions": await self._transactions(admin),
                    "producers": await self._producers(admin),
                }

        with suppress(*REFUSED):
            await self.noted(
                "remembered", {"moment": self.spec["moment"]}, remembered, lambda found: found, has_no_effect=always
            )

    async def _offsets(self, admin: AsyncAdmin, group: str) -> list[list[Any]]:
        found = await admin.group_offsets(group)
        return [[group, *partition, found[partition].offset] for partition in sorted(found)]

    async def _producers(self, admin: AsyncAdmin) -> list[list[Any]] | None:
        """[topic, partition, producer id, epoch, last sequence] of topics of which no record is deleted, though
        compaction may take some; None where brokers do not say."""
        names = [name for name, topic in self.stage.topics.items() if topic["kind"] in ("steady", "compacted")]
        try:
            found = await admin.describe_producers(names)
        except REFUSED:  # before Kafka 2.8
            return None
        return [
            [*at, each.producer_id, each.producer_epoch, each.last_sequence]
            for at in sorted(found)
            for each in sorted(found[at], key=lambda one: one.producer_id)
            if each.last_timestamp > (time.time() - RECENT_S) * 1000  # others may be forgotten
        ]

    async def _transactions(self, admin: AsyncAdmin) -> list[list[Any]] | None:
        """[transactional id, producer id, epoch, state]; None where brokers do not say."""
        try:
            listed = await admin.list_transactions()
            names = sorted(each.transactional_id for each in listed)
            described = await admin.describe_transactions(names) if names else {}
        except REFUSED:  # before Kafka 3.0
            return None
        return [[name, each.producer_id, each.producer_epoch, str(each.state)] for name, each in described.items()]
