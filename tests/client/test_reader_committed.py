"""Reading committed records: what was aborted stays unseen, what is open is waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tagwire import records
from tagwire.client import EARLIEST, LATEST, Client, Lag, Reader
from tagwire.errors import ConfigError, CorruptRecordError, RequestTimeoutError

from .fake_broker import FakeCluster, FakePartition
from .logs import batch_of

COMMITTED = "read_committed"


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster() as one:
        yield one


def transactional(first: int, count: int, producer: int) -> bytes:
    return batch_of(first, count, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)


def marker(offset: int, producer: int, *, committed: bool) -> bytes:
    return records.write_end_transaction(
        commit=committed, coordinator_epoch=0, producer_id=producer, producer_epoch=0, timestamp=1, base_offset=offset
    )


def fill_transactions(log: FakePartition) -> list[int]:
    """Two transactions that lie in each other, plain records between them. Returns the offsets that are committed."""
    log.put(batch_of(0, 5))
    log.put(transactional(5, 5, producer=1))
    log.put(transactional(10, 5, producer=2))
    log.put(transactional(15, 5, producer=1))
    log.put(marker(20, 1, committed=False))
    log.put(transactional(21, 4, producer=2))
    log.put(marker(25, 2, committed=True))
    log.put(transactional(26, 4, producer=1))
    log.put(marker(30, 1, committed=True))
    log.aborted = [(1, 5, 20)]
    return [*range(5), *range(10, 15), *range(21, 25), *range(26, 30)]


def as_batches(reader: Reader) -> Iterator[int]:
    return (offset for batch in reader for offset in batch.column("offset").to_pylist())


def as_records(reader: Reader) -> Iterator[int]:
    return (record.offset for record in reader.records())


@pytest.mark.parametrize("read", [as_batches, as_records])
def test_records_of_aborted_transactions_are_left_out(
    cluster: FakeCluster, read: Callable[[Reader], Iterator[int]]
) -> None:
    committed = fill_transactions(cluster.topic("t")[0])
    with Reader(cluster.bootstrap, {("t", 0): EARLIEST}, stop_at_end=True, isolation=COMMITTED) as reader:
        assert list(read(reader)) == committed
        assert reader.position(("t", 0)) == 31
    assert {message.isolation_level for message in cluster.requests("Fetch")} == {1}


@pytest.mark.parametrize("read", [as_batches, as_records])
def test_it_does_not_matter_how_the_log_is_cut_into_answers(
    cluster: FakeCluster, read: Callable[[Reader], Iterator[int]]
) -> None:
    committed = fill_transactions(cluster.topic("t")[0])
    with Reader(
        cluster.bootstrap, {("t", 0): 0}, stop_at_end=True, isolation=COMMITTED, max_partition_bytes=1, batch_rows=3
    ) as reader:
        assert list(read(reader)) == committed
    assert len(cluster.requests("Fetch")) == 9


@pytest.mark.parametrize("read", [as_batches, as_records])
def test_without_isolation_every_record_is_given(cluster: FakeCluster, read: Callable[[Reader], Iterator[int]]) -> None:
    fill_transactions(cluster.topic("t")[0])
    with Reader(cluster.bootstrap, {("t", 0): EARLIEST}, stop_at_end=True) as reader:
        assert list(read(reader)) == [*range(20), *range(21, 25), *range(26, 30)]


@pytest.mark.parametrize("read", [as_batches, as_records])
def test_the_end_of_a_log_is_where_its_oldest_open_transaction_begins(
    cluster: FakeCluster, read: Callable[[Reader], Iterator[int]]
) -> None:
    log = cluster.topic("t")[0]
    log.put(batch_of(0, 5))
    log.put(transactional(5, 5, producer=1))
    log.put(batch_of(10, 5))
    log.stable = 5
    with Reader(cluster.bootstrap, {("t", 0): 0}, stop_at_end=True, isolation=COMMITTED) as reader:
        assert list(read(reader)) == list(range(5))
        assert reader.lag() == {("t", 0): Lag(end=5, position=5, lag=0)}


def test_what_a_broker_sends_of_open_transactions_is_not_given(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    log.put(batch_of(0, 5))
    log.put(transactional(5, 5, producer=1))
    log.stable = 5
    with Client(cluster.bootstrap, timeout=0.4) as client:
        reader = Reader(client, {("t", 0): 0}, end_offsets={("t", 0): 10}, isolation=COMMITTED, max_wait_ms=1)
        assert next(reader).column("offset").to_pylist() == list(range(5))
        with pytest.raises(
            RequestTimeoutError, match=r"no data at offset 5 .* the read ends at 10, the partition at 5"
        ):
            next(reader)
        assert client.list_offsets({("t", 0): LATEST}) == {("t", 0): 10}
        assert client.list_offsets({("t", 0): LATEST}, isolation=COMMITTED) == {("t", 0): 5}


def test_a_transaction_that_ends_while_it_is_waited_for_is_given(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    log.put(transactional(0, 5, producer=1))
    log.stable = 0
    with Reader(
        cluster.bootstrap, {("t", 0): 0}, end_offsets={("t", 0): 6}, isolation=COMMITTED, max_wait_ms=1
    ) as reader:
        assert reader.lag() == {("t", 0): Lag(end=0, position=0, lag=0)}
        log.put(marker(5, 1, committed=True))
        log.stable = None
        assert list(as_batches(reader)) == list(range(5))


@pytest.mark.parametrize("read", [as_batches, as_records])
def test_a_broken_batch_among_aborted_ones_is_named_after_the_committed_records_before_it(
    cluster: FakeCluster, read: Callable[[Reader], Iterator[int]]
) -> None:
    log = cluster.topic("t")[0]
    log.put(transactional(0, 5, producer=1))
    log.put(batch_of(5, 5))
    log.put(transactional(10, 5, producer=1))
    broken = batch_of(15, 5)
    log.put(broken[:-1] + bytes([broken[-1] ^ 1]))
    log.aborted = [(1, 0, 99)]
    seen: list[int] = []
    with Reader(cluster.bootstrap, {("t", 0): 0}, isolation=COMMITTED) as reader:
        found = read(reader)
        while len(seen) < 5:
            seen.append(next(found))
        with pytest.raises(CorruptRecordError, match="t-0@15"):
            next(found)
        assert reader.position(("t", 0)) == 15
    assert seen == list(range(5, 10))


def test_the_isolation_of_the_client_is_that_of_its_readers_and_ends(cluster: FakeCluster) -> None:
    log = cluster.topic("t")[0]
    log.put(batch_of(0, 5))
    log.stable = 2
    properties = {"bootstrap.servers": cluster.bootstrap, "isolation.level": COMMITTED}
    with Client.from_properties(properties) as client:
        assert client.list_offsets({("t", 0): LATEST}) == {("t", 0): 2}
        assert Reader(client, {("t", 0): LATEST}).position(("t", 0)) == 2


def test_another_isolation_is_refused() -> None:
    with pytest.raises(ConfigError, match="isolation=serializable: allowed is read_uncommitted or read_committed"):
        Reader("127.0.0.1:1", {}, isolation="serializable")
