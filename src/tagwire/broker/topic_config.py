"""The configurations of a topic: every one that Kafka has, its default and what values it takes, and one of our own.

Which of them have an effect on one node is said in docs/broker.md; the others are checked, kept and described all the
same, so that what was written for a cluster can be used here. A name that Kafka does not know is refused. Source:
Kafka's TopicConfig and LogConfig, 4.3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields

from tagwire.errors import ConfigError, Error, KafkaError
from tagwire.records.files.offset_index import MAX_RELATIVE
from tagwire.records.memory_records import INT_HEADERS

DAY_MS = 86_400_000
DIALECT = "tagwire.record.dialect"
_MOST = 2**63 - 1
_LEAST = -(2**63)
_MOST_INT = 2**31 - 1
CREATE_TIME, APPEND_TIME = "CreateTime", "LogAppendTime"
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_RATIO = re.compile(r"\+?([0-9]{1,19}(\.[0-9]{0,19})?|\.[0-9]{1,19})([eE][+-]?[0-9]{1,3})?")
_REPLICA = re.compile(r"[0-9]{1,10}:[0-9]{1,10}")
_BLANKS = "".join(map(chr, range(0x21)))
"""What Kafka leaves out at both ends of a value: all up to the space."""

_FAST_LZ4 = 9
_HIGHEST_LZ4 = 12
"""Kafka's default level, which is its fast one, and where LZ4's own levels end: Kafka takes five more."""


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """How one topic keeps its records.

    Attributes:
        segment_bytes: a segment is closed before it would grow past this.
        segment_ms: a segment is closed this long after its first batch was written.
        index_interval_bytes: how many bytes are added between two index entries.
        max_message_bytes: the largest batch that is accepted.
        cleanup_policy: "delete", by age and size; "compact", keeping of each key the last record; both, in a list; or
            neither.
        retention_ms: a closed segment is deleted when its newest record is older than this; -1 keeps all.
        retention_bytes: the oldest segments are deleted while the rest still holds at least this; below 0 keeps all.
        delete_retention_ms: how long compaction keeps records that delete a key, so that readers learn of it.
        min_cleanable_dirty_ratio: which part of a log is not compacted yet when it is compacted again.
        min_compaction_lag_ms: a segment is not compacted before its newest record is older than this.
        max_compaction_lag_ms: a log is compacted once a record that was not is older than this.
        message_timestamp_type: whose clock dates a record, "CreateTime" (the producer's) or "LogAppendTime" (the
            broker's).
        message_timestamp_before_max_ms, message_timestamp_after_max_ms: how far a producer's timestamp may be from the
            broker's clock.
        compression_type: "producer", batches are stored as they come; or what they are compressed with.
        compression_gzip_level, compression_lz4_level, compression_zstd_level: how well, where they are.
        remote_storage_enable: false; there is no remote storage.
        tagwire_record_dialect: the format of what is stored, "none" for record batches; set when a topic is created.

    The others are as in Kafka, and kept without an effect.
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    index_interval_bytes: int = 4096
    max_message_bytes: int = 1_048_588
    cleanup_policy: str = "delete"
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = -1
    delete_retention_ms: int = DAY_MS
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = _MOST
    message_timestamp_type: str = CREATE_TIME
    message_timestamp_before_max_ms: int = _MOST
    message_timestamp_after_max_ms: int = 3_600_000
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = _FAST_LZ4
    compression_zstd_level: int = 3
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10_485_760
    flush_messages: int = _MOST
    flush_ms: int = _MOST
    file_delete_delay_ms: int = 60_000
    preallocate: bool = False
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    remote_storage_enable: bool = False
    remote_log_copy_disable: bool = False
    remote_log_delete_on_disable: bool = False
    local_retention_ms: int = -2
    local_retention_bytes: int = -2
    leader_replication_throttled_replicas: str = ""
    follower_replication_throttled_replicas: str = ""
    tagwire_record_dialect: str = "none"

    @property
    def deletes(self) -> bool:
        """Whether old records are deleted."""
        return "delete" in self.cleanup_policy.split(",")

    @property
    def compacts(self) -> bool:
        """Whether records are deleted that a later one of their key replaces."""
        return "compact" in self.cleanup_policy.split(",")

    @property
    def roll_ms(self) -> int:
        """For how long a segment is written to: what is not closed cannot be compacted in time."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compacts else self.segment_ms

    @property
    def dialect(self) -> str | None:
        """The format of what is stored, as `tagwire.records` names it."""
        return None if self.tagwire_record_dialect == "none" else self.tagwire_record_dialect

    @property
    def dates_records(self) -> bool:
        """Whether records have the broker's time, whatever their producers say."""
        return self.message_timestamp_type == APPEND_TIME

    def level_of(self, compression: str) -> int | None:
        """The level at which the broker compresses, as `tagwire.records` has them; None for its own default."""
        if compression == "gzip":
            return None if self.compression_gzip_level == -1 else self.compression_gzip_level
        if compression == "lz4":
            level = self.compression_lz4_level
            return None if level == _FAST_LZ4 else min(level, _HIGHEST_LZ4)
        return self.compression_zstd_level if compression == "zstd" else None

    @classmethod
    def of(cls, configs: Mapping[str, str | None]) -> TopicConfig:
        """The configuration that `configs`, by Kafka's names, ask for; what they leave out has its default.

        Raises:
            ConfigError: a name that there is not, or a value that it does not take; the text says which, and what is
                allowed.
        """
        cls.check_names(configs)
        values: dict[str, Value] = {}
        for name, value in configs.items():
            if value is None:
                raise ConfigError(f"topic configuration {name} has no value")
            try:
                values[name.replace(".", "_")] = _ACCEPTED[name](value.strip(_BLANKS))
            except ValueError as error:
                raise ConfigError(f"topic configuration {name}={value} is not taken: {error}") from None
        config = cls(**values)  # type: ignore[arg-type]
        config._check()
        return config

    def _check(self) -> None:
        """Raises ConfigError for values that do not go together."""
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            least, most = self.min_compaction_lag_ms, self.max_compaction_lag_ms
            raise ConfigError(f"min.compaction.lag.ms={least} is over max.compaction.lag.ms={most}")
        if self.remote_storage_enable:
            raise ConfigError("remote.storage.enable=true: this broker has no remote storage")
        if self.dialect and self.compacts:
            raise ConfigError(f"a topic of the record dialect {self.dialect} cannot be compacted")
        if self.dialect and self.compression_type != "producer":
            raise ConfigError(f"a topic of the record dialect {self.dialect} keeps the compression of its producers")

    def check_size(self, size: int) -> None:
        """Refuse a batch of more bytes than the topic takes: KafkaError MESSAGE_TOO_LARGE or RECORD_LIST_TOO_LARGE."""
        if size > self.max_message_bytes:
            limit = f"max.message.bytes={self.max_message_bytes}"
            raise KafkaError(Error.MESSAGE_TOO_LARGE, f"a batch of {size} bytes is over {limit}")
        if size > self.segment_bytes:
            limit = f"segment.bytes={self.segment_bytes}"
            raise KafkaError(Error.RECORD_LIST_TOO_LARGE, f"a batch of {size} bytes is over {limit}")

    @staticmethod
    def check_names(names: Iterable[str]) -> None:
        """Raises ConfigError for a name that no configuration of a topic has, which says what those are."""
        for name in names:
            if name not in _ACCEPTED:
                raise ConfigError(f"topic configuration {name} is unknown; these are known: {', '.join(_ACCEPTED)}")

    def as_strings(self) -> dict[str, str]:
        """Every configuration by Kafka's name."""
        return {field.name.replace("_", "."): _written(getattr(self, field.name)) for field in fields(self)}


Value = bool | int | float | str


def _written(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _integer(lowest: int, highest: int = _MOST) -> Callable[[str], int]:
    def accept(value: str) -> int:
        if not _INTEGER.fullmatch(value):
            raise ValueError("it is not an integer")
        number = int(value)
        if not lowest <= number <= highest:
            raise ValueError(f"it is not between {lowest} and {highest}")
        return number

    return accept


def _choice(*values: str) -> Callable[[str], str]:
    def accept(value: str) -> str:
        if value not in values:
            raise ValueError(f"it is not {' or '.join(values)}")
        return value

    return accept


def _boolean(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError("it is not true or false")
    return value.lower() == "true"


def _gzip_level(value: str) -> int:
    level = _integer(-1, 9)(value)
    if level == 0:
        raise ValueError("it is not between 1 and 9, or -1")
    return level


def _ratio(value: str) -> float:
    if not _RATIO.fullmatch(value) or float(value) > 1:
        raise ValueError("it is not a number between 0 and 1")
    return float(value)


def _some_of(*values: str) -> Callable[[str], str]:
    def accept(value: str) -> str:
        given = _parts(value)
        if not set(given) <= set(values):
            raise ValueError(f"it is not of {', '.join(values)}")
        return ",".join(dict.fromkeys(given))

    return accept


def _replicas(value: str) -> str:
    given = _parts(value)
    if given != ["*"] and not all(map(_REPLICA.fullmatch, given)):
        raise ValueError("it is not *, nor a list of PARTITION:BROKER")
    return ",".join(given)


def _parts(value: str) -> list[str]:
    return [part.strip(_BLANKS) for part in value.split(",")] if value else []


_ACCEPTED: dict[str, Callable[[str], Value]] = {
    "segment.bytes": _integer(1024, MAX_RELATIVE),
    "segment.ms": _integer(1),
    "index.interval.bytes": _integer(0, MAX_RELATIVE),
    "max.message.bytes": _integer(0, MAX_RELATIVE),
    "cleanup.policy": _some_of("delete", "compact"),
    "retention.ms": _integer(-1),
    "retention.bytes": _integer(_LEAST),
    "delete.retention.ms": _integer(0),
    "min.cleanable.dirty.ratio": _ratio,
    "min.compaction.lag.ms": _integer(0),
    "max.compaction.lag.ms": _integer(1),
    "message.timestamp.type": _choice(CREATE_TIME, APPEND_TIME),
    "message.timestamp.before.max.ms": _integer(0),
    "message.timestamp.after.max.ms": _integer(0),
    "compression.type": _choice("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
    "compression.gzip.level": _gzip_level,
    "compression.lz4.level": _integer(1, 17),
    "compression.zstd.level": _integer(-131072, 22),
    "segment.jitter.ms": _integer(0),
    "segment.index.bytes": _integer(4, _MOST_INT),
    "flush.messages": _integer(1),
    "flush.ms": _integer(0),
    "file.delete.delay.ms": _integer(0),
    "preallocate": _boolean,
    "min.insync.replicas": _integer(1, _MOST_INT),
    "unclean.leader.election.enable": _boolean,
    "remote.storage.enable": _boolean,
    "remote.log.copy.disable": _boolean,
    "remote.log.delete.on.disable": _boolean,
    "local.retention.ms": _integer(-2),
    "local.retention.bytes": _integer(-2),
    "leader.replication.throttled.replicas": _replicas,
    "follower.replication.throttled.replicas": _replicas,
    DIALECT: _choice("none", INT_HEADERS),
}
