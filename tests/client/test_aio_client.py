"""Clients of an event loop: any number of tasks share one, and whoever gives up waiting takes nothing from others."""

from __future__ import annotations

import asyncio
import gc
import inspect
import warnings
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
import uvloop

from tagwire import messages
from tagwire.broker import Broker
from tagwire.client import Admin, Client, NewTopic
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.errors import ConfigError, ConnectError, ConnectionLostError, RequestTimeoutError, TagwireError

from .fake_broker import Close, FakeCluster, Late, Silence

Main = Callable[[Callable[[], Coroutine[Any, Any, None]]], None]


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker(fsync="never") as broker, Admin(broker.bootstrap) as admin:
        admin.create_topics(NewTopic("t", 2))
        yield broker.bootstrap


# All that there were: groups are named by their ids, which must not be another's later.
_runs: list[Main] = []


# The cluster's walks of test_walks.py are on uvloop in every run.
@pytest.fixture(params=["asyncio", pytest.param("uvloop", marks=pytest.mark.nightly)])
def run(request: pytest.FixtureRequest) -> Main:
    """Runs `main` in an event loop; what loops say of tasks and callbacks that went wrong is an error."""
    factory = uvloop.new_event_loop if request.param == "uvloop" else None

    def run_in_loop(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
        said: list[dict[str, Any]] = []

        async def watched() -> None:
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: said.append(context))
            await asyncio.wait_for(main(), 60)
            gc.collect()
            await asyncio.sleep(0)

        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(watched())
        assert said == []

    _runs.append(run_in_loop)
    return run_in_loop


def test_a_thousand_calls_of_one_client_are_each_given_their_own_response(bootstrap: str, run: Main) -> None:
    async def main() -> None:
        async with AsyncClient(bootstrap) as client:
            names = [f"no-such-topic-{number}" for number in range(1000)]
            found = await asyncio.gather(*(client.metadata(name) for name in names))
            assert [list(each.topics) for each in found] == [[name] for name in names]
            assert len(client._core.network.connections) == 1

    run(main)


def test_a_cancelled_request_gives_its_response_to_nobody(run: Main) -> None:
    async def main() -> None:
        with FakeCluster() as cluster:
            for name in "abc":
                cluster.topic(name)
            async with AsyncClient(cluster.bootstrap) as client:
                await client.metadata()
                cluster.script("Metadata", Late(0.2))
                slow = asyncio.create_task(client.metadata("a"))
                await asyncio.sleep(0.05)
                beside = asyncio.create_task(client.metadata("b"))
                await asyncio.sleep(0)
                slow.cancel()
                assert list((await client.metadata("c")).topics) == ["c"]
                assert list((await beside).topics) == ["b"]
                assert slow.cancelled()
                assert len(client._core.network.connections) == 1

    run(main)


def test_whichever_step_is_cancelled_the_next_call_is_answered(bootstrap: str, run: Main) -> None:
    async def one(step: int) -> bool:
        """Whether the call was over before it could be cancelled."""
        async with AsyncClient(bootstrap) as client:
            call = asyncio.create_task(client.list_offsets({"t": "latest"}))
            for _ in range(step):
                if call.done():
                    break
                await asyncio.sleep(0)
            is_over = call.done() or not call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            assert list((await client.list_offsets({"t": "latest"})).values()) == [0, 0]
            return is_over

    async def main() -> None:
        step = 0
        while not await one(step):
            step += 1
        assert step > 3

    run(main)


def test_a_time_out_of_the_callers_ends_the_call_and_leaves_the_client_working(run: Main) -> None:
    async def main() -> None:
        with FakeCluster() as cluster:
            cluster.topic("t")
            async with AsyncClient(cluster.bootstrap) as client:
                cluster.script("Metadata", Late(0.5))
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await client.metadata()
                assert list((await client.metadata()).topics) == ["t"]

    run(main)


def test_a_broker_that_keeps_silent_or_goes_away_is_told_as_to_threads(run: Main) -> None:
    async def main() -> None:
        with FakeCluster() as cluster:
            async with AsyncClient(cluster.bootstrap, timeout=2) as client:
                request = messages.MetadataRequest(topics=[])
                await client.request(request)
                cluster.script("Metadata", Silence())
                with pytest.raises(RequestTimeoutError, match="did not answer Metadata"):
                    await client.request(request)
                cluster.script("Metadata", Close())
                with pytest.raises(ConnectionLostError, match="closed the connection"):
                    await client.request(request)
                assert (await client.request(request)).cluster_id == "fake"
        async with AsyncClient(cluster.bootstrap, timeout=1) as client:
            with pytest.raises(ConnectError, match="Connection refused"):
                await client.metadata()

    run(main)


