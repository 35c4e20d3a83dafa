"""A serializer and a deserializer for each header key (KIP-82: each header's value has its own)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tagwire.errors import DecodeError, EncodeError
from tagwire.kernel.record_objects import with_headers
from tagwire.kernel.record_writing import as_headers, as_pair
from tagwire.records.record import HeaderKey, Record

Serde = tuple[Callable[[Any], bytes], Callable[[bytes], Any]]


class HeaderSerdes:
    """Header values as objects: {key: (serialize, deserialize)}. Null values, and keys not named here, stay as they
    are.

        HeaderSerdes({"attempt": (lambda n: b"%d" % n, int)})
    """

    def __init__(self, serdes: Mapping[HeaderKey, Serde]) -> None:
        self._serdes = dict(serdes)

    def serialized(self, headers: Sequence[tuple[HeaderKey, Any]]) -> tuple[tuple[HeaderKey, bytes | None], ...]:
        """Headers whose values are bytes. Raises EncodeError naming the header whose serializer raised, or did not
        give bytes; or what is no header."""
        pairs = map(as_pair, as_headers(headers, "with serializers"))
        return tuple([(key, self._serialized(key, value)) for key, value in pairs])

    def deserialized(self, record: Record) -> Record:
        """`record` with objects for header values, where it has headers that are named here. Raises DecodeError naming
        the record and the header whose deserializer raised."""
        headers = record.headers
        if not any(key in self._serdes for key, _ in headers):
            return record
        return with_headers(record, tuple([(key, self._deserialized(key, value, record)) for key, value in headers]))

    def _serialized(self, key: HeaderKey, value: Any) -> bytes | None:
        if not isinstance(key, str | int) or key not in self._serdes or value is None:
            return value  # type: ignore[no-any-return]
        try:
            data = self._serdes[key][0](value)
        except Exception as error:
            raise EncodeError(f"header {key!r}: its serializer failed: {error!r}") from error
        if not isinstance(data, bytes):
            raise EncodeError(f"header {key!r}: its serializer gave {type(data).__name__}, not bytes")
        return data

    def _deserialized(self, key: HeaderKey, value: bytes | None, record: Record) -> Any:
        if key not in self._serdes or value is None:
            return value
        try:
            return self._serdes[key][1](value)
        except Exception as error:
            of = f"record at offset {record.offset}"
            if record.topic is not None:
                of = f"{record.topic}-{record.partition}@{record.offset}"
            raise DecodeError(f"header {key!r}: its deserializer failed: {error!r}", path=of) from error
