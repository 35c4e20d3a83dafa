from __future__ import annotations

import random

import pytest
from crc32c import crc32c

from tagwire.kernel.checksum import checksum, checksum_by_table

DATA = memoryview(random.Random(5).randbytes(70_000))


def test_the_checksum_is_castagnolis() -> None:
    assert checksum(memoryview(b"123456789")) == 0xE3069283
    assert checksum(memoryview(bytes(1 << 16))) == crc32c(bytes(1 << 16))
    assert checksum(memoryview(b"\xff" * (1 << 16))) == crc32c(b"\xff" * (1 << 16))


@pytest.mark.parametrize("start", [0, 1, 3, 21, 64])
def test_every_length_has_the_checksum_that_the_package_says(start: int) -> None:
    for size in (*range(1200), 4096, 16_001, 65_535, 65_536):
        piece = DATA[start : start + size]
        assert checksum(piece) == crc32c(piece), size


def test_one_changed_bit_changes_the_checksum() -> None:
    data = bytearray(DATA[:3000])
    before = checksum(memoryview(data))
    for at in range(0, 3000, 7):
        data[at] ^= 1 << at % 8
        assert checksum(memoryview(data)) != before
        data[at] ^= 1 << at % 8


def test_a_checksum_goes_on_from_that_of_the_bytes_before() -> None:
    for size in (0, 1, 9, 300, 600, 5000):
        for cut in (0, 1, size // 2, size):
            data = bytes(DATA[:size])
            assert checksum(data[cut:], checksum(bytearray(data[:cut]))) == crc32c(data)


def test_the_checksum_by_table_is_the_packages_for_every_length_and_beginning() -> None:
    assert checksum_by_table(b"123456789") == 0xE3069283
    for size in (*range(70), 255, 256, 4096):
        for before in (0, 1, 0xFFFFFFFF, 0xE3069283):
            assert checksum_by_table(DATA[3 : 3 + size], before) == crc32c(DATA[3 : 3 + size], before), size
