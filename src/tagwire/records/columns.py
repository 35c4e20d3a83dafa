"""Which columns records have as a table. They are told here without Arrow, which only the table itself needs."""

from __future__ import annotations

from collections.abc import Sequence

from tagwire.errors import ConfigError

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestamp_type", "headers")
"""Every column there is; `arrow_schema` has their types."""

DEFAULT_COLUMNS = ("offset", "timestamp", "key", "value", "headers")
TIMESTAMP_UNITS = ("ms", "us")


def check_columns(columns: Sequence[str], timestamp_unit: str) -> None:
    """Raises ConfigError for an unknown or repeated column, for none, or an unknown unit."""
    if timestamp_unit not in TIMESTAMP_UNITS:
        raise ConfigError(f"timestamp unit {timestamp_unit!r} is unknown; allowed: {', '.join(TIMESTAMP_UNITS)}")
    if not columns:
        raise ConfigError(f"no column is chosen; there are {', '.join(COLUMNS)}")
    for position, name in enumerate(columns):
        if name not in COLUMNS:
            raise ConfigError(f"column {name!r} is unknown; allowed: {', '.join(COLUMNS)}")
        if name in columns[:position]:
            raise ConfigError(f"column {name!r} is chosen twice")
