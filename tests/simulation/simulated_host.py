"""Where the workload runs in a simulated world: brokers, each actor a process, and what can befall them all."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any, Final, cast

from tagwire.broker import scheduler
from tagwire.broker.registry import load_handlers
from tagwire.broker.topic import INTERNAL
from tagwire.rpc import scram
from tagwire.spark.sink import driver

from .history import History
from .lagging import older
from .outcome import Plan
from .workload import Running
from .workload.guards import settings
from .workload.nemesis import End
from .world.brokers import BrokerProcess
from .world.disk import DiskFault
from .world.network import Connection, Host, Network, Place
from .world.network_faults import HalfOpen, Loss, Partition, Refusal, Slowness, cut
from .world.processes import Process
from .world.world import World

BROKER: Final = "broker"
DEED_S: Final = 60.0
"""How long a deed of a running cluster may take."""
UPON_S: Final = 3.0
"""For so long an operation of the disk is waited for, at which a broker is to end."""
START_S: Final = 5.0
"""How long nothing else is done while a broker starts: on a slow disk it takes long, until the disk is well again."""
DEED_LOOK_S: Final = 1.0
"""How soon it is seen that the end of a cluster has cut a deed short, which then never ends."""

UNTOLD: Final = ("port", "data_dir", "fsync", "users")
"""Of a broker's options, which no history has."""

for _ in load_handlers():  # before any world: a seed is told the same as the first of its process and as the fiftieth
    pass


_USUAL_PATIENCE: Final = driver.PATIENCE
"""What is short for a while may be made so again meanwhile."""


class SimulatedHost:
    """A broker that listens, on the disk of a machine of its own.

    Attributes:
        bootstrap: where it is. round_trip_s: how long an answer is under way, unless something is wrong.
        spikes_s: what those few that take much longer add to each, on average and twice over.
        moves: whether it is a cluster. has_upkeep: it does by the clock what brokers do.
        faults: what can be done to it, to actors and to what is between them.
    """

    def __init__(self, world: World, plan: Plan, history: History) -> None:
        self.world = world
        self.history = history
        cluster = plan["cluster"]
        nodes = cluster["nodes"] if cluster["nodes"] > 1 else None
        self.fsync: str = cluster["fsync"]
        self.brokers = BrokerProcess(
            world,
            BROKER,
            nodes=nodes,
            fsync=self.fsync,
            as_release=cluster["as_release"],
            requests_kept=100,
            **cluster["settings"],
            **(settings(cluster["guards"]["mechanism"]) if "guards" in cluster else {}),
        )
        for name, seconds in cluster.get("upkeep", {}).items():  # a broker that starts reads them
            setattr(scheduler, name, seconds)
        for configs in INTERNAL.values():  # of this process alone, which is a world's
            cast("dict[str, str | None]", configs).update(cluster.get("coordinators", {}))
        # Of whom nobody knows something is drawn when the module is imported, outside of any world.
        scram._UNKNOWN_USERS = bytes(32)  # type: ignore[misc]
        self._starting: int | None = None
        self._start_began = 0.0
        self.bootstrap = self.brokers.bootstrap
        self.moves = nodes is not None
        world.disk(BROKER).on_refused_sync = self._tell_of_refused_sync
        self.has_upkeep = True
        conditions = world.network.conditions
        self.round_trip_s = 2 * (conditions.latency_s + conditions.jitter_s)
        self.spikes_s = 2 * conditions.spikes * conditions.spike_s
        self.faults = SimulatedFaults(self)

    def _tell_of_refused_sync(self, path: str) -> None:
        """A log's newest segment is what may lose something: what is rewritten or copied is there elsewhere."""
        *_, directory, name = path.split("/")
        if name.endswith(".log"):
            topic, _, partition = directory.rpartition("-")
            told = {"node": BROKER, "fsync": self.fsync, "topic": topic, "partition": int(partition)}
            self.history.note(BROKER, "sync_refused", **told)

    def start(self, name: str, main: Callable[[], None]) -> Running:
        if name in self.world.processes:  # it was started again by whoever killed it
            self.world.processes[name].kill()
        return self.world.spawn(name, main)

    def start_broker(self, patience: float = 600.0) -> bool:
        """Whether it listens, or was killed meanwhile, within so many seconds; False where it is still at it, and then
        this is to be called again. Raises what its start raised, as on a disk that refuses."""
        if not self.brokers.is_running:
            self._begin_start()
        try:
            is_ready = self.brokers.wait_until_ready(patience)
        except Exception as error:
            if self._starting is not None:
                self.history.fail(self._starting, error)
            self._starting = None
            raise
        if is_ready and self._starting is not None:
            self.history.ok(self._starting, took=round(self.world.now - self._start_began, 6))
            self._starting = None
        return is_ready or not self.brokers.is_running

    def _begin_start(self) -> None:
        release, options = self.brokers.options["as_release"], self.brokers.options
        told = {name: options[name] for name in sorted(options) if name not in UNTOLD}
        if self._starting is not None:  # it was killed before it listened
            self.history.info(self._starting)
        self._starting = self.history.invoke(
            BROKER, "broker_started", node=BROKER, fsync=self.fsync, release=release, settings=told
        )
        self._start_began = self.world.now
        self.brokers.start()


