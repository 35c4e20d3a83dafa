"""The status of a running broker, on a Unix socket in its data directory, for those who may read that.

Whoever connects is sent one JSON document and nothing more; there is no port, and nothing to authenticate.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from tagwire.errors import StorageError

logger = logging.getLogger("tagwire.broker")

SOCKET = "tagwire-status.sock"
PATIENCE_S = 20.0

# A socket's address has 108 bytes on Linux and 104 elsewhere, and the data directory may be deep.
LONGEST_PATH = 100


@asynccontextmanager
async def serving_status(data: Path, tell: Callable[[], dict[str, Any]]) -> AsyncIterator[None]:
    """Tells whoever connects to the socket in `data`, inside the `with` block."""

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(json.dumps(tell()).encode())
            await asyncio.wait_for(writer.drain(), PATIENCE_S)
        except (OSError, TimeoutError):
            pass
        finally:
            writer.close()

    path = data / SOCKET
    try:
        path.unlink(missing_ok=True)  # of a broker that was killed: the directory is ours alone
        with socket.socket(socket.AF_UNIX) as listening, _address(path) as address:
            listening.bind(address)
            os.chmod(address, 0o600)
            listening.listen()
            listening.setblocking(False)
            server = await asyncio.start_unix_server(respond, sock=listening.dup())
    except OSError as error:
        logger.warning("%s: no statistics can be requested: %s", path, error)
        yield
        return
    try:
        yield
    finally:
        server.close()
        path.unlink(missing_ok=True)


def read_status(data: Path) -> dict[str, Any]:
    """What the broker that runs on `data` tells.

    Raises:
        StorageError: none runs there, or it does not respond.
    """
    parts = []
    try:
        with socket.socket(socket.AF_UNIX) as connection, _address(data / SOCKET) as address:
            connection.settimeout(PATIENCE_S)
            connection.connect(address)
            while part := connection.recv(65536):
                parts.append(part)
    except OSError as error:
        raise StorageError(f"no broker responds on {data}: {error.strerror or error}") from None
    try:
        document: dict[str, Any] = json.loads(b"".join(parts))
    except ValueError:
        raise StorageError(f"the broker on {data} stopped while it responded") from None
    return document


@contextmanager
def _address(path: Path) -> Iterator[str]:
    """The shortest address of a socket at `path`."""
    if len(os.fsencode(path)) <= LONGEST_PATH:
        yield str(path)
        return
    directory = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)
