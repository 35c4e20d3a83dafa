"""The recording proxy: bytes pass unchanged, and what was recorded reads as what passed."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import struct_time
from typing import Any

import pytest

from tagwire.broker import Broker
from tagwire.capture import Exchange, Losses, exchanged, paths_of
from tagwire.capture.tap import MAX_QUEUED_BYTES, Files, Passed, Tap
from tagwire.client import Client

SECONDS = 10


@contextmanager
def tapped(
    upstream: tuple[str, int], files: Files, passed: Passed, *, keep_credentials: bool = False
) -> Iterator[tuple[str, int]]:
    """A tap in a thread; where it listens."""
    found: list[tuple[str, int]] = []
    ready = threading.Event()
    loop = asyncio.new_event_loop()

    def listening(host: str, port: int) -> None:
        found.append((host, port))
        ready.set()

    async def serve() -> None:
        with suppress(asyncio.CancelledError):
            tap = Tap(upstream, files, passed, keep_credentials=keep_credentials)
            await tap.serve("127.0.0.1", 0, listening)

    task = loop.create_task(serve())
    thread = threading.Thread(target=loop.run_until_complete, args=(task,))
    thread.start()
    try:
        assert ready.wait(SECONDS)
        yield found[0]
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(SECONDS)
        files.close()
        loop.close()


@contextmanager
def echo() -> Iterator[tuple[str, int]]:
    """A server that sends back all it is sent, to one connection at a time."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(SECONDS)

        def run() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        while data := connection.recv(65536):
                            connection.sendall(data)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield server.getsockname()


def passed_through(address: tuple[str, int], data: bytes) -> bytes:
    with socket.create_connection(address, SECONDS) as connection:
        back = bytearray()

        def receive() -> None:
            while piece := connection.recv(65536):
                back.extend(piece)

        thread = threading.Thread(target=receive)
        thread.start()
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        thread.join(SECONDS)
        return bytes(back)


def recorded(out: Path) -> tuple[list[Exchange], Losses]:
    losses = Losses()
    return [one for path in paths_of([out]) for one in exchanged(path, losses)], losses


def test_a_client_speaks_through_it_as_without_it_and_is_recorded(tmp_path: Path) -> None:
    passed = Passed()
    with Broker() as broker:
        bootstrap = broker.bootstrap
        host, _, port = bootstrap.rpartition(":")
        files = Files(tmp_path / "out", passed)
        with tapped((host, int(port)), files, passed) as address, Client(":".join(map(str, address))) as client:
            client.versions()
    found, losses = recorded(tmp_path / "out")
    assert found[0].header.api_key == 18
    assert all(one.response_bytes is not None for one in found)
    assert found[-1].software_name == "tagwire"
    assert str(found[0].broker) == bootstrap
    assert not losses.counts
    assert (passed.connections, passed.left_out, passed.failure) == (1, 0, None)


def test_a_broker_that_resets_at_once_ends_the_clients_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = asyncio.open_connection

    async def reset(*address: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """What the system tells of a connection that was reset as soon as it was made: no address."""
        reader, writer = await connect(*address)
        monkeypatch.setattr(writer, "get_extra_info", lambda _: None)
        return reader, writer

    monkeypatch.setattr(asyncio, "open_connection", reset)
    passed = Passed()
    with (
        echo() as upstream,
        tapped(upstream, Files(tmp_path / "out", passed), passed) as address,
        socket.create_connection(address, SECONDS) as client,
    ):
        assert client.recv(1) == b""
    assert (passed.connections, passed.bytes) == (1, 0)


def test_bytes_pass_unchanged_whatever_they_are_and_the_end_of_one_side_is_handed_on(tmp_path: Path) -> None:
    data = bytes(range(256)) * 4096
    passed = Passed()
    with echo() as upstream, tapped(upstream, Files(tmp_path, passed), passed) as address:
        assert passed_through(address, data) == data
    assert passed.bytes == 2 * len(data)
    assert passed.left_out == 0


@pytest.mark.parametrize("size", [1, 32 << 20], ids=["that say nothing", "that read nothing of what waits for them"])
def test_a_tap_that_is_ended_waits_for_no_clients(tmp_path: Path, size: int) -> None:
    passed = Passed()
    files = Files(tmp_path / "out", passed)
    with ExitStack() as others, socket.create_server(("127.0.0.1", 0)) as broker:
        with tapped(broker.getsockname(), files, passed) as address:
            others.enter_context(socket.create_connection(address, SECONDS))
            upstream = others.enter_context(broker.accept()[0])
            upstream.settimeout(1)
            with suppress(TimeoutError):
                upstream.sendall(b"x" * size)
            began = time.monotonic()
        assert time.monotonic() - began < SECONDS


def test_files_are_begun_anew_when_they_have_grown(tmp_path: Path) -> None:
    passed = Passed()
    files = Files(tmp_path, passed, file_bytes=10_000)
    for _ in range(10):
        assert files.write(bytes(6_000))
    files.close()
    assert len(list(tmp_path.glob("tap-*.pcap"))) == 5


def test_taps_that_begin_in_one_directory_in_the_same_second_record_to_files_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tagwire.capture.tap.time.gmtime", lambda: struct_time((2026, 1, 2, 3, 4, 5, 4, 2, 0)))
    several = [Passed(), Passed()]
    for number, passed in enumerate(several):
        files = Files(tmp_path, passed, file_bytes=1)
        for _ in range(2):
            assert files.write(bytes([number]) * 1000)
        files.close()
    assert [passed.failure for passed in several] == [None, None]
    assert [path.read_bytes()[-1000:] for path in sorted(tmp_path.iterdir())] == [
        bytes([number]) * 1000 for number in (0, 0, 1, 1)
    ]


def test_a_disk_that_fails_ends_the_recording_and_not_the_connection(tmp_path: Path) -> None:
    passed = Passed()
    out = tmp_path / "out"
    files = Files(out, passed, file_bytes=100_000)
    data = bytes(1 << 20)
    with echo() as upstream, tapped(upstream, files, passed) as address:
        assert passed_through(address, data) == data
        out.rename(tmp_path / "moved")  # the next file cannot be made
        while passed.failure is None:
            assert passed_through(address, data) == data
        assert passed_through(address, data) == data
    assert passed.left_out >= 2 * len(data)


def test_a_disk_that_is_full_when_the_last_bytes_are_written_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def full(path: Any, *how: Any, **more: Any) -> int:
        if tmp_path in Path(path).parents:
            time.sleep(0.3)  # until there is nothing more to be written
            return opened("/dev/full", os.O_WRONLY)
        return opened(path, *how, **more)

    monkeypatch.setattr("tagwire.capture.tap.os.open", full)
    passed = Passed()
    files = Files(tmp_path, passed)
    assert files.write(bytes(100))
    closing = threading.Thread(target=files.close, daemon=True)
    closing.start()
    closing.join(SECONDS)
    assert not closing.is_alive()
    assert passed.failure == "No space left on device"


def test_what_does_not_fit_the_queue_is_left_out_and_counted_as_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tagwire.capture.tap.MAX_QUEUED_BYTES", 200_000)
    assert MAX_QUEUED_BYTES > 200_000
    passed = Passed()
    files = Files(tmp_path, passed)
    assert not files.write(bytes(200_001))
    assert files.write(bytes(100_000))
    files.close()


def test_a_broker_that_cannot_be_reached_closes_the_clients_connection(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nowhere = closed.getsockname()
    passed = Passed()
    with (
        tapped(nowhere, Files(tmp_path, passed), passed) as address,
        socket.create_connection(address, SECONDS) as connection,
    ):
        assert connection.recv(1) == b""
