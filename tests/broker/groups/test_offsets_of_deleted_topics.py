"""Offsets of a topic that is deleted, and of the next one of its name, while others are being stored."""

from __future__ import annotations

import asyncio

import pytest

from tagwire import messages
from tagwire.broker.groups.offsets import OffsetAndMetadata
from tagwire.partitions import TopicPartition

from ...limits import wait_until
from ..asking import commit, committed
from .test_expiry_of_groups import GatedLog, groups_of, told

GONE, LEFT = TopicPartition("gone", 0), TopicPartition("left", 0)


def at(offset: int) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset, -1, "", 0)


@pytest.mark.parametrize("in_transaction", [False, True])
def test_an_offset_that_is_being_stored_when_its_topic_is_deleted_is_forgotten(in_transaction: bool) -> None:
    async def run() -> None:
        log = GatedLog()
        groups = groups_of(log)
        log.gate = asyncio.Event()
        offsets = {GONE: at(7), LEFT: at(8)}
        storing = groups.commit_in_transaction("g", 1, 0, offsets) if in_transaction else groups.commit("g", offsets)
        commit = asyncio.create_task(storing)
        await asyncio.sleep(0.01)
        forgetting = asyncio.create_task(groups.forget_topics({"gone"}))
        await asyncio.sleep(0.01)
        log.gate.set()
        await asyncio.gather(commit, forgetting)
        groups.end_transaction(1, committed=True)
        assert told(groups) == {LEFT: 8}
        if not in_transaction:
            assert told(groups_of(log)) == {LEFT: 8}

    asyncio.run(run())


def test_what_is_committed_of_the_next_topic_of_the_name_is_kept() -> None:
    async def run() -> None:
        log = GatedLog()
        groups = groups_of(log)
        for name in ("a", "b"):
            await groups.commit(name, {GONE: at(7), LEFT: at(8)})
        log.gate = asyncio.Event()
        forgetting = asyncio.create_task(groups.forget_topics({"gone"}))
        await asyncio.sleep(0.01)
        commit = asyncio.create_task(groups.commit("b", {GONE: at(1)}))  # another client has created it again
        await asyncio.sleep(0.01)
        log.gate.set()
        await asyncio.gather(commit, forgetting)
        for found in (groups, groups_of(log)):
            assert told(found, "a") == {LEFT: 8}
            assert told(found, "b") == {GONE: 1, LEFT: 8}

    asyncio.run(run())


def test_offsets_of_many_groups_are_forgotten_in_few_batches() -> None:
    async def run() -> None:
        log = GatedLog()
        groups = groups_of(log, most=3000)
        names = [f"g{number}" for number in range(2500)]
        await asyncio.gather(*(groups.commit(name, {GONE: at(7), LEFT: at(8)}) for name in names))
        before = len(log.batches)
        await groups.forget_topics({"gone"})
        assert len(log.batches) - before == 3
        for found in (groups, groups_of(log, most=3000)):
            assert all(told(found, name) == {LEFT: 8} for name in names)

    asyncio.run(run())


def test_a_client_that_goes_away_while_its_topic_is_deleted_leaves_no_offset_to_the_next_of_the_name(
    wire, broker, connect, hold_renames
):
    wire.create("t")
    commit(wire, "g", 7)
    begun, go_on = hold_renames(broker)
    leaving = connect(broker.bootstrap)
    leaving.send(messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=5000), 5)
    assert begun.wait(30)
    leaving.reset()
    wait_until(lambda: broker.stats()["connections"]["open"] == 1)
    go_on.set()
    wait_until(lambda: wire.create("t").error_code == 0)
    wait_until(lambda: committed(wire, "g") == -1)
