"""The last offset of each key while a log is compacted, in bounded memory."""

from __future__ import annotations

from hashlib import blake2b

ENTRY_BYTES = 200
"""About what one entry takes: its digest, its offset, and their place in a table that may be half empty."""

_DIGEST_SIZE = 16


class OffsetMap:
    """The last offset of each key, by a digest of it: short keys take their own bytes, long ones no more.

    Attributes:
        next_offset: one past the last offset that the map knows of.
    """

    def __init__(self, max_bytes: int) -> None:
        """A map that takes about `max_bytes` at most, and holds one key at least."""
        self._most = max(max_bytes // ENTRY_BYTES, 1)
        self._offsets: dict[bytes, int] = {}
        self.next_offset = 0

    def __len__(self) -> int:
        return len(self._offsets)

    def room(self) -> int:
        """How many keys still fit in."""
        return self._most - len(self._offsets)

    def put(self, key: bytes, offset: int) -> None:
        """Note that a key is at `offset`, which is past all that were noted before."""
        self._offsets[_digest(key)] = offset

    def get(self, key: bytes) -> int:
        """The last offset of a key; -1 for one that is not in the map."""
        return self._offsets.get(_digest(key), -1)


def _digest(key: bytes) -> bytes:
    # A key of fewer bytes than a digest has can never be taken for one.
    return key if len(key) < _DIGEST_SIZE else blake2b(key, digest_size=_DIGEST_SIZE).digest()
