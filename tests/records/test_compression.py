from __future__ import annotations

import gzip
import json
import random
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire import records
from tagwire.errors import ConfigError, CorruptRecordError

COMPRESSED = ("gzip", "snappy", "lz4", "zstd")
TEXT = json.dumps([{"id": number, "name": f"carrier {number % 7}"} for number in range(5000)]).encode()
MIB = 1 << 20


def lz4_frame(content: bytes, *, flags: int = 0x60, block: int = 0x40, extra: bytes = b"") -> bytes:
    """A frame of one stored block; its header checksum for these flags is looked up, not computed."""
    checksums = {(0x60, 0x40): 0x82, (0x64, 0x40): 0xA7, (0x60, 0x50): 0xFB, (0x60, 0x70): 0x73}
    header = b"\x04\x22\x4d\x18" + bytes((flags, block, checksums[flags, block]))
    return header + (len(content) | 1 << 31).to_bytes(4, "little") + content + bytes(4) + extra


@pytest.mark.parametrize("codec", records.CODECS)
@pytest.mark.parametrize("size", [0, 1, 32767, 32768, 32769, 70_000, len(TEXT)])
def test_what_is_compressed_decompresses_to_itself(codec: str, size: int) -> None:
    assert records.decompress(codec, records.compress(codec, TEXT[:size]), size) == TEXT[:size]


@given(codec=st.sampled_from(records.CODECS), data=st.binary(max_size=5000), repeat=st.integers(1, 50))
def test_any_bytes_survive_compression(codec: str, data: bytes, repeat: int) -> None:
    plain = data * repeat
    assert records.decompress(codec, records.compress(codec, plain), len(plain)) == plain


@pytest.mark.parametrize("data", [bytearray(TEXT), memoryview(TEXT)], ids=["bytearray", "memoryview"])
@pytest.mark.parametrize("codec", records.CODECS)
def test_any_bytes_like_is_compressed(codec: str, data: bytearray | memoryview) -> None:
    assert records.decompress(codec, bytearray(records.compress(codec, data)), len(TEXT)) == TEXT


def test_lz4_is_written_as_frames_of_independent_blocks_without_content_size() -> None:
    # Java refuses linked blocks: FLG bits are 01 (version), independent, block checksum, size, content checksum.
    for level in (None, 1, 9, 12):
        frame = records.compress("lz4", TEXT, level)
        assert frame[:4] == bytes.fromhex("04224d18")
        assert frame[4] & 0b1110_1111 == 0b0110_0000
        assert frame[5] == 0x40


@pytest.mark.parametrize("content_checksum", [False, True])
@pytest.mark.parametrize("block_linked", [False, True])
def test_lz4_of_other_writers_is_read_linked_blocks_and_checksums_too(
    content_checksum: bool, block_linked: bool
) -> None:
    compressor = cramjam.lz4.Compressor(level=4, content_checksum=content_checksum, block_linked=block_linked)
    compressor.compress(TEXT)
    assert records.decompress("lz4", bytes(compressor.finish()), len(TEXT)) == TEXT


def test_only_the_first_lz4_frame_counts() -> None:
    assert records.decompress("lz4", lz4_frame(b"first", extra=lz4_frame(b"second")), 100) == b"first"
    assert records.decompress("lz4", lz4_frame(b"first", extra=b"garbage"), 100) == b"first"


def test_a_wrong_lz4_content_checksum_is_not_looked_at() -> None:
    frame = lz4_frame(b"content", flags=0x64, extra=b"\xde\xad\xbe\xef")
    assert records.decompress("lz4", frame, 100) == b"content"


def test_a_wrong_lz4_content_size_is_not_looked_at() -> None:
    # FLG 68 with a size of 5; the checksum of this descriptor is 61
    frame = bytes.fromhex("04224d18 6840 0500000000000000 61") + lz4_frame(b"content")[7:]
    assert records.decompress("lz4", frame, 100) == b"content"


def test_in_messages_of_magic_0_lz4_has_the_header_checksum_of_a_mistake() -> None:
    frame = bytearray(records.compress("lz4", TEXT, magic=0))
    assert frame[:4] + frame[7:] == records.compress("lz4", TEXT)[:4] + records.compress("lz4", TEXT)[7:]
    assert bytes(frame[4:7]) in (bytes.fromhex("60401a"), bytes.fromhex("7040ec"))
    for magic in (1, 2):
        with pytest.raises(CorruptRecordError, match="lz4 frame header fails its checksum"):
            records.decompress("lz4", frame, len(TEXT), magic=magic)
    for checksum in (frame[6], 0x82, 0):
        frame[6] = checksum
        assert records.decompress("lz4", frame, len(TEXT), magic=0) == TEXT
    assert records.decompress("lz4", records.compress("lz4", TEXT), len(TEXT), magic=0) == TEXT


