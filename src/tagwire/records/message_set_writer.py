"""Records to a message set: magic 0 and 1, and the int-headers format. Layouts as in `message_set`."""

from __future__ import annotations

import operator
import zlib
from collections.abc import Sequence
from struct import Struct

from tagwire.errors import EncodeError
from tagwire.kernel.message_sets import HAS_HEADERS, integer
from tagwire.kernel.record_writing import as_bytes, as_pair
from tagwire.records.batch import APPEND_TIME, CODEC_MASK
from tagwire.records.compression import CODECS, compress
from tagwire.records.message_set import TIMESTAMP
from tagwire.records.record import Record

_HEAD = Struct(">qiI")
_MAGIC_AND_ATTRIBUTES = Struct(">bb")
_LENGTH = Struct(">i")
_NULL = _LENGTH.pack(-1)
_MAX_SIZE = (1 << 31) - 1
_MAX_TIMESTAMP = (1 << 63) - 1


def write_message_set(
    rows: Sequence[Record], offsets: Sequence[int], magic: int, attributes: int, level: int | None
) -> bytes:
    """The message set of `rows` at `offsets`, which ascend; wrapped where `attributes` name a codec.

    With LogAppendTime among the attributes every message has the greatest timestamp. Magic 2 is the int-headers format.
    Raises EncodeError naming the record that cannot be written.
    """
    times = [_timestamp(row.timestamp, index) for index, row in enumerate(rows)]
    latest = max(times)
    if attributes & APPEND_TIME:
        times = [latest] * len(times)
    codec = CODECS[attributes & CODEC_MASK]
    # relative offsets count from the first message, and begin with magic 1
    shift = offsets[0] if codec != "none" and magic else 0
    plain = attributes & ~CODEC_MASK
    messages = b"".join(
        _entry(
            offset - shift,
            magic,
            plain,
            time,
            _bytes(row.key, index, "key"),
            _headers(row, index, magic),
            _bytes(row.value, index, "value"),
        )
        for index, (row, offset, time) in enumerate(zip(rows, offsets, times))
    )
    if codec == "none":
        return _bounded(messages)
    return _entry(
        offsets[-1], magic, attributes, latest, None, b"", compress(codec, _bounded(messages), level, magic=magic)
    )


def header_map(pairs: Sequence[tuple[int, bytes]]) -> bytes:
    """Headers of the int-headers format, with their length before them; keys are of 32 bits, and each is there once.

    They are written by ascending key, whatever their order. Raises EncodeError for a key that is not such an int or
    stands twice, and for a value that is null.
    """
    found: dict[int, bytes] = {}
    for pair in pairs:
        key, value = as_pair(pair)
        if not isinstance(key, int) or isinstance(key, bool):
            raise EncodeError(f"header key {key!r} is {type(key).__name__}, not int")
        if not -(1 << 31) <= key < 1 << 31:
            raise EncodeError(f"header key {key} has more than 32 bits")
        if key in found:
            raise EncodeError(f"header key {key} stands twice")
        if value is None:
            raise EncodeError(f"the value of header {key} is null")
        found[key] = value if type(value) is bytes else as_bytes(value, f"the value of header {key}")
    body = integer(len(found)) + b"".join(
        part for key in sorted(found) for part in (integer(key), integer(len(found[key])), found[key])
    )
    return integer(len(body)) + body


def _headers(row: Record, index: int, magic: int) -> bytes:
    if not row.headers:
        return b""
    if magic < 2:
        raise EncodeError(f"record {index}: message format {magic} has no headers")
    try:
        return header_map(row.headers)
    except EncodeError as error:
        raise EncodeError(f"record {index}: {error}") from None


def _entry(
    offset: int, magic: int, attributes: int, timestamp: int, key: bytes | None, headers: bytes, value: bytes | None
) -> bytes:
    body = b"".join(
        (
            _MAGIC_AND_ATTRIBUTES.pack(magic, attributes | (HAS_HEADERS if headers else 0)),
            TIMESTAMP.pack(timestamp) if magic else b"",
            _NULL if key is None else _LENGTH.pack(len(key)) + key,
            headers,
            _NULL if value is None else _LENGTH.pack(len(value)) + value,
        )
    )
    return _HEAD.pack(offset, _LENGTH.size + len(body), zlib.crc32(body)) + body


def _bounded(messages: bytes) -> bytes:
    if len(messages) > _MAX_SIZE:
        raise EncodeError(f"a message set of {len(messages)} bytes passes the format's {_MAX_SIZE}")
    return messages


def _bytes(data: object, index: int, what: str) -> bytes | None:
    if data is None or type(data) is bytes:
        return data
    return as_bytes(data, f"record {index}: {what}")


def _timestamp(stamp: object, index: int) -> int:
    try:
        timestamp = operator.index(stamp)  # type: ignore[arg-type]
    except TypeError:
        timestamp = -2
    if not -1 <= timestamp <= _MAX_TIMESTAMP:
        raise EncodeError(f"record {index}: timestamp {stamp!r} is not -1 (none) or 0..2^63-1 ms")
    return timestamp
