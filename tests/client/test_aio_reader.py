"""Readers of an event loop: what a cancelled read would have given is given by the next one, once."""

from __future__ import annotations

import asyncio
import gc
import inspect
import time
import warnings
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any

import pytest

from tagwire import messages
from tagwire.broker import Broker, delay
from tagwire.broker.interception import Act, Intercepted
from tagwire.client import Admin, Committed, NewTopic, Producer, Reader
from tagwire.client.aio import AsyncClient, AsyncProducer, AsyncReader
from tagwire.errors import ConfigError, ConnectError, DecodeError, Error, KafkaError, SchemaRegistryError, TagwireError

from .test_aio_client import Main, run  # noqa: F401

COUNT = 3000


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker(fsync="never") as broker, Admin(broker.bootstrap) as admin:
        admin.create_topics(NewTopic("t", 3))
        with Producer(broker.bootstrap, batch_bytes=2000) as producer:
            for number in range(COUNT):
                producer.send("t", b"%d" % number, partition=number % 3)
        yield broker.bootstrap


def put_off(call: Intercepted) -> messages.OffsetCommitResponse | None:
    """A coordinator that is not ready yet for a commit of offset 10."""
    kind = messages.OffsetCommitResponse
    if call.request.topics[0].partitions[0].committed_offset != 10:
        return None
    return kind(
        topics=[
            kind.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    kind.OffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=Error.COORDINATOR_LOAD_IN_PROGRESS
                    )
                    for each in topic.partitions
                ],
            )
            for topic in call.request.topics
        ]
    )


def with_own_broker(
    run_in_loop: Main, main: Callable[[str], Coroutine[Any, Any, None]], acts: Mapping[str, Act]
) -> None:
    """Runs `main` with a broker that has 30 records in "t", and acts so on the first three requests of some APIs."""
    with Broker(fsync="never", num_partitions=1) as broker:
        with Producer(broker.bootstrap) as producer:
            for number in range(30):
                producer.send("t", b"%d" % number)
        for api, act in acts.items():
            broker.intercept(api, act, times=3)
        run_in_loop(lambda: main(broker.bootstrap))


SMALL = {"max_bytes": 4000, "max_partition_bytes": 2000, "batch_rows": 100}


def test_batches_and_records_are_those_that_threads_read(bootstrap: str, run: Main) -> None:  # noqa: F811
    async def main() -> None:
        async with AsyncReader(bootstrap, "t", stop_at_end=True) as reader:
            values = [value async for batch in reader for value in batch["value"].to_pylist()]
            assert reader.position(("t", 0)) == COUNT // 3
            assert all(found.position == found.end for found in (await reader.lag()).values())
            with pytest.raises(StopAsyncIteration):
                await anext(reader)
            await reader.seek(("t", 1), 990)
            assert sum([batch.num_rows async for batch in reader]) == 10
        assert sorted(values) == sorted(b"%d" % number for number in range(COUNT))
        async with AsyncReader(bootstrap, "t", stop_at_end=True) as reader:
            assert len([record async for record in reader.records()]) == COUNT

    run(main)


@pytest.mark.parametrize("way", ["batches", "records"])
def test_whichever_step_of_reading_is_cancelled_nothing_is_lost_or_given_twice(
    bootstrap: str,
    way: str,
    run: Main,  # noqa: F811
) -> None:
    async def main() -> None:
        async with AsyncClient(bootstrap) as client:
            reader = AsyncReader(client, "t", stop_at_end=True, **SMALL)
            records = reader.records()
            values: list[bytes] = []

            async def step() -> None:
                if way == "batches":
                    values.extend((await anext(reader))["value"].to_pylist())
                else:
                    values.append((await anext(records)).value)

            turns = 0
            await reader.lag()
            while True:
                given = len(values)
                read = asyncio.create_task(step())
                for _ in range(turns % 7):
                    await asyncio.sleep(0)
                read.cancel()
                (found,) = await asyncio.gather(read, return_exceptions=True)
                if isinstance(found, StopAsyncIteration | RuntimeError):
                    break
                turns += 1
                assert len(values) == sum(reader.position(("t", index)) for index in range(3))
                assert given <= len(values)
            await reader.close()
            assert len(client._core.network.connections) == 0  # its own are its own
        assert sorted(values) == sorted(b"%d" % number for number in range(COUNT))

    run(main)


