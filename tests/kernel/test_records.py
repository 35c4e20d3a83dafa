from __future__ import annotations

import pytest

from tagwire import kernel
from tagwire.kernel import record_objects, record_writing, records


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
