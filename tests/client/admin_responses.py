"""Answers of a cluster that has one group, `g`, and configs, for `FakeCluster.serve`."""

from __future__ import annotations

from typing import Any

from tagwire import messages
from tagwire.errors import Error

SERVED = {
    8: (2, 9),
    9: (1, 9),
    10: (0, 6),
    15: (0, 6),
    16: (0, 5),
    21: (0, 2),
    32: (1, 4),
    37: (0, 3),
    42: (0, 2),
    44: (0, 1),
    47: (0, 0),
}


class Looked:
    """Keeps what was committed and configured, and answers about it."""

    def __init__(self, node: int = 0) -> None:
        self.node = node
        self.committed: dict[tuple[str, int], int] = {}
        self.configs: dict[str, str | None] = {"retention.ms": None}
        self.group_exists = True
        self.has_members = True

    def responses(self) -> dict[str, Any]:
        """{API name: request -> response}."""
        names = [name for name in dir(self) if name[0].isupper()]
        return {name: getattr(self, name) for name in names}

    def FindCoordinator(self, request: Any) -> Any:  # noqa: N802
        kind = messages.FindCoordinatorResponse
        found = [kind.Coordinator(key=key, node_id=self.node) for key in request.coordinator_keys]
        return kind(coordinators=found) if found else kind(node_id=self.node)

    def OffsetCommit(self, request: Any) -> Any:  # noqa: N802
        kind = messages.OffsetCommitResponse
        for topic in request.topics:
            for each in topic.partitions:
                self.committed[topic.name, each.partition_index] = each.committed_offset
        return kind(
            topics=[
                kind.OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        kind.OffsetCommitResponsePartition(partition_index=each.partition_index)
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def OffsetFetch(self, request: Any) -> Any:  # noqa: N802
        kind = messages.OffsetFetchResponse
        several = bool(request.groups)
        asked = request.groups[0].topics if several else request.topics
        places = list(self.committed)
        if asked is not None:
            places = [(topic.name, index) for topic in asked for index in topic.partition_indexes]
        topic: Any = kind.OffsetFetchResponseTopics if several else kind.OffsetFetchResponseTopic
        partition: Any = kind.OffsetFetchResponsePartitions if several else kind.OffsetFetchResponsePartition
        topics = [
            topic(
                name=name,
                partitions=[partition(partition_index=index, committed_offset=self.committed.get((name, index), -1))],
            )
            for name, index in places
        ]
        if several:
            return kind(groups=[kind.OffsetFetchResponseGroup(group_id=request.groups[0].group_id, topics=topics)])
        return kind(topics=topics)

    def OffsetDelete(self, request: Any) -> Any:  # noqa: N802
        kind = messages.OffsetDeleteResponse
        for topic in request.topics:
            for each in topic.partitions:
                self.committed.pop((topic.name, each.partition_index), None)
        return kind(
            topics=[
                kind.OffsetDeleteResponseTopic(
                    name=topic.name,
                    partitions=[
                        kind.OffsetDeleteResponsePartition(partition_index=each.partition_index)
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def ListGroups(self, request: Any) -> Any:  # noqa: N802
        kind = messages.ListGroupsResponse
        groups = [kind.ListedGroup(group_id="g", group_state="Empty", group_type="classic")]
        return kind(groups=groups if self.group_exists else [])

    def DescribeGroups(self, request: Any) -> Any:  # noqa: N802
        kind = messages.DescribeGroupsResponse
        assignment = messages.ConsumerProtocolAssignment
        held = assignment(assigned_partitions=[assignment.TopicPartition(topic="t", partitions=[0])])
        members = [
            kind.DescribedGroupMember(
                member_id="m", client_id="app", client_host="/h", member_assignment=b"\0\0" + held.encode(0)
            ),
            kind.DescribedGroupMember(member_id="n", member_assignment=b"\0\0\xff\xff"),
        ]
        return kind(
            groups=[
                kind.DescribedGroup(
                    group_id=name,
                    group_state="Stable" if self.has_members else "Empty",
                    protocol_type="consumer",
                    protocol_data="range",
                    members=members if self.has_members else [],
                )
                if name == "g"
                else kind.DescribedGroup(group_id=name, group_state="Dead")
                for name in request.groups
            ]
        )

    def DeleteGroups(self, request: Any) -> Any:  # noqa: N802
        kind = messages.DeleteGroupsResponse
        error = Error.NONE if self.group_exists else Error.GROUP_ID_NOT_FOUND
        self.group_exists = False
        return kind(
            results=[kind.DeletableGroupResult(group_id=name, error_code=error) for name in request.groups_names]
        )

    def DescribeConfigs(self, request: Any) -> Any:  # noqa: N802
        kind = messages.DescribeConfigsResponse
        configs = [
            kind.DescribeConfigsResourceResult(name=name, value=value or "7", config_source=5 if value is None else 1)
            for name, value in self.configs.items()
        ]
        configs.append(
            kind.DescribeConfigsResourceResult(name="secret", value=None, config_source=4, is_sensitive=True)
        )
        return kind(
            results=[
                kind.DescribeConfigsResult(
                    resource_type=at.resource_type, resource_name=at.resource_name, configs=configs
                )
                for at in request.resources
            ]
        )

    def IncrementalAlterConfigs(self, request: Any) -> Any:  # noqa: N802
        kind = messages.IncrementalAlterConfigsResponse
        results = []
        for at in request.resources:
            bad = any(config.value == "bad" for config in at.configs)
            if not bad and not request.validate_only:
                self.configs.update({config.name: config.value for config in at.configs})
            results.append(
                kind.AlterConfigsResourceResponse(
                    resource_type=at.resource_type,
                    resource_name=at.resource_name,
                    error_code=Error.INVALID_CONFIG if bad else Error.NONE,
                    error_message="no number" if bad else None,
                )
            )
        return kind(responses=results)
