"""An administrator of another make, with topics of its own: it ends transactions itself, names topics twice, changes
configurations beside others, and gives topics more partitions."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from typing import Any, Final
from uuid import UUID

from tagwire import messages
from tagwire.client import NewTopic
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.client.metadata import TopicMetadata
from tests.simulation.workload.foreign import REQUEST_S, Enough, Speaking
from tests.simulation.workload.owning import Owner
from tests.simulation.workload.probing import PATIENCE, REFUSED, coordinator_of

TOPIC: Final = "foreign-administered"
OTHERS: Final = 3
"""Who change configurations beside it, each with a connection of its own."""

ROUNDS: Final = 4
IS_TOPIC: Final = 2
APPEND: Final = 2
LISTS: Final = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
PARTITIONS: Final = 3
NO_ID: Final = UUID(int=0)
BY_ID: Final = 6
"""The version of DeleteTopics that knows topics by their ids."""

BY_OWNER: Final = 3
"""The version of InitProducerId in which a producer says what it had."""

LATER: Final = 7
"""A coordinator epoch that no coordinator has come to."""


class ForeignAdministrators(Speaking):
    """Each of its topics is deleted in the end."""

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        async with AsyncClient(properties) as client, AsyncAdmin(properties) as admin:
            self.client, self.admin, self.properties = client, admin, properties
            nodes = len((await client.metadata()).brokers)
            replicas = self.random.randint(1, nodes)
            await admin.create_topics([NewTopic(TOPIC, 1, replicas, {})])
            try:
                topic = await client.topic(TOPIC)
                for act in (self._marked, self._halved, self._added, self._grown):
                    with suppress(*REFUSED, Enough):
                        await act(topic, replicas)
            finally:
                with suppress(*REFUSED, Enough):
                    await self._named_twice(await client.topic(TOPIC))
                await admin.delete_topics(TOPIC)

    # Transactions ------------------------------------------------------------------------------------------------

    async def _marked(self, topic: TopicMetadata, _: int) -> None:
        """Who ends a transaction in a partition may say to be a later coordinator than its own, which ends this
        transaction and the next ones all the same."""
        owner = await Owner.begun(self, self.client, TOPIC, topic, 0, int(2000 * PATIENCE))
        if await owner.produce(0) != "NONE":
            return
        leader, kind = topic.partitions[0].leader, messages.WriteTxnMarkersRequest
        where = kind.WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])

        def mark(epoch: int) -> Any:
            marker = kind.WritableTxnMarker(
                producer_id=owner.producer_id,
                producer_epoch=owner.epoch,
                transaction_result=False,
                topics=[where],
                coordinator_epoch=epoch,
            )
            return kind(markers=[marker])

        about = f"an end of what is open in {TOPIC}, as coordinator in epoch"
        await self.said(leader, mark(LATER), f"{about} {LATER}", "NONE")
        await self.said(leader, mark(LATER - 1), f"{about} {LATER - 1}", "TRANSACTION_COORDINATOR_FENCED")
        about = f"a transaction of {TOPIC}, where an administrator has ended"
        self.holds(owner.coordinator, "EndTxn", f"{about} it", await owner.end(commit=False), "NONE")
        another = await Owner.begun(self, self.client, TOPIC, topic, 0, int(2000 * PATIENCE))
        if await another.produce(0) == "NONE":
            answer = await another.end(commit=True)
            self.holds(another.coordinator, "EndTxn", f"{about} the one before", answer, "NONE")

    async def _halved(self, topic: TopicMetadata, _: int) -> None:
        """Who names a producer id without its epoch, or an epoch without its id, takes nothing over."""
        owner = await Owner.begun(self, self.client, f"{TOPIC}-halved", topic, 0, int(2000 * PATIENCE))
        for producer_id, epoch in ((owner.producer_id, -1), (-1, owner.epoch)):
            request = messages.InitProducerIdRequest(
                transactional_id=owner.name,
                transaction_timeout_ms=60_000,
                producer_id=producer_id,
                producer_epoch=epoch,
            )
            about = f"{owner.name} by who names producer {producer_id} and epoch {epoch}"
            node = await coordinator_of(self.client, owner.name, 1)
            await self.said(node, request, about, "INVALID_REQUEST", version=BY_OWNER)
        self.holds(owner.coordinator, "EndTxn", f"{owner.name} by its owner", await owner.end(commit=False), "NONE")

    # Topics ------------------------------------------------------------------------------------------------------

    async def _added(self, topic: TopicMetadata, _: int) -> None:
        """What is added to a list by several at a time is all added."""
        async with AsyncExitStack() as stack:
            some = [await stack.enter_async_context(AsyncClient(self.properties)) for _ in range(OTHERS)]
            node, name = topic.partitions[0].leader, self.random.choice(LISTS)
            kind = messages.IncrementalAlterConfigsRequest
            due: set[str] = set()
            for number in range(ROUNDS):
                requests = []
                for other in range(OTHERS):
                    due.add(value := f"{number}:{other}")
                    config = kind.AlterableConfig(name=name, config_operation=APPEND, value=value)
                    resource = kind.AlterConfigsResource(resource_type=IS_TOPIC, resource_name=TOPIC, configs=[config])
                    requests.append(kind(resources=[resource]))
                await asyncio.gather(
                    *(client.request(request, node=node) for client, request in zip(some, requests, strict=True))
                )
        of = messages.DescribeConfigsRequest
        wanted = of.DescribeConfigsResource(resource_type=IS_TOPIC, resource_name=TOPIC, configuration_keys=[name])
        about = f"{name} of {TOPIC}, to which several have added at a time"
        found = await self.said(node, of(resources=[wanted]), about, "NONE")
        told = (found.results[0].configs[0].value or "").split(",")
        self.holds(node, "DescribeConfigs", about, sorted(told), sorted(due))

    async def _grown(self, topic: TopicMetadata, replicas: int) -> None:
        """New partitions have as many replicas as those before."""
        kind = messages.CreatePartitionsRequest
        wanted = kind.CreatePartitionsTopic(name=TOPIC, count=PARTITIONS, assignments=None)
        node, about = topic.partitions[0].leader, f"more partitions of {TOPIC}, which has {replicas} replicas"
        await self.said(node, kind(topics=[wanted], timeout_ms=30_000), about, "NONE")
        of = messages.MetadataRequest
        found = await self.said(node, of(topics=[of.MetadataRequestTopic(name=TOPIC)]), about, "NONE")
        told = [len(part.replica_nodes) for part in found.topics[0].partitions]
        self.holds(node, "Metadata", about, told, [replicas] * PARTITIONS)

    async def _named_twice(self, topic: TopicMetadata) -> None:
        """A topic that is named by its name, and by its id as well, is not deleted."""
        kind, node = messages.DeleteTopicsRequest, topic.partitions[0].leader
        names = [
            kind.DeleteTopicState(name=TOPIC, topic_id=NO_ID),
            kind.DeleteTopicState(name=None, topic_id=topic.topic_id),
        ]
        about = f"a deletion of {TOPIC}, by its name and by its id"
        request = kind(topics=names, timeout_ms=30_000)
        await self.said(node, request, about, "INVALID_REQUEST", version=BY_ID)
        of = messages.MetadataRequest
        await self.said(node, of(topics=[of.MetadataRequestTopic(name=TOPIC)]), f"{about}, that was refused", "NONE")
