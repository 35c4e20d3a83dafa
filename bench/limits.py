"""The machine's limits, and how far each row is from its own.

    make bench WHAT=limits

Measured here, on one core where nothing else is said: what memcpy, CRC-32C, loopback, fsync and the codecs do, and what
Spark's hand-off from Python takes at most (the same Arrow batches, made in memory). Then, for each row, its own rate,
the limit that is made of what it cannot do without, one after another as it does them, and the part of it that the row
reaches. Processor time where a row waits for nothing, otherwise the wall's; the median of rounds in turns.
"""

from __future__ import annotations

import os
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import cramjam
import pyarrow as pa
from crc32c import crc32c
from growing.brokers import running
from rounds import alternate, arguments, sized

from tagwire import messages, records
from tagwire.client import Producer, Reader

MIB = 1 << 20
BLOCK = sized(64 * MIB, MIB)
COUNT = sized(8_000, 500)  # a batch of them is below a topic's max.message.bytes
ROUNDS = sized(7, 1)
PIECE = 256 << 10
SYNCS = sized(50, 3)
SENT = sized(512 * MIB, 4 * MIB)
SPARK_ROWS = sized(2_000_000, 20_000)
SPARK_ROUNDS = sized(3, 1)
TOPIC = sized(64 * MIB, MIB)
HEADER_SIZE = 61  # of a record batch
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class Row(NamedTuple):
    """What is measured, and what it cannot do without: seconds of `work`, and of its limit."""

    name: str
    took: float
    limit: float
    why: str


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.thread_time) -> float:
    """The median of rounds."""
    (timing,) = alternate({"": work}, rounds=ROUNDS, clock=clock)
    return timing.median


def each(work: Callable[[], object], times: int) -> float:
    """Seconds of one of `times`, which are made one after another: what one makes is let go before the next, as by
    whoever hands it on. Kept, all of it would be memory new from the system, whose pages cost more than the work."""

    def run() -> None:
        for _ in range(times):
            work()

    return seconds(run) / times


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--spark", action="store_true", help="with rows of Spark, which needs Java")
    given = parser.parse_args()
    machine = measured_machine()
    for name, rate, unit in machine.told():
        print(f"  {name:52} {rate:12,.1f} {unit}", flush=True)
    print(f"\n  {'row':52} {'row':>12} {'limit':>12}  of it")
    rows = [*on_records(machine), *on_messages(machine), *through_a_broker(machine)]
    for row in [*rows, *in_spark(machine)] if given.spark else rows:
        part = row.limit / row.took
        print(
            f"  {row.name:52} {row.took * 1e3:9.2f} ms {row.limit * 1e3:9.2f} ms   {part:4.2f}  {row.why}", flush=True
        )


# The machine ----------------------------------------------------------------------------------------------------------


class Machine(NamedTuple):
    """Bytes a second, but `fsync`, which are seconds."""

    memcpy: float
    checksum: float
    lz4: float
    zstd: float
    loopback: float
    fsync: float

    def told(self) -> list[tuple[str, float, str]]:
        gib = 1 << 30
        return [
            (f"memcpy, blocks of {PIECE >> 10} KiB in the caches", self.memcpy / gib, "GiB/s"),
            ("CRC-32C", self.checksum / gib, "GiB/s"),
            ("lz4, decompressed", self.lz4 / gib, "GiB/s"),
            ("zstd, decompressed", self.zstd / gib, "GiB/s"),
            ("loopback, one connection, 256 KiB a call", self.loopback / gib, "GiB/s"),
            ("fsync of a page that was appended", self.fsync * 1e3, "ms"),
        ]


