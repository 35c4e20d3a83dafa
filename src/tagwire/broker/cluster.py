"""A cluster inside a Python program, for tests of what clients do when leaders move and brokers end."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike
from types import TracebackType
from typing import Any, Self, Unpack

from tagwire.at_exit import quiet_at_exit
from tagwire.broker.apis import Apis
from tagwire.broker.cluster_image import GROUP, TRANSACTION
from tagwire.broker.fault_injection import FaultyFiles
from tagwire.broker.hooks import Hooks
from tagwire.broker.interception import Act, Interception, Interceptions
from tagwire.broker.loop_thread import LoopThread
from tagwire.broker.network.cluster_server import ClusterServer
from tagwire.broker.network.listener import Listener, Tls, is_whole
from tagwire.broker.options import OPTIONS, settings_of
from tagwire.broker.partition import Partition
from tagwire.broker.registry import AddedHandler
from tagwire.broker.settings import Options
from tagwire.broker.storage.data_directory import NODE_ID
from tagwire.broker.telemetry.requests import RequestLog
from tagwire.errors import ConfigError, TagwireError
from tagwire.rpc import Api, MessageSpec, api_of

MOST_NODES = 100
USUAL_REPLICAS = 3


class ClusterNode:
    """One node of a cluster.

    Attributes:
        node_id: which.
        requests: what clients sent to it.
    """

    def __init__(self, cluster: Cluster, node_id: int, requests: RequestLog, interceptions: Interceptions) -> None:
        self.node_id = node_id
        self.requests = requests
        self._cluster = cluster
        self._interceptions = interceptions

    def __repr__(self) -> str:
        return f"<node {self.node_id} of a cluster>"

    @property
    def bootstrap(self) -> str:
        """Where clients find it, "host:port"; its first listener. TagwireError while the cluster is not running."""
        return self.addresses[0]

    @property
    def addresses(self) -> list[str]:
        """ "host:port" of every listener, in their order, the same when it runs again. TagwireError as `bootstrap`."""
        return self._cluster._server().sockets[self.node_id].addresses

    def intercept(self, api: str | int, act: Act, *, times: int | None = None) -> Interception:
        """As `Broker.intercept`, of the requests to this node. They come before what `Cluster.intercept` takes."""
        return self._interceptions.add(api, act, times)

    def stats(self) -> dict[str, Any]:
        """How it is, in numbers, as `Broker.stats`: connections and requests are its own, all else is the cluster's."""
        server = self._cluster._server()

        async def tell() -> dict[str, Any]:
            return server.stats(self.node_id)

        return self._cluster._thread().call(tell())


