"""Record batches and message sets, right ones and wrong ones, and what is compared of those that are read."""

from __future__ import annotations

import base64
import struct
from dataclasses import dataclass
from typing import Any, Final

from tagwire.errors import TagwireError
from tagwire.kernel.checksum import checksum
from tagwire.records import Record, read, write

from .program import Now, ProducerEpoch, ProducerId, Symbols

_CRC_AT: Final = 17
_CRC_FROM: Final = 21


@dataclass(frozen=True)
class Batch:
    """Records to produce.

    Attributes:
        rows: of each record its key, its value and its timestamp.
        producer: the name of the producer, with what its epoch is to be wrong by; None for no producer.
        wrong: what of the batch is wrong, a name of `WRONGS`.
    """

    rows: tuple[tuple[bytes | None, bytes | None, int | Now], ...]
    producer: tuple[str, int] | None = None
    sequence: int = -1
    transactional: bool = False
    magic: int = 2
    compression: str = "none"
    timestamp_type: str = "CreateTime"
    wrong: str = ""

    def of(self, symbols: Symbols) -> str:
        rows = [
            Record(key, value, timestamp=time.of(symbols) if isinstance(time, Now) else time)
            for key, value, time in self.rows
        ]
        said: dict[str, Any] = {"compression": self.compression, "timestamp_type": self.timestamp_type}
        if self.magic < 2:
            said["magic"] = self.magic
            if self.magic == 0:
                del said["timestamp_type"]
        elif self.producer is not None:
            name, more = self.producer
            said |= {
                "producer_id": ProducerId(name).of(symbols),
                "producer_epoch": max(0, ProducerEpoch(name, more).of(symbols)),
                "base_sequence": self.sequence,
                "transactional": self.transactional,
            }
        data = write(rows, **said)
        if self.wrong:
            data = WRONGS[self.wrong](data)
        return base64.b64encode(data).decode()


def _put(form: str, at: int, value: int, *, sealed: bool = True) -> Any:
    def change(data: bytes) -> bytes:
        changed = bytearray(data)
        struct.pack_into(form, changed, at, value)
        return _sealed(bytes(changed)) if sealed else bytes(changed)

    return change


def _or(form: str, at: int, bits: int) -> Any:
    def change(data: bytes) -> bytes:
        (before,) = struct.unpack_from(form, data, at)
        changed: bytes = _put(form, at, before | bits)(data)
        return changed

    return change


def _add(form: str, at: int, more: int) -> Any:
    def change(data: bytes) -> bytes:
        (before,) = struct.unpack_from(form, data, at)
        changed: bytes = _put(form, at, before + more)(data)
        return changed

    return change


def _sealed(data: bytes) -> bytes:
    changed = bytearray(data)
    struct.pack_into(">I", changed, _CRC_AT, checksum(data[_CRC_FROM:]))
    return bytes(changed)


WRONGS: Final = {
    "crc": _put(">I", _CRC_AT, 0x01020304, sealed=False),
    "one record more": _add(">i", 57, 1),
    "one record fewer": _add(">i", 57, -1),
    "no records": _put(">i", 57, 0),
    "records less than none": _put(">i", 57, -1),
    "a later last offset": _add(">i", 23, 1),
    "an earlier last offset": _add(">i", 23, -1),
    "a control batch": _or(">h", 21, 32),
    "an unused attribute": _or(">h", 21, 128),
    "compressed it is not": _or(">h", 21, 1),
    "a base offset": _put(">q", 0, 100, sealed=False),
    "a base offset below 0": _put(">q", 0, -5, sealed=False),
    "a leader epoch": _put(">i", 12, 55, sealed=False),
    "another greatest time": _put(">q", 35, 77_777),
    "an earlier greatest time": _put(">q", 35, 3),
    "no magic": _put(">b", 16, 3, sealed=False),
    "a size too great": _add(">i", 8, 5),
    "a tiny size": _put(">i", 8, 3, sealed=False),
    "a byte less": lambda data: data[:-1],
    "some bytes more": lambda data: data + bytes(20),
    "twice": lambda data: data + data,
    "nothing": lambda data: b"",
    "a head alone": lambda data: data[:61],
    "a few bytes": lambda data: data[:10],
    "a producer alone": _put(">q", 43, 5),
    "no sequence": _put(">i", 53, -1),
    "a sequence below": _put(">i", 53, -2),
    "transactional": _or(">h", 21, 16),
}  # fmt: skip
"""What may be wrong with a record batch -> how to make it so."""


def seen(data: bytes) -> list[Any]:
    """What is compared of records that were fetched: heads of batches and what is in them. A cut end is left out."""
    found: list[Any] = []
    try:
        for batch in read(data):
            found.append({name: getattr(batch, name) for name in _COMPARED})
            found += [[one.offset, one.timestamp, _text(one.key), _text(one.value)] for one in batch.records()]
    except TagwireError as error:
        found.append(f"not read: {type(error).__name__}")
    return found


_COMPARED: Final = (
    "base_offset",
    "partition_leader_epoch",
    "magic",
    "attributes",
    "last_offset_delta",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "count",
)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value[:40].decode("latin-1")
