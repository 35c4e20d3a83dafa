"""A broker inside a Python program: started in milliseconds, in a thread of its own."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from os import PathLike
from types import TracebackType
from typing import Any, Self, Unpack

from tagwire.at_exit import quiet_at_exit
from tagwire.broker.apis import Apis
from tagwire.broker.fault_injection import FaultyFiles
from tagwire.broker.hooks import Hooks
from tagwire.broker.interception import Act, Interception, Interceptions
from tagwire.broker.loop_thread import LoopThread
from tagwire.broker.network.listener import Listener, Tls
from tagwire.broker.network.server import Server
from tagwire.broker.options import settings_of
from tagwire.broker.registry import AddedHandler
from tagwire.broker.settings import Options
from tagwire.broker.telemetry.requests import RequestLog
from tagwire.errors import TagwireError
from tagwire.rpc import Api, MessageSpec, api_of


class Broker:
    """A broker of one node that runs while it is needed.

        with Broker() as broker:
            client = Client(broker.bootstrap)

    Args:
        data_dir: where topics are kept; they are there again when a broker is started on it again. None keeps them in a
            temporary directory, until `stop`, or until nobody knows the broker any more, or the program ends.
        port: the port to listen on; 0 takes a free one.
        host: the address to listen on.
        advertise: the "host:port" that clients are told to connect to; None tells each the one it has reached.
        tls, sasl: see `Listener`; who may come in is said by the option `users`.
        listeners: an address or several, instead of the one that host, port, advertise, tls and sasl describe.
        options: all else that `Settings` has, by its names: fsync, num_partitions, as_release and so on.

    Raises:
        ConfigError: an option is wrong; the text says which, and what is allowed.

    Attributes:
        requests: what clients sent, the latest requests one by one, and all of them counted.
        disk: its file operations, which can be made to fail.
    """

    def __init__(
        self,
        data_dir: str | PathLike[str] | None = None,
        port: int = 0,
        host: str = "127.0.0.1",
        *,
        advertise: str | None = None,
        tls: Tls | None = None,
        sasl: str | Iterable[str] = (),
        listeners: Listener | Iterable[Listener] = (),
        **options: Unpack[Options],
    ) -> None:
        self._settings = settings_of(data_dir, port, host, advertise, tls, sasl, listeners, options)
        self._apis = Apis(self._settings.as_release)
        self._interceptions = Interceptions()
        self.disk = FaultyFiles()
        self.requests = RequestLog(self._settings.requests_kept)
        self._running: tuple[LoopThread, Server] | None = None

    @property
    def bootstrap(self) -> str:
        """Where clients find it, "host:port"; its first listener. TagwireError while it is not running."""
        return self.addresses[0]

    @property
    def addresses(self) -> list[str]:
        """ "host:port" of every listener, in their order. TagwireError while it is not running."""
        _, server = self._alive()
        return server.addresses

    def _alive(self) -> tuple[LoopThread, Server]:
        if self._running is None:
            raise TagwireError("the broker is not running")
        return self._running

    def start(self) -> None:
        """Start it, and return when it can be talked to. Does nothing while it is running.

        Raises:
            StorageError: the data directory is not ours, is in use, or cannot be read or written.
            ConfigError: an address cannot be listened on.
        """
        if self._running is None:
            hooks = Hooks(self.disk, self.requests, self._interceptions)
            server = Server(self._settings, hooks, self._apis)
            self._running = LoopThread(server), server

    def stop(self) -> None:
        """Stop it, and return when everything is on the disk. Does nothing while it is not running."""
        if self._running is not None:
            (thread, _), self._running = self._running, None
            thread.stop()

    @quiet_at_exit
    def __del__(self) -> None:
        running = getattr(self, "_running", None)  # there is none where an option was wrong
        if running is not None:
            thread, server = running
            told = f"a broker on {server.addresses[0]} was never stopped"
            warnings.warn(told, ResourceWarning, stacklevel=2, source=self)
            thread.let_go()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def intercept(self, api: str | int, act: Act, *, times: int | None = None) -> Interception:
        """Let `act` take the requests of one API, from now on, or from when the broker is started.

        Args:
            api: its name, such as "Fetch", or its number.
            act: what to do with each: `delay`, `drop`, `hang_up`, or a function of its own; see `Act`. It runs in the
                broker's thread.
            times: how many requests to take; None takes all.

        Returns:
            What ends it, by `stop()` or at the end of its `with` block. Of several for one API the newest takes.

        Raises:
            ConfigError: there is no such API.
        """
        return self._interceptions.add(api, act, times)

    def register(
        self,
        spec: Api | tuple[MessageSpec, MessageSpec],
        handler: AddedHandler,
    ) -> None:
        """Serve an API that Kafka does not have, to try a proposal on real connections.

        Connections that were opened before keep what they were told.

        Args:
            spec: its request and its response, of either dialect: models, paths of specs, JSON texts, or classes; or
                what `tagwire.rpc.api_of` makes, with headers of its own. An API of Kafka's with the same key is
                replaced.
            handler: called with each request, in the broker's thread; gives the response. May be a coroutine function.

        Raises:
            SpecError: a spec breaks a rule, or the two do not belong together.
            ConfigError: it is one of the APIs that a connection begins with.
        """
        self._apis.add(spec if isinstance(spec, Api) else api_of(*spec), handler)

    def stats(self) -> dict[str, Any]:
        """How it is, in numbers: connections, requests by API and version, clients and their old versions, topics.

        Raises:
            TagwireError: it is not running.
        """
        thread, server = self._alive()

        async def tell() -> dict[str, Any]:
            return server.stats()

        return thread.call(tell())
