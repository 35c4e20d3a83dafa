"""The configurations of a topic: what they are unless said otherwise, and which values are taken."""

from __future__ import annotations

import pytest

from tagwire.broker.topic_config import TopicConfig
from tagwire.errors import ConfigError

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