def measured_machine() -> Machine:
    block = os.urandom(PIECE)
    room = bytearray(PIECE)
    times = BLOCK // PIECE

    def copy() -> None:
        for _ in range(times):
            room[:] = block

    def check() -> None:
        for _ in range(times):
            crc32c(block)

    plain = bytearray(batch_of(0)[HEADER_SIZE:])

    def unpack(codec: str, how: Callable[[bytes, bytearray], int]) -> float:
        """Of the same frame that the row reads, into room that is there: nothing is faster with this codec."""
        packed = batch_of(0, codec)[HEADER_SIZE:]
        assert how(packed, plain) == len(plain)
        return len(plain) / each(lambda: how(packed, plain), 10)

    return Machine(
        BLOCK / seconds(copy),
        BLOCK / seconds(check),
        unpack("lz4", cramjam.lz4.decompress_into),
        unpack("zstd", cramjam.zstd.decompress_into),
        loopback(),
        fsync(),
    )


def loopback() -> float:
    """Bytes a second that one thread sends and another takes, on 127.0.0.1."""

    def once() -> float:
        with socket.create_server(("127.0.0.1", 0)) as server:
            sender = threading.Thread(target=_send, args=(server.getsockname(),))
            sender.start()
            connection, _ = server.accept()
            room, left, started = bytearray(PIECE), SENT, time.perf_counter()
            with connection:
                while left > 0:
                    left -= connection.recv_into(room)
            sender.join()
            return SENT / (time.perf_counter() - started)

    return statistics.median(once() for _ in range(ROUNDS))


