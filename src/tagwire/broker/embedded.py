"""A broker inside a Python program: started in milliseconds, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

from tagwire.broker.event_loop import run
from tagwire.broker.server import Server
from tagwire.broker.settings import Settings, Unsupported
from tagwire.broker.topics import Fsync
from tagwire.errors import TagwireError
from tagwire.rpc.frames import DEFAULT_MAX_FRAME_BYTES


class Broker:
    """A broker of one node that runs while it is needed.

        with Broker() as broker:
            client = Client(broker.bootstrap)

    Args:
        data_dir: where topics are kept; they are there again when a broker is started on it again. None keeps them in a
            temporary directory, until `stop`.
        port: the port to listen on; 0 takes a free one.
        host: the address to listen on.
        fsync, num_partitions, auto_create_topics, unsupported, max_frame_bytes: see `Settings`.

    Raises:
        ConfigError: an option is wrong; the text says which, and what is allowed.
    """

    def __init__(
        self,
        data_dir: str | PathLike[str] | None = None,
        port: int = 0,
        host: str = "127.0.0.1",
        *,
        fsync: Fsync = "batch",
        num_partitions: int = 1,
        auto_create_topics: bool = True,
        unsupported: Unsupported = "close",
        max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES,
    ) -> None:
        self._settings = Settings(
            data_dir=None if data_dir is None else Path(data_dir),
            host=host,
            port=port,
            fsync=fsync,
            num_partitions=num_partitions,
            auto_create_topics=auto_create_topics,
            unsupported=unsupported,
            max_frame_bytes=max_frame_bytes,
        )
        self._running: _Running | None = None

    @property
    def bootstrap(self) -> str:
        """Where clients find it, "host:port". TagwireError while it is not running."""
        if self._running is None:
            raise TagwireError("the broker is not running")
        return self._running.bootstrap

    def start(self) -> None:
        """Start it, and return when it can be talked to. Does nothing while it is running.

        Raises:
            StorageError: the data directory is not ours, is in use, or cannot be read or written.
            ConfigError: the address cannot be listened on.
        """
        if self._running is None:
            self._running = _Running(self._settings)

    def stop(self) -> None:
        """Stop it, and return when everything is on the disk. Does nothing while it is not running."""
        if self._running is not None:
            running, self._running = self._running, None
            running.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


class _Running:
    """A broker's thread, between start and stop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._ready: Future[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(target=self._run, name="tagwire-broker", daemon=True)
        self._thread.start()
        self.bootstrap, self._loop, self._stopping = self._ready.result()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            run(self._serve())
        except BaseException as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)

    async def _serve(self) -> None:
        stopping = asyncio.Event()
        async with Server(self._settings) as server:
            self._ready.set_result((server.bootstrap, asyncio.get_running_loop(), stopping))
            await stopping.wait()
