"""What a broker stores, once more when nothing goes wrong: on topics of its own, whose segments are so small that what
happens to long logs in weeks happens to these in a second. What is written stays for the judge, who reads it with all
the rest in the end.

- A log of several segments, in which times go back and forth, loses its beginning up to the midst of a segment.
- One is compacted while a transaction is open in a segment that is closed, and is ended after that.
- One is deleted and made anew, with somebody who reads it, and the offsets that a group had in the one before.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from random import Random
from typing import Any, Final

from tagwire.client import EARLIEST, LATEST, NewTopic
from tagwire.client.aio import AsyncAdmin, AsyncConsumer, AsyncProducer
from tagwire.errors import TagwireError
from tagwire.partitions import TopicPartition
from tests.simulation.workload.probing import PATIENCE, Probing
from tests.simulation.workload.producing import IDEMPOTENT, Producing
from tests.simulation.workload.records import name_of
from tests.simulation.workload.stage import Spec, always, is_refusal
from tests.simulation.workload.transacting import Transacting

LOG, KEYS, ANEW = "stored", "stored-keys", "stored-anew"

SMALL: Final[Spec] = {"segment.bytes": 1024, "index.interval.bytes": 1}
COMPACTED: Final[Spec] = SMALL | {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0"}

GROUP: Final = "stored-offsets"
TRANSACTIONAL_ID: Final = "writer-of-keys"
"""Behind those of plans: the first of all is looked at."""

SLACK_S: Final = 5.0
"""Of a transaction's time, what is left when a compaction is over that waits for none."""

AGES_S: Final = 60.0
"""How old records say to be, at most."""

PARTITIONS: Final = 4
"""Of the topic that is made anew: of three nodes one leads two of them, which are read in one fetch session."""

HEARD_S: Final = 1.0
"""By then who reads what is deleted has heard of it."""

READ_S: Final = 30.0
"""By then who reads what is made anew is given its records."""

WRITING: Final[Spec] = {
    "acks": -1,
    "idempotence": True,
    "linger": 0.0,
    "batch_bytes": 1000,
    "compression": "none",
    "timeout": PATIENCE,
    "max_block": PATIENCE,
    "value_size": 150,
}