def _send(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as connection:
        block = bytes(PIECE)
        for _ in range(SENT // PIECE):
            connection.sendall(block)


def fsync() -> float:
    """Seconds until a page that was appended to a file is on the disk."""
    taken = []
    with tempfile.TemporaryFile(dir=Path.cwd()) as file:
        for _ in range(SYNCS):
            file.write(bytes(4096))
            file.flush()
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - started)
    return statistics.median(taken)


# Rows -----------------------------------------------------------------------------------------------------------------


def rows_of(headers: int) -> pa.RecordBatch:
    """Records of 100 bytes with a key of nine."""
    pairs = [[{"key": f"header-{h}", "value": b"value-%07d" % i} for h in range(headers)] for i in range(COUNT)]
    return pa.record_batch(
        {
            "key": pa.array([b"key-%05d" % i for i in range(COUNT)], pa.binary()),
            "value": pa.array([os.urandom(50) + bytes(50) for _ in range(COUNT)], pa.binary()),
            "timestamp": pa.array([1_700_000_000_000 + i for i in range(COUNT)]),
            "headers": pa.array(pairs, HEADERS),
        }
    )


def batch_of(headers: int, compression: str = "none") -> bytes:
    return records.from_arrow(rows_of(headers), compression=compression)


def on_records(machine: Machine) -> list[Row]:
    """Records and Arrow: what is written once and checksummed once."""
    found = []
    for headers in (0, 2):
        batch = rows_of(headers)
        data = records.from_arrow(batch)
        columns = records.to_arrow(data)
        copied = columns.nbytes / machine.memcpy
        took = each(lambda data=data: records.to_arrow(data), 10)
        why = "its Arrow columns copied once, its bytes checksummed once"
        found.append(Row(f"batch to Arrow, {headers} headers", took, copied + len(data) / machine.checksum, why))
        took = each(lambda batch=batch: records.from_arrow(batch), 10)
        limit = len(data) / machine.memcpy + len(data) / machine.checksum
        found.append(Row(f"Arrow to batch, {headers} headers", took, limit, "its bytes copied once, checksummed once"))
    for codec, rate in (("lz4", machine.lz4), ("zstd", machine.zstd)):
        data, plain = batch_of(0, codec), len(batch_of(0))
        took = each(lambda data=data: records.to_arrow(data), 10)
        limit = columns.nbytes / machine.memcpy + len(data) / machine.checksum + plain / rate
        found.append(Row(f"batch to Arrow, {codec}", took, limit, "the same, and decompressed"))
    return found


def on_messages(machine: Machine) -> list[Row]:
    """A message: an object for each element is what its eager decoding cannot do without."""
    kind = messages.MetadataResponse
    partition = kind.MetadataResponsePartition
    topics = [
        kind.MetadataResponseTopic(
            name=f"topic-name-{number}",
            partitions=[partition(partition_index=index, replica_nodes=[0, 1, 2]) for index in range(10)],
        )
        for number in range(200)
    ]
    data = kind(topics=topics).encode(13)
    decoded = kind.decode(data, 13)
    new, made = partition.__new__, len(topics) * 11

    def objects() -> None:
        for _ in range(made):
            new(partition)

    took = each(lambda: kind.decode(data, 13), 20)
    limit = each(objects, 20)
    rows = [Row("MetadataResponse decoded", took, limit, "as many empty objects made by Python")]
    took = each(lambda: decoded.encode(13), 20)
    return [*rows, Row("MetadataResponse encoded", took, len(data) / machine.memcpy, "its bytes copied once")]


def through_a_broker(machine: Machine) -> list[Row]:
    """A topic read and written through the embedded broker: one connection, the wall's time."""
    data = batch_of(0)
    count = max(1, TOPIC // len(data))
    size = count * len(data)
    rows = []
    with running(fsync="never") as broker:

        def write() -> None:
            with Producer(broker.bootstrap) as producer:
                for _ in range(count):
                    producer.send_batch("t", 0, data)

        def read() -> None:
            with Reader(broker.bootstrap, {("t", 0): 0}, stop_at_end=True) as reader:
                left = count * COUNT
                for batch in reader:
                    left -= batch.num_rows
                    if left <= 0:
                        break

        through = size / machine.loopback
        took = seconds(write, time.perf_counter)
        why = "through loopback once, checksummed at both ends, copied into the page cache"
        limit = through + 2 * size / machine.checksum + size / machine.memcpy
        rows.append(Row("send_batch, acks=all, no fsync", took, limit, why))
        took = seconds(read, time.perf_counter)
        arrow = records.to_arrow(data).nbytes * count
        limit = through + size / machine.checksum + arrow / machine.memcpy
        rows.append(Row("Reader as Arrow", took, limit, "through loopback once, checksummed, copied into columns"))

        def durable() -> None:
            with running() as synced, Producer(synced.bootstrap, linger=0) as producer:
                producer.send("t", b"first").result()
                started = time.perf_counter()
                for _ in range(SYNCS):
                    producer.send("t", b"v").result()
                taken.append((time.perf_counter() - started) / SYNCS)

        taken: list[float] = []
        durable()
        rows.append(Row("a record until it is on the disk", taken[0], machine.fsync, "one fsync"))
    return rows


def in_spark(machine: Machine) -> list[Row]:
    """One core's batch read: what Spark takes of batches that are in memory already, and what comes before."""
    from spark_sources import Topic, drain, fill, read, spark_session

    rows = []
    with running(fsync="never") as broker, spark_session(1, []) as spark:
        for name, options in {
            "plain": {},
            "2 headers": {"headers": 2},
            "lz4": {"compression": "lz4"},
            "1 KiB": {"size": 1024, "rows": SPARK_ROWS // 5},
        }.items():
            topic = Topic(name.replace(" ", "-"), **{"rows": SPARK_ROWS, **options})  # type: ignore[arg-type]
            count = fill(broker.bootstrap, topic)
            data, each = topic.batch()
            sent = len(data) * count / each
            shown = {"includeHeaders": str("headers" in options).lower()}

            def work(source: str, topic: str = topic.name, shown: dict[str, str] = shown, **more: str) -> None:
                drain(read(spark, source, broker.bootstrap, topic, **shown, **more))

            contenders = {
                "ceiling": lambda work=work, count=count: work("ceiling", rows=str(count)),
                "tagwire": lambda work=work: work("tagwire"),
            }
            ceiling, ours = (timing.median for timing in alternate(contenders, rounds=SPARK_ROUNDS))
            limit = ceiling + sent / machine.loopback + sent / machine.checksum
            why = f"Spark's part of batches in memory ({ceiling * 1e3:,.0f} ms), loopback, checksums"
            if "compression" in options:
                plain = len(replace(topic, compression="none").batch()[0]) * count / each
                limit, why = limit + plain / machine.lz4, why + ", lz4"
            rows.append(Row(f"Spark read, {name}, {count:,} rows", ours, limit, why))
    return rows


if __name__ == "__main__":
    main()
