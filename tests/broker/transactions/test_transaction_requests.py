"""Producer ids and transactions over a socket: every version, fencing, timeouts, what readers see, and restarts."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tagwire import messages
from tagwire.broker import Broker, scheduler
from tagwire.broker.network import socket_server
from tagwire.broker.producer_ids import FILE, ProducerIds
from tagwire.broker.storage.files import Files
from tagwire.errors import Error
from tagwire.records import Record, read, write
from tagwire.records.internal_topics import OFFSETS, TRANSACTIONS, decode_record

from ...limits import wait_until
from ..asking import committed_values


def initialize(wire, name="tx", version=4, timeout=60_000, producer_id=-1, epoch=-1):
    request = messages.InitProducerIdRequest(
        transactional_id=name, transaction_timeout_ms=timeout, producer_id=producer_id, producer_epoch=epoch
    )
    return wire.ask(request, version)


def add(wire, who, *partitions, topic="t", version=3, name="tx"):
    request = messages.AddPartitionsToTxnRequest
    message = request(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=who.producer_id,
        v3_and_below_producer_epoch=who.producer_epoch,
        v3_and_below_topics=[request.AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
    )
    results = wire.ask(message, version).results_by_topic_v3_and_below[0].results_by_partition
    codes = [Error.of(result.partition_error_code) for result in results]
    return codes[0] if len(codes) == 1 else codes


def send(wire, who, sequence, *values, partition=0, name="tx", acks=-1, version=9):
    """Produce a transactional batch; its error."""
    rows = [Record(None, value, timestamp=1000) for value in values]
    data = write(
        rows,
        producer_id=who.producer_id,
        producer_epoch=who.producer_epoch,
        base_sequence=sequence,
        transactional=True,
    )
    request = messages.ProduceRequest
    topic = request.TopicProduceData(
        name="t", partition_data=[request.PartitionProduceData(index=partition, records=data)]
    )
    message = request(transactional_id=name, acks=acks, timeout_ms=1000, topic_data=[topic])
    return Error.of(wire.ask(message, version).responses[0].partition_responses[0].error_code)


def end(wire, who, commit=True, version=4, name="tx"):
    request = messages.EndTxnRequest(
        transactional_id=name,
        producer_id=who.producer_id,
        producer_epoch=who.producer_epoch,
        committed=commit,
    )
    return Error.of(wire.ask(request, version).error_code)


def seen(wire, partition=0):
    """What a reader of committed records sees, dropping what it is told was aborted."""
    answer = wire.fetch("t", 0, partition=partition, isolation_level=1)
    aborted = {a.producer_id: a.first_offset for a in answer.aborted_transactions}
    return [
        record.value
        for batch in read(answer.records)
        for record in batch.records()
        if not batch.is_control and batch.base_offset < aborted.get(batch.producer_id, 2**62)
    ]


def describe(wire, name="tx"):
    return wire.ask(messages.DescribeTransactionsRequest(transactional_ids=[name]), 0).transaction_states[0]


@pytest.fixture
def topic(wire):
    wire.create("t", 2)


@pytest.mark.parametrize("version", range(5))
def test_every_version_gives_out_ids_that_nobody_had(wire, version):
    answers = [initialize(wire, None, version) for _ in range(3)]
    assert len({answer.producer_id for answer in answers}) == 3
    assert {(answer.error_code, answer.producer_epoch) for answer in answers} == {(0, 0)}


def test_ids_are_never_given_out_again(tmp_path, connect):
    given = set()
    for _ in range(3):
        with Broker(tmp_path / "data") as broker:
            wire = connect(broker.bootstrap)
            given |= {initialize(wire, None).producer_id, initialize(wire, f"tx-{len(given)}").producer_id}
    assert len(given) == 6


def test_a_file_of_ids_that_is_broken_is_named(tmp_path):
    with Broker(tmp_path / "data"):
        pass
    (tmp_path / "data" / FILE).write_text("many")
    with pytest.raises(Exception, match=FILE):
        Broker(tmp_path / "data").start()


@pytest.mark.parametrize("version", range(5))
def test_a_transactional_id_keeps_its_producer_and_takes_a_higher_epoch(wire, version):
    first, second = initialize(wire, version=version), initialize(wire, version=version)
    assert (first.producer_epoch, second.producer_epoch) == (0, 1)
    assert first.producer_id == second.producer_id
    assert initialize(wire, "other").producer_id != first.producer_id


@pytest.mark.parametrize("timeout", [0, -1, 900_001])
def test_a_transaction_timeout_has_bounds(wire, timeout):
    assert initialize(wire, timeout=timeout).error_code == Error.INVALID_TRANSACTION_TIMEOUT


def test_a_transactional_id_cannot_be_empty(wire):
    assert initialize(wire, "").error_code == Error.INVALID_REQUEST


def test_committed_records_are_seen_when_the_transaction_has_ended_and_not_before(wire, topic):
    who = initialize(wire)
    assert add(wire, who, 0, 1) == [Error.NONE, Error.NONE]
    assert send(wire, who, 0, b"a", b"b") is Error.NONE
    assert send(wire, who, 0, b"c", partition=1) is Error.NONE
    assert (seen(wire), seen(wire, 1)) == ([], [])
    answer = wire.fetch("t", 0, isolation_level=1)
    assert (answer.last_stable_offset, answer.high_watermark) == (0, 2)
    assert wire.fetch("t", 0).records
    assert end(wire, who) is Error.NONE
    assert (seen(wire), seen(wire, 1)) == ([b"a", b"b"], [b"c"])


def test_aborted_records_are_never_seen(wire, topic):
    who = initialize(wire)
    add(wire, who, 0)
    send(wire, who, 0, b"gone")
    assert end(wire, who, commit=False) is Error.NONE
    add(wire, who, 0)
    send(wire, who, 1, b"kept")
    answer = wire.fetch("t", 0, isolation_level=1)
    assert [(a.producer_id, a.first_offset) for a in answer.aborted_transactions] == [(who.producer_id, 0)]
    assert wire.fetch("t", 0).aborted_transactions is None


@pytest.mark.parametrize("version", range(4))
def test_every_version_adds_partitions_and_ends(wire, topic, version):
    who = initialize(wire)
    assert add(wire, who, 0, version=version) is Error.NONE
    send(wire, who, 0, b"a")
    assert end(wire, who, version=version) is Error.NONE
    assert end(wire, who, version=version) is Error.NONE
    assert end(wire, who, commit=False, version=version) is Error.INVALID_TXN_STATE
    assert seen(wire) == [b"a"]


def test_partitions_are_added_all_or_none(wire, topic):
    who = initialize(wire)
    assert add(wire, who, 0, 9) == [Error.OPERATION_NOT_ATTEMPTED, Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert describe(wire).transaction_state == "Empty"


@pytest.mark.parametrize("internal", [OFFSETS, TRANSACTIONS])
def test_topics_of_the_brokers_own_are_not_added_to_a_transaction(wire, topic, internal):
    who = initialize(wire)
    assert add(wire, who, 0, 9, topic=internal) == [Error.TOPIC_AUTHORIZATION_FAILED] * 2
    assert describe(wire).transaction_state == "Empty"
    assert end(wire, who) is Error.INVALID_TXN_STATE


def test_a_broker_starts_that_was_told_to_end_a_transaction_where_it_keeps_its_own(tmp_path, connect):
    with Broker(tmp_path / "data") as broker:
        who = initialize(connect(broker.bootstrap))
        assert mark(connect(broker.bootstrap), who, 0, topic=TRANSACTIONS) is Error.NONE
    with Broker(tmp_path / "data") as broker:
        again = initialize(connect(broker.bootstrap))
    assert (again.producer_id, again.producer_epoch) == (who.producer_id, who.producer_epoch + 1)


def test_a_transactional_id_that_is_empty_is_no_id_in_any_request(wire, topic):
    who = initialize(wire)
    assert add(wire, who, 0, name="") is Error.INVALID_REQUEST
    nameless = {"transactional_id": "", "producer_id": who.producer_id, "producer_epoch": who.producer_epoch}
    for request in (
        messages.AddOffsetsToTxnRequest(group_id="g", **nameless),
        messages.EndTxnRequest(committed=True, **nameless),
    ):
        assert wire.ask(request, 3).error_code == Error.INVALID_REQUEST


def test_records_outside_an_open_transaction_are_refused(wire, topic):
    who = initialize(wire)
    assert send(wire, who, 0, b"a") is Error.INVALID_TXN_STATE
    add(wire, who, 0)
    assert send(wire, who, 0, b"a", partition=1) is Error.INVALID_TXN_STATE
    assert send(wire, who, 0, b"a", name="other") is Error.INVALID_PRODUCER_ID_MAPPING
    assert send(wire, who, 0, b"a", name=None) is Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert seen(wire) == []


def test_what_is_outside_an_open_transaction_is_told_to_be_abortable_to_who_knows_that(wire, topic):
    who = initialize(wire)
    told = [send(wire, who, 0, b"a", version=version) for version in (10, 11)]
    assert told == [Error.INVALID_TXN_STATE, Error.TRANSACTION_ABORTABLE]
    told = [commit_offset(wire, who, 1, version) for version in (3, 4)]
    assert told == [Error.INVALID_TXN_STATE, Error.TRANSACTION_ABORTABLE]
    assert send(wire, who, 0, b"a", name="other", version=11) is Error.INVALID_PRODUCER_ID_MAPPING


def test_an_offset_outside_an_open_transaction_is_refused_for_that_before_its_member_and_metadata(wire, topic):
    who = initialize(wire)
    assert commit_offset(wire, who, 1, generation=7) is Error.TRANSACTION_ABORTABLE
    assert commit_offset(wire, who, 1, metadata="m" * 5000) is Error.TRANSACTION_ABORTABLE
    assert commit_offset(wire, who, 1, group="") is Error.INVALID_GROUP_ID
    assert add_offsets(wire, who) is Error.NONE
    assert commit_offset(wire, who, 1, generation=7) is Error.ILLEGAL_GENERATION
    assert commit_offset(wire, who, 1, metadata="m" * 5000) is Error.OFFSET_METADATA_TOO_LARGE


def test_when_a_transaction_that_has_ended_began_is_told_until_the_next(wire, topic):
    who = initialize(wire)
    assert describe(wire).transaction_start_time_ms == -1
    add(wire, who, 0)
    began = describe(wire).transaction_start_time_ms
    assert began > 0
    assert end(wire, who) is Error.NONE
    assert describe(wire).transaction_start_time_ms == began
    initialize(wire)
    assert describe(wire).transaction_start_time_ms == -1


@pytest.mark.parametrize(("version", "error"), [(0, Error.INVALID_PRODUCER_EPOCH), (3, Error.PRODUCER_FENCED)])
def test_whoever_initializes_last_fences_the_others_and_aborts_what_they_left_open(wire, topic, version, error):
    old = initialize(wire)
    add(wire, old, 0)
    send(wire, old, 0, b"left open")
    new = initialize(wire)
    assert new.producer_epoch > old.producer_epoch
    assert send(wire, old, 1, b"late") is Error.INVALID_PRODUCER_EPOCH
    assert add(wire, old, 1, version=version) is error
    assert end(wire, old, version=version) is error
    add(wire, new, 0)
    assert send(wire, new, 0, b"new") is Error.NONE
    end(wire, new)
    answer = wire.fetch("t", 0, isolation_level=1)
    assert [a.first_offset for a in answer.aborted_transactions] == [0]
    assert answer.last_stable_offset == answer.high_watermark == 4


def test_a_producer_says_which_epoch_it_had_and_is_fenced_if_that_is_not_the_latest(wire):
    first = initialize(wire)
    second = initialize(wire, producer_id=first.producer_id, epoch=first.producer_epoch)
    assert (second.error_code, second.producer_epoch) == (0, 1)
    third = initialize(wire, producer_id=second.producer_id, epoch=second.producer_epoch)
    assert (third.error_code, third.producer_epoch) == (0, 2)
    late = initialize(wire, producer_id=first.producer_id, epoch=first.producer_epoch)
    assert late.error_code == Error.PRODUCER_FENCED
    late = initialize(wire, version=3, producer_id=first.producer_id, epoch=first.producer_epoch)
    assert late.error_code == Error.INVALID_PRODUCER_EPOCH


def test_a_producer_that_asks_again_for_a_new_epoch_gets_the_same_until_it_is_used(wire, topic):
    first = initialize(wire)
    given = [initialize(wire, producer_id=first.producer_id, epoch=first.producer_epoch) for _ in range(2)]
    assert [(one.error_code, one.producer_epoch) for one in given] == [(0, 1)] * 2
    add(wire, given[0], 0)
    late = initialize(wire, producer_id=first.producer_id, epoch=first.producer_epoch)
    assert late.error_code == Error.PRODUCER_FENCED
    assert end(wire, given[0]) is Error.NONE


def test_a_transaction_that_is_open_for_too_long_is_aborted_and_its_producer_fenced(wire, topic):
    who = initialize(wire, timeout=1000)  # enough to begin it on a machine that is busy
    add(wire, who, 0)
    send(wire, who, 0, b"slow")
    wait_until(lambda: describe(wire).transaction_state == "CompleteAbort")
    assert end(wire, who) is Error.PRODUCER_FENCED
    assert wire.fetch("t", 0, isolation_level=1).last_stable_offset == 2


def commit_offset(wire, who, offset, version=4, generation=-1, group="g", metadata="m"):
    request = messages.TxnOffsetCommitRequest
    asked = request.TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=metadata
    )
    message = request(
        transactional_id="tx",
        group_id=group,
        producer_id=who.producer_id,
        producer_epoch=who.producer_epoch,
        generation_id_or_member_epoch=generation,
        topics=[request.TxnOffsetCommitRequestTopic(name="t", partitions=[asked])],
    )
    return Error.of(wire.ask(message, version).topics[0].partitions[0].error_code)


def committed(wire, stable=False):
    request = messages.OffsetFetchRequest
    topics = [request.OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
    answer = wire.ask(request(group_id="g", topics=topics, require_stable=stable), 7).topics[0].partitions[0]
    return answer.committed_offset, Error.of(answer.error_code)


def add_offsets(wire, who, version=4):
    request = messages.AddOffsetsToTxnRequest(
        transactional_id="tx", producer_id=who.producer_id, producer_epoch=who.producer_epoch, group_id="g"
    )
    return Error.of(wire.ask(request, version).error_code)


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("commit", [True, False])
def test_offsets_of_a_group_count_when_the_transaction_commits(wire, topic, version, commit):
    who = initialize(wire)
    if version < 4:
        assert commit_offset(wire, who, 1, version) is Error.INVALID_TXN_STATE
    assert add_offsets(wire, who, version) is Error.NONE
    assert commit_offset(wire, who, 5, version) is Error.NONE
    assert committed(wire) == (-1, Error.NONE)
    assert committed(wire, stable=True) == (-1, Error.UNSTABLE_OFFSET_COMMIT)
    assert end(wire, who, commit) is Error.NONE
    assert committed(wire, stable=True) == (5 if commit else -1, Error.NONE)


def test_a_later_commit_of_the_group_outlives_the_end_of_the_transaction_and_a_restart(tmp_path, connect):
    kind = messages.OffsetCommitRequest
    part = kind.OffsetCommitRequestPartition(partition_index=0, committed_offset=9)
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        wire.create("t", 1)
        who = initialize(wire)
        add_offsets(wire, who)
        commit_offset(wire, who, 5)
        wire.ask(kind(group_id="g", topics=[kind.OffsetCommitRequestTopic(name="t", partitions=[part])]), 8)
        assert committed(wire, stable=True) == (-1, Error.UNSTABLE_OFFSET_COMMIT)
        assert end(wire, who) is Error.NONE
        assert committed(wire, stable=True) == (9, Error.NONE)
    with Broker(tmp_path / "data") as broker:
        assert committed(connect(broker.bootstrap), stable=True) == (9, Error.NONE)


def test_a_member_commits_within_a_transaction_in_its_generation(wire, topic):
    who = initialize(wire)
    add_offsets(wire, who)
    assert commit_offset(wire, who, 5, generation=3) is Error.ILLEGAL_GENERATION
    assert commit_offset(wire, who, 5, group="") is Error.INVALID_GROUP_ID


@pytest.mark.parametrize("commit", [True, False])
def test_an_open_transaction_outlives_a_restart_and_can_be_ended(tmp_path, connect, commit):
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        wire.create("t", 2)
        who = initialize(wire)
        add(wire, who, 0)
        add_offsets(wire, who)
        send(wire, who, 0, b"a")
        commit_offset(wire, who, 5)
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        assert describe(wire).transaction_state == "Ongoing"
        assert seen(wire) == []
        assert send(wire, who, 0, b"a") is Error.NONE
        assert send(wire, who, 1, b"b") is Error.NONE
        assert end(wire, who, commit) is Error.NONE
        assert seen(wire) == ([b"a", b"b"] if commit else [])
        assert committed(wire, stable=True) == (5 if commit else -1, Error.NONE)
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        assert seen(wire) == ([b"a", b"b"] if commit else [])
        assert committed(wire, stable=True) == (5 if commit else -1, Error.NONE)


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_whose_outcome_was_decided_is_brought_to_it_after_a_crash(
    tmp_path, connect, monkeypatch, commit, version
):
    from tagwire.broker.transactions.coordinator import Transactions

    async def never(*_, **__):
        await asyncio.Event().wait()

    monkeypatch.setattr(scheduler, "TRANSACTIONS_EVERY_S", 600.0)  # it would wait for the marker, too
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        wire.create("t", 2)
        who = initialize(wire)
        add(wire, who, 0, 1)
        send(wire, who, 0, b"a")
        send(wire, who, 0, b"b", partition=1)
        with monkeypatch.context() as patched:
            patched.setattr(Transactions, "mark", never)
            patched.setattr(Transactions, "close", lambda self: asyncio.sleep(0))
            patched.setattr(socket_server, "STOP_WITHIN_S", 0.1)
            wire.send(messages.EndTxnRequest(
                transactional_id="tx", producer_id=who.producer_id, producer_epoch=who.producer_epoch, committed=commit
            ), version)  # fmt: skip
            other = connect(broker.bootstrap)
            expected = "PrepareCommit" if commit else "PrepareAbort"
            while describe(other).transaction_state != expected:
                pass
            while not any(record.value.message.transaction_status in (2, 3) for record in stored(other)):
                pass
            broker.stop()
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        while describe(wire).transaction_state != expected.replace("Prepare", "Complete"):
            pass
        assert (seen(wire), seen(wire, 1)) == (([b"a"], [b"b"]) if commit else ([], []))
        assert wire.fetch("t", 0, isolation_level=1).last_stable_offset == 2


def stored(wire):
    batches = read(wire.fetch(TRANSACTIONS, 0).records)
    return [decode_record(TRANSACTIONS, r.key, r.value) for batch in batches for r in batch.records()]


def test_what_is_stored_is_in_kafkas_own_format(wire, topic):
    who = initialize(wire)
    add(wire, who, 1)
    end(wire, who)
    records = stored(wire)
    assert {record.error for record in records} == {None}
    assert [record.value.message.transaction_status for record in records] == [0, 1, 2, 4]
    assert records[1].value.message.transaction_partitions[0].partition_ids == [1]
    assert records[0].value.message.transaction_partitions is None


def test_transactions_are_listed_and_described(wire, topic):
    open_one = initialize(wire)
    add(wire, open_one, 1)
    initialize(wire, "idle")

    def listed(**filters):
        answer = wire.ask(messages.ListTransactionsRequest(**filters), 1)
        return [state.transactional_id for state in answer.transaction_states], answer.unknown_state_filters

    assert listed() == (["idle", "tx"], [])
    assert listed(state_filters=["Ongoing", "Odd"]) == (["tx"], ["Odd"])
    assert listed(state_filters=["PrepareEpochFence"]) == ([], [])  # Kafka's, which no transaction has here
    assert listed(producer_id_filters=[open_one.producer_id]) == (["tx"], [])
    assert listed(duration_filter=3_600_000) == (["idle"], [])  # it began at no time, which is long ago
    end(wire, open_one)
    assert describe(wire).transaction_start_time_ms > 0
    assert listed(duration_filter=3_600_000) == (["idle"], [])
    time.sleep(0.01)
    assert listed(duration_filter=0) == (["idle", "tx"], [])
    add(wire, open_one, 1)
    found = describe(wire)
    assert (found.transaction_state, found.producer_id, found.transaction_timeout_ms) == (
        "Ongoing", open_one.producer_id, 60_000,
    )  # fmt: skip
    assert [(topic.topic, topic.partitions) for topic in found.topics] == [("t", [1])]
    assert describe(wire, "missing").error_code == Error.TRANSACTIONAL_ID_NOT_FOUND


def test_partitions_tell_of_their_producers_and_a_hanging_transaction_can_be_ended(wire, topic):
    who = initialize(wire)
    add(wire, who, 0)
    send(wire, who, 0, b"a", b"b")
    request = messages.DescribeProducersRequest
    named = [request.TopicRequest(name="t", partition_indexes=indexes) for indexes in ([0], [0, 9])]
    (told,) = wire.ask(request(topics=named), 0).topics
    first, missing = told.partitions
    (producer,) = first.active_producers
    assert (producer.producer_id, producer.last_sequence, producer.current_txn_start_offset) == (who.producer_id, 1, 0)
    assert missing.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    named = [request.TopicRequest(name="a/b", partition_indexes=[0])]
    assert wire.ask(request(topics=named), 0).topics[0].partitions[0].error_code == Error.INVALID_TOPIC_EXCEPTION
    request = messages.WriteTxnMarkersRequest
    marker = request.WritableTxnMarker(
        producer_id=who.producer_id,
        producer_epoch=who.producer_epoch,
        transaction_result=False,
        topics=[request.WritableTxnMarkerTopic(name="t", partition_indexes=[0, 9])],
        coordinator_epoch=0,
    )
    answer = wire.ask(request(markers=[marker]), 1).markers[0].topics[0].partitions
    assert [partition.error_code for partition in answer] == [0, Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert wire.fetch("t", 0, isolation_level=1).last_stable_offset == 3


def test_readers_of_committed_records_are_told_the_stable_end(wire, topic):
    who = initialize(wire)
    add(wire, who, 0)
    send(wire, who, 0, b"a")
    request = messages.ListOffsetsRequest

    def found(timestamp, replica=-1):
        asked = request.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        topics = [request.ListOffsetsTopic(name="t", partitions=[asked])]
        return wire.ask(request(replica_id=replica, isolation_level=1, topics=topics), 7).topics[0].partitions[0].offset

    assert [found(timestamp) for timestamp in (-1, 500, -3)] == [0, -1, -1]
    for replica in (0, -2):  # no consumer: it sees all that there is
        assert [found(timestamp, replica) for timestamp in (-1, 500, -3)] == [1, 0, 0]
    end(wire, who)
    assert [found(timestamp) for timestamp in (-1, 500, -3)] == [2, 0, 1]


def test_a_client_that_goes_away_leaves_no_second_writer_of_the_file_of_ids(tmp_path):
    files, pool = Files(), ThreadPoolExecutor(4)
    under_way, most, go_on = [], [], threading.Event()
    really = files.rename

    def rename(source, target):
        under_way.append(target)
        most.append(len(under_way))
        go_on.wait(20)
        really(source, target)
        under_way.pop()

    files.rename = rename

    async def scenario():
        ids = ProducerIds(files, tmp_path, pool)
        gone = asyncio.ensure_future(ids.take())
        while not under_way:
            await asyncio.sleep(0.001)
        gone.cancel()
        others = [asyncio.ensure_future(ids.take()) for _ in range(3)]
        await asyncio.sleep(0.05)
        go_on.set()
        assert len({await other for other in others}) == 3

    with pool:
        asyncio.run(scenario())
    assert max(most) == 1


@pytest.mark.parametrize("half", [{"producer_id": 5}, {"epoch": 0}])
def test_whoever_names_a_producer_id_without_an_epoch_or_an_epoch_alone_fences_nobody(wire, half):
    who = initialize(wire)
    wire.create("t")
    for name in ("tx", "new", None):
        assert initialize(wire, name, **half).error_code == Error.INVALID_REQUEST
    assert add(wire, who, 0) is Error.NONE


def mark(wire, who, coordinator_epoch, topic="t"):
    request = messages.WriteTxnMarkersRequest
    marker = request.WritableTxnMarker(
        producer_id=who.producer_id,
        producer_epoch=who.producer_epoch,
        transaction_result=False,
        topics=[request.WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
        coordinator_epoch=coordinator_epoch,
    )
    return Error.of(wire.ask(request(markers=[marker]), 1).markers[0].topics[0].partitions[0].error_code)


@pytest.mark.parametrize("whose", [{"producer_id": -1}, {"producer_epoch": -1}, {"producer_id": -5}])
def test_a_marker_that_is_nobodys_is_refused_and_others_are_written(wire, topic, whose):
    request, who = messages.WriteTxnMarkersRequest, initialize(wire)
    markers = [
        request.WritableTxnMarker(
            **{"producer_id": who.producer_id, "producer_epoch": who.producer_epoch, **more},
            topics=[request.WritableTxnMarkerTopic(name="t", partition_indexes=[0])],
        )
        for more in (whose, {})
    ]
    told = wire.ask(request(markers=markers), 1).markers
    codes = [marker.topics[0].partitions[0].error_code for marker in told]
    assert codes == [Error.UNKNOWN_SERVER_ERROR, Error.NONE]
    assert wire.fetch("t", 0).high_watermark == 1


def test_a_transaction_in_a_partition_that_is_offline_cannot_be_ended_there_and_is_said_to_be_on_a_broken_disk(
    wire, topic, broker
):
    who = initialize(wire)
    add(wire, who, 0)
    send(wire, who, 0, b"a")
    broker.disk.fail("sync", times=1)
    assert mark(wire, who, 0) is Error.KAFKA_STORAGE_ERROR
    assert mark(wire, who, 0) is Error.KAFKA_STORAGE_ERROR  # it is offline by then


def test_offsets_are_committed_by_a_marker_though_the_client_that_asks_for_it_goes_away(
    wire, topic, broker, connect, monkeypatch
):
    who = initialize(wire)
    add_offsets(wire, who)
    assert commit_offset(wire, who, 7) is Error.NONE
    begun, go_on, sync = threading.Event(), threading.Event(), broker.disk.sync

    def held(fd):
        begun.set()
        assert go_on.wait(30)
        sync(fd)

    request = messages.WriteTxnMarkersRequest
    marker = request.WritableTxnMarker(
        producer_id=who.producer_id,
        producer_epoch=who.producer_epoch,
        transaction_result=True,
        topics=[request.WritableTxnMarkerTopic(name=OFFSETS, partition_indexes=[0])],
        coordinator_epoch=0,
    )
    leaving = connect(broker.bootstrap)
    leaving.metadata()
    monkeypatch.setattr(broker.disk, "sync", held)
    leaving.send(request(markers=[marker]), 1)
    assert begun.wait(30)
    leaving.reset()
    wait_until(lambda: broker.stats()["connections"]["open"] == 1)
    go_on.set()
    wait_until(lambda: committed(wire, stable=True) == (7, Error.NONE), 5)


def test_a_marker_of_a_later_coordinator_epoch_keeps_no_later_transaction_from_its_end(wire, topic):
    who = initialize(wire)
    add(wire, who, 0)
    send(wire, who, 0, b"a")
    assert mark(wire, who, 7) is Error.NONE  # by kafka-transactions abort --coordinator-epoch 7
    assert end(wire, who) is Error.NONE
    assert add(wire, who, 0) is Error.NONE
    assert send(wire, who, 1, b"b") is Error.NONE
    assert end(wire, who) is Error.NONE
    assert committed_values(wire, "t", 0) == [b"b"]
    assert mark(wire, who, 6) is Error.TRANSACTION_COORDINATOR_FENCED