class Storing(Probing):
    """Its spec: compacted (seconds, within which a broker compacts what is due)."""

    async def ask(self) -> None:
        self.properties = self.stage.properties(self.process, 20.0)
        async with AsyncAdmin(self.properties) as self.admin:
            for act in (self._log, self._keys, self._anew):
                try:
                    async with asyncio.timeout(PATIENCE):
                        await act()
                except (TagwireError, TimeoutError):
                    continue  # it is noted

    async def _log(self) -> None:
        await self._create(LOG, "steady", 1, SMALL)
        count = self.random.randint(12, 30)
        writer = Writer(self.stage, WRITING | {"name": f"{self.name}-log"})
        async with AsyncProducer(self.properties, **writer.options()) as producer:
            await writer.write(producer, LOG, [None] * count)
        at = TopicPartition(LOG, 0)
        before = self.random.randrange(1, count)
        await self.noted(
            "delete_records",
            {"topic": LOG, "partition": 0, "before": before},
            lambda: self.admin.delete_records({at: before}),
            lambda found: {"log_start": found[at]},
            has_no_effect=is_refusal,
        )

    async def _keys(self) -> None:
        await self._create(KEYS, "compacted", 1, COMPACTED)
        keys = [f"k{number}" for number in range(6)]
        own = self.random.sample(keys, 2)
        others = [key for key in keys if key not in own]
        writer = Writer(self.stage, WRITING | {"name": f"{self.name}-keys"})
        transacting = {"transactional_id": TRANSACTIONAL_ID, "transaction_timeout": self.spec["compacted"] + SLACK_S}
        open_ = _OpenWriter(self.stage, WRITING | transacting | {"name": f"{self.name}-transactions", "abort": 0.7})
        async with (
            AsyncProducer(self.properties, **writer.options()) as producer,
            AsyncProducer(self.properties, **open_.options()) as transactional,
        ):
            await writer.write(producer, KEYS, [*keys, *self.random.choices(keys, k=6)])
            await open_.initialize(transactional)
            open_.begin(transactional)
            await open_.write(transactional, KEYS, own)
            await writer.write(producer, KEYS, self.random.choices(others, k=self.random.randint(8, 16)))
            await asyncio.sleep(self.spec["compacted"])
            await open_.end(transactional)

    async def _anew(self) -> None:
        await self._create(ANEW, "unsteady", PARTITIONS, {})
        places = [TopicPartition(ANEW, partition) for partition in range(PARTITIONS)]
        offsets = {at: self.random.randint(1, 9) for at in places}
        asked = {"group": GROUP, "offsets": [[*at, offset] for at, offset in offsets.items()]}
        alter = lambda: self.admin.alter_group_offsets(GROUP, offsets)  # noqa: E731
        await self.noted("alter_group_offsets", asked, alter, has_no_effect=is_refusal)
        options: dict[str, Any] = {"max_wait_ms": 300, "metadata_max_age": 300.0}
        async with AsyncConsumer(self.properties, **options) as consumer:
            # Beside what stays where it is: a fetch session of which all is gone is not gone on with.
            await consumer.assign({TopicPartition(LOG, 0): LATEST} | dict.fromkeys(places, EARLIEST))
            await given(consumer, HEARD_S)
            delete = lambda: self.admin.delete_topics(ANEW)  # noqa: E731
            await self.noted("delete_topic", {"topic": ANEW}, delete, has_no_effect=is_refusal)
            await given(consumer, self.random.choice([0.0, HEARD_S]))
            await self._create(ANEW, "unsteady", PARTITIONS, {})
            await self._committed(places)
            writer = Writer(self.stage, WRITING | {"name": f"{self.name}-anew"})
            async with AsyncProducer(self.properties, **writer.options()) as producer:
                for at in places:
                    await writer.write(producer, ANEW, [None], at.partition)
            await writer.are_given(consumer, READ_S, f"{ANEW}, made anew, by who reads it")

    async def _committed(self, places: Sequence[TopicPartition]) -> None:
        """Where the group stands that had offsets of the topic before."""

        async def committed() -> Spec:
            found = await self.admin.group_offsets(GROUP)
            return {"offsets": [[*at, found[at].offset if at in found else None] for at in places]}

        asked = {"group": GROUP, "partitions": [[*at] for at in places]}
        await self.noted("committed", asked, committed, lambda found: found, has_no_effect=always)

    async def _create(self, name: str, kind: str, partitions: int, configs: Spec) -> None:
        new = NewTopic(name, partitions, -1, configs)
        asked = {"topic": name, "partitions": partitions, "configs": configs}
        await self.noted("create_topic", asked, lambda: self.admin.create_topics(new), has_no_effect=is_refusal)
        topic = {"name": name, "partitions": partitions, "kind": kind, "compacted": kind == "compacted"}
        self.stage.topics[name] = topic | {"configs": configs}


class Writer(Producing):
    """Writes records one by one, or a few at once."""

    kind = IDEMPOTENT
    sent = 0

    async def write(self, producer: AsyncProducer, topic: str, keys: Sequence[str | None], partition: int = 0) -> None:
        for key in keys:
            await self.send(producer, topic, key, partition)
            if self.random.random() < 0.7:
                await self.flush(producer)
        await self.flush(producer)

    async def are_given(self, consumer: AsyncConsumer, seconds: float, about: str) -> None:
        """Notes which of its records a reader is given within some time, if all were acknowledged."""
        sends = (each for each in self.history.events if each.process == self.process and each.f == "send")
        if [each.type for each in sends].count("ok") < self.sent:
            return
        names = sorted(f"{self.process}.{number}" for number in range(1, self.sent + 1))
        op = self.history.invoke(self.process, "probe", node=-1, api="Fetch", about=about, answers=[names])
        self.history.ok(op, answer=sorted(await given(consumer, seconds, len(names))))

    def _timestamp(self) -> int:
        return _at_some_time(self.random)


class _OpenWriter(Transacting):
    """The same in a transaction."""

    sent = begun = 0
    write = Writer.write

    def _timestamp(self) -> int:
        return _at_some_time(self.random)


async def given(consumer: AsyncConsumer, seconds: float, count: int | None = None) -> list[str]:
    """The names of the records that a reader is given within some time, or until they are so many."""
    loop = asyncio.get_running_loop()
    names: list[str] = []
    until = loop.time() + seconds
    while loop.time() < until and len(names) != count:
        try:
            names += [name_of(record) for record in await consumer.poll(min(0.3, seconds))]
        except TagwireError:
            await asyncio.sleep(0.05)  # of a topic that is not there
    return names


def _at_some_time(random: Random) -> int:
    """Who collects from many has the newest first, or last, or in between."""
    return int((time.time() - random.uniform(0, AGES_S)) * 1000)
