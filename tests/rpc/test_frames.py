"""Frames: cutting a byte stream, and refusing what is no frame."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire.errors import ProtocolError
from tagwire.rpc import Frames


def framed(*bodies: bytes) -> bytes:
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


def drain(frames: Frames) -> list[bytes]:
    found = []
    while (frame := frames.next_frame()) is not None:
        found.append(bytes(frame))
    return found


def read_into(frames: Frames, data: bytes, at_most: int) -> list[bytes]:
    """Feeds `data` the way a socket does that fills `space()`."""
    found = []
    while data:
        space = frames.space()
        count = min(len(space), len(data), at_most)
        space[:count] = data[:count]
        frames.received(count)
        data = data[count:]
        found += drain(frames)
    return found


BODIES = [b"", b"\x00", b"abc", bytes(range(256)) * 300, b"", b"x" * 70_000, b"y"]


@pytest.mark.parametrize("step", [1, 3, 4, 5, 1000, 65_536, 10_000_000])
def test_frames_come_out_whole_however_the_stream_is_split(step: int) -> None:
    stream = framed(*BODIES)
    frames, found = Frames(), []
    for at in range(0, len(stream), step):
        frames.receive(stream[at : at + step])
        found += drain(frames)
    assert found == BODIES
    assert frames.is_empty


@pytest.mark.parametrize("step", [1, 7, 4096, 10_000_000])
def test_frames_read_into_place_equal_frames_received(step: int) -> None:
    frames = Frames()
    assert read_into(frames, framed(*BODIES), step) == BODIES
    assert frames.is_empty


@given(st.lists(st.binary(max_size=200), max_size=20), st.data())
def test_any_split_gives_the_same_frames(bodies: list[bytes], data: st.DataObject) -> None:
    stream, frames, found = framed(*bodies), Frames(), []
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        if data.draw(st.booleans()):
            frames.receive(stream[:cut])
            found += drain(frames)
        else:
            found += read_into(frames, stream[:cut], 64)
        stream = stream[cut:]
    assert found == bodies


def test_a_frame_keeps_its_bytes_when_more_arrive() -> None:
    frames = Frames()
    frames.receive(framed(b"first", b"second"))
    first = frames.next_frame()
    frames.receive(framed(b"third"))
    assert drain(frames) == [b"second", b"third"]
    assert first is not None
    assert bytes(first) == b"first"


def test_an_unfinished_frame_is_not_empty() -> None:
    frames = Frames()
    frames.receive(b"\x00\x00\x00")
    assert frames.next_frame() is None
    assert not frames.is_empty


HOSTILE_SIZES = [
    ("minus one", "ffffffff", "frame size -1 .*negative"),
    ("lowest int32", "80000000", "frame size -2147483648 .*negative"),
    ("highest int32", "7fffffff", "frame size 2147483647 .*over the limit of 104857600 bytes$"),
    ("one over the limit", "06400001", "frame size 104857601 .*over the limit"),
    ("a TLS 1.0 alert", "15030100", "frame size 352518400 .*TLS"),
    ("a TLS 1.2 alert", "15030300", "frame size 352518912 .*TLS"),
    ("a TLS handshake", "16030102", "TLS"),
    ("an HTTP response", b"HTTP/1.1 400 Bad Request".hex(), "HTTP response"),
    ("an HTTP request", b"GET / HTTP/1.1".hex(), "HTTP request"),
    ("an SSH greeting", b"SSH-2.0".hex(), "SSH"),
]


@pytest.mark.parametrize(("name", "data", "says"), HOSTILE_SIZES, ids=[row[0] for row in HOSTILE_SIZES])
def test_a_size_that_cannot_be_is_refused_by_its_first_four_bytes(name: str, data: str, says: str) -> None:
    frames = Frames()
    frames.receive(bytes.fromhex(data)[:4])
    with pytest.raises(ProtocolError, match=says):
        frames.next_frame()
    with pytest.raises(ProtocolError, match=says):
        frames.next_frame()


def test_frames_before_a_bad_size_are_still_delivered() -> None:
    frames = Frames()
    frames.receive(framed(b"good") + b"\xff\xff\xff\xff")
    frame = frames.next_frame()
    assert frame is not None
    assert bytes(frame) == b"good"
    with pytest.raises(ProtocolError):
        frames.next_frame()


def test_the_limit_itself_is_allowed() -> None:
    frames = Frames(max_frame_bytes=10)
    frames.receive(framed(b"0123456789"))
    assert drain(frames) == [b"0123456789"]


def test_memory_follows_the_bytes_that_arrive_not_the_size_claimed() -> None:
    frames = Frames()
    tracemalloc.start()
    try:
        frames.receive((100_000_000).to_bytes(4, "big"))
        assert frames.next_frame() is None
        sent = 4
        for _ in range(40):
            frames.receive(b"z" * 10_000)
            sent += 10_000
            assert frames.next_frame() is None
        assert tracemalloc.get_traced_memory()[1] <= 64 * sent + 2**20
        assert tracemalloc.get_traced_memory()[0] < 10_000_000
    finally:
        tracemalloc.stop()
