"""Producers of an event loop: shared by tasks, cancelled at any step, in transactions, on asyncio and on uvloop."""

from __future__ import annotations

import asyncio
import gc
import inspect
import warnings
from collections.abc import Iterator

import pyarrow as pa
import pytest

from tagwire.broker import Broker
from tagwire.client import Admin, Producer
from tagwire.client.aio import AsyncAdmin, AsyncClient, AsyncProducer
from tagwire.errors import (
    BufferFullError,
    ConnectError,
    Error,
    KafkaError,
    RequestTimeoutError,
    TagwireError,
    TransactionStateError,
)

from .fake_broker import FakeCluster, Late, Silence
from .produce_responses import refusing
from .stored import values_in
from .test_aio_client import Main, run  # noqa: F401
from .test_transaction_versions import Coordinator


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker(fsync="never") as broker:
        yield broker.bootstrap


@pytest.fixture
def topic(bootstrap: str, request: pytest.FixtureRequest) -> str:
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)
    with Admin(bootstrap) as admin:
        admin.create_topics(name)
    return name


async def offset(client: AsyncClient, topic: str) -> int:
    """The end of a topic of one partition."""
    return (await client.list_offsets({topic: "latest"}))[topic, 0]


def test_a_thousand_tasks_share_a_producer_and_each_awaits_its_own_delivery(
    bootstrap: str,
    topic: str,
    run: Main,  # noqa: F811
) -> None:
    async def main() -> None:
        async with AsyncProducer(bootstrap) as producer:

            async def send(number: int) -> int:
                delivery = await producer.send(topic, b"%d" % number)
                assert (await delivery).offset == (await delivery).offset == delivery.result().offset
                assert delivery.done()
                assert delivery.exception() is None
                return delivery.result().offset

            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(send(number)) for number in range(1000)]
            assert sorted(task.result() for task in tasks) == list(range(1000))

    run(main)


def test_whichever_step_of_a_send_is_cancelled_its_record_is_appended_once_or_not_at_all(
    bootstrap: str,
    topic: str,
    run: Main,  # noqa: F811
) -> None:
    async def main() -> None:
        async with AsyncClient(bootstrap) as client:
            step, sent = 0, 0
            while True:
                async with AsyncProducer(client, buffer_memory=1, linger=0) as producer:
                    first = await producer.send(topic, b"fills the room") if step % 2 else None
                    call = asyncio.create_task(producer.send(topic, b"v"))
                    for _ in range(step // 2):
                        if not call.done():
                            await asyncio.sleep(0.001)
                    is_over = call.done() or not call.cancel()
                    await asyncio.gather(call, return_exceptions=True)
                    await producer.flush()
                sent += (first is not None) + (not call.cancelled())
                assert await offset(client, topic) == sent
                if is_over and step % 2:
                    break
                step += 1
            assert step > 2

    run(main)


def test_a_delivery_that_nobody_waits_for_any_more_is_made(bootstrap: str, topic: str, run: Main) -> None:  # noqa: F811
    async def main() -> None:
        async with AsyncClient(bootstrap) as client:
            async with AsyncProducer(client, linger=0.2) as producer:
                delivery = await producer.send(topic, b"v")
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.01):
                        await delivery
                with pytest.raises(TagwireError, match="not known yet"):
                    delivery.result()
                assert (await delivery).offset == 0
            assert await offset(client, topic) == 1

    run(main)


def test_waiting_again_and_again_for_a_delivery_keeps_nothing_of_who_gave_up(
    bootstrap: str,
    topic: str,
    run: Main,  # noqa: F811
) -> None:
    def futures() -> int:
        gc.collect()
        return sum(isinstance(one, asyncio.Future) for one in gc.get_objects())

    async def main() -> None:
        async with AsyncProducer(bootstrap, linger=30) as producer:
            delivery = await producer.send(topic, b"v")
            before = futures()
            for _ in range(50):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.001):
                        await delivery
            assert futures() < before + 25
            await producer.flush()
            assert delivery.done()

    run(main)


def test_a_task_that_sends_without_end_leaves_others_their_turn(bootstrap: str, topic: str, run: Main) -> None:  # noqa: F811
    async def main() -> None:
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        async with AsyncProducer(bootstrap, batch_bytes=1000) as producer:
            beside = asyncio.create_task(others())
            await producer.send(topic, b"v")
            turns = 0
            for _ in range(20_000):
                await producer.send(topic, b"v")
            assert turns > 10
            beside.cancel()

    run(main)


