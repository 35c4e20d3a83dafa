"""Partitions of the embedded broker, connections to it, producers that it knows."""

from __future__ import annotations

import selectors
import socket
import struct
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from growing.brokers import Pipeline, running, start
from growing.lines import Lines, open_files, raise_open_files, resident
from growing.row import Row, thousandfold
from tagwire import messages, records
from tagwire.client import Admin, NewTopic, Producer
from tagwire.records import Record
from tagwire.rpc.headers import RequestHeader, encode_request_header

PER_TOPIC = 1_000
TOPICS_AT_ONCE = 10
BACKLOG = 100


def _topics(partitions: int) -> list[NewTopic]:
    per_topic = min(PER_TOPIC, partitions)
    return [NewTopic(f"t{number}", num_partitions=per_topic) for number in range(partitions // per_topic)]


def partitions(size: int, folder: Path, lines: Lines) -> None:
    """So many partitions with a batch each: made, filled, started with after a clean stop and after a kill."""
    options = {"data_dir": str(folder / "data"), "fsync": "never"}
    broker = start(**options)
    new = _topics(size)
    with lines.line("create", broker.pid), Admin(broker.bootstrap, timeout=600) as admin:
        for at in range(0, len(new), TOPICS_AT_ONCE):
            admin.create_topics(new[at : at + TOPICS_AT_ONCE])
    with lines.line("a batch into each", broker.pid), Producer(broker.bootstrap, timeout=600) as producer:
        for topic in new:
            for index in range(topic.num_partitions):
                producer.send(topic.name, b"v" * 100, partition=index)
    broker.stop()
    broker = start(**options)
    lines.add("start", broker.start)
    broker.kill()
    broker = start(**options)
    lines.add("start after a kill", broker.start)
    notes = {"open files": open_files(broker.pid), "MiB resident": resident(broker.pid, "VmRSS")}
    broker.start.notes.update(notes)
    with lines.line("stop") as line:
        broker.stop()
    line.cpu = 0.0  # the process's whole life, which it has when it has been waited for


def connections(size: int, folder: Path, lines: Lines) -> None:
    """So many connections at once, each with one request and its answer, and the memory they take."""
    raise_open_files()
    request = messages.ApiVersionsRequest(client_software_name="growth", client_software_version="1")
    body = request.encode(3)
    header = encode_request_header(RequestHeader(request.spec.api_key, 3, 0, "growth"))
    frame = struct.pack(">i", len(header) + len(body)) + header + body
    limits = {"max_connections": size + 10, "max_connections_per_address": size + 10}
    with running(fsync="never", data_dir=str(folder / "data"), **limits) as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        opened: list[socket.socket] = []
        with lines.line("connect, ask, be answered", broker.pid) as line:
            while len(opened) < size:
                fresh = [socket.create_connection((host, int(port))) for _ in range(min(BACKLOG, size - len(opened)))]
                _answered(fresh, frame)
                opened += fresh
            line.notes["open files"] = open_files(broker.pid)
        with lines.line("ask again, all at once", broker.pid):
            _answered(opened, frame)
        with lines.line("hang up", broker.pid):
            for each in opened:
                each.close()
            with closing(Pipeline(broker.bootstrap)) as one:
                list(one.send_all([(request, 3)]))


def _answered(sockets: list[socket.socket], frame: bytes) -> None:
    """Sends on all of them, and waits for all answers."""
    with selectors.DefaultSelector() as waiting:
        for each in sockets:
            each.sendall(frame)
            waiting.register(each, selectors.EVENT_READ)
        left = len(sockets)
        while left:
            for key, _ in waiting.select():
                connection: Any = key.fileobj
                if not connection.recv(1 << 16):
                    raise RuntimeError("the broker hung up")
                waiting.unregister(connection)
                left -= 1


def _batches(producers: int) -> Iterator[tuple[Any, int]]:
    kind = messages.ProduceRequest
    data = bytearray(records.write([Record(b"k", b"v" * 100)]))
    for number in range(producers):
        records.set_producer(data, number, 0, 0, transactional=False)
        partition = kind.PartitionProduceData(index=0, records=bytes(data))
        topic = kind.TopicProduceData(name="t", partition_data=[partition])
        yield kind(acks=1, timeout_ms=30_000, topic_data=[topic]), 9


def producers(size: int, folder: Path, lines: Lines) -> None:
    """A partition that so many idempotent producers have written one batch to."""
    options = {"data_dir": str(folder / "data"), "fsync": "never"}
    broker = start(**options)
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic("t")])
    with lines.line("a batch of each", broker.pid):
        pipeline = Pipeline(broker.bootstrap)
        last = deque(pipeline.send_all(_batches(size)), maxlen=1).pop()
        pipeline.close()
    told = messages.ProduceResponse.decode(last[5:], 9)
    assert told.responses[0].partition_responses[0].base_offset == size - 1, told
    with lines.line("stop") as line:
        broker.stop()
    line.cpu = 0.0  # the process's whole life, which it has when it has been waited for
    broker = start(**options)
    lines.add("start", broker.start)
    with lines.line("a batch of 200 more", broker.pid):
        pipeline = Pipeline(broker.bootstrap)
        list(pipeline.send_all(list(_batches(size + 200))[size:]))
        pipeline.close()
    broker.kill()
    broker = start(**options)
    lines.add("start after a kill", broker.start)
    broker.stop()


ROWS_OF_BROKERS = (
    Row("broker-partitions", "partitions of a broker", thousandfold(10), partitions, 900),
    Row("connections", "connections", thousandfold(5), connections),
    Row("producers", "producers with state", thousandfold(200), producers, 900),
)
