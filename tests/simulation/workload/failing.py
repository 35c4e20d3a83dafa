"""Changes that a coordinator cannot store: whatever it answers, it is then where its disk is."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from tagwire import messages
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.errors import Error, KafkaError
from tests.simulation.workload.probing import PATIENCE, REFUSED, Probing, coordinator_of, error_of

FURTHER = 7
"""How far past where a group stands its offset is to be: nobody else commits that."""

VERSION = 8
"""Of OffsetCommit: every release has it, and it names topics."""

TIMEOUT_MS = 5000


class Failing(Probing):
    """Commits for a group and takes a transactional id over, while writes are refused.

    Its spec: groups.
    """

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, 20.0)
        with suppress(*REFUSED):
            async with asyncio.timeout(PATIENCE), AsyncClient(properties) as client, AsyncAdmin(properties) as admin:
                for group in self.spec["groups"]:
                    with suppress(*REFUSED):
                        await self._commit(client, admin, group)
                await self._take_over(client, admin)

    async def _commit(self, client: AsyncClient, admin: AsyncAdmin, group: str) -> None:
        offsets = await admin.group_offsets(group)
        for at in sorted(offsets)[:1]:
            offset = offsets[at].offset + FURTHER
            node = await coordinator_of(client, group, 0)
            kind = messages.OffsetCommitRequest
            part = kind.OffsetCommitRequestPartition(partition_index=at.partition, committed_offset=offset)
            request = kind(group_id=group, topics=[kind.OffsetCommitRequestTopic(name=at.topic, partitions=[part])])

            async def committed(node: int = node, request: Any = request) -> None:
                error = error_of(await client.request(request, node=node, version=VERSION))
                if error != "NONE":
                    raise KafkaError(Error[error], "a commit")

            told = {"group": group, "member": None, "generation": None, "offsets": [[*at, offset]]}
            with suppress(*REFUSED):
                await self.noted("commit", told, committed)

    async def _take_over(self, client: AsyncClient, admin: AsyncAdmin) -> None:
        for name in sorted(each.transactional_id for each in await admin.list_transactions())[:1]:
            request = messages.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=TIMEOUT_MS)
            with suppress(*REFUSED):
                await client.request(request, node=await coordinator_of(client, name, 1))
