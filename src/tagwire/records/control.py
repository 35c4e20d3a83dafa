"""Control records: what brokers write into a log beside what producers write.

Layout: docs/record-formats.md#control-batches.

Their key is int16 version and int16 type. Transactions end with ABORT or COMMIT; __cluster_metadata and its snapshots
hold the others.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from tagwire.errors import CorruptRecordError, DecodeError, EncodeError

if TYPE_CHECKING:
    from tagwire.codec.classes import MessageObject

TYPES = ("ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS")
MARKERS = ("ABORT", "COMMIT")
"""Those that end a transaction."""
UNKNOWN = "UNKNOWN"

_MESSAGES = {
    "ABORT": "EndTxnMarker",
    "COMMIT": "EndTxnMarker",
    "LEADER_CHANGE": "LeaderChangeMessage",
    "SNAPSHOT_HEADER": "SnapshotHeaderRecord",
    "SNAPSHOT_FOOTER": "SnapshotFooterRecord",
    "KRAFT_VERSION": "KRaftVersionRecord",
    "KRAFT_VOTERS": "VotersRecord",
}
_KEY = Struct(">hh")
_VERSION = Struct(">h")


class ControlRecord(NamedTuple):
    """A control record: one of `TYPES`, or UNKNOWN, which has no message."""

    type: str
    message: MessageObject | None


def control_type(key: bytes | None) -> str:
    """The type in a control record's key, UNKNOWN for one of a later Kafka. Raises CorruptRecordError."""
    if key is None or len(key) < _KEY.size:
        raise CorruptRecordError(f"a control record's key has {_KEY.size} bytes, not {len(key or b'')}")
    version, kind = _KEY.unpack_from(key)
    if version < 0:
        raise CorruptRecordError(f"a control record's key cannot be of version {version}")
    return TYPES[kind] if 0 <= kind < len(TYPES) else UNKNOWN


def decode_control(key: bytes | None, value: bytes | None) -> ControlRecord:
    """What a control record says. A version newer than is known reads as the newest that is, as in Java.

    Raises:
        DecodeError: the key or the value is broken.
    """
    from tagwire.codec.classes import class_at

    kind = control_type(key)
    if kind == UNKNOWN:
        return ControlRecord(kind, None)
    if value is None:
        raise DecodeError("a control record has no value", path=kind)
    body = memoryview(value)
    if kind in MARKERS:
        if len(body) < _VERSION.size:
            raise DecodeError(f"{len(body)} bytes hold no version", path=kind)
        if (version := _VERSION.unpack_from(body)[0]) < 0:
            raise DecodeError(f"a transaction's end cannot be of version {version}", path=kind)
        body = body[_VERSION.size :]
    return ControlRecord(kind, class_at(_MESSAGES[kind]).decode(body, 0, lenient=True))


def encode_control(control: ControlRecord) -> tuple[bytes, bytes]:
    """Key and value of a control record. Raises EncodeError for a type that is not known or has another message."""
    from tagwire.codec.classes import class_at

    kind, message = control
    name = _MESSAGES.get(kind)
    if name is None or not isinstance(message, class_at(name)):
        raise EncodeError(f"control record {kind} takes {name or 'no'} message, not {message!r}")
    version = _VERSION.pack(0) if kind in MARKERS else b""
    return _KEY.pack(0, TYPES.index(kind)), version + message.encode(0)
