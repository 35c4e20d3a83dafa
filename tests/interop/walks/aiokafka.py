"""A walk of aiokafka: `aiokafka.py BOOTSTRAP TOPIC CLIENT_ID`."""

import asyncio
import sys

sys.path.pop(0)  # this file's folder, where it would find itself

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

bootstrap, topic, client_id = sys.argv[1:]
common = {"bootstrap_servers": bootstrap, "client_id": client_id}
VALUES = [b"%d" % number for number in range(20)]


async def main():
    producer = AIOKafkaProducer(acks="all", compression_type="gzip", **common)
    await producer.start()
    for value in VALUES:
        await producer.send_and_wait(topic, value)
    await producer.stop()
    print("ok produce", flush=True)

    consumer = AIOKafkaConsumer(
        topic, group_id="g-" + topic, auto_offset_reset="earliest", enable_auto_commit=False, **common
    )
    await consumer.start()
    found = [(await consumer.getone()).value for _ in VALUES]
    assert found == VALUES, found
    await consumer.commit()
    await consumer.stop()
    print("ok consume", flush=True)

    admin = AIOKafkaAdminClient(**common)
    await admin.start()
    await admin.create_topics([NewTopic(topic + "-made", 1, 1)])
    await admin.close()
    print("ok admin", flush=True)


asyncio.run(main())
