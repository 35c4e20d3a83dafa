"""Words about groups: one member of each comes, goes and is wrong, and offsets are committed, told and deleted."""

from __future__ import annotations

import base64
from random import Random
from typing import Any, Final

from tagwire import messages

from .program import Member, Named, Number, Step, Subject, Talk, TopicId, Topics

CLASSIC: Final = ("g", "h", "i")
CONSUMERS: Final = ("k", "l")
NOBODY: Final = ("n",)
INSTANCE: Final = {"h": "of-h"}
"""Members that are static."""

ALL: Final = (*CLASSIC, *CONSUMERS, *NOBODY)


def topics(random: Random) -> Topics:
    return {"t": (2, {}), "u": (1, {})}


def _bytes(data: bytes) -> str:
    return base64.b64encode(data).decode()


SUBSCRIBED: Final = _bytes(b"\0\1" + messages.ConsumerProtocolSubscription(topics=["t"]).encode(1))
ASSIGNED: Final = _bytes(b"\0\1" + messages.ConsumerProtocolAssignment().encode(1))


def _member(talk: Talk, group: str) -> tuple[Any, Any]:
    """The id and the generation of a group's member, mostly as they are."""
    generation = Number(group, talk.mostly(0, -1, 1, -5, chance=0.9))
    return talk.mostly(Member(group), "somebody", "", chance=0.9), generation


def _instance(talk: Talk, group: str) -> Any:
    return talk.mostly(INSTANCE.get(group), None, "another", chance=0.95)


def join(talk: Talk) -> Step:
    """The one member comes for the first time, or again; never a second one, for whom brokers wait."""
    group = talk.one_of(*CLASSIC)
    version = talk.version("JoinGroup", 5 if group in INSTANCE else 0)
    state = talk.notes.get(("joined", group), "")
    if not state:
        member: Any = ""
        talk.notes["joined", group] = "asked" if version >= 4 and group not in INSTANCE else "in"
    else:
        member = Member(group)
        talk.notes["joined", group] = "in"
    if talk.random.random() < 0.1:
        member = "somebody"
    protocols = [{"name": talk.mostly("range", "roundrobin"), "metadata": SUBSCRIBED}]
    if talk.random.random() < 0.2:
        protocols.append({"name": "mine", "metadata": SUBSCRIBED})
    body: dict[str, Any] = {
        "groupId": talk.mostly(Named(group), "", chance=0.97),
        "sessionTimeoutMs": talk.mostly(30_000, 0, 1_800_001, -1, chance=0.93),
        "memberId": member,
        "protocolType": talk.mostly("consumer", "", "connect", chance=0.95),
        "protocols": talk.mostly(protocols, [], chance=0.97),
    }
    if version >= 1:
        body["rebalanceTimeoutMs"] = 3000
    if version >= 5:
        body["groupInstanceId"] = INSTANCE.get(group)
    if version >= 8:
        body["reason"] = talk.mostly("because", None, "r" * 300)
    return Step("JoinGroup", version, body, ("member", group))


def sync(talk: Talk) -> Step:
    version = talk.version("SyncGroup")
    group = talk.one_of(*CLASSIC)
    member, generation = _member(talk, group)
    given = talk.mostly(
        [{"memberId": Member(group), "assignment": ASSIGNED}], [], [{"memberId": "x", "assignment": ""}]
    )
    body: dict[str, Any] = {
        "groupId": talk.mostly(Named(group), "", chance=0.97),
        "generationId": generation,
        "memberId": member,
        "assignments": given,
    }
    if version >= 3:
        body["groupInstanceId"] = _instance(talk, group)
    if version >= 5:
        body["protocolType"] = talk.mostly("consumer", None, "connect")
        body["protocolName"] = talk.mostly("range", None, "mine", "roundrobin")
    return Step("SyncGroup", version, body)


def heartbeat(talk: Talk) -> Step:
    version = talk.version("Heartbeat")
    group = talk.one_of(*CLASSIC, *CLASSIC, *ALL)
    member, generation = _member(talk, group)
    body = {"groupId": talk.mostly(Named(group), "", chance=0.97), "generationId": generation, "memberId": member}
    if version >= 3:
        body["groupInstanceId"] = _instance(talk, group)
    return Step("Heartbeat", version, body)


