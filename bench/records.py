"""Claim: record batches become Arrow about eleven times as fast as aiokafka iterates them, and Arrow becomes record
batches about nine times as fast as aiokafka builds them (10,000 records of 100-byte values with 2 headers).

`make bench WHAT=records`. Checksums are made and verified, every field is touched, answers are compared first.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from rounds import alternate, table

from tagwire import kernel, records
from tagwire.records import Record

COUNT = 10_000
REPEAT = 50
ROUNDS = 11


def rows(headers: int) -> list[Record]:
    pairs = [("origin", b"EWR"), ("trace-id", b"01J2ZK3M9Q")][:headers]
    return [
        Record(
            b"UA-%07d" % number,
            (b'{"carrier": "UA", "flight": %07d, "origin": "EWR", "dest": "IAH", "dep_delay": 2.0}' % number).ljust(
                100
            ),
            pairs,
            1_372_000_000_000 + number,
        )
        for number in range(COUNT)
    ]


def iterate_aiokafka(data: bytes) -> list[tuple[object, ...]]:
    log = MemoryRecords(data)
    found = []
    while log.has_next():
        batch = log.next_batch()
        assert batch.validate_crc()
        for row in batch:
            found.append((row.offset, row.timestamp, row.key, row.value, row.headers))
    return found


def touch_aiokafka(data: bytes) -> None:
    log = MemoryRecords(data)
    while log.has_next():
        batch = log.next_batch()
        assert batch.validate_crc()
        for row in batch:
            row.offset, row.timestamp, row.key, row.value, row.headers  # noqa: B018


def touch_tagwire(data: bytes) -> None:
    for batch in records.read(data):
        for row in batch.records():
            row.offset, row.timestamp, row.key, row.value, row.headers  # noqa: B018


def build_aiokafka(found: list[Record]) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 30,
    )
    for offset, row in enumerate(found):
        builder.append(offset, row.timestamp, row.key, row.value, row.headers)
    return bytes(builder.build())


def repeated(work: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        for _ in range(REPEAT):
            work()

    return run


def compare(headers: int) -> None:
    found = rows(headers)
    data = records.write(found)
    arrow = records.to_arrow(data)
    assert build_aiokafka(found) == data == records.from_arrow(arrow)
    assert iterate_aiokafka(data) == [
        (row.offset, row.timestamp, row.key, row.value, list(row.headers))
        for batch in records.read(data)
        for row in batch.records()
    ]
    gc.collect()
    gc.freeze()
    reading = {
        "aiokafka, iterated": lambda: touch_aiokafka(data),
        "tagwire, to Arrow": lambda: records.to_arrow(data),
        "tagwire, iterated": lambda: touch_tagwire(data),
    }
    writing = {
        "aiokafka, built": lambda: build_aiokafka(found),
        "tagwire, from Arrow": lambda: records.from_arrow(arrow),
        "tagwire, from records": lambda: records.write(found),
    }
    for title, contenders in (("read", reading), ("write", writing)):
        timings = alternate({name: repeated(work) for name, work in contenders.items()}, rounds=ROUNDS)
        print(table(f"{title}, {headers} headers", timings, units=COUNT * REPEAT, unit="records"))


def main() -> None:
    print(f"kernels compiled: {kernel.compiled}")
    for headers in (2, 0):
        compare(headers)


if __name__ == "__main__":
    main()
