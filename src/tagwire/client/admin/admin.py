"""Admin: looks after a cluster, one blocking call after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from tagwire.client import arguments
from tagwire.client.admin.access import AccessCalls
from tagwire.client.admin.configs import Change, ConfigEntry, ConfigResource, ResourceT
from tagwire.client.admin.group_offsets import OffsetAndMetadata
from tagwire.client.admin.groups import GroupDescription, GroupListing
from tagwire.client.admin.lags import GroupLag, PartitionEnd
from tagwire.client.admin.placement import PlacementCalls
from tagwire.client.admin.topics import NewTopic
from tagwire.client.admin.transactions import ProducerState, TransactionDescription, TransactionListing
from tagwire.client.metadata import TopicMetadata
from tagwire.client.metrics import MetricValues
from tagwire.client.offset_spec import OffsetSpec
from tagwire.partitions import TopicPartition


class Admin(AccessCalls, PlacementCalls):
    """Looks after a cluster, for one thread.

    Each call speaks the highest version that the broker and tagwire share; what a broker is too old for is an
    UnsupportedVersionError that names the API, both ranges, the broker and the releases that would do. What may
    succeed later is tried again until the client's timeout; a change whose response was lost is not. A call about
    several things of which some are refused raises a `PartlyRefusedError`, a KafkaError that has what succeeded, too;
    so it does where a broker is away for some of them (NETWORK_EXCEPTION, REQUEST_TIMED_OUT) or too old for it
    (UNSUPPORTED_VERSION), unless it is for all.

        with Admin("kafka-1:9092") as admin:
            admin.create_topics([NewTopic("flights", num_partitions=4)])
            admin.alter_configs({("topic", "flights"): {"retention.ms": "-1"}})

    Args:
        client: a client, which stays open, or bootstrap addresses, "HOST:PORT,HOST:PORT".
        security: the attributes of `tagwire.client.Security`, for the client that is made of addresses.

    Raises:
        ConfigError: an option is wrong.
    """

    def metrics(self) -> MetricValues:
        """What the admin's client measures, by the names of Kafka's admin clients: see `Client.metrics`."""
        return self._network.core.metrics.values("admin-client")

    def list_topics(self) -> list[TopicMetadata]:
        """Every topic, internal ones too, by name. Raises as `Client.metadata`."""
        return self._network.run(self._core.list_topics())

    def create_topics(self, topics: NewTopic | str | Sequence[NewTopic | str], *, validate_only: bool = False) -> None:
        """Creates topics, and waits a moment until the cluster knows them.

        Args:
            topics: one or several; a name alone is a topic of one partition.
            validate_only: checks whether it could be done, and changes nothing.

        Raises:
            KafkaError: with the code of the first topic that was refused; the text tells all of them. The others exist.
            ConfigError: `topics` are none.
        """
        self._network.run(self._core.create_topics(topics, validate_only=validate_only))

    def create_partitions(self, totals: Mapping[str, int], *, validate_only: bool = False) -> None:
        """Gives topics more partitions, and waits a moment until the cluster knows them.

        Args:
            totals: {topic: how many partitions it is to have in all}.
            validate_only: checks whether it could be done, and changes nothing.

        Raises:
            KafkaError: as `create_topics`; INVALID_PARTITIONS where a topic has as many already.
            ConfigError: `totals` means nothing.
        """
        self._network.run(self._core.create_partitions(totals, validate_only=validate_only))

    def delete_topics(self, names: arguments.Names) -> None:
        """Deletes topics with all their records.

        Args:
            names: of the topics, or one.

        Raises:
            KafkaError: with the code of the first topic that was refused; the text tells all of them. The others are
            gone.
            ConfigError: `names` are none.
        """
        self._network.run(self._core.delete_topics(names))

    def delete_records(self, before: Mapping[arguments.PartitionT, int]) -> dict[TopicPartition, int]:
        """Deletes the records before an offset; -1 all that there are.

        Args:
            before: {(topic, partition): offset}.

        Returns:
            The first offset that each partition holds now.

        Raises:
            KafkaError: naming the partition; OFFSET_OUT_OF_RANGE for an offset that it has not reached.
            ConfigError: `before` means nothing.
        """
        return self._network.run(self._core.delete_records(before))

    def describe_configs(
        self, resources: tuple[str, str] | Sequence[tuple[str, str]] | Set[tuple[str, str]]
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """What resources are set to, by config name; defaults included.

        Args:
            resources: (kind, name) pairs, such as ("topic", "flights") or ("broker", "1"), or one.

        Raises:
            ConfigError: no such kind, or no pairs. KafkaError: naming the resource. ConnectError: the cluster has no
                broker with this id, and nothing is told of others.
        """
        return self._network.run(self._core.describe_configs(resources))

    def alter_configs(
        self,
        changes: Mapping[ResourceT, Mapping[str, Change]],
        *,
        validate_only: bool = False,
    ) -> None:
        """Sets configs, and leaves the others of a resource as they are.

        Args:
            changes: {(kind, name): {config: value}}; None takes a config back to its default, `Append` and `Subtract`
                change one that is a list.
            validate_only: checks whether it could be done, and changes nothing.

        Raises:
            ConfigError: no such kind, or `changes` means nothing. KafkaError: naming the resource. ConnectError: the
                cluster has no broker with this id.
            UnsupportedVersionError: a broker before Kafka 2.3 cannot change one config alone.
        """
        self._network.run(self._core.alter_configs(changes, validate_only=validate_only))

    def list_config_resources(self, kinds: arguments.Names = ()) -> list[ConfigResource]:
        """What has configs of its own, or can have them: topics, brokers, groups, client metrics.

        Args:
            kinds: only of these, such as "client_metrics"; none takes all, which needs Kafka 4.1.

        Raises:
            ConfigError: no such kind. KafkaError: the request is refused.
            UnsupportedVersionError: the broker is too old for these kinds.
        """
        return self._network.run(self._core.list_config_resources(kinds))

    def list_groups(self, *, states: arguments.Names = (), types: arguments.Names = ()) -> list[GroupListing]:
        """Every group, by name.

        Args:
            states: only groups in these states, such as "Empty"; needs Kafka 2.6.
            types: only groups of these types, "classic", "consumer", "share"; needs Kafka 3.8.

        Raises:
            KafkaError: every broker refuses. PartlyRefusedError: some refuse, are away or too old; both its `refused`
                and its `succeeded` are by node id. UnsupportedVersionError: all are too old.
        """
        return self._network.run(self._core.list_groups(states=states, types=types))

    def describe_groups(self, groups: arguments.Names) -> dict[str, GroupDescription]:
        """Groups and their members: classic ones, those of KIP-848, share groups (KIP-932), streams groups (KIP-1071).

        Args:
            groups: group ids, or one.

        Returns:
            {group id: its description}.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND naming a group that does not exist, or another refusal.
            ConfigError: `groups` are none.
        """
        return self._network.run(self._core.describe_groups(groups))

    def delete_groups(self, groups: arguments.Names) -> None:
        """Deletes groups and the offsets they committed.

        Args:
            groups: group ids, or one.

        Raises:
            KafkaError: NON_EMPTY_GROUP for one that has members, GROUP_ID_NOT_FOUND for one that does not exist; the
                text tells all refusals. The others are gone.
            ConfigError: `groups` are none.
        """
        self._network.run(self._core.delete_groups(groups))

    def group_offsets(
        self, group: str, partitions: arguments.TopicsOrPartitions | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a group has committed. Partitions without an offset are left out; so is a group that does not exist.

        Args:
            group: its id.
            partitions: a topic's name stands for all of its partitions; None is for all that there are.

        Raises:
            KafkaError: naming the group or the partition. ConfigError: `group` or `partitions` mean nothing.
        """
        return self._network.run(self._core.group_offsets(group, partitions))

    def alter_group_offsets(
        self, group: str, offsets: arguments.ByTopicOrPartition[OffsetSpec | OffsetAndMetadata]
    ) -> None:
        """Commits offsets for a group that has no members now; a group that does not exist begins with them.

        Args:
            group: its id.
            offsets: {(topic, partition): the offset to read next}, or "earliest", "latest" or a time; a topic's name
                stands for all of its partitions.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID while the group has members; otherwise naming the partition.
            ConfigError: `group` or `offsets` mean nothing.
        """
        self._network.run(self._core.alter_group_offsets(group, offsets))

    def delete_group_offsets(self, group: str, partitions: arguments.TopicsOrPartitions) -> None:
        """Deletes the offsets that a group has committed in partitions.

        Args:
            group: its id.
            partitions: a topic's name stands for all of its partitions.

        Raises:
            KafkaError: GROUP_SUBSCRIBED_TO_TOPIC while a member reads the topic; otherwise naming the partition.
            ConfigError: `group` or `partitions` mean nothing.
        """
        self._network.run(self._core.delete_group_offsets(group, partitions))

    def group_lags(
        self, groups: arguments.Names | None = None, *, topics: arguments.Names = (), members: bool = False
    ) -> list[GroupLag]:
        """How far groups are behind, by name: classic ones, those of KIP-848 and, from their start offsets, share
        groups.

        An offset counts as soon as it is committed, also one that an open transaction would replace. Partitions end
        where the client's isolation says.

        Args:
            groups: one or several; None takes all; a group that is deleted meanwhile is left out.
            topics: only of these; none takes all.
            members: whether to find who has which partition; partitions without an offset are then told of too.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND naming a group that does not exist; brokers cannot list groups.
            ConnectError, ...: a broker does not tell which groups it has.
        """
        return self._network.run(self._core.group_lags(groups, topics=topics, members=members))

    def partition_ends(self, partitions: arguments.TopicsOrPartitions) -> dict[TopicPartition, PartitionEnd]:
        """Where partitions end, in the client's isolation level; for those where it cannot be told, why.

        Args:
            partitions: a topic's name stands for all of its partitions.

        Raises:
            ConnectError, ...: no broker tells which topics there are.
        """
        return self._network.run(self._core.partition_ends(partitions))

    def list_transactions(
        self, *, states: arguments.Names = (), producer_ids: int | Sequence[int] = (), longer_than_ms: int = -1
    ) -> list[TransactionListing]:
        """Every transactional id, by name.

        Args:
            states: only those in these states, such as "Ongoing".
            producer_ids: only those of these producers.
            longer_than_ms: only transactions that have been open for longer; needs Kafka 3.8.

        Raises:
            KafkaError: every broker refuses. PartlyRefusedError: some refuse, are away or too old; both its `refused`
                and its `succeeded` are by node id. UnsupportedVersionError: all are too old.
        """
        return self._network.run(
            self._core.list_transactions(states=states, producer_ids=producer_ids, longer_than_ms=longer_than_ms)
        )

    def describe_transactions(self, transactional_ids: arguments.Names) -> dict[str, TransactionDescription]:
        """The states of transactional ids, and the partitions of their open transactions.

        Args:
            transactional_ids: one or several.

        Raises:
            KafkaError: TRANSACTIONAL_ID_NOT_FOUND naming one that does not exist, or another refusal.
            ConfigError: `transactional_ids` are none.
        """
        return self._network.run(self._core.describe_transactions(transactional_ids))

    def describe_producers(self, partitions: arguments.TopicsOrPartitions) -> dict[TopicPartition, list[ProducerState]]:
        """The active producers of partitions; those with an open transaction keep the last stable offset back.

        Args:
            partitions: a topic's name stands for all of its partitions.

        Raises:
            KafkaError: naming the partition. UnsupportedVersionError: a broker is older than Kafka 2.8.
            ConfigError: `partitions` mean nothing.
        """
        return self._network.run(self._core.describe_producers(partitions))

    def abort_transaction(
        self, partition: tuple[str, int], producer_id: int, producer_epoch: int, coordinator_epoch: int = 0
    ) -> None:
        """Aborts a hanging transaction in one partition: one that its coordinator does not know any more (KIP-664).

        A transaction that its coordinator does know is ended by `fence_producers`.

        Args:
            partition: (topic, partition).
            producer_id, producer_epoch, coordinator_epoch: as `describe_producers` tells them; a coordinator epoch of
                -1 there is 0 here.

        Raises:
            KafkaError: naming the partition; INVALID_PRODUCER_EPOCH for a producer that has moved on.
        """
        self._network.run(self._core.abort_transaction(partition, producer_id, producer_epoch, coordinator_epoch))

    def fence_producers(self, transactional_ids: arguments.Names) -> None:
        """Aborts the open transactions of transactional ids, and fences the producers that opened them.

        Args:
            transactional_ids: one or several.

        Raises:
            KafkaError: naming the transactional id. ConfigError: `transactional_ids` are none.
        """
        self._network.run(self._core.fence_producers(transactional_ids))
