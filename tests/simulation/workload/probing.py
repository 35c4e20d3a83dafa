"""Single requests to single nodes, each with what may be answered to it."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from tagwire import messages
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.client.metadata import TopicMetadata
from tagwire.codec import MessageObject
from tagwire.codec.classes import Structure
from tagwire.errors import (
    ConnectError,
    ConnectionLostError,
    Error,
    KafkaError,
    RequestTimeoutError,
    TagwireError,
    UnsupportedVersionError,
)
from tests.simulation.workload.stage import Actor, always

PATIENCE: Final = 60.0

NOT_NOW: Final = (
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "CONCURRENT_TRANSACTIONS",
    "REBALANCE_IN_PROGRESS",
    "KAFKA_STORAGE_ERROR",
)
"""What no probe is about."""


FIND_BY_KEY: Final = 3
"""A version of FindCoordinator that every release has, and that asks for one key."""

REFUSED: Final = (
    KafkaError,
    ConnectError,
    ConnectionLostError,
    RequestTimeoutError,
    UnsupportedVersionError,
    TimeoutError,
)
"""What who asks may be told, or not be told: any other error is one of the asker's."""


class Probing(Actor):
    """One who asks what has one right answer, or a few."""

    async def topics_of(self, admin: AsyncAdmin, *kinds: str) -> list[TopicMetadata]:
        """The plan's topics of these kinds that are there."""
        return [
            topic
            for topic in await admin.list_topics()
            if topic.error is Error.NONE and self.stage.topics.get(topic.name, {}).get("kind") in kinds
        ]

    @property
    def goes_on(self) -> bool:
        return not self.is_done

    async def live(self) -> None:
        self.is_done = True
        try:
            with suppress(*REFUSED):
                await self.ask()
        except TagwireError as error:
            self.note_unexpected(error)

    @abstractmethod
    async def ask(self) -> None:
        """All that it asks, once."""

    async def probe(
        self,
        client: AsyncClient,
        node: int,
        request: Any,
        about: str,
        answers: tuple[str, ...],
        version: int | None = None,
    ) -> None:
        """Sends a request to a node and notes the first error in its response, which is to be one of `answers`."""
        asked = {"node": node, "api": type(request).__name__.removesuffix("Request"), "about": about}

        async def answered() -> dict[str, Any]:
            async with asyncio.timeout(PATIENCE):
                response = await client.request(request, node=node, version=version)
            return {"answer": error_of(response)}

        with suppress(*REFUSED):
            told = [*answers, *NOT_NOW]
            await self.noted("probe", asked | {"answers": told}, answered, lambda found: found, has_no_effect=always)


def error_of(response: MessageObject) -> str:
    """The first error that a response has anywhere; NONE where it has none."""
    return next((Error(code).name for code in _codes(response) if code), "NONE")


def _codes(part: object) -> Iterator[int]:
    if isinstance(part, list | tuple):
        for each in part:
            yield from _codes(each)
    elif isinstance(part, Structure):
        for name in type(part).__slots__:
            value = getattr(part, name, None)
            if name in ("error_code", "partition_error_code"):
                yield value
            else:
                yield from _codes(value)


async def coordinator_of(client: AsyncClient, key: str, kind: int, node: int | None = None) -> int:
    """Who coordinates a group (0) or a transactional id (1), as a node says."""
    request = messages.FindCoordinatorRequest(key=key, key_type=kind)
    response = await client.request(request, node=node, version=FIND_BY_KEY)
    return response.node_id


def produce_request(topic: TopicMetadata, index: int, data: bytes, transactional_id: str | None = None) -> Any:
    """A request that has batches appended to one partition."""
    kind = messages.ProduceRequest
    part = kind.PartitionProduceData(index=index, records=data)
    topics = [kind.TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=[part])]
    return kind(transactional_id=transactional_id, acks=-1, timeout_ms=5000, topic_data=topics)
