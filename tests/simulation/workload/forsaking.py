"""A transaction that is left open when everything is over and a broker's clock has been set back: while it is open,
nothing of it is stable, and in the end its coordinator ends it."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any, Final

from tagwire import messages
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.client.metadata import TopicMetadata
from tagwire.errors import Error
from tagwire.records import Record, write
from tests.simulation.workload.log_auditing import LogAudit
from tests.simulation.workload.probing import PATIENCE, REFUSED, Probing, coordinator_of, error_of
from tests.simulation.workload.stage import always

NAME: Final = "forsaken"
TIMEOUT_MS: Final = 3000
ENDED_S: Final = 10.0
"""By then it is over, and its coordinator has said so."""


class Forsaking(Probing):
    """Opens a transaction on one partition, and waits for its end."""

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, 20.0)
        with suppress(*REFUSED):
            async with asyncio.timeout(PATIENCE), AsyncClient(properties) as client, AsyncAdmin(properties) as admin:
                topics = [
                    topic
                    for topic in await admin.list_topics()
                    if topic.error is Error.NONE and self.stage.topics.get(topic.name, {}).get("kind") == "steady"
                ]
                if topics:
                    await self._forsake(client, admin, self.random.choice(topics))

    async def _forsake(self, client: AsyncClient, admin: AsyncAdmin, topic: TopicMetadata) -> None:
        index = self.random.choice(sorted(topic.partitions))
        coordinator = await coordinator_of(client, NAME, 1)
        begun = await client.request(
            messages.InitProducerIdRequest(transactional_id=NAME, transaction_timeout_ms=TIMEOUT_MS), node=coordinator
        )
        add = messages.AddPartitionsToTxnRequest
        added = await client.request(
            add(
                v3_and_below_transactional_id=NAME,
                v3_and_below_producer_id=begun.producer_id,
                v3_and_below_producer_epoch=begun.producer_epoch,
                v3_and_below_topics=[add.AddPartitionsToTxnTopic(name=topic.name, partitions=[index])],
            ),
            node=coordinator,
        )
        if error_of(begun) != "NONE" or error_of(added) != "NONE":
            return
        request = _batch(topic, index, begun.producer_id, begun.producer_epoch)
        if error_of(await client.request(request, node=topic.partitions[index].leader)) != "NONE":
            return
        await self._audit(client, admin, topic, index)
        await asyncio.sleep(ENDED_S)
        asked = {"node": coordinator, "api": "DescribeTransactions", "about": f"a transaction that {NAME} left open"}

        async def ended() -> dict[str, Any]:
            return {"answer": str((await admin.describe_transactions([NAME]))[NAME].state)}

        with suppress(*REFUSED):
            told = {"answers": ["CompleteAbort"]}
            await self.noted("probe", asked | told, ended, lambda found: found, has_no_effect=always)
        await self._audit(client, admin, topic, index)

    async def _audit(self, client: AsyncClient, admin: AsyncAdmin, topic: TopicMetadata, index: int) -> None:
        asked = {"topic": topic.name, "topic_id": str(topic.topic_id), "partition": index}
        audit = LogAudit(client, admin, topic, index, self.random)
        with suppress(*REFUSED):
            await self.noted("final_log", asked, audit.told, lambda found: found, has_no_effect=always)


def _batch(topic: TopicMetadata, index: int, producer_id: int, epoch: int) -> Any:
    data = write(
        [Record(b"key", NAME.encode(), timestamp=int(time.time() * 1000))],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0,
        transactional=True,
    )
    kind = messages.ProduceRequest
    part = kind.PartitionProduceData(index=index, records=data)
    topics = [kind.TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=[part])]
    return kind(transactional_id=NAME, acks=-1, timeout_ms=1000, topic_data=topics)