def test_arrow_rows_and_callbacks_are_as_of_threads(bootstrap: str, topic: str, run: Main) -> None:  # noqa: F811
    async def main() -> None:
        seen: list[object] = []
        async with AsyncProducer(bootstrap) as producer:
            rows = pa.record_batch({"value": [b"%d" % number for number in range(5000)]})
            delivery = await producer.send_arrow(topic, rows, on_delivery=seen.append)
            found = await delivery
            assert (found.rows, list(found.offsets.values())) == (5000, [(0, 4999)])
            one = await producer.send(topic, b"v", on_delivery=seen.append)
            await producer.flush()
            assert seen == [delivery, one]
            assert one.result().offset == 5000
            assert list(await producer.partitions_for(topic)) == [0]
            assert (len(producer), bool(producer)) == (0, True)
            empty = await producer.send_arrow(topic, rows.slice(0, 0))
            assert (await empty).offsets == {}

    run(main)


def test_what_is_refused_is_raised_by_the_delivery_and_by_the_next_flush(run: Main) -> None:  # noqa: F811
    async def main() -> None:
        with FakeCluster() as cluster:
            cluster.topic("t")
            cluster.script("Produce", refusing(Error.TOPIC_AUTHORIZATION_FAILED))
            async with AsyncProducer(cluster.bootstrap) as producer:
                delivery = await producer.send("t", b"v")
                with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
                    await delivery
                with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
                    await producer.flush()

    run(main)


def test_a_send_without_room_waits_and_is_told_of_in_the_end(run: Main) -> None:  # noqa: F811
    async def main() -> None:
        with FakeCluster() as cluster:
            cluster.topic("t")
            cluster.script("Produce", Late(0.5))
            async with AsyncProducer(cluster.bootstrap, buffer_memory=1, max_block=0.1, linger=0) as producer:
                first = await producer.send("t", b"v")
                with pytest.raises(BufferFullError):
                    await producer.send("t", b"w")
                await first
                await (await producer.send("t", b"x"))
            assert values_in(cluster.topics["t"][0]) == [b"v", b"x"]

    run(main)


def values_of(cluster: FakeCluster) -> list[int]:
    return [int(value or b"-1") for value in values_in(cluster.topics["t"][0])]


def test_tasks_that_send_to_a_topic_that_is_not_known_yet_ask_for_it_once_and_keep_their_order(run: Main) -> None:  # noqa: F811
    async def main() -> None:
        with FakeCluster() as cluster:
            cluster.topic("t")
            async with AsyncProducer(cluster.bootstrap) as producer:
                await asyncio.gather(*[producer.send("t", b"%d" % number) for number in range(1000)])
                await asyncio.gather(*[producer.send("t", b"%d" % number) for number in range(1000, 3000)])
            assert values_of(cluster) == list(range(3000))
            assert len(cluster.requests("Metadata")) == 1

    run(main)


def test_calls_that_leave_the_loop_a_turn_are_not_overtaken(run: Main) -> None:  # noqa: F811
    async def main() -> None:
        with FakeCluster() as cluster:
            cluster.topic("t")
            late: list[asyncio.Task[object]] = []

            async def first() -> None:
                await producer.send("t", b"1")
                late.append(asyncio.create_task(producer.send("t", b"601")))

            async with AsyncProducer(cluster.bootstrap) as producer:
                await (await producer.send("t", b"0"))
                await asyncio.gather(first(), *[producer.send("t", b"%d" % number) for number in range(2, 601)])
                await late[0]
            assert values_of(cluster) == list(range(602))

    run(main)


def test_what_is_sent_when_the_topic_is_just_known_comes_behind_those_that_waited_for_it(run: Main) -> None:  # noqa: F811
    async def main() -> None:
        with FakeCluster() as cluster:
            cluster.topic("t")
            cluster.script("Metadata", Late(0.2))
            async with AsyncProducer(cluster.bootstrap) as producer:
                tasks: list[asyncio.Task[object]] = []
                while not tasks or not tasks[0].done():  # one in each of the loop's turns, that of the response too
                    tasks.append(asyncio.create_task(producer.send("t", b"%d" % len(tasks))))
                    await asyncio.sleep(0)
                await asyncio.gather(*tasks)
            assert values_of(cluster) == list(range(len(tasks)))

    run(main)


