"""Members of KIP-848 and classic ones say the same to Kafka's broker and to ours, request by request, and are told the
same: errors, epochs, how many partitions, states."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tagwire import messages
from tagwire.broker import Broker
from tagwire.errors import Error

from ..broker.conftest import Wire
from ..limits import wait_until
from .conftest import Programs
from .real_node import RealNode

Beat = messages.ConsumerGroupHeartbeatRequest
PARTITIONS = 4
JOINING = {"member_epoch": 0, "rebalance_timeout_ms": 60_000, "topic_partitions": []}
SETTINGS = "group.consumer.migration.policy=bidirectional\n"


class Conversation:
    """What one broker is asked, and what it says to it, as plain values."""

    def __init__(self, bootstrap: str) -> None:
        self.wire = Wire(bootstrap)
        self.told: list[tuple[Any, ...]] = []
        self.wire.create("t", PARTITIONS)
        wait_until(lambda: self.wire.metadata("t").topics[0].error_code == 0)
        self.topic = self.wire.metadata("t").topics[0].topic_id
        for group in "ghi":
            wait_until(lambda group=group: self._is_coordinated(group))
        self.has: dict[str, list[int]] = {}

    def _is_coordinated(self, group: str) -> bool:
        found = self.wire.ask(messages.FindCoordinatorRequest(key_type=0, coordinator_keys=[group]), 4)
        listed = self.wire.ask(messages.DescribeGroupsRequest(groups=[group]), 5).groups[0]
        return found.coordinators[0].error_code == 0 and listed.error_code == 0

    def note(self, what: str, *told: Any) -> None:
        self.told.append((what, *told))

    def beat(self, member: str, epoch: int, *, group: str = "g", owned: list[int] | None = None, **said: Any) -> None:
        if owned is not None:
            said["topic_partitions"] = [Beat.TopicPartitions(topic_id=self.topic, partitions=owned)] if owned else []
        answer = self.wire.ask(Beat(group_id=group, member_id=member, member_epoch=epoch, **said), 1)
        parts = None
        if answer.assignment is not None:
            parts = sorted(index for one in answer.assignment.topic_partitions for index in one.partitions)
            self.has[member] = parts
        error = Error.of(answer.error_code)
        self.note(f"{member} {epoch} {group}", error.name, answer.member_epoch, None if parts is None else len(parts))

    def enter(self, member: str, **said: Any) -> None:
        said = {"subscribed_topic_names": ["t"], **JOINING, **said}
        self.beat(member, said.pop("member_epoch"), **said)

    def describe(self, group: str = "g") -> None:
        found = self.wire.ask(messages.ConsumerGroupDescribeRequest(group_ids=[group]), 1).groups[0]
        members = sorted(
            (one.member_id, one.member_epoch, one.instance_id, one.member_type, one.subscribed_topic_names)
            for one in found.members
            if one.member_type == 1
        )
        error = Error.of(found.error_code).name
        self.note("describe", error, found.group_state, found.group_epoch, found.assignment_epoch, members)
        self.note("how many", len(found.members), found.assignor_name)
        for version in (5, 6):
            classic = self.wire.ask(messages.DescribeGroupsRequest(groups=[group]), version).groups[0]
            self.note(f"classic {version}", Error.of(classic.error_code).name, classic.group_state)
        listed = [one for one in self.wire.ask(messages.ListGroupsRequest(), 5).groups if one.group_id == group]
        self.note("list", [(one.protocol_type, one.group_state, one.group_type) for one in listed])

    def commit(self, member: str, epoch: int, version: int, group: str = "g") -> None:
        request = messages.OffsetCommitRequest
        partition = request.OffsetCommitRequestPartition(partition_index=0, committed_offset=3)
        topic = request.OffsetCommitRequestTopic(name="t", partitions=[partition])
        message = request(group_id=group, generation_id_or_member_epoch=epoch, member_id=member, topics=[topic])
        error = self.wire.ask(message, version).topics[0].partitions[0].error_code
        self.note(f"commit {member[:4]} {epoch} {version}", Error.of(error).name)

    def fetch(self, member: str | None, epoch: int, group: str = "g") -> None:
        request = messages.OffsetFetchRequest
        topic = request.OffsetFetchRequestTopics(name="t", partition_indexes=[0])
        asked = request.OffsetFetchRequestGroup(group_id=group, member_id=member, member_epoch=epoch, topics=[topic])
        found = self.wire.ask(request(groups=[asked]), 9).groups[0]
        offsets = [partition.committed_offset for one in found.topics for partition in one.partitions]
        self.note(f"fetch {member} {epoch}", Error.of(found.error_code).name, offsets)

    def delete(self, group: str = "g") -> None:
        error = self.wire.ask(messages.DeleteGroupsRequest(groups_names=[group]), 2).results[0].error_code
        self.note("delete", Error.of(error).name)

    def join(self, member: str, group: str = "g", owned: list[int] | None = None, **said: Any) -> Any:
        held = messages.ConsumerProtocolSubscription.TopicPartition(topic="t", partitions=owned or [])
        subscription = messages.ConsumerProtocolSubscription(topics=["t"], owned_partitions=[held] if owned else [])
        request = messages.JoinGroupRequest
        protocols = [request.JoinGroupRequestProtocol(name="range", metadata=b"\0\1" + subscription.encode(1))]
        message = request(
            group_id=group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=member,
            protocol_type="consumer",
            protocols=protocols,
            **said,
        )
        answer = self.wire.ask(message, 9)
        error = Error.of(answer.error_code)
        self.note("join", error.name, answer.generation_id, answer.protocol_name, answer.leader == answer.member_id)
        return answer

    def sync(self, member: str, generation: int, group: str = "g", data: bytes = b"") -> list[int]:
        request = messages.SyncGroupRequest
        given = [request.SyncGroupRequestAssignment(member_id=member, assignment=data)] if data else []
        message = request(
            group_id=group,
            generation_id=generation,
            member_id=member,
            protocol_type="consumer",
            protocol_name="range",
            assignments=given,
        )
        answer = self.wire.ask(message, 5)
        body = bytes(answer.assignment)[2:]
        topics = messages.ConsumerProtocolAssignment.decode(body, 0, lenient=True).assigned_partitions if body else []
        parts = sorted(index for topic in topics for index in topic.partitions)
        self.note("sync", Error.of(answer.error_code).name, answer.protocol_name, len(parts))
        return parts

    def heartbeat(self, member: str, generation: int, group: str = "g") -> None:
        message = messages.HeartbeatRequest(group_id=group, generation_id=generation, member_id=member)
        self.note("heartbeat", Error.of(self.wire.ask(message, 4).error_code).name)

    def leave(self, member: str, group: str = "g") -> None:
        leave = messages.LeaveGroupRequest
        answer = self.wire.ask(leave(group_id=group, members=[leave.MemberIdentity(member_id=member)]), 5)
        errors = [Error.of(one.error_code).name for one in answer.members]
        self.note("leave", Error.of(answer.error_code).name, errors)


def members_of_kip_848(say: Conversation) -> None:
    """They join, move, are fenced, are static, commit, leave."""
    for wrong in (
        {"rebalance_timeout_ms": -1},
        {"topic_partitions": None},
        {"subscribed_topic_names": None},
        {"instance_id": ""},
        {"rack_id": ""},
        {"server_assignor": "mine"},
        {"subscribed_topic_regex": "("},
    ):
        answer = say.wire.ask(
            Beat(group_id="g", member_id="a", **{"subscribed_topic_names": ["t"], **JOINING, **wrong}), 1
        )
        say.note(str(wrong), Error.of(answer.error_code).name)
    say.beat("", 0)
    say.beat("a", -3)
    say.beat("a", -2)
    say.beat("a", 1)
    say.beat("a", -1)
    say.describe()
    say.enter("a")
    say.beat("a", 1, owned=say.has["a"])
    say.beat("a", 1)
    say.describe()
    say.enter("b")
    say.beat("b", 2)
    say.beat("a", 1)
    say.describe()
    say.beat("a", 1, owned=list(range(PARTITIONS)))
    say.beat("a", 1, owned=say.has["a"])
    say.beat("b", 2, owned=[])
    say.describe()
    say.beat("a", 1, owned=say.has["a"][:1])
    say.beat("a", 1)
    say.beat("a", 0, owned=[])
    say.beat("a", 3)
    say.beat("nobody", 2)
    say.commit("a", 2, 9)
    say.commit("a", 2, 8)
    say.commit("a", 1, 9)
    say.commit("nobody", 2, 9)
    say.commit("", -1, 9)
    say.commit("a", 2, 9, "other")
    say.commit("a", 2, 8, "other")
    say.fetch("a", 2)
    say.fetch("a", 1)
    say.fetch("nobody", 1)
    say.fetch(None, -1)
    say.fetch("a", 1, "other")
    say.enter("s", instance_id="i")
    say.beat("a", 2, owned=say.has["a"])
    say.beat("b", 2, owned=say.has["b"])
    for _ in range(2):
        for name in ("a", "b"):
            say.beat(name, 3 if len(say.has[name]) < 2 else 2, owned=say.has[name])
    say.enter("s2", instance_id="i")
    say.beat("s", 3, instance_id="other")
    say.beat("s", -2, instance_id="i")
    say.describe()
    say.enter("s3", instance_id="i")
    say.beat("s", 3, instance_id="i")
    say.describe()
    say.delete()
    say.beat("s3", -1, instance_id="i")
    say.beat("b", -1)
    say.beat("b", -1)
    say.beat("a", 3, owned=say.has["a"])
    say.beat("a", 2, owned=say.has["a"])
    say.describe()
    say.beat("a", -1)
    say.describe()
    say.fetch(None, -1)
    say.delete()
    say.describe()


def groups_that_change_their_protocol(say: Conversation) -> None:
    """A classic member, then one of KIP-848, then the classic one alone again."""
    told = say.join("", "h")
    joined = say.join(told.member_id, "h")
    member = joined.member_id
    everything = messages.ConsumerProtocolAssignment.TopicPartition(topic="t", partitions=list(range(PARTITIONS)))
    data = b"\0\0" + messages.ConsumerProtocolAssignment(assigned_partitions=[everything]).encode(0)
    say.sync(member, joined.generation_id, "h", data)
    say.heartbeat(member, joined.generation_id, "h")
    say.describe("h")
    say.enter("a", group="h")
    say.describe("h")
    say.heartbeat(member, joined.generation_id, "h")
    say.sync(member, joined.generation_id, "h")
    again = say.join(member, "h", owned=list(range(PARTITIONS)))
    kept = say.sync(member, again.generation_id, "h")
    say.heartbeat(member, again.generation_id, "h")
    again = say.join(member, "h", owned=kept)
    say.heartbeat(member, 99, "h")
    say.heartbeat("a", again.generation_id, "h")
    say.sync(member, again.generation_id, "h")
    say.heartbeat(member, again.generation_id, "h")
    say.beat("a", again.generation_id, group="h", owned=[])
    say.describe("h")
    say.commit(member, again.generation_id, 9, "h")
    say.commit(member, 1, 9, "h")
    say.leave("nobody", "h")
    say.leave("a", "h")
    say.describe("h")
    last = say.join(member, "h")
    say.sync(member, last.generation_id, "h", data)
    say.leave(member, "h")
    say.enter("b", group="h")
    say.beat("b", -1, group="h")
    told = say.join("", "h")
    joined = say.join(told.member_id, "h")
    say.sync(joined.member_id, joined.generation_id, "h", data)
    say.describe("h")


def static_members_of_both_protocols(say: Conversation) -> None:
    """One that has an instance id goes on by the other protocol; then nobody of KIP-848 is left."""
    say.enter("s", group="i", instance_id="i")
    told = say.join("", "i")
    classic = say.join(told.member_id, "i")
    say.sync(classic.member_id, classic.generation_id, "i")
    say.describe("i")
    say.beat("s", 1, group="i", instance_id="i")
    say.beat("s", 1, group="i", instance_id="i", owned=say.has["s"])
    say.heartbeat(classic.member_id, classic.generation_id, "i")
    classic = say.join(classic.member_id, "i")
    say.sync(classic.member_id, classic.generation_id, "i")
    say.describe("i")
    say.beat("s", -2, group="i", instance_id="i")
    say.enter("s2", group="i", instance_id="i")
    say.describe("i")
    static = say.join("", "i", group_instance_id="i")
    say.describe("i")
    say.beat("s2", 2, group="i", instance_id="i")
    say.heartbeat(classic.member_id, classic.generation_id, "i")
    say.heartbeat(static.member_id, static.generation_id, "i")
    say.describe("i")


NAMES = ("orders", "Orders", "orders-1", "a.b", "aaa", "x_0")
EXPRESSIONS = (
    "orders", "(?i)orders", "orders.*", "a|b", "a.b", r"a\.b", "a{3}", "a{2}", "a{,3}", "[a-c.]+", "[^a-z]*",
    r"\w+", r"\w+\d", r"\pL+", r"\p{Lu}.*", r"\p{Latin}+", r"\p{Greek}*", r"[[:alpha:]]+", r"[[:^alpha:]]*",
    r"\Qa.b\E", "^orders$", r"\Aaaa\z", r"\borders\b-1", "(?P<n>a)+", "(?:orders|aaa)", "(?U)a+", "(?s).*s",
    "(?m)^a.b$", "(?i:O)rders", "o(?i)RDERS", r"\x61+", r"\x{61}aa", "a+?", "(a*)*", "[]a]+", "[a-]+", r"[\w.]+",
    r"[\d_x]+", "(|a)+", "x_0|", "a**", "*a", "(", ")", "[b-a]", "a{1001}", "a{3,2}", r"(a)\1", "(?=a)", "(?!a)",
    "(?<=a)", r"\y", r"\Z", "\\", r"\p{Nope}", "[[:nope:]]", "(?z)", "a{2}{3}", "(?P<n>a)(?P<n>b)", "(?P<>a)",
    r"\x1", "[a", "(?P=n)", "a|{2}", "{", "a{", "x{,2}", "(?i)[[:upper:]]+", "(?i)[^O]+.*", r"\07", r"\C+",
    "(?)", "{2}", "a||b",
)  # fmt: skip
"""Without `(?<n>a)`, which RE2/J knows since its 1.8: Kafka 4.3 has that, 4.0 has not."""


def regular_expressions(say: Conversation) -> None:
    """What is one, and what it matches; Kafka finds that out a little later."""
    for name in NAMES:
        say.wire.create(name)
    wait_until(lambda: not any(topic.error_code for topic in say.wire.metadata(*NAMES).topics))
    ids = {topic.topic_id: topic.name for topic in say.wire.metadata(*NAMES, "t").topics}
    for number, expression in enumerate(EXPRESSIONS):
        group = f"r{number}"
        told = say.wire.ask(Beat(group_id=group, member_id="m", subscribed_topic_regex=expression, **JOINING), 1)
        matched: set[str] = set()
        until = time.monotonic() + 1.0
        while told.error_code == 0 and not matched and time.monotonic() < until:
            if told.assignment is not None:
                matched = {ids.get(one.topic_id, "another") for one in told.assignment.topic_partitions}
            time.sleep(0.05)
            told = say.wire.ask(Beat(group_id=group, member_id="m", member_epoch=told.member_epoch), 1)
        say.note(expression, Error.of(told.error_code).name, sorted(matched))


@pytest.fixture(scope="module", params=["4.0.2"])
def real(request: pytest.FixtureRequest, programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker of Kafka whose groups act at once; 4.3.1 makes targets for many changes at once, later."""
    jars = programs(request.param).jars
    node = RealNode.alone(tmp_path_factory.mktemp(f"kafka-{request.param}"))
    node.settings = SETTINGS
    node.format(jars)
    with node.running(jars):
        yield node.address()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "talk",
    [members_of_kip_848, groups_that_change_their_protocol, static_members_of_both_protocols, regular_expressions],
)
def test_both_brokers_say_the_same(real: str, talk: Any) -> None:
    with Broker(as_release="4.0") as broker:
        ours, theirs = Conversation(broker.bootstrap), Conversation(real)
        talk(ours)
        talk(theirs)
    different = [(number, *pair) for number, pair in enumerate(zip(ours.told, theirs.told)) if pair[0] != pair[1]]
    assert different == []
    assert len(ours.told) == len(theirs.told)
