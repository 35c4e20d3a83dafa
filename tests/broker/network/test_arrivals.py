"""Connections whose tasks are cancelled before they begin, as when a broker stops in that moment."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace

import pytest

from tagwire.broker.network.listener import Listener
from tagwire.broker.network.socket_server import SocketServer
from tagwire.broker.settings import Settings


@pytest.mark.parametrize("wait_ms", [0, 60_000], ids=["let in", "held"])
def test_a_connection_that_nobody_saw_to_is_closed_and_counted_out(wait_ms):
    async def story():
        node = SimpleNamespace(
            settings=Settings(),
            scram_users=None,
            throttles=SimpleNamespace(connected=lambda host: wait_ms),
            image=SimpleNamespace(listeners={}),
            node_id=0,
        )
        server = SocketServer(node, None, [Listener("127.0.0.1", 0)])
        await server.start()
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
