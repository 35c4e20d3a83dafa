"""The broker's own topics after they were compacted: what it knew is known, and nothing that was deleted comes back."""

from __future__ import annotations

import errno

import pytest

from tagwire import messages
from tagwire.broker import Broker
from tagwire.errors import Error, StorageError
from tagwire.records import Record, write
from tagwire.records.internal_topics import OFFSETS, TRANSACTIONS

from .asking import begin, commit, commit_in_transaction, committed, end
from .compacting import compact_all


def size_of(path, topic):
    return sum(file.stat().st_size for file in (path / f"{topic}-0").glob("*.log"))


@pytest.mark.parametrize("clean", [True, False])
def test_offsets_are_what_was_committed_last(tmp_path, connect, clean):
    with Broker(tmp_path) as broker:
        wire = connect(broker.bootstrap)
        wire.create("t", 2)
        for number in range(200):
            commit(wire, f"g{number % 4}", number, partition=number % 8 // 4)
        gone = wire.ask(messages.DeleteGroupsRequest(groups_names=["g3"]), 2)
        assert gone.results[0].error_code == 0
    before = size_of(tmp_path, OFFSETS)
    compact_all(tmp_path, clean=clean)
    assert size_of(tmp_path, OFFSETS) < before / 10
    for _ in range(2):
        with Broker(tmp_path) as broker:
            wire = connect(broker.bootstrap)
            found = {(g, p): committed(wire, f"g{g}", p) for g in range(4) for p in range(2)}
            assert found == {(g, p): -1 if g == 3 else 192 + g + 4 * p for g in range(4) for p in range(2)}
            groups = wire.ask(messages.ListGroupsRequest(), 4).groups
            assert sorted(group.group_id for group in groups) == ["g0", "g1", "g2"]


@pytest.mark.parametrize("clean", [True, False])
def test_offsets_of_transactions_count_when_they_were_committed(tmp_path, connect, clean):
    with Broker(tmp_path) as broker:
        wire = connect(broker.bootstrap)
        wire.create("t", 1)
        for number in range(40):
            who = begin(wire, "tx")
            commit_in_transaction(wire, "tx", who, "g", number)
            end(wire, "tx", who, commit=number % 3 != 0)
        still_open = begin(wire, "other")
        commit_in_transaction(wire, "other", still_open, "h", 7)
    before = {name: size_of(tmp_path, name) for name in (OFFSETS, TRANSACTIONS)}
    compact_all(tmp_path, clean=clean)
    assert size_of(tmp_path, TRANSACTIONS) < before[TRANSACTIONS] / 10
    assert size_of(tmp_path, OFFSETS) < before[OFFSETS]
    with Broker(tmp_path) as broker:
        wire = connect(broker.bootstrap)
        assert committed(wire, "g") == 38
        assert committed(wire, "h") == -1
        states = wire.ask(messages.DescribeTransactionsRequest(transactional_ids=["tx", "other"]), 0)
        found = {state.transactional_id: state.transaction_state for state in states.transaction_states}
        assert found == {"tx": "CompleteAbort", "other": "Ongoing"}
        end(wire, "other", still_open, commit=True)
        assert committed(wire, "h") == 7
        assert begin(wire, "tx").producer_id == who.producer_id


def test_clients_may_not_write_to_them_and_topics_of_clients_are_not_compacted_unasked(tmp_path, connect, make):
    with Broker(tmp_path) as broker:
        wire = connect(broker.bootstrap)
        wire.create("t", 1)
        commit(wire, "g", 1)
        assert wire.produce(OFFSETS, make.records(b"v")).error_code == Error.INVALID_TOPIC_EXCEPTION
        for _ in range(3):
            wire.produce("t", make.records(b"same"))
    before = size_of(tmp_path, "t")
    compact_all(tmp_path, clean=True)
    assert size_of(tmp_path, "t") == before


def try_to_commit(wire, group, offset):
    request = messages.OffsetCommitRequest
    asked = request.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topics = [request.OffsetCommitRequestTopic(name="t", partitions=[asked])]
    message = request(group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=topics)
    return Error.of(wire.ask(message, 8).topics[0].partitions[0].error_code)


def test_a_full_disk_refuses_offsets_and_takes_them_again_when_there_is_room(tmp_path, connect):
    with Broker(tmp_path) as broker:
        wire = connect(broker.bootstrap)
        wire.create("t", 1)
        commit(wire, "g", 1)
        broker.disk.fail("write", errno.ENOSPC)
        assert try_to_commit(wire, "g", 2) is Error.COORDINATOR_NOT_AVAILABLE
        assert committed(wire, "g") == 1
        broker.disk.mend()
        commit(wire, "g", 3)
    with Broker(tmp_path) as broker:
        assert committed(connect(broker.bootstrap), "g") == 3


def test_an_fsync_that_fails_ends_the_use_of_a_coordinator_log_and_nothing_refused_comes_back(tmp_path, connect):
    with Broker(tmp_path) as broker:
        wire = connect(broker.bootstrap)
        wire.create("t", 1)
        commit(wire, "g", 1)
        who = begin(wire, "tx")
        commit_in_transaction(wire, "tx", who, "g", 7)
        broker.disk.fail("sync", times=1)
        assert try_to_commit(wire, "g", 2) is Error.COORDINATOR_NOT_AVAILABLE
        assert try_to_commit(wire, "g", 3) is Error.COORDINATOR_NOT_AVAILABLE
        assert committed(wire, "g") == 1
    with Broker(tmp_path) as broker:
        wire = connect(broker.bootstrap)
        assert committed(wire, "g") == 1
        end(wire, "tx", who, commit=True)
        assert committed(wire, "g") == 7


def test_a_coordinator_log_that_cannot_be_read_stops_the_start_by_name(tmp_path, connect):
    with Broker(tmp_path) as broker:
        wire = connect(broker.bootstrap)
        wire.create("t", 1)
        for number in range(5):
            commit(wire, "g", number)
    compact_all(tmp_path, clean=True)
    first = min((tmp_path / f"{OFFSETS}-0").glob("*.log"))
    data = bytearray(first.read_bytes())
    data[-1] ^= 1
    first.write_bytes(data)
    with pytest.raises(StorageError, match=OFFSETS):
        Broker(tmp_path).start()


def test_records_of_group_types_that_are_not_kept_here_are_passed_over_when_the_broker_starts(tmp_path, connect):
    with Broker(tmp_path) as broker:
        wire = connect(broker.bootstrap)
        wire.create("t", 1)
        commit(wire, "g", 7)
    key, value = messages.ConsumerGroupMetadataKey(group_id="new"), messages.ConsumerGroupMetadataValue(epoch=1)
    record = Record(b"\0" + bytes([key.api_key]) + key.encode(0), b"\0\0" + value.encode(0))
    (segment,) = (tmp_path / f"{OFFSETS}-0").glob("*.log")
    with segment.open("ab") as file:
        file.write(write([record], base_offset=1))
    (tmp_path / ".kafka_cleanshutdown").unlink()
    with Broker(tmp_path) as broker:
        wire = connect(broker.bootstrap)
        assert committed(wire, "g") == 7
        assert wire.offset_at(OFFSETS, -1, 0).offset == 2
