"""What brokers remember at a moment at which nobody asks them for anything: where groups stand, and who owns
transactional ids. Told before and after the broker is restarted, and again when its upkeep has been at it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from tagwire.client.aio import AsyncAdmin
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
                }

        with suppress(*REFUSED):
            await self.noted(
                "remembered", {"moment": self.spec["moment"]}, remembered, lambda found: found, has_no_effect=always
            )

    async def _offsets(self, admin: AsyncAdmin, group: str) -> list[list[Any]]:
        found = await admin.group_offsets(group)
        return [[group, *partition, found[partition].offset] for partition in sorted(found)]

    async def _transactions(self, admin: AsyncAdmin) -> list[list[Any]] | None:
        """[transactional id, producer id, epoch, state]; None where brokers do not say."""
        try:
            listed = await admin.list_transactions()
            names = sorted(each.transactional_id for each in listed)
            described = await admin.describe_transactions(names) if names else {}
        except REFUSED:  # before Kafka 3.0
            return None
        return [[name, each.producer_id, each.producer_epoch, str(each.state)] for name, each in described.items()]
