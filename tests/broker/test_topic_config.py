"""The configurations of a topic: what they are unless said otherwise, and which values are taken."""

from __future__ import annotations

import pytest

from tagwire import messages
from tagwire.broker import Broker
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
    "message.timestamp.before.max.ms": "9223372036854775807",
    "message.timestamp.after.max.ms": "3600000",
    "compression.type": "producer",
    "compression.gzip.level": "-1",
    "compression.lz4.level": "9",
    "compression.zstd.level": "3",
    "segment.jitter.ms": "0",
    "segment.index.bytes": "10485760",
    "flush.messages": "9223372036854775807",
    "flush.ms": "9223372036854775807",
    "file.delete.delay.ms": "60000",
    "preallocate": "false",
    "min.insync.replicas": "1",
    "unclean.leader.election.enable": "false",
    "remote.storage.enable": "false",
    "remote.log.copy.disable": "false",
    "remote.log.delete.on.disable": "false",
    "local.retention.ms": "-2",
    "local.retention.bytes": "-2",
    "leader.replication.throttled.replicas": "",
    "follower.replication.throttled.replicas": "",
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
        ("compact,compact", False, True),
        ("", False, False),
    ],
)
def test_a_cleanup_policy_is_one_or_both_or_neither(policy, deletes, compacts):
    config = TopicConfig.of({"cleanup.policy": policy})
    assert (config.deletes, config.compacts) == (deletes, compacts)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("segment.bytes", "1023"),
        ("segment.bytes", "2147483648"),
        ("segment.bytes", "1_000_000"),
        ("segment.bytes", ""),
        ("segment.ms", "0"),
        ("retention.ms", "9" * 30),
        ("retention.bytes", "1.5"),
        ("message.timestamp.type", "createtime"),
        ("cleanup.policy", "compact,keep"),
        ("cleanup.policy", "compact,"),
        ("compression.type", "zip"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("min.cleanable.dirty.ratio", "nan"),
        ("tagwire.record.dialect", "optional"),
        ("min.insync.replicas", "0"),
        ("min.insync.replicas", "2147483648"),
        ("preallocate", "yes"),
        ("remote.storage.enable", "true"),
        ("local.retention.ms", "-3"),
        ("segment.index.bytes", "3"),
        ("flush.messages", "0"),
        ("file.delete.delay.ms", "-1"),
        ("compression.gzip.level", "0"),
        ("compression.gzip.level", "10"),
        ("compression.lz4.level", "18"),
        ("compression.zstd.level", "-131073"),
        ("leader.replication.throttled.replicas", "none"),
        ("leader.replication.throttled.replicas", "0-1"),
        ("follower.replication.throttled.replicas", r"0:1,\*"),
        ("message.format.version", "2.8"),
        ("message.downconversion.enable", "false"),
    ],
)
def test_a_name_or_value_that_kafka_refuses_is_named(name, value):
    with pytest.raises(ConfigError, match=rf"{name}(={value}| is unknown)"):
        TopicConfig.of({name: value.replace("\\", "")})


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("min.insync.replicas", "2", "2"),
        ("unclean.leader.election.enable", "TRUE", "true"),
        ("preallocate", " false ", "false"),
        ("segment.bytes", " +2000", "2000"),
        ("retention.bytes", "-5", "-5"),
        ("remote.log.copy.disable", "true", "true"),
        ("local.retention.bytes", "5", "5"),
        ("leader.replication.throttled.replicas", "0:1, 1:1", "0:1,1:1"),
        ("follower.replication.throttled.replicas", "*", "*"),
        ("min.cleanable.dirty.ratio", "1e-1", "0.1"),
        ("min.cleanable.dirty.ratio", ".5", "0.5"),
        ("compression.zstd.level", "-7", "-7"),
        ("cleanup.policy", "", ""),
    ],
)
def test_what_kafka_takes_is_taken_kept_and_described(tmp_path, connect, name, value, told):
    with Broker(tmp_path / "data") as broker:
        wire = connect(broker.bootstrap)
        assert wire.create("t", **{name: value}).error_code == 0
        default = wire.create("other", **{name: TopicConfig().as_strings()[name]})
        assert default.error_code == 0
    with Broker(tmp_path / "data") as broker:
        request = messages.DescribeConfigsRequest
        asked = request.DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=[name])
        (config,) = connect(broker.bootstrap).ask(request(resources=[asked]), 4).results[0].configs
        assert (config.name, config.value, config.config_source) == (name, told, 1)


def test_compaction_lags_that_exclude_each_other_are_refused():
    with pytest.raises(ConfigError, match=r"min.compaction.lag.ms=5 is over max.compaction.lag.ms=4"):
        TopicConfig.of({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"})


def test_more_in_sync_replicas_than_there_are_count_as_those_there_are(wire, make):
    wire.create("t", min_insync_replicas="2")
    assert wire.produce("t", make.records(b"v"), acks=-1).error_code == 0


@pytest.mark.parametrize(("codec", "least", "most"), [("gzip", "1", "9"), ("lz4", "9", "17"), ("zstd", "-50", "19")])
def test_batches_are_compressed_at_the_level_that_is_asked_for(wire, codec, least, most):
    words = [b"%x" % (number * number % 9973) for number in range(20_000)]
    data = write([Record(None, b" ".join(words))])
    sizes = []
    for level in (least, most):
        wire.create(f"t{level}", **{"compression_type": codec, f"compression_{codec}_level": level})
        assert wire.produce(f"t{level}", data).error_code == 0
        sizes.append(len(wire.fetch(f"t{level}", 0).records))
    assert sizes[0] > sizes[1]


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
