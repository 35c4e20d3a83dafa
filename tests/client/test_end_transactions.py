"""Several transactions of other processes are ended beside each other, and none depends on another."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from tagwire.broker import Broker, Cluster, Intercepted, hang_up
from tagwire.client import Admin, Client, Producer
from tagwire.client.producing import OpenTransaction, ProducerIdentity, end_transactions
from tagwire.errors import ConfigError, Error, KafkaError

from ..limits import wait_until

SECONDS = 60.0


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(fsync="never") as one:
        yield one


def left_open(bootstrap: str, names: Sequence[str]) -> list[OpenTransaction]:
    """A transaction of each transactional id, with a record, that nobody ends."""
    begun = []
    for name in names:
        producer = Producer(bootstrap, transactional_id=name, acks="all")
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", name.encode()).result(SECONDS)
        identity = producer.identity
        producer.close(abort=False)
        begun.append(OpenTransaction(name, identity.producer_id, identity.epoch, identity.transaction_version))
    return begun


def states(bootstrap: str, names: Sequence[str]) -> dict[str, str]:
    with Admin(bootstrap) as admin:
        return {name: one.state for name, one in admin.describe_transactions(list(names)).items()}


def test_one_request_finds_all_coordinators_and_each_end_is_requested_once(broker: Broker) -> None:
    names = [f"x{number}" for number in range(100)]
    begun = left_open(broker.bootstrap, names)
    with Client(broker.bootstrap) as client:
        client.metadata([])
        before = len(broker.requests.select())
        ended = end_transactions(client, begun, commit=True, timeout=SECONDS)
        requests = Counter(request.api for request in broker.requests.select()[before:])
    assert ended == [
        ProducerIdentity(one.producer_id, one.producer_epoch + 1, one.transaction_version) for one in begun
    ]
    assert requests == {"FindCoordinator": 1, "EndTxn": 100}
    wait_until(lambda: set(states(broker.bootstrap, names).values()) == {"CompleteCommit"})


def test_nobody_waits_for_the_end_of_another() -> None:
    """Every coordinator holds its response back until each of them has a request."""
    with Cluster(3, fsync="never") as cluster:
        names = [f"x{number}" for number in range(12)]
        nodes = {cluster.coordinator(transactional_id=name) for name in names}
        assert nodes == {1, 2, 3}
        begun = left_open(cluster.bootstrap, names)
        asked: set[int] = set()

        def held(node: int):  # type: ignore[no-untyped-def]
            async def act(call: Intercepted) -> object:
                asked.add(node)
                async with asyncio.timeout(SECONDS):
                    while asked != nodes:
                        await asyncio.sleep(0.01)
                return await call.proceed()

            return act

        for node in nodes:
            cluster.nodes[node].intercept("EndTxn", held(node))
        with Client(cluster.bootstrap) as client:
            ended = end_transactions(client, begun, commit=True, timeout=SECONDS)
        assert [one for one in ended if isinstance(one, Exception)] == []
        wait_until(lambda: set(states(cluster.bootstrap, names).values()) == {"CompleteCommit"})


@pytest.mark.parametrize("commit", [True, False])
def test_one_that_ended_otherwise_is_told_and_hides_no_other(broker: Broker, commit: bool) -> None:
    begun = left_open(broker.bootstrap, ["a", "b", "c"])
    with Admin(broker.bootstrap) as admin:
        admin.fence_producers(["b"])
    with Client(broker.bootstrap) as client:
        first, second, third = end_transactions(client, begun, commit=commit, timeout=SECONDS)
    assert isinstance(first, ProducerIdentity)
    assert isinstance(third, ProducerIdentity)
    assert isinstance(second, KafkaError)
    assert second.error in (Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH)
    ended = "CompleteCommit" if commit else "CompleteAbort"
    wait_until(lambda: states(broker.bootstrap, ["a", "c"]) == {"a": ended, "c": ended})


@pytest.mark.parametrize("handled", [True, False])
def test_a_connection_that_is_lost_among_them_costs_none_of_them(broker: Broker, handled: bool) -> None:
    names = ["a", "b", "c", "d"]
    begun = left_open(broker.bootstrap, names)
    with broker.intercept("EndTxn", hang_up(handled=handled), times=2), Client(broker.bootstrap) as client:
        ended = end_transactions(client, begun, commit=True, timeout=SECONDS)
    assert [one for one in ended if isinstance(one, Exception)] == []
    wait_until(lambda: set(states(broker.bootstrap, names).values()) == {"CompleteCommit"})


def test_coordinators_that_cannot_be_found_together_are_found_one_by_one(broker: Broker) -> None:
    begun = left_open(broker.bootstrap, ["a", "b"])
    refused = []

    async def refuses_several(call: Intercepted) -> object:
        response = await call.proceed()
        if len(call.request.coordinator_keys) > 1:
            refused.append(call)
            response.coordinators[0].error_code = Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return response

    with broker.intercept("FindCoordinator", refuses_several), Client(broker.bootstrap) as client:
        ended = end_transactions(client, begun, commit=True, timeout=SECONDS)
    assert len(refused) == 1
    assert [one for one in ended if isinstance(one, Exception)] == []


def test_none_is_ended_where_one_has_a_version_that_does_not_exist(broker: Broker) -> None:
    begun = left_open(broker.bootstrap, ["a"])
    with Client(broker.bootstrap) as client:
        with pytest.raises(ConfigError, match="transaction_version=3"):
            end_transactions(client, [*begun, OpenTransaction("b", 1, 1, 3)], commit=True, timeout=SECONDS)
        assert end_transactions(client, [], commit=True, timeout=SECONDS) == []
    assert states(broker.bootstrap, ["a"]) == {"a": "Ongoing"}
