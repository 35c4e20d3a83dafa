"""An idempotent producer to whom no answer gets for longer than a record may take, when everything is over: what it has
sent is appended, and it can neither know that nor send it again. What it gives up, and what it still has time for,
stand once, or not at all."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from tagwire.client import NewTopic
from tagwire.client.aio import AsyncAdmin, AsyncProducer
from tests.simulation.workload.producing import IDEMPOTENT, Producing
from tests.simulation.workload.stage import Spec, Stage, is_refusal

TOPIC: Final = "cut-off"
PARTITIONS: Final = 2
NEAR_S: Final = 0.1
"""A round trip, spikes and all, of who is near enough to do all this in time."""

REQUEST_S: Final = 20.0
ROUNDS: Final = 3
WAITS_S: Final = ((0.2, 0.5), (0.5, 2.0))
"""Between a record and the next, which has so much more time: it is sent on the same connection, or on none."""

HEALS_S: Final = (-0.4, 0.8)
"""Before or after the time of the first record is over."""

WRITING: Final[Spec] = {
    "acks": -1,
    "idempotence": True,
    "linger": 0.0,
    "batch_bytes": 16_384,
    "compression": "none",
    "timeout": 3.0,
    "max_block": 3.0,
    "request_timeout": 0.6,
    "value_size": 0,
}


class CutOff(Producing):
    """Its spec has nothing of its own."""

    kind = IDEMPOTENT

    def __init__(self, stage: Stage, spec: Spec, cut: Callable[[], Callable[[], None]]) -> None:
        """cut: lets nothing get from brokers to this process, until what it gives is called."""
        super().__init__(stage, spec | WRITING)
        self._cut = cut

    @property
    def goes_on(self) -> bool:
        return not self.is_done

    async def live(self) -> None:
        self.is_done = True
        if self.stage.round_trip_s + self.stage.spikes_s > NEAR_S:
            return
        await self._create()
        self.sent = self.waiting = 0
        for number in range(ROUNDS):
            if number:  # each producer keeps an order of its own
                self.process = self.stage.process(self.name)
            properties = self.stage.properties(self.process, self.spec["request_timeout"])
            producer = AsyncProducer(properties, **self.options())
            try:
                await self._is_cut_off(producer)
            finally:
                await producer.close(self.spec["timeout"] + 5)

    async def _create(self) -> None:
        asked: Spec = {"topic": TOPIC, "partitions": PARTITIONS, "configs": {}}
        async with AsyncAdmin(self.stage.properties(self.process, REQUEST_S)) as admin:
            new = NewTopic(TOPIC, PARTITIONS, -1, {})
            await self.noted("create_topic", asked, lambda: admin.create_topics(new), has_no_effect=is_refusal)
        topic: dict[str, Any] = {"kind": "steady", "compacted": False, "configs": {}}
        self.stage.topics[TOPIC] = {"name": TOPIC, "partitions": PARTITIONS, **topic}

    async def _is_cut_off(self, producer: AsyncProducer) -> None:
        random = self.random
        await self._to_all(producer)
        heal = self._cut()
        try:
            until = time.monotonic() + self.spec["timeout"] + random.uniform(*HEALS_S)
            for _ in range(random.choice([2, 3])):
                await self.send(producer, TOPIC, None, random.randrange(PARTITIONS))
                await self.sleep(random.uniform(*random.choice(WAITS_S)))
            await self.sleep(max(0.0, until - time.monotonic()))
        finally:
            heal()
        if random.random() < 0.5:
            await self.flush(producer)
        await self._to_all(producer)

    async def _to_all(self, producer: AsyncProducer) -> None:
        for partition in range(PARTITIONS):
            await self.send(producer, TOPIC, None, partition)
        await self.flush(producer)