@pytest.mark.parametrize("size", [0, 1, 12, 13, 65_535, 65_536, 65_537, 200_000])
@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
def test_lz4_is_written_in_independent_blocks_of_64_kib_and_what_does_not_shrink_is_stored(
    size: int, wrap: Callable[[bytes], Any]
) -> None:
    blocks = -(-size // 65_536)
    for content in (bytes(size), random.Random(size).randbytes(size)):
        frame = records.compress("lz4", wrap(content))
        assert frame[:7] == bytes.fromhex("04224d18 604082")
        assert frame[-4:] == bytes(4)
        assert len(frame) <= 7 + 4 * blocks + size + 4
        assert bytes(cramjam.lz4.decompress(frame)) == content
        assert records.decompress("lz4", frame, size) == content


def test_snappy_is_written_in_xerial_blocks_of_32_kib() -> None:
    stream = records.compress("snappy", bytes(65_537))
    assert stream[:16] == b"\x82SNAPPY\x00" + bytes.fromhex("00000001 00000001")
    sizes, at = [], 16
    while at < len(stream):
        length = int.from_bytes(stream[at : at + 4], "big")
        sizes.append(cramjam.snappy.decompress_raw_len(stream[at + 4 : at + 4 + length]))
        at += 4 + length
    assert sizes == [32_768, 32_768, 1]


def test_snappy_without_framing_is_one_block() -> None:
    assert records.decompress("snappy", bytes(cramjam.snappy.compress_raw(TEXT)), len(TEXT)) == TEXT


def test_snappy_streams_may_stand_one_after_another() -> None:
    both = records.compress("snappy", b"first,") + records.compress("snappy", b"second")
    assert records.decompress("snappy", both, 100) == b"first,second"


def test_every_gzip_member_is_read_and_garbage_after_the_last_ignored() -> None:
    members = gzip.compress(b"first,") + gzip.compress(b"") + gzip.compress(b"second")
    for tail in (b"", b"\0" * 8, b"garbage that is no member", b"\x1f\x8b", b"\x1f\x8b\x08 short"[:9]):
        assert records.decompress("gzip", members + tail, 100) == b"first,second"


def test_a_gzip_member_across_pieces_of_input_is_read() -> None:
    noise = zlib.compress(TEXT, 0) * 3
    members = gzip.compress(noise, 0) + gzip.compress(TEXT) + gzip.compress(noise, 1)
    assert records.decompress("gzip", members, 2 * len(noise) + len(TEXT)) == noise + TEXT + noise


def test_concatenated_zstd_frames_and_skippable_ones_are_read() -> None:
    skippable = bytes.fromhex("502a4d18 03000000") + b"abc"
    frames = skippable + records.compress("zstd", b"first,") + skippable + records.compress("zstd", b"second")
    assert records.decompress("zstd", frames, 100) == b"first,second"
    assert records.decompress("zstd", b"", 100) == b""


def test_zstd_that_outgrows_the_first_guess_is_read() -> None:
    plain = bytes(300_000)
    assert records.decompress("zstd", records.compress("zstd", plain), len(plain)) == plain


XERIAL = records.compress("snappy", b"")[:16]

# name, codec, stream
BROKEN = [
    ("empty", "gzip", b""),
    ("plain text", "gzip", b"plain text, not gzip"),
    ("cut before its trailer", "gzip", gzip.compress(TEXT, mtime=0)[:-9]),
    ("cut in its header", "gzip", gzip.compress(TEXT, mtime=0)[:5]),
    ("a trailer of zeros", "gzip", gzip.compress(b"content", mtime=0)[:-8] + bytes(8)),
    ("a second member cut short", "gzip", gzip.compress(b"first", mtime=0) + gzip.compress(b"second", mtime=0)[:-4]),
    ("empty", "snappy", b""),
    ("a length without an end", "snappy", b"\xff\xff\xff\xff\xff\xff"),
    ("less than the length says", "snappy", bytes.fromhex("05 00 61")),
    ("a xerial header cut short", "snappy", b"\x82SNAPPY\x00" + bytes.fromhex("00000001")),
    ("xerial block length -1", "snappy", XERIAL + bytes.fromhex("ffffffff")),
    ("xerial block length 0", "snappy", XERIAL + bytes.fromhex("00000000")),
    ("xerial block length greatest", "snappy", XERIAL + bytes.fromhex("7fffffff 00")),
    ("a xerial block length cut short", "snappy", XERIAL + bytes.fromhex("00")),
    ("a xerial block cut short", "snappy", records.compress("snappy", TEXT)[:-1]),
    ("xerial blocks that claim 4 GiB each", "snappy", XERIAL + bytes.fromhex("00000006 ffffffff0f00") * 3),
    ("empty", "lz4", b""),
    ("plain text", "lz4", b"plain text, not lz4"),
    ("cut in its last block", "lz4", records.compress("lz4", TEXT)[:-5]),
    ("cut in its header", "lz4", records.compress("lz4", TEXT)[:6]),
    ("a wrong header checksum", "lz4", bytes.fromhex("04224d18 60 40 83 00000000")),
    ("a dictionary", "lz4", bytes.fromhex("04224d18 61 40 82 00000000")),
    ("another version", "lz4", bytes.fromhex("04224d18 20 40 82 00000000")),
    ("a block size of none", "lz4", bytes.fromhex("04224d18 60 30 82 00000000")),
    ("reserved bits", "lz4", bytes.fromhex("04224d18 60 c0 82 00000000")),
    ("a block of 2 GiB", "lz4", bytes.fromhex("04224d18 60 40 82 ffffffff 00")),
    ("a block that is none", "lz4", bytes.fromhex("04224d18 60 40 82 05000000 ffffffffff 00000000")),
    ("plain text", "zstd", b"plain text, not zstd"),
    ("cut in its last block", "zstd", records.compress("zstd", TEXT)[:-3]),
    ("garbage after the last frame", "zstd", records.compress("zstd", TEXT) + b"garbage"),
    ("a content size of 255 for 5 bytes", "zstd", bytes.fromhex("28b52ffd 20 ff 290000") + b"hello"),
    ("a content size of 3 for 5 bytes", "zstd", bytes.fromhex("28b52ffd 20 03 290000") + b"hello"),
    ("a window of 2 TiB", "zstd", bytes.fromhex("28b52ffd 00 f8 290000") + b"hello"),
]


@pytest.mark.parametrize(
    ("codec", "stream"), [case[1:] for case in BROKEN], ids=[f"{case[1]}: {case[0]}" for case in BROKEN]
)
def test_a_broken_stream_is_named_by_its_codec(codec: str, stream: bytes) -> None:
    with pytest.raises(CorruptRecordError, match=codec):
        records.decompress(codec, stream, MIB)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_the_limit_is_the_last_size_that_is_taken(codec: str) -> None:
    stream = records.compress(codec, TEXT)
    assert records.decompress(codec, stream, len(TEXT)) == TEXT
    with pytest.raises(CorruptRecordError, match=str(len(TEXT) - 1)):
        records.decompress(codec, stream, len(TEXT) - 1)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_bomb_is_stopped_while_it_runs(codec: str) -> None:
    limit = MIB
    plain = bytes(24 * MIB)
    bomb = bytes(cramjam.snappy.compress_raw(plain)) if codec == "snappy" else records.compress(codec, plain)
    del plain
    tracemalloc.start()
    try:
        with pytest.raises(CorruptRecordError, match="more than"):
            records.decompress(codec, bomb, limit)
        assert tracemalloc.get_traced_memory()[1] < 2 * limit
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_without_a_limit_it_is_64_times_the_input_and_1_mib(codec: str) -> None:
    assert len(records.decompress(codec, records.compress(codec, bytes(MIB)))) == MIB
    with pytest.raises(CorruptRecordError, match="more than"):
        records.decompress(codec, records.compress(codec, bytes(16 * MIB)))


def test_an_uncompressed_payload_is_given_back_not_copied() -> None:
    data = bytearray(b"payload")
    view = records.decompress("none", data, 1)
    data[0] = 0x50
    assert view == b"Payload"


@pytest.mark.parametrize(
    ("codec", "level", "error"),
    [
        ("brotli", None, "'brotli' is unknown; allowed: none, gzip, snappy, lz4, zstd"),
        ("none", 1, "none takes no level"),
        ("snappy", 1, "snappy takes no level"),
        ("gzip", 0, "level 0 is not in gzip's range 1..9"),
        ("lz4", 13, "level 13"),
        ("zstd", 23, "level 23"),
        ("gzip", "5", "level '5' is not in gzip's range"),
        ("zstd", 5.5, "level 5.5 is not in zstd's range"),
        ("lz4", True, "level True is not in lz4's range"),
    ],
)
def test_a_wrong_codec_or_level_is_named(codec: str, level: Any, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        records.compress(codec, b"", level)


@pytest.mark.parametrize(("codec", "fast", "small"), [("gzip", 1, 9), ("lz4", 1, 12), ("zstd", -5, 19)])
def test_a_higher_level_makes_it_smaller(codec: str, fast: int, small: int) -> None:
    assert len(records.compress(codec, TEXT, small)) < len(records.compress(codec, TEXT, fast))
