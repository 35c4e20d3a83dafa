"""Claim: checking a 1 GiB segment takes at most twice as long as reading and checksumming the file alone.

    make bench WHAT=segment

Both are processes, timed from their start to their end, and read the same file from the page cache. The one computes a
CRC-32C over it and does nothing else; `tagwire log --verify` finds every batch, computes each one's own, and holds the
batches against each other and against the two indexes beside them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from rounds import alternate, arguments, sized, table

from tagwire import records
from tagwire.records import Record
from tagwire.records.files import Segment, offset_index, time_index
from tagwire.records.files.names import offset_name
from tagwire.records.files.verify import verify_segment

SIZE = sized(1 << 30, 1 << 20)
ROUNDS = sized(7, 1)
BATCH_SIZES = (16 << 10, 256 << 10)
VALUE = bytes(range(100))
NOW = 1_700_000_000_000

READ_AND_CHECKSUM = """
import sys
from crc32c import crc32c
crc = 0
with open(sys.argv[1], "rb", buffering=0) as file:
    while data := file.read(1 << 20):
        crc = crc32c(data, crc)
"""
"""What the disk and the processor need at least."""


def write_segment(directory: Path, batch_size: int) -> Path:
    """A segment of batches of about `batch_size` bytes, with an entry for each of them in both indexes."""
    log = directory / f"{offset_name(0)}.log"
    per_batch = batch_size // 130
    rows = [Record(b"key-%06d" % i, VALUE, [("origin", b"EWR")], NOW + i) for i in range(per_batch)]
    batch = bytearray(records.write(rows))
    position = number = 0
    with (
        open(log, "wb") as out,
        open(log.with_suffix(".index"), "wb") as index,
        open(log.with_suffix(".timeindex"), "wb") as times,
    ):
        while position < SIZE:
            records.assign_offsets(batch, number * per_batch, 0)
            if position:
                index.write(offset_index.ENTRY.pack((number + 1) * per_batch - 1, position))
            out.write(batch)
            position += len(batch)
            number += 1
        times.write(time_index.ENTRY.pack(NOW + per_batch - 1, per_batch - 1))
    return log


def verify(path: Path) -> None:
    with Segment(path) as segment:
        faults = list(verify_segment(segment))
    assert not faults, faults[0]


def process(*arguments: str | Path) -> None:
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    arguments(__doc__).parse_args()
    for batch_size in BATCH_SIZES:
        with tempfile.TemporaryDirectory() as directory:
            path = write_segment(Path(directory), batch_size)
            contenders = {
                "a process that checksums alone": partial(process, "-c", READ_AND_CHECKSUM, path),
                "the command tagwire log --verify": partial(process, "-m", "tagwire", "log", "--verify", path),
                "Segment.verify, in this process": partial(verify, path),
            }
            timings = alternate(contenders, rounds=ROUNDS)
            title = f"{path.stat().st_size >> 20} MiB in batches of {batch_size >> 10} KiB"
            print(table(title, timings, units=path.stat().st_size / (1 << 20), unit="MiB"))


if __name__ == "__main__":
    main()
