"""Connections that end as they come: before they are taken, or before the tasks begin that see to them."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from types import SimpleNamespace

import pytest

from tagwire.broker.network import socket_server
from tagwire.broker.network.listener import Listener
from tagwire.broker.network.socket_server import SocketServer
from tagwire.broker.settings import Settings


async def started(wait_ms=0):
    node = SimpleNamespace(
        settings=Settings(),
        scram_users=None,
        throttles=SimpleNamespace(connected=lambda host: wait_ms),
        image=SimpleNamespace(listeners={}),
        node_id=0,
    )
    server = SocketServer(node, None, [Listener("127.0.0.1", 0)])
    await server.start()
    return server


@pytest.mark.parametrize("wait_ms", [0, 60_000], ids=["let in", "held"])
def test_a_connection_that_nobody_saw_to_is_closed_and_counted_out(wait_ms):
    async def story():
        server = await started(wait_ms)
        spawn, spawned = server._spawn, asyncio.Event()

        def cancelled_at_once(work):
            task = spawn(work)
            task.cancel()
            spawned.set()
            return task

        server._spawn = cancelled_at_once
        host, _, port = server.addresses[0].rpartition(":")
        client = await asyncio.to_thread(socket.create_connection, (host, int(port)), 10)
        await spawned.wait()
        assert server._admission.open == 1
        await server.stop()
        assert server._admission.open == 0
        with client:
            assert client.recv(1) == b""

    asyncio.run(asyncio.wait_for(story(), 20))


@pytest.mark.parametrize(
    ("number", "waits"),
    [(errno.ECONNABORTED, False), (errno.EPROTO, False), (errno.EMFILE, True), (errno.ENOBUFS, True)],
    ids=["aborted", "protocol", "no file", "no memory"],
)
def test_the_next_connection_waits_where_there_is_no_room_and_not_for_one_that_was_gone(
    number, waits, monkeypatch, caplog
):
    monkeypatch.setattr(socket_server, "NO_FILES_LEFT_S", 0.01 if waits else 3600)

    async def story():
        loop, taken = asyncio.get_running_loop(), asyncio.Event()
        accept, failures = loop.sock_accept, [OSError(number, "refused")]

        async def failing(listening):
            if failures:
                raise failures.pop()
            return await accept(listening)

        async def let_in(number, client, address):
            client.close()
            taken.set()

        monkeypatch.setattr(loop, "sock_accept", failing)
        server = await started()
        monkeypatch.setattr(server, "_let_in", let_in)
        host, _, port = server.addresses[0].rpartition(":")
        client = await asyncio.to_thread(socket.create_connection, (host, int(port)), 10)
        await taken.wait()
        client.close()

    with caplog.at_level(logging.ERROR, "tagwire.broker"):
        asyncio.run(asyncio.wait_for(story(), 20))
    assert [record.args[0].errno for record in caplog.records] == [number] * waits
