"""Claim: record batches become Arrow at least 12 times as fast as aiokafka iterates them, and Arrow becomes record
batches at least 9 times as fast as aiokafka builds them (10,000 records of 100-byte values with 2 headers); small
batches and compressed ones keep up.

`make bench WHAT=records`. Checksums are made and verified, every field is touched, answers are compared first. What is
measured is processor time: all of it is the work of one thread.
"""

from __future__ import annotations

import gc
import random
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import lz4.frame
import pyarrow as pa
import snappy
import zstandard
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from crc32c import crc32c
from kafka.record import MemoryRecords as KafkaPythonRecords
from rounds import Timing, alternate, arguments, sized, table

from tagwire import kernel, records
from tagwire.records import Record

COUNT = sized(10_000, 1_000)
ROUNDS = sized(11, 1)
TURN = sized(0.06, 0.001)
SMALL_BATCH = 104  # records that make a batch of 16 KiB
FETCH = sized(64, 2) * SMALL_BATCH  # and a fetch of 1 MiB
LEVELS = {"gzip": 6, "lz4": None, "snappy": None, "zstd": 3}


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


def random_rows() -> list[Record]:
    chance = random.Random(7)
    return [
        Record(
            chance.randbytes(chance.randrange(4, 25)),
            chance.randbytes(chance.randrange(20, 200)),
            [
                ("h" * chance.randrange(1, 12), chance.randbytes(chance.randrange(20)))
                for _ in range(chance.randrange(5))
            ],
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


def touch(rows: Iterable[Any], *, headers: bool) -> None:
    """Reads the fields one by one: a tuple of them would cost as much as two."""
    if headers:
        for row in rows:
            row.offset  # noqa: B018
            row.timestamp  # noqa: B018
            row.key  # noqa: B018
            row.value  # noqa: B018
            row.headers  # noqa: B018
    else:
        for row in rows:
            row.key  # noqa: B018
            row.value  # noqa: B018


def touch_peer(log: MemoryRecords | KafkaPythonRecords, *, headers: bool = True) -> None:
    while log.has_next():
        batch = log.next_batch()
        assert batch.validate_crc()
        touch(batch, headers=headers)


def touch_tagwire(data: bytes, *, headers: bool = True) -> None:
    for batch in records.read(data):
        touch(batch.records(), headers=headers)


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


def measured(contenders: Mapping[str, Callable[[], object]], *, rounds: int = ROUNDS) -> list[Timing]:
    """The contenders' timings of one call each, in seconds of processor time. In its turn a contender works for about
    `TURN` seconds, whoever is quick as often as it takes: what it does best once it runs, not what starting costs
    after another's turn."""
    times: dict[str, int] = {}

    def repeated(name: str, work: Callable[[], object]) -> Callable[[], None]:
        work()
        started = time.thread_time()
        work()
        times[name] = max(1, round(TURN / (time.thread_time() - started)))

        def run() -> None:
            for _ in range(times[name]):
                work()

        return run

    gc.collect()
    gc.freeze()
    turns = {name: repeated(name, work) for name, work in contenders.items()}
    timings = alternate(turns, rounds=rounds, clock=time.thread_time)
    return [
        Timing(timing.name, tuple(seconds / times[timing.name] for seconds in timing.seconds)) for timing in timings
    ]


def arrow(title: str, found: list[Record]) -> None:
    """Both ways between batches and Arrow, against aiokafka and against the least that the same bytes cost."""
    data = records.write(found)
    rows = records.to_arrow(data)
    assert build_aiokafka(found) == data == records.from_arrow(rows)
    assert iterate_aiokafka(data) == [
        (row.offset, row.timestamp, row.key, row.value, list(row.headers))
        for batch in records.read(data)
        for row in batch.records()
    ]
    reading = {
        "aiokafka, iterated": lambda: touch_peer(MemoryRecords(data)),
        "tagwire, to Arrow": lambda: records.to_arrow(data),
        "tagwire, values alone": lambda: records.to_arrow(data, columns=["value"]),
        "tagwire, offsets alone": lambda: records.to_arrow(data, columns=["offset"]),
        "checksum of the same bytes": lambda: crc32c(data),
        "copy of the same bytes": lambda: bytearray(data),
    }
    writing = {
        "aiokafka, built": lambda: build_aiokafka(found),
        "tagwire, from Arrow": lambda: records.from_arrow(rows),
        "tagwire, from records": lambda: records.write(found),
    }
    for way, contenders in (("read", reading), ("write", writing)):
        timings = measured(contenders)
        print(table(f"{way}, {title}", timings, units=COUNT, unit="records"))


def small_batches(found: list[Record]) -> None:
    """A fetch as producers fill it, against one batch of as many records."""
    whole = records.write(found[:FETCH])
    parts = b"".join(records.write(found[at : at + SMALL_BATCH], base_offset=at) for at in range(0, FETCH, SMALL_BATCH))
    assert records.to_arrow(parts).equals(records.to_arrow(whole))
    timings = measured(
        {
            "one batch": lambda: records.to_arrow(whole),
            f"{FETCH // SMALL_BATCH} batches of {len(parts) * SMALL_BATCH // FETCH:,} bytes": lambda: records.to_arrow(
                parts
            ),
        }
    )
    print(table("read, a fetch of 1 MiB", timings, units=FETCH, unit="records"))


def objects(found: list[Record]) -> None:
    """Record objects, all of each and only key and value."""
    data = records.write(found)
    for title, headers in (("everything", True), ("key and value", False)):
        timings = measured(
            {
                "aiokafka": lambda headers=headers: touch_peer(MemoryRecords(data), headers=headers),
                "tagwire": lambda headers=headers: touch_tagwire(data, headers=headers),
            }
        )
        print(table(f"iterate, {title} read", timings, units=COUNT, unit="records"))
    timings = measured(
        {
            "kafka-python": lambda: touch_peer(KafkaPythonRecords(data)),
            "tagwire": lambda: touch_tagwire(data),
        },
        rounds=min(ROUNDS, 5),
    )
    print(table("iterate, everything read", timings, units=COUNT, unit="records"))


def raw_codecs(codec: str, payload: bytes) -> tuple[Callable[[], bytes], Callable[[bytes], Callable[[], object]]]:
    """What the codec alone takes: compressing `payload` as Kafka reads it, and decompressing it."""
    if codec == "gzip":

        def gzip() -> bytes:
            compressor = zlib.compressobj(LEVELS["gzip"] or -1, zlib.DEFLATED, 31)
            return compressor.compress(payload) + compressor.flush()

        return gzip, lambda packed: lambda: zlib.decompress(packed, 31)
    if codec == "lz4":
        frame = lz4.frame
        return (
            lambda: frame.compress(payload, block_linked=False, block_size=frame.BLOCKSIZE_MAX64KB, store_size=False),
            lambda packed: lambda: frame.decompress(packed),
        )
    if codec == "snappy":
        pieces = [payload[at : at + 32768] for at in range(0, len(payload), 32768)]
        packed_pieces = [snappy.compress(piece) for piece in pieces]
        return (
            lambda: b"".join(map(snappy.compress, pieces)),
            lambda _: lambda: b"".join(map(snappy.decompress, packed_pieces)),
        )
    # no size in the frame, as Kafka's producers write it
    compressor = zstandard.ZstdCompressor(level=LEVELS["zstd"] or 3, write_content_size=False)
    return (
        lambda: compressor.compress(payload),
        lambda packed: lambda: zstandard.ZstdDecompressor().decompressobj().decompress(packed),
    )


def compressed(found: list[Record]) -> None:
    """Time over that of the uncompressed batch and the codec's own together: 1 is nothing lost."""
    data = records.write(found)
    payload = data[61:]
    rows = records.to_arrow(data)
    print("compressed: time over (uncompressed + the codec's own)")
    for codec in LEVELS:
        pack = partial(records.from_arrow, rows, compression=codec)
        packed = pack()
        assert records.to_arrow(packed).equals(rows)
        compress, decompress = raw_codecs(codec, payload)
        for way, contenders in (
            ("read", (partial(records.to_arrow, packed), partial(records.to_arrow, data), decompress(compress()))),
            ("write", (pack, partial(records.from_arrow, rows), compress)),
        ):
            timings = measured(dict(zip(("all", "plain", "codec"), contenders)), rounds=min(ROUNDS, 7))
            took, plain, alone = (timing.median for timing in timings)
            print(
                f"  {codec:8} {way:6} {took * 1e6:10,.0f} us  over {plain * 1e6:8,.0f} + {alone * 1e6:8,.0f} us"
                f"  {took / (plain + alone):5.2f}"
            )


def main() -> None:
    arguments(__doc__).parse_args()
    print(f"kernels compiled: {kernel.compiled}, pyarrow {pa.__version__}")
    with_headers = rows(2)
    arrow("2 headers", with_headers)
    arrow("0 headers", rows(0))
    arrow("random sizes, 0 to 4 headers", random_rows())
    small_batches(with_headers)
    compressed(with_headers)
    objects(with_headers)


if __name__ == "__main__":
    main()
