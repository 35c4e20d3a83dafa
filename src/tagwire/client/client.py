"""A client of a cluster: finds brokers, keeps one connection to each, routes requests."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from tagwire.client.config import FetchSettings, ProduceSettings, Settings, addresses_of, parse
from tagwire.client.metadata import (
    NO_NODE,
    ClusterMetadata,
    Node,
    PartitionMetadata,
    TopicMetadata,
    TopicPartition,
    cluster_metadata,
    metadata_request,
)
from tagwire.client.offsets import list_offsets
from tagwire.client.retry import Retry
from tagwire.client.security import security_of
from tagwire.client.topology import Topology
from tagwire.client.transport import CONNECT_TIMEOUT, Link, Setup
from tagwire.client.versions import policy, speakable
from tagwire.errors import ConnectError, ConnectionLostError, Error, KafkaError, TagwireError
from tagwire.rpc import Api, BrokerFeatures, Features, Range, Usability, api_name
from tagwire.rpc.addresses import address_text

# A topic that was just created may still be unknown to the broker that is asked; one that is unknown for longer is
# missing.
UNKNOWN_TOPIC_PATIENCE: Final = 2.0

_NOTHING: Mapping[str, str] = {}


class Client:
    """A client of one cluster, for one thread.

    Connections are opened when they are needed; on each, ApiVersions is asked first and every API is spoken at the
    highest version that both sides have. The first contact is tried once at each bootstrap address; whatever is lost
    later is tried again, with pauses, until `timeout` has passed.

        with Client("kafka-1:9092,kafka-2:9092") as client:
            for name, topic in client.metadata().topics.items(): ...

    Args:
        bootstrap: where to start, "HOST:PORT,HOST:PORT".
        client_id: the client's name for itself, in every request.
        timeout: seconds that one operation may take, its retries included.
        exclude: versions never to use, by API name: `{"Produce": "5-6", "Fetch": [12]}`.
        versions: what brokers serve, instead of asking them: a release such as "2.8", or versions or ranges by API
            name, `{"Fetch": 12, "Metadata": "4-9", ...}`, of which none may be missing that is used.
        fallback: a release such as "0.9.0", whose versions are taken for granted of a broker that ends the connection
            when it is asked.
        apis: APIs that Kafka does not have, as `tagwire.rpc.api_of` makes them: their requests can be sent too.
        security: the attributes of `tagwire.client.Security`: security_protocol, ssl_cafile, sasl_mechanism, ...

    Raises:
        ConfigError: `bootstrap` is no list of addresses, or another option is wrong.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = "tagwire",
        timeout: float = 30.0,
        exclude: Mapping[str, str | Collection[int]] = _NOTHING,
        versions: str | Mapping[str, object] | None = None,
        fallback: str | None = None,
        apis: Collection[Api] = (),
        **security: Any,
    ) -> None:
        self.timeout = timeout
        self.fetch_settings = FetchSettings()
        self.produce_settings = ProduceSettings()
        self._bootstrap = addresses_of(bootstrap)
        added = {api.key: api for api in apis}
        self._setup = Setup(client_id, policy(exclude, versions, fallback, added), security_of(security), added)
        self._links: dict[tuple[str, int], Link] = {}
        self._topology = Topology()
        self._finalized = BrokerFeatures()
        self._negotiated: dict[int, int] = {}
        self._met = False

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """A client set up by Kafka's own property names (tagwire.client.config says which are read).

        Readers and producers made of it start from what the properties say of fetching and producing. Raises
        ConfigError.
        """
        settings: Settings = parse(properties)
        client = cls(settings.bootstrap, client_id=settings.client_id, timeout=settings.timeout, **settings.security)
        client.fetch_settings = settings.fetch
        client.produce_settings = settings.produce
        return client

    def close(self) -> None:
        """Closes every connection. The client may be used again; it connects anew."""
        for link in self._links.values():
            link.close()
        self._links.clear()
        self._met = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Requests ------------------------------------------------------------------------------------------------------

    def request(self, message: Any, *, node: int | None = None, version: int | None = None) -> Any:
        """Sends one request and waits for its answer. It is sent once: what to do about an error is the caller's to
        say.

        Args:
            message: any request object of `tagwire.messages`.
            node: the broker to ask; None asks any.
            version: None speaks the highest version in common.

        Returns:
            The response object; None for Produce with acks=0. Error codes inside it are left as they are.

        Raises:
            UnsupportedVersionError, EncodeError: nothing was sent.
            ConnectError, ConnectionLostError, RequestTimeoutError, ProtocolError, DecodeError: no answer that can be
            read.
        """
        deadline = self.deadline()
        link = self.link(node, deadline)
        return link.wait(self.send(link, message, deadline, version), deadline)

    def versions(self, node: int | None = None) -> dict[int, Range]:
        """{API key: (lowest, highest)} as the broker answered, APIs that tagwire does not know included."""
        return dict(self.link(node, self.deadline()).ranges)

    def features(self, node: int | None = None) -> BrokerFeatures:
        """What a broker tells of features: those it supports, and those the cluster has settled on."""
        return self.link(node, self.deadline()).features

    def finalized_features(self) -> Mapping[str, int]:
        """{feature: level} that the cluster has settled on, as the newest answer of any broker told: the one with the
        highest epoch. Empty before the first connection, and where brokers do not tell (before Kafka 2.7)."""
        return self._finalized.finalized

    def usable(self, features: Features, feature: str) -> Usability:
        """Whether every broker of the cluster and this client can do `feature`; if not, what stands against it.

        Raises:
            KeyError: no feature has this name. ConnectError, ...: a broker cannot be asked.
        """
        deadline = self.deadline()
        brokers = self.refresh([], deadline).brokers
        ranges = {str(node): self.link(node.id, deadline).ranges for node in brokers.values()}
        return features.usable(feature, ranges, speakable())

    def negotiated(self) -> dict[str, int]:
        """{API name: version} of what was asked so far; the lowest where brokers differ."""
        return {api_name(api): version for api, version in sorted(self._negotiated.items())}

    def metadata(self, topics: Iterable[str] | None = None, *, allow_auto_create: bool = False) -> ClusterMetadata:
        """The cluster, and these topics; None asks for all topics. What a topic lacks is in its `error`, not raised.

        Args:
            allow_auto_create: whether the broker may create a topic that is missing, if it is set to do so.

        Raises:
            ConnectError, RequestTimeoutError, ...: as `request`; KafkaError where the whole question is refused.
        """
        return self.refresh(topics, self.deadline(), allow_auto_create=allow_auto_create)

    def list_offsets(
        self, partitions: Mapping[tuple[str, int], int], *, isolation: str | None = None
    ) -> dict[TopicPartition, int]:
        """An offset of each partition: `EARLIEST` the first one kept, `LATEST` the next to be written, or the first
        record at or after a timestamp in milliseconds (-1 where there is none).

        Args:
            isolation: "read_committed" takes a partition to end where its oldest open transaction begins,
                "read_uncommitted" does not; None as the client is set up.

        Raises:
            KafkaError: naming the partition; UNKNOWN_TOPIC_OR_PARTITION for one that does not exist.
            RemoteProtocolError: the broker tells an offset that none can be, or of what was not asked for.
            ConfigError: there is no such isolation.
        """
        return list_offsets(self, partitions, self.deadline(), isolation or self.fetch_settings.isolation)

    def sibling(self) -> Client:
        """A client set up like this one, with connections of its own: for another thread. `negotiated` tells of both.

        It is not closed with this one.
        """
        twin = copy(self)
        twin._links, twin._topology, twin._met = {}, Topology(), False
        return twin

    # What Producer, Reader and Admin build on ----------------------------------------------------------------------

    def deadline(self) -> float:
        """The `time.monotonic` second at which an operation that starts now has to be done."""
        return time.monotonic() + self.timeout

    def link(self, node: int | None, deadline: float) -> Link:
        """The connection to a broker, opened where there is none; None takes any broker.

        Raises ConnectError, ConnectionLostError, RequestTimeoutError, ProtocolError, UnsupportedVersionError.
        """
        if node is None:
            return self._any_link(deadline)
        found = self._node(node, deadline)
        link = self._link_to((found.host, found.port), found, deadline)
        link.node = node
        return link

    def ready_link(self, node: int) -> Link | None:
        """The connection to a broker, where there is one that still stands."""
        link = self.standing_link(node)
        return link if link is not None and _stands(link) else None

    def opening(self, node: int, deadline: float) -> tuple[Node, Callable[[], Link]]:
        """A broker, and what opens a connection to it in any thread: it touches nothing of the client. `opened` takes
        what comes of it.

        Raises ConnectError for a broker that the cluster does not have, which is asked where it is not known.
        """
        found = self._node(node, deadline)
        return found, self._opener((found.host, found.port), found, deadline)

    def opened(self, node: Node, outcome: Callable[[], Link]) -> Link:
        """Takes the connection to a broker that `outcome` gives. Raises what that raises."""
        link = self._adopt((node.host, node.port), str(node), outcome)
        link.node = node.id
        return link

    def standing_link(self, node: int) -> Link | None:
        """The connection to a broker, where there is one now."""
        found = self._topology.nodes.get(node)
        link = None if found is None else self._links.get((found.host, found.port))
        return None if link is None or link.closed else link

    def send(self, link: Link, message: Any, deadline: float, version: int | None = None) -> Any:
        """Sends on `link`, remembering the version. Returns what `link.wait` takes; raises as `Link.send`."""
        pending = link.send(message, deadline, version)
        lowest = self._negotiated.get(message.api_key, pending.version)
        self._negotiated[message.api_key] = min(lowest, pending.version)
        return pending

    def controller(self, deadline: float) -> Link:
        """The connection to the broker that takes changes of topics: any one where the cluster names none (KRaft)."""
        if self._topology.controller not in self._topology.nodes:
            self.refresh([], deadline)
        known = self._topology
        return self.link(known.controller if known.controller in known.nodes else None, deadline)

    def refresh(
        self, topics: Iterable[str] | None, deadline: float, *, allow_auto_create: bool = False
    ) -> ClusterMetadata:
        """Asks Metadata, trying other brokers and other times until the deadline, and remembers the answer."""
        message = metadata_request(topics, allow_auto_create=allow_auto_create)
        retry = Retry(deadline)
        while True:
            try:
                link = self._any_link(deadline)
                response = link.wait(self.send(link, message, deadline), deadline)
                if response.error_code == Error.REBOOTSTRAP_REQUIRED:
                    raise self._rebootstrapped(link.broker)
                if response.error_code:
                    raise KafkaError(response.error_code, "metadata")
                break
            except TagwireError as error:
                if not self._met:
                    raise
                retry.wait(error)
        cluster = cluster_metadata(response)
        self._topology.take(cluster)
        return cluster

    def topic(self, name: str, deadline: float, *, allow_auto_create: bool = False) -> TopicMetadata:
        """A topic that exists, as last heard or asked now.

        Raises:
            KafkaError: it does not exist, or may not be used; the text names it.
        """
        retry = Retry(deadline)
        missing_until = min(deadline, time.monotonic() + UNKNOWN_TOPIC_PATIENCE)
        while True:
            usable = self._topology.topic(name)
            if usable is not None:
                return usable
            found = self.refresh([name], deadline, allow_auto_create=allow_auto_create).topics.get(name)
            if (usable := self._topology.topic(name)) is not None:
                return usable
            error = KafkaError(found.error if found else Error.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r}")
            if error.error is Error.UNKNOWN_TOPIC_OR_PARTITION and time.monotonic() >= missing_until:
                raise error
            retry.wait(error)

    def leader(self, at: TopicPartition, deadline: float) -> int:
        """The node that leads a partition, as last heard or asked now. Raises as `partition`."""
        return self.partition(at, deadline).leader

    def partition(self, at: TopicPartition, deadline: float) -> PartitionMetadata:
        """A partition that has a leader, as last heard or asked now.

        Raises:
            KafkaError: LEADER_NOT_AVAILABLE while it has none, which is worth another attempt; otherwise as `topic`.
        """
        topic = self.topic(at.topic, deadline)
        if at.partition not in topic.partitions:
            self.forget([at.topic])  # it may have got more partitions since it was asked about
            topic = self.topic(at.topic, deadline)
        partition = topic.partitions.get(at.partition)
        if partition is None:
            raise KafkaError(
                Error.UNKNOWN_TOPIC_OR_PARTITION,
                f"partition {at}: topic {at.topic!r} has {len(topic.partitions)} partitions",
            )
        if partition.leader == NO_NODE:
            self.forget([at.topic])
            raise KafkaError(Error.LEADER_NOT_AVAILABLE, f"partition {at} has no leader")
        return partition

    def moved(self, at: TopicPartition, leader: int, epoch: int, nodes: Iterable[Node] = ()) -> bool:
        """Takes what a broker's refusal tells of a partition's new leader (KIP-951: `current_leader` of a partition,
        `node_endpoints` of the answer). Whether that is news that another attempt can use, without asking Metadata."""
        return self._topology.moved(at, leader, epoch, nodes)

    def forget(self, topics: Iterable[str]) -> None:
        """Doubts what is known of these topics: the next question about them asks the cluster."""
        self._topology.doubt(topics)

    def _any_link(self, deadline: float) -> Link:
        for link in self._links.values():
            if _stands(link):
                return link
        known: dict[tuple[str, int], Node | None] = {
            (node.host, node.port): node for node in self._topology.nodes.values()
        }
        known = {**known, **{address: None for address in self._bootstrap if address not in known}}
        failures: list[TagwireError] = []
        for address, node in known.items():
            # One that accepts and then keeps silent leaves time for the next.
            is_last = len(failures) == len(known) - 1
            until = deadline if is_last else min(deadline, time.monotonic() + CONNECT_TIMEOUT)
            try:
                return self._link_to(address, node, until)
            except TagwireError as error:
                failures.append(error)
        if len(failures) == 1 and not isinstance(failures[0], ConnectError):
            raise failures[0]
        raise ConnectError(f"no broker can be reached: {', '.join(map(str, failures))}")

    def _node(self, node: int, deadline: float) -> Node:
        if node not in self._topology.nodes:
            self.refresh([], deadline)
        found = self._topology.nodes.get(node)
        if found is None:
            known = ", ".join(map(str, self._topology.nodes.values())) or "none"
            raise ConnectError(f"no broker {node} in the cluster; known: {known}")
        return found

    def _link_to(self, address: tuple[str, int], node: Node | None, deadline: float) -> Link:
        """The connection to an address; `node`: the broker that is meant, None for whoever answers."""
        name = _name(address, node)
        link = self._links.get(address)
        if link is None or not _stands(link):
            link = self._adopt(address, name, self._opener(address, node, deadline))
        link.broker = name
        return link

    def _opener(self, address: tuple[str, int], node: Node | None, deadline: float) -> Callable[[], Link]:
        cluster = self._topology.cluster_id
        identity = None if node is None or cluster is None else (cluster, node.id)
        broker = _name(address, node)
        return partial(Link.open, *address, broker=broker, setup=self._setup, deadline=deadline, identity=identity)

    def _adopt(self, address: tuple[str, int], name: str, outcome: Callable[[], Link]) -> Link:
        try:
            link = outcome()
        except KafkaError as error:
            raise self._rebootstrapped(name) if error.error is Error.REBOOTSTRAP_REQUIRED else error from None
        self._links[address] = link
        self._met = True
        if link.features.epoch > self._finalized.epoch:
            self._finalized = link.features
        return link

    def _rebootstrapped(self, broker: str) -> ConnectionLostError:
        """Forgets the cluster, which is to be found anew from the bootstrap addresses (KIP-1102); the error that says
        so, which is worth another attempt."""
        for link in self._links.values():
            link.close()
        self._links.clear()
        self._topology, self._finalized = Topology(), BrokerFeatures()
        return ConnectionLostError(f"{broker}: the cluster is to be found anew (REBOOTSTRAP_REQUIRED)")


def _name(address: tuple[str, int], node: Node | None) -> str:
    """What errors call the broker."""
    return f"broker at {address_text(address)}" if node is None else str(node)


def _stands(link: Link) -> bool:
    """Whether a connection can be used: a broker ends one that was idle for long without a word."""
    if not link.in_flight:
        link.poll()
    return not link.closed
