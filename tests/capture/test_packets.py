"""Capture files: both formats, both byte orders, every clock, and files that are cut or damaged."""

from __future__ import annotations

import io
import struct

import dpkt
import pytest

from tagwire.capture import Losses
from tagwire.capture.packets import CUT, DAMAGED, UNTIMED, Packet, packets
from tagwire.errors import CaptureError

from .traffic import START, pcap, talk_frames

MICROSECONDS = int(START * 1_000_000)


def read(data: bytes) -> tuple[list[Packet], dict[str, int]]:
    losses = Losses()
    return list(packets(io.BytesIO(data), "file", losses)), dict(losses.counts)


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack(f"{order}I", 12 + len(body))
    return struct.pack(f"{order}I", kind) + size + body + size


def section(order: str) -> bytes:
    return block(order, 0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(order: str, *options: tuple[int, bytes], link_type: int = 1, most: int = 0) -> bytes:
    told = b"".join(
        struct.pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) % 4) for code, value in options
    )
    return block(order, 1, struct.pack(f"{order}HHI", link_type, 0, most) + told)


def enhanced(order: str, ticks: int, data: bytes, number: int = 0) -> bytes:
    head = struct.pack(f"{order}IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data) + 5)
    return block(order, 6, head + data)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "fraction"), [(0xA1B2C3D4, 250_000), (0xA1B23C4D, 250_000_000)])
def test_pcap_is_read_in_both_byte_orders_and_with_both_clocks(order: str, magic: int, fraction: int) -> None:
    data = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, 101)
    data += struct.pack(f"{order}IIII", 10, fraction, 3, 9) + b"abc"
    assert read(data) == ([Packet(10_250_000, 24, 101, b"abc", 9)], {})


@pytest.mark.parametrize("told", [0x20000000, 0x24000000, 0xF4000000])
def test_a_link_type_is_read_beside_the_length_of_its_check_sequences(told: int) -> None:
    data = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, told | 1) + struct.pack("<IIII", 1, 0, 1, 1) + b"a"
    assert [packet.link_type for packet in read(data)[0]] == [1]


def test_what_dpkt_writes_is_read() -> None:
    frames = talk_frames()
    out = io.BytesIO()
    writer = dpkt.pcapng.Writer(out)
    for at, frame in enumerate(frames):
        writer.writepkt(frame, ts=START + at)
    for data in (pcap(frames), out.getvalue()):
        found, lost = read(data)
        assert [packet.data for packet in found] == frames
        assert found[0].time == MICROSECONDS
        assert not lost


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("options", "ticks", "time"),
    [
        ((), 5_000_000, 5_000_000),
        (((9, b"\x09"),), 5_000_000_123, 5_000_000),
        (((9, b"\x8a"),), 5 * 1024 + 512, 5_500_000),
        (((14, None), (9, b"\x03")), 5_000, 105_000_000),
    ],
    ids=["microseconds", "nanoseconds", "parts of 1024", "an offset"],
)
def test_pcapng_is_read_in_both_byte_orders_and_with_any_clock(
    order: str, options: tuple[tuple[int, bytes | None], ...], ticks: int, time: int
) -> None:
    told = [(code, struct.pack(f"{order}q", 100) if value is None else value) for code, value in options]
    data = section(order) + interface(order, *told) + enhanced(order, ticks, b"abcde")
    found, lost = read(data)
    assert [(packet.time, packet.data, packet.size, packet.link_type) for packet in found] == [(time, b"abcde", 10, 1)]
    assert found[0].position == len(section(order) + interface(order, *told))
    assert not lost


def test_old_and_simple_packet_blocks_are_read() -> None:
    old = block("<", 2, struct.pack("<HHIIII", 0, 0, 0, 7, 4, 4) + b"old!")
    simple = block("<", 3, struct.pack("<I", 3) + b"sim")
    found, lost = read(section("<") + interface("<") + old + block("<", 99, b"else") + simple)
    assert [(packet.time, packet.data) for packet in found] == [(7, b"old!"), (-1, b"sim")]
    assert not lost


