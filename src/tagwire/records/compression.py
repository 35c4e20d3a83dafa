"""The codecs of record batches: none, gzip, snappy, lz4, zstd, framed as Kafka frames them.

Every decompression takes a limit and stops at it while it runs, so a small batch cannot claim the machine's memory.

Source: docs/record-formats.md#codecs.
"""

from __future__ import annotations

import zlib
from typing import Final

import cramjam

from tagwire.errors import ConfigError, CorruptRecordError
from tagwire.kernel.raw_bytes import uncleared
from tagwire.records import lz4_frame, snappy_stream, zstd_frame

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""Codec names by their id in a batch's attributes."""

_LEVELS = {"gzip": (1, 9), "lz4": (0, 12), "zstd": (-131072, 22)}
_GZIP_MEMBER = b"\x1f\x8b\x08"
_GZIP_HEADER_SIZE = 10
_GZIP_PIECE, _GZIP_CONTENT = 1 << 16, 1 << 18


MAX_DECOMPRESSED: Final = 64 * 1024 * 1024
"""What one compressed batch may become for those who serve and read topics: batches are bounded by their compressed
bytes only, and honest ones may shrink a hundredfold."""


def default_limit(size: int) -> int:
    """Most bytes that `size` compressed bytes may become where no limit is named: 64 times as many and 1 MiB."""
    return 64 * size + (1 << 20)


def codec_id(codec: str, level: int | None = None) -> int:
    """The id of `codec` in a batch's attributes. Raises ConfigError for an unknown codec or a level it has not."""
    if codec not in CODECS:
        raise ConfigError(f"compression {codec!r} is unknown; allowed: {', '.join(CODECS)}")
    if level is not None:
        if codec not in _LEVELS:
            raise ConfigError(f"compression {codec} takes no level, got {level}")
        low, high = _LEVELS[codec]
        if isinstance(level, bool) or not isinstance(level, int) or not low <= level <= high:
            raise ConfigError(f"compression level {level!r} is not in {codec}'s range {low}..{high}")
    return CODECS.index(codec)


def compress(codec: str, data: bytes | bytearray | memoryview, level: int | None = None, *, magic: int = 2) -> bytes:
    """`data` as one stream of `codec`; level None is the codec's default (gzip 6, lz4 fast, zstd 3).

    `magic`: of the message that will hold it: in magic 0, lz4 has a header checksum of its own. Raises ConfigError for
    an unknown codec or level.
    """
    codec_id(codec, level)
    if codec == "gzip":
        compressor = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
        return compressor.compress(data) + compressor.flush()
    if codec == "snappy":
        return snappy_stream.compress(data)
    if codec == "lz4":
        return lz4_frame.compress(data, level, magic=magic)
    if codec == "zstd":
        return bytes(cramjam.zstd.compress(data, 3 if level is None else level))
    return bytes(data)


def decompress(
    codec: str, data: bytes | bytearray | memoryview, limit: int | None = None, *, path: str = "", magic: int = 2
) -> memoryview:
    """The content of a stream of `codec`, at most `limit` bytes (None: `default_limit`); `magic` as for `compress`.

    Raises CorruptRecordError, prefixed with `path`, when the stream is broken or holds more; ConfigError for an unknown
    codec. Codec none gives `data` itself whatever its size: it is in memory already.
    """
    codec_id(codec)
    view = memoryview(data).cast("B")
    if codec == "none":
        return view
    if limit is None:
        limit = default_limit(len(view))
    try:
        if codec == "lz4":
            return memoryview(lz4_frame.decompress(view, limit, magic=magic))
        return memoryview(_DECOMPRESS[codec](view, limit))
    except CorruptRecordError as error:
        raise CorruptRecordError(str(error), path=path) from None


def over_limit(codec: str, limit: int, path: str = "") -> CorruptRecordError:
    """The error about a stream that was stopped at `limit` bytes."""
    return CorruptRecordError(f"{codec} data holds more than {limit} bytes", path=path)


def _gunzip(data: memoryview, limit: int) -> bytearray:
    """Every member; what follows the last one and is not a member is ignored, as Java does."""
    out = bytearray()
    at = 0
    while True:
        member = zlib.decompressobj(31)
        while not member.eof:
            if at == len(data):
                raise CorruptRecordError("gzip data is cut short")
            piece: bytes | memoryview = data[at : at + _GZIP_PIECE]
            at += len(piece)
            while piece and not member.eof:
                try:
                    out += member.decompress(piece, _GZIP_CONTENT)
                except zlib.error as error:
                    raise CorruptRecordError(f"gzip data is broken: {error}") from None
                if len(out) > limit:
                    raise over_limit("gzip", limit)
                piece = member.unconsumed_tail
        at -= len(member.unused_data)
        if len(data) - at < _GZIP_HEADER_SIZE or data[at : at + 3] != _GZIP_MEMBER:
            return out


def _unzstd(data: memoryview, limit: int) -> bytearray:
    size = zstd_frame.bound(data)
    out = uncleared(min(size, limit))
    if not data:
        return out
    try:
        del out[cramjam.zstd.decompress_into(data, out) :]
    except cramjam.DecompressionError as error:
        if size > limit and "write whole buffer" in str(error):
            raise over_limit("zstd", limit) from None
        raise CorruptRecordError(f"zstd data is broken: {error}") from None
    return out


_DECOMPRESS = {"gzip": _gunzip, "snappy": snappy_stream.decompress, "zstd": _unzstd}
