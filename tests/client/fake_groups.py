"""Groups of a `FakeCluster` over the network in memory, by the made-up clock: the embedded broker's own group."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from tagwire import messages
from tagwire.broker.groups.classic_group import ClassicGroup
from tagwire.broker.groups.membership import Joining, JoinResult, SyncResult
from tagwire.client.consuming.assignors.range_assignor import RangeAssignor
from tagwire.client.consuming.classic_membership import ClassicMembership
from tagwire.client.consuming.group_settings import GroupSettings
from tagwire.client.consuming.membership import Membership, RebalanceHandler
from tagwire.client.network_client import NetworkClient
from tagwire.spec.api_keys import ApiKey

from .fake_broker import FakeCluster
from .group_members import Handler, Members, partitions
from .memory_network import MemoryDriver, Pending

SERVED = {
    ApiKey.FIND_COORDINATOR: (0, 4),
    ApiKey.JOIN_GROUP: (0, 9),
    ApiKey.HEARTBEAT: (0, 4),
    ApiKey.LEAVE_GROUP: (0, 5),
    ApiKey.SYNC_GROUP: (0, 5),
    ApiKey.DESCRIBE_GROUPS: (0, 6),
}


class FakeGroups:
    """Serves the groups of a cluster, from the broker `coordinator`."""

    def __init__(self, cluster: FakeCluster, driver: MemoryDriver, coordinator: int = 0) -> None:
        self.coordinator = coordinator
        self.groups: dict[str, ClassicGroup] = {}
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
                "DescribeGroups": self.describe_groups,
            },
        )

    @property
    def now_ms(self) -> int:
        return int(self._driver.now() * 1000)

    def group(self, name: str) -> ClassicGroup:
        if name not in self.groups:
            self.groups[name] = ClassicGroup(name, lambda name: f"member-{next(self._ids)}")
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

    def describe_groups(self, message: Any) -> Any:
        kind = messages.DescribeGroupsResponse
        return kind(
            groups=[
                kind.DescribedGroup(
                    group_id=name,
                    group_state=self.group(name).state.value,
                    members=[
                        kind.DescribedGroupMember(member_id=each.member_id, member_assignment=each.assignment)
                        for each in self.group(name).members.values()
                    ],
                )
                for name in message.groups
            ]
        )

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

    def check_commit(self, message: Any) -> None:
        """Raises KafkaError for one who has no right to commit."""
        epoch, instance = message.generation_id_or_member_epoch, message.group_instance_id
        self.group(message.group_id).check_commit(message.member_id, instance, epoch, self.now_ms)

    def _settle(self, group: ClassicGroup) -> None:
        while group.proposal is not None:
            group.adopt(self.now_ms)
        deadline = group.next_deadline_ms
        if deadline is not None:
            self._driver.after(max(deadline - self.now_ms, 1) / 1000, partial(self._tick, group, deadline))

    def _tick(self, group: ClassicGroup, deadline: int) -> None:
        if group.next_deadline_ms == deadline:
            group.tick(self.now_ms)
            self._settle(group)


ALL = partitions("t", 0, 1, 2, 3)


class ClassicScene:
    """A cluster with topic "t" of four partitions, group "g", and members that are made as they are wanted."""

    def __init__(self, nodes: int = 1) -> None:
        self.cluster = FakeCluster(nodes)
        self.driver = MemoryDriver(self.cluster)
        self.cluster.topic("t", 4)
        self.groups = FakeGroups(self.cluster, self.driver)
        self.members = Members(self.driver, [("kafka-0", broker.port) for broker in self.cluster.brokers])

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
        self.members.leave(membership, reason)
