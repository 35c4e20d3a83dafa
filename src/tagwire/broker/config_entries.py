"""Configurations as admin tools want to see them: value, type, where it comes from, and what it would be otherwise.

A topic's configuration falls back on one of the broker's, most under another name, as in Kafka: `retention.ms` on
`log.retention.ms`. Here that is always the default; the broker's own settings are said when it is started, and told
read-only. Source: KIP-226, KIP-569; Kafka's ServerTopicConfigSynonyms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Final

from tagwire.broker.fetch_sessions import MAX_SESSIONS
from tagwire.broker.node import Node
from tagwire.broker.settings import Settings
from tagwire.broker.topic import Topic
from tagwire.broker.topic_config import DIALECT, TopicConfig
from tagwire.rpc.addresses import address_text


class Source(IntEnum):
    """Where a value comes from, by Kafka's numbers."""

    TOPIC = 1
    BROKER = 4
    DEFAULT = 5


class Type(IntEnum):
    """What a value is, by Kafka's numbers."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


@dataclass(frozen=True, slots=True)
class Entry:
    """One configuration of a topic or of the broker.

    Attributes:
        synonyms: (name, value, source) of all that it could come from, the one that counts first.
    """

    name: str
    value: str
    type: Type
    source: Source
    read_only: bool
    documentation: str
    synonyms: tuple[tuple[str, str, Source], ...]


@dataclass(frozen=True, slots=True)
class _Definition:
    """What is known of a topic's configuration; `fallback` is the broker's name for it, None where it has none."""

    type: Type
    fallback: str | None
    documentation: str


TOPIC_CONFIGS: Final[Mapping[str, _Definition]] = {
    "segment.bytes": _Definition(Type.INT, "log.segment.bytes", "A segment is closed before it grows past this."),
    "segment.ms": _Definition(Type.LONG, "log.roll.ms", "A segment is closed this long after its first batch."),
    "index.interval.bytes": _Definition(
        Type.INT, "log.index.interval.bytes", "How many bytes are added between two index entries."
    ),
    "max.message.bytes": _Definition(Type.INT, "message.max.bytes", "The largest batch that is accepted."),
    "cleanup.policy": _Definition(
        Type.LIST, "log.cleanup.policy", "delete: records go by age and size; compact: by newer ones of their key."
    ),
    "retention.ms": _Definition(Type.LONG, "log.retention.ms", "How old records may get; -1 keeps all."),
    "retention.bytes": _Definition(
        Type.LONG, "log.retention.bytes", "How large a partition may get before its oldest records go; -1 keeps all."
    ),
    "delete.retention.ms": _Definition(
        Type.LONG, "log.cleaner.delete.retention.ms", "How long compaction keeps records that delete a key."
    ),
    "min.cleanable.dirty.ratio": _Definition(
        Type.DOUBLE, "log.cleaner.min.cleanable.ratio", "Which part of a log is new when it is compacted again."
    ),
    "min.compaction.lag.ms": _Definition(
        Type.LONG, "log.cleaner.min.compaction.lag.ms", "Records younger than this are not compacted."
    ),
    "max.compaction.lag.ms": _Definition(
        Type.LONG, "log.cleaner.max.compaction.lag.ms", "Records older than this are compacted."
    ),
    "message.timestamp.type": _Definition(
        Type.STRING, "log.message.timestamp.type", "Whose clock dates a record: CreateTime or LogAppendTime."
    ),
    "message.timestamp.before.max.ms": _Definition(
        Type.LONG, "log.message.timestamp.before.max.ms", "How far a producer's timestamp may be in the past."
    ),
    "message.timestamp.after.max.ms": _Definition(
        Type.LONG, "log.message.timestamp.after.max.ms", "How far a producer's timestamp may be in the future."
    ),
    "compression.type": _Definition(Type.STRING, "compression.type", "What batches are compressed with."),
    "compression.gzip.level": _Definition(
        Type.INT, "compression.gzip.level", "At which level, where compression.type is gzip."
    ),
    "compression.lz4.level": _Definition(
        Type.INT, "compression.lz4.level", "At which level, where compression.type is lz4; 9 is the fastest."
    ),
    "compression.zstd.level": _Definition(
        Type.INT, "compression.zstd.level", "At which level, where compression.type is zstd."
    ),
    "segment.jitter.ms": _Definition(Type.LONG, "log.roll.jitter.ms", "Without effect: segment.ms alone counts."),
    "segment.index.bytes": _Definition(
        Type.INT, "log.index.size.max.bytes", "Without effect: an index grows with its segment."
    ),
    "flush.messages": _Definition(
        Type.LONG,
        "log.flush.interval.messages",
        "Without effect: fsync, of the whole broker, says what is on the disk.",
    ),
    "flush.ms": _Definition(
        Type.LONG, "log.flush.interval.ms", "Without effect: fsync, of the whole broker, says what is on the disk."
    ),
    "file.delete.delay.ms": _Definition(
        Type.LONG, "log.segment.delete.delay.ms", "Without effect: files go at once, and readers keep what they read."
    ),
    "preallocate": _Definition(Type.BOOLEAN, "log.preallocate", "Without effect: a segment grows as it is written."),
    "min.insync.replicas": _Definition(
        Type.INT, "min.insync.replicas", "Counts as the replicas that there are, where it is more: one."
    ),
    "unclean.leader.election.enable": _Definition(
        Type.BOOLEAN, "unclean.leader.election.enable", "Without effect: there is one replica."
    ),
    "remote.storage.enable": _Definition(Type.BOOLEAN, None, "False: there is no remote storage."),
    "remote.log.copy.disable": _Definition(Type.BOOLEAN, None, "Without effect: there is no remote storage."),
    "remote.log.delete.on.disable": _Definition(Type.BOOLEAN, None, "Without effect: there is no remote storage."),
    "local.retention.ms": _Definition(
        Type.LONG, "log.local.retention.ms", "Without effect: there is no remote storage."
    ),
    "local.retention.bytes": _Definition(
        Type.LONG, "log.local.retention.bytes", "Without effect: there is no remote storage."
    ),
    "leader.replication.throttled.replicas": _Definition(Type.LIST, None, "Without effect: nothing is replicated."),
    "follower.replication.throttled.replicas": _Definition(Type.LIST, None, "Without effect: nothing is replicated."),
    DIALECT: _Definition(Type.STRING, DIALECT, "The format of what is stored; set when a topic is created."),
}


def topic_entries(topic: Topic) -> list[Entry]:
    """Every configuration of a topic."""
    return config_entries(topic.config, topic.configs)


def config_entries(config: TopicConfig, given: Mapping[str, str | None]) -> list[Entry]:
    """Every configuration of a topic that was given some of them."""
    values, defaults = config.as_strings(), TopicConfig().as_strings()
    return [_topic_entry(name, values[name], defaults[name], name in given) for name in values]


def _topic_entry(name: str, value: str, default: str, given: bool) -> Entry:
    known = TOPIC_CONFIGS[name]
    synonyms = [] if known.fallback is None else [(known.fallback, default, Source.DEFAULT)]
    if given:
        synonyms.insert(0, (name, value, Source.TOPIC))
    source = Source.TOPIC if given else Source.DEFAULT
    return Entry(name, value, known.type, source, name == DIALECT, known.documentation, tuple(synonyms))


def broker_entries(node: Node) -> list[Entry]:
    """What the broker was told when it was started, and the defaults of topics, by Kafka's names."""
    told: list[_Row] = [*_identity(node), *_settings(node.settings)]
    names = {name for name, *_ in told}
    for topic_name, default in TopicConfig().as_strings().items():
        known = TOPIC_CONFIGS[topic_name]
        if known.fallback is not None and known.fallback not in names and topic_name != DIALECT:
            told.append((known.fallback, known.type, default, default, known.documentation))
    return [_broker_entry(*row) for row in sorted(told, key=lambda row: row[0])]


