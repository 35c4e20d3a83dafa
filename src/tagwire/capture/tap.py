"""A proxy that records: every byte is handed on unchanged, and what passes is written to pcap files, which only their
owner may read, and without the credentials in it unless they are asked for.

Recording never costs a client anything but time on this machine's own wire: what cannot be written at once waits in a
bounded queue, what does not fit there is left out of the file and counted, and a disk that fails ends the recording,
not the connections.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from tagwire.capture.observation import Endpoint
from tagwire.capture.recording import FILE_HEADER, Recording
from tagwire.capture.redaction import Redaction
from tagwire.errors import ConfigError
from tagwire.rpc.addresses import address_fault, address_text

READ_BYTES: Final = 65_536
MAX_QUEUED_BYTES: Final = 64 << 20
FILE_BYTES: Final = 256 << 20

LAST_BYTES_S: Final = 1.0
"""Seconds that a tap which is ended leaves a connection for what it has taken and not handed on."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Passed:
    """What went through a tap.

    Attributes:
        connections: how many were opened.
        bytes: carried in both directions.
        left_out: of these, not recorded.
        failure: why recording ended, None while it goes on.
    """

    connections: int = 0
    bytes: int = 0
    left_out: int = 0
    failure: str | None = None


class Files:
    """Writes packets to numbered pcap files, in a thread of its own.

    Args:
        out: the directory; it is made, for its owner alone.
        file_bytes: a file that has grown to this is closed, and the next begun.
        passed: told what is left out, and a failure.
    """

    def __init__(self, out: Path, passed: Passed, *, file_bytes: int = FILE_BYTES) -> None:
        out.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._out = out
        self._passed = passed
        self._file_bytes = file_bytes
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._queued = 0
        self._number = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="tagwire-tap", daemon=True)
        self._thread.start()

    def write(self, packets: bytes) -> bool:
        """Takes packets to be written; False where they are not, for want of room or after a failure."""
        with self._lock:
            if self._passed.failure is not None or self._queued + len(packets) > MAX_QUEUED_BYTES:
                return False
            self._queued += len(packets)
        self._queue.put(packets)
        return True

    def close(self) -> None:
        """Writes what is taken, and ends."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            while (packets := self._queue.get()) is not None:
                self._fill(self._begun(), packets)
        except OSError as error:
            self._passed.failure = error.strerror or str(error)
            _log.warning("recording has ended: %s; connections go on", self._passed.failure)
            while self._queue.get() is not None:
                pass

    def _begun(self) -> BinaryIO:
        """The next file. A name may be taken: by another tap that began in the same second."""
        while True:
            path = self._out / f"tap-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{self._number:04}.pcap"
            self._number += 1
            with suppress(FileExistsError):
                return open(path, "xb", opener=_for_its_owner)

    def _fill(self, file: BinaryIO, packets: bytes | None) -> None:
        """One file, from `packets` on, until it has grown or all is written."""
        with file:
            file.write(FILE_HEADER)
            while packets is not None:
                file.write(packets)
                with self._lock:
                    self._queued -= len(packets)
                if file.tell() >= self._file_bytes:
                    return
                if self._queue.empty():
                    file.flush()
                packets = self._queue.get()
            self._queue.put(None)  # by which `_run` ends, also where the file's last bytes cannot be written


def _for_its_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class Tap:
    """Carries connections between clients and one broker, and records them.

    Args:
        upstream: the broker's host and port.
        files: where packets are written.
        passed: counts what goes through.
        keep_credentials: whether passwords, tokens and other secrets are recorded too: see `tagwire.capture.redaction`.

    Raises:
        ConfigError: `upstream` can be no address.
    """

    def __init__(
        self, upstream: tuple[str, int], files: Files, passed: Passed, *, keep_credentials: bool = False
    ) -> None:
        if fault := address_fault(upstream):
            raise ConfigError(f"upstream {address_text(upstream)}: {fault}")
        self._upstream = upstream
        self._files = files
        self._passed = passed
        self._keep_credentials = keep_credentials
        self._carrying: set[asyncio.Task[None]] = set()
        self._is_over = False

    async def serve(self, host: str, port: int, listening: Callable[[str, int], None]) -> None:
        """Listens until it is cancelled; `listening` is told the address, with the port that was given for port 0.

        Raises:
            ConfigError: the address cannot be listened on.
        """
        try:
            server = await asyncio.start_server(self._accept, host, port)
        except OSError as error:
            said = f"cannot listen on {address_text((host, port))}: {error.strerror or error}"
            raise ConfigError(said) from error
        try:
            listening(*server.sockets[0].getsockname()[:2])
            # Not `serve_forever`, nor `async with`: from Python 3.12 on they end when the last client has gone.
            await asyncio.get_running_loop().create_future()
        finally:
            self._is_over = True
            server.close()
            for task in self._carrying:
                task.cancel()
            await asyncio.gather(*self._carrying, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._carry(reader, writer))
        self._carrying.add(task)
        task.add_done_callback(self._carrying.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._passed.connections += 1
        try:
            up_reader, up_writer = await asyncio.open_connection(*self._upstream)
        except OSError as error:
            _log.warning("%s cannot be reached: %s", address_text(self._upstream), error.strerror or error)
            writer.close()
            return
        ends = [end.get_extra_info("peername") for end in (writer, up_writer)]
        if None in ends:  # reset before it could be asked for: nothing passed
            writer.close()
            up_writer.close()
            return
        recording = Recording(*(Endpoint(*end[:2]) for end in ends))
        redaction = None if self._keep_credentials else Redaction()
        self._files.write(recording.opened(_now()))
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump(reader, up_writer, recording, redaction, by_client=True))
                both.create_task(self._pump(up_reader, writer, recording, redaction, by_client=False))
        except* OSError:
            pass  # an end that is gone: the other is told by the close below
        finally:
            if redaction is not None:
                for by_client in (True, False):
                    self._record(redaction.ended(by_client=by_client), recording, by_client=by_client)
            self._files.write(recording.closed(_now()))
            for end in (writer, up_writer):
                end.close()
                try:  # once the tap is over, no longer than a little: whoever reads nothing would keep it for ever
                    async with asyncio.timeout(LAST_BYTES_S if self._is_over else None):
                        await end.wait_closed()
                except OSError:
                    end.transport.abort()

    async def _pump(
        self,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        recording: Recording,
        redaction: Redaction | None,
        *,
        by_client: bool,
    ) -> None:
        while data := await source.read(READ_BYTES):
            self._passed.bytes += len(data)
            target.write(data)
            kept = data if redaction is None else redaction.passed(data, by_client=by_client)
            self._record(kept, recording, by_client=by_client)
            await target.drain()
        if target.can_write_eof():
            target.write_eof()

    def _record(self, kept: bytes, recording: Recording, *, by_client: bool) -> None:
        if kept and not self._files.write(recording.sent(kept, _now(), by_client=by_client)):
            self._passed.left_out += len(kept)


def _now() -> int:
    return time.time_ns() // 1000
