"""Zstandard frames (RFC 8878), as far as they tell how much they hold, which Kafka's producers leave unsaid."""

from __future__ import annotations

from tagwire.errors import CorruptRecordError

_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_BLOCK = 1 << 17
_RAW, _RUN, _COMPRESSED = range(3)
_DICTIONARY_SIZES = (0, 1, 2, 4)


def bound(data: memoryview) -> int:
    """Most bytes that the frames in `data` can hold, from the headers of their blocks.

    Raises CorruptRecordError where what should be a frame is none, or is cut short.
    """
    at = size = 0
    while at < len(data):
        magic = data[at : at + 4]
        if magic == _MAGIC:
            at, held = _frame(data, at + 4)
            size += held
        elif len(magic) == 4 and int.from_bytes(magic, "little") in _SKIPPABLE:
            at += 8 + int.from_bytes(data[at + 4 : at + 8], "little")
            if at > len(data):
                raise _cut_short()
        else:
            raise CorruptRecordError(f"zstd data is broken: no frame at byte {at}")
    return size


def _frame(data: memoryview, at: int) -> tuple[int, int]:
    """Where the frame that has its descriptor at `at` ends, and the most it can hold."""
    if at == len(data):
        raise _cut_short()
    descriptor = data[at]
    one_segment = descriptor & 0x20
    size_bytes = (1 if one_segment else 0, 2, 4, 8)[descriptor >> 6]
    at += 1 + (0 if one_segment else 1) + _DICTIONARY_SIZES[descriptor & 3] + size_bytes
    held = 0
    last = False
    while not last:
        header = int.from_bytes(data[at : at + 3], "little")
        last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        if kind > _COMPRESSED:
            raise CorruptRecordError(f"zstd data is broken: the block at byte {at} is of an unknown kind")
        held += _BLOCK if kind == _COMPRESSED else size
        at += 3 + (1 if kind == _RUN else size)
        if at > len(data):
            raise _cut_short()
    return at + (4 if descriptor & 4 else 0), held


def _cut_short() -> CorruptRecordError:
    return CorruptRecordError("zstd data is broken: it is cut short")
