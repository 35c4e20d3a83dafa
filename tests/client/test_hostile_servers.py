"""Servers that lie, stall, hang up and send rubbish, over real sockets: a client tells what happened, in its time, in
little memory, and gives no part of what is broken.

The list of adversarial inputs, and where its lines about a client are held:

| line | tests |
|------|-------|
| Frame: sizes, other protocols, splits, correlation ids, header tags | tests/rpc/test_hostile_frames, test_frames |
| Frame over a socket: lies about sizes, slow-loris, half close, RST, two protocols | here |
| Primitives, arrays, tags, nullable structs | tests/codec; through a client: `BROKEN_ANSWERS` here |
| Record batch: each field of the header, control batches, a partial last batch | `BROKEN_BATCHES` and cuts here |
| Compression: bombs, truncated streams, codecs | tests/records; through a reader: test_reader_failures, here |
| Response to acks=0, unsolicited answers | tests/rpc/test_hostile_frames, tests/rpc/test_connection |
"""

from __future__ import annotations

import socket
import struct
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from crc32c import crc32c

from tagwire import messages, records
from tagwire.client import Client, Reader
from tagwire.errors import (
    ConnectError,
    ConnectionLostError,
    CorruptRecordError,
    DecodeError,
    ProtocolError,
    RequestTimeoutError,
    TagwireError,
)
from tagwire.records import Record
from tagwire.rpc import Connection, Request

from .fake_broker import FakeCluster, Raw
from .logs import batch_of, fill, offsets

SERVED = messages.ApiVersionsResponse(
    api_keys=[
        messages.ApiVersionsResponse.ApiVersion(api_key=api, min_version=low, max_version=high)
        for api, low, high in ((1, 4, 12), (2, 1, 7), (3, 4, 12), (18, 0, 3))
    ]
)


