"""A message as buffers that follow one another: the same bytes as `encode` gives, and long records not copied."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tagwire import messages
from tagwire.errors import EncodeError

from .conftest import Build

LONG = 1 << 16


def fetched(*records: Any) -> Any:
    kind = messages.FetchResponse
    partitions = [
        kind.PartitionData(partition_index=number, high_watermark=7, aborted_transactions=None, records=data)
        for number, data in enumerate(records)
    ]
    return kind(responses=[kind.FetchableTopicResponse(topic="t", partitions=partitions)])


@pytest.mark.parametrize("version", [4, 11, 12])
@pytest.mark.parametrize("sizes", [(), (0,), (5, LONG), (LONG, LONG + 1, 0, 3, LONG), (None, LONG, None)])
def test_the_pieces_are_the_bytes_of_the_message(version: int, sizes: tuple[int | None, ...]) -> None:
    message = fetched(*(None if size is None else os.urandom(size) for size in sizes))
    assert b"".join(message.encode_pieces(version)) == message.encode(version)


@pytest.mark.parametrize("version", [11, 12])
def test_long_records_are_handed_on_and_short_ones_are_among_the_rest(version: int) -> None:
    whole = os.urandom(2 * LONG)
    view, short = memoryview(whole)[7 : LONG + 7], bytes(100)
    pieces = fetched(short, whole, view).encode_pieces(version)
    assert sum(map(len, pieces[::2])) < 1000
    assert pieces[1] is whole
    assert pieces[3] is view
    assert short in bytes(pieces[0])


def test_what_may_change_behind_a_view_that_is_read_only_is_copied() -> None:
    data = bytearray(os.urandom(LONG))
    message = fetched(memoryview(data).toreadonly())
    expected = message.encode(11)
    pieces = message.encode_pieces(11)
    data[:] = bytes(LONG)
    assert b"".join(pieces) == expected


@pytest.mark.parametrize("wrap", [bytearray, lambda data: memoryview(bytearray(data))])
def test_what_may_change_until_it_is_sent_is_copied(wrap: Any) -> None:
    data = os.urandom(LONG)
    given = wrap(data)
    message = fetched(given)
    expected = message.encode(11)
    pieces = message.encode_pieces(11)
    given[:] = bytes(LONG)
    assert b"".join(pieces) == expected


@pytest.mark.parametrize("step", [2, -1])
def test_a_view_with_gaps_is_written_as_its_bytes(step: int) -> None:
    message = fetched(memoryview(os.urandom(2 * LONG))[::step])
    assert b"".join(message.encode_pieces(11)) == message.encode(11)


def test_a_view_of_longer_elements_is_written_as_its_bytes() -> None:
    message = fetched(memoryview(os.urandom(2 * LONG)).cast("i"))
    assert b"".join(message.encode_pieces(11)) == message.encode(11)


def test_long_bytes_in_a_tagged_field_stand_behind_their_length(build: Build) -> None:
    inner = {"name": "Inner", "type": "bytes", "versions": "1+"}
    kind = build(
        {"name": "Plain", "type": "bytes"},
        {"name": "Alone", "type": "bytes", "versions": "1+", "taggedVersions": "1+", "tag": 0},
        {"name": "Within", "type": "[]Row", "versions": "1+", "taggedVersions": "1+", "tag": 1, "fields": [inner]},
        {"name": "After", "type": "bytes"},
    )
    rows = [kind.Row(inner=os.urandom(LONG)), kind.Row(inner=b"")]  # type: ignore[attr-defined]
    made: Any = kind(plain=bytes(LONG), alone=os.urandom(LONG), within=rows, after=bytes(LONG))  # type: ignore[call-arg]
    pieces = made.encode_pieces(1)
    assert b"".join(pieces) == made.encode(1)
    assert pieces[1] is made.plain
    assert pieces[3] is made.after


def test_what_cannot_be_written_is_refused_as_encode_refuses_it() -> None:
    released = memoryview(bytes(LONG))
    released.release()
    with pytest.raises(EncodeError, match="cannot be read"):
        fetched(released).encode_pieces(11)
    with pytest.raises(EncodeError, match="needs bytes"):
        fetched("text").encode_pieces(11)
