"""ListOffsets over a socket."""

from __future__ import annotations

import pytest
from crc32c import crc32c

from tagwire import messages
from tagwire.broker import Cluster
from tagwire.errors import Error


@pytest.fixture
def filled(wire, make):
    """Topic t with 30 records at offsets 0-29, timestamps 1000, 1010 ... in batches of 3."""
    wire.create("t", segment_bytes="1024", index_interval_bytes="100")
    from tagwire.records import Record, write

    for first in range(0, 30, 3):
        records = [Record(None, b"v" * 40, timestamp=1000 + 10 * (first + i)) for i in range(3)]
        wire.produce("t", write(records, compression="gzip" if first % 2 else "none"))
    return wire


@pytest.mark.parametrize("version", range(1, 8))
def test_every_version_tells_both_ends(filled, version):
    assert filled.offset_at("t", -1, version=version).offset == 30
    earliest = filled.offset_at("t", -2, version=version)
    assert (earliest.error_code, earliest.offset, earliest.timestamp) == (0, 0, -1)
    assert earliest.leader_epoch == (0 if version >= 4 else -1)


@pytest.mark.parametrize(
    ("timestamp", "found"), [(0, (1000, 0)), (1000, (1000, 0)), (1001, (1010, 1)), (1290, (1290, 29))]
)
def test_a_timestamp_finds_the_first_record_that_is_not_older(filled, timestamp, found):
    answer = filled.offset_at("t", timestamp)
    assert (answer.timestamp, answer.offset) == found


def test_a_timestamp_past_every_record_finds_nothing(filled):
    answer = filled.offset_at("t", 1291)
    assert (answer.error_code, answer.timestamp, answer.offset, answer.leader_epoch) == (0, -1, -1, -1)


def test_the_newest_record_is_found_from_version_7(filled):
    answer = filled.offset_at("t", -3)
    assert (answer.timestamp, answer.offset) == (1290, 29)
    assert filled.offset_at("t", -3, version=6).error_code == Error.UNSUPPORTED_VERSION


def test_an_empty_partition_has_no_newest_record(wire):
    wire.create("t")
    assert wire.offset_at("t", -3).offset == -1
    assert (wire.offset_at("t", -1).offset, wire.offset_at("t", -2).offset) == (0, 0)


@pytest.mark.parametrize("timestamp", [-4, -5, -(2**63)])
def test_other_negative_timestamps_ask_for_nothing_known(filled, timestamp):
    assert filled.offset_at("t", timestamp).error_code == Error.UNSUPPORTED_VERSION


@pytest.mark.parametrize(("timestamp", "version"), [(-3, 6), (-4, 7)])
def test_what_a_version_does_not_know_is_told_before_that_there_is_no_such_partition(wire, timestamp, version):
    assert wire.offset_at("missing", timestamp, version=version).error_code == Error.UNSUPPORTED_VERSION


@pytest.mark.parametrize(("topic", "partition"), [("missing", 0), ("t", 1), ("t", -1)])
def test_a_partition_that_does_not_exist_is_unknown(filled, topic, partition):
    assert filled.offset_at(topic, -1, partition=partition).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_that_is_named_twice_is_refused_once_and_the_others_are_told(wire, make):
    wire.create("t", 3)
    request = messages.ListOffsetsRequest
    topics = [
        request.ListOffsetsTopic(
            name="t", partitions=[request.ListOffsetsPartition(partition_index=index, timestamp=-1) for index in named]
        )
        for named in ([0, 1, 1], [0, 2])
    ]
    (topic,) = wire.ask(request(replica_id=-1, topics=topics), 7).topics
    told = {each.partition_index: Error.of(each.error_code) for each in topic.partitions}
    assert told == {0: Error.INVALID_REQUEST, 1: Error.INVALID_REQUEST, 2: Error.NONE}
    assert len(topic.partitions) == 3


def test_a_batch_that_overstates_its_greatest_timestamp_does_not_end_the_search(wire, make):
    wire.create("t")
    data = bytearray(make.records(b"v", timestamp=5000))
    data[35:43] = (9000).to_bytes(8, "big")
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    assert wire.produce("t", bytes(data)).error_code == 0
    assert wire.offset_at("t", 6000).offset == -1
    wire.produce("t", make.records(b"v", timestamp=7000))
    assert wire.offset_at("t", 6000).offset == 1


def test_an_offset_is_told_with_the_leader_epoch_of_its_record(connect, make):
    with Cluster(2, fsync="never") as cluster:
        first, second = (connect(cluster.nodes[node].bootstrap) for node in (1, 2))
        first.create("t")
        cluster.move_leader("t", 0, 1)
        epoch = first.offset_at("t", -1).leader_epoch
        first.produce("t", make.records(b"a", timestamp=1000))
        cluster.move_leader("t", 0, 2)
        second.produce("t", make.records(b"b", timestamp=2000))
        cluster.move_leader("t", 0, 1)

        def told(timestamp):
            answer = first.offset_at("t", timestamp)
            return answer.offset, answer.leader_epoch - epoch

        assert told(-2) == told(1000) == (0, 0)
        assert told(1500) == told(-3) == (1, 1)
        assert told(-1) == (2, 2)