def test_tasks_without_room_keep_their_order_and_who_gives_up_is_waited_for_no_longer(run: Main) -> None:  # noqa: F811
    async def main() -> None:
        with FakeCluster() as cluster:
            cluster.topic("t")
            async with AsyncProducer(cluster.bootstrap, buffer_memory=1000, linger=0) as producer:
                await (await producer.send("t", b"0"))
                cluster.script("Produce", Late(0.3))
                await producer.send("t", b"1".rjust(500))
                waiting = [
                    asyncio.create_task(
                        producer.send("t", b"%d" % number if number % 2 else (b"%d" % number).rjust(900))
                    )
                    for number in range(2, 10)
                ]
                await asyncio.sleep(0.1)
                assert not any(task.done() for task in waiting)  # the small ones do not overtake the large ones
                for index in (0, 3):
                    waiting[index].cancel()
                await asyncio.gather(*waiting, return_exceptions=True)
            assert values_of(cluster) == [0, 1, 3, 4, 6, 7, 8, 9]

    run(main)


def test_a_record_for_a_partition_that_there_is_not_keeps_no_others_waiting(run: Main) -> None:  # noqa: F811
    async def main() -> None:
        with FakeCluster() as cluster:
            cluster.topic("t")
            async with AsyncProducer(cluster.bootstrap, linger=0) as producer:
                await producer.send("t", b"0")
                lost = asyncio.create_task(producer.send("t", b"lost", partition=7))
                await asyncio.sleep(0)
                await (await producer.send("t", b"1"))
                assert not lost.done()
                with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
                    await lost
            assert values_of(cluster) == [0, 1]

    run(main)


def test_tasks_that_look_for_a_topic_in_vain_are_told_each(run: Main) -> None:  # noqa: F811
    async def errors_of(bootstrap: str) -> list[BaseException]:
        async with AsyncProducer(bootstrap) as producer:
            async with asyncio.timeout(30):
                found = await asyncio.gather(*[producer.send("t", b"v") for _ in range(200)], return_exceptions=True)
        return [error for error in found if isinstance(error, BaseException)]

    async def main() -> None:
        with FakeCluster() as cluster:
            errors = await errors_of(cluster.bootstrap)
            assert [getattr(error, "error", None) for error in errors] == [Error.UNKNOWN_TOPIC_OR_PARTITION] * 200
        errors = await errors_of("127.0.0.1:1")
        assert [type(error) for error in errors] == [ConnectError] * 200

    run(main)


def test_a_commit_cancelled_at_any_step_can_be_made_again_and_commits_once(run: Main) -> None:  # noqa: F811
    async def one(step: int) -> bool:
        with FakeCluster() as cluster:
            cluster.topic("t")
            Coordinator(cluster, 1)
            async with AsyncProducer(cluster.bootstrap, transactional_id="x", linger=0) as producer:
                await producer.init_transactions()
                producer.begin_transaction()
                await producer.send("t", b"v")
                commit = asyncio.create_task(producer.commit_transaction())
                for _ in range(step):
                    if not commit.done():
                        await asyncio.sleep(0)
                is_over = commit.done() or not commit.cancel()
                await asyncio.gather(commit, return_exceptions=True)
                if not is_over:
                    await producer.commit_transaction()
                assert [message.committed for message in cluster.requests("EndTxn")] == [True]
                async with producer.transaction():
                    await producer.send("t", b"w")
            assert values_in(cluster.topics["t"][0]) == [b"v", b"w"]
            return is_over

    async def main() -> None:
        step = 0
        while not await one(step):
            step += 1
        assert step > 3

    run(main)


