"""Captures that were damaged, or made to do harm: what is left is read, what is not is counted, and it ends.

| hostile                              | held by |
|--------------------------------------|---------|
| packets cut by a snapshot length     | test_connections: what a capture cut off each packet |
| repeated, late, overlapping segments | test_connections: segments that come late, twice or overlapping |
| a connection met in the middle       | test_connections: met in the middle; a frame that was under way |
| a lost segment, then back in step    | test_connections: a lost segment; bytes lost inside a frame |
| an answer before its request         | test_connections: an answer captured before its request |
| TLS on the port, and other protocols | test_connections: what is not Kafka's |
| IPv6, VLAN tags, any interface       | test_connections: frames may be split anywhere; every kind of link |
| pcapng, byte orders, clocks          | test_packets |
| gzip, whole, cut and damaged         | test_files |
| log lines cut, old, wrapped, noise   | test_request_log |
| bytes changed at random              | here |
| thousands of connections half open   | here |
"""

from __future__ import annotations

import gzip
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dpkt
import pytest

from tagwire import messages
from tagwire.capture import Census, Losses, Requests, seen_in, take_census
from tagwire.capture import connections as capture_connections
from tagwire.capture.census import Offers
from tagwire.capture.connections import LET_GO
from tagwire.capture.tables import observation_batch
from tagwire.kernel.packets import Segments
from tagwire.kernel.watching import Watcher

from .traffic import BROKER, SIX, Talk, asks, ip, offers, pcap, request, response

Metadata, MetadataAnswer = messages.MetadataRequest, messages.MetadataResponse
EXTREMES = (
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    bytes(4),
    b"\x00\x00\x00\x01",
    b"\x16\x03\x01\x02",
)


def talk(ends: tuple[tuple[str, int], tuple[str, int]], size: int = 60) -> Talk:
    """A client that says who it is, in both ways, and asks for something, in small segments."""
    spoken = Talk(ends).open().client(asks(1), size).broker(offers(1, Metadata=(0, 12)), size)
    spoken.client(request(messages.SaslHandshakeRequest(mechanism="PLAIN"), 0, 2))
    spoken.broker(response(messages.SaslHandshakeResponse(), 0, 2))
    spoken.client(struct.pack(">i", 6) + b"\0a\0pwd").broker(bytes(4))
    for at in range(3, 9):
        spoken.client(request(Metadata(topics=None), 12, at), size)
        topics = [MetadataAnswer.MetadataResponseTopic(name=f"topic-{at}", error_code=3)] * at
        spoken.broker(response(MetadataAnswer(topics=topics), 12, at), size)
    return spoken


def mixed() -> list[list[bytes]]:
    """The packets of three connections, turn by turn: over IPv4 and IPv6, with VLAN tags, and half of one."""
    four, six, half = (talk(ends).packets() for ends in ((("10.0.0.8", 7), BROKER), SIX, (("10.0.0.9", 7), BROKER)))
    tagged = [frame[:12] + b"\x81\x00\x00\x05" + frame[12:] for frame in four]
    turns = zip(tagged, six, half[7:], strict=False)
    return [list(turn) for turn in turns]


def pcapng(frames: list[bytes]) -> bytes:
    section = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    out = [section, struct.pack("<IIHHII", 1, 20, 1, 0, 0, 20)]
    for at, frame in enumerate(frames):
        padded = frame + bytes(-len(frame) % 4)
        size = 32 + len(padded)
        head = struct.pack("<IIIIIII", 6, size, 0, 0, at, len(frame), len(frame))
        out.append(head + padded + struct.pack("<I", size))
    return b"".join(out)


FRAMES = [frame for turn in mixed() for frame in turn]
BARE = [bytes(ip(SIX, piece)) for piece in talk(SIX).pieces]
CORPUS = [pcap(FRAMES), pcapng(FRAMES), pcap(BARE, 101), gzip.compress(pcap(FRAMES), 1)]


def flipped(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.randrange(1, 40)):
        data[chance.randrange(24, len(data))] ^= 1 << chance.randrange(8)