def leave(talk: Talk) -> Step:
    version = talk.version("LeaveGroup")
    group = talk.one_of(*CLASSIC, *CLASSIC, *CLASSIC, *ALL)
    member, _ = _member(talk, group)
    if talk.notes.get(("joined", group)) == "asked":
        member = "somebody"  # a group that nobody has joined yet, and that then is left, is nothing here
    body: dict[str, Any] = {"groupId": talk.mostly(Named(group), "", chance=0.97)}
    if version < 3:
        body["memberId"] = member
    else:
        members = [{"memberId": member, "groupInstanceId": _instance(talk, group)}]
        members += [{"memberId": "somebody", "groupInstanceId": None}] * talk.mostly(0, 1)
        body["members"] = talk.mostly(members, [], chance=0.95)
    talk.notes.pop(("joined", group), None) if member == Member(group) else None
    return Step("LeaveGroup", version, body)


def _topic(talk: Talk, version: int) -> tuple[dict[str, Any], int]:
    topic, partition = talk.partition()
    return ({"topicId": TopicId(topic)} if version >= 10 else {"name": Named(topic)}), partition


def commit(talk: Talk) -> Step:
    version = talk.version("OffsetCommit")
    group = talk.one_of(*ALL)
    member, generation = _member(talk, group)
    if talk.random.random() < 0.3:
        member, generation = "", -1
    topic, partition = _topic(talk, version)
    one: dict[str, Any] = {
        "partitionIndex": partition,
        "committedOffset": talk.mostly(talk.random.randint(0, 9), -1, -5, chance=0.9),
        "committedMetadata": talk.mostly("m", None, "", "m" * 4096, "m" * 4097),
    }
    if version >= 6:
        one["committedLeaderEpoch"] = talk.mostly(-1, 0, 7)
    body: dict[str, Any] = {
        "groupId": talk.mostly(Named(group), "", chance=0.95),
        "generationIdOrMemberEpoch": generation,
        "memberId": member,
        "topics": [{**topic, "partitions": [one]}],
    }
    if version < 5:
        body["retentionTimeMs"] = talk.mostly(-1, 10**7)
    if version >= 7:
        body["groupInstanceId"] = _instance(talk, group)
    return Step("OffsetCommit", version, body)


def offsets(talk: Talk) -> Step:
    version = talk.version("OffsetFetch")
    group = talk.one_of(*ALL)
    topic, partition = _topic(talk, version)
    asked: Any = [{**topic, "partitionIndexes": [partition, 0]}]
    if version >= 2 and talk.random.random() < 0.3:
        asked = None
    body: dict[str, Any] = {}
    if version >= 7:
        body["requireStable"] = talk.random.random() < 0.5
    if version < 8:
        return Step("OffsetFetch", version, {**body, "groupId": Named(group), "topics": asked})
    one: dict[str, Any] = {"groupId": Named(group), "topics": asked}
    if version >= 9:
        member, epoch = _member(talk, group)
        one |= talk.mostly(
            {"memberId": None, "memberEpoch": -1}, {"memberId": member, "memberEpoch": epoch}, chance=0.6
        )
    more = [{"groupId": Named("nobody"), "topics": None}] if talk.random.random() < 0.2 else []
    return Step("OffsetFetch", version, {**body, "groups": [one, *more]})


def delete_offsets(talk: Talk) -> Step:
    topic, partition = talk.partition()
    asked = [{"name": Named(topic), "partitions": [{"partitionIndex": partition}]}]
    group = talk.one_of(*NOBODY, *INSTANCE, *CONSUMERS)  # of others nothing may be left, which not both forget
    return Step("OffsetDelete", 0, {"groupId": talk.mostly(Named(group), "", chance=0.95), "topics": asked})