def _broker_entry(name: str, kind: Type, value: str, default: str | None, documentation: str) -> Entry:
    source = Source.DEFAULT if value == default else Source.BROKER
    synonyms = [(name, value, source)]
    if source is Source.BROKER and default is not None:
        synonyms.append((name, default, Source.DEFAULT))
    return Entry(name, value, kind, source, True, documentation, tuple(synonyms))


_Row = tuple[str, Type, str, str | None, str]
"""Name, type, value, default (None where there is none), documentation."""


def _identity(node: Node) -> list[_Row]:
    listeners = node.settings.listeners
    listen = [f"{one.protocol}://{address_text((one.host, one.port))}" for one in listeners]
    advertise = [f"{one.protocol}://{address_text(one.advertise)}" for one in listeners if one.advertise]
    mechanisms = sorted({mechanism for one in listeners for mechanism in one.sasl})
    return [
        ("node.id", Type.INT, str(node.node_id), None, "Which broker this is."),
        ("broker.id", Type.INT, str(node.node_id), None, "Which broker this is."),
        ("log.dirs", Type.LIST, str(node.data_path), None, "Where topics are kept."),
        ("listeners", Type.LIST, ",".join(listen), None, "Where clients connect."),
        ("advertised.listeners", Type.LIST, ",".join(advertise), "", "Where clients are told to connect."),
        ("sasl.enabled.mechanisms", Type.LIST, ",".join(mechanisms), "", "How clients say who they are."),
        (
            "authorizer.class.name",
            Type.STRING,
            STANDARD_AUTHORIZER if node.authorizer is not None else "",
            "",
            "What decides who may do what.",
        ),
        (
            "default.replication.factor",
            Type.INT,
            str(node.image.replication_factor),
            "1",
            "How many brokers hold a partition of a topic that is created without saying.",
        ),
        (
            "max.incremental.fetch.session.cache.slots",
            Type.INT,
            str(MAX_SESSIONS),
            str(MAX_SESSIONS),
            "How many fetch sessions there may be.",
        ),
        ("delete.topic.enable", Type.BOOLEAN, "true", "true", "Whether topics can be deleted."),
    ]


