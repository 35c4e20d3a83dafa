"""One cluster as a client sees it: a connection to each broker, what is known of topics and leaders, who is asked what.

What may have to wait is a coroutine (`tagwire.client.scheduling`); nothing here blocks. `Client` is the face of it that
does, and a producer's thread runs it beside its sending.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from tagwire.client.metadata import (
    NO_NODE,
    ClusterMetadata,
    Node,
    PartitionMetadata,
    TopicMetadata,
    cluster_metadata,
    metadata_request,
)
from tagwire.client.opening import Opening
from tagwire.client.retry import Retry
from tagwire.client.scheduling import Wait, sleep
from tagwire.client.topology import Topology
from tagwire.client.transport import CONNECT_TIMEOUT, Link, Pending, Setup
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

# A topic that was just created may still be unknown to the broker that is asked; one that is unknown for longer is
# missing.
UNKNOWN_TOPIC_PATIENCE: Final = 2.0

# Seconds after which a question that any broker can answer goes to another one too.
SILENCE_PATIENCE: Final = 1.0

# Seconds that a connection's own deadline may be over before it is not waited for any longer: what it says is better.
_OPENING_GRACE: Final = 0.5

Address = tuple[str, int]


class Cluster:
    """The connections and the metadata that a client, or a producer's thread, works with. For one thread.

    Attributes:
        timeout: seconds that one operation may take, its retries included.
        finalized: what brokers told of features, as of the highest epoch.
        negotiated: {API key: version} of what was asked so far, the lowest where brokers differ.

    Args:
        bootstrap: (host, port) of the brokers to start from.
        setup: how every connection begins.
    """

    def __init__(self, bootstrap: Iterable[Address], setup: Setup, timeout: float) -> None:
        self.timeout = timeout
        self.finalized = BrokerFeatures()
        self.negotiated: dict[int, int] = {}
        self._bootstrap = tuple(bootstrap)
        self._setup = setup
        self._links: dict[Address, Link] = {}
        self._openings: dict[Address, Opening] = {}
        self._topology = Topology()
        self._met = False
        self._process = os.getpid()

    def sibling(self) -> Cluster:
        """The same cluster with connections of its own, for another thread. `negotiated` tells of both."""
        twin = Cluster(self._bootstrap, self._setup, self.timeout)
        twin.finalized, twin.negotiated = self.finalized, self.negotiated
        return twin

    @property
    def is_connected(self) -> bool:
        """Whether a connection is open, or being opened."""
        return bool(self._openings) or any(not link.closed for link in self._links.values())

    @property
    def is_of_this_process(self) -> bool:
        """Whether this process made it, and was not forked off from the one that did."""
        return os.getpid() == self._process

    @property
    def addresses(self) -> str:
        """Where it started, "HOST:PORT,HOST:PORT"."""
        return ",".join(map(address_text, self._bootstrap))

    def close(self) -> None:
        """Closes every connection, also those that are still being opened."""
        for opening in self._openings.values():
            opening.abandon()
        for link in self._links.values():
            link.close()
        self._openings.clear()
        self._links.clear()
        self._met = False

    def deadline(self) -> float:
        """The `time.monotonic` second at which an operation that starts now has to be done."""
        return time.monotonic() + self.timeout

    # What is known now ---------------------------------------------------------------------------------------------

    def known_topic(self, name: str) -> TopicMetadata | None:
        """A topic as last heard; None where the cluster has to be asked first."""
        return self._topology.topic(name)

    def known_partition(self, at: TopicPartition) -> PartitionMetadata | None:
        """A partition that has a leader, as last heard; None where the cluster has to be asked first."""
        topic = self._topology.topic(at.topic)
        found = None if topic is None else topic.partitions.get(at.partition)
        return None if found is None or found.leader == NO_NODE else found

    def standing_link(self, node: int) -> Link | None:
        """The connection to a broker, where there is one now."""
        found = self._topology.nodes.get(node)
        link = None if found is None else self._links.get((found.host, found.port))
        return None if link is None or link.closed else link

    def ready_link(self, node: int) -> Link | None:
        """The connection to a broker, where there is one that still stands."""
        found = self._topology.nodes.get(node)
        return None if found is None else self._standing_at((found.host, found.port))

    def moved(self, at: TopicPartition, leader: int, epoch: int, nodes: Iterable[Node] = ()) -> bool:
        """Takes what a broker's refusal tells of a partition's new leader (KIP-951: `current_leader` of a partition,
        `node_endpoints` of the answer). Whether that is news that another attempt can use, without asking Metadata."""
        return self._topology.moved(at, leader, epoch, nodes)

    def forget(self, topics: Iterable[str]) -> None:
        """Doubts what is known of these topics: the next question about them asks the cluster."""
        self._topology.doubt(topics)

    # Requests ------------------------------------------------------------------------------------------------------

    def send(self, link: Link, message: Any, version: int | None = None) -> Pending:
        """Sends on `link` now, remembering the version. Raises as `Link.send`."""
        pending = link.send(message, version)
        lowest = self.negotiated.get(message.api_key, pending.version)
        self.negotiated[message.api_key] = min(lowest, pending.version)
        return pending

    async def put(self, link: Link, message: Any, deadline: float, version: int | None = None) -> Pending:
        """Sends on `link` when the broker wants to hear of the client, and takes what it was sent before.

        Raises:
            RequestTimeoutError: not before the deadline; where the broker does not take what it was sent, the link is
                closed. Otherwise as `Link.send`.
        """
        waiting = Pending(api_name(message.api_key), version=0)
        while pause := link.pause(waiting.name, deadline):
            await sleep(time.monotonic() + pause)
        await Wait(lambda: link.has_room, deadline, [link])
        if not link.has_room:
            raise link.expire(waiting)
        return self.send(link, message, version)

    async def ask(self, link: Link, message: Any, deadline: float, version: int | None = None) -> Any:
        """Sends on `link`, and what is answered. Raises as `put` and `Link.wait`."""
        pending = await self.put(link, message, deadline, version)
        await Wait(lambda: pending.done, deadline, [link])
        if not pending.done:
            raise link.expire(pending)
        return pending.result()

    async def ask_any(self, message: Any, deadline: float) -> tuple[Link, Any]:
        """What any broker answers, and its link. One that keeps silent is not waited for alone: another is asked too.

        Raises as `link` and `Link.wait`.
        """
        first = await self._any_link(deadline)
        others = [address for address in self._addresses() if self._links.get(address) is not first]
        patience = min(time.monotonic(), first.silent_since) + SILENCE_PATIENCE
        asked = {first: await self.put(first, message, deadline)}

        def is_answered() -> bool:
            return any(pending.done for pending in asked.values())

        while True:
            await Wait(is_answered, min(patience, deadline), asked)
            for link, pending in asked.items():
                if pending.done:
                    return link, pending.result()
            if time.monotonic() >= deadline:
                raise next(iter([link.expire(pending) for link, pending in asked.items()]))
            if others:
                await self._ask_too(others.pop(0), message, asked, is_answered, deadline)
            patience = time.monotonic() + SILENCE_PATIENCE if others else deadline

    async def link(self, node: int | None, deadline: float) -> Link:
        """The connection to a broker, opened where there is none; None takes any broker.

        Raises ConnectError, ConnectionLostError, RequestTimeoutError, ProtocolError, UnsupportedVersionError.
        """
        if node is None:
            return await self._any_link(deadline)
        found = await self._node(node, deadline)
        link = await self._link_to((found.host, found.port), found, deadline)
        link.node = node
        return link

    async def controller(self, deadline: float) -> Link:
        """The connection to the broker that takes changes of topics: any one where the cluster names none (KRaft)."""
        if self._topology.controller not in self._topology.nodes:
            await self.refresh([], deadline)
        known = self._topology
        return await self.link(known.controller if known.controller in known.nodes else None, deadline)

    # Metadata ------------------------------------------------------------------------------------------------------

    async def refresh(
        self, topics: Iterable[str] | None, deadline: float, *, allow_auto_create: bool = False
    ) -> ClusterMetadata:
        """Asks Metadata, trying other brokers and other times until the deadline, and remembers the answer."""
        message = metadata_request(topics, allow_auto_create=allow_auto_create)
        retry = Retry(deadline)
        while True:
            try:
                link, response = await self.ask_any(message, deadline)
                if response.error_code == Error.REBOOTSTRAP_REQUIRED:
                    raise self._rebootstrapped(link.broker)
                if response.error_code:
                    raise KafkaError(response.error_code, "metadata")
                break
            except TagwireError as error:
                if not self._met:
                    raise
                await sleep(retry.pause_until(error))
        cluster = cluster_metadata(response)
        self._topology.take(cluster)
        return cluster

    async def topic(self, name: str, deadline: float, *, allow_auto_create: bool = False) -> TopicMetadata:
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
            answer = await self.refresh([name], deadline, allow_auto_create=allow_auto_create)
            if (usable := self._topology.topic(name)) is not None:
                return usable
            found = answer.topics.get(name)
            error = KafkaError(found.error if found else Error.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r}")
            if error.error is Error.UNKNOWN_TOPIC_OR_PARTITION and time.monotonic() >= missing_until:
                raise error
            await sleep(retry.pause_until(error))

    async def partition(self, at: TopicPartition, deadline: float) -> PartitionMetadata:
        """A partition that has a leader, as last heard or asked now.

        Raises:
            KafkaError: LEADER_NOT_AVAILABLE while it has none, which is worth another attempt; otherwise as `topic`.
        """
        found = (await self.partitions(at.topic, [at.partition], deadline))[at.partition]
        if isinstance(found, KafkaError):
            raise found
        return found

    async def partitions(
        self, name: str, wanted: Collection[int], deadline: float
    ) -> dict[int, PartitionMetadata | KafkaError]:
        """Partitions of a topic that have leaders, as last heard or asked now; of those that have none, the error that
        `partition` raises. Raises as `topic`."""
        was_known = self.known_topic(name) is not None
        topic = await self.topic(name, deadline)
        if was_known and any(self.known_partition(TopicPartition(name, index)) is None for index in wanted):
            self.forget([name])  # it may have got more partitions, or leaders, since it was asked about
            topic = await self.topic(name, deadline)
        return {index: _led(topic, index) for index in wanted}

    # Parts ---------------------------------------------------------------------------------------------------------

    def _standing(self) -> list[Link]:
        """The connections that stand, the best to ask first: no throttle, room to write, no long silence."""
        now = time.monotonic()
        standing = [link for link in self._links.values() if _stands(link)]
        return sorted(standing, key=lambda link: (link.quiet_until > now, not link.has_room, -link.silent_since))

    def _addresses(self) -> dict[Address, Node | None]:
        """Where brokers are: of the cluster, then of the bootstrap; those that are connected to, the best first."""
        known: dict[Address, Node | None] = {(node.host, node.port): node for node in self._topology.nodes.values()}
        known |= {address: None for address in self._bootstrap if address not in known}
        addresses = {link: address for address, link in self._links.items()}
        connected = [addresses[link] for link in self._standing()]
        return {address: known.get(address) for address in [*connected, *known]}

    async def _any_link(self, deadline: float) -> Link:
        """Raises ConnectError telling of every address, or what the only one gives."""
        standing = self._standing()
        if standing and standing[0].has_room:
            return standing[0]
        tried = {address for address, link in self._links.items() if link in standing}
        known = {address: node for address, node in self._addresses().items() if address not in tried}
        failures: list[TagwireError] = []
        for address, node in known.items():
            # One that accepts and then keeps silent leaves time for the next.
            is_last = len(failures) == len(known) - 1
            until = deadline if is_last else min(deadline, time.monotonic() + CONNECT_TIMEOUT)
            try:
                return await self._link_to(address, node, until)
            except TagwireError as error:
                failures.append(error)
        if standing and not standing[0].closed:
            return standing[0]
        if len(failures) == 1 and not isinstance(failures[0], ConnectError):
            raise failures[0]
        raise ConnectError(f"no broker can be reached: {', '.join(map(str, failures))}")

    async def _ask_too(
        self,
        address: Address,
        message: Any,
        asked: dict[Link, Pending],
        is_answered: Callable[[], bool],
        deadline: float,
    ) -> None:
        """Asks the broker at an address as well, unless one of those `asked` answers before it is connected to."""
        try:
            link = self._standing_at(address)
            if link is None:
                opening = self._opening(address, None, min(deadline, time.monotonic() + CONNECT_TIMEOUT))
                await Wait(lambda: opening.done or is_answered(), deadline, asked, opening)
                if not opening.done:
                    return
                link = self._opened(address, opening)
            if link.has_room and link.quiet_until <= time.monotonic():
                asked[link] = self.send(link, message)
        except TagwireError:
            return  # those asked before may still answer

    async def _node(self, node: int, deadline: float) -> Node:
        if node not in self._topology.nodes:
            await self.refresh([], deadline)
        found = self._topology.nodes.get(node)
        if found is None:
            known = ", ".join(map(str, self._topology.nodes.values())) or "none"
            raise ConnectError(f"no broker {node} in the cluster; known: {known}")
        return found

    async def _link_to(self, address: Address, node: Node | None, deadline: float) -> Link:
        """The connection to an address; `node`: the broker that is meant, None for whoever answers."""
        name = _name(address, node)
        while (link := self._standing_at(address)) is None:
            opening = self._opening(address, node, deadline)
            try:
                link = await self._awaited(address, opening, deadline)
                break
            except (ConnectError, RequestTimeoutError):
                if not opening.done or opening.deadline >= deadline:
                    raise  # otherwise somebody began it who had less time
        link.broker = name
        return link

    async def _awaited(self, address: Address, opening: Opening, deadline: float) -> Link:
        await Wait(lambda: opening.done, deadline + _OPENING_GRACE, opening=opening)
        if not opening.done:
            raise ConnectError(f"{opening.broker} is still being connected to")
        return self._opened(address, opening)

    def _standing_at(self, address: Address) -> Link | None:
        """The connection to an address, where there is one that stands: also one whose opening nobody waited for any
        longer. Where that failed, it says nothing of now."""
        opening = self._openings.get(address)
        if opening is not None and opening.done:
            with suppress(TagwireError):
                self._opened(address, opening)
        link = self._links.get(address)
        return link if link is not None and _stands(link) else None

    def _opening(self, address: Address, node: Node | None, deadline: float) -> Opening:
        """The connection to an address that is being opened, from now on if it was not."""
        known = self._openings.get(address)
        if known is not None and known.is_under_way:
            return known
        cluster = self._topology.cluster_id
        broker = _name(address, node)
        connect = partial(
            Link.open,
            *address,
            broker=broker,
            setup=self._setup,
            deadline=deadline,
            identity=None if node is None or cluster is None else (cluster, node.id),
        )
        opening = self._openings[address] = Opening(broker, deadline, connect)
        return opening

    def _opened(self, address: Address, opening: Opening) -> Link:
        """What came of it, for the first who asks and for all others. Raises as `Link.open`."""
        is_first = self._openings.get(address) is opening
        if is_first:
            del self._openings[address]
        try:
            link = opening.result()
        except KafkaError as error:
            if error.error is not Error.REBOOTSTRAP_REQUIRED:
                raise
            raise self._rebootstrapped(opening.broker) from None
        if is_first:
            self._links[address] = link
            self._met = True
            if link.features.epoch > self.finalized.epoch:
                self.finalized = link.features
        return link

    def _rebootstrapped(self, broker: str) -> ConnectionLostError:
        """Forgets the cluster, which is to be found anew from the bootstrap addresses (KIP-1102); the error that says
        so, which is worth another attempt."""
        for link in self._links.values():
            link.close()
        self._links.clear()
        self._topology, self.finalized = Topology(), BrokerFeatures()
        return ConnectionLostError(f"{broker}: the cluster is to be found anew (REBOOTSTRAP_REQUIRED)")


def _led(topic: TopicMetadata, index: int) -> PartitionMetadata | KafkaError:
    partition = topic.partitions.get(index)
    at = TopicPartition(topic.name, index)
    if partition is None:
        return KafkaError(
            Error.UNKNOWN_TOPIC_OR_PARTITION,
            f"partition {at}: topic {topic.name!r} has {len(topic.partitions)} partitions",
        )
    if partition.leader == NO_NODE:
        return KafkaError(Error.LEADER_NOT_AVAILABLE, f"partition {at} has no leader")
    return partition


def _name(address: Address, node: Node | None) -> str:
    """What errors call the broker."""
    return f"broker at {address_text(address)}" if node is None else str(node)


def _stands(link: Link) -> bool:
    """Whether a connection can be used: a broker ends one that was idle for long without a word, maybe after an answer
    that nobody waited for any longer."""
    link.poll()
    return not link.closed


def unclosed(owner: object, addresses: str) -> str:
    """What is said of a client, or of what has one of its own, that was collected with open connections."""
    kind = type(owner).__name__
    return (
        f"a {kind} of {addresses} was never closed: write `with {kind}(...) as {kind.lower()}:`, or call its close() "
        "when it is done"
    )


def warn_unclosed(owner: object, cluster: Cluster) -> None:
    """Warns of connections that nobody closed, and closes them. For `__del__`. A process that was forked off closes its
    copies alone: the one that made them goes on with them."""
    if not cluster.is_connected:
        return
    try:
        if cluster.is_of_this_process:
            warnings.warn(unclosed(owner, cluster.addresses), ResourceWarning, stacklevel=3, source=owner)
    finally:
        cluster.close()
