"""Records to a message set: magic 0 and 1, and the int-headers format. Layouts as in `message_set`."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from tagwire.errors import EncodeError
from tagwire.kernel import record_writing as kernel
from tagwire.kernel.message_set_writing import HeadersOf, messages_of
from tagwire.kernel.message_sets import integer
from tagwire.kernel.record_objects import text
from tagwire.kernel.record_writing import as_bytes, as_headers, as_pair
from tagwire.records.batch import APPEND_TIME, CODEC_MASK
from tagwire.records.compression import CODECS, compress
from tagwire.records.message_set import MAX_OFFSET, TIMESTAMP
from tagwire.records.record import HeaderKey, Headers, Record
from tagwire.records.register import HeaderRegister, decimal_key

_HEAD = Struct(">qiI")
_MAGIC_AND_ATTRIBUTES = Struct(">bb")
_LENGTH = Struct(">i")
_NULL = _LENGTH.pack(-1)
_MAX_SIZE = (1 << 31) - 1
_UNBOUNDED = (1 << 62) - 1


class SetFormat(NamedTuple):
    """Which message set is written: magic 2 is the int-headers format, whose string keys `register` knows."""

    magic: int
    attributes: int
    level: int | None = None
    register: HeaderRegister | None = None


class Encoded(NamedTuple):
    """Records that are encoded as those of a batch: their bytes, number, and what their deltas are relative to.

    `latest`: the time of all of them where they have the time at which they were appended.
    """

    payload: memoryview
    number: int
    base_offset: int
    base_timestamp: int
    latest: int


def write_message_set(
    rows: Sequence[Record], offsets: Sequence[int], form: SetFormat, *, as_read: bool = False
) -> bytes:
    """The message set of `rows` at `offsets`, which ascend; wrapped where the attributes name a codec.

    With LogAppendTime among the attributes every message has the greatest timestamp. `as_read`: timestamps are what
    they were read as, below -1 too. Raises EncodeError naming the record that cannot be written.
    """
    ready = [_ready(row, f"record {index}", form) for index, row in enumerate(rows)]
    deltas = [offset - offsets[0] for offset in offsets]
    payload, base_timestamp, latest = kernel.encode(list(rows), deltas, bare=True, as_read=as_read)
    encoded = Encoded(memoryview(payload), len(rows), offsets[0], base_timestamp, latest)
    return _written(encoded, form, _UNBOUNDED, ready, None)[0]


def transcribe(encoded: Encoded, form: SetFormat, most_bytes: int, first: int) -> tuple[bytes, int]:
    """The message set of `encoded` records, and how many it has: as many as take no more than `most_bytes` before
    compression, one in any case.

    Raises EncodeError naming the row that cannot be written; `first` is the number of the first.
    """

    def headers_of(index: int, pairs: list[tuple[bytes, bytes | None]]) -> bytes:
        spelled = [(text(key), value) for key, value in pairs]
        return _headers(spelled, f"row {first + index}", form, decimal=True)

    return _written(encoded, form, most_bytes, None, headers_of)


def _written(
    encoded: Encoded, form: SetFormat, most_bytes: int, ready: list[bytes] | None, headers_of: HeadersOf | None
) -> tuple[bytes, int]:
    if not 0 <= encoded.base_offset <= MAX_OFFSET - encoded.number:
        raise EncodeError(f"{encoded.number} offsets from {encoded.base_offset} on are out of range")
    codec = CODECS[form.attributes & CODEC_MASK]
    # relative offsets count from the first message, and begin with magic 1
    relative = codec != "none" and form.magic > 0
    messages, made, last, greatest = messages_of(
        encoded.payload,
        encoded.number,
        0 if relative else encoded.base_offset,
        encoded.base_timestamp,
        encoded.latest,
        bool(form.attributes & APPEND_TIME),
        form.magic,
        form.attributes & ~CODEC_MASK,
        most_bytes,
        ready,
        headers_of,
    )
    if len(messages) > _MAX_SIZE:
        raise EncodeError(f"a message set of {len(messages)} bytes passes the format's {_MAX_SIZE}")
    if codec == "none":
        return bytes(messages), made
    wrapped = compress(codec, messages, form.level, magic=form.magic)
    return _wrapper(last + encoded.base_offset if relative else last, form, greatest, wrapped), made


def _ready(row: Record, of: str, form: SetFormat) -> bytes:
    headers = as_headers(row.headers, of)
    return _headers(headers, of, form) if headers else b""


def _headers(headers: Headers, of: str, form: SetFormat, *, decimal: bool = False) -> bytes:
    """The headers of the record `of` that name, as they are written; `decimal`: an int key may come as its number."""
    if form.magic < 2:
        raise EncodeError(f"{of}: message format {form.magic} has no headers")
    if form.register is not None:
        headers = form.register.to_ints(headers, of=of)
    elif decimal:
        headers = [(_number(key), value) for key, value in headers]
    try:
        return header_map(headers)
    except EncodeError as error:
        raise EncodeError(f"{of}: {error}") from None


def _number(key: HeaderKey) -> HeaderKey:
    number = decimal_key(key) if isinstance(key, str) else None
    return key if number is None else number


def header_map(pairs: Headers) -> bytes:
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


def _wrapper(offset: int, form: SetFormat, timestamp: int, value: bytes | bytearray) -> bytes:
    body = b"".join(
        (
            _MAGIC_AND_ATTRIBUTES.pack(form.magic, form.attributes),
            TIMESTAMP.pack(timestamp) if form.magic else b"",
            _NULL,
            _LENGTH.pack(len(value)),
            value,
        )
    )
    return _HEAD.pack(offset, _LENGTH.size + len(body), zlib.crc32(body)) + body