class Cluster:
    """Several nodes in one process, over one store, that runs while it is needed.

        with Cluster(nodes=3) as cluster:
            client = Client(cluster.bootstrap)
            cluster.move_leader("orders", 0, 2)
            cluster.stop(1)

    To clients it is a cluster: every node listens on ports of its own, partitions are led, and groups and transactional
    ids coordinated, by one node each, and the others refuse what is not theirs, as Kafka's do. The ids of the nodes are
    1, 2 and so on.

    It is for tests, and no way to more safety or speed than `Broker`: nothing is replicated. All nodes write to one
    copy of each partition, in one thread, and a replica, or an in-sync replica, is a node that serves that copy. So
    nothing is lost when a node ends, but by `truncate` alone, and a leader that is isolated without the others' knowing
    acknowledges what in Kafka it could not. Who holds and leads what is spread anew when a cluster is started on its
    data again.

    Args:
        nodes: how many, 1 to 100.
        data_dir, host, advertise, tls, sasl, listeners, options: as `Broker` has them. Where a port is given, or
            advertised, it is the first node's, and the others' follow.
        port: the first node's; 0 takes free ones.
        replication_factor: how many nodes hold each partition of a topic that is created without saying; as many as
            there are, 3 at most, unless it is given.
        racks: where each node is, in their order, as Kafka's broker.rack; empty for nowhere.

    Raises:
        ConfigError: an option is wrong; the text says which, and what is allowed.

    Attributes:
        nodes: each node, by its id.
        disk: the file operations of all, which can be made to fail.
    """

    def __init__(
        self,
        nodes: int = 3,
        data_dir: str | PathLike[str] | None = None,
        port: int = 0,
        host: str = "127.0.0.1",
        *,
        replication_factor: int | None = None,
        racks: Sequence[str | None] = (),
        advertise: str | None = None,
        tls: Tls | None = None,
        sasl: str | Iterable[str] = (),
        listeners: Listener | Iterable[Listener] = (),
        **options: Unpack[Options],
    ) -> None:
        if not is_whole(nodes) or not 1 <= nodes <= MOST_NODES:
            raise ConfigError(f"nodes={nodes!r} is not 1 to {MOST_NODES}")
        factor = min(nodes, USUAL_REPLICAS) if replication_factor is None else replication_factor
        if not is_whole(factor) or not 1 <= factor <= nodes:
            raise ConfigError(f"replication_factor={factor!r} is not 1 to {nodes}, the number of nodes")
        if isinstance(racks, str) or (racks and len(racks) != nodes):
            raise ConfigError(f"racks={racks!r} does not say one for each of {nodes} nodes")
        known = OPTIONS | {"nodes", "replication_factor", "racks"}
        self._settings = settings_of(data_dir, port, host, advertise, tls, sasl, listeners, options, known)
        self._listeners = [[_of_node(each, place) for each in self._settings.listeners] for place in range(nodes)]
        self._apis = Apis(self._settings.as_release)
        self._replication_factor = factor
        self._racks = list(racks) or [None] * nodes
        self._interceptions = Interceptions()
        self.disk = FaultyFiles()
        self._hooks = [
            Hooks(self.disk, RequestLog(self._settings.requests_kept), Interceptions(self._interceptions))
            for _ in range(nodes)
        ]
        self.nodes = {
            node_id: ClusterNode(self, node_id, hooks.requests, hooks.interceptions)
            for node_id, hooks in enumerate(self._hooks, NODE_ID)
        }
        self._running: tuple[LoopThread, ClusterServer] | None = None

    @property
    def bootstrap(self) -> str:
        """Where clients find it: "host:port" of every node's first listener, with commas. TagwireError while it is not
        running."""
        return ",".join(node.bootstrap for node in self.nodes.values())

    def _alive(self) -> tuple[LoopThread, ClusterServer]:
        if self._running is None:
            raise TagwireError("the cluster is not running")
        return self._running

    def _thread(self) -> LoopThread:
        return self._alive()[0]

    def _server(self) -> ClusterServer:
        return self._alive()[1]

    # Nodes -----------------------------------------------------------------------------------------------------------

    def start(self, node: int | None = None) -> None:
        """Start a node that has ended, at its old addresses, or all that is not running. Does nothing to what runs.

        A node that comes back leads nothing but what nobody else could lead meanwhile; see `move_leader`, and the
        request ElectLeaders, by which Kafka gives preferred replicas their partitions back.

        Raises:
            StorageError: the data directory is not ours, is in use, or cannot be read or written.
            ConfigError: there is no such node, or an address cannot be listened on.
        """
        if node is not None:
            thread, server = self._of(node)
            thread.call(server.start(node))
        elif self._running is None:
            server = ClusterServer(
                self._settings,
                self._listeners,
                self._hooks,
                self.disk,
                self._apis,
                self._replication_factor,
                self._racks,
            )
            self._running = LoopThread(server), server
        else:
            thread, server = self._running
            for each in self.nodes:
                thread.call(server.start(each))

    def stop(self, node: int | None = None) -> None:
        """Shut a node down cleanly, or all: others lead and coordinate what it did, then it responds to what is under
        way, and closes its connections. Connections to it are refused until it is started again.

        Raises:
            ConfigError: there is no such node.
        """
        if node is not None:
            thread, server = self._of(node)
            thread.call(server.stop(node))
        elif self._running is not None:
            (thread, _), self._running = self._running, None
            thread.stop()

    def kill(self, node: int) -> None:
        """End a node as kill -9 ends a process: its connections are reset without a response, whatever is under way,
        which may be carried out or not. Then others lead and coordinate what it did.

        Raises:
            ConfigError: there is no such node.
        """
        thread, server = self._of(node)
        thread.call(server.kill(node))

    def isolate(self, node: int, *, fenced: bool = True) -> None:
        """Let connections to a node hang, new ones too: nothing is read, no response sent, until `heal`.

        Args:
            fenced: whether the others have noticed: they lead and coordinate what it did, and do not tell of it any
                more. False leaves all that with it; isolating it again can be how they notice later.

        Raises:
            ConfigError: there is no such node.
        """
        thread, server = self._of(node)
        thread.call(server.isolate(node, fenced=fenced))

    def heal(self, node: int) -> None:
        """Let an isolated node go on: it reads what was sent to it meanwhile, and sends the responses that are due.

        Raises:
            ConfigError: there is no such node.
        """
        thread, server = self._of(node)
        thread.call(server.heal(node))

    def set_rack(self, node: int, rack: str | None) -> None:
        """Say in which rack a node is, as Kafka's broker.rack; None for nowhere.

        Raises:
            ConfigError: there is no such node.
        """
        thread, server = self._of(node)
        self._racks[node - NODE_ID] = rack

        async def change() -> None:
            server.image.racks[node] = rack

        thread.call(change())

    def _of(self, node: int) -> tuple[LoopThread, ClusterServer]:
        if node not in self.nodes:
            raise ConfigError(f"node={node!r} is none of {', '.join(map(str, self.nodes))}")
        return self._alive()

    # Leaders and coordinators ----------------------------------------------------------------------------------------

    def leader(self, topic: str, partition: int) -> int | None:
        """The node that leads a partition; None while none does.

        Raises:
            ConfigError: there is no such partition.
        """
        leader = self._partition(topic, partition).leadership.leader
        return leader if leader >= 0 else None

    def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Let a node lead a partition, in a new leader epoch. One that does not hold it takes the place of the leader
        among the replicas. It leads it, to all clients, when this returns.

        Raises:
            ConfigError: there is no such partition or node.
            KafkaError: BROKER_NOT_AVAILABLE: the node does not run.
            StorageError: the disk refused, and nothing has changed.
        """
        thread, server = self._of(node)
        moved = self._partition(topic, partition)
        thread.call(server.store.controller.move_leader(moved, node))

    def truncate(self, topic: str, partition: int, offset: int) -> None:
        """Lose the records of a partition from an offset on, as an unclean election of a replica that lagged behind
        does, and begin a leader epoch (KIP-320). Of a batch that holds the offset nothing is left.

        Raises:
            ConfigError: there is no such partition, or it does not hold the offset.
            StorageError: the disk refused, and the partition is offline, or it was.
        """
        thread, server = self._alive()
        cut = self._partition(topic, partition)
        if not cut.log.start_offset <= offset <= cut.log.end_offset:
            held = f"{cut.log.start_offset} to {cut.log.end_offset}"
            raise ConfigError(f"offset={offset!r} is not in {topic}-{partition}, which holds {held}")
        thread.call(server.store.controller.truncate(cut, offset))

    def coordinator(self, group: str | None = None, *, transactional_id: str | None = None) -> int:
        """The node that coordinates a group, or a transactional id.

        Raises:
            ConfigError: not one of the two is named.
        """
        return self._server().image.coordinator_of(*_key(group, transactional_id))

    def move_coordinator(self, node: int, group: str | None = None, *, transactional_id: str | None = None) -> None:
        """Let a node coordinate a group, or a transactional id, and with it all others whose ids are of the same one of
        Kafka's 50 partitions. Whoever waits for a response of the coordinator is told at once.

        Raises:
            ConfigError: not one of the two is named, or there is no such node.
            KafkaError: BROKER_NOT_AVAILABLE: the node does not run.
        """
        thread, server = self._of(node)
        kind, key = _key(group, transactional_id)
        thread.call(server.store.controller.move_coordinator(kind, key, node))

    def _partition(self, topic: str, partition: int) -> Partition:
        found = self._server().store.topics.partition(topic, partition)
        if found is None:
            raise ConfigError(f"there is no partition {partition} of topic {topic!r}")
        return found

    # What goes wrong, and what is new --------------------------------------------------------------------------------

    def intercept(self, api: str | int, act: Act, *, times: int | None = None) -> Interception:
        """As `Broker.intercept`, of the requests to any node; those to one: `nodes[1].intercept`."""
        return self._interceptions.add(api, act, times)

    def register(self, spec: Api | tuple[MessageSpec, MessageSpec], handler: AddedHandler) -> None:
        """As `Broker.register`: every node serves it."""
        self._apis.add(spec if isinstance(spec, Api) else api_of(*spec), handler)

    @quiet_at_exit
    def __del__(self) -> None:
        running = getattr(self, "_running", None)  # there is none where an option was wrong
        if running is not None:
            warnings.warn("a cluster was never stopped", ResourceWarning, stacklevel=2, source=self)
            running[0].let_go()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def _of_node(listener: Listener, place: int) -> Listener:
    """A listener of the first node, as the node at a place has it."""
    advertise = listener.advertise
    if advertise is not None and advertise[1]:
        advertise = advertise[0], advertise[1] + place
    return replace(listener, port=listener.port + place if listener.port else 0, advertise=advertise)


def _key(group: str | None, transactional_id: str | None) -> tuple[int, str]:
    if group is not None and transactional_id is None:
        return GROUP, group
    if transactional_id is not None and group is None:
        return TRANSACTION, transactional_id
    raise ConfigError("either a group or a transactional_id is to be named")
