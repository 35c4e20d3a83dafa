"""Checks of what `Producer.send` is given, and how many bytes a record takes in a batch."""

from __future__ import annotations

from typing import Final

from tagwire.client import arguments
from tagwire.errors import EncodeError
from tagwire.records.record import Headers

# What a record takes beside its key, value and headers, at most: length, attributes, timestamp and offset deltas, and
# the lengths of key, value and headers (docs/record-formats.md#record-batches).
RECORD_OVERHEAD: Final = 36
HEADER_OVERHEAD: Final = 10

_SAMPLES: Final = {str: "'trace-id'", int: "7"}


def size_of(key: bytes | None, value: bytes | None, headers: Headers, names: type = str) -> int:
    """Bytes a record takes in a batch, at most; `names`: str or int, what header keys are. Raises EncodeError for a
    key, value or header that cannot be written."""
    size = RECORD_OVERHEAD
    if value is not None:
        if type(value) is not bytes and not isinstance(value, bytes):
            raise _not_bytes(value, "value")
        size += len(value)
    if key is not None:
        if type(key) is not bytes and not isinstance(key, bytes):
            raise _not_bytes(key, "key")
        size += len(key)
    if headers:
        try:
            for name, content in headers:
                if not isinstance(name, names):
                    raise TypeError(f"a key is {type(name).__name__}")
                size += HEADER_OVERHEAD
                if isinstance(name, str):
                    size += len(name) if name.isascii() else len(name.encode())
                if content is not None:
                    if not isinstance(content, bytes):
                        raise _not_bytes(content, "value of a header")
                    size += len(content)
        except (TypeError, ValueError) as error:
            raise EncodeError(
                f"headers of a record must be pairs of {names.__name__} and bytes or None, such as "
                f"[({_SAMPLES[names]}, b'01J2')]: {error}"
            ) from None
    return size


def _not_bytes(value: object, what: str) -> EncodeError:
    write = ': write "...".encode()' if isinstance(value, str) else ""
    return EncodeError(f"{what} must be bytes or None, not {type(value).__name__}{write}")


def check_destination(topic: object, partition: object) -> None:
    """Raises EncodeError for what names no topic partition."""
    if not isinstance(topic, str):
        raise EncodeError(f'topic of a record must be text, such as "orders", not {type(topic).__name__}')
    if partition is not None:
        whole_number("partition", partition)


def milliseconds(timestamp: object) -> int:
    """The timestamp of a record. Raises EncodeError for what is no whole number."""
    found = arguments.whole(timestamp)
    if found is None:
        raise EncodeError(
            "timestamp of a record must be whole milliseconds since 1970 UTC, such as int(time.time() * 1000), "
            f"not {type(timestamp).__name__}"
        )
    return found


def whole_number(what: str, given: object) -> int:
    """A number that a record is given. Raises EncodeError for what is no whole number."""
    found = arguments.whole(given)
    if found is None:
        raise EncodeError(f"{what} of a record must be a whole number, such as 0, not {type(given).__name__}")
    return found
