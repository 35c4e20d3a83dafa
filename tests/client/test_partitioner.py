"""Partitions by key, equal to Java's."""

from __future__ import annotations

import random

import pytest

from tagwire.client import StickyPartition, murmur2, partition_of

# Java's signed results, from Kafka's own tests of its hash.
MURMUR2 = [
    (b"21", -973932308),
    (b"foobar", -790332482),
    (b"a-little-bit-long-string", -985981536),
    (b"a-little-bit-longer-string", -1486304829),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    (b"abc", 479470107),
]


@pytest.mark.parametrize(("key", "java"), MURMUR2)
def test_murmur2_is_that_of_java(key: bytes, java: int) -> None:
    assert murmur2(key) == java & 0xFFFFFFFF


@pytest.mark.parametrize(("key", "java"), MURMUR2)
def test_a_key_goes_to_the_partition_that_java_gives_it(key: bytes, java: int) -> None:
    assert partition_of(key, 7) == (java & 0x7FFFFFFF) % 7


def test_an_empty_key_is_a_key() -> None:
    assert 0 <= partition_of(b"", 3) < 3


def test_without_a_key_a_partition_is_kept_until_told_to_switch() -> None:
    sticky = StickyPartition(4, random.Random(1))
    seen = [sticky.current]
    for _ in range(50):
        assert sticky.current == seen[-1]
        sticky.switch()
        assert sticky.current != seen[-1]
        seen.append(sticky.current)
    assert set(seen) == {0, 1, 2, 3}


def test_a_single_partition_is_where_everything_goes() -> None:
    sticky = StickyPartition(1)
    sticky.switch()
    assert sticky.current == 0
