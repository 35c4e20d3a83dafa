"""Small streams that hold much: each is stopped at the limit, measured as the memory of a process that reads it."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import cramjam
import pytest

from tagwire import records
from tagwire.errors import CorruptRecordError
from tagwire.records import Record

from .message_sets import message

MIB = 1 << 20
LIMIT = MIB
CONTENT = 128 * MIB
ALLOWED_KIB = 3 * LIMIT // 1024 + 8 * 1024
"""Three times the limit, and what a process grows by in reading anything at all; the content is ten times that."""

READ = """
import resource, sys
from tagwire import records
from tagwire.errors import CorruptRecordError

data, what, dialect, limit = open(sys.argv[1], "rb").read(), sys.argv[2], sys.argv[3] or None, int(sys.argv[4])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    if what == "batch":
        next(next(records.read(data, dialect)).records(max_decompressed=limit))
    else:
        records.decompress(what, data, limit)
except CorruptRecordError as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, error)
"""


def zstd_without_size(content: int) -> bytes:
    """A frame that does not say how much it holds."""
    compressor = cramjam.zstd.Compressor(level=19)
    for _ in range(content // MIB):
        compressor.compress(bytes(MIB))
    return bytes(compressor.finish())


STREAMS = {
    "gzip": ("gzip", lambda: records.compress("gzip", bytes(CONTENT), 1)),
    "gzip of many members": ("gzip", lambda: gzip.compress(bytes(MIB), 1) * (CONTENT // MIB)),
    "snappy": ("snappy", lambda: bytes(cramjam.snappy.compress_raw(bytes(CONTENT)))),
    "snappy in blocks": ("snappy", lambda: records.compress("snappy", bytes(CONTENT))),
    "lz4": ("lz4", lambda: records.compress("lz4", bytes(CONTENT))),
    "zstd": ("zstd", lambda: records.compress("zstd", bytes(CONTENT))),
    "zstd without its size": ("zstd", lambda: zstd_without_size(CONTENT)),
    "zstd of many frames": ("zstd", lambda: records.compress("zstd", bytes(MIB)) * (CONTENT // MIB)),
}

BATCHES = {
    **{f"magic 2, {codec}": (codec, {}) for codec in records.CODECS[1:]},
    **{f"magic 1, {codec}": (codec, {"magic": 1}) for codec in records.CODECS[1:4]},
    "int-headers, zstd": ("zstd", {"dialect": "int-headers"}),
}


def peak_and_error(path: Path, data: bytes, what: str, dialect: str = "") -> tuple[int, str]:
    """What reading `data` in a process of its own adds to its peak memory, in KiB, and the error it ends with."""
    path.write_bytes(data)
    command = [sys.executable, "-c", READ, str(path), what, dialect, str(LIMIT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    grown, _, error = done.stdout.strip().partition(" ")
    return int(grown), error


@pytest.mark.parametrize("name", STREAMS)
def test_a_bomb_takes_no_more_memory_than_the_limit(name: str, tmp_path: Path) -> None:
    codec, make = STREAMS[name]
    grown, error = peak_and_error(tmp_path / "bomb", make(), codec)
    assert codec in error
    assert "more than" in error
    assert grown < ALLOWED_KIB


@pytest.mark.parametrize("name", BATCHES)
def test_a_batch_that_is_a_bomb_takes_no_more_memory_than_the_limit(name: str, tmp_path: Path) -> None:
    codec, options = BATCHES[name]
    data = records.write([Record(None, bytes(CONTENT))], compression=codec, **options)
    grown, error = peak_and_error(tmp_path / "bomb", data, "batch", options.get("dialect", ""))
    assert "offset 0: " in error
    assert "more than" in error
    assert grown < ALLOWED_KIB


@pytest.mark.parametrize(
    ("codec", "stream", "content"),
    [
        ("gzip", gzip.compress(b"", mtime=0) * 50_000, 0),
        ("snappy", records.compress("snappy", b"") * 60_000, 0),
        ("snappy", records.compress("snappy", b"") + records.compress("snappy", b"a")[16:] * 100_000, 100_000),
        ("lz4", bytes.fromhex("04224d18604082") + bytes.fromhex("01000080 61") * 200_000 + bytes(4), 200_000),
        ("zstd", records.compress("zstd", b"") * 100_000, 0),
    ],
)
def test_many_small_pieces_take_linear_time(codec: str, stream: bytes, content: int) -> None:
    # a quadratic step would make this take minutes
    assert len(records.decompress(codec, stream, content)) == content


def test_a_wrapper_in_a_wrapper_is_not_decompressed() -> None:
    inner = message(0, None, gzip.compress(bytes(16 * MIB)), attributes=1)
    data = message(0, None, gzip.compress(inner), attributes=1)
    with pytest.raises(CorruptRecordError, match="compressed message is inside a compressed message"):
        next(records.read(data)).decompress(LIMIT)
