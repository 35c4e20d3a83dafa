"""What each principal may do by each API: our broker's answers beside those of Kafka's own with StandardAuthorizer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final
from uuid import UUID

import pytest

from tagwire import messages as m
from tagwire.broker import Broker
from tagwire.broker.authorization.rules import RULES
from tagwire.spec.api_keys import ApiKey

from .authorization_peer import HUNG_UP, Told, Wire
from .authorization_people import GRANTS, PASSWORDS, SUPER, creations
from .authorization_requests import ASKED, GROUPS, IDS, NAMES
from .conftest import Count, Programs
from .real_broker import RELEASE
from .real_node import PLAIN, RealNode, free_ports

SECONDS: Final = 30
EVERYBODYS: Final = "p-t"

_SETTINGS: Final = """
sasl.enabled.mechanisms=PLAIN
listener.name.login.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required {users};
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:{admin};User:ANONYMOUS
"""

REFUSALS: Final = (29, 30, 31, 53)
NAMING: Final = ("name", "topic", "groupId", "key", "transactionalId", "resourceName", "resourceType", "partitionIndex")

Matrix = dict[tuple[str, str], Told]
"""What was told, by request and principal."""


@pytest.fixture(scope="module")
def kafkas(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    """What Kafka tells."""
    jars = programs(RELEASE).jars
    controller, plain, login = free_ports(3)
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    node = RealNode(
        tmp_path_factory.mktemp("kafka-acls"),
        {1: controller},
        1,
        {PLAIN: plain, "LOGIN": login},
        settings=_SETTINGS.format(users=users, admin=SUPER),
    )
    node.format(jars)
    with node.running(jars):
        yield matrix(node.address("LOGIN"))


@pytest.fixture(scope="module")
def ours() -> Iterator[Matrix]:
    """What our broker tells."""
    options: dict[str, Any] = {"authorizer": "StandardAuthorizer", "super_users": f"User:{SUPER}"}
    with Broker(sasl="PLAIN", users=PASSWORDS, **options) as broker:
        yield matrix(broker.bootstrap)


def matrix(bootstrap: str) -> Matrix:
    """Every request of every principal."""
    with ExitStack() as stack:
        wires = {name: Wire(bootstrap, name) for name in GRANTS}
        for wire in wires.values():
            stack.callback(wire.close)
        ids = prepare(wires[SUPER])
        return {
            (asked.name, name): wire.told(asked.make(name, ids), asked.version)
            for asked in ASKED
            for name, wire in wires.items()
            if name in asked.by
        }


def prepare(admin: Wire) -> dict[str, UUID]:
    """Make what is asked about, and the ACLs; the topics' ids."""
    kind = m.CreateTopicsRequest
    topics = [kind.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in (*NAMES, EVERYBODYS)]
    until(lambda: {one.error_code for one in admin.ask(kind(topics=topics, timeout_ms=5000), 7).topics} <= {0, 36})
    described = m.MetadataRequest(
        topics=[m.MetadataRequest.MetadataRequestTopic(name=name) for name in (*NAMES, EVERYBODYS)]
    )
    until(lambda: {one.error_code for one in admin.ask(described, 12).topics} == {0})
    ids = {one.name: one.topic_id for one in admin.ask(described, 12).topics}
    for key_type, keys in ((0, (*GROUPS, "m-cg", "o-cg")), (1, IDS)):
        request = m.FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))
        until(lambda request=request: {one.error_code for one in admin.ask(request, 4).coordinators} == {0})
    rows = {asked.name: asked for asked in ASKED}
    for group in GROUPS:
        commit = rows[f"OffsetCommit {group}"].make(SUPER, ids)
        until(lambda commit=commit: is_committed(admin.ask(commit, 8)))
    for name in IDS:
        init = rows[f"InitProducerId {name}"].make(SUPER, ids)
        until(lambda init=init: admin.ask(init, 4).error_code == 0)
    for group, names in (("m-cg", NAMES), ("o-cg", NAMES[:1])):
        until(lambda group=group, names=names: joined(admin, group, names))
    acls = list(creations())
    assert {one.error_code for one in admin.ask(m.CreateAclsRequest(creations=acls), 3).results} == {0}
    whole = m.DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    until(lambda: sum(len(one.acls) for one in admin.ask(whole, 3).resources) == len(acls))
    return ids


