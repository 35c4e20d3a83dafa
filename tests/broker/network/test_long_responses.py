"""Responses of megabytes: whatever happens while they are under way, who reads gets the bytes as they were produced."""

from __future__ import annotations

import logging
import os
import socket
import ssl
import struct
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tagwire import messages
from tagwire.broker import Broker, Tls
from tagwire.rpc import NEED_DATA

from ...limits import wait_until

MIB = 1 << 20
PARTITIONS = 4
MANY = 50
FETCHES = 5
IO = Path("/proc/self/io")
FETCH = messages.FetchRequest
DELETE = messages.DeleteTopicsRequest


@pytest.fixture(params=["uvloop", "asyncio"], autouse=True)
def event_loop_of_the_broker(request, monkeypatch):
    if request.param == "asyncio":
        monkeypatch.setitem(sys.modules, "uvloop", None)
    return request.param


@pytest.fixture
def broker(tmp_path):
    with Broker(tmp_path / "data", fsync="never") as running:
        yield running


def fill(wire, make):
    """What each partition holds: two batches that together are over 3 MiB."""
    wire.create("t", PARTITIONS, max_message_bytes=str(4 * MIB))
    kept = []
    for partition in range(PARTITIONS):
        written = []
        for size in (MIB + 1000 * partition, 2 * MIB):
            records = make.records(os.urandom(size))
            base = wire.produce("t", records, partition).base_offset
            written.append(struct.pack(">q", base) + records[8:])
        kept.append(b"".join(written))
    return kept


def whole_request(count=PARTITIONS):
    partitions = [
        FETCH.FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=8 * MIB) for number in range(count)
    ]
    topics = [FETCH.FetchTopic(topic="t", partitions=partitions)]
    return FETCH(max_wait_ms=0, min_bytes=1, max_bytes=100 * MIB, topics=topics)


def records_by_partition(answer):
    return [without_epochs(partition.records) for partition in answer.responses[0].partitions]


def without_epochs(records):
    """The bytes without the leader epoch, which the broker writes into each batch."""
    found, at = bytearray(records), 0
    while at < len(found):
        found[at + 12 : at + 16] = bytes(4)
        at += 12 + int.from_bytes(found[at + 8 : at + 12], "big")
    return bytes(found)


def as_kept(kept):
    return [without_epochs(records) for records in kept]


def receive(rpc, recv, step):
    """The next response, read in steps."""
    while (event := rpc.next_event()) is NEED_DATA:
        rpc.receive(recv(step))
    return event.message


def begin_to_read(wire):
    """Ask for everything, and read the first bytes of it: the system does not take all the rest from the broker."""
    wire.send(whole_request(), 11)
    wire.rpc.receive(wire.socket.recv(1000))


def test_a_slow_reader_gets_every_byte_and_it_is_counted(broker, wire, connect, make):
    kept = fill(wire, make)
    slow = connect(broker.bootstrap, client_id="slow")
    begin_to_read(slow)
    assert wait_until(lambda: broker.stats()["connections"]["held_bytes"] > MIB)
    answer = receive(slow.rpc, slow.socket.recv, 30_000)
    assert records_by_partition(answer) == as_kept(kept)
    (logged,) = broker.requests.select("Fetch", client_id="slow")
    assert logged.response_bytes == len(answer.encode(11)) + 4
    assert wait_until(lambda: broker.stats()["connections"]["held_bytes"] == 0)


def delete_topic(wire, log_files):
    assert wire.ask(DELETE(topics=[DELETE.DeleteTopicState(name="t")], timeout_ms=1000), 6).responses[0].error_code == 0
    assert wait_until(lambda: not any(path.exists() for path in log_files))


def cut_files(wire, log_files):
    for path in log_files:
        os.truncate(path, 100)


def overwrite_files(wire, log_files):
    for path in log_files:
        path.write_bytes(bytes(path.stat().st_size))


@pytest.mark.parametrize("change", [delete_topic, cut_files, overwrite_files])
def test_a_response_under_way_is_not_touched_by_what_happens_to_the_files(
    broker, wire, connect, make, tmp_path, change
):
    kept = fill(wire, make)
    slow = connect(broker.bootstrap)
    begin_to_read(slow)
    log_files = [path for path in tmp_path.rglob("*.log") if path.parent.name.startswith("t-")]
    assert len(log_files) == PARTITIONS
    change(wire, log_files)
    assert records_by_partition(receive(slow.rpc, slow.socket.recv, 1 << 16)) == as_kept(kept)


@pytest.mark.skipif(not IO.exists(), reason="this system does not tell how often a process writes")
def test_with_uvloop_the_pieces_of_a_response_are_written_together(broker, wire, make, event_loop_of_the_broker):
    wire.create("t", MANY)
    for number in range(MANY):
        assert wire.produce("t", make.records(os.urandom(20_000)), number).error_code == 0
    before = writes()
    for _ in range(FETCHES):
        wire.send(whole_request(MANY), 11)
        assert len(records_by_partition(receive(wire.rpc, wire.socket.recv, 1 << 16))) == MANY
    # A socket's sends are not counted by the system, and those of a pipe that wakes a loop are.
    assert event_loop_of_the_broker == "asyncio" or writes() - before < MANY * FETCHES


def writes():
    """How often this process has called write or writev."""
    return int(IO.read_text().partition("syscw: ")[2].split()[0])


def test_responses_that_were_asked_for_together_come_in_order(broker, wire, make):
    kept = fill(wire, make)
    for _ in range(3):
        wire.send(whole_request(), 11)
        wire.send(messages.MetadataRequest(topics=None), 12)
    for _ in range(3):
        assert records_by_partition(receive(wire.rpc, wire.socket.recv, 1 << 16)) == as_kept(kept)
        assert [topic.name for topic in wire.receive().topics] == ["t"]


def test_a_client_that_has_said_all_gets_a_long_response_whole(broker, wire, make):
    kept = fill(wire, make)
    wire.send(whole_request(), 11)
    wire.socket.shutdown(socket.SHUT_WR)
    assert records_by_partition(receive(wire.rpc, wire.socket.recv, 1 << 16)) == as_kept(kept)
    assert wire.is_closed()


def test_a_client_that_is_gone_in_the_middle_costs_nothing(broker, wire, connect, make, caplog):
    fill(wire, make)
    for reset in (True, False) * 3:
        gone = connect(broker.bootstrap)
        begin_to_read(gone)
        if reset:
            gone.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        gone.close()
    assert wait_until(lambda: broker.stats()["connections"]["open"] == 1)
    assert broker.stats()["connections"]["held_bytes"] == 0
    assert wire.metadata("t").topics[0].error_code == 0
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_over_tls_it_is_the_same(tmp_path, certificates, connect, make):
    trusting = ssl.create_default_context(cafile=str(certificates.authority))
    with Broker(tmp_path / "data", tls=Tls(certificates.broker), fsync="never") as broker:
        wire = connect(broker.bootstrap)
        with closing(trusting.wrap_socket(wire.socket, server_hostname="127.0.0.1")) as wire.socket:
            kept = fill(wire, make)
            for _ in range(2):
                begin_to_read(wire)
                assert records_by_partition(receive(wire.rpc, wire.socket.recv, 1 << 16)) == as_kept(kept)
