"""`<offset>.snapshot`: what was known of each producer before an offset: its epoch, last sequence, open transaction.

int16 version 1, then the message ProducerSnapshot, whose first field is the CRC-32C of all that follows it
(docs/log-files.md#producer-snapshots).
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from tagwire.errors import CorruptRecordError, DecodeError, UnsupportedVersionError
from tagwire.kernel.checksum import checksum

if TYPE_CHECKING:
    from tagwire import messages

VERSION = 1
_PREFIX = Struct(">hI")


def read_producer_snapshot(data: bytes) -> messages.ProducerSnapshot:
    """The snapshot in a file.

    Raises:
        DecodeError: cut short, or not such a message; CorruptRecordError where only its checksum fails.
        UnsupportedVersionError: another version than 1.
    """
    from tagwire import messages

    if len(data) < _PREFIX.size:
        raise DecodeError(f"{len(data)} bytes are less than the {_PREFIX.size} that a producer snapshot begins with")
    version, crc = _PREFIX.unpack_from(data)
    if version != VERSION:
        raise UnsupportedVersionError(f"a producer snapshot of version {version} is not read, only {VERSION}")
    actual = checksum(data[_PREFIX.size :])
    if actual != crc:
        raise CorruptRecordError(f"checksum is {actual:08x}, the file says {crc:08x}", path="ProducerSnapshot")
    return messages.ProducerSnapshot.decode(data[2:], VERSION)


def format_producer_snapshot(snapshot: messages.ProducerSnapshot) -> bytes:
    """A snapshot's file; its checksum is computed here. Raises EncodeError as `encode` does."""
    body = snapshot.encode(VERSION)[_PREFIX.size - 2 :]
    return _PREFIX.pack(VERSION, checksum(body)) + body
