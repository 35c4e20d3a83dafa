"""Groups of a `FakeCluster` over the network in memory, by the made-up clock: the embedded broker's own group, and
members whose users poll when a test says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

from tagwire import messages
from tagwire.broker.groups.group import Group
from tagwire.broker.groups.membership import Joining, JoinResult, SyncResult
from tagwire.client.connection_settings import ConnectionSettings
from tagwire.client.consuming.assignors.range_assignor import RangeAssignor
from tagwire.client.consuming.classic_membership import ClassicMembership
from tagwire.client.consuming.group_settings import GroupSettings
from tagwire.client.consuming.membership import Membership, RebalanceHandler
from tagwire.client.network_client import NetworkClient
from tagwire.client.scheduling import NEVER, Tasks, Wait, Work
from tagwire.partitions import TopicPartition
from tagwire.spec.api_keys import ApiKey

from .fake_broker import FakeCluster
from .memory_network import MemoryDriver, Pending

SERVED = {
    ApiKey.FIND_COORDINATOR: (0, 4),
    ApiKey.JOIN_GROUP: (0, 9),
    ApiKey.HEARTBEAT: (0, 4),
    ApiKey.LEAVE_GROUP: (0, 5),
    ApiKey.SYNC_GROUP: (0, 5),
}


def partitions(topic: str, *indexes: int) -> set[TopicPartition]:
    return {TopicPartition(topic, index) for index in indexes}


class FakeGroups:
    """Serves the groups of a cluster, from the broker `coordinator`."""

    def __init__(self, cluster: FakeCluster, driver: MemoryDriver, coordinator: int = 0) -> None:
        self.coordinator = coordinator
        self.groups: dict[str, Group] = {}
        self._cluster = cluster
        self._driver = driver
        self._ids = count(1)
        cluster.serve(
            dict(SERVED),
            {
                "FindCoordinator": self.find_coordinator,
                "JoinGroup": self.join_group,
                "SyncGroup": self.sync_group,
                "Heartbeat": self.heartbeat,
                "LeaveGroup": self.leave_group,
            },
        )

    @property
    def now_ms(self) -> int:
        return int(self._driver.now() * 1000)

    def group(self, name: str) -> Group:
        if name not in self.groups:
            self.groups[name] = Group(name, lambda name: f"member-{next(self._ids)}")
        return self.groups[name]

    def find_coordinator(self, message: Any) -> Any:
        kind = messages.FindCoordinatorResponse
        if not message.coordinator_keys:
            return kind(node_id=self.coordinator, host="127.0.0.1", port=9092 + self.coordinator)
        found = [
            kind.Coordinator(key=key, node_id=self.coordinator, host="127.0.0.1", port=9092 + self.coordinator)
            for key in message.coordinator_keys
        ]
        return kind(coordinators=found)

    def join_group(self, message: Any) -> Any:
        version = self._cluster.seen[-1][2]
        joining = Joining(
            message.member_id,
            message.group_instance_id,
            "client",
            "/127.0.0.1",
            message.session_timeout_ms,
            message.rebalance_timeout_ms,
            message.protocol_type,
            tuple((protocol.name, bytes(protocol.metadata)) for protocol in message.protocols),
            takes_id=version >= 4,
            takes_skip=version >= 9,
        )
        pending, group = Pending(), self.group(message.group_id)

        def reply(result: JoinResult) -> None:
            kind = messages.JoinGroupResponse
            pending.settle(
                kind(
                    error_code=result.error,
                    generation_id=result.generation,
                    protocol_type=result.protocol_type,
                    protocol_name=result.protocol if version >= 7 else result.protocol or "",
                    leader=result.leader,
                    skip_assignment=result.skip_assignment,
                    member_id=result.member_id,
                    members=[
                        kind.JoinGroupResponseMember(member_id=member, group_instance_id=instance, metadata=data)
                        for member, instance, data in result.members
                    ],
                )
            )

        group.join(joining, self.now_ms, reply)
        self._settle(group)
        return pending

    def sync_group(self, message: Any) -> Any:
        pending, group = Pending(), self.group(message.group_id)

        def reply(result: SyncResult) -> None:
            pending.settle(
                messages.SyncGroupResponse(
                    error_code=result.error,
                    protocol_type=result.protocol_type,
                    protocol_name=result.protocol,
                    assignment=result.assignment,
                )
            )

        group.sync(
            message.member_id,
            message.group_instance_id,
            message.generation_id,
            message.protocol_type,
            message.protocol_name,
            {each.member_id: bytes(each.assignment) for each in message.assignments},
            self.now_ms,
            reply,
        )
        self._settle(group)
        return pending

    def heartbeat(self, message: Any) -> Any:
        group = self.group(message.group_id)
        error = group.heartbeat(message.member_id, message.group_instance_id, message.generation_id, self.now_ms)
        return messages.HeartbeatResponse(error_code=error)

    def leave_group(self, message: Any) -> Any:
        group, kind = self.group(message.group_id), messages.LeaveGroupResponse
        left = message.members or [messages.LeaveGroupRequest.MemberIdentity(member_id=message.member_id)]
        found = [
            kind.MemberResponse(
                member_id=member.member_id,
                error_code=group.leave(member.member_id, member.group_instance_id, self.now_ms),
            )
            for member in left
        ]
        self._settle(group)
        return kind(members=found if message.members else [], error_code=0 if message.members else found[0].error_code)

    def _settle(self, group: Group) -> None:
        while group.proposal is not None:
            group.adopt(self.now_ms)
        deadline = group.next_deadline_ms
        if deadline is not None:
            self._driver.after(max(deadline - self.now_ms, 1) / 1000, partial(self._tick, group, deadline))

    def _tick(self, group: Group, deadline: int) -> None:
        if group.next_deadline_ms == deadline:
            group.tick(self.now_ms)
            self._settle(group)


class Handler:
    """A `RebalanceHandler` that writes down what becomes of partitions; with `is_polling` off nothing goes on."""

    def __init__(self) -> None:
        self.owned: set[TopicPartition] = set()
        self.events: list[tuple[str, set[TopicPartition]]] = []
        self.is_polling = True

    async def revoke(self, partitions: Any) -> None:
        await self._tell("revoked", set(partitions))
        self.owned = self.owned - partitions

    async def lose(self, partitions: Any) -> None:
        await self._tell("lost", set(partitions))
        self.owned = self.owned - partitions

    async def assign(self, partitions: Any) -> None:
        self.owned = self.owned | partitions
        await self._tell("assigned", set(partitions))

    async def _tell(self, what: str, partitions: set[TopicPartition]) -> None:
        await Wait(lambda: self.is_polling, NEVER)
        self.events.append((what, partitions))


class Members:
    """Members that run beside each other in one driver, each with connections of its own."""

    def __init__(self, cluster: FakeCluster, driver: MemoryDriver) -> None:
        self.driver = driver
        self.errors: dict[Any, Exception | None] = {}
        self._cluster = cluster
        self._tasks = Tasks()

    def network(self, timeout: float = 30.0) -> NetworkClient:
        addresses = [("kafka-0", broker.port) for broker in self._cluster.brokers]
        return NetworkClient(addresses, ConnectionSettings("core"), timeout, self.driver)

    def start(
        self,
        make: Callable[[NetworkClient, RebalanceHandler], Membership],
        topics: Sequence[str],
        pattern: str | None = None,
    ) -> tuple[Any, Handler]:
        """A member that runs, and what it has."""
        handler = Handler()
        membership = make(self.network(), handler)
        membership.subscribe(frozenset(topics), pattern)
        membership.polled(self.driver.now())
        self.run(membership)
        return membership, handler

    def run(self, membership: Any) -> None:
        self.begin(membership, membership.run())

    def begin(self, key: Any, work: Work[Any]) -> None:
        self.errors.pop(key, None)
        self._tasks.start(key, work, lambda result, error: self.errors.__setitem__(key, error))

    def end(self, membership: Any) -> None:
        """Kills a member: it says nothing, and is not there any more."""
        self._tasks._tasks.pop(membership).work.close()
        membership.coordinator.close()

    def until(self, is_true: Callable[[], bool], seconds: float = 60.0) -> None:
        """Lets time pass until something holds, which has to happen within some seconds of the made-up clock."""
        deadline = self.driver.now() + seconds
        self.driver.run(self._until(is_true, deadline))
        assert is_true(), f"not within {seconds} s; ended: {self.errors}"

    def pass_time(self, seconds: float) -> None:
        self.driver.run(self._until(lambda: False, self.driver.now() + seconds))

    async def _until(self, is_true: Callable[[], bool], deadline: float) -> None:
        while not is_true() and self.driver.now() < deadline:
            await Wait(
                lambda: is_true() or self._tasks.is_any_over(self.driver.now()), min(self._tasks.until, deadline)
            )
            self._tasks.step(self.driver.now())


ALL = partitions("t", 0, 1, 2, 3)


class ClassicScene:
    """A cluster with topic "t" of four partitions, group "g", and members that are made as they are wanted."""

    def __init__(self, nodes: int = 1) -> None:
        self.cluster = FakeCluster(nodes)
        self.driver = MemoryDriver(self.cluster)
        self.cluster.topic("t", 4)
        self.groups = FakeGroups(self.cluster, self.driver)
        self.members = Members(self.cluster, self.driver)

    def member(
        self, assignors: tuple[Any, ...] = (RangeAssignor,), topics: tuple[str, ...] = ("t",), **settings: Any
    ) -> tuple[ClassicMembership, Handler]:
        pattern = settings.pop("pattern", None)

        def make(network: NetworkClient, handler: RebalanceHandler) -> Membership:
            made = [each() for each in assignors]
            return ClassicMembership(network, GroupSettings("g", **settings), made, handler)

        return self.members.start(make, topics, pattern)

    def until(self, is_true: Callable[[], bool], seconds: float = 60.0) -> None:
        self.members.until(is_true, seconds)

    def settled(self, *handlers: Handler) -> bool:
        """Whether these have all partitions among them, each one once."""
        owned = [partition for handler in handlers for partition in handler.owned]
        return len(owned) == 4 and set(owned) == ALL

    def leave(self, membership: ClassicMembership, reason: str = "the consumer is being closed") -> None:
        self.members.begin(("leave", membership), membership.leave(self.driver.now() + 10, reason))
        self.until(lambda: ("leave", membership) in self.members.errors)
        self.until(lambda: membership in self.members.errors)
        assert self.members.errors[membership] is None
