"""Good bytes made bad, or nearly: the same ones for the same seed and number."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from crc32c import crc32c

from .vectors import vectors

WEIGHTS = {
    "message": 54,
    "changed message": 12,
    "changed columns": 4,
    "batches": 10,
    "changed records": 2,
    "message set": 5,
    "int headers": 4,
    "request": 4,
    "response": 6,
    "capture": 0.3,
}
"""How many of a hundred cases are of each kind."""

CHANGED = {"changed message": "message", "changed columns": "message", "changed records": "batches"}

BYTES = (0x00, 0x01, 0x02, 0x7F, 0x80, 0xFF)
NUMBERS = (b"\0\0\0\0", b"\0\0\0\1", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xff\xff\xff\xff", b"\xff\xff", b"\x7f\xff")
VARINTS = (b"\x80\x80\x80\x80\x08", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07", b"\x81\x80\x04", b"\x80\0")
MOST_SHOWN = 200
_CRC = struct.Struct(">I")


class Case(NamedTuple):
    """One thing to read, or to write.

    Attributes:
        number: which one it is of its seed's.
        kind: of a `Vector`; or one of `CHANGED`, whose bytes are good: what is read of them is changed as `seed` says,
            and written.
        about: as of the `Vector`.
    """

    number: int
    kind: str
    about: tuple[Any, ...]
    data: bytes
    seed: str

    def __str__(self) -> str:
        about = " ".join(part if "{" not in str(part) else "(made)" for part in map(str, self.about))
        rest = f"… ({len(self.data)} bytes)" if len(self.data) > MOST_SHOWN else ""
        return f"case {self.seed} ({self.kind} {about}): {self.data[:MOST_SHOWN].hex()}{rest}"


def case(seed: int, number: int) -> Case:
    """Case `number` of `seed`."""
    chance = Random(f"{seed}/{number}")
    (kind,) = chance.choices(tuple(WEIGHTS), tuple(WEIGHTS.values()))
    known = vectors()[CHANGED.get(kind, kind)]
    _, about, data = chance.choice(known)
    if kind not in CHANGED:
        other = chance.choice(known)
        if kind == "message" and chance.random() < 0.1:  # another version's bytes, or another message's
            about = other.about if chance.random() < 0.3 else (about[0], max(0, about[1] + chance.choice((-1, 1))))
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            data = chance.choices(MUTATIONS, MUTATION_WEIGHTS)[0](data, chance, other.data)
        data = REPAIRS.get(kind, _as_it_is)(data, chance)
    return Case(number, kind, about, data, f"{seed}/{number}")


# -- mutations: what, by which chance, and another vector of the kind


def cut(data: bytes, chance: Random, other: bytes) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def cut_and_marked(data: bytes, chance: Random, other: bytes) -> bytes:
    """Its last bytes then look like a count, a length or a tag."""
    kept = bytearray(cut(data, chance, other))
    if kept:
        at = max(0, len(kept) - chance.randrange(1, 6))
        kept[at] = chance.choice(BYTES)
    return bytes(kept)


def flipped(data: bytes, chance: Random, other: bytes) -> bytes:
    out = bytearray(data)
    if out:
        out[chance.randrange(len(out))] ^= 1 << chance.randrange(8)
    return bytes(out)


def set_to(data: bytes, chance: Random, other: bytes) -> bytes:
    out = bytearray(data)
    if out:
        out[chance.randrange(len(out))] = chance.choice(BYTES)
    return bytes(out)


def lied(data: bytes, chance: Random, other: bytes) -> bytes:
    """A number, perhaps a length, says something extreme."""
    at = chance.randrange(len(data) + 1)
    said = chance.choice(NUMBERS)
    return data[:at] + said + data[at + len(said) :]


def lied_a_little(data: bytes, chance: Random, other: bytes) -> bytes:
    out = bytearray(data)
    if out:
        at = chance.randrange(len(out))
        out[at] = (out[at] + chance.choice((-2, -1, 1, 2))) & 0xFF
    return bytes(out)


def inserted(data: bytes, chance: Random, other: bytes) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice((bytes([chance.choice(BYTES)]), *VARINTS)) + data[at:]


def deleted(data: bytes, chance: Random, other: bytes) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + data[at + chance.choice((1, 1, 2, 4, 9)) :]


def swapped(data: bytes, chance: Random, other: bytes) -> bytes:
    at, size = chance.randrange(len(data) + 1), chance.choice((1, 2, 4, 8))
    return data[:at] + data[at + size : at + 2 * size] + data[at : at + size] + data[at + 2 * size :]


def spliced(data: bytes, chance: Random, other: bytes) -> bytes:
    return data[: chance.randrange(len(data) + 1)] + other[chance.randrange(len(other) + 1) :]


def doubled(data: bytes, chance: Random, other: bytes) -> bytes:
    at, size = chance.randrange(len(data) + 1), chance.choice((1, 3, 10, 60))
    return data[: at + size] + data[at:]


MUTATIONS: tuple[Callable[[bytes, Random, bytes], bytes], ...] = (
    cut,
    cut_and_marked,
    flipped,
    set_to,
    lied,
    lied_a_little,
    inserted,
    deleted,
    swapped,
    spliced,
    doubled,
)
MUTATION_WEIGHTS = (10, 15, 15, 15, 8, 12, 8, 8, 3, 3, 3)


# -- repairs: what stands before what is looked for, and would hide it


def _as_it_is(data: bytes, chance: Random) -> bytes:
    return data


def checksummed(data: bytes, chance: Random) -> bytes:
    """Batches, or messages, with the checksums of what they have become: most are then read further."""
    if chance.random() < 0.15:
        return data
    out, at, as_batches = bytearray(data), 0, chance.random() < 0.5
    sized = chance.random() < 0.6
    while len(out) - at > 17:
        size = 12 + int.from_bytes(out[at + 8 : at + 12], "big", signed=True)
        if not 26 <= size <= len(out) - at and sized:  # the last one, as long as there are bytes
            size = len(out) - at
            out[at + 8 : at + 12] = (size - 12).to_bytes(4, "big")
        if not 26 <= size <= len(out) - at:
            break
        if out[at + 16] == 2 and as_batches and size >= 61:
            _CRC.pack_into(out, at + 17, crc32c(bytes(out[at + 21 : at + size])))
        else:
            _CRC.pack_into(out, at + 12, zlib.crc32(out[at + 16 : at + size]))
        at += size
    return bytes(out)


def batches(data: bytes, chance: Random) -> bytes:
    """Sometimes the first batch's records are then compressed: what is wrong with them stands inside."""
    if len(data) > 61 and data[16] == 2 and not data[22] & 7 and chance.random() < 0.2:
        size = 12 + int.from_bytes(data[8:12], "big", signed=True)
        if 61 <= size <= len(data):
            packed = gzip.compress(data[61:size], 1)
            head = bytearray(data[:61])
            head[22] |= 1
            head[8:12] = (49 + len(packed)).to_bytes(4, "big")
            data = bytes(head) + packed + data[size:]
    return checksummed(data, chance)


def message_set(data: bytes, chance: Random) -> bytes:
    """Sometimes it is then wrapped: its messages stand inside a compressed one."""
    data = checksummed(data, chance)
    if len(data) > 17 and chance.random() < 0.3:
        magic = chance.choice((data[16], data[16], 1)) & 3
        packed = gzip.compress(data, 1)
        body = bytes((magic, 1)) + (bytes(8) if magic else b"") + struct.pack(">ii", -1, len(packed)) + packed
        offset = chance.choice((0, 5, 100))
        data = struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body
    return data


def framed(data: bytes, chance: Random) -> bytes:
    """Mostly the size is that of the frame."""
    if len(data) < 4 or chance.random() < 0.2:
        return data
    return (len(data) - 4).to_bytes(4, "big") + data[4:]


REPAIRS: dict[str, Callable[[bytes, Random], bytes]] = {
    "batches": batches,
    "message set": message_set,
    "int headers": message_set,
    "request": framed,
    "response": framed,
}
