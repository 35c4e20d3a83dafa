"""Headers of a record, the size of a record, the size of a batch."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from growing.brokers import running
from growing.lines import Line, Lines
from growing.row import Row, thousandfold
from tagwire import records
from tagwire.client import Admin, NewTopic, Producer, Reader

ROWS = 1_000
VALUE = bytes(range(100))
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
MIB = 1 << 20
LARGEST = 1 << 28
LEAST_PASSED = 64 * MIB


def _warm() -> None:
    """Imports what is imported late, and is no part of what grows."""
    records.to_arrow(records.from_arrow(pa.record_batch({"value": pa.array([VALUE])})))


def headers(size: int, folder: Path, lines: Lines) -> None:
    """A batch of a thousand records that have so many headers each."""
    _warm()
    keys = pa.array([f"header-{number:06}" for number in range(size)] * ROWS)
    pairs = pa.StructArray.from_arrays(
        [keys, pa.array([b"value-%06d" % n for n in range(size)] * ROWS)], ["key", "value"]
    )
    offsets = pa.array([size * row for row in range(ROWS + 1)], pa.int32())
    column = pa.ListArray.from_arrays(offsets, pairs).cast(HEADERS)
    batch = pa.record_batch({"value": pa.array([VALUE] * ROWS), "headers": column})
    with lines.line("Arrow to a batch"):
        data = records.from_arrow(batch)
    with lines.line("batch to Arrow"):
        found = records.to_arrow(data)
    assert len(found.column("headers")[0]) == size
    del found
    with lines.line("headers of Record objects"):
        count = sum(len(record.headers) for each in records.read(data) for record in each.records())
    assert count == size * ROWS


def record_size(size: int, folder: Path, lines: Lines) -> None:
    """Records of so many bytes, one after another, through a broker: 64 MiB of them, one at least."""
    count = max(1, LEAST_PASSED // size)
    with running(fsync="never", data_dir=str(folder / "data"), max_frame_bytes=LARGEST) as broker:
        with Admin(broker.bootstrap) as admin:
            admin.create_topics([NewTopic("t", configs={"max.message.bytes": str(LARGEST)})])
        value = bytes(size)
        with lines.line("produced, of a MiB") as line, _producer(broker.bootstrap) as producer:
            for _ in range(count):
                producer.send("t", value).result()
        _per(line, count * size / MIB)
        with lines.line("read, of a MiB") as line, _reader(broker.bootstrap) as reader:
            assert sum(len(record.value or b"") for record in reader.records()) == count * size
        _per(line, count * size / MIB)


def _producer(bootstrap: str) -> Producer:
    return Producer(bootstrap, buffer_memory=LARGEST, timeout=600)


def _reader(bootstrap: str) -> Reader:
    return Reader(bootstrap, "t", stop_at_end=True, max_bytes=LARGEST, max_partition_bytes=LARGEST)


def _per(line: Line, count: float) -> None:
    line.seconds /= count
    line.cpu /= count


def batch_size(size: int, folder: Path, lines: Lines) -> None:
    """One batch of so many bytes, of records of 100 bytes."""
    _warm()
    rows = max(1, size // 110)
    batch = pa.record_batch({"value": pa.array([VALUE]).take(pa.array([0] * rows))})
    times = max(1, MIB // size)
    with lines.line("Arrow to a batch") as line:
        for _ in range(times):
            data = records.from_arrow(batch)
    _per(line, times)
    with lines.line("batch to Arrow") as line:
        for _ in range(times):
            found = records.to_arrow(data)
    _per(line, times)
    assert found.num_rows == rows


ROWS_OF_RECORDS = (
    Row("headers", "headers per record", thousandfold(1), headers),
    Row("record-size", "bytes of a record", thousandfold(50_000), record_size),
    Row("batch-size", "bytes of a batch", thousandfold(16 << 10), batch_size),
)