def lied(data: bytearray, chance: random.Random) -> None:
    """Numbers become those that readers get wrong."""
    for _ in range(chance.randrange(1, 20)):
        at = chance.randrange(24, len(data) - 4)
        data[at : at + 4] = chance.choice(EXTREMES)


def cut(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(24, len(data))
    del data[at : at + chance.choice([1, 7, 500, len(data)])]


def doubled(data: bytearray, chance: random.Random) -> None:
    at, size = chance.randrange(24, len(data)), chance.randrange(1, 3000)
    data[at:at] = data[at : at + size]


def reordered(data: bytearray, chance: random.Random) -> None:
    """Other packets in another order, some of them twice, some of them cut short."""
    frames = chance.choices(FRAMES, k=len(FRAMES)) if chance.random() < 0.5 else chance.sample(FRAMES, len(FRAMES))
    shown = [frame[: chance.choice([14, 40, 54, 58, 70, 96, 10_000])] for frame in frames]
    out = bytearray(pcap([])[:24])
    for at, (frame, kept) in enumerate(zip(frames, shown)):
        size = len(frame) if chance.random() < 0.9 else chance.choice([0, len(kept), 2**31, 2**32 - 1])
        out += struct.pack("<IIII", at, at, len(kept), size) + kept
    data[:] = out


DAMAGES: tuple[Callable[[bytearray, random.Random], None], ...] = (flipped, lied, cut, doubled, reordered)


class Watched(Watcher):  # type: ignore[misc]
    """A watcher that notes the most that it held."""

    most = 0

    def take(self, data: memoryview, segments: Segments) -> None:
        super().take(data, segments)
        self.most = max(self.most, self.held)


@pytest.fixture
def watchers(monkeypatch: pytest.MonkeyPatch) -> list[Watched]:
    """All that read captures."""
    made: list[Watched] = []

    def watcher(*given: Any) -> Watched:
        made.append(Watched(*given))
        return made[-1]

    monkeypatch.setattr(capture_connections, "Watcher", watcher)
    return made


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damaged_captures_are_read_to_their_end_and_raise_nothing(
    damage: Callable[[bytearray, random.Random], None], tmp_path: Path, watchers: list[Watched]
) -> None:
    path = tmp_path / "capture"
    for seed in range(60):
        chance = random.Random(seed)
        data = bytearray(chance.choice(CORPUS))
        for _ in range(chance.randrange(1, 3)):
            damage(data, chance)
        path.write_bytes(data)
        losses, census, told, rows = Losses(), Census(), Offers(), 0
        for seen in seen_in(path, losses, bodies=seed % 2 == 0):
            take_census(census, seen)
            rows += observation_batch(seen, told).num_rows
        assert sum(usage.count for usage in census.usages()) == rows <= len(data) // 14
        assert all(count > 0 for count in losses.counts.values())
    assert all(watched.held == 0 for watched in watchers)


def half_open(number: int) -> list[bytes]:
    """A connection whose client has sent a request but for its end, and a segment after a gap."""
    ends = ((f"10.{number >> 8 & 255}.{number & 255}.1", 5000), BROKER)
    spoken = Talk(ends).open()
    spoken.client(request(messages.ProduceRequest(transactional_id="x" * 30_000), 9, 1), 9000)
    spoken.pieces[-1] = (True, 900_000, bytes(9000), dpkt.tcp.TH_ACK)
    return spoken.packets()


def test_what_thousands_of_half_open_connections_keep_is_bounded_together(
    tmp_path: Path, watchers: list[Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that were silent longest give up what they keep, which is counted; the others are read to their end."""
    monkeypatch.setattr(capture_connections, "MAX_HELD_BYTES", 1 << 20)
    path = tmp_path / "capture.pcap"
    whole = Talk((("192.168.0.1", 1), BROKER)).open().client(asks(1)).broker(offers(1)).packets()
    path.write_bytes(pcap([*(frame for number in range(1500) for frame in half_open(number)), *whole]))
    losses = Losses()
    rows = [seen.rows.count for seen in seen_in(path, losses) if isinstance(seen, Requests)]
    (watched,) = watchers
    assert 1 << 19 < watched.most <= 1 << 20
    assert watched.held == 0
    assert losses.counts[LET_GO] > 30 << 20
    assert rows == [1]
