"""What it costs to await every delivery on asyncio, with 1,000 records in flight, beside aiokafka.

    make bench WHAT=aio

One broker in a process of its own: tagwire's, or with `--bootstrap HOST:PORT` whichever runs there. Records have values
of 100 bytes, without headers and with 2, and no keys; a topic has one partition. Both number their batches
(idempotence), wait for all replicas and linger for nothing, since who awaits a delivery would wait for that, too. In
one row a thousand tasks each send, await the delivery and send again; in the other one task sends, and awaits the
oldest of the last thousand deliveries. Connecting is included; contenders alternate, and the ratio is of medians.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from client import run
from client_producing import HEADERS, TIMESTAMP, values
from rounds import Timing, alternate, sized, table

COUNT = sized(100_000, 2_000)
IN_FLIGHT = 1_000

Send = Callable[[int, bytes], Awaitable[Awaitable[object]]]
Shape = Callable[[Send, int], Awaitable[None]]


async def by_tasks(send: Send, count: int) -> None:
    """A thousand tasks, each of which awaits its delivery before it sends again."""
    left = iter(enumerate(values(count)))

    async def one() -> None:
        for number, value in left:
            await (await send(number, value))

    await asyncio.gather(*(one() for _ in range(IN_FLIGHT)))


async def by_one_task(send: Send, count: int) -> None:
    """One task, which awaits the oldest delivery before it sends one more."""
    waiting: deque[Awaitable[object]] = deque()
    for number, value in enumerate(values(count)):
        if len(waiting) == IN_FLIGHT:
            await waiting.popleft()
        waiting.append(await send(number, value))
    for delivery in waiting:
        await delivery


async def tagwire(bootstrap: str, topic: str, headers: int, shape: Shape) -> None:
    from tagwire.client.aio import AsyncProducer

    pairs = HEADERS[:headers]
    async with AsyncProducer(bootstrap, linger=0) as producer:

        async def send(number: int, value: bytes) -> Awaitable[object]:
            return await producer.send(topic, value, timestamp=TIMESTAMP + number, headers=pairs)

        await shape(send, COUNT)


async def aiokafka(bootstrap: str, topic: str, headers: int, shape: Shape) -> None:
    from aiokafka import AIOKafkaProducer

    pairs = HEADERS[:headers]
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=True, max_batch_size=256 * 1024, linger_ms=0
    ) as producer:

        async def send(number: int, value: bytes) -> Awaitable[object]:
            return await producer.send(topic, value, timestamp_ms=TIMESTAMP + number, headers=pairs)

        await shape(send, COUNT)


CONTENDERS: Mapping[str, Callable[[str, str, int, Shape], Awaitable[None]]] = {
    "aiokafka": aiokafka,
    "tagwire": tagwire,
}
SHAPES: Mapping[str, Shape] = {"1,000 tasks": by_tasks, "one task, 1,000 in flight": by_one_task}


def measured(bootstrap: str, shape: Shape, headers: int, rounds: int) -> list[Timing]:
    from tagwire.client import LATEST, Admin, Client, NewTopic

    values(COUNT)
    topics = {name: f"bench-{uuid.uuid4().hex}" for name in CONTENDERS}
    with Client(bootstrap) as client:
        admin = Admin(client)
        admin.create_topics([NewTopic(topic) for topic in topics.values()])
        work = {
            name: partial(_run, produce, bootstrap, topics[name], headers, shape)
            for name, produce in CONTENDERS.items()
        }
        timings = alternate(work, rounds=rounds)
        ends = client.list_offsets({(topic, 0): LATEST for topic in topics.values()})
        assert len(set(ends.values())) == 1, f"not all is stored: {ends}"
        admin.delete_topics(list(topics.values()))
    return timings


def _run(
    produce: Callable[[str, str, int, Shape], Awaitable[None]], bootstrap: str, topic: str, headers: int, shape: Shape
) -> None:
    async def main() -> None:
        await produce(bootstrap, topic, headers, shape)

    asyncio.run(main())


def bench(bootstrap: str, rounds: int) -> None:
    for headers in sized((0, 2), (2,)):
        for name, shape in SHAPES.items():
            timings = measured(bootstrap, shape, headers, rounds)
            title = f"each delivery awaited, {name}, {headers} headers"
            print(table(title, timings, units=COUNT, unit="records"), flush=True)


def main() -> None:
    run(__doc__, bench, bench)


if __name__ == "__main__":
    main()
