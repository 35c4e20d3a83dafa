"""The blocking face of `NetworkClient`: what Client, Reader and Admin share, and what a producer starts from."""

from __future__ import annotations

from collections.abc import Iterable

from tagwire.client.blocking_driver import BlockingDriver
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.connection_settings import ConnectionSettings
from tagwire.client.metadata import ClusterMetadata, TopicMetadata
from tagwire.client.network_client import Address, NetworkClient, ResponseMessage
from tagwire.client.scheduling import Result, Work
from tagwire.codec import RequestMessage


class BlockingNetworkClient:
    """Runs the coroutines of a `NetworkClient` to their end, each in the thread that calls. For one thread.

    Attributes:
        core: what it runs. driver: what runs it.
    """

    def __init__(self, bootstrap: Iterable[Address], settings: ConnectionSettings, timeout: float) -> None:
        self.driver = BlockingDriver()
        self.core = NetworkClient(bootstrap, settings, timeout, self.driver)

    def close(self) -> None:
        """Closes every connection. It may be used again; it connects anew."""
        self.core.close()
        self.driver.close()

    # Time ----------------------------------------------------------------------------------------------------------

    @property
    def timeout(self) -> float:
        """Seconds that one operation may take, its retries included."""
        return self.core.timeout

    def now(self) -> float:
        """`time.monotonic` seconds, by which all deadlines are."""
        return self.driver.now()

    def deadline(self) -> float:
        """The second at which an operation that starts now has to be done."""
        return self.core.deadline()

    def run(self, work: Work[Result]) -> Result:
        """What a coroutine gives or raises."""
        return self.driver.run(work)

    # Requests ------------------------------------------------------------------------------------------------------

    def connection(self, node: int | None, deadline: float) -> BrokerConnection:
        """As `NetworkClient.connection`."""
        return self.driver.run(self.core.connection(node, deadline))

    def request(
        self,
        connection: BrokerConnection,
        message: RequestMessage[ResponseMessage],
        deadline: float,
        version: int | None = None,
    ) -> ResponseMessage:
        """As `NetworkClient.request`."""
        return self.driver.run(self.core.request(connection, message, deadline, version))

    # Metadata ------------------------------------------------------------------------------------------------------

    def refresh(
        self, topics: Iterable[str] | None, deadline: float, *, allow_auto_create: bool = False
    ) -> ClusterMetadata:
        """As `NetworkClient.refresh`."""
        return self.driver.run(self.core.refresh(topics, deadline, allow_auto_create=allow_auto_create))

    def topic(self, name: str, deadline: float) -> TopicMetadata:
        """As `NetworkClient.topic`."""
        return self.core.known_topic(name) or self.driver.run(self.core.topic(name, deadline))
