"""Consume, transform, produce: exactly once, with asyncio.

A member of a group reads orders and writes invoices. What it writes and how far it has read are one transaction, so
that a transaction which fails leaves neither: the loop goes back to where the group stands and does it again.
"""

import asyncio

from tagwire.broker import Broker
from tagwire.client import NewTopic
from tagwire.client.aio import AsyncAdmin, AsyncClient, AsyncConsumer, AsyncProducer, AsyncReader
from tagwire.records import Record

ORDERS = 1000


def invoice_of(order: Record) -> bytes:
    return b"invoice of " + (order.value or b"")


async def bill(client: AsyncClient) -> None:
    """Writes an invoice for each order, until there is one for all of them."""
    settings = {"group": "billing", "offset_reset": "earliest", "auto_commit": False, "isolation": "read_committed"}
    async with (
        AsyncConsumer(client, protocol="consumer", **settings) as consumer,
        AsyncProducer(client, transactional_id="billing-1") as producer,
    ):
        await consumer.subscribe("orders")
        await producer.init_transactions()
        done, has_failed = 0, False
        while done < ORDERS:
            orders = await consumer.poll(1.0)
            if not orders:
                continue
            try:
                async with producer.transaction():  # committed at its end, aborted where it raises
                    for order in orders:
                        await producer.send("invoices", invoice_of(order), key=order.key)
                    await producer.send_offsets(await consumer.positions(), consumer.group_metadata())
                    if not has_failed:
                        has_failed = True
                        raise RuntimeError("the printer is out of paper")
            except RuntimeError as error:
                print(error, "- once more")
                committed = await consumer.committed()
                for partition in consumer.assignment():
                    await consumer.seek(partition, committed.get(partition, "earliest"))
            else:
                done += len(orders)


async def main(bootstrap: str) -> None:
    async with AsyncClient(bootstrap) as client:
        admin = AsyncAdmin(client)
        await admin.create_topics([NewTopic("orders", num_partitions=3), NewTopic("invoices", num_partitions=3)])
        async with AsyncProducer(client) as producer:
            for number in range(ORDERS):
                await producer.send("orders", b"order %d" % number, key=b"customer %d" % (number % 40))
        async with asyncio.timeout(60):
            await bill(client)
        async with AsyncReader(client, "invoices", stop_at_end=True, isolation="read_committed") as reader:
            invoices = [record.value async for record in reader.records()]
        print(f"{len(invoices):,} invoices of {ORDERS:,} orders")
        assert sorted(invoices) == sorted(b"invoice of order %d" % number for number in range(ORDERS))


with Broker() as broker:
    asyncio.run(main(broker.bootstrap))
