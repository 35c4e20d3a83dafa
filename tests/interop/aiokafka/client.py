"""What aiokafka asks of a broker."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import ssl
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiokafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from cases import BOOTSTRAP, CODECS, RECORDS, case, case_for, given, run

SECONDS = 40
ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


def in_a_loop(work: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A case that is a coroutine."""

    @functools.wraps(work)
    def call(*arguments: Any) -> None:
        asyncio.run(asyncio.wait_for(work(*arguments), SECONDS))  # type: ignore[arg-type]

    return call


@contextlib.asynccontextmanager
async def admin() -> AsyncIterator[AIOKafkaAdminClient]:
    client = AIOKafkaAdminClient(bootstrap_servers=BOOTSTRAP)
    await client.start()
    try:
        yield client
    finally:
        await client.close()


def producer(**options: Any) -> aiokafka.AIOKafkaProducer:
    return aiokafka.AIOKafkaProducer(**{"bootstrap_servers": BOOTSTRAP, "acks": "all", **options})


def consumer(group: str | None = None, **options: Any) -> aiokafka.AIOKafkaConsumer:
    chosen = {"group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    return aiokafka.AIOKafkaConsumer(**{"bootstrap_servers": BOOTSTRAP, **chosen, **options})


async def new_topic(partitions: int = 1, **configs: str) -> str:
    """A topic of a name that is new; configurations are given with _ for the dots."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    config = {key.replace("_", "."): value for key, value in configs.items()}
    async with admin() as client:
        answer = await client.create_topics([NewTopic(name, partitions, 1, topic_configs=config)])
    assert answer.topic_errors[0][1] == 0, answer
    return name


async def send(sender: aiokafka.AIOKafkaProducer, topic: str, values: list[bytes], partition: int = 0) -> list[int]:
    """The offsets of the records sent."""
    sent = [await sender.send(topic, value, partition=partition) for value in values]
    return [metadata.offset for metadata in await asyncio.gather(*sent)]


async def read_all(topic: str, count: int, **options: Any) -> list[Any]:
    async with consumer(**options) as reader:
        reader.assign([aiokafka.TopicPartition(topic, 0)])
        return [await reader.getone() for _ in range(count)]


@case
@in_a_loop
async def topics() -> None:
    name = await new_topic(3)
    async with admin() as client:
        assert name in await client.list_topics()
        (described,) = await client.describe_topics([name])
        assert len(described["partitions"]) == 3
        await client.delete_topics([name])
        assert name not in await client.list_topics()


@case_for(*CODECS)
@in_a_loop
async def codec(name: str) -> None:
    topic = await new_topic()
    async with producer(compression_type=None if name == "none" else name, linger_ms=20) as sender:
        sent = [await sender.send(topic, value, key, 0, headers=headers) for key, value, headers in RECORDS]
        assert [(await future).offset for future in sent] == list(range(len(RECORDS)))
    found = await read_all(topic, len(RECORDS), check_crcs=True)
    assert [(m.key, m.value, list(m.headers)) for m in found] == RECORDS


@case
@in_a_loop
async def produce_idempotent() -> None:
    topic = await new_topic()
    async with producer(enable_idempotence=True, max_batch_size=500) as sender:
        assert await send(sender, topic, [b"%d" % i for i in range(2000)]) == list(range(2000))
    assert [m.value for m in await read_all(topic, 2000)] == [b"%d" % i for i in range(2000)]


@case
@in_a_loop
async def offsets() -> None:
    topic = await new_topic()
    async with producer() as sender:
        for number in range(10):
            await sender.send(topic, b"%d" % number, timestamp_ms=1000 + number * 10)
    partition = aiokafka.TopicPartition(topic, 0)
    async with consumer() as reader:
        reader.assign([partition])
        assert await reader.beginning_offsets([partition]) == {partition: 0}
        assert await reader.end_offsets([partition]) == {partition: 10}
        assert (await reader.offsets_for_times({partition: 1045}))[partition].offset == 5
        reader.seek(partition, 7)  # inside a batch
        assert (await reader.getone()).value == b"7"


@case_for(*ASSIGNORS)
@in_a_loop
async def group_rebalances(assignor: str) -> None:
    topic, group = await new_topic(4), f"g-{uuid.uuid4().hex[:8]}"
    options = {"partition_assignment_strategy": [ASSIGNORS[assignor]], "heartbeat_interval_ms": 200}
    found: list[bytes] = []
    async with consumer(group, **options) as first:
        first.subscribe([topic])
        await _assigned((first, 4))
        async with consumer(group, **options) as second, producer() as sender:
            second.subscribe([topic])
            await _assigned((first, 2), (second, 2))
            for partition in range(4):
                await send(sender, topic, [b"%d-%d" % (partition, i) for i in range(50)], partition)
            while len(found) < 200:
                for member in (first, second):
                    for messages in (await member.getmany(timeout_ms=50)).values():
                        found += [message.value for message in messages]
            await first.commit()
            await second.commit()
        await _assigned((first, 4))
        assert len(found) == len(set(found)) == 200
        assert [await first.committed(aiokafka.TopicPartition(topic, i)) for i in range(4)] == [50] * 4


async def _assigned(*wanted: tuple[aiokafka.AIOKafkaConsumer, int]) -> None:
    while any(len(member.assignment()) != count for member, count in wanted):
        await asyncio.sleep(0.02)


@case
@in_a_loop
async def transaction_committed_and_aborted() -> None:
    topic = await new_topic()
    async with producer(transactional_id=f"x-{topic}") as sender:
        for number, end in enumerate((sender.commit_transaction, sender.abort_transaction, sender.commit_transaction)):
            await sender.begin_transaction()
            await send(sender, topic, [b"%d-%d" % (number, i) for i in range(10)])
            await end()
    committed = [m.value[:1] for m in await read_all(topic, 20, isolation_level="read_committed")]
    assert committed == [b"0"] * 10 + [b"2"] * 10
    assert len(await read_all(topic, 30, isolation_level="read_uncommitted")) == 30


@case
@in_a_loop
async def transaction_with_offsets() -> None:
    topic, group = await new_topic(), f"g-{uuid.uuid4().hex[:8]}"
    partition = aiokafka.TopicPartition(topic, 0)
    async with producer(transactional_id=f"x-{topic}") as sender, sender.transaction():
        await send(sender, topic, [b"v"])
        await sender.send_offsets_to_transaction({partition: 7}, group)
    async with consumer(group) as reader:
        reader.assign([partition])
        assert await reader.committed(partition) == 7


@case
@in_a_loop
async def admin_partitions() -> None:
    name = await new_topic()
    async with admin() as client:
        await client.create_partitions({name: NewPartitions(4)})
        (described,) = await client.describe_topics([name])
    assert len(described["partitions"]) == 4


@case
@in_a_loop
async def admin_configs() -> None:
    name = await new_topic(retention_ms="123456")
    async with admin() as client:
        (answer,) = await client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
    (resource,) = answer.resources
    assert dict(entry[:2] for entry in resource[4])["retention.ms"] == "123456"


@case
@in_a_loop
async def admin_delete_records() -> None:
    name = await new_topic()
    partition = aiokafka.TopicPartition(name, 0)
    async with producer() as sender:
        await send(sender, name, [b"%d" % i for i in range(10)])
    async with admin() as client:
        assert await client.delete_records({partition: RecordsToDelete(4)}) == {partition: 4}


@case
@in_a_loop
async def admin_groups() -> None:
    topic, group = await new_topic(), f"g-{uuid.uuid4().hex[:8]}"
    partition = aiokafka.TopicPartition(topic, 0)
    async with consumer(group) as member:
        member.subscribe([topic])
        await _assigned((member, 1))
        await member.commit({partition: 0})
        async with admin() as client:
            assert group in {name for name, _ in await client.list_consumer_groups()}
            (described,) = await client.describe_consumer_groups([group])
            assert [found[1] for found in described.groups] == [group]
            assert (await client.list_consumer_group_offsets(group))[partition].offset == 0


@case
@in_a_loop
async def admin_cluster() -> None:
    async with admin() as client:
        (node,) = (await client.describe_cluster())["brokers"]
    assert f"{node['host']}:{node['port']}" == BOOTSTRAP


async def _round_trip(**security: Any) -> None:
    name = f"s-{uuid.uuid4().hex[:8]}"
    async with producer(**security) as sender:
        assert await send(sender, name, [b"v"]) == [0]
    assert [m.value for m in await read_all(name, 1, **security)] == [b"v"]


@case
@in_a_loop
async def tls() -> None:
    where, context = given("TLS_BOOTSTRAP"), ssl.create_default_context(cafile=given("CA_FILE"))
    await _round_trip(bootstrap_servers=where, security_protocol="SSL", ssl_context=context)


@case_for("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
@in_a_loop
async def sasl(mechanism: str) -> None:
    await _round_trip(**_sasl(given("SASL_BOOTSTRAP"), "SASL_PLAINTEXT", mechanism, given("SASL_PASSWORD")))


@case
@in_a_loop
async def sasl_over_tls() -> None:
    where, context = given("SASL_TLS_BOOTSTRAP"), ssl.create_default_context(cafile=given("CA_FILE"))
    await _round_trip(**_sasl(where, "SASL_SSL", "SCRAM-SHA-512", given("SASL_PASSWORD")), ssl_context=context)


@case
@in_a_loop
async def sasl_wrong_password() -> None:
    options = _sasl(given("SASL_BOOTSTRAP"), "SASL_PLAINTEXT", "PLAIN", "not it")
    with pytest.raises(aiokafka.errors.KafkaConnectionError):
        await producer(**options).start()


def _sasl(bootstrap: str, protocol: str, mechanism: str, password: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": bootstrap,
        "security_protocol": protocol,
        "sasl_mechanism": mechanism,
        "sasl_plain_username": given("SASL_USER"),
        "sasl_plain_password": password,
    }


if __name__ == "__main__":
    sys.exit(run())