class SimulatedFaults:
    """What the nemesis can do; see `workload.nemesis.Faults`."""

    def __init__(self, host: SimulatedHost) -> None:
        self._host = host
        self._world = host.world
        self._history = host.history
        self._deeds = 0

    def begin(self, kind: str, **detail: Any) -> End | None:
        deed = getattr(self, f"_{kind}")
        return deed(**detail)

    # Brokers and clients -------------------------------------------------------------------------------------------

    def _restart(self, release: str | None = None) -> None:
        brokers = self._host.brokers
        if release is not None:
            brokers.options["as_release"] = release
        if not self._host.start_broker(START_S):
            raise TimeoutError("the broker is still starting")

    def _broker_kill(self, steps: int = 0, upon: str | None = None, part: str = "", **_: Any) -> End | None:
        process = self._host.brokers.process
        if process is None or process.is_dead:
            return None
        self._wait_for(process, steps, (upon, part), process.kill_after)
        process.kill()
        self._history.note(BROKER, "broker_killed", node=BROKER)
        return self._restart

    def _broker_power(
        self, steps: int = 0, upon: str | None = None, part: str = "", spares: str | None = None, **_: Any
    ) -> End | None:
        process = self._host.brokers.process
        if not self._host.brokers.is_running or process is None or process.is_dead:
            return None
        self._disk.spares = spares
        self._wait_for(process, steps, (upon, part), process.lose_power_after)
        process.lose_power()
        self._disk.spares = None
        self._history.note(BROKER, "power_lost", node=BROKER, fsync=self._host.fsync)
        return self._restart

    def _wait_for(
        self, process: Process, steps: int, upon: tuple[str | None, str], dies_after: Callable[[int], None]
    ) -> None:
        """Lets a process run up to the moment at which it is to end, if that comes."""
        operation, part = upon
        if process.is_paused:  # it takes no step
            return
        if operation is not None:
            take_back = self._disk.upon(operation, lambda: dies_after(steps), part)
            process.join(UPON_S)
            take_back()
        elif steps:
            dies_after(steps)
            process.join(DEED_S)

    def _broker_stop(self, release: str | None = None, **_: Any) -> End | None:
        process = self._host.brokers.process
        if process is None or not process.is_alive:
            return None
        process.resume()  # one that is paused could not stop, and who stops it is who would have it go on
        call = self._history.invoke(BROKER, "broker_stopped", node=BROKER)
        if self._host.brokers.stop():
            self._history.ok(call)
        else:
            self._host.brokers.kill()
            self._history.info(call)
        return lambda: self._restart(release)

    def _lag(self, topic: str, partitions: int, **_: Any) -> End | None:
        broker = self._host.brokers.broker
        if broker is None or not self._host.brokers.is_running:
            return None
        stop: End = broker.intercept("Metadata", older(topic, partitions)).stop
        return stop

    def _broker_pause(self, **_: Any) -> End | None:
        process = self._host.brokers.process
        return None if process is None or process.is_dead else self._paused(process)

    def _client_kill(self, target: str, **_: Any) -> End | None:
        process = self._world.processes.get(target)
        if process is None:
            return None
        process.kill()
        return lambda: None  # the nemesis begins its next life

    def _client_pause(self, target: str, **_: Any) -> End | None:
        process = self._world.processes.get(target)
        return None if process is None else self._paused(process)

    @staticmethod
    def _paused(process: Process) -> End:
        process.pause()
        return process.resume

    def _clock(self, target: str, offset: float, stays: bool = False, **_: Any) -> End | None:
        process = self._world.processes.get(target)
        if process is None:
            return None
        process.jump_wall_clock(offset)
        return None if stays else lambda: process.jump_wall_clock(-offset)

    def _hurry(self, patience: float, **_: Any) -> End:
        driver.PATIENCE = patience  # type: ignore[misc]

        def back() -> None:
            driver.PATIENCE = _USUAL_PATIENCE  # type: ignore[misc]

        return back

    # Network -------------------------------------------------------------------------------------------------------

    @property
    def _network(self) -> Network:
        return self._world.network

    def _place(self, name: str) -> Place:
        """A process, or one node of a cluster: `broker/2`."""
        process, _, node = name.partition("/")
        if not node:
            return self._network.host(process)
        place, port = self._host.bootstrap.split(",")[int(node) - 1].split(":")
        return place, int(port)

    def _partition(self, a: str, b: str, one_way: bool = False, **_: Any) -> End:
        return Partition(self._network, self._place(a), self._place(b), one_way=one_way).heal

    def _slow(self, a: str, latency: float, bandwidth: float | None = None, one_way: bool = False, **_: Any) -> End:
        place = self._place(a)
        return Slowness(self._network, place, latency_s=latency, bandwidth=bandwidth, one_way=one_way).heal

    def _lossy(self, a: str, chance: float, **_: Any) -> End:
        return Loss(self._network, self._place(a), None, chance).heal

    def _refuse(self, **_: Any) -> End:
        return Refusal(self._network, self._place(BROKER)).heal

    def _cut(self, a: str, told: Any = "both", **_: Any) -> None:
        for connection in self._connections_of(a):
            cut(self._network, connection, told)

    def _half_open(self, a: str, to: Any = "client", **_: Any) -> End:
        faults = [HalfOpen(self._network, connection, to) for connection in self._connections_of(a)]

        def heal() -> None:
            for fault in faults:
                fault.heal()

        return heal

    def _connections_of(self, name: str) -> list[Connection]:
        place = self._place(name)
        return [
            connection
            for connection in self._network.connections()
            if place
            in ((connection.client.host, connection.server.host) if isinstance(place, Host) else (connection.listener,))
        ]

    # Disk ----------------------------------------------------------------------------------------------------------

    def _disk_error(
        self, operation: str, count: int | None = 1, after: int = 0, part: str = "", errno: int = errno.EIO, **_: Any
    ) -> End:
        return self._disk.inject(DiskFault({operation}, errno, count, after, part))

    def _disk_full(self, capacity: int | None = None, **_: Any) -> End:
        disk = self._disk
        disk.capacity = disk.used if capacity is None else disk.used + capacity

        def room() -> None:
            disk.capacity = None

        return room

    def _disk_slow(self, latency: float, chance: float, part: str = "", **_: Any) -> End:
        return self._disk.slow(latency, chance, part)

    @property
    def _disk(self) -> Any:
        return self._world.disk(BROKER)

    # Nodes of a cluster --------------------------------------------------------------------------------------------

    def _node_stop(self, node: int, **_: Any) -> End | None:
        return self._of_node("stop", node, "start")

    def _node_kill(self, node: int, **_: Any) -> End | None:
        return self._of_node("kill", node, "start")

    def _node_isolate(self, node: int, fenced: bool = True, **_: Any) -> End | None:
        return self._of_node("isolate", node, "heal", fenced=fenced)

    def _of_node(self, deed: str, node: int, back: str, **named: Any) -> End | None:
        cluster = self._cluster
        if cluster is None or not self._done(lambda: getattr(cluster, deed)(node, **named)):
            return None

        def undo() -> None:
            if self._cluster is cluster:
                self._done(lambda: getattr(cluster, back)(node))

        return undo

    def _move_leader(self, topic: str, partition: int, node: int, **_: Any) -> None:
        self._of_cluster(lambda cluster: cluster.move_leader(topic, partition, node))

    def _move_coordinator(
        self, node: int, group: str | None = None, transactional_id: str | None = None, **_: Any
    ) -> None:
        self._of_cluster(lambda cluster: cluster.move_coordinator(node, group, transactional_id=transactional_id))

    def _of_cluster(self, deed: Callable[[Any], object]) -> None:
        cluster = self._cluster
        if cluster is not None:
            self._done(lambda: deed(cluster))

    @property
    def _cluster(self) -> Any:
        """The one that runs, if one does."""
        return self._host.brokers.broker if self._host.brokers.is_running else None

    def _done(self, deed: Callable[[], object]) -> bool:
        """Does it in a process of its own, since the broker's may end meanwhile and leave it waiting for ever."""
        broker = self._host.brokers.process
        if broker is not None:
            broker.resume()  # nothing can be done to one that is paused, and no other fault is to last for that
        self._deeds += 1
        process = self._world.spawn(f"deed-{self._deeds}", deed)
        began = self._world.now
        while not process.join(DEED_LOOK_S):
            if not self._host.brokers.is_running or self._world.now - began > DEED_S:
                process.kill()
                return False
        try:
            process.result()
        except Exception:  # refused: a node that does not run, a topic that is not there
            return False
        return True
