"""The key space of int header keys (KIP-82): who may use which keys. Source: docs/dialects.md#the-key-space.

Two schemes: "new", the draft's hexadecimal ranges, and "old", its earlier allocation by encoded size. In both, a key
belongs to one space: kafka (the open-source project), local (one organisation), open (anybody, unregistered by a
central party, or a vendor's in the old scheme), testing, or reserved. In the new scheme a space has parts by use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from tagwire.errors import ConfigError, EncodeError
from tagwire.kernel.record_objects import is_int_key

RESERVED: Final = "reserved"
USES: Final = ("infrastructure", "client", "stack/middleware", "application", "user")


class HeaderKeys:
    """The keys of Kafka's own headers, in both schemes."""

    CLIENT_ID: Final = 1
    CLUSTER_ID: Final = 2
    CORRELATION_ID: Final = 3


class KeyRange(NamedTuple):
    """Keys from `first` to `last`, both included, of one space; `use` is "" where the space has no parts."""

    first: int
    last: int
    space: str
    use: str = ""

    @property
    def namespace(self) -> str:
        """What `namespace_of` says of its keys."""
        return f"{self.space}/{self.use}" if self.use else self.space


def _parts(first: int, space: str) -> list[KeyRange]:
    parts = [KeyRange(first + (part << 16), first + (part << 16) + 0xFFFF, space, use) for part, use in enumerate(USES)]
    return [*parts, KeyRange(parts[-1].last + 1, first + 0xFFFFF, RESERVED)]


RANGES: Final[Mapping[str, tuple[KeyRange, ...]]] = {
    "new": (
        KeyRange(-(1 << 31), -1, RESERVED),
        KeyRange(0, 0xFFFF, "kafka"),
        KeyRange(0x10000, 0xFFFFF, RESERVED),
        *_parts(0x100000, "local"),
        *_parts(0x200000, "open"),
        *_parts(0x300000, "testing"),
        KeyRange(0x400000, (1 << 31) - 1, RESERVED),
    ),
    "old": (
        KeyRange(-(1 << 31), -129, "testing"),
        KeyRange(-128, -1, "local"),
        KeyRange(0, 255, "kafka"),
        KeyRange(256, (1 << 31) - 1, "open"),
    ),
}
"""Every key of 32 bits, per scheme, in ascending order."""

SPACES: Final = ("kafka", "local", "open", "testing")


def ranges_of(scheme: str) -> tuple[KeyRange, ...]:
    """The ranges of a scheme, "new" or "old". Raises ConfigError for another."""
    try:
        return RANGES[scheme]
    except KeyError:
        raise ConfigError(f"header key scheme {scheme!r} is unknown; allowed: {', '.join(RANGES)}") from None


def range_of(key: int, scheme: str = "new") -> KeyRange:
    """The range that a key stands in. Raises EncodeError for what is no 32-bit integer, ConfigError for `scheme`."""
    ranges = ranges_of(scheme)
    if not is_int_key(key):
        raise EncodeError(f"header key {key!r} is not a 32-bit integer")
    return next(found for found in ranges if key <= found.last)


def namespace_of(key: int, scheme: str = "new") -> str:
    """Whose key it is: such as "kafka", "local/application" or "reserved". Raises as `range_of`."""
    return range_of(key, scheme).namespace
