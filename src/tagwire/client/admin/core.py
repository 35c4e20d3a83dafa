"""What an Admin does, as coroutines of the client's core: the blocking face and any other one run these."""

from __future__ import annotations

from tagwire.client.admin.acls import Acls
from tagwire.client.admin.cluster import Cluster
from tagwire.client.admin.configs import Configs
from tagwire.client.admin.elections import Elections
from tagwire.client.admin.features import ClusterFeatures
from tagwire.client.admin.group_offsets import GroupOffsets
from tagwire.client.admin.lags import Lags
from tagwire.client.admin.log_dirs import LogDirs
from tagwire.client.admin.quotas import Quotas
from tagwire.client.admin.reassignments import Reassignments
from tagwire.client.admin.records import Records
from tagwire.client.admin.scram_users import ScramUsers
from tagwire.client.admin.topics import Topics
from tagwire.client.admin.transactions import Transactions


class AdminCore(
    Topics,
    Records,
    Configs,
    Lags,
    GroupOffsets,
    Transactions,
    Cluster,
    LogDirs,
    Reassignments,
    Elections,
    ClusterFeatures,
    Acls,
    ScramUsers,
    Quotas,
):
    """Every call of `Admin`, under the same name, without a socket, a thread or a clock of its own."""