def test_a_name_is_resolved_while_the_loop_goes_on(run: Main) -> None:
    async def main() -> None:
        with FakeCluster() as cluster:
            async with AsyncClient(cluster.bootstrap.replace("127.0.0.1", "localhost")) as client:
                assert (await client.metadata()).cluster_id == "fake"
        async with AsyncClient("no-such-host.invalid:9092", timeout=20) as client:
            with pytest.raises(ConnectError, match=r"no-such-host\.invalid:9092"):
                await client.metadata()

    run(main)


def test_one_failing_task_of_a_group_cancels_the_others_and_the_client_goes_on(bootstrap: str, run: Main) -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise ValueError("on purpose")

    async def main() -> None:
        async with AsyncClient(bootstrap) as client:
            with pytest.raises(ExceptionGroup) as caught:  # noqa: PT012
                async with asyncio.TaskGroup() as group:
                    for _ in range(20):
                        group.create_task(client.list_offsets({"t": "latest"}))
                    group.create_task(fail())
            assert [str(error) for error in caught.value.exceptions] == ["on purpose"]
            assert len(await client.list_offsets({"t": "latest"})) == 2

    run(main)


def test_a_client_is_of_the_loop_it_was_made_in(bootstrap: str) -> None:
    with pytest.raises(TagwireError, match="AsyncClient is made where no event loop runs"):
        AsyncClient(bootstrap)

    async def make() -> AsyncClient:
        return AsyncClient(bootstrap)

    client = asyncio.run(make())
    with pytest.raises(TagwireError, match="AsyncClient was made in another event loop"):
        asyncio.run(client.metadata())


def test_options_are_those_of_the_client_for_threads(bootstrap: str) -> None:
    async def main() -> None:
        with pytest.raises(ConfigError, match="timeout"):
            AsyncClient(bootstrap, timeout=-1)
        with pytest.raises(ConfigError, match="client_id is one"):
            AsyncClient(bootstrap, clientid="x")  # type: ignore[call-arg]
        async with AsyncClient(
            {"bootstrap.servers": bootstrap, "client.id": "me"}, exclude={"Metadata": "9+"}
        ) as client:
            await client.metadata()
            assert client.negotiated() == {"Metadata": 8}

    asyncio.run(main())


def test_closing_again_closes_nothing_more_and_the_client_connects_anew(bootstrap: str, run: Main) -> None:
    async def main() -> None:
        client = AsyncClient(bootstrap)
        await client.close()
        await client.metadata()
        await client.close()
        await client.close()
        assert not client._core.network.is_connected
        assert (await client.metadata()).brokers
        await client.close()

    run(main)


@pytest.mark.parametrize("api", ["ListOffsets", "Metadata"])
def test_calls_that_a_client_is_closed_under_end_and_open_no_connection_anew(api: str, run: Main) -> None:
    async def main() -> None:
        with FakeCluster() as cluster:
            cluster.topic("t")
            async with AsyncClient(cluster.bootstrap) as client:
                await client.metadata("t")
                cluster.script(api, Silence())
                if api == "Metadata":
                    call: asyncio.Future[Any] = asyncio.ensure_future(client.metadata())
                else:
                    call = asyncio.ensure_future(client.list_offsets({("t", 0): "latest"}))
                await asyncio.sleep(0.1)
            with pytest.raises(TagwireError, match="closed"):
                async with asyncio.timeout(5):
                    await call
            assert not client._core.network.is_connected

    run(main)


def test_a_client_that_nobody_closed_is_told_of(bootstrap: str, run: Main) -> None:
    async def main() -> None:
        client = AsyncClient(bootstrap)
        await client.metadata()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del client
            gc.collect()
        assert [str(each.message) for each in caught if each.category is ResourceWarning] == [
            f"an AsyncClient of {bootstrap} was never closed: write `async with AsyncClient(...) as ...:`, or await "
            "its close() when it is done"
        ]
        await asyncio.sleep(0)

    run(main)


@pytest.mark.parametrize(("blocking", "tasks"), [(Client, AsyncClient), (Admin, AsyncAdmin)])
def test_every_call_of_threads_is_one_of_tasks_and_is_documented(blocking: type, tasks: type) -> None:
    def public(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert public(blocking) - {"network"} <= public(tasks)
    for name in public(tasks):
        assert inspect.getdoc(getattr(tasks, name)), name


def test_the_loop_does_not_take_the_generators_of_the_core_for_its_own(bootstrap: str) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with AsyncAdmin(bootstrap) as admin:
            call = asyncio.create_task(admin.describe_configs([("topic", "t")]))
            while not call.done():
                assert not loop._asyncgens  # type: ignore[attr-defined]
                await asyncio.sleep(0)
            assert call.result()

    asyncio.run(main())
