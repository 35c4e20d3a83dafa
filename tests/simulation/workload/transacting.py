"""Producers with a transactional id: they commit, abort, leave transactions open past their time, and are fenced by
others of the same id."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tagwire.client.aio import AsyncProducer
from tagwire.errors import (
    ConnectError,
    ConnectionLostError,
    KafkaError,
    RequestTimeoutError,
    TagwireError,
)
from tagwire.partitions import TopicPartition
from tests.simulation.workload.producing import Producing

TRANSACTIONAL = "transactional"
TRIES = 4
"""How often an application asks again for the end of a transaction of which nobody knows."""


class Transacting(Producing):
    """Makes transactions, one after the other.

    Its spec: that of `Producing`, with records for those of one transaction at most, count (of transactions),
    transactional_id, transaction_timeout, offsets (how likely it has some, of the group offsets_of), abort, doze and
    forsake: how likely it is that one is aborted, left open past its time, and left behind by a producer that is closed
    without ending it, which nobody may follow; returns (how likely another one follows all the same).
    """

    kind = TRANSACTIONAL

    def options(self) -> dict[str, Any]:
        own = {name: self.spec[name] for name in ("transactional_id", "transaction_timeout")}
        return super().options() | own

    async def live(self) -> None:
        self.sent = self.begun = 0
        self._more = self.stage.random(f"{self.process}/offsets")
        producer = AsyncProducer(self.stage.properties(self.process, self.spec["request_timeout"]), **self.options())
        is_forsaking = False
        try:
            await self.initialize(producer)
            while self.is_loading and self.begun < self.spec["count"] and not is_forsaking:
                await self.breathe(self.spec["pace"])
                self.begin(producer)
                try:
                    await self.work(producer)
                    is_forsaking = self.random.random() < self.spec["forsake"]
                    if not is_forsaking:
                        await self.end(producer)
                except TagwireError:
                    await self.abort(producer)
            self.is_done = not is_forsaking or self.random.random() < 1 - self.spec.get("returns", 0.5)
        finally:
            await producer.close(self.spec["timeout"] + 5, abort=not is_forsaking)

    async def work(self, producer: AsyncProducer) -> None:
        """What is between the beginning and the end of a transaction."""
        count = self.random.randint(0, self.spec["records"])
        dozes_after = self.random.randint(0, count) if self.random.random() < self.spec["doze"] else None
        for sent in range(count + 1):
            if sent == dozes_after:
                await self.sleep(self.spec["transaction_timeout"] * self.random.uniform(0.5, 2))
            if sent < count:
                await self.send_one(producer)
                if sent % self.spec["burst"] == 0:
                    await self.breathe(self.spec["pace"] / 4)
        if self.random.random() < self.spec["offsets"]:
            await self._send_offsets(producer)

    async def _send_offsets(self, producer: AsyncProducer) -> None:
        """Offsets for a group without members, perhaps all that there is in the transaction."""
        topic = self.random.choice(self.spec["topics"])
        partition = TopicPartition(topic, self.random.randrange(self.stage.topics[topic]["partitions"]))
        group = self.spec["offsets_of"]
        offsets = {partition: self.sent + 1000 * self.begun}
        if self._more.random() < 0.5:  # of all its partitions, in one request
            every = [TopicPartition(topic, index) for index in range(self.stage.topics[topic]["partitions"])]
            offsets = dict.fromkeys(every, self.sent + 1000 * self.begun)
        asked = {**self._named(), "group": group, "offsets": [[*at, offset] for at, offset in offsets.items()]}
        await self.noted("send_offsets", asked, lambda: producer.send_offsets(offsets, group))

    # Calls ---------------------------------------------------------------------------------------------------------

    async def initialize(self, producer: AsyncProducer) -> None:
        """Takes the id over, until it works or the load is over."""
        asked: dict[str, Any] = {"kind": self.kind, "acks": -1, "transactional_id": self.spec["transactional_id"]}
        asked["transaction_timeout"] = self.spec["transaction_timeout"]

        async def initialized() -> dict[str, Any]:
            await producer.init_transactions()
            identity = await producer.identity()
            return {"producer_id": identity.producer_id, "epoch": identity.epoch}

        while True:
            try:
                await self.noted("init_producer", asked, initialized, lambda found: found)
                return
            except (ConnectError, ConnectionLostError, RequestTimeoutError):
                if not self.is_loading:
                    raise
            await self.breathe(0.5)

    def begin(self, producer: AsyncProducer) -> None:
        """Opens a transaction, which has a name of its own."""
        self.begun += 1
        self.was_aborted = False
        self.deliveries.clear()
        self.transaction = f"{self.process}.t{self.begun}"
        op = self.history.invoke(self.process, "begin", **self._named())
        try:
            producer.begin_transaction()
        except TagwireError as error:
            self.history.fail(op, error)
            raise
        self.history.ok(op)

    async def end(self, producer: AsyncProducer) -> None:
        """Commits the transaction, or aborts it. Raises what keeps it from being committed."""
        if self.random.random() < self.spec["abort"]:
            await self.abort(producer)
        else:
            await self._until_known("commit_transaction", producer.commit_transaction)
            self.note_done(self.deliveries, f"{self.process} has committed")
            self.transaction = None

    async def abort(self, producer: AsyncProducer) -> None:
        """Aborts the transaction. Raises what ends the producer."""
        self.was_aborted = True
        await self._until_known("abort_transaction", producer.abort_transaction)
        self.transaction = None

    async def _until_known(self, f: str, call: Callable[[], Any]) -> None:
        for tried in range(TRIES):
            try:
                await self.noted(f, self._named(), call)
                return
            except (ConnectError, ConnectionLostError, RequestTimeoutError):
                if tried == TRIES - 1:
                    raise
            except KafkaError as error:
                if not error.retriable or tried == TRIES - 1:
                    raise
            await asyncio.sleep(self.random.uniform(0.05, 0.5))

    def _named(self) -> dict[str, Any]:
        return {"transaction": self.transaction, "transactional_id": self.spec["transactional_id"]}