@contextmanager
def server(then: Callable[[socket.socket, Connection], None]) -> Iterator[str]:
    """The address of a server that answers ApiVersions, and then does as it likes with the next request."""

    def serve(sock: socket.socket) -> None:
        with sock:
            connection = Connection("broker")
            for answer in (True, False):
                while not isinstance(event := connection.next_event(), Request):
                    connection.receive(sock.recv(65536))
                if answer:
                    sock.sendall(connection.send_response(event, SERVED))
            try:
                then(sock, connection)
            except OSError:
                return

    def accept() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(sock,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def ask(address: str, timeout: float = 30) -> Any:
    with Client(address, timeout=timeout) as client:
        return client.request(messages.MetadataRequest(topics=None), version=12)


def quiet(sock: socket.socket) -> None:
    """Says nothing more until the client is gone."""
    while sock.recv(65536):
        pass


# Frames that lie ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [0, 100_000, 2_000_000])
def test_a_size_that_lies_takes_no_memory_beyond_what_was_sent(sent: int) -> None:
    def lie(sock: socket.socket, _: Connection) -> None:
        sock.sendall((256 * 1024 * 1024).to_bytes(4, "big") + b"\0\0\0\1")
        for _ in range(sent // 10_000):
            sock.sendall(b"\0" * 10_000)
        quiet(sock)

    with server(lie) as address:
        tracemalloc.start()
        try:
            with pytest.raises(RequestTimeoutError, match="did not answer Metadata v12"):
                ask(address, timeout=1)
            assert tracemalloc.get_traced_memory()[1] < 64 * sent + 2**21
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize(
    ("size", "says"),
    [("7fffffff", "over the limit"), ("10000001", "over the limit of 268435456"), ("80000000", "negative")],
)
def test_a_size_that_cannot_be_is_told_without_waiting_for_it(size: str, says: str) -> None:
    def lie(sock: socket.socket, _: Connection) -> None:
        sock.sendall(bytes.fromhex(size))
        quiet(sock)

    with server(lie) as address, pytest.raises(ProtocolError, match=rf"broker at {address}: frame size .* is {says}"):
        ask(address)


def array_of(length: str) -> str:
    """A Metadata v12 answer to correlation id 1, whose brokers claim `length`, an uvarint."""
    return f"00000001 00 00000000 {length}"


BROKEN_ANSWERS = [
    ("array length 2^32-2", array_of("ffffffff0f"), "brokers"),
    ("array one longer than what is left", array_of("05 00 00 00"), "brokers"),
    ("uvarint that never ends", array_of("ffffffffffff"), "brokers"),
    ("string longer than what is left", array_of("02 00000001 7f 61"), r"brokers\[0\]\.host"),
    ("string of null where there is none", array_of("02 00000001 00"), r"brokers\[0\]\.host"),
    ("string that is no UTF-8", array_of("02 00000001 02 ff 00002384 00 00"), r"brokers\[0\]\.host"),
    ("tags more than bytes", array_of("02 00000001 02 61 00002384 00 ffffffff0f"), r"brokers\[0\]"),
    ("tag twice", array_of("01 00 00000001 01 02 0500 0500"), "MetadataResponse v12"),
    ("tags that descend", array_of("01 00 00000001 01 02 0500 0400"), "MetadataResponse v12"),
    ("tag longer than what is left", array_of("01 00 00000001 01 01 05 7f"), "MetadataResponse v12"),
    ("bytes left over", array_of("01 00 00000001 01 00 00"), "MetadataResponse v12"),
    ("bool of 2", array_of("01 00 00000001 02 0000 02 61" + "00" * 16 + "02 01 00000000 00 00"), r"topics\[0\]"),
]


@pytest.mark.parametrize(("name", "body", "place"), BROKEN_ANSWERS, ids=[row[0] for row in BROKEN_ANSWERS])
def test_an_answer_that_is_broken_inside_is_a_decode_error_naming_the_place(name: str, body: str, place: str) -> None:
    data = bytes.fromhex(body)
    answer = len(data).to_bytes(4, "big") + data
    with server(lambda sock, _: sock.sendall(answer)) as address, pytest.raises(DecodeError, match=place):
        ask(address)


# Connections that end or stall ---------------------------------------------------------------------------------------

ANSWER = len(bytes.fromhex("00000001 00" + "00" * 30)).to_bytes(4, "big") + bytes.fromhex("00000001 00" + "00" * 30)


def half_close(sock: socket.socket, _: Connection) -> None:
    sock.sendall(ANSWER[:9])
    sock.shutdown(socket.SHUT_WR)
    quiet(sock)


def close_in_frame(sock: socket.socket, _: Connection) -> None:
    sock.sendall(ANSWER[:9])


def reset_in_frame(sock: socket.socket, _: Connection) -> None:
    sock.sendall(ANSWER[:9])
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def reset_at_once(sock: socket.socket, _: Connection) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def half_close_at_once(sock: socket.socket, _: Connection) -> None:
    sock.shutdown(socket.SHUT_WR)
    quiet(sock)


@pytest.mark.parametrize("end", [half_close, close_in_frame, reset_in_frame, reset_at_once, half_close_at_once])
def test_a_connection_that_ends_before_the_answer_names_broker_and_request(
    end: Callable[[socket.socket, Connection], None],
) -> None:
    with server(end) as address, pytest.raises(ConnectionLostError, match=rf"broker at {address}.*Metadata v12"):
        ask(address)


def drip(sock: socket.socket, _: Connection) -> None:
    """An answer that is a byte at a time in coming, and never there."""
    sock.sendall((100_000).to_bytes(4, "big") + b"\0\0\0\1")
    while True:
        sock.sendall(b"\0")
        time.sleep(0.01)


def drip_as_fast_as_it_goes(sock: socket.socket, _: Connection) -> None:
    sock.sendall((250_000_000).to_bytes(4, "big") + b"\0\0\0\1")
    while True:
        sock.sendall(b"\0")


@pytest.mark.parametrize("stall", [drip, drip_as_fast_as_it_goes, lambda sock, _: quiet(sock)])
def test_no_answer_takes_longer_than_the_timeout(stall: Callable[[socket.socket, Connection], None]) -> None:
    with server(stall) as address, pytest.raises(RequestTimeoutError, match="did not answer Metadata v12 within"):
        ask(address, timeout=1)


def test_a_listener_that_accepts_and_keeps_silent_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(RequestTimeoutError, match=rf"broker at {address} did not answer ApiVersions"):
            ask(address, timeout=0.4)


def test_a_listener_whose_queue_is_full_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        waiting = []
        for _ in range(4):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(listener.getsockname())
            waiting.append(sock)
        with pytest.raises((ConnectError, RequestTimeoutError)):
            ask(f"127.0.0.1:{listener.getsockname()[1]}", timeout=0.4)
        for sock in waiting:
            sock.close()


# Batches that are broken, behind one that is whole --------------------------------------------------------------------

SIZE_AT, MAGIC_AT, CRC_AT, ATTRIBUTES_AT, DELTA_AT, COUNT_AT = 8, 16, 17, 21, 23, 57


def broken(at: int, value: bytes, *, sound: bool = True) -> bytes:
    """A batch at offset 10 with other bytes at `at`, its checksum made right again if `sound`."""
    data = bytearray(batch_of(10, 3))
    data[at : at + len(value)] = value
    if sound:
        data[CRC_AT : CRC_AT + 4] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def int32(value: int) -> bytes:
    return value.to_bytes(4, "big", signed=True)


def changed(old: bytes, new: bytes) -> bytes:
    """The batch at offset 10 with other bytes in its records."""
    data = batch_of(10, 3)
    return broken(data.index(old, 61), new)


BROKEN_BATCHES: list[tuple[str, bytes]] = [
    ("length -1", broken(SIZE_AT, int32(-1))),
    ("length 0", broken(SIZE_AT, int32(0))),
    ("length 48", broken(SIZE_AT, int32(48))),
    ("magic -1", broken(MAGIC_AT, b"\xff")),
    ("magic 3", broken(MAGIC_AT, b"\3")),
    ("a wrong checksum", broken(CRC_AT, b"\0\0\0\0", sound=False)),
    ("a right checksum of records that are cut", broken(61, b"\x7f")),
    *((f"codec {codec}", broken(ATTRIBUTES_AT + 1, bytes([codec]))) for codec in (5, 6, 7)),
    *((f"codec {codec} over plain records", broken(ATTRIBUTES_AT + 1, bytes([codec]))) for codec in (1, 2, 3, 4)),
    ("count -1", broken(COUNT_AT, int32(-1))),
    ("count 0 over three records", broken(COUNT_AT, int32(0))),
    ("count 2^31-1", broken(COUNT_AT, int32(2**31 - 1))),
    ("count below what is there", broken(COUNT_AT, int32(2))),
    ("count above what is there", broken(COUNT_AT, int32(4))),
    ("last offset delta -1", broken(DELTA_AT, int32(-1))),
    ("last offset delta below the last record's", broken(DELTA_AT, int32(1))),
    ("base offset and delta beyond 2^63", broken(0, (2**63 - 2).to_bytes(8, "big"))),
    ("offsets of the batch before it", broken(0, (2).to_bytes(8, "big"))),
    ("record length -1", broken(61, b"\1")),
    ("offset delta twice", changed(b"\2\2\2k", b"\2\0\2k")),
    ("key length -2", changed(b"\2k", b"\3k")),
    ("value longer than the record", changed(b"k\x0410", b"k\x7f10")),
]


@pytest.mark.parametrize("way", ["batches", "records"])
@pytest.mark.parametrize(("name", "data"), BROKEN_BATCHES, ids=[row[0] for row in BROKEN_BATCHES])
def test_of_a_broken_batch_nothing_is_given_and_all_that_stands_before_it(name: str, data: bytes, way: str) -> None:
    found: list[int] = []
    with FakeCluster() as cluster:
        log = cluster.topic("t")[0]
        fill(log, 1)
        log.batches.append((10, 13, data))
        log.end = 13
        with Reader(cluster.bootstrap, {("t", 0): 0}, max_wait_ms=0) as reader:
            rows = (
                (record.offset for record in reader.records())
                if way == "records"
                else (offset for batch in reader for offset in batch.column("offset").to_pylist())
            )
            with pytest.raises(TagwireError, match="t-0@10") as caught:
                collect(rows, found)
            assert isinstance(caught.value, CorruptRecordError | ProtocolError)
            assert reader.position(("t", 0)) == 10
    assert found == list(range(10))


def collect(rows: Iterator[int], found: list[int]) -> None:
    for row in rows:
        found.append(row)


@pytest.mark.parametrize("way", ["batches", "records"])
def test_an_answer_cut_anywhere_gives_whole_batches_once_and_in_order(way: str) -> None:
    with FakeCluster() as cluster, Client(cluster.bootstrap) as client:
        log = cluster.topic("t")[0]
        fill(log, 3, size=2)
        whole = log.read(0, 10_000)

        def cut_at(size: int) -> Callable[[Any], Any]:
            def answer(message: Any) -> Any:
                found = cluster.respond("Fetch", message, 0)
                partition = found.responses[0].partitions[0]
                partition.records = partition.records[:size]
                return found

            return answer

        for size in range(len(log.batches[0][2]), len(whole), 3):
            cluster.script("Fetch", cut_at(size))
            reader = Reader(client, {("t", 0): 0}, stop_at_end=True)
            if way == "records":
                assert [record.offset for record in reader.records()] == list(range(6))
            else:
                assert offsets(reader) == {("t", 0): list(range(6))}


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_a_bomb_is_refused_in_bounded_memory(compression: str) -> None:
    bomb = records.write([Record(None, b"\0" * 20_000_000)], compression=compression)
    with FakeCluster() as cluster:
        cluster.topic("t")[0].append(bomb)
        with Reader(
            cluster.bootstrap, {("t", 0): 0}, max_decompressed=1_000_000, max_partition_bytes=1 << 24
        ) as reader:
            tracemalloc.start()
            try:
                with pytest.raises(CorruptRecordError, match="t-0@0"):
                    next(reader)
                assert tracemalloc.get_traced_memory()[1] < 4 * len(bomb) + 2**23
            finally:
                tracemalloc.stop()


@pytest.mark.parametrize(
    "data", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH_9\r\n", b"\x15\x03\x03\0\2\2\x50"]
)
def test_what_speaks_another_protocol_is_told_by_its_first_bytes(data: bytes) -> None:
    with FakeCluster() as cluster, Client(cluster.bootstrap) as client:
        cluster.script("ApiVersions", Raw(data))
        with pytest.raises(ProtocolError, match="these are the first bytes of"):
            client.metadata()
