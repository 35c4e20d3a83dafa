"""The configurations of a topic: what they are unless said otherwise, and which values are taken."""

from __future__ import annotations

import pytest

from tagwire.broker.topic_config import TopicConfig
from tagwire.errors import ConfigError, Error
from tagwire.records import Record, read, write

DEFAULTS = {
    "segment.bytes": "1073741824",
    "segment.ms": "604800000",
    "index.interval.bytes": "4096",
    "max.message.bytes": "1048588",
    "cleanup.policy": "delete",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "delete.retention.ms": "86400000",
    "min.cleanable.dirty.ratio": "0.5",
    "min.compaction.lag.ms": "0",
    "max.compaction.lag.ms": "9223372036854775807",
    "message.timestamp.type": "CreateTime",
    "compression.type": "producer",
    "tagwire.record.dialect": "none",
}


def test_a_topics_defaults_are_kafkas():
    assert TopicConfig().as_strings() == DEFAULTS


def test_every_configuration_is_taken_as_it_is_told():
    assert TopicConfig.of(DEFAULTS) == TopicConfig()
    assert TopicConfig.of({"retention.ms": "-1", "segment.bytes": "2000"}) == TopicConfig(
        segment_bytes=2000, retention_ms=-1
    )


@pytest.mark.parametrize(
    ("policy", "deletes", "compacts"),
    [
        ("delete", True, False),
        ("compact", False, True),
        ("compact,delete", True, True),
        ("delete, compact", True, True),
    ],
)
def test_a_cleanup_policy_is_one_or_both(policy, deletes, compacts):
    config = TopicConfig.of({"cleanup.policy": policy})
    assert (config.deletes, config.compacts) == (deletes, compacts)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("segment.bytes", "1023"),
        ("segment.bytes", "2147483648"),
        ("segment.bytes", "1_000_000"),
        ("segment.bytes", " 2000"),
        ("segment.bytes", ""),
        ("segment.ms", "0"),
        ("retention.ms", "9" * 30),
        ("retention.bytes", "1.5"),
        ("message.timestamp.type", "createtime"),
        ("cleanup.policy", "compact,keep"),
        ("cleanup.policy", "compact,compact"),
        ("cleanup.policy", ""),
        ("compression.type", "zip"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("min.cleanable.dirty.ratio", "nan"),
        ("tagwire.record.dialect", "optional"),
        ("min.insync.replicas", "1"),
    ],
)
def test_a_configuration_that_is_not_implemented_is_named(name, value):
    with pytest.raises(ConfigError, match=rf"{name}(={value}| is not)"):
        TopicConfig.of({name: value})


def test_a_topic_of_a_dialect_cannot_be_compacted():
    with pytest.raises(ConfigError, match="int-headers"):
        TopicConfig.of({"tagwire.record.dialect": "int-headers", "cleanup.policy": "compact"})


@pytest.mark.parametrize("sent", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("wanted", ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_batches_are_stored_in_the_compression_that_is_asked_for(wire, sent, wanted):
    wire.create("t", compression_type=wanted)
    records = [Record(b"k%d" % i, b"v" * 40, [("h", b"x")], timestamp=1000 - i) for i in range(9)]
    data = write(records, compression=sent)
    assert wire.produce("t", data).error_code == 0
    stored = bytes(wire.fetch("t", 0).records)
    (batch,) = read(stored)
    assert batch.compression == {"producer": sent, "uncompressed": "none"}.get(wanted, wanted)
    assert [record.replace(offset=-1) for record in batch.records()] == [r.replace(offset=-1) for r in records]
    assert (batch.partition_leader_epoch, batch.last_offset, batch.max_timestamp) == (0, 8, 1000)
    if batch.compression == sent:
        assert stored[16:] == data[16:]


def test_a_batch_that_is_too_large_only_uncompressed_is_refused(wire):
    wire.create("t", compression_type="uncompressed", max_message_bytes="1000")
    data = write([Record(None, b"v" * 5000)], compression="zstd")
    assert len(data) < 1000
    assert wire.produce("t", data).error_code == Error.MESSAGE_TOO_LARGE


def test_a_record_without_a_key_is_refused_where_the_log_is_compacted(wire):
    wire.create("t", cleanup_policy="compact,delete")
    outcome = wire.produce("t", write([Record(b"k", b"v"), Record(None, b"v")]))
    assert (outcome.error_code, outcome.error_message) == (
        Error.INVALID_RECORD,
        "record 1 has no key, and the topic is compacted",
    )
    assert wire.produce("t", write([Record(b"k", b"v")], compression="gzip")).error_code == 0