LONGEST_MS: Final = 2**63 - 1
"""Of a LONG; a broker may be told `inf` seconds."""

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

# Kafka's name, our setting, and how a value of ours is written as Kafka's.
_SETTINGS: Final = (
    ("num.partitions", "num_partitions", Type.INT, "Partitions of a topic that is created without saying."),
    (
        "auto.create.topics.enable",
        "auto_create_topics",
        Type.BOOLEAN,
        "Whether metadata requests for a topic create it.",
    ),
    ("socket.request.max.bytes", "max_frame_bytes", Type.INT, "The largest request."),
    ("max.connections", "max_connections", Type.INT, "Connections there may be."),
    ("max.connections.per.ip", "max_connections_per_address", Type.INT, "Connections there may be from one address."),
    (
        "group.consumer.session.timeout.ms",
        "group_session_timeout_s",
        Type.INT,
        "How long a member of a group of KIP-848 may be silent.",
    ),
    (
        "group.consumer.heartbeat.interval.ms",
        "group_heartbeat_interval_s",
        Type.INT,
        "How often a member of a group of KIP-848 is told to heartbeat.",
    ),
    (
        "group.consumer.migration.policy",
        "group_migration",
        Type.STRING,
        "Which groups may change between the classic protocol and KIP-848's.",
    ),
    (
        "connections.max.reauth.ms",
        "max_reauth_s",
        Type.LONG,
        "How long a client may go on before it authenticates again; 0 for as long as its connection or its token.",
    ),
    ("connections.max.idle.ms", "idle_timeout_s", Type.LONG, "How long a connection may be silent."),
)


def _settings(settings: Settings) -> list[_Row]:
    defaults = {field.name: field.default for field in fields(Settings)}
    return [
        (name, kind, _written(setting, getattr(settings, setting)), _written(setting, defaults[setting]), about)
        for name, setting, kind, about in _SETTINGS
    ]


def _written(setting: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if setting.endswith("_s") and isinstance(value, float):
        return str(int(min(value * 1000, LONGEST_MS)))
    return str(value)
