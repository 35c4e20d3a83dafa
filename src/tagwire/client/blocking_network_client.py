"""The blocking face of `NetworkClient`: what Client, Reader and Admin share, and what a producer starts from."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tagwire.client.blocking_driver import BlockingDriver
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.connection_settings import ConnectionSettings
from tagwire.client.in_flight_request import InFlightRequest
from tagwire.client.metadata import ClusterMetadata, Node, PartitionMetadata, TopicMetadata
from tagwire.client.network_client import Address, NetworkClient, ResponseMessage
from tagwire.client.retry import Retry
from tagwire.client.scheduling import Result, Wait, Work, gather, sleep
from tagwire.codec import RequestMessage
from tagwire.errors import TagwireError
from tagwire.partitions import TopicPartition


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

    def retry(self, deadline: float) -> Retry:
        """As `NetworkClient.retry`."""
        return self.core.retry(deadline)

    # Waiting -------------------------------------------------------------------------------------------------------

    def run(self, work: Work[Result]) -> Result:
        """What a coroutine gives or raises."""
        return self.driver.run(work)

    def gather(self, works: Iterable[Work[Result]]) -> list[Result | Exception]:
        """What each coroutine gives, or the error that it raises, in their order; all are run at once."""
        return self.driver.run(gather(works, self.driver.now))

    def sleep(self, until: float) -> None:
        """Waits for a time."""
        self.driver.run(_until(sleep(until)))

    def wait_until(self, ready: Callable[[], bool], until: float) -> bool:
        """Waits for a condition that responses bring about, or for a time. Whether the condition holds."""
        self.driver.run(_until(Wait(ready, until)))
        return ready()

    def pause(self, retry: Retry, error: TagwireError) -> None:
        """Waits until the next attempt is due. Raises as `Retry.pause_until`."""
        self.sleep(retry.pause_until(error))

    # Requests ------------------------------------------------------------------------------------------------------

    def connection(self, node: int | None, deadline: float) -> BrokerConnection:
        """As `NetworkClient.connection`."""
        return self.driver.run(self.core.connection(node, deadline))

    def ready_connection(self, node: int) -> BrokerConnection | None:
        """As `NetworkClient.ready_connection`."""
        return self.core.ready_connection(node)

    def controller(self, deadline: float) -> BrokerConnection:
        """As `NetworkClient.controller`."""
        return self.driver.run(self.core.controller(deadline))

    def put(
        self,
        connection: BrokerConnection,
        message: RequestMessage[ResponseMessage],
        deadline: float,
        version: int | None = None,
    ) -> InFlightRequest[ResponseMessage]:
        """As `NetworkClient.put`; `response` gives the response."""
        return self.driver.run(self.core.put(connection, message, deadline, version))

    def response(self, request: InFlightRequest[ResponseMessage], deadline: float) -> ResponseMessage:
        """As `NetworkClient.response`."""
        return self.driver.run(self.core.response(request, deadline))

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

    def leader(self, at: TopicPartition, deadline: float) -> int:
        """The node that leads a partition. Raises as `partition`."""
        return self.partition(at, deadline).leader

    def partition(self, at: TopicPartition, deadline: float) -> PartitionMetadata:
        """As `NetworkClient.partition`."""
        return self.core.known_partition(at) or self.driver.run(self.core.partition(at, deadline))

    def moved(self, at: TopicPartition, leader: int, epoch: int, nodes: Iterable[Node] = ()) -> bool:
        """As `NetworkClient.moved`."""
        return self.core.moved(at, leader, epoch, nodes)

    def forget(self, topics: Iterable[str]) -> None:
        """As `NetworkClient.forget`."""
        self.core.forget(topics)


async def _until(wait: Wait) -> None:
    await wait
