"""A partition's directory as Kafka lays it out, made by hand."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from crc32c import crc32c

from tagwire import records
from tagwire.records import Record

PER_BATCH = 10
EPOCHS = {0: 0, 40: 3}
PRODUCERS = {20: 7}


class Partition:
    """Two segments of batches of ten records: offsets 0-59 and 60-99, with all the files beside them.

    Epoch 3 begins at offset 40; producer 7 wrote 20-29; timestamps are the offsets; every batch but the first has index
    entries.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.first, self.second = self._write(0, 60), self._write(60, 100)
        self.file("leader-epoch-checkpoint").write_text("0\n2\n0 0\n3 40\n")
        self.file("partition.metadata").write_text("version: 0\ntopic_id: H3KKO4NTRPaCWtEmm3vW7A")
        body = struct.pack(">iqhiqiqiq", 1, 7, 0, 9, 29, 9, 29, 0, -1)
        self.file("00000000000000000060.snapshot").write_bytes(struct.pack(">hI", 1, crc32c(body)) + body)

    def file(self, name: str) -> Path:
        return self.path / name

    def _write(self, start: int, end: int) -> Path:
        log, index, times = b"", b"", b""
        for base in range(start, end, PER_BATCH):
            rows = [Record(b"k%d" % i, b"v" * (i % 7), [("h", None)], i) for i in range(base, base + PER_BATCH)]
            epoch = 3 if base >= 40 else 0
            batch = records.write(
                rows,
                compression=records.CODECS[base // PER_BATCH % 5],
                base_offset=base,
                partition_leader_epoch=epoch,
                producer_id=PRODUCERS.get(base, -1),
                producer_epoch=0 if base in PRODUCERS else -1,
                base_sequence=0 if base in PRODUCERS else -1,
            )
            if log:
                index += struct.pack(">ii", base + PER_BATCH - 1 - start, len(log))
                times += struct.pack(">qi", base + PER_BATCH - 1, base + PER_BATCH - 1 - start)
            log += batch
        path = self.file(f"{start:020d}.log")
        path.write_bytes(log)
        path.with_suffix(".index").write_bytes(index)
        path.with_suffix(".timeindex").write_bytes(times)
        return path


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    return Partition(tmp_path / "t.x-3")


def change(path: Path, position: int, data: bytes) -> None:
    """Writes `data` over what stands at `position`."""
    whole = bytearray(path.read_bytes())
    whole[position : position + len(data)] = data
    path.write_bytes(whole)
