"""Dating a batch by the broker's clock, for topics with message.timestamp.type=LogAppendTime.

Timestamp type and greatest timestamp stand in the batch's header and under its checksum; the records stay as they
are, and readers give each of them the header's timestamp. Source: facts/kafka_protocol.md 5.3.
"""

from __future__ import annotations

from struct import Struct

from crc32c import crc32c

from tagwire.records.batch import APPEND_TIME, CRC_AT, CRC_FROM

_ATTRIBUTES = Struct(">h")
_ATTRIBUTES_AT = 21
_TIMESTAMP = Struct(">q")
_MAX_TIMESTAMP_AT = 35
_CRC = Struct(">I")


def stamp_append_time(head: bytearray, rest: memoryview, timestamp: int) -> None:
    """Give a batch the timestamp (ms) at which it was appended. `head` is its header, `rest` what follows."""
    (attributes,) = _ATTRIBUTES.unpack_from(head, _ATTRIBUTES_AT)
    _ATTRIBUTES.pack_into(head, _ATTRIBUTES_AT, attributes | APPEND_TIME)
    _TIMESTAMP.pack_into(head, _MAX_TIMESTAMP_AT, timestamp)
    _CRC.pack_into(head, CRC_AT, crc32c(rest, crc32c(head[CRC_FROM:])))
