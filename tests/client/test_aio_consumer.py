"""Consumers of an event loop: whatever is cancelled, no record is lost or given twice; listeners may be awaited."""

from __future__ import annotations

import asyncio
import gc
import inspect
import time
import warnings
import weakref
from collections.abc import Iterator, Sequence
from functools import partial

import pytest

from tagwire.broker import Broker
from tagwire.client import Admin, Consumer, NewTopic, Producer, RebalanceListener, TopicPartition
from tagwire.client.aio import AsyncClient, AsyncConsumer, AsyncProducer
from tagwire.client.consuming import consumer_work
from tagwire.client.scheduling import NEVER, Wait
from tagwire.errors import ConsumerStateError, TagwireError, WakeupError
from tagwire.records import Record

from .test_aio_client import Main, run  # noqa: F401

COUNT = 1000


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker(fsync="never") as broker, Admin(broker.bootstrap) as admin:
        admin.create_topics(NewTopic("t", 2))
        admin.create_topics("sink")
        with Producer(broker.bootstrap, batch_bytes=1000) as producer:
            for number in range(COUNT):
                producer.send("t", b"%d" % number, partition=number % 2)
        yield broker.bootstrap


def member(client: AsyncClient | str, group: str, **options: object) -> AsyncConsumer:
    return AsyncConsumer(client, group=group, offset_reset="earliest", heartbeat_interval=0.2, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("way", ["poll", "consume", "iterate", "batches"])
def test_whichever_step_is_cancelled_nothing_is_lost_or_given_twice(bootstrap: str, way: str, run: Main) -> None:  # noqa: F811
    async def main() -> None:
        async with member(bootstrap, f"g-{way}-{id(run)}", max_poll_records=20, max_partition_bytes=2000) as consumer:
            await consumer.subscribe("t")
            values: list[bytes | None] = []
            records, batches = aiter(consumer), consumer.batches()

            async def step() -> None:
                if way == "poll":
                    values.extend(record.value for record in await consumer.poll(5))
                elif way == "consume":
                    values.extend(record.value for record in await consumer.consume(50, 5))
                elif way == "iterate":
                    values.append((await anext(records)).value)
                else:
                    values.extend((await anext(batches))["value"].to_pylist())

            turns = 0
            while len(values) < COUNT:
                turns += 1
                call = asyncio.create_task(step())
                for _ in range(turns % 50):
                    if not call.done():
                        await asyncio.sleep(0.001 if turns % 3 else 0)
                if turns % 5:  # so that it comes to an end on any machine
                    call.cancel()
                await asyncio.gather(call, return_exceptions=True)
            assert len(consumer._core.tasks._tasks) < 10  # nothing piles up
            await consumer.commit()
            assert sum(found.offset for found in (await consumer.committed()).values()) == COUNT
        assert sorted(map(int, filter(None, values))) == list(range(COUNT))

    run(main)


def test_methods_of_a_listener_are_awaited_and_may_use_the_consumer(bootstrap: str, run: Main) -> None:  # noqa: F811
    told: list[str] = []

    class Seeking(RebalanceListener):
        async def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            for partition in partitions:
                await self.consumer.seek(partition, COUNT // 2 - 1)
                told.append(f"{partition}")

        async def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
            await self.consumer.commit()
            told.append("revoked")

        consumer: AsyncConsumer

    async def main() -> None:
        told.clear()
        async with member(bootstrap, f"g-{id(run)}", auto_commit=False) as consumer:
            listener = Seeking()
            listener.consumer = consumer
            await consumer.subscribe("t", listener)
            assert len(await consumer.consume(2, 30)) == 2
        assert told == ["t-0", "t-1", "revoked"]

    run(main)


@pytest.mark.parametrize("call", ["seek", "assign"])
def test_a_position_whose_look_up_is_cancelled_does_not_move_later(
    bootstrap: str,
    call: str,
    monkeypatch: pytest.MonkeyPatch,
    run: Main,  # noqa: F811
) -> None:
    look_up = consumer_work.resolved
    is_held = True

    async def held(*arguments: object) -> object:
        await Wait(lambda: not is_held, NEVER)
        return await look_up(*arguments)  # type: ignore[arg-type]

    async def main() -> None:
        nonlocal is_held
        is_held = True
        async with AsyncConsumer(bootstrap, max_poll_records=10) as consumer:
            await consumer.assign({("t", 0): 0})
            assert [record.offset for record in await consumer.poll(5)] == [*range(10)]
            monkeypatch.setattr(consumer_work, "resolved", held)
            move = consumer.seek(("t", 0), "latest") if call == "seek" else consumer.assign({("t", 1): "latest"})
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(move, 0.05)
            is_held = False
            monkeypatch.setattr(consumer_work, "resolved", look_up)
            while any(isinstance(key, asyncio.Future) for key in consumer._core.tasks._tasks):
                consumer._task.wakeup()
                await asyncio.sleep(0.005)
            assert [record.offset for record in await consumer.poll(5)] == [*range(10, 20)]
            assert consumer.assignment() == {("t", 0)}

    run(main)


def test_consuming_that_is_cancelled_just_as_the_consumer_breaks_down_is_cancelled(
    bootstrap: str,
    monkeypatch: pytest.MonkeyPatch,
    run: Main,  # noqa: F811
) -> None:
    def breaks_down() -> None:
        raise RuntimeError("on purpose")

    async def main() -> None:
        consumer = AsyncConsumer(bootstrap)
        await consumer.assign({("t", 0): "latest"})
        consuming = asyncio.create_task(consumer.consume(1))
        await asyncio.sleep(0.05)
        monkeypatch.setattr(consumer._core.work, "step", breaks_down)
        consumer._task.wakeup()
        await asyncio.sleep(0)
        consuming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await consuming
        await consumer.close()

    run(main)


def test_the_next_call_is_woken_by_its_own_task_and_none_by_who_outlives_it(bootstrap: str, run: Main) -> None:  # noqa: F811
    consumers: list[AsyncConsumer] = []

    async def main() -> None:
        async with AsyncConsumer(bootstrap) as consumer:
            consumers.append(consumer)
            await consumer.assign({("t", 0): "latest"})
            consumer.wakeup()
            with pytest.raises(WakeupError):
                await consumer.poll(0)
            assert await consumer.poll(0) == []

    run(main)
    consumers[0].wakeup()


def test_two_tasks_at_a_time_are_refused_and_another_one_wakes_it(bootstrap: str, run: Main) -> None:  # noqa: F811
    async def main() -> None:
        async with AsyncConsumer(bootstrap) as consumer:
            await consumer.assign({("t", 0): "latest"})
            waiting = asyncio.create_task(consumer.poll(None))
            await asyncio.sleep(0.05)
            with pytest.raises(ConsumerStateError, match="two threads or tasks at a time"):
                await consumer.poll()
            await asyncio.to_thread(consumer.wakeup)
            with pytest.raises(WakeupError):
                await waiting
            assert await consumer.poll(0) == []

    run(main)


def test_a_poll_whose_process_was_stopped_for_longer_than_it_waits_gives_nothing(
    bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with AsyncConsumer(bootstrap) as consumer:
            await consumer.assign({("t", 0): "latest"})
            assert await consumer.poll(0.05) == []
            waiting = asyncio.create_task(consumer.poll(0.5))
            await asyncio.sleep(0.01)
            monotonic = time.monotonic
            monkeypatch.setattr(time, "monotonic", lambda: monotonic() + 5)
            assert await waiting == []

    asyncio.run(main())


def test_members_in_a_task_group_share_the_partitions_and_leave_with_it(bootstrap: str, run: Main) -> None:  # noqa: F811
    async def main() -> None:
        group, seen = f"g-group-{id(run)}", set()
        async with AsyncClient(bootstrap) as client:

            async def read() -> None:
                async with member(client, group) as consumer:
                    await consumer.subscribe("t")
                    async for record in consumer:
                        seen.add(record.value)

            async def watch() -> None:
                while len(seen) < COUNT:
                    await asyncio.sleep(0.01)
                raise ZeroDivisionError

            with pytest.raises(ExceptionGroup) as caught:  # noqa: PT012
                async with asyncio.TaskGroup() as tasks:
                    for coroutine in (read(), read(), watch()):
                        tasks.create_task(coroutine)
            assert [type(error) for error in caught.value.exceptions] == [ZeroDivisionError]

    run(main)


def test_what_is_read_and_sent_on_in_transactions_is_there_once(bootstrap: str, run: Main) -> None:  # noqa: F811
    async def main() -> None:
        name = f"g-eos-{id(run)}"
        async with (
            AsyncClient(bootstrap) as client,
            AsyncProducer(client, transactional_id=name) as producer,
            member(client, name, auto_commit=False) as consumer,
        ):
            await producer.init_transactions()
            await consumer.subscribe("t")
            before = (await client.list_offsets({"sink": "latest"}))["sink", 0]
            done = 0
            while done < COUNT:
                records = await consumer.consume(250, 30)
                async with producer.transaction():
                    for record in records:
                        await producer.send("sink", record.value)
                    await producer.send_offsets(await consumer.positions(), consumer.group_metadata())
                done += len(records)
            found = await consumer.committed()
            assert sum(each.offset for each in found.values()) == COUNT
            after = (await client.list_offsets({"sink": "latest"}))["sink", 0]
            assert after - before >= COUNT

    run(main)


def test_closing_again_does_nothing_and_nobody_closing_is_told_of(bootstrap: str, run: Main) -> None:  # noqa: F811
    async def main() -> None:
        consumer = member(bootstrap, f"g-closing-{id(run)}")
        await consumer.subscribe("t")
        assert await consumer.poll(30)
        await consumer.close()
        await consumer.close()
        with pytest.raises(ConsumerStateError, match="the consumer is closed"):
            await consumer.poll()
        consumer = AsyncConsumer(bootstrap)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del consumer
            gc.collect()
        assert [str(each.message).split(":")[0] for each in caught] == ["an AsyncConsumer of 127.0.0.1"]
        await asyncio.sleep(0)

    run(main)


def test_whoever_calls_what_is_closed_hears_that_and_closing_it_again_does_nothing(bootstrap: str, run: Main) -> None:  # noqa: F811
    async def main() -> None:
        async with AsyncConsumer(bootstrap) as consumer:
            await consumer.close()
            for _ in range(2):
                with pytest.raises(ConsumerStateError, match="the consumer is closed"):
                    await asyncio.create_task(consumer.poll())

    run(main)


def test_closing_beside_another_tasks_poll_ends_nothing_and_it_can_be_closed_afterwards(
    bootstrap: str,
    run: Main,  # noqa: F811
) -> None:
    async def main() -> None:
        consumer = member(bootstrap, f"g-beside-{id(run)}", max_poll_records=10)
        await consumer.subscribe("t")
        seen = len(await consumer.poll(30))
        while found := await consumer.poll(0.5):
            seen += len(found)
        waiting = asyncio.create_task(consumer.poll(None))
        await asyncio.sleep(0.05)
        with pytest.raises(ConsumerStateError, match=r"another thread or task uses the consumer: .*wakeup"):
            await consumer.close()
        consumer.wakeup()
        with pytest.raises(WakeupError):
            await waiting
        await consumer.close()
        async with AsyncConsumer(bootstrap, group=f"g-beside-{id(run)}") as other:
            committed = await other.committed([("t", 0), ("t", 1)])
        assert sum(each.offset for each in committed.values()) == seen

    run(main)


def test_closing_what_another_task_is_closing_does_not_keep_that_from_its_commit(bootstrap: str, run: Main) -> None:  # noqa: F811
    async def main() -> None:
        consumer = member(bootstrap, f"g-both-{id(run)}", max_poll_records=10)
        await consumer.subscribe("t")
        assert len(await consumer.poll(30)) == 10
        first, second = await asyncio.gather(consumer.close(), consumer.close(), return_exceptions=True)
        assert first is None
        assert isinstance(second, ConsumerStateError)
        await consumer.close()
        async with AsyncConsumer(bootstrap, group=f"g-both-{id(run)}") as other:
            committed = await other.committed([("t", 0), ("t", 1)])
        assert sum(each.offset for each in committed.values()) == 10

    run(main)


def test_what_is_closed_is_collected_though_its_own_interceptors_know_it(bootstrap: str, run: Main) -> None:  # noqa: F811
    def changed(known: list[object], record: Record) -> Record:
        return record

    async def main() -> None:
        known: list[object] = []
        consumer = AsyncConsumer(bootstrap, interceptors=[partial(changed, known)])
        producer = AsyncProducer(bootstrap, interceptors=[partial(changed, known)])
        known += [consumer, producer]
        left = [weakref.ref(each) for each in (consumer, producer)]
        for each in (consumer, producer):
            await each.close()
        del consumer, producer, each, known
        gc.collect()
        assert [each() for each in left] == [None, None]

    run(main)


def test_a_consumer_is_of_its_loop(bootstrap: str) -> None:
    async def make() -> AsyncConsumer:
        consumer = AsyncConsumer(bootstrap)
        await consumer.close()
        return consumer

    consumer = asyncio.run(make())
    with pytest.raises(TagwireError, match="AsyncConsumer was made in another event loop"):
        asyncio.run(consumer.poll())


def test_every_call_of_threads_is_one_of_tasks_and_takes_the_same() -> None:
    for name in dir(Consumer):
        if not name.startswith("_"):
            ours, theirs = getattr(AsyncConsumer, name), getattr(Consumer, name)
            assert inspect.getdoc(ours), name
            assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters), name
