"""Producers without transactions: of every acks, and idempotent ones."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from tagwire.client.aio import AsyncDelivery, AsyncProducer
from tagwire.errors import TagwireError
from tests.simulation.workload.records import mark_of, payload
from tests.simulation.workload.stage import Actor, Spec, Stage

IDEMPOTENT = "idempotent"
PLAIN = "plain"


class Producing(Actor):
    """Sends records for as long as the load lasts, or until it has sent all of its own.

    Its spec: topics, records, pace (seconds between two), burst (how many come at once, in as many batches), acks,
    idempotence, linger, batch_bytes, compression, timeout, partitions ("any", by "key" or "given"), age (of records,
    in seconds; none without), marked (whether records say which key and time they have), keys, tombstones (their
    share), value_size, flush (its chance), renew (how likely it is after a burst that it is closed and another one
    made, which counts from the beginning).
    """

    kind = PLAIN
    transaction: str | None = None
    waiting = 0
    """How many records it has sent of which nobody knows yet."""

    told_along: Mapping[str, Any] = {}
    """What the history tells of each of its records besides."""

    def __init__(self, stage: Stage, spec: Spec) -> None:
        super().__init__(stage, spec)
        self.deliveries: list[AsyncDelivery] = []  # of what was sent since it has flushed last

    def options(self) -> dict[str, Any]:
        spec = self.spec
        return {
            "acks": spec["acks"],
            "idempotence": spec["idempotence"],
            "linger": spec["linger"],
            "batch_bytes": spec["batch_bytes"],
            "compression": spec["compression"],
            "timeout": spec["timeout"],
            "max_block": spec["max_block"],
        }

    def properties(self) -> dict[str, Any]:
        """Of which its client is made."""
        return self.stage.properties(self.process, self.spec["request_timeout"])

    async def live(self) -> None:
        self.kind = IDEMPOTENT if self.spec["idempotence"] else PLAIN
        self.sent = self.waiting = 0
        self.deliveries.clear()
        is_renewed = False
        producer = AsyncProducer(self.properties(), **self.options())
        try:
            await self.noted("init_producer", {"kind": self.kind, "acks": self.spec["acks"]}, _nothing)
            while self.is_loading and self.sent < self.spec["records"] and not is_renewed:
                await self.breathe(self.spec["pace"] * self.spec["burst"])
                for _ in range(self.spec["burst"]):
                    await self.send_one(producer)
                if self.random.random() < self.spec["flush"]:
                    await self.flush(producer)
                is_renewed = self.random.random() < self.spec.get("renew", 0.0)
            self.is_done = not is_renewed
            await self.flush(producer)
            self._look_for_room(producer)
            measured = producer.metrics()["producer-metrics"]
            self.note_throttled(self.properties()["client.id"], "Produce", measured["produce-throttle-time-max"])
        finally:
            await producer.close(self.spec["timeout"] + 5)

    def _look_for_room(self, producer: AsyncProducer) -> None:
        """When all that was sent is delivered, or failed, none of it takes room."""
        if self.waiting:
            return
        measured = producer.metrics()["producer-metrics"]
        asked = {"node": -1, "api": "Produce", "about": f"the room that {self.process} has, to which all is delivered"}
        op = self.history.invoke(self.process, "probe", **asked, answers=[measured["buffer-total-bytes"]])
        self.history.ok(op, answer=measured["buffer-available-bytes"])

    async def flush(self, producer: AsyncProducer) -> None:
        sent, self.deliveries = self.deliveries, []
        try:
            await producer.flush()
        except TagwireError:
            return  # each delivery has told its own
        self.note_done(sent, f"{self.process} has flushed")

    def note_done(self, sent: Sequence[AsyncDelivery], what: str) -> None:
        """Notes how much of what was sent is not known yet, when nothing is to be."""
        asked = {"node": -1, "api": "Produce", "about": f"how many records are under way that {what}"}
        op = self.history.invoke(self.process, "probe", **asked, answers=[0])
        self.history.ok(op, answer=sum(not delivery.done() for delivery in sent))

    async def send_one(self, producer: AsyncProducer) -> None:
        """Sends one record; what becomes of it is noted when that is known."""
        random, spec = self.random, self.spec
        topic = random.choice(spec["topics"])
        told = self.stage.topics[topic]
        key = f"k{random.randrange(spec['keys'])}" if told["compacted"] or random.random() < 0.5 else None
        tombstone = told["compacted"] and random.random() < spec["tombstones"]
        partition = random.randrange(told["partitions"]) if random.random() < spec["given_partition"] else None
        await self.send(producer, topic, key, partition, tombstone=tombstone)

    async def send(
        self,
        producer: AsyncProducer,
        topic: str,
        key: str | None,
        partition: int | None,
        *,
        tombstone: bool = False,
        source: str | None = None,
    ) -> None:
        """Sends one record; `source` is the name of the one that it was made of.

        Raises:
            What `AsyncProducer.send` does: then nothing was sent.
        """
        self.sent += 1
        name = f"{self.process}.{self.sent}"
        history = self.history
        op = history.invoke(
            self.process,
            "send",
            topic=topic,
            partition=partition,
            key=key,
            name=name,
            tombstone=tombstone,
            kind=self.kind,
            acks=self.spec["acks"],
            transaction=self.transaction,
            **({} if source is None else {"source": source}),
            **self.told_along,
        )

        def done(delivery: AsyncDelivery) -> None:
            self.waiting -= 1
            if (error := delivery.exception()) is not None:
                history.info(op, error)
                return
            found = delivery.result()
            history.ok(op, partition=found.partition, offset=found.offset if found.offset >= 0 else None)

        timestamp, mark = self._timestamp(), None
        if self.spec.get("marked"):
            timestamp = int(time.time() * 1000) if timestamp is None else timestamp
            mark = mark_of(None if key is None else key.encode(), timestamp)
        self.waiting += 1
        try:
            delivery = await producer.send(
                topic,
                **payload(name, tombstone=tombstone, size=self.spec["value_size"], mark=mark),
                key=None if key is None else key.encode(),
                partition=partition,
                timestamp=timestamp,
                on_delivery=done,
            )
            self.deliveries.append(delivery)
        except TagwireError as error:
            self.waiting -= 1
            history.fail(op, error)
            if self.transaction is not None:
                raise

    def _timestamp(self) -> int | None:
        """None for now. Who sends what happened long ago says so: brokers forget producers by what they say."""
        age = self.spec.get("age")
        return None if age is None else int((time.time() - age) * 1000)


async def _nothing() -> None:
    return None
