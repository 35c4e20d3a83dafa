"""The topic configurations the broker implements: name, meaning, default, and what values are taken.

A name or a value that is not implemented is refused rather than ignored: a topic never promises what it does not do.
    Names,
meanings and defaults are Kafka's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields

from tagwire.errors import ConfigError, Error, KafkaError
from tagwire.records.entries import INT_HEADERS
from tagwire.records.files.offset_index import MAX_RELATIVE

DAY_MS = 86_400_000
DIALECT = "tagwire.record.dialect"
_MOST = 2**63 - 1
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_RATIO = re.compile(r"[0-9]{1,19}(\.[0-9]{1,19})?")


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """How one topic keeps its records.

    Attributes:
        segment_bytes: a segment is closed before it would grow past this.
        segment_ms: a segment is closed this long after its first batch was written.
        index_interval_bytes: how many bytes are added between two index entries.
        max_message_bytes: the largest batch that is accepted.
        cleanup_policy: "delete", by age and size; "compact", keeping of each key the last record; or both, in a list.
        retention_ms: a closed segment is deleted when its newest record is older than this; -1 keeps all.
        retention_bytes: the oldest segments are deleted while the rest still holds at least this; -1 keeps all.
        delete_retention_ms: how long compaction keeps records that delete a key, so that readers learn of it.
        min_cleanable_dirty_ratio: which part of a log is not compacted yet when it is compacted again.
        min_compaction_lag_ms: a segment is not compacted before its newest record is older than this.
        max_compaction_lag_ms: a log is compacted once a record that was not is older than this.
        message_timestamp_type: whose clock dates a record, "CreateTime" (the producer's) or "LogAppendTime" (the
            broker's).
        compression_type: "producer", batches are stored as they come; or what they are compressed with.
        tagwire_record_dialect: the format of what is stored, "none" for record batches; set when a topic is created.
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
    message_timestamp_type: str = "CreateTime"
    compression_type: str = "producer"
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

    @classmethod
    def of(cls, configs: Mapping[str, str | None]) -> TopicConfig:
        """The configuration that `configs`, by Kafka's names, ask for; what they leave out has its default.

        Raises:
            ConfigError: a name or value that is not implemented; the text says which, and what is.
        """
        cls.check_names(configs)
        values: dict[str, int | float | str] = {}
        for name, value in configs.items():
            if value is None:
                raise ConfigError(f"topic configuration {name} has no value")
            try:
                values[name.replace(".", "_")] = _ACCEPTED[name](value)
            except ValueError as error:
                raise ConfigError(f"topic configuration {name}={value} is not implemented: {error}") from None
        config = cls(**values)  # type: ignore[arg-type]
        if config.dialect and config.compacts:
            raise ConfigError(f"a topic of the record dialect {config.dialect} cannot be compacted")
        if config.dialect and config.compression_type != "producer":
            raise ConfigError(f"a topic of the record dialect {config.dialect} keeps the compression of its producers")
        return config

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
        """Raises ConfigError for a name that is not implemented, which says what is."""
        for name in names:
            if name not in _ACCEPTED:
                raise ConfigError(f"topic configuration {name} is not implemented; these are: {', '.join(_ACCEPTED)}")

    def as_strings(self) -> dict[str, str]:
        """Every configuration by Kafka's name."""
        return {field.name.replace("_", "."): str(getattr(self, field.name)) for field in fields(self)}


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


def _ratio(value: str) -> float:
    if not _RATIO.fullmatch(value) or float(value) > 1:
        raise ValueError("it is not a number between 0 and 1")
    return float(value)


def _some_of(*values: str) -> Callable[[str], str]:
    def accept(value: str) -> str:
        given = [part.strip() for part in value.split(",")]
        if not set(given) <= set(values) or len(set(given)) < len(given):
            raise ValueError(f"it is not one or more of {', '.join(values)}")
        return ",".join(given)

    return accept


_ACCEPTED: dict[str, Callable[[str], int | float | str]] = {
    "segment.bytes": _integer(1024, MAX_RELATIVE),
    "segment.ms": _integer(1),
    "index.interval.bytes": _integer(0, MAX_RELATIVE),
    "max.message.bytes": _integer(0, MAX_RELATIVE),
    "cleanup.policy": _some_of("delete", "compact"),
    "retention.ms": _integer(-1),
    "retention.bytes": _integer(-1),
    "delete.retention.ms": _integer(0),
    "min.cleanable.dirty.ratio": _ratio,
    "min.compaction.lag.ms": _integer(0),
    "max.compaction.lag.ms": _integer(1),
    "message.timestamp.type": _choice("CreateTime", "LogAppendTime"),
    "compression.type": _choice("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
    DIALECT: _choice("none", INT_HEADERS),
}