def test_a_block_that_is_cancelled_or_raises_aborts_its_transaction(run: Main) -> None:  # noqa: F811
    async def main() -> None:
        with FakeCluster() as cluster:
            cluster.topic("t")
            Coordinator(cluster, 1)
            async with AsyncProducer(cluster.bootstrap, transactional_id="x") as producer:
                await producer.init_transactions()
                with pytest.raises(TimeoutError):  # noqa: PT012
                    async with asyncio.timeout(0.1), producer.transaction():
                        await (await producer.send("t", b"v"))
                        await asyncio.sleep(60)
                with pytest.raises(ExceptionGroup):  # noqa: PT012
                    async with producer.transaction(), asyncio.TaskGroup() as group:
                        await (await producer.send("t", b"v"))
                        group.create_task(fail())
                async with producer.transaction():
                    await producer.send("t", b"w")
            assert [message.committed for message in cluster.requests("EndTxn")] == [False, False, True]

    async def fail() -> None:
        raise ValueError("on purpose")

    run(main)


def test_closing_flushes_once_and_what_comes_later_is_refused(bootstrap: str, topic: str, run: Main) -> None:  # noqa: F811
    async def main() -> None:
        async with AsyncAdmin(bootstrap) as admin:
            producer = AsyncProducer(bootstrap, linger=60)
            delivery = await producer.send(topic, b"v")
            await producer.close()
            await producer.close()
            assert delivery.result().offset == 0
            with pytest.raises(TagwireError, match="the producer is closed"):
                await producer.send(topic, b"v")
            assert (await admin.partition_ends(topic))[topic, 0].offset == 1

    run(main)


def test_closing_that_is_cancelled_fails_what_is_not_delivered(run: Main) -> None:  # noqa: F811
    async def main() -> None:
        with FakeCluster() as cluster:
            cluster.topic("t")
            cluster.script("Produce", Silence())
            producer = AsyncProducer(cluster.bootstrap)
            delivery = await producer.send("t", b"v")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await producer.close()
            with pytest.raises(TagwireError, match="closed before this was delivered"):
                await delivery

    run(main)


def test_whoever_flushes_is_told_what_failed_meanwhile_also_beside_others_and_of_a_close(run: Main) -> None:  # noqa: F811
    async def main() -> None:
        with FakeCluster() as cluster:
            cluster.topic("t")
            cluster.script("Produce", refusing(Error.INVALID_RECORD))
            async with AsyncProducer(cluster.bootstrap, linger=60) as producer:
                await producer.send("t", b"v")
                flushed = await asyncio.gather(producer.flush(), producer.flush(), return_exceptions=True)
                assert [getattr(error, "error", None) for error in flushed] == [Error.INVALID_RECORD] * 2
                await producer.flush()
                cluster.script("Produce", Silence())
                await producer.send("t", b"w")
                flush = asyncio.create_task(producer.flush())
                await asyncio.sleep(0.1)
                with pytest.raises(RequestTimeoutError):
                    await producer.close(0.1)
                with pytest.raises(TagwireError, match="closed before this was delivered"):
                    await flush

    run(main)


def test_a_producer_is_of_its_loop_and_is_told_of_where_nobody_closed_it(bootstrap: str, topic: str) -> None:
    async def make() -> AsyncProducer:
        producer = AsyncProducer(bootstrap)
        await (await producer.send(topic, b"v"))
        return producer

    async def send(producer: AsyncProducer) -> None:
        with pytest.raises(TagwireError, match="AsyncProducer was made in another event loop"):
            await producer.send(topic, b"v")
        with pytest.raises(TagwireError, match="AsyncProducer was made in another event loop"):
            await producer.flush()

    producer = asyncio.run(make())
    asyncio.run(send(producer))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del producer
        gc.collect()
    assert [str(each.message) for each in caught] == [
        f"an AsyncProducer of {bootstrap} was never closed: write `async with AsyncProducer(...) as ...:`, or await "
        "its close() when it is done"
    ]


def test_without_a_transactional_id_there_are_no_transactions(bootstrap: str) -> None:
    async def main() -> None:
        async with AsyncProducer(bootstrap) as producer:
            with pytest.raises(TransactionStateError, match="no transactional_id"):
                producer.begin_transaction()
            assert (await producer.identity()).producer_id == -1

    asyncio.run(main())


def test_every_call_of_threads_is_one_of_tasks_and_takes_the_same() -> None:
    for name in dir(Producer):
        if not name.startswith("_"):
            ours, theirs = getattr(AsyncProducer, name), getattr(Producer, name)
            assert inspect.getdoc(ours), name
            if callable(theirs):
                assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters), name
