"""AsyncAdmin: looks after a cluster, for tasks."""

from __future__ import annotations

from tagwire.client.admin.admin import Admin
from tagwire.client.admin.core import AdminCore
from tagwire.client.aio.client import AsyncClient
from tagwire.client.aio.core_method import awaited
from tagwire.client.aio.owning import AsyncClientOwner
from tagwire.client.config import Bootstrap
from tagwire.client.metrics import MetricValues


class AsyncAdmin(AsyncClientOwner):
    """Looks after a cluster, for the tasks of one event loop: every call of `tagwire.client.Admin`, awaited.

        async with AsyncAdmin("kafka-1:9092") as admin:
            await admin.create_topics([NewTopic("flights", num_partitions=4)])

    Args:
        client: a client, which stays open, or bootstrap addresses, "HOST:PORT,HOST:PORT".
    """

    def __init__(self, client: AsyncClient | Bootstrap) -> None:
        super().__init__(client)
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

    def metrics(self) -> MetricValues:
        """What the client measures, whose calls these are: as `Admin.metrics`."""
        return self._client._core.network.metrics.values("admin-client")