@pytest.mark.parametrize(("most", "kept"), [(0, b"simplest"), (8, b"simplest"), (5, b"simpl"), (9, b"simplest")])
def test_a_simple_packet_has_as_many_bytes_as_its_interface_keeps(most: int, kept: bytes) -> None:
    simple = block("<", 3, struct.pack("<I", 8) + kept)
    found, lost = read(section("<") + interface("<", most=most) + simple)
    assert [(packet.data, packet.size) for packet in found] == [(kept, 8)]
    assert not lost


def test_a_new_section_may_have_another_byte_order_and_forgets_the_interfaces() -> None:
    first = section("<") + interface("<", link_type=101) + enhanced("<", 1, b"a")
    second = section(">") + interface(">", link_type=1) + enhanced(">", 2, b"b")
    found, lost = read(first + second + section("<") + enhanced("<", 3, b"c"))
    assert [(packet.link_type, packet.data) for packet in found] == [(101, b"a"), (1, b"b")]
    assert lost == {UNTIMED: 1}


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_a_file_cut_anywhere_is_read_up_to_there(form: str) -> None:
    if form == "pcap":
        head, packet = pcap([])[:24], pcap([b"abcdefg"])[24:]
    else:
        head, packet = section("<") + interface("<"), enhanced("<", 1, b"abcdefg")
    for cut in range(len(packet)):
        found, lost = read(head + packet + packet[:cut])
        assert len(found) == 1
        assert lost == ({CUT: 1} if cut else {})


def test_lengths_that_no_packet_has_end_the_reading_and_allocate_nothing() -> None:
    assert read(pcap([]) + struct.pack("<IIII", 1, 1, 2**31, 2**31))[1] == {DAMAGED: 1}
    head = section("<") + interface("<")
    for length in (0, 8, 13, 2**31):
        assert read(head + struct.pack("<II", 6, length) + bytes(40))[1] == {DAMAGED: 1}
    assert read(b"\x0a\x0d\x0d\x0a\x1c\x00\x00\x00what")[1] == {DAMAGED: 1}


@pytest.mark.parametrize("size", [0, 4])
def test_an_interface_that_is_shorter_than_any_ends_the_reading(size: int) -> None:
    """Packets go by their interface's number, so that none behind it is another's."""
    head = section("<") + interface("<") + enhanced("<", 1, b"read")
    found, lost = read(head + block("<", 1, bytes(size)) + interface("<", link_type=101) + enhanced("<", 1, b"a", 1))
    assert [(packet.link_type, packet.data) for packet in found] == [(1, b"read")]
    assert lost == {DAMAGED: 1}


@pytest.mark.parametrize("size", [1, 3, 40])
def test_packets_are_the_same_in_whatever_pieces_a_file_is_read(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [pcap(talk_frames()), section("<") + interface("<") + enhanced("<", 1, b"a" * 99) + enhanced("<", 2, b"b")]
    whole = [read(data) for data in files]
    monkeypatch.setattr("tagwire.capture.packets.READ_BYTES", size)
    monkeypatch.setattr("tagwire.capture.packets.PACKETS", 2)
    assert [read(data) for data in files] == whole


def test_a_packet_that_is_longer_than_what_is_read_at_a_time_is_waited_for() -> None:
    long = bytes(3 << 20)
    assert [packet.data for packet in read(pcap([b"a", long, b"b"]))[0]] == [b"a", long, b"b"]


@pytest.mark.parametrize("ticks", [2**63, 2**64 - 1])
@pytest.mark.parametrize("clock", [(), ((9, b"\x00"),), ((9, b"\x12"),), ((9, b"\xbf"),), ((14, b"\x7f" * 8),)])
def test_a_time_that_no_calendar_has_is_taken_as_not_recorded(clock: tuple[tuple[int, bytes], ...], ticks: int) -> None:
    found, lost = read(section("<") + interface("<", *clock) + enhanced("<", ticks, b"abcde"))
    assert all(-1 <= packet.time < 253_402_300_800_000_000 for packet in found)
    assert not lost


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"[2026-01-01"])
def test_another_file_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(CaptureError, match="file: bytes"):
        read(data)
