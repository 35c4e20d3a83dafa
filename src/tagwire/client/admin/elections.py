"""Elections: give partitions another leader. Source: KIP-183, KIP-460."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tagwire import messages
from tagwire.client import arguments
from tagwire.client.admin.api_driver import AdminApi, ApiResult, ApiResults, by_topic
from tagwire.client.property_values import wrong
from tagwire.errors import Error, PartlyRefusedError
from tagwire.partitions import TopicPartition
from tagwire.rpc.version_gates import ELECT_LEADERS_UNCLEAN

PREFERRED: Final = "preferred"
ELECTION_TYPES: Final = {PREFERRED: 0, "unclean": 1}
"""Source: ElectionType."""


class Elections(AdminApi):
    """Elections of leaders in a cluster."""

    async def elect_leaders(
        self, election_type: str = PREFERRED, partitions: arguments.TopicsOrPartitions | None = None
    ) -> dict[TopicPartition, bool]:
        """As `Admin.elect_leaders`."""
        kind = messages.ElectLeadersRequest
        if not isinstance(election_type, str) or election_type not in ELECTION_TYPES:
            raise wrong("election_type", arguments.shown(election_type), " or ".join(ELECTION_TYPES))
        if partitions is None:
            known = await self._network.refresh(None, self._network.deadline())
            wanted = [
                TopicPartition(topic.name, index) for topic in known.topics.values() for index in topic.partitions
            ]
        else:
            wanted = await self._partitions("partitions", partitions)

        async def send(left: list[TopicPartition], deadline: float) -> ApiResults[TopicPartition, bool | None]:
            request = kind(
                election_type=ELECTION_TYPES[election_type],
                topic_partitions=[
                    kind.TopicPartitions(topic=topic, partitions=own) for topic, own in by_topic(left).items()
                ],
                timeout_ms=self._timeout_ms,
            )
            controller = await self._network.controller(deadline)
            if election_type != PREFERRED:
                self._require(controller, request.api_key, ELECT_LEADERS_UNCLEAN)
            response = await self._network.request(controller, request, deadline)
            if response.error_code:
                for at in left:
                    yield ApiResult(at, response.error_code)
                return
            for topic in response.replica_election_results:
                for each in topic.partition_result:
                    at, code = TopicPartition(topic.topic, each.partition_id), each.error_code
                    is_gone = partitions is None and code == Error.UNKNOWN_TOPIC_OR_PARTITION  # as of all there are
                    is_elected = None if is_gone else code != Error.ELECTION_NOT_NEEDED
                    yield ApiResult(at, code if is_elected else 0, each.error_message, is_elected)

        try:
            found = await self._drive(
                wanted, send, f"elect {election_type} leader of partition", changes=True, moves=False
            )
        except PartlyRefusedError as error:
            error.succeeded = _there(error.succeeded)
            raise
        finally:
            self._network.forget({at.topic for at in wanted})
        return _there(found)


def _there(found: Mapping[TopicPartition, bool | None]) -> dict[TopicPartition, bool]:
    """Those of partitions that are not gone."""
    return {at: is_elected for at, is_elected in found.items() if is_elected is not None}
