from __future__ import annotations

import sys

import pytest

from tagwire import kernel
from tagwire.kernel import plain_batches, record_objects, record_writing, records
from tagwire.records import Record, read, write


def test_every_record_kernel_says_whether_it_is_compiled() -> None:
    assert {records.COMPILED, record_objects.COMPILED, record_writing.COMPILED} == {kernel.compiled}


# Java's String(bytes, UTF_8) counts a malformed sequence up to where it goes wrong as one U+FFFD; Python differs for
# encoded surrogates, of which it makes three.
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("", ""),
        ("c3a9", "é"),
        ("e9", "\ufffd"),
        ("c3", "\ufffd"),
        ("c3 41", "\ufffdA"),
        ("c0 80", "\ufffd\ufffd"),
        ("e2 82", "\ufffd"),
        ("e2 82 41", "\ufffdA"),
        ("f0 9f 98", "\ufffd"),
        ("f0 9f 98 80", "😀"),
        ("f5 80 80 80", "\ufffd\ufffd\ufffd\ufffd"),
        ("ed a0 80", "\ufffd"),
        ("ed a0 80 ed b0 80", "\ufffd\ufffd"),
        ("ed a0", "\ufffd"),
        ("ed a0 41", "\ufffdA"),
        ("ed 9f bf", "\ud7ff"),
        ("e2 ed a0 80", "\ufffd\ufffd"),
    ],
)
def test_malformed_text_is_replaced_as_java_does(data: str, expected: str) -> None:
    assert record_objects.text(bytes.fromhex(data)) == expected


def test_room_to_write_into_has_the_size_asked_for() -> None:
    assert [len(record_writing.uncleared(size)) for size in (0, 1, 100_000)] == [0, 1, 100_000]


def log(codecs: str = "none") -> tuple[memoryview, list[int]]:
    """Three batches of 2 records at offsets 0, 2 and 4, and where each begins and the last ends."""
    parts = [write([Record(None, b"v")] * 2, base_offset=at, compression=codecs) for at in (0, 2, 4)]
    size = len(parts[0])
    return memoryview(b"".join(parts)), [0, size, 2 * size, 3 * size]


def run(data: memoryview, **options: int) -> tuple[int, int, int, int]:
    given = {"at": 0, "transactional": 0, "first": 0, "limit": 99, "max_rows": 99, "max_bytes": 9999, "room": 9999}
    found: tuple[int, int, int, int] = plain_batches.plain_run(data, *{**given, **options}.values())
    return found


def test_a_run_of_plain_batches_ends_at_its_bounds() -> None:
    data, starts = log()
    size = starts[1] - 61
    assert run(data) == (starts[3], 6, 3 * size, 6)
    assert run(data, at=starts[1]) == (starts[3], 4, 2 * size, 6)
    assert run(data[:-1]) == (starts[2], 4, 2 * size, 4)
    assert run(data, max_rows=3) == (starts[2], 4, 2 * size, 4)
    assert run(data, max_bytes=size) == (starts[1], 2, size, 2)
    assert run(data, room=2 * size - 1) == (starts[1], 2, size, 2)
    assert run(data, first=2, limit=4) == (starts[3], 2, size, 6)


def test_a_run_ends_before_a_batch_that_is_not_plain() -> None:
    data, starts = log()
    for at, change in ((16, 1), (16, 3), (22, 0x04), (22, 0x20), (22, 0x10), (0, 0x80), (23, 0x80), (57, 1), (8, 0x80)):
        changed = bytearray(data)
        changed[starts[1] + at] = change
        assert run(memoryview(changed))[0] == starts[1]
    changed[starts[1] : starts[2]] = data[starts[1] : starts[2]]
    changed[starts[1] + 22] = 0x10
    assert run(memoryview(changed), transactional=1)[0] == starts[3]
    assert run(log("lz4")[0])[0] == 0


def test_what_was_read_is_counted_as_any_other_object() -> None:
    """Into memory that held something else before, whose bytes may look like the count of an object that never ends."""
    given = [bytes([number % 251]) * (2 + number % 300) for number in range(20_000)]
    data = write([Record(None, value) for value in given])
    for _ in range(3):
        values = [record.value for batch in read(data) for record in batch.records()]
        assert values == given
        assert max(map(sys.getrefcount, values)) < 10
        del values
