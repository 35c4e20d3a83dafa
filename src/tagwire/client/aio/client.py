"""A client of a cluster, for tasks: each call is awaited."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, Unpack, overload

from tagwire.at_exit import quiet_at_exit
from tagwire.client.aio.asyncio_driver import AsyncioDriver
from tagwire.client.aio.core_method import awaited
from tagwire.client.aio.unclosed import warn_unclosed
from tagwire.client.client import Client
from tagwire.client.client_core import ClientCore, ClientOptions, client_settings
from tagwire.client.config import Bootstrap, FetchSettings, ProduceSettings
from tagwire.client.consume_settings import ConsumeSettings
from tagwire.client.metrics import MetricValues
from tagwire.client.network_client import NetworkClient, ResponseMessage
from tagwire.codec import MessageObject, RequestMessage


class AsyncClient:
    """A client of one cluster, for the tasks of one event loop, any number of which may share it.

        async with AsyncClient("kafka-1:9092,kafka-2:9092") as client:
            for name, topic in (await client.metadata()).topics.items(): ...

    A call that is cancelled, or whose `asyncio.timeout` is up, ends where it waits: what it has sent may still be done
    by the broker; its response goes to nobody.

    Attributes:
        fetch_settings, produce_settings, consume_settings: what readers, producers and consumers of this client start
            from.

    Args:
        bootstrap: where to start, as `tagwire.client.Client` takes it. options: the other ones of `Client`.

    Raises:
        ConfigError: an option is wrong. TagwireError: no event loop runs here.
    """

    def __init__(self, bootstrap: Bootstrap, **options: Unpack[ClientOptions]) -> None:
        settings = client_settings(bootstrap, options)
        self.fetch_settings: FetchSettings = settings.fetch
        self.produce_settings: ProduceSettings = settings.produce
        self.consume_settings: ConsumeSettings = settings.consume
        self._driver = AsyncioDriver(type(self).__name__)
        network = NetworkClient(settings.addresses, settings.connections, settings.timeout, self._driver)
        self._core = ClientCore(network, settings)

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> Self:
        """A client set up by Kafka's own property names alone: `AsyncClient(properties)`. Raises ConfigError."""
        return cls(properties)

    async def close(self) -> None:
        """Closes every connection; calls that other tasks wait for raise TagwireError. The client may be used again; it
        connects anew."""
        self._driver.require_loop()
        self._core.network.close()
        self._driver.close()

    @quiet_at_exit
    def __del__(self) -> None:
        if hasattr(self, "_core"):  # there is none where an option was wrong
            warn_unclosed(self, self._core.network, self._driver)

    async def __aenter__(self) -> Self:
        self._driver.require_loop()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @overload
    async def request(
        self, message: RequestMessage[ResponseMessage], *, node: int | None = None, version: int | None = None
    ) -> ResponseMessage: ...
    @overload
    async def request(self, message: MessageObject, *, node: int | None = None, version: int | None = None) -> Any: ...
    async def request(self, message: Any, *, node: int | None = None, version: int | None = None) -> Any:
        """Sends one request and waits for its response. Takes, gives and raises what `Client.request` does."""
        return await self._driver.run(self._core.request(message, node=node, version=version))

    versions = awaited(ClientCore.versions, Client.versions)
    features = awaited(ClientCore.features, Client.features)
    usable = awaited(ClientCore.usable, Client.usable)
    metadata = awaited(ClientCore.metadata, Client.metadata)
    topic = awaited(ClientCore.topic, Client.topic)
    list_offsets = awaited(ClientCore.list_offsets, Client.list_offsets)

    def finalized_features(self) -> Mapping[str, int]:
        """As `Client.finalized_features`."""
        return self._core.finalized_features()

    @property
    def timeout(self) -> float:
        """Seconds that one operation may take, its retries included."""
        return self._core.timeout

    def negotiated(self) -> dict[str, int]:
        """{API name: version} of requests sent so far; the lowest where brokers differ."""
        return self._core.negotiated()

    def metrics(self) -> MetricValues:
        """What the client measures: as `Client.metrics`."""
        return self._core.metrics()