def is_committed(answer: Any) -> bool:
    """Whether offsets of the topics that exist were taken."""
    return all(topic.partitions[0].error_code == 0 for topic in answer.topics if topic.name in NAMES)


def joined(admin: Wire, group: str, names: tuple[str, ...]) -> bool:
    """Whether a member of the group has partitions of all its topics, after one more heartbeat."""
    kind = m.ConsumerGroupHeartbeatRequest
    for epoch in (0, 1):
        admin.ask(
            kind(
                group_id=group,
                member_id=f"member-of-{group}",
                member_epoch=epoch,
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=list(names),
                topic_partitions=[],
            ),
            1,
        )
    (described,) = admin.ask(m.ConsumerGroupDescribeRequest(group_ids=[group]), 1).groups
    return any(len(member.target_assignment.topic_partitions) == len(names) for member in described.members)


def until(holds: Callable[[], bool]) -> None:
    """Waits for what a broker does in its own time."""
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.1)


def test_every_api_with_a_rule_is_asked() -> None:
    asked = {type(row.make(SUPER, dict.fromkeys(NAMES, UUID(int=1)))).api_key for row in ASKED}
    asked_to_come_in = {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
    assert set(RULES) - asked == asked_to_come_in


DIFFERENCES: Final = {
    "Metadata that creates": (
        "Kafka creates a topic in its own time and says UNKNOWN_TOPIC_OR_PARTITION at first; ours is there at once"
    ),
    "Fetch of a replica": (
        "Kafka knows which replicas there are (NOT_LEADER_OR_FOLLOWER); ours has none, and whoever may be one may read"
    ),
    "IncrementalAlterConfigs of all else": (
        "ours keeps no configurations of loggers, client metrics and groups, and says so (INVALID_REQUEST)"
    ),
}
"""Where our answer is another one, and why. What is refused for want of authorization must be the same all the same."""


def refusals(told: Told, about: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], int]]:
    """What of an answer is refused for want of authorization: names, from the outermost, and the error code."""
    if isinstance(told, list):
        for one in told:
            yield from refusals(one, about)
    elif isinstance(told, dict):
        named = (*about, *(str(value) for name, value in told.items() if name in NAMING))
        for name, value in told.items():
            if name.endswith("rrorCode") and value in REFUSALS:
                yield named, value
            yield from refusals(value, named)


def test_every_answer_is_kafkas(kafkas: Matrix, ours: Matrix, count: Count) -> None:
    otherwise = {cell for cell, told in kafkas.items() if told != ours[cell]}
    differing = [
        f"{cell}\n  Kafka {json.dumps(told)}\n  ours  {json.dumps(ours[cell])}"
        for cell, told in kafkas.items()
        if cell in otherwise and (cell[0] not in DIFFERENCES or sorted(refusals(told)) != sorted(refusals(ours[cell])))
    ]
    refusing = sum(any(True for _ in refusals(told)) for told in kafkas.values())
    count(
        f"authorization: {len(kafkas)} cells, {len(ASKED)} requests by {len(GRANTS)} principals; {refusing} refuse"
        f" something; {len(otherwise)}, of {len(DIFFERENCES)} requests, are answered otherwise, for known reasons"
    )
    assert HUNG_UP not in kafkas.values()
    assert not differing, f"{len(differing)} of {len(kafkas)}:\n" + "\n".join(differing[:20])
    assert {request for request, _ in otherwise} == set(DIFFERENCES), "a known difference is none"
