"""A broker that stops: what is under way is answered, what waits for others is not, and nobody new is let in."""

from __future__ import annotations

import threading
import time

import pytest

from tagwire import messages
from tagwire.broker import Broker
from tagwire.broker.network import socket_server
from tagwire.errors import ConnectionLostError

from ...limits import wait_until


@pytest.fixture
def slow_disk(monkeypatch):
    """Makes every fsync of a broker wait until it is told to go on."""
    go_on = threading.Event()

    def slow(broker):
        fsync = broker.disk.sync

        def sync(fd):
            go_on.wait(20)
            fsync(fd)

        monkeypatch.setattr(broker.disk, "sync", sync)
        return go_on

    yield slow
    go_on.set()


def test_what_is_under_way_is_answered_and_kept(tmp_path, connect, make, slow_disk):
    broker = Broker(tmp_path / "data")
    broker.start()
    wire, idle = connect(broker.bootstrap), connect(broker.bootstrap)
    wire.create("t")
    address = broker.bootstrap
    go_on = slow_disk(broker)
    wire.send(make.produce("t", make.records(b"v")), 9)
    while not broker.requests.count("Produce"):
        time.sleep(0.001)
    stopping = threading.Thread(target=broker.stop)
    stopping.start()
    assert idle.is_closed()
    with pytest.raises(OSError):
        connect(address)
    go_on.set()
    assert wire.receive().responses[0].partition_responses[0].error_code == 0
    assert wire.is_closed()
    stopping.join()
    with Broker(tmp_path / "data") as again:
        assert connect(again.bootstrap).offset_at("t", -1).offset == 1


def test_whoever_waits_for_records_or_members_is_not_waited_for(tmp_path, connect, make):
    broker = Broker(tmp_path / "data")
    broker.start()
    fetching = connect(broker.bootstrap)
    fetching.create("t")
    fetching.send(make.fetch("t", 0, max_wait_ms=60_000), 12)
    while not broker.requests.count("Fetch"):
        time.sleep(0.001)
    broker.stop()
    with pytest.raises(ConnectionLostError):
        fetching.receive()


def test_a_client_that_does_not_read_holds_up_nothing(tmp_path, connect, make, monkeypatch):
    monkeypatch.setattr(socket_server, "STOP_WITHIN_S", 600.0)  # far past the patience of the test
    broker = Broker(tmp_path / "data")
    broker.start()
    wire = connect(broker.bootstrap)
    wire.create("t", max_message_bytes=str(8 << 20))
    wire.produce("t", make.records(b"v" * (6 << 20)))
    for _ in range(3):
        wire.send(make.fetch("t", 0), 12)
    while not any(entry.seconds is not None for entry in broker.requests.select("Fetch")):
        time.sleep(0.001)
    broker.stop()
    assert wire.socket.recv(1 << 20)  # what had been sent was not all that was asked for


def test_a_broker_can_be_started_again_and_again(tmp_path, connect):
    broker = Broker(tmp_path / "data")
    before = set(threading.enumerate())
    for number in range(5):
        with broker:
            wire = connect(broker.bootstrap)
            assert len(wire.metadata().topics) == number
            wire.create(f"t{number}")
    assert broker.requests.count(messages.MetadataRequest.api_key) == 5
    wait_until(lambda: not set(threading.enumerate()) - before)
