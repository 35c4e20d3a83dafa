"""Which nodes there are, where clients reach them, and which of them leads, coordinates and controls what.

All nodes of a process see one image, as Kafka's brokers see the one that their controller makes. A broker that is alone
is the image's only node, and everything is its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from struct import Struct

from tagwire.broker.leadership import NO_LEADER, Leadership
from tagwire.rpc.addresses import Address

GROUP, TRANSACTION = 0, 1
"""What has a coordinator, by the key types of FindCoordinator."""

SLOTS = 50
"""How many partitions Kafka's internal topics have by default: ids of one partition have one coordinator."""

_UNIT = Struct(">H")


@dataclass(frozen=True, slots=True)
class Reached:
    """How clients reach one listener of a node.

    Attributes:
        advertised: the host and port that they are told, None to tell those that they have reached.
        port: the one that is listened on.
    """

    advertised: Address | None
    port: int


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A node, at the address that one client is told."""

    node_id: int
    host: str
    port: int
    rack: str | None


class ClusterImage:
    """What all nodes know of each other. Used on one event loop.

    Args:
        first_id: the id of the first node; the others' follow.
        nodes: how many there are.
        replication_factor: how many nodes hold a partition where nobody says otherwise.
        racks: where nodes are, by their ids.

    Attributes:
        node_ids: every node.
        live: those that run, and that the others know of.
        controller_id: the one that says it is the controller.
        racks, replication_factor: as given.
        listeners: of each node, how clients reach its listeners, in their order.
    """

    def __init__(
        self, first_id: int, nodes: int = 1, replication_factor: int = 1, racks: Mapping[int, str | None] | None = None
    ) -> None:
        self.node_ids = tuple(range(first_id, first_id + nodes))
        self.live: tuple[int, ...] = self.node_ids
        self.controller_id = first_id
        self.replication_factor = replication_factor
        self.racks: dict[int, str | None] = {**dict.fromkeys(self.node_ids), **(racks or {})}
        self.listeners: dict[int, Sequence[Reached]] = {}
        self._moved = asyncio.Event()
        self._coordinators = {
            (kind, slot): self.node_ids[(slot + kind) % nodes] for kind in (GROUP, TRANSACTION) for slot in range(SLOTS)
        }

    @property
    def is_alone(self) -> bool:
        """Whether there is one node, which does everything."""
        return len(self.node_ids) == 1

    def endpoints(self, listener: int, host: str) -> list[Endpoint]:
        """The nodes that run, as a client is told that has reached `host` on the listener of a number."""
        return [self.endpoint(node_id, listener, host) for node_id in self.live]

    def endpoint(self, node_id: int, listener: int, host: str) -> Endpoint:
        reached = self.listeners[node_id][listener]
        told, port = reached.advertised or (host, 0)
        return Endpoint(node_id, told, port or reached.port, self.racks[node_id])

    # Partitions ------------------------------------------------------------------------------------------------------

    def place(self, topic: str, index: int, epoch: int, replicas: Sequence[int] | None = None) -> Leadership:
        """Who holds and leads a new partition: `replicas`, the first preferred, or as many nodes as usual. Each
        partition's first is the one after the last partition's, as Kafka's StripedReplicaPlacer places them."""
        if replicas is None:
            replicas = self.spread(topic, index, self.replication_factor)
        return self.elect(Leadership(NO_LEADER, epoch, tuple(replicas), tuple(replicas)))

    def spread(self, topic: str, index: int, factor: int) -> list[int]:
        """The `factor` nodes that hold a partition where nobody names them."""
        count = len(self.node_ids)
        first = hash_of(topic) + index
        return [self.node_ids[(first + further) % count] for further in range(factor)]

    def elect(self, was: Leadership) -> Leadership:
        """Who leads a partition by now, in the same epoch: the leader while it runs, else the first that was in sync.

        Without one that was, nobody does; the last leader may, when it is back. There is one copy of the records, so
        every replica that runs is in sync as soon as there is a leader.
        """
        able = [node_id for node_id in was.replicas if node_id in was.isr and node_id in self.live]
        if not able:
            last = was.isr if was.leader == NO_LEADER else (was.leader,)
            return Leadership(NO_LEADER, was.epoch, was.replicas, last)
        leader = was.leader if was.leader in able else able[0]
        return Leadership(leader, was.epoch, was.replicas, self.in_sync(was.replicas))

    def in_sync(self, replicas: Iterable[int]) -> tuple[int, ...]:
        """Those of `replicas` that run."""
        return tuple(node_id for node_id in replicas if node_id in self.live)

    def nearest(self, leadership: Leadership, rack: str) -> int | None:
        """The replica that a reader in a rack had better read from instead of the leader; None for none, as Kafka's
        RackAwareReplicaSelector."""
        if self.racks.get(leadership.leader) == rack:
            return None
        return next((node_id for node_id in leadership.isr if self.racks[node_id] == rack), None)

    # Coordinators and the controller ----------------------------------------------------------------------------------

    def coordinator_of(self, kind: int, key: str) -> int:
        """The node that coordinates a group or a transactional id."""
        return self._coordinators[kind, _slot(key)]

    async def until_moved(self, kind: int, key: str, node_id: int) -> None:
        """Wait until another node than `node_id` coordinates a group or a transactional id."""
        while self.coordinator_of(kind, key) == node_id:
            await self._moved.wait()

    def _tell_of_moves(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def set_coordinator(self, kind: int, key: str, node_id: int) -> None:
        """Let a node coordinate a group or a transactional id, and all others of its slot."""
        self._coordinators[kind, _slot(key)] = node_id
        self._tell_of_moves()

    def set_live(self, live: Iterable[int]) -> None:
        """Note which nodes run: what others coordinate, and the controller, move to these. While none runs, nothing
        moves."""
        self.live = tuple(sorted(live))
        if not self.live:
            return
        if self.controller_id not in self.live:
            self.controller_id = self.live[0]
        for (kind, slot), node_id in self._coordinators.items():
            if node_id not in self.live:
                self._coordinators[kind, slot] = self.live[(slot + kind) % len(self.live)]
        self._tell_of_moves()


def _slot(key: str) -> int:
    return hash_of(key) % SLOTS


def hash_of(text: str) -> int:
    """Java's String.hashCode, made positive as Kafka does."""
    found = 0
    for (unit,) in _UNIT.iter_unpack(text.encode("utf-16-be", "surrogatepass")):
        found = (31 * found + unit) & 0xFFFFFFFF
    return found & 0x7FFFFFFF