@pytest.mark.parametrize("end", ["cancelled", "failed"])
def test_records_whose_decoding_is_cancelled_or_fails_are_given_by_the_next_step(
    bootstrap: str,
    end: str,
    monkeypatch: pytest.MonkeyPatch,
    run: Main,  # noqa: F811
) -> None:
    to_thread = asyncio.to_thread

    async def main() -> None:
        begun = asyncio.Event()

        async def never_done(call: object) -> None:
            begun.set()
            if end == "failed":
                raise SchemaRegistryError("the registry is away")
            await asyncio.Event().wait()

        schema = {"format": "avro", "schema": '"string"'}
        start, options = {("t", 0): COUNT // 3 - 100}, {"value_format": schema, "bad_values": "null"}
        async with AsyncReader(bootstrap, start, stop_at_end=True, **options) as reader:  # type: ignore[arg-type]
            records = reader.records()
            monkeypatch.setattr(asyncio, "to_thread", never_done)
            step = asyncio.create_task(anext(records))  # type: ignore[arg-type]
            await begun.wait()
            step.cancel()
            (found,) = await asyncio.gather(step, return_exceptions=True)
            assert isinstance(found, SchemaRegistryError if end == "failed" else asyncio.CancelledError)
            monkeypatch.setattr(asyncio, "to_thread", to_thread)
            assert [record.offset async for record in records] == [*range(COUNT // 3 - 100, COUNT // 3)]

    run(main)


def test_an_error_among_records_is_raised_by_every_step_until_it_is_sought_over(bootstrap: str, run: Main) -> None:  # noqa: F811
    schema = {"format": "avro", "schema": '"string"'}  # of which no value is one

    async def main() -> None:
        async with AsyncReader(bootstrap, {("t", 0): 0}, stop_at_end=True, value_format=schema) as reader:
            records = reader.records()
            for _ in range(3):
                with pytest.raises(DecodeError, match="t-0@0"):
                    await anext(records)
            await reader.seek(("t", 0), COUNT // 3)
            with pytest.raises(StopAsyncIteration):
                await anext(records)

    run(main)


def test_a_time_out_while_nothing_comes_leaves_the_reader_waiting_for_more(bootstrap: str, run: Main) -> None:  # noqa: F811
    async def main() -> None:
        async with AsyncProducer(bootstrap) as producer:
            await (await producer.send("later", b"1"))
            async with AsyncReader(bootstrap, "later") as reader:
                assert (await anext(reader))["value"].to_pylist() == [b"1"]
                for _ in range(3):
                    with pytest.raises(TimeoutError):
                        async with asyncio.timeout(0.05):
                            await anext(reader)
                await (await producer.send("later", b"2"))
                assert (await anext(reader))["value"].to_pylist() == [b"2"]

    with Admin(bootstrap) as admin:
        if "later" not in {topic.name for topic in admin.list_topics()}:
            admin.create_topics("later")
        else:
            admin.delete_records({("later", 0): -1})
    run(main)


def test_what_is_committed_is_what_was_given_out(bootstrap: str, run: Main) -> None:  # noqa: F811
    async def main() -> None:
        async with AsyncReader(bootstrap, {("t", 0): Committed("earliest")}, group="g", **SMALL) as reader:
            await reader.seek(("t", 0), 0)
            async for record in reader.records():
                if record.offset == 41:
                    break
            await reader.commit()
            assert {at.partition: found.offset for at, found in (await reader.committed()).items()} == {0: 42}
        async with AsyncReader(bootstrap, {("t", 0): Committed()}, group="g") as reader:
            assert (await anext(reader.records())).offset == 42

    run(main)


def test_commits_of_several_tasks_are_made_in_the_order_in_which_they_were_asked_for(
    run: Main,  # noqa: F811
) -> None:
    late = {"OffsetCommit": put_off}

    async def main(bootstrap: str) -> None:
        async with AsyncReader(bootstrap, "t", group="g") as reader:
            records = reader.records()
            for _ in range(10):
                await anext(records)
            first = asyncio.create_task(reader.commit())
            await asyncio.sleep(0.1)  # and is put off
            for _ in range(10):
                await anext(records)
            await asyncio.gather(first, reader.commit())
            assert [found.offset for found in (await reader.committed()).values()] == [20]

    with_own_broker(run, main, late)


def test_of_several_seeks_the_one_that_was_asked_for_last_counts(run: Main) -> None:  # noqa: F811
    late = {"ListOffsets": delay(0.3)}

    async def main(bootstrap: str) -> None:
        async with AsyncReader(bootstrap, {("t", 0): 0}) as reader:
            first = asyncio.create_task(reader.seek(("t", 0), "latest"))
            await asyncio.sleep(0.1)  # the end is looked up
            await asyncio.gather(first, reader.seek(("t", 0), 7))
            assert reader.position(("t", 0)) == 7

    with_own_broker(run, main, late)


def test_a_reader_is_opened_by_whichever_call_comes_first_and_says_what_is_wrong(bootstrap: str, run: Main) -> None:  # noqa: F811
    async def main() -> None:
        with pytest.raises(ConfigError, match="batch_rows"):
            AsyncReader(bootstrap, "t", batch_rows=0)
        reader = AsyncReader({"bootstrap.servers": bootstrap, "request.timeout.ms": 500}, "no-such-topic")
        for _ in range(2):
            with pytest.raises(KafkaError, match="no-such-topic"):
                await anext(reader)
        await reader.close()
        reader = AsyncReader(bootstrap, "t", stop_at_end=True)
        lags, _ = await asyncio.gather(reader.lag(), reader.seek(("t", 0), 500))
        assert len(lags) == 3
        assert sum([batch.num_rows async for batch in reader]) == COUNT - 500
        await reader.close()
        await reader.close()

    run(main)


def test_all_who_wait_for_a_reader_to_be_opened_hear_at_once_that_no_broker_is_there(run: Main) -> None:  # noqa: F811
    async def main() -> None:
        async with AsyncClient("127.0.0.1:1", timeout=600) as client:
            reader = AsyncReader(client, "t")
            began = time.monotonic()
            told = await asyncio.gather(*[reader.lag() for _ in range(3)], return_exceptions=True)
            assert time.monotonic() - began < 8  # seconds; a connection has ten to be made in
            await reader.close()
        assert [type(error) for error in told] == [ConnectError] * 3

    run(main)


def test_one_task_at_a_time_reads(bootstrap: str, run: Main) -> None:  # noqa: F811
    async def main() -> None:
        async with AsyncReader(bootstrap, {("t", 0): "latest"}) as reader:
            waiting = asyncio.create_task(anext(reader))
            await asyncio.sleep(0.05)
            with pytest.raises(TagwireError, match="another task reads from this reader"):
                await anext(reader)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    run(main)


@pytest.mark.parametrize("way", ["batches", "records", "opening"])
def test_closing_ends_the_read_of_another_task_which_does_not_connect_anew(
    bootstrap: str,
    way: str,
    run: Main,  # noqa: F811
) -> None:
    async def main() -> None:
        reader = AsyncReader(bootstrap, {("t", 0): "latest"})
        waiting = asyncio.create_task(anext(reader.records() if way == "records" else reader))
        await asyncio.sleep(0 if way == "opening" else 0.1)
        await reader.close()
        with pytest.raises(TagwireError, match="the reader was closed"):
            await asyncio.wait_for(waiting, 5)
        await asyncio.sleep(0.05)
        assert not reader._network.is_connected
        assert not reader._client._core.network.is_connected
        await reader.close()

    run(main)


def test_a_reader_that_nobody_closed_is_told_of(bootstrap: str, run: Main) -> None:  # noqa: F811
    async def main() -> None:
        reader = AsyncReader(bootstrap, "t")
        await anext(reader)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del reader
            gc.collect()
        assert [str(each.message).split(":")[0] for each in caught] == ["an AsyncReader of 127.0.0.1"]
        await asyncio.sleep(0)

    run(main)


def test_every_call_of_threads_is_one_of_tasks_and_takes_the_same() -> None:
    for name in dir(Reader):
        if not name.startswith("_"):
            ours, theirs = getattr(AsyncReader, name), getattr(Reader, name)
            assert inspect.getdoc(ours), name
            assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters), name
