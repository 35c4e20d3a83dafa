"""Applications of threads: a blocking producer that several of them share, and blocking members of groups."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from random import Random
from typing import Any

from tagwire.client import Consumer, Delivery, Producer
from tagwire.errors import TagwireError
from tagwire.partitions import TopicPartition
from tests.simulation.workload.consuming import OPTIONS, Noting, subscribed
from tests.simulation.workload.records import payload, read_of
from tests.simulation.workload.stage import Actor, Phase

POLL = 0.5


class Blocking(Actor):
    """An actor without an event loop."""

    def main(self) -> None:
        """All its lives."""
        try:
            time.sleep(self.spec["at"])
            while self.is_loading and self.spec.get("late"):
                time.sleep(0.5)
            time.sleep(self.spec.get("late", 0.0))
            while self.goes_on:
                self.process = self.stage.process(self.name)
                self.random = self.stage.random(self.process)
                try:
                    self.live_blocking()
                except TagwireError:
                    time.sleep(self.random.uniform(0.1, 1.0))
        except Exception as error:
            self.note_unexpected(error)

    async def live(self) -> None:
        raise NotImplementedError

    @abstractmethod
    def live_blocking(self) -> None:
        """One life."""


class ProducingInThreads(Blocking):
    """Its spec: that of a `Producing`, and threads: how many share its producer. Each is a process of the history."""

    def live_blocking(self) -> None:
        spec = self.spec
        options = {name: spec[name] for name in ("acks", "idempotence", "linger", "batch_bytes", "compression")}
        properties = self.stage.properties(self.process, spec["request_timeout"])
        with Producer(properties, timeout=spec["timeout"], max_block=spec["max_block"], **options) as producer:
            names = [f"{self.process}/{n}" for n in range(1, spec["threads"] + 1)]
            threads = [threading.Thread(target=self._send_all, args=[producer, name]) for name in names]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.is_done = True

    def _send_all(self, producer: Producer, process: str) -> None:
        try:
            random = self.stage.random(process)
            for number in range(1, self.spec["records"] // self.spec["threads"] + 1):
                if not self.is_loading:
                    break
                if number % self.spec["burst"] == 0:
                    time.sleep(random.uniform(0, 2) * self.spec["pace"] * self.spec["burst"])
                self._send_one(producer, process, random, f"{process}.{number}")
        except Exception as error:
            self.note_unexpected(error)

    def _send_one(self, producer: Producer, process: str, random: Random, name: str) -> None:
        spec, history = self.spec, self.history
        topic = random.choice(spec["topics"])
        told = self.stage.topics[topic]
        key = f"k{random.randrange(spec['keys'])}" if told["compacted"] or random.random() < 0.5 else None
        partition = random.randrange(told["partitions"]) if random.random() < spec["given_partition"] else None
        kind = "idempotent" if spec["idempotence"] else "plain"
        asked = {"topic": topic, "partition": partition, "key": key, "name": name, "tombstone": False}
        op = history.invoke(process, "send", **asked, kind=kind, acks=spec["acks"], transaction=None)

        def done(delivery: Delivery) -> None:
            if (error := delivery.exception()) is not None:
                history.info(op, error)
                return
            found = delivery.result()
            history.ok(op, partition=found.partition, offset=found.offset if found.offset >= 0 else None)

        try:
            producer.send(
                topic,
                **payload(name, tombstone=False, size=spec["value_size"]),
                key=None if key is None else key.encode(),
                partition=partition,
                on_delivery=done,
            )
        except TagwireError as error:
            history.fail(op, error)
            return
        if random.random() < spec["flush"]:
            try:
                producer.flush()
            except TagwireError:
                return  # each delivery has told its own


class ConsumingInThread(Blocking):
    """Its spec: that of a `Consuming`, of which it has no steps: it polls, and commits now and then."""

    writes = False

    def live_blocking(self) -> None:
        spec = self.spec
        self.is_new = False
        self.given: dict[TopicPartition, int] = {}
        self.group: str = spec["group"]
        options: dict[str, Any] = {name: spec[name] for name in OPTIONS if spec.get(name) is not None}
        properties = self.stage.properties(self.process, spec["request_timeout"])
        options |= {"metadata_max_age": spec.get("metadata_max_age", 3.0), "max_wait_ms": spec.get("max_wait_ms", 300)}
        with Consumer(properties, **options, offset_reset=spec["reset"]) as consumer:
            self.member_of = consumer
            op = self.history.invoke(self.process, "subscribe", **subscribed(spec))
            consumer.subscribe(spec["topics"], Noting(self), pattern=spec["pattern"])
            self.history.ok(op)
            while self.stage.phase is not Phase.OVER:
                self._poll(consumer)
                if not spec["auto_commit"] and self.random.random() < 0.3:
                    self._commit(consumer)
                if self.is_loading:
                    time.sleep(self.random.uniform(0, 2) * spec["pace"])
            self.is_done = True

    def _poll(self, consumer: Consumer) -> None:
        op = self.history.invoke(self.process, "poll", group=self.group, isolation=self.spec["isolation"])
        try:
            records = consumer.poll(POLL)
            positions = consumer.positions()
        except TagwireError as error:
            self.history.fail(op, error)
            raise
        member = consumer.group_metadata()
        told = {"member": member.member_id, "generation": member.generation}
        self.history.ok(op, **told, read=read_of(records, positions))

    def _commit(self, consumer: Consumer) -> None:
        found = consumer.positions()
        offsets = {partition: found[partition].offset for partition in sorted(found)}
        if not offsets:
            return
        member = consumer.group_metadata()
        told = {"group": self.group, "member": member.member_id, "generation": member.generation}
        op = self.history.invoke(
            self.process, "commit", **told, offsets=[[*partition, offset] for partition, offset in offsets.items()]
        )
        try:
            consumer.commit(offsets)
        except TagwireError as error:
            self.history.info(op, error)
            return
        self.history.ok(op)
