"""The topic configurations the broker implements: name, meaning, default, and what values are taken.

A name or a value that is not implemented is refused rather than ignored: a topic never promises what it does not do.
    Names,
meanings and defaults are Kafka's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields

from tagwire.errors import ConfigError
from tagwire.records.files.offset_index import MAX_RELATIVE

DAY_MS = 86_400_000
_INTEGER = re.compile(r"-?[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """How one topic keeps its records.

    Attributes:
        segment_bytes: a segment is closed before it would grow past this.
        index_interval_bytes: how many bytes are added between two index entries.
        max_message_bytes: the largest batch that is accepted.
        retention_ms: a closed segment is deleted when its newest record is older than this; -1 keeps all.
        retention_bytes: the oldest segments are deleted while the rest still holds at least this; -1 keeps all.
        message_timestamp_type: whose clock dates a record, "CreateTime" (the producer's) or "LogAppendTime" (the
            broker's).
        compression_type: "producer", batches are stored as they come.
        cleanup_policy: "delete", by age and size.
    """

    segment_bytes: int = 1 << 30
    index_interval_bytes: int = 4096
    max_message_bytes: int = 1_048_588
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = -1
    message_timestamp_type: str = "CreateTime"
    compression_type: str = "producer"
    cleanup_policy: str = "delete"

    @classmethod
    def of(cls, configs: Mapping[str, str | None]) -> TopicConfig:
        """The configuration that `configs`, by Kafka's names, ask for; what they leave out has its default.

        Raises:
            ConfigError: a name or value that is not implemented; the text says which, and what is.
        """
        cls.check_names(configs)
        values: dict[str, int | str] = {}
        for name, value in configs.items():
            if value is None:
                raise ConfigError(f"topic configuration {name} has no value")
            try:
                values[name.replace(".", "_")] = _ACCEPTED[name](value)
            except ValueError as error:
                raise ConfigError(f"topic configuration {name}={value} is not implemented: {error}") from None
        return cls(**values)  # type: ignore[arg-type]

    @staticmethod
    def check_names(names: Iterable[str]) -> None:
        """Raises ConfigError for a name that is not implemented, which says what is."""
        for name in names:
            if name not in _ACCEPTED:
                raise ConfigError(f"topic configuration {name} is not implemented; these are: {', '.join(_ACCEPTED)}")

    def as_strings(self) -> dict[str, str]:
        """Every configuration by Kafka's name."""
        return {field.name.replace("_", "."): str(getattr(self, field.name)) for field in fields(self)}


def _integer(lowest: int, highest: int = 2**63 - 1) -> Callable[[str], int]:
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


_ACCEPTED: dict[str, Callable[[str], int | str]] = {
    "segment.bytes": _integer(1024, MAX_RELATIVE),
    "index.interval.bytes": _integer(0, MAX_RELATIVE),
    "max.message.bytes": _integer(0, MAX_RELATIVE),
    "retention.ms": _integer(-1),
    "retention.bytes": _integer(-1),
    "message.timestamp.type": _choice("CreateTime", "LogAppendTime"),
    "compression.type": _choice("producer"),
    "cleanup.policy": _choice("delete", "compact"),
}
