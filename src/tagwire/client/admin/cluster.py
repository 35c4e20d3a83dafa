"""The cluster: its brokers, its controller."""

from __future__ import annotations

from dataclasses import dataclass

from tagwire import messages
from tagwire.client.admin.api_driver import AdminApi, ApiResult, ApiResults
from tagwire.client.metadata import Node, each_once
from tagwire.rpc.version_gates import DESCRIBE_CLUSTER_FENCED


@dataclass(frozen=True, slots=True)
class BrokerDescription:
    """A broker. `is_fenced`: it is registered, and not up to date enough to serve; only Kafka 4.0 and newer tell."""

    node: Node
    rack: str | None = None
    is_fenced: bool = False


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """A cluster. `controller` is a node id, -1 where none is known; in KRaft it is any broker."""

    cluster_id: str | None
    controller: int
    brokers: dict[int, BrokerDescription]


class Cluster(AdminApi):
    """The cluster itself."""

    async def describe_cluster(self) -> ClusterDescription:
        """As `Admin.describe_cluster`."""

        async def send(left: list[str], deadline: float) -> ApiResults[str, ClusterDescription]:
            connection = await self._network.connection(None, deadline)
            kind = messages.DescribeClusterRequest
            if kind.api_key not in connection.ranges:
                known = await self._network.refresh([], deadline)
                brokers = {node.id: BrokerDescription(node) for node in known.brokers.values()}
                yield ApiResult("cluster", 0, value=ClusterDescription(known.cluster_id, known.controller_id, brokers))
                return
            fenced = connection.version(kind.api_key) >= DESCRIBE_CLUSTER_FENCED
            request = kind(include_fenced_brokers=fenced)
            response = await self._network.request(connection, request, deadline)
            each_once((each.broker_id for each in response.brokers), "broker")
            brokers = {
                each.broker_id: BrokerDescription(Node(each.broker_id, each.host, each.port), each.rack, each.is_fenced)
                for each in response.brokers
            }
            found = ClusterDescription(response.cluster_id, response.controller_id, brokers)
            yield ApiResult("cluster", response.error_code, response.error_message, found)

        return (await self._drive(["cluster"], send, "describe"))["cluster"]
