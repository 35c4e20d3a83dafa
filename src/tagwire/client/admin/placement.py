"""The calls of Admin about the cluster itself: its brokers and features, who leads what, and where replicas are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tagwire.client import arguments
from tagwire.client.admin.cluster import ClusterDescription
from tagwire.client.admin.elections import PREFERRED
from tagwire.client.admin.face import AdminFace
from tagwire.client.admin.features import FeatureUpdate
from tagwire.client.admin.log_dirs import LogDir, ReplicaLogDirInfo, ReplicaT, TopicPartitionReplica
from tagwire.client.admin.reassignments import PartitionReassignment
from tagwire.partitions import TopicPartition
from tagwire.rpc import BrokerFeatures


class PlacementCalls(AdminFace):
    """The cluster, its features, its leaders, its replicas and their directories."""

    def describe_cluster(self) -> ClusterDescription:
        """The cluster's id, controller and brokers, fenced ones included where brokers tell of them.

        Brokers before Kafka 2.8 have no DescribeCluster; Metadata says the same of them.

        Raises:
            KafkaError: the request is refused. ConnectError, ...: no broker can be reached.
        """
        return self._network.run(self._core.describe_cluster())

    def describe_log_dirs(
        self, brokers: int | Iterable[int] | None = None, partitions: arguments.TopicsOrPartitions | None = None
    ) -> dict[int, list[LogDir]]:
        """The log directories of brokers, by node id. One that is broken tells so in its `error`.

        Args:
            brokers: node ids, or one; None is for all. Of all, one that cannot be reached keeps no other from being
                told: it has one directory, whose path is "" and whose `error` is BROKER_NOT_AVAILABLE; one that has
                left the cluster meanwhile has none.
            partitions: only replicas of these; a topic's name stands for all of its own, None for all that there are.

        Raises:
            KafkaError: naming the broker. UnsupportedVersionError: it is older than Kafka 1.0. ConnectError: the
                cluster has no broker with this id, or those that are named cannot be reached; PartlyRefusedError: some
                of them.
        """
        return self._network.run(self._core.describe_log_dirs(brokers, partitions))

    def describe_replica_log_dirs(
        self, replicas: Iterable[tuple[str, int, int]]
    ) -> dict[TopicPartitionReplica, ReplicaLogDirInfo]:
        """Where replicas are, and where they are being moved to.

        Args:
            replicas: (topic, partition, node id), such as `TopicPartitionReplica`.

        Raises:
            As `describe_log_dirs`.
        """
        return self._network.run(self._core.describe_replica_log_dirs(replicas))

    def alter_replica_log_dirs(self, paths: Mapping[ReplicaT, str]) -> None:
        """Moves replicas to another log directory of their broker, which copies them first; a replica that its broker
        does not have yet is made there.

        Args:
            paths: {(topic, partition, node id): the directory, as `describe_log_dirs` tells it}.

        Raises:
            KafkaError: naming the replica; LOG_DIR_NOT_FOUND, REPLICA_NOT_AVAILABLE for one that is to come.
            ConfigError: `paths` mean nothing. ConnectError: the cluster has no broker with this id.
        """
        self._network.run(self._core.alter_replica_log_dirs(paths))

    def alter_partition_reassignments(
        self,
        reassignments: Mapping[arguments.PartitionT, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
    ) -> None:
        """Begins to move partitions to other brokers; `list_partition_reassignments` tells how far it has come.

        Args:
            reassignments: {(topic, partition): the node ids of its replicas, the preferred leader first}; None cancels
                what is under way.
            allow_replication_factor_change: whether there may be more or fewer replicas afterwards; to forbid it needs
                Kafka 4.1.

        Raises:
            KafkaError: naming the partition; INVALID_REPLICA_ASSIGNMENT, NO_REASSIGNMENT_IN_PROGRESS where nothing is
                under way to cancel, INVALID_REPLICATION_FACTOR. What was not refused has begun.
            ConfigError: `reassignments` mean nothing. UnsupportedVersionError: the broker is older than Kafka 2.4.
        """
        self._network.run(
            self._core.alter_partition_reassignments(
                reassignments, allow_replication_factor_change=allow_replication_factor_change
            )
        )

    def list_partition_reassignments(
        self, partitions: arguments.TopicsOrPartitions | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """Reassignments that are under way.

        Args:
            partitions: only of these; a topic's name stands for all of its partitions, None takes all there are.

        Raises:
            KafkaError: the request is refused. ConfigError: `partitions` mean nothing.
            UnsupportedVersionError: the broker is older than Kafka 2.4.
        """
        return self._network.run(self._core.list_partition_reassignments(partitions))

    def elect_leaders(
        self, election_type: str = PREFERRED, partitions: arguments.TopicsOrPartitions | None = None
    ) -> dict[TopicPartition, bool]:
        """Gives partitions the leader that they should have.

        Args:
            election_type: "preferred", the first of their replicas, or "unclean" for partitions without a leader: any
                replica that runs, even one that lost records.
            partitions: a topic's name stands for all of its partitions; None takes all there are.

        Returns:
            Whether a leader was elected, by partition: one that is led as it should be needs no election.

        Raises:
            KafkaError: naming the partition; PREFERRED_LEADER_NOT_AVAILABLE, ELIGIBLE_LEADERS_NOT_AVAILABLE. The others
                have had their election: of several a `PartlyRefusedError` tells of each, in `succeeded`.
            ConfigError: no such type, or `partitions` mean nothing.
            UnsupportedVersionError: the broker is older than Kafka 2.2, and for unclean elections than 2.4.
        """
        return self._network.run(self._core.elect_leaders(election_type, partitions))

    def describe_features(self, node: int | None = None) -> BrokerFeatures:
        """The features that the cluster has switched on, and what one broker supports of them, asked for now.

        Args:
            node: whose support; None takes any broker's.

        Raises:
            UnsupportedVersionError: the broker is older than Kafka 2.4. ConnectError: the cluster has no such broker.
        """
        return self._network.run(self._core.describe_features(node))

    def update_features(self, updates: Mapping[str, FeatureUpdate | int], *, validate_only: bool = False) -> None:
        """Takes features of the whole cluster to other levels: all of them, or, from Kafka 4.0 on, none.

        Args:
            updates: {feature: level}, or a `FeatureUpdate` for what is no upgrade; such as {"group.version": 1}.
            validate_only: checks whether it could be done, and changes nothing.

        Raises:
            KafkaError: INVALID_UPDATE_VERSION, FEATURE_UPDATE_FAILED, naming the feature.
            ConfigError: `updates` mean nothing. UnsupportedVersionError: the broker is older than Kafka 3.3.
        """
        self._network.run(self._core.update_features(updates, validate_only=validate_only))
