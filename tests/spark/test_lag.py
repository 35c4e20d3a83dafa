"""What the job `lag` reads of a cluster's own topic, without a session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tagwire.broker import Broker
from tagwire.client import Admin, Client, NewTopic, Producer
from tagwire.records.internal_topics import OFFSETS
from tagwire.spark.jobs.lag import committed_in


@pytest.fixture
def client() -> Iterator[Client]:
    with Broker(fsync="never") as broker:
        properties = {"bootstrap.servers": broker.bootstrap, "isolation.level": "read_committed"}
        with Client.from_properties(properties) as client:
            Admin(client).create_topics([NewTopic("t", num_partitions=3)])
            yield client


@contextmanager
def transaction(client: Client, offsets: dict[tuple[str, int], int]) -> Iterator[Producer]:
    with Producer(client, transactional_id="loader") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_offsets(offsets, "g")
        yield producer


def committed(client: Client) -> dict[tuple[str, int], int]:
    """{(group, partition): offset}, from all of the cluster's own topic."""
    rows = [row for index in client.topic(OFFSETS).partitions for row in committed_in(client, index).to_pylist()]
    return {(row["group"], row["partition"]): row["offset"] for row in rows}


def test_an_open_transaction_hides_no_offset_that_is_committed_behind_it(client: Client) -> None:
    admin = Admin(client)
    with transaction(client, {("t", 0): 7, ("t", 1): 7}) as producer:
        admin.alter_group_offsets("g", {("t", 0): 1, ("t", 2): 5})
        assert committed(client) == {("g", 0): 1, ("g", 2): 5}
        producer.commit_transaction()
    assert committed(client) == {("g", 0): 1, ("g", 1): 7, ("g", 2): 5}


def test_offsets_of_an_aborted_transaction_are_none(client: Client) -> None:
    Admin(client).alter_group_offsets("g", {("t", 0): 1})
    with transaction(client, {("t", 0): 7, ("t", 1): 7}) as producer:
        producer.abort_transaction()
    assert committed(client) == {("g", 0): 1}


def test_an_offset_that_was_deleted_is_none(client: Client) -> None:
    admin = Admin(client)
    admin.alter_group_offsets("g", {("t", 0): 1, ("t", 1): 2})
    admin.delete_group_offsets("g", [("t", 0)])
    assert committed(client) == {("g", 1): 2}
