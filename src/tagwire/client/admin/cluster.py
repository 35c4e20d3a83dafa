"""The cluster: its brokers, its controller."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tagwire import messages
from tagwire.client.admin.asking import Asker, Outcome
from tagwire.client.metadata import Node, each_once

_ADDS_FENCED_FROM = 2


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


class Cluster(Asker):
    """The cluster itself."""

    def describe_cluster(self) -> ClusterDescription:
        """The cluster's id, controller and brokers, fenced ones included where brokers tell of them.

        Brokers before Kafka 2.8 have no DescribeCluster; Metadata says the same of them.

        Raises:
            KafkaError: the question is refused. ConnectError, ...: nobody can be asked.
        """

        def ask(left: list[str], deadline: float) -> Iterator[Outcome]:
            connection = self._network.connection(None, deadline)
            kind = messages.DescribeClusterRequest
            if kind.api_key not in connection.ranges:
                known = self._network.refresh([], deadline)
                brokers = {node.id: BrokerDescription(node) for node in known.brokers.values()}
                yield Outcome("cluster", 0, value=ClusterDescription(known.cluster_id, known.controller_id, brokers))
                return
            fenced = connection.version(kind.api_key) >= _ADDS_FENCED_FROM
            answer: Any = self._exchange(connection, kind(include_fenced_brokers=fenced), deadline)
            each_once((each.broker_id for each in answer.brokers), "broker")
            brokers = {
                each.broker_id: BrokerDescription(Node(each.broker_id, each.host, each.port), each.rack, each.is_fenced)
                for each in answer.brokers
            }
            found = ClusterDescription(answer.cluster_id, answer.controller_id, brokers)
            yield Outcome("cluster", answer.error_code, answer.error_message, found)

        found: ClusterDescription = self._settle(["cluster"], ask, "describe")["cluster"]
        return found