def describe(talk: Talk) -> Step:
    version = talk.version("DescribeGroups")
    groups = [Named(name) for name in talk.one_of(ALL, ALL[:1], ("nobody",), CONSUMERS)]
    body: dict[str, Any] = {"groups": groups}
    if version >= 3:
        body["includeAuthorizedOperations"] = talk.random.random() < 0.3
    return Step("DescribeGroups", version, body)


def list_them(talk: Talk) -> Step:
    version = talk.version("ListGroups")
    body: dict[str, Any] = {}
    if version >= 4:
        body["statesFilter"] = talk.one_of(
            [], [], ["Stable"], ["Empty", "Dead"], ["stable"], ["Nonsense"], ["Assigning"]
        )
    if version >= 5:
        body["typesFilter"] = talk.one_of([], [], ["consumer"], ["Classic"], ["Nonsense"], ["share"])
    return Step("ListGroups", version, body)


def delete(talk: Talk) -> Step:
    names = [Named(talk.one_of(*ALL)), *([Named("nobody")] if talk.random.random() < 0.2 else [])]
    return Step("DeleteGroups", talk.version("DeleteGroups"), {"groupsNames": talk.mostly(names, [""], chance=0.95)})


def find(talk: Talk) -> Step:
    version = talk.version("FindCoordinator")
    body: dict[str, Any] = {} if version >= 4 else {"key": talk.mostly(Named("g"), "")}
    if version >= 1:
        body["keyType"] = talk.mostly(0, 1, 2, 3, -1)
    if version >= 4:
        body["coordinatorKeys"] = talk.mostly([Named("g")], [""], [], [Named("g"), Named("h")])
    return Step("FindCoordinator", version, body)


def beat(talk: Talk) -> Step:
    """A member of KIP-848: it comes, tells what it has, is wrong, goes."""
    version = talk.version("ConsumerGroupHeartbeat")
    group = talk.one_of(*CONSUMERS)
    joined = talk.notes.get(("joined", group), "")
    body: dict[str, Any] = {"groupId": talk.mostly(Named(group), "", chance=0.98)}
    body["memberId"] = talk.mostly(f"m-{group}", "somebody", "", chance=0.95)
    kind = talk.random.random()
    if not joined or kind < 0.1:
        talk.notes["joined", group] = "in"
        body |= {"memberEpoch": 0, "rebalanceTimeoutMs": talk.mostly(30_000, -1, 0, chance=0.95)}
        body["topicPartitions"] = talk.mostly([], None, chance=0.97)
        body["subscribedTopicNames"] = talk.mostly(["t"], None, ["t", "u"], ["u"])
        body["subscribedTopicNames"] = body["subscribedTopicNames"] and [Named(t) for t in body["subscribedTopicNames"]]
    elif kind < 0.25:
        talk.notes.pop(("joined", group), None)
        body["memberEpoch"] = -1
    else:
        body["memberEpoch"] = Number(group, talk.mostly(0, 1, 7, chance=0.9))
        if talk.random.random() < 0.3:
            body["subscribedTopicNames"] = [Named(talk.one_of("t", "u"))]
        if talk.random.random() < 0.3:
            mine = talk.one_of([], [{"topicId": TopicId("t"), "partitions": [0, 1]}])
            body["topicPartitions"] = mine
    if talk.random.random() < 0.06:
        body |= talk.one_of({"serverAssignor": "mine"}, {"rackId": ""}, {"instanceId": ""}, {"serverAssignor": "range"})
    return Step("ConsumerGroupHeartbeat", version, body, ("member", group))


def describe_consumers(talk: Talk) -> Step:
    version = talk.version("ConsumerGroupDescribe")
    groups = [Named(name) for name in talk.one_of(CONSUMERS, ALL, ("nobody",))]
    return Step(
        "ConsumerGroupDescribe", version, {"groupIds": groups, "includeAuthorizedOperations": talk.one_of(True, False)}
    )


SUBJECT: Final = Subject(
    topics,
    {
        join: 6,
        sync: 5,
        heartbeat: 4,
        leave: 2,
        commit: 6,
        offsets: 6,
        delete_offsets: 2,
        describe: 3,
        list_them: 2,
        delete: 2,
        find: 1,
        beat: 6,
        describe_consumers: 2,
    },
)
