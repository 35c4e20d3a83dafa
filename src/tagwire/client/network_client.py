"""Requests to the brokers of a cluster: the connections, the metadata, and which broker a request goes to.

What may have to wait is a coroutine (`tagwire.client.scheduling`), which a driver runs; nothing here blocks, holds a
socket or reads a clock of its own. Kafka's class of this name is the model.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, TypeVar

from tagwire import messages
from tagwire.client import process
from tagwire.client.broker_connection import CONNECT_TIMEOUT, BrokerConnection
from tagwire.client.connection_settings import ConnectionSettings
from tagwire.client.driver import Driver
from tagwire.client.in_flight_request import InFlightRequest
from tagwire.client.metadata import (
    NO_NODE,
    ClusterMetadata,
    Node,
    PartitionMetadata,
    TopicMetadata,
    cluster_metadata,
    metadata_request,
)
from tagwire.client.metadata_cache import MetadataCache
from tagwire.client.metrics import ConnectionMetrics, Metrics
from tagwire.client.retry import Retry, pause_before
from tagwire.client.scheduling import Wait, sleep
from tagwire.client.topic_lookups import TopicLookups
from tagwire.codec import RequestMessage
from tagwire.errors import (
    ConnectError,
    ConnectionLostError,
    Error,
    KafkaError,
    RequestTimeoutError,
    TagwireError,
)
from tagwire.partitions import TopicPartition
from tagwire.rpc import BrokerFeatures, api_name
from tagwire.rpc.addresses import address_text
from tagwire.suggestions import did_you_mean

# A topic that was just created may still be unknown to the broker that receives the request; one that is unknown for
# longer is missing.
UNKNOWN_TOPIC_PATIENCE: Final = 2.0

# Seconds after which a request that any broker can serve is sent to another one, too.
SILENCE_PATIENCE: Final = 1.0

# Seconds that a new connection has to be ready, also where nobody waits as long: who waits next finds it further on,
# where a client whose timeout is less than the round trips that takes would begin again each time, and never get there.
# Source: socket.connection.setup.timeout.ms of Java's clients, which their request.timeout.ms does not shorten.
SETUP_TIMEOUT: Final = 10.0

Address = tuple[str, int]
ResponseMessage = TypeVar("ResponseMessage")


class UnknownBrokerError(ConnectError):
    """Metadata that was just requested lists no broker with this id."""


class NetworkClient:
    """The connections and the metadata that a client, or a producer's thread, works with. For one thread.

    Attributes:
        driver: what runs it. now: its clock, seconds.
        timeout: seconds that one operation may take, its retries included.
        finalized: what brokers told of features, as of the highest epoch.
        negotiated: {API key: version} of requests sent so far, the lowest where brokers differ.
        metrics: what it measures, of its connections and of whatever works with them alone.

    Args:
        bootstrap: (host, port) of the brokers to start from.
        settings: how every connection begins.
    """

    def __init__(
        self, bootstrap: Iterable[Address], settings: ConnectionSettings, timeout: float, driver: Driver
    ) -> None:
        self.driver = driver
        self.now = driver.now  # asked for many times a request
        self.timeout = timeout
        self.finalized = BrokerFeatures()
        self.negotiated: dict[int, int] = {}
        self.metrics = Metrics(driver.now)
        self._connection_metrics = ConnectionMetrics(self.metrics)
        self._bootstrap = tuple(bootstrap)
        self._settings = settings
        self._connections: dict[Address, BrokerConnection] = {}
        self._metadata = MetadataCache()
        self._lookups = TopicLookups(driver.now)
        self._was_connected = False
        self._process = process.current

    def sibling(self, driver: Driver) -> NetworkClient:
        """The same cluster with connections of its own, for another thread. `negotiated` tells of both."""
        twin = NetworkClient(self._bootstrap, self._settings, self.timeout, driver)
        twin.finalized, twin.negotiated = self.finalized, self.negotiated
        return twin

    @property
    def connections(self) -> list[BrokerConnection]:
        """Those that are open, or being opened."""
        return [connection for connection in self._connections.values() if not connection.closed]

    @property
    def is_connected(self) -> bool:
        """Whether a connection is open, or being opened."""
        return bool(self.connections)

    @property
    def is_of_this_process(self) -> bool:
        """Whether this process made it, and was not forked off from the one that did."""
        return self._process is process.current

    @property
    def addresses(self) -> str:
        """Where it started, "HOST:PORT,HOST:PORT"."""
        return ",".join(map(address_text, self._bootstrap))

    def close(self) -> None:
        """Closes every connection, also those that are still being opened."""
        self._drop_connections()
        self._was_connected = False

    def deadline(self) -> float:
        """The second of the driver's clock at which an operation that starts now has to be done."""
        return self.driver.now() + self.timeout

    def retry(self, deadline: float) -> Retry:
        """Counts the attempts of an operation that has to be done by a deadline."""
        return Retry(deadline, self.driver)

    # Cached metadata ---------------------------------------------------------------------------------------------

    def known_topic(self, name: str) -> TopicMetadata | None:
        """A topic in the cached metadata; None where the metadata has to be refreshed first."""
        return self._metadata.topic(name)

    def known_partition(self, partition: TopicPartition) -> PartitionMetadata | None:
        """A partition with a leader in the cached metadata; None where the metadata has to be refreshed first."""
        topic = self._metadata.topic(partition.topic)
        found = None if topic is None else topic.partitions.get(partition.partition)
        return None if found is None or found.leader == NO_NODE else found

    def is_known(self, node: int) -> bool:
        """Whether the cached metadata has a broker with this id."""
        return node in self._metadata.nodes

    def ready_connection(self, node: int) -> BrokerConnection | None:
        """The connection to a broker, where there is one now."""
        found = self._metadata.nodes.get(node)
        connection = None if found is None else self._connections.get((found.host, found.port))
        return connection if connection is not None and connection.is_ready else None

    def update_leader(self, partition: TopicPartition, leader: int, epoch: int, nodes: Iterable[Node] = ()) -> bool:
        """Takes what a broker's refusal tells of a partition's new leader (KIP-951: `current_leader` of a partition,
        `node_endpoints` of the response). Whether that is news that another attempt can use, without a refresh."""
        return self._metadata.update_leader(partition, leader, epoch, nodes)

    def forget(self, topics: Iterable[str]) -> None:
        """Marks the metadata of these topics as stale: it is refreshed before it is used again."""
        self._metadata.mark_stale(topics)

    # Requests ------------------------------------------------------------------------------------------------------

    def send(
        self, connection: BrokerConnection, message: RequestMessage[ResponseMessage], version: int | None = None
    ) -> InFlightRequest[ResponseMessage]:
        """Sends on a connection now, remembering the version. Raises as `BrokerConnection.send`."""
        request = connection.send(message, version)
        lowest = self.negotiated.get(message.api_key, request.version)
        self.negotiated[message.api_key] = min(lowest, request.version)
        return request

    async def put(
        self,
        connection: BrokerConnection,
        message: RequestMessage[ResponseMessage],
        deadline: float,
        version: int | None = None,
    ) -> InFlightRequest[ResponseMessage]:
        """Sends on a connection when the broker wants to hear of the client, and takes what it was sent before.

        Raises:
            RequestTimeoutError: not before the deadline; where the broker does not take what it was sent, the
                connection is closed. Otherwise as `BrokerConnection.send`.
        """
        waiting = connection.request(api_name(message.api_key))
        while pause := connection.throttle_delay(waiting.name, deadline):
            await sleep(self.now() + pause)
        await Wait(lambda: connection.has_room, deadline)
        if not connection.has_room:
            raise connection.expire(waiting)
        return self.send(connection, message, version)

    async def response(self, request: InFlightRequest[ResponseMessage], deadline: float) -> ResponseMessage:
        """The response to a request that was sent; None for one that has none.

        Raises:
            RequestTimeoutError: not before the deadline; the connection is closed.
            ConnectionLostError, ProtocolError, DecodeError: the connection is closed.
            UnsupportedVersionError: the broker says that it does not support the request.
        """
        return await request.response(deadline)

    async def request(
        self,
        connection: BrokerConnection,
        message: RequestMessage[ResponseMessage],
        deadline: float,
        version: int | None = None,
    ) -> ResponseMessage:
        """Sends on a connection; the response. Raises as `put` and `response`."""
        return await self.response(await self.put(connection, message, deadline, version), deadline)

    async def request_any(
        self, message: RequestMessage[ResponseMessage], deadline: float
    ) -> tuple[BrokerConnection, ResponseMessage]:
        """The response of any broker, and its connection. Where one keeps silent, the request is sent to another one,
        too.

        Raises as `connection` and `response`.
        """
        first = await self._any_connection(deadline)
        others = [address for address in self._addresses() if self._connections.get(address) is not first]
        patience = min(self.now(), first.silent_since) + SILENCE_PATIENCE
        sent = {first: await self.put(first, message, deadline)}

        def has_response() -> bool:
            return any(request.done for request in sent.values())

        while True:
            await Wait(has_response, min(patience, deadline))
            for connection, request in sent.items():
                if request.done:
                    return connection, request.result()
            if self.now() >= deadline:
                raise next(iter([connection.expire(request) for connection, request in sent.items()]))
            if others:
                await self._send_too(others.pop(0), message, sent, has_response, deadline)
            patience = self.now() + SILENCE_PATIENCE if others else deadline

    async def connection(self, node: int | None, deadline: float) -> BrokerConnection:
        """The connection to a broker, opened where there is none; None takes any broker.

        Raises UnknownBrokerError, ConnectError, ConnectionLostError, RequestTimeoutError, ProtocolError,
        UnsupportedVersionError.
        """
        if node is None:
            return await self._any_connection(deadline)
        found = await self._node(node, deadline)
        connection = await self._connection_to((found.host, found.port), found, deadline)
        connection.node = node
        return connection

    async def controller(self, deadline: float) -> BrokerConnection:
        """The connection to the broker that takes changes of topics: any one where the cluster names none (KRaft)."""
        if self._metadata.controller not in self._metadata.nodes:
            await self.refresh_brokers(deadline, lambda: self._metadata.controller in self._metadata.nodes)
        known = self._metadata
        return await self.connection(known.controller if known.controller in known.nodes else None, deadline)

    # Metadata ------------------------------------------------------------------------------------------------------

    async def refresh(
        self, topics: Iterable[str] | None, deadline: float, *, allow_auto_create: bool = False
    ) -> ClusterMetadata:
        """Requests Metadata, of other brokers and again until the deadline, and updates the cache. A response without
        brokers, as of one that is just starting, is not believed, and what is known stays (Kafka's NetworkClient)."""
        message = metadata_request(topics, allow_auto_create=allow_auto_create)
        retry = self.retry(deadline)
        while True:
            try:
                connection, response = await self.request_any(message, deadline)
                if response.error_code == Error.REBOOTSTRAP_REQUIRED:
                    raise self._rebootstrapped(connection.broker)
                if response.error_code:
                    raise KafkaError(response.error_code, "metadata")
                if not response.brokers:
                    raise _nobody(response, connection.broker)
                break
            except TagwireError as error:
                if not self._was_connected:
                    raise
                await sleep(retry.pause_until(error))
        cluster = cluster_metadata(response)
        self._metadata.update(cluster)
        return cluster

    async def refresh_brokers(self, deadline: float, is_known: Callable[[], bool] = lambda: False) -> None:
        """As `refresh` of no topic, in one request with all who want to know at a time.

        Args:
            is_known: whether the broker that is looked for is known, by a request that was under way already.
        """
        await self._lookups.cluster(
            None, deadline, lambda: self.refresh([], deadline), is_known, allow_auto_create=False
        )

    async def topic(
        self, name: str, deadline: float, *, allow_auto_create: bool = False, suggests: bool = True
    ) -> TopicMetadata:
        """A topic that exists: cached, or after a refresh of its metadata.

        Args:
            suggests: whether the error about one that does not exist lists all topics for it.

        Raises:
            KafkaError: it does not exist, or may not be used; the text names it, and what else may be meant.
        """
        retry = self.retry(deadline)
        missing_until = min(deadline, self.now() + UNKNOWN_TOPIC_PATIENCE)
        while True:
            usable = self._metadata.topic(name)
            if usable is not None:
                return usable
            asked = self.now()
            cluster = await self._lookups.cluster(
                name,
                deadline,
                lambda: self.refresh([name], deadline, allow_auto_create=allow_auto_create),
                lambda: self._metadata.topic(name) is not None,
                allow_auto_create=allow_auto_create,
            )
            if (usable := self._metadata.topic(name)) is not None:
                return usable
            found = None if cluster is None else cluster.topics.get(name)
            error = KafkaError(found.error if found else Error.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r}")
            # Who was paused while the response was on its way asks again: it tells of long ago.
            if error.error is Error.UNKNOWN_TOPIC_OR_PARTITION and asked >= missing_until:
                raise await self._with_suggestion(error, name, deadline) if suggests else error
            await sleep(retry.pause_until(error))

    async def partition(self, partition: TopicPartition, deadline: float) -> PartitionMetadata:
        """A partition with a leader: cached, or after a refresh of its metadata.

        Raises:
            KafkaError: LEADER_NOT_AVAILABLE while it has none, which is worth another attempt; otherwise as `topic`.
        """
        found = (await self.partitions(partition.topic, [partition.partition], deadline))[partition.partition]
        if isinstance(found, KafkaError):
            raise found
        return found

    async def partitions(
        self,
        name: str,
        wanted: Collection[int],
        deadline: float,
        *,
        allow_auto_create: bool = False,
        suggests: bool = True,
    ) -> dict[int, PartitionMetadata | KafkaError]:
        """Partitions of a topic with their leaders, cached or refreshed; for those that have none, the error that
        `partition` raises. Those that the topic lacks are waited for as a topic is. Takes and raises what `topic`
        does."""
        was_known = self.known_topic(name) is not None
        topic = await self.topic(name, deadline, allow_auto_create=allow_auto_create, suggests=suggests)
        if was_known and any(self.known_partition(TopicPartition(name, index)) is None for index in wanted):
            self.forget([name])  # it may have got more partitions, or leaders, since then
            topic = await self.topic(name, deadline, suggests=suggests)
        # A broker that lags behind may not know of new ones yet, as of a new topic.
        asked = self.now()
        missing_until, attempts = min(deadline, asked + UNKNOWN_TOPIC_PATIENCE), 0
        while asked < missing_until and any(index not in topic.partitions for index in wanted):
            attempts += 1
            now = self.now()
            again = now + min(pause_before(attempts, self.driver.random), max(0.0, missing_until - now))
            if again >= deadline:
                break
            await sleep(again)
            self.forget([name])
            asked = self.now()
            topic = await self.topic(name, deadline, suggests=suggests)
        return {index: _led(topic, index) for index in wanted}

    async def _with_suggestion(self, error: KafkaError, name: str, deadline: float) -> KafkaError:
        """`error` about a topic that does not exist, naming those that look like it."""
        try:
            known = (await self.refresh(None, deadline)).topics.values()
        except TagwireError:
            return error  # what was said before stands
        return KafkaError(error.code, error.message + did_you_mean(name, [one.name for one in known if not one.error]))

    # Parts ---------------------------------------------------------------------------------------------------------

    def _ready_connections(self) -> list[BrokerConnection]:
        """The connections that requests can be sent on, the best first: no throttle, room to write, no long silence."""
        now = self.now()
        ready = [connection for connection in self._connections.values() if connection.is_ready]
        return sorted(ready, key=lambda one: (one.throttled_until > now, not one.has_room, -one.silent_since))

    def _addresses(self) -> dict[Address, Node | None]:
        """Where brokers are: of the cluster, then of the bootstrap; those that are connected to, the best first."""
        known: dict[Address, Node | None] = {(node.host, node.port): node for node in self._metadata.nodes.values()}
        known |= {address: None for address in self._bootstrap if address not in known}
        connected = [(connection.host, connection.port) for connection in self._ready_connections()]
        return {address: known.get(address) for address in [*connected, *known]}

    async def _any_connection(self, deadline: float) -> BrokerConnection:
        """Raises ConnectError telling of every address, or what the only one gives."""
        ready = self._ready_connections()
        if ready and ready[0].has_room:
            return ready[0]
        tried = {(connection.host, connection.port) for connection in ready}
        known = {address: node for address, node in self._addresses().items() if address not in tried}
        failures: list[TagwireError] = []
        for address, node in known.items():
            # One that accepts and then keeps silent leaves time for the next.
            now, left = self.now(), len(known) - len(failures)
            until = deadline if left == 1 else now + min(CONNECT_TIMEOUT, (deadline - now) / left)
            try:
                return await self._connection_to(address, node, until)
            except TagwireError as error:
                failures.append(error)
            if meanwhile := self._ready_connections():  # one that was given up, and went on
                return meanwhile[0]
        if ready and not ready[0].closed:
            return ready[0]
        if len(failures) == 1 and not isinstance(failures[0], ConnectError):
            raise failures[0]
        raise ConnectError(f"no broker can be reached: {', '.join(map(str, failures))}")

    async def _send_too(
        self,
        address: Address,
        message: RequestMessage[ResponseMessage],
        sent: dict[BrokerConnection, InFlightRequest[ResponseMessage]],
        has_response: Callable[[], bool],
        deadline: float,
    ) -> None:
        """Sends the request to the broker at an address as well, unless one of `sent` has a response before it is
        connected to."""
        connection = self._opening(address, None, min(deadline, self.now() + CONNECT_TIMEOUT))
        await Wait(lambda: connection.is_ready or connection.closed or has_response(), deadline)
        if connection.is_ready and connection.has_room and connection.throttled_until <= self.now():
            try:
                sent[connection] = self.send(connection, message)
            except TagwireError:
                return  # another response may still come

    async def _node(self, node: int, deadline: float) -> Node:
        if node not in self._metadata.nodes:
            await self.refresh_brokers(deadline, lambda: node in self._metadata.nodes)
        found = self._metadata.nodes.get(node)
        if found is None:
            known = ", ".join(map(str, self._metadata.nodes.values())) or "none"
            raise UnknownBrokerError(f"no broker {node} in the cluster; known: {known}")
        return found

    async def _connection_to(self, address: Address, node: Node | None, deadline: float) -> BrokerConnection:
        """The connection to an address; `node`: the broker that is meant, None for whichever responds."""
        connection = self._opening(address, node, deadline)
        try:
            await connection.opened(deadline)
        except RequestTimeoutError:
            if not connection.closed or self.now() >= deadline:
                raise
            # Another one began it, and it was given up before this one's time was: a new one has what is left of that.
            return await self._connection_to(address, node, deadline)
        except KafkaError as error:
            if error.error is not Error.REBOOTSTRAP_REQUIRED:
                raise
            raise self._rebootstrapped(connection.broker) from None
        connection.broker = _name(address, node)
        return connection

    def _opening(self, address: Address, node: Node | None, deadline: float) -> BrokerConnection:
        """The connection to an address, ready or being opened; from now on, if it was not."""
        known = self._connections.get(address)
        if known is not None and not known.closed:
            return known
        cluster = self._metadata.cluster_id
        connection = BrokerConnection(
            *address,
            broker=_name(address, node),
            settings=self._settings,
            now=self.driver.now,
            deadline=max(deadline, self.now() + SETUP_TIMEOUT),
            identity=None if node is None or cluster is None else (cluster, node.id),
            on_ready=self._take_ready,
            random=self.driver.random,
            metrics=self._connection_metrics,
        )
        self.driver.register(connection)  # before it is kept: where this is interrupted, nobody waits for it in vain
        # Brokers may come back at other addresses: what has ended is not kept for those that nobody is at any more.
        self._connections = {address: one for address, one in self._connections.items() if not one.closed}
        self._connections[address] = connection
        return connection

    def _take_ready(self, connection: BrokerConnection) -> None:
        self._was_connected = True
        if connection.features.epoch > self.finalized.epoch:
            self.finalized = connection.features

    def _rebootstrapped(self, broker: str) -> ConnectionLostError:
        """Forgets the cluster, which is to be found anew from the bootstrap addresses (KIP-1102); the error that says
        so, which is worth another attempt."""
        self._drop_connections()
        self._metadata, self.finalized = MetadataCache(), BrokerFeatures()
        return ConnectionLostError(f"{broker}: the cluster is to be found anew (REBOOTSTRAP_REQUIRED)")

    def _drop_connections(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()


def _nobody(response: messages.MetadataResponse, broker: str) -> TagwireError:
    """What a response without brokers is: the refusal of a whole request, or of a broker that is starting."""
    refused = {Error.of(topic.error_code) for topic in response.topics}
    if len(refused) == 1 and not (error := refused.pop()).retriable and error:
        return KafkaError(error, "metadata")
    return ConnectError(f"{broker} tells of no brokers, as one that is starting does")


def _led(topic: TopicMetadata, index: int) -> PartitionMetadata | KafkaError:
    partition = topic.partitions.get(index)
    topic_partition = TopicPartition(topic.name, index)
    if partition is None:
        return KafkaError(
            Error.UNKNOWN_TOPIC_OR_PARTITION,
            f"partition {topic_partition}: topic {topic.name!r} has {len(topic.partitions)} partitions",
        )
    if partition.leader == NO_NODE:
        return KafkaError(Error.LEADER_NOT_AVAILABLE, f"partition {topic_partition} has no leader")
    return partition


def _name(address: Address, node: Node | None) -> str:
    """What errors call the broker."""
    return f"broker at {address_text(address)}" if node is None else str(node)
