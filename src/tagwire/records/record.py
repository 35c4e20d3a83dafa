"""A record as a Python object."""

from __future__ import annotations

from collections.abc import Sequence

Headers = Sequence[tuple[str, bytes | None]]


class Record:
    """One record of a topic.

    Attributes:
        key, value: bytes, or None where there is none (a None value deletes the key in a compacted topic).
        headers: (key, value) pairs in order; keys may repeat. Of a record that was read: a tuple.
        timestamp: milliseconds since 1970 UTC; -1 for none.
        offset: position in its partition; -1 until it is written to one.
    """

    __slots__ = ("headers", "key", "offset", "timestamp", "value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        timestamp: int = -1,
        offset: int = -1,
    ) -> None:
        self.key = key
        self.value = value
        self.headers = headers
        self.timestamp = timestamp
        self.offset = offset

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return (self.key, self.value, self.timestamp, self.offset) == (
            other.key,
            other.value,
            other.timestamp,
            other.offset,
        ) and list(self.headers) == list(other.headers)

    def __repr__(self) -> str:
        return (
            f"Record(key={self.key!r}, value={self.value!r}, headers={self.headers!r}, "
            f"timestamp={self.timestamp}, offset={self.offset})"
        )
