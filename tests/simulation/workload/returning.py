"""A reader with nothing to read, whose leader goes away and comes back: it is given what is written then."""

from __future__ import annotations

import asyncio
from typing import Final

from tagwire.client import LATEST
from tagwire.client.aio import AsyncConsumer, AsyncProducer
from tagwire.partitions import TopicPartition
from tests.simulation.workload.probing import PATIENCE, Probing
from tests.simulation.workload.storing import WRITING, Writer, given

FIRST_S: Final = 1.0
"""By then it reads all that it is to read, in one fetch session where one node leads all of it."""

GIVEN_S: Final = 30.0
"""By then it is given what is written when its leader is back."""

TURN_S: Final = 0.1


class Returning(Probing):
    """Its spec: topic, whose partitions 0 and 1 it reads, and pauses (whether it pauses the second, which then is in no
    session any more).

    Attributes:
        reads: whether it has nothing more to read. is_back: set by whoever has moved the leader.
    """

    reads = is_back = False

    async def ask(self) -> None:
        topic = self.spec["topic"]
        first, second = places = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
        properties = self.stage.properties(self.process, 20.0)
        writer = Writer(self.stage, WRITING | {"name": f"{self.name}-writer"})
        async with (
            asyncio.timeout(2 * PATIENCE),
            AsyncConsumer(properties, max_wait_ms=300, metadata_max_age=300.0) as consumer,
            AsyncProducer(properties, **writer.options()) as producer,
        ):
            await consumer.assign(dict.fromkeys(places, LATEST))
            await given(consumer, FIRST_S)
            if self.spec["pauses"]:
                await consumer.pause([second])
                await given(consumer, FIRST_S)
            self.reads = True
            while not self.is_back:
                await given(consumer, TURN_S)
            await writer.write(producer, topic, [None], first.partition)
            await writer.are_given(consumer, GIVEN_S, f"{first.topic}-{first.partition}, whose leader was away")
