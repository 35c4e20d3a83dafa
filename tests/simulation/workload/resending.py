"""What idempotent producers have sent, sent once more when everybody has gone: it is stored already, and stays where it
is."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.client.metadata import TopicMetadata
from tagwire.errors import Error
from tests.simulation.workload.log_auditing import LogAudit
from tests.simulation.workload.probing import PATIENCE, REFUSED, Probing, error_of
from tests.simulation.workload.stage import always

OTHERWISE: Final = ("MESSAGE_TOO_LARGE", "INVALID_TIMESTAMP", "KAFKA_STORAGE_ERROR")
"""What a topic that was configured otherwise meanwhile has to say."""

MOST: Final = 3
SLACK_S: Final = 1.0


class Resending(Probing):
    """Of some partitions, the oldest batch of each producer that a broker has to know."""

    async def ask(self) -> None:
        if self.stage.is_forgetful:
            return
        properties = self.stage.properties(self.process, 20.0)
        with suppress(*REFUSED):
            async with asyncio.timeout(PATIENCE), AsyncClient(properties) as client, AsyncAdmin(properties) as admin:
                places = [
                    (topic, partition)
                    for topic in await admin.list_topics()
                    if topic.error is Error.NONE and self.stage.topics.get(topic.name, {}).get("kind") == "steady"
                    for partition in sorted(topic.partitions)
                ]
                for topic, partition in self.random.sample(places, min(MOST, len(places))):
                    await self._send_again(client, admin, topic, partition)

    async def _send_again(self, client: AsyncClient, admin: AsyncAdmin, topic: TopicMetadata, partition: int) -> None:
        audit = LogAudit(client, admin, topic, partition, self.random)
        for base, request in await audit.again(self._since_the_start() - SLACK_S):
            asked = {
                "node": audit.leader,
                "api": "Produce",
                "about": f"{topic.name}-{partition} what is stored @{base}",
                "answers": [base, *OTHERWISE],
            }

            async def answered(request: Any = request) -> dict[str, Any]:
                response = await client.request(request, node=audit.leader)
                found = response.responses[0].partition_responses[0]
                return {"answer": found.base_offset if found.error_code == Error.NONE else error_of(response)}

            await self.noted("probe", asked, answered, lambda found: found, has_no_effect=always)

    def _since_the_start(self) -> float:
        """Seconds since a broker was started last."""
        starts = [event.at for event in self.history.events if event.f == "broker_started" and event.type == "ok"]
        return self.history.now - max(starts, default=0.0)
