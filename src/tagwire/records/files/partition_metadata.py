"""`partition.metadata`: the id of the topic that a partition's directory belongs to.

    version: 0
    topic_id: <22 characters>
    record_dialect: <name>              only where the log is in a dialect, which Kafka does not read anyway

Source: docs/log-files.md#properties.
"""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from uuid import UUID

from tagwire.errors import DecodeError, StorageError
from tagwire.records.files.checkpoints import number_of, text_of
from tagwire.records.files.opening import bytes_of

METADATA_FILE = "partition.metadata"
_DIALECT = "record_dialect"


def uuid_text(value: UUID) -> str:
    """A uuid as Kafka writes it: 22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def parse_uuid(text: str) -> UUID:
    """The uuid that `uuid_text` wrote. ValueError for anything else."""
    try:
        data = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if len(data) != 16:
        raise ValueError(f"{text[:40]!r} is not a uuid of 22 base64 characters")
    return UUID(bytes=data)


def format_topic_id(topic_id: UUID, dialect: str | None = None) -> bytes:
    """A partition.metadata file."""
    more = "" if dialect is None else f"\n{_DIALECT}: {dialect}"
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}{more}".encode()


def read_topic_id(data: bytes) -> UUID:
    """The topic id in a partition.metadata file. Raises DecodeError: no such file, or the zero uuid."""
    found = _fields(data)
    for name in ("version", "topic_id"):
        if name not in found:
            raise DecodeError(f"not a partition.metadata file: it has no {name}")
    if number_of(found["version"]) < 0:
        raise DecodeError(f"version {found['version']} is negative")
    try:
        topic_id = parse_uuid(found["topic_id"])
    except ValueError as error:
        raise DecodeError(str(error)) from None
    if not topic_id.int:
        raise DecodeError("the topic id is zero")
    return topic_id


def read_dialect(data: bytes) -> str | None:
    """The record dialect that a partition.metadata file names; None where it names none. Raises DecodeError."""
    return _fields(data).get(_DIALECT)


def dialect_in(directory: Path) -> str | None:
    """The record dialect that the partition.metadata file in a directory names; None where it names none, cannot be
    read, or is not there."""
    try:
        return read_dialect(bytes_of(directory / METADATA_FILE))
    except (OSError, DecodeError, StorageError):
        return None


def _fields(data: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in text_of(data).splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}
