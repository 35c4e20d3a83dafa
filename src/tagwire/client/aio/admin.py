"""AsyncAdmin: looks after a cluster, for tasks."""

from __future__ import annotations

from typing import Unpack

from tagwire.client.admin.admin import Admin
from tagwire.client.admin.core import AdminCore
from tagwire.client.aio.client import AsyncClient
from tagwire.client.aio.core_method import awaited
from tagwire.client.aio.owning import AsyncClientOwner
from tagwire.client.config import Bootstrap
from tagwire.client.metrics import MetricValues
from tagwire.client.security import SecurityOptions


class AsyncAdmin(AsyncClientOwner):
    """Looks after a cluster, for the tasks of one event loop: every call of `tagwire.client.Admin`, awaited.

        async with AsyncAdmin("kafka-1:9092") as admin:
            await admin.create_topics([NewTopic("flights", num_partitions=4)])

    Args:
        client: a client, which stays open, or bootstrap addresses, "HOST:PORT,HOST:PORT".
        security: the attributes of `tagwire.client.Security`, for the client that is made of addresses.

    Raises:
        ConfigError: an option is wrong.
    """

    def __init__(self, client: AsyncClient | Bootstrap, **security: Unpack[SecurityOptions]) -> None:
        super().__init__(client, security)
        self._core = AdminCore(self._client._core.network, self._client.fetch_settings.isolation)

    list_topics = awaited(AdminCore.list_topics, Admin.list_topics)
    create_topics = awaited(AdminCore.create_topics, Admin.create_topics)
    create_partitions = awaited(AdminCore.create_partitions, Admin.create_partitions)
    delete_topics = awaited(AdminCore.delete_topics, Admin.delete_topics)
    delete_records = awaited(AdminCore.delete_records, Admin.delete_records)
    describe_configs = awaited(AdminCore.describe_configs, Admin.describe_configs)
    alter_configs = awaited(AdminCore.alter_configs, Admin.alter_configs)
    list_groups = awaited(AdminCore.list_groups, Admin.list_groups)
    describe_groups = awaited(AdminCore.describe_groups, Admin.describe_groups)
    delete_groups = awaited(AdminCore.delete_groups, Admin.delete_groups)
    group_offsets = awaited(AdminCore.group_offsets, Admin.group_offsets)
    alter_group_offsets = awaited(AdminCore.alter_group_offsets, Admin.alter_group_offsets)
    delete_group_offsets = awaited(AdminCore.delete_group_offsets, Admin.delete_group_offsets)
    group_lags = awaited(AdminCore.group_lags, Admin.group_lags)
    partition_ends = awaited(AdminCore.partition_ends, Admin.partition_ends)
    list_transactions = awaited(AdminCore.list_transactions, Admin.list_transactions)
    describe_transactions = awaited(AdminCore.describe_transactions, Admin.describe_transactions)
    describe_producers = awaited(AdminCore.describe_producers, Admin.describe_producers)
    abort_transaction = awaited(AdminCore.abort_transaction, Admin.abort_transaction)
    fence_producers = awaited(AdminCore.fence_producers, Admin.fence_producers)
    describe_cluster = awaited(AdminCore.describe_cluster, Admin.describe_cluster)
    describe_log_dirs = awaited(AdminCore.describe_log_dirs, Admin.describe_log_dirs)
    list_config_resources = awaited(AdminCore.list_config_resources, Admin.list_config_resources)
    describe_replica_log_dirs = awaited(AdminCore.describe_replica_log_dirs, Admin.describe_replica_log_dirs)
    alter_replica_log_dirs = awaited(AdminCore.alter_replica_log_dirs, Admin.alter_replica_log_dirs)
    alter_partition_reassignments = awaited(
        AdminCore.alter_partition_reassignments, Admin.alter_partition_reassignments
    )
    list_partition_reassignments = awaited(AdminCore.list_partition_reassignments, Admin.list_partition_reassignments)
    elect_leaders = awaited(AdminCore.elect_leaders, Admin.elect_leaders)
    describe_features = awaited(AdminCore.describe_features, Admin.describe_features)
    update_features = awaited(AdminCore.update_features, Admin.update_features)
    describe_acls = awaited(AdminCore.describe_acls, Admin.describe_acls)
    create_acls = awaited(AdminCore.create_acls, Admin.create_acls)
    delete_acls = awaited(AdminCore.delete_acls, Admin.delete_acls)
    describe_user_scram_credentials = awaited(
        AdminCore.describe_user_scram_credentials, Admin.describe_user_scram_credentials
    )
    alter_user_scram_credentials = awaited(AdminCore.alter_user_scram_credentials, Admin.alter_user_scram_credentials)
    describe_client_quotas = awaited(AdminCore.describe_client_quotas, Admin.describe_client_quotas)
    alter_client_quotas = awaited(AdminCore.alter_client_quotas, Admin.alter_client_quotas)

    def metrics(self) -> MetricValues:
        """What the client measures, whose calls these are: as `Admin.metrics`."""
        return self._client._core.network.metrics.values("admin-client")
