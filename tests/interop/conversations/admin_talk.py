"""Words of administrators: topics, partitions and configurations, quotas, SCRAM users and ACLs are made, changed, told
and deleted, by right requests and odd ones."""

from __future__ import annotations

import base64
from random import Random
from typing import Any, Final

from .program import Address, Named, Step, Subject, Talk, TopicId, Topics

MADE: Final = ("a", "b", "c")
"""Topics that programs make and delete."""

BAD_NAMES: Final = ("", ".", "..", "a b", "ä", "x" * 249, "a/b", "a,b")
CONFIGS: Final[dict[str, tuple[str | None, ...]]] = {
    "cleanup.policy": ("compact", "delete", "compact,delete", "", "nonsense", "delete,delete", "Compact", " delete"),
    "retention.ms": ("-1", "0", "1000", "-2", "x", "", "9223372036854775807", "9223372036854775808", "1e3", " 5 "),
    "retention.bytes": ("-1", "0", "5", "-2", "1.5"),
    "segment.bytes": ("1048576", "2147483647", "2147483648", "0", "-1", "x"),
    "segment.ms": ("1", "0", "-1", "1000"),
    "segment.jitter.ms": ("0", "-1", "5"),
    "segment.index.bytes": ("4", "3", "0", "1000"),
    "max.message.bytes": ("0", "-1", "1000", "2147483648"),
    "index.interval.bytes": ("0", "-1", "100"),
    "min.insync.replicas": ("1", "0", "2", "-1", "x"),
    "compression.type": ("gzip", "producer", "uncompressed", "none", "GZIP", "brotli", "zstd", "lz4", "snappy"),
    "compression.gzip.level": ("-1", "0", "1", "9", "10"),
    "compression.zstd.level": ("3", "22", "23", "-131072", "-131073"),
    "compression.lz4.level": ("1", "12", "0", "18"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime", "createtime", ""),
    "message.timestamp.before.max.ms": ("0", "-1", "5"),
    "message.timestamp.after.max.ms": ("0", "-1", "5"),
    "min.cleanable.dirty.ratio": ("0", "1", "0.5", "1.1", "-0.1", "NaN", "x"),
    "min.compaction.lag.ms": ("0", "5", "-1"),
    "max.compaction.lag.ms": ("1", "0", "9223372036854775807"),
    "delete.retention.ms": ("0", "-1", "100"),
    "file.delete.delay.ms": ("0", "-1", "100"),
    "flush.messages": ("1", "0", "-1"),
    "flush.ms": ("0", "-1", "7"),
    "preallocate": ("true", "false", "TRUE", "yes", ""),
    "unclean.leader.election.enable": ("true", "false", "x"),
    "local.retention.ms": ("-2", "-3", "5"),
    "local.retention.bytes": ("-2", "-3", "5"),
    "remote.storage.enable": ("false", "x"),
    "leader.replication.throttled.replicas": ("*", "", "0:1", "x", "0:1,1:2"),
    "follower.replication.throttled.replicas": ("*", "0:1", "a:b"),
    "message.format.version": ("3.0-IV1",),
    "message.downconversion.enable": ("true",),
    "nonsense": ("1",),
}  # fmt: skip
"""What a topic can be told -> values, right and wrong."""


def topics(random: Random) -> Topics:
    return {"t": (2, {}), "u": (1, {"cleanup.policy": "compact"})}


def _name(talk: Talk) -> str:
    return talk.one_of("t", "u", *MADE, *MADE)  # type: ignore[no-any-return]


def _named(talk: Talk, name: str, chance: float = 0.93) -> Any:
    return talk.mostly(Named(name), *BAD_NAMES, chance=chance)


def _config(talk: Talk) -> tuple[str, str | None]:
    name = talk.one_of(*CONFIGS)
    return name, talk.mostly(talk.one_of(*CONFIGS[name]), None, chance=0.97)


def create(talk: Talk) -> Step:
    version = talk.version("CreateTopics")
    asked = []
    for _ in range(talk.mostly(1, 2)):
        topic: dict[str, Any] = {"name": _named(talk, _name(talk)), "configs": [], "assignments": []}
        topic["numPartitions"] = talk.mostly(1, 2, -1, 0, -2, chance=0.7)
        topic["replicationFactor"] = talk.mostly(1, -1, 0, 2, -2, 32767, chance=0.8)
        if talk.random.random() < 0.2:
            replicas = talk.mostly([1], [], [77], [1, 1], [-1], chance=0.6)
            indexes = talk.mostly([0], [0, 1], [1], [0, 0], [-1], chance=0.5)
            topic["assignments"] = [{"partitionIndex": index, "brokerIds": replicas} for index in indexes]
            topic |= talk.mostly({"numPartitions": -1, "replicationFactor": -1}, {}, chance=0.8)
        if talk.random.random() < 0.5:
            topic["configs"] = [dict(zip(("name", "value"), _config(talk))) for _ in range(talk.mostly(1, 2, 3))]
        asked.append(topic)
    body = {"topics": asked, "timeoutMs": 10_000, "validateOnly": talk.random.random() < 0.3}
    return Step("CreateTopics", version, body)


def delete(talk: Talk) -> Step:
    version = talk.version("DeleteTopics")
    names = [_named(talk, talk.one_of(*MADE)) for _ in range(talk.mostly(1, 2))]
    body: dict[str, Any] = {"timeoutMs": 10_000}
    if version < 6:
        return Step("DeleteTopics", version, {**body, "topicNames": names})
    entries = [
        talk.mostly(
            {"name": name},
            {"name": None, "topicId": TopicId("nowhere")},
            {"name": name, "topicId": TopicId("t")},
            {"name": None},
            chance=0.85,
        )
        for name in names
    ]
    return Step("DeleteTopics", version, {**body, "topics": entries})


def grow(talk: Talk) -> Step:
    version = talk.version("CreatePartitions")
    topic: dict[str, Any] = {"name": _named(talk, _name(talk)), "count": talk.mostly(3, 1, 2, 0, -1, 4, chance=0.4)}
    topic["assignments"] = None
    if talk.random.random() < 0.3:
        lists = talk.one_of([[1]], [[1], [1]], [], [[77]], [[1, 1]], [[]])
        topic["assignments"] = [{"brokerIds": ids} for ids in lists]
    body = {"topics": [topic] * talk.mostly(1, 2), "timeoutMs": 10_000, "validateOnly": talk.one_of(True, False)}
    return Step("CreatePartitions", version, body)


def _resource(talk: Talk) -> dict[str, Any]:
    kind = talk.mostly(2, 0, 3, 99, chance=0.95)
    return {"resourceType": kind, "resourceName": _named(talk, _name(talk), 0.97)}


def describe_configs(talk: Talk) -> Step:
    version = talk.version("DescribeConfigs")
    keys = talk.mostly(talk.random.sample([*CONFIGS], 4), None, [], chance=0.6)
    resource = {**_resource(talk), "configurationKeys": keys}
    body: dict[str, Any] = {"resources": [resource], "includeSynonyms": talk.one_of(True, False)}
    if version >= 3:
        body["includeDocumentation"] = False
    return Step("DescribeConfigs", version, body)


def alter_configs(talk: Talk) -> Step:
    version = talk.version("AlterConfigs")
    configs = [dict(zip(("name", "value"), _config(talk))) for _ in range(talk.mostly(1, 0, 2, 3, chance=0.6))]
    body = {"resources": [{**_resource(talk), "configs": configs}], "validateOnly": talk.random.random() < 0.3}
    return Step("AlterConfigs", version, body)


def change_configs(talk: Talk) -> Step:
    version = talk.version("IncrementalAlterConfigs")
    configs = []
    for _ in range(talk.mostly(1, 0, 2, 3, chance=0.7)):
        name, value = _config(talk)
        operation = talk.mostly(0, 1, 2, 3, 4, -1, chance=0.6)
        if operation in (2, 3) and talk.random.random() < 0.8:
            name, value = "cleanup.policy", talk.one_of("compact", "delete", "nonsense", "")
        configs.append({"name": name, "configOperation": operation, "value": value})
    resources = [{**_resource(talk), "configs": configs}]
    return Step(
        "IncrementalAlterConfigs", version, {"resources": resources, "validateOnly": talk.random.random() < 0.3}
    )


def describe_topics(talk: Talk) -> Step:
    names = sorted({talk.mostly(_name(talk), "nowhere") for _ in range(talk.mostly(2, 1, 3))})
    body: dict[str, Any] = {"topics": [{"name": Named(name)} for name in names]}
    body["responsePartitionLimit"] = talk.mostly(2000, 1, 2, 0, -1, chance=0.5)
    if talk.random.random() < 0.4:
        body["cursor"] = {"topicName": Named(_name(talk)), "partitionIndex": talk.mostly(0, 1, 5, -1, chance=0.7)}
    return Step("DescribeTopicPartitions", 0, body)


def metadata(talk: Talk) -> Step:
    version = talk.version("Metadata")
    topics: list[dict[str, Any]] = [{"name": _named(talk, _name(talk), 0.9)} for _ in range(talk.mostly(1, 2))]
    if version >= 12 and talk.random.random() < 0.4:
        topics = [{"name": None, "topicId": TopicId(talk.one_of("t", "u", "nowhere"))}]
    body: dict[str, Any] = {"topics": topics}
    if version >= 4:
        body["allowAutoTopicCreation"] = False
    else:
        body["topics"] = [{"name": Named(talk.one_of("t", "u"))}]
    if version >= 8:
        body["includeTopicAuthorizedOperations"] = talk.one_of(True, False)
    if 8 <= version <= 10:
        body["includeClusterAuthorizedOperations"] = talk.one_of(True, False)
    return Step("Metadata", version, body)


def _entity(talk: Talk) -> list[dict[str, Any]]:
    parts = talk.mostly(
        [("user", Named("me"))],
        [("client-id", Named("it"))],
        [("user", Named("me")), ("client-id", Named("it"))],
        [("ip", Address())],
        [("ip", "nonsense!")],
        [("user", Named("me")), ("ip", Address())],
        [("nonsense", "x")],
        [("user", "")],
        [],
        chance=0.4,
    )
    return [{"entityType": kind, "entityName": name} for kind, name in parts]


def alter_quotas(talk: Talk) -> Step:
    ops = [
        {
            "key": talk.one_of(
                "producer_byte_rate", "consumer_byte_rate", "request_percentage", "connection_creation_rate",
                "controller_mutation_rate", "nonsense",
            ),
            "value": talk.mostly(1000.0, 0.0, -1.0, 0.5, 1e300, 1e9, chance=0.5),
            "remove": talk.random.random() < 0.3,
        }
        for _ in range(talk.mostly(1, 0, 2))
    ]  # fmt: skip
    body = {"entries": [{"entity": _entity(talk), "ops": ops}], "validateOnly": talk.random.random() < 0.3}
    return Step("AlterClientQuotas", talk.version("AlterClientQuotas"), body)


def describe_quotas(talk: Talk) -> Step:
    components = talk.one_of(
        [("user", 0, Named("me"))],
        [("client-id", 0, Named("it"))],
        [("user", 0, Named("me")), ("client-id", 0, Named("it"))],
        [("user", 0, Named("me")), ("client-id", 2, None)],
        [("ip", 0, Address())],
        [("nonsense", 0, "x")],
        [("user", 0, Named("me")), ("user", 0, Named("me"))],
        [("user", 7, None)],
        [("user", 0, None)],
        [("user", 0, Named("me")), ("ip", 2, None)],
        [("", 0, "x")],
    )
    asked = [{"entityType": kind, "matchType": how, "match": match} for kind, how, match in components]
    body = {"components": asked, "strict": talk.one_of(True, False)}
    return Step("DescribeClientQuotas", talk.version("DescribeClientQuotas"), body)


def alter_users(talk: Talk) -> Step:
    name = talk.mostly(Named(talk.one_of("me", "you")), "", chance=0.95)
    mechanism = talk.mostly(1, 2, 0, 3, chance=0.6)
    body: dict[str, Any] = {"deletions": [], "upsertions": []}
    if talk.random.random() < 0.4:
        body["deletions"] = [{"name": name, "mechanism": mechanism}]
    if not body["deletions"] or talk.random.random() < 0.1:
        body["upsertions"] = [
            {
                "name": name,
                "mechanism": mechanism,
                "iterations": talk.mostly(4096, 4095, 16384, 16385, 0, -1, chance=0.7),
                "salt": _bytes(b"salt" * 4),
                "saltedPassword": _bytes(b"p" * 32),
            }
        ] * talk.mostly(1, 2, chance=0.93)
    return Step("AlterUserScramCredentials", 0, body)


def _bytes(data: bytes) -> str:
    return base64.b64encode(data).decode()


def describe_users(talk: Talk) -> Step:
    names = talk.one_of(["me"], ["you", "me"], ["me", "me"], ["nobody"])
    users = talk.mostly([{"name": Named(name)} for name in names], [{"name": ""}])
    return Step("DescribeUserScramCredentials", 0, {"users": users})


def elect(talk: Talk) -> Step:
    version = talk.version("ElectLeaders")
    topic = _name(talk)
    body: dict[str, Any] = {"topicPartitions": [{"topic": Named(topic), "partitions": talk.one_of([0], [0, 1], [9])}]}
    if version >= 1:
        body["electionType"] = talk.mostly(0, 1, 2, chance=0.9)
    return Step("ElectLeaders", version, {**body, "timeoutMs": 5000})


def reassign(talk: Talk) -> Step:
    version = talk.version("AlterPartitionReassignments")
    replicas = talk.one_of([1], None, [], [77], [1, 1], [-1])
    parts = [{"partitionIndex": talk.mostly(0, 9, -1), "replicas": replicas}]
    body: dict[str, Any] = {"topics": [{"name": Named(_name(talk)), "partitions": parts}], "timeoutMs": 5000}
    return Step("AlterPartitionReassignments", version, body)


def reassigning(talk: Talk) -> Step:
    topics = [{"name": Named(_name(talk)), "partitionIndexes": talk.one_of([0], [0, 9])}]
    return Step("ListPartitionReassignments", 0, {"topics": topics, "timeoutMs": 5000})


def describe_dirs(talk: Talk) -> Step:
    topic = _name(talk)
    asked = [{"topic": Named(topic), "partitions": talk.one_of([0], [0, 1], [9])}]
    return Step("DescribeLogDirs", talk.version("DescribeLogDirs"), {"topics": asked})


def _acl(talk: Talk, any_one: int) -> dict[str, Any]:
    """Of an ACL or, with 1 for any one, a filter of some."""
    odd = 1 - any_one
    return {
        "type": talk.mostly(2, 3, 5, 4, odd, chance=0.6),
        "name": talk.mostly(Named(talk.one_of("t", "u")), "", chance=0.95),
        "pattern": talk.mostly(3, 4, odd, 0, 2, chance=0.8),
        "principal": talk.mostly("User:me", "User:*", "me", "", "Group:us", chance=0.75),
        "host": talk.mostly("*", "10.0.0.1", "", chance=0.85),
        "operation": talk.mostly(3, 4, 2, 8, 7, 12, odd, 0, chance=0.5),
        "permission": talk.mostly(3, 2, odd, 0, chance=0.7),
    }


def create_acls(talk: Talk) -> Step:
    version = talk.version("CreateAcls")
    creations = []
    for _ in range(talk.mostly(1, 2)):
        said = _acl(talk, 0)
        creations.append(
            {
                "resourceType": said["type"],
                "resourceName": said["name"],
                "resourcePatternType": said["pattern"],
                "principal": said["principal"],
                "host": said["host"],
                "operation": said["operation"],
                "permissionType": said["permission"],
            }
        )
    return Step("CreateAcls", version, {"creations": creations})


def _filter(talk: Talk) -> dict[str, Any]:
    said = _acl(talk, 0)
    for name in ("type", "operation", "permission"):
        if talk.random.random() < 0.6:
            said[name] = 1
    for name in ("principal", "host"):
        if talk.random.random() < 0.6:
            said[name] = None
    if talk.random.random() < 0.5:
        said["pattern"] = talk.one_of(1, 2)
    return said


def describe_acls(talk: Talk) -> Step:
    version = talk.version("DescribeAcls")
    said = _filter(talk)
    body = {
        "resourceTypeFilter": said["type"],
        "resourceNameFilter": Named(talk.one_of("t", "u")),
        "patternTypeFilter": said["pattern"],
        "principalFilter": said["principal"],
        "hostFilter": said["host"],
        "operation": said["operation"],
        "permissionType": said["permission"],
    }
    return Step("DescribeAcls", version, body)


def delete_acls(talk: Talk) -> Step:
    version = talk.version("DeleteAcls")
    said = _filter(talk)
    one = {
        "resourceTypeFilter": said["type"],
        "resourceNameFilter": Named(talk.one_of("t", "u")),
        "patternTypeFilter": said["pattern"],
        "principalFilter": said["principal"],
        "hostFilter": said["host"],
        "operation": said["operation"],
        "permissionType": said["permission"],
    }
    return Step("DeleteAcls", version, {"filters": [one]})


SUBJECT: Final = Subject(
    topics,
    {
        create: 8,
        delete: 3,
        grow: 3,
        describe_configs: 4,
        alter_configs: 3,
        change_configs: 6,
        describe_topics: 4,
        metadata: 3,
        alter_quotas: 4,
        describe_quotas: 3,
        alter_users: 3,
        describe_users: 2,
        elect: 2,
        reassign: 2,
        reassigning: 1,
        describe_dirs: 2,
        create_acls: 4,
        describe_acls: 3,
        delete_acls: 2,
    },
)
