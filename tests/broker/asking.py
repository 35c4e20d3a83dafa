"""Offsets and transactions, asked for over a wire; what is not granted is an AssertionError."""

from __future__ import annotations

from tagwire import messages
from tagwire.records import AbortedTransactions, Record, read, write


def commit(wire, group, offset, partition=0):
    request = messages.OffsetCommitRequest
    asked = request.OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
    topics = [request.OffsetCommitRequestTopic(name="t", partitions=[asked])]
    message = request(group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=topics)
    assert wire.ask(message, 8).topics[0].partitions[0].error_code == 0


def committed(wire, group, partition=0):
    request = messages.OffsetFetchRequest
    topics = [request.OffsetFetchRequestTopic(name="t", partition_indexes=[partition])]
    return wire.ask(request(group_id=group, topics=topics), 6).topics[0].partitions[0].committed_offset


def begin(wire, name):
    return wire.ask(messages.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 4)


def commit_in_transaction(wire, name, who, group, offset):
    ids = {"transactional_id": name, "producer_id": who.producer_id, "producer_epoch": who.producer_epoch}
    assert wire.ask(messages.AddOffsetsToTxnRequest(group_id=group, **ids), 3).error_code == 0
    request = messages.TxnOffsetCommitRequest
    asked = request.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topics = [request.TxnOffsetCommitRequestTopic(name="t", partitions=[asked])]
    assert wire.ask(request(group_id=group, topics=topics, **ids), 3).topics[0].partitions[0].error_code == 0


def end(wire, name, who, *, commit):
    message = messages.EndTxnRequest(
        transactional_id=name, producer_id=who.producer_id, producer_epoch=who.producer_epoch, committed=commit
    )
    assert wire.ask(message, 3).error_code == 0


def add_partitions(wire, name, who, topic, *partitions):
    request = messages.AddPartitionsToTxnRequest
    message = request(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=who.producer_id,
        v3_and_below_producer_epoch=who.producer_epoch,
        v3_and_below_topics=[request.AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
    )
    (result,) = wire.ask(message, 3).results_by_topic_v3_and_below
    assert {partition.partition_error_code for partition in result.results_by_partition} == {0}


def send_in_transaction(wire, name, who, topic, partition, sequence, *values):
    records = write(
        [Record(None, value, timestamp=1000) for value in values],
        producer_id=who.producer_id,
        producer_epoch=who.producer_epoch,
        base_sequence=sequence,
        transactional=True,
    )
    request = messages.ProduceRequest
    data = request.PartitionProduceData(index=partition, records=records)
    topics = [request.TopicProduceData(name=topic, partition_data=[data])]
    message = request(transactional_id=name, acks=-1, timeout_ms=1000, topic_data=topics)
    assert wire.ask(message, 9).responses[0].partition_responses[0].error_code == 0


def committed_values(wire, topic, partition):
    """Every value that a reader of committed records sees in a partition."""
    found, offset = [], 0
    end_offset = wire.offset_at(topic, -1, partition).offset
    while offset < end_offset:
        answer = wire.fetch(topic, offset, partition, isolation_level=1)
        assert answer.error_code == 0
        if not answer.records:
            break
        aborted = AbortedTransactions((one.producer_id, one.first_offset) for one in answer.aborted_transactions)
        for batch in read(answer.records):
            hidden = aborted.hides(batch, memoryview(answer.records))
            if not hidden and not batch.is_control:
                found += [record.value for record in batch.records()]
            offset = batch.next_offset
    return found
