"""Records as objects: `Record`, and the records of a batch (magic 2) from bytes.

Layout and checks are those of the records kernel. Every record of a batch is checked before the first one is made;
then each is made when it is asked for, and its headers, offset and timestamp when they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeGuard

import cython

from tagwire.errors import EncodeError, ReadOnlyError

if cython.compiled:
    from cython.cimports.libc.string import memcmp
    from cython.cimports.tagwire.kernel.memory import PyUnicode_DecodeUTF8, untrack
    from cython.cimports.tagwire.kernel.record_objects import new_bytes, read_in_place
    from cython.cimports.tagwire.kernel.records import header_at, record_at, shifted
else:
    from tagwire.kernel.records import header_at, record_at, shifted

from tagwire.kernel.record_checking import check

COMPILED: bool = cython.compiled

HeaderKey = int | str
Headers = Sequence[tuple[HeaderKey, bytes | None]]

_ENCODED_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_NONE: tuple = ()
_KEPT = object()


def text(data: bytes) -> str:
    """UTF-8 with U+FFFD for each malformed sequence, as Java counts them: an encoded surrogate is one, not three."""
    return _ENCODED_SURROGATE.sub(b"\xef\xbf\xbd", data).decode("utf-8", "replace")


def is_int_key(key: object) -> TypeGuard[int]:
    """Whether `key` can be a header key of the int-headers format: a signed 32-bit integer."""
    return isinstance(key, int) and not isinstance(key, bool) and -(1 << 31) <= key < 1 << 31


class MalformedKey(str):
    """A header key that is not UTF-8: as text, U+FFFD stands where it is malformed; `raw` is what was read.

    Where a header with it is written, `raw` is what is written.
    """

    __slots__ = ("raw",)
    raw: bytes

    def __new__(cls, raw: bytes) -> MalformedKey:
        key = super().__new__(cls, text(raw))
        key.raw = raw
        return key

    def __reduce__(self) -> tuple[Any, ...]:
        return MalformedKey, (self.raw,)


@cython.cfunc
@cython.inline
def _bytes_at(src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, size: cython.longlong) -> object:
    """The `size` bytes at `at`; None for -1."""
    if size < 0:
        return None
    if cython.compiled:
        return new_bytes(src + at, size)
    else:
        return bytes(src[at : at + size])


@cython.cfunc
def _key_at(src: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, size: cython.longlong) -> object:
    try:
        if cython.compiled:
            return PyUnicode_DecodeUTF8(cython.cast(cython.p_char, src + at), size, cython.NULL)
        else:
            return str(src[at : at + size], "utf-8")
    except UnicodeDecodeError:
        return MalformedKey(_bytes_at(src, at, size))


@cython.freelist(64)
@cython.no_gc
@cython.cclass
class Record:
    """One record of a topic. Its fields do not change; `set_header` adds to one that was made, not read.

    A record that was read builds its headers when they are asked for, and keeps the records of its batch (their bytes,
    decompressed) in memory until it is gone itself; `replace()` makes a record that keeps only its own.

    Args:
        key, value: bytes, or None where there is none (a None value deletes the key in a compacted topic).
        headers: (key, value) pairs in order; keys may repeat. Keys are str, or int in the int-headers format.
        timestamp: milliseconds since 1970 UTC; -1 for none.
        offset: position in its partition; -1 until it is written to one.
    """

    _key: object
    _value: object
    _headers: object
    _stated: tuple  # timestamp, offset and topic partition of a record that is of no batch
    _batch: BatchRecords
    _time_delta: cython.longlong
    _offset_delta: cython.longlong
    _headers_at: cython.Py_ssize_t
    _header_count: cython.Py_ssize_t
    _consumed: cython.bint

    __hash__ = None  # type: ignore[assignment]

    @cython.annotation_typing(False)
    def __init__(
        self,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        timestamp: int = -1,
        offset: int = -1,
    ) -> None:
        self._key = key
        self._value = value
        self._headers = headers
        self._stated = (timestamp, offset, None)
        self._batch = None
        self._consumed = False

    @property
    @cython.annotation_typing(False)
    def key(self) -> bytes | None:
        return self._key

    @property
    @cython.annotation_typing(False)
    def value(self) -> bytes | None:
        return self._value

    @property
    @cython.annotation_typing(False)
    def timestamp(self) -> int:
        """Milliseconds since 1970 UTC; -1 for none."""
        if self._batch is None:
            return self._stated[0]
        if self._batch.appended:
            return self._batch.append_timestamp
        return shifted(self._batch.base_timestamp, self._time_delta)

    @property
    @cython.annotation_typing(False)
    def offset(self) -> int:
        """Position in its partition; -1 until it is written to one."""
        return self._stated[1] if self._batch is None else self._batch.base_offset + self._offset_delta

    @property
    @cython.annotation_typing(False)
    def headers(self) -> Headers:
        """(key, value) pairs in order. Of a record that was read: a tuple, its text keys str (see `MalformedKey`)."""
        if self._headers is None and self._batch is not None:
            self._headers = _headers_of(self._batch, self._headers_at, self._header_count)
        return self._headers

    @property
    def raw_headers(self) -> tuple[tuple[int | bytes, bytes | None], ...]:
        """The headers with text keys as the bytes that were read or will be written."""
        return tuple([(_raw(key), value) for key, value in self.headers])

    @property
    def topic(self) -> str | None:
        """Where it was read, by a reader of topics; None otherwise."""
        topic_partition = _partition_of(self)
        return None if topic_partition is None else topic_partition[0]

    @property
    def partition(self) -> int:
        """Where it was read, by a reader of topics; -1 otherwise."""
        topic_partition = _partition_of(self)
        return -1 if topic_partition is None else topic_partition[1]

    @property
    def consumed(self) -> bool:
        """Whether it was read, and therefore keeps its headers as they are."""
        return self._consumed

    @cython.annotation_typing(False)
    def get_header(self, key: HeaderKey) -> bytes | None:
        """The value of the last header with this key; None where there is none, or its value is null."""
        for name, value in reversed(self.headers):
            if name == key:
                return value
        return None

    @cython.annotation_typing(False)
    def set_header(self, key: HeaderKey, value: bytes | None) -> None:
        """Makes `value` the only header of this key: where its first one stands, else after all others.

        Raises:
            EncodeError: the key is neither str nor a 32-bit int, or the value neither bytes nor None.
            ReadOnlyError: the record was read.
        """
        if self._consumed:
            raise ReadOnlyError(
                f"header {key!r} of the record at offset {self.offset}: a record that was read keeps its headers; "
                "record.replace() makes a copy that takes others"
            )
        if not isinstance(key, str) and not is_int_key(key):
            raise EncodeError(f"header key {key!r} is neither text nor a 32-bit integer")
        if value is not None and not isinstance(value, (bytes, bytearray, memoryview)):
            raise EncodeError(f"value of header {key!r} is {type(value).__name__}, not bytes or None")
        pairs = []
        stands = False
        for pair in self.headers:
            if pair[0] != key:
                pairs.append(pair)
            elif not stands:
                pairs.append((key, value))
                stands = True
        if not stands:
            pairs.append((key, value))
        self._headers = tuple(pairs)

    def replace(
        self,
        *,
        key: Any = _KEPT,
        value: Any = _KEPT,
        headers: Any = _KEPT,
        timestamp: Any = _KEPT,
        offset: Any = _KEPT,
    ) -> Record:
        """A record of its own with these fields, the others as they are here; its headers may be set."""
        fields = (
            self._key if key is _KEPT else key,
            self._value if value is _KEPT else value,
            tuple(self.headers) if headers is _KEPT else headers,
            self.timestamp if timestamp is _KEPT else timestamp,
            self.offset if offset is _KEPT else offset,
        )
        return _restored(Record, fields, _partition_of(self), False)

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

    def __reduce__(self) -> tuple[Any, ...]:
        fields = (self._key, self._value, self.headers, self.timestamp, self.offset)
        return _restored, (type(self), fields, _partition_of(self), self._consumed)


if cython.compiled:
    _first, _second = object(), object()
    _sample = Record(_first, _second)
    read_in_place(_sample, b"key", b"bytes, or None where there is none", _first)
    read_in_place(_sample, b"value", b"bytes, or None where there is none", _second)


@cython.annotation_typing(False)
def _restored(
    kind: type[Record], fields: tuple[Any, ...], topic_partition: tuple[str, int] | None, consumed: bool
) -> Record:
    record = cython.cast(Record, kind(*fields))
    record._stated = (record._stated[0], record._stated[1], topic_partition)
    record._consumed = consumed
    return record


@cython.annotation_typing(False)
def consumed_record(
    key: bytes | None,
    value: bytes | None,
    headers: tuple[tuple[HeaderKey, bytes | None], ...],
    timestamp: int,
    offset: int,
) -> Record:
    """A record that was read otherwise than through `objects`, with fields that the caller has checked."""
    return _restored(Record, (key, value, headers, timestamp, offset), None, True)


def placed(record: Record, topic_partition: object) -> Record:
    """`record`, which was read from `topic_partition`, as were all of its batch."""
    if record._batch is None:
        record._stated = (record._stated[0], record._stated[1], topic_partition)
    else:
        record._batch.partition = topic_partition
    return record


@cython.cfunc
def _partition_of(record: Record) -> object:
    return record._stated[2] if record._batch is None else record._batch.partition


def with_headers(record: Record, headers: tuple[tuple[HeaderKey, Any], ...]) -> Record:
    """A copy of `record`, consumed as it is and of the same partition, with these headers."""
    return _restored(
        Record,
        (record.key, record.value, headers, record.timestamp, record.offset),
        _partition_of(record),
        record._consumed,
    )


def _raw(key: HeaderKey) -> int | bytes:
    if isinstance(key, int):
        return key
    return key.raw if isinstance(key, MalformedKey) else key.encode()


@cython.no_gc
@cython.cclass
class BatchRecords:
    """The checked records of a batch, made one after the other; they keep it for what they make later."""

    source: cython.const[cython.uchar][::1]
    at: cython.Py_ssize_t
    left: cython.longlong
    base_offset: cython.longlong
    base_timestamp: cython.longlong
    append_timestamp: cython.longlong
    appended: cython.bint
    partition: object
    key_of: object
    names: list
    names_at: cython.Py_ssize_t[16]
    names_size: cython.longlong[16]

    def __iter__(self) -> Iterator[Record]:
        return self

    @cython.boundscheck(False)
    @cython.wraparound(False)
    @cython.initializedcheck(False)
    def __next__(self) -> Record:
        src: cython.pointer[cython.const[cython.uchar]]
        past: cython.Py_ssize_t
        stop: cython.longlong
        time: cython.longlong
        delta: cython.longlong
        key_at: cython.Py_ssize_t
        key: cython.longlong
        value_at: cython.Py_ssize_t
        value: cython.longlong
        headers: cython.longlong
        if self.left == 0:
            raise StopIteration
        if cython.compiled:
            src = cython.address(self.source[0])
        else:
            src = self.source
        _, past, stop, time, delta, key_at, key, value_at, value, headers = record_at(
            src, self.at, self.source.shape[0]
        )
        record: Record = Record.__new__(Record)
        record._key = _bytes_at(src, key_at, key)
        record._value = _bytes_at(src, value_at, value)
        record._headers = None if headers else _NONE
        record._batch = self
        record._time_delta = time
        record._offset_delta = delta
        record._headers_at = past
        record._header_count = cython.cast(cython.Py_ssize_t, headers)
        record._consumed = True
        self.left -= 1
        self.at = cython.cast(cython.Py_ssize_t, stop)
        return record


@cython.cfunc
@cython.boundscheck(False)
@cython.wraparound(False)
@cython.initializedcheck(False)
def _headers_of(batch: BatchRecords, at: cython.Py_ssize_t, count: cython.Py_ssize_t) -> tuple:
    """The `count` checked headers at `at`. Records of a batch mostly have the same header keys: one that stands where
    it stood in the record before is not made again."""
    src: cython.pointer[cython.const[cython.uchar]]
    if cython.compiled:
        src = cython.address(batch.source[0])
    else:
        src = batch.source
    end: cython.Py_ssize_t = batch.source.shape[0]
    index: cython.Py_ssize_t
    name_at: cython.Py_ssize_t
    name: cython.longlong
    data_at: cython.Py_ssize_t
    data: cython.longlong
    found: list = []
    for index in range(count):
        _, at, name_at, name, data_at, data = header_at(src, at, end)
        if (
            index < len(batch.names)
            and batch.names_size[index] == name
            and _same(src, batch.names_at[index], name_at, name)
        ):
            key = batch.names[index]
        else:
            if batch.key_of is None:
                key = _key_at(src, name_at, name)
            else:
                key = batch.key_of(_bytes_at(src, name_at, name))
            if index < 16:
                batch.names_at[index] = name_at
                batch.names_size[index] = name
                if index < len(batch.names):
                    batch.names[index] = key
                else:
                    batch.names.append(key)
        pair = (key, _bytes_at(src, data_at, data))
        if cython.compiled:
            untrack(pair)
        found.append(pair)
    pairs = tuple(found)
    if cython.compiled:
        untrack(pairs)
    return pairs


@cython.cfunc
@cython.inline
def _same(
    src: cython.pointer[cython.const[cython.uchar]],
    one: cython.Py_ssize_t,
    other: cython.Py_ssize_t,
    size: cython.longlong,
) -> cython.bint:
    if cython.compiled:
        return memcmp(src + one, src + other, size) == 0
    else:
        return src[one : one + size] == src[other : other + size]


def objects(
    payload: memoryview,
    count: cython.longlong,
    origin: cython.Py_ssize_t,
    base_offset: cython.longlong,
    last_delta: cython.longlong,
    base_timestamp: cython.longlong,
    append_timestamp: cython.longlong,
    appended: cython.bint,
    key_of: Callable[[bytes], HeaderKey] | None = None,
) -> Iterator[Record]:
    """The records of a payload, in order, when all of them are as they should be; else CorruptRecordError.

    With `appended` every record's timestamp is `append_timestamp`. `key_of`: what the bytes of a header's key mean
    (None: text), asked for where a key differs from the record before. A payload that is not part of a bytes object is
    copied first: what a mutable buffer or a file in memory holds may change or go away before headers are asked for.
    """
    batch: BatchRecords = BatchRecords.__new__(BatchRecords)
    if type(payload.obj) is not bytes:
        payload = memoryview(bytes(payload))
    check(payload, count, origin, base_offset, last_delta)
    batch.source = payload
    batch.at = 0
    batch.left = count
    batch.base_offset = base_offset
    batch.base_timestamp = base_timestamp
    batch.append_timestamp = append_timestamp
    batch.appended = appended
    batch.partition = None
    batch.key_of = key_of
    batch.names = []
    if not cython.compiled:
        batch.names_at = [0] * 16
        batch.names_size = [0] * 16
    return batch
