"""ElectLeaders (key 43): elect leaders of partitions, each with its own outcome.

Versions 0-2; before version 1 the preferred replica, from then on also any that is there. The one broker leads every
partition (ELECTION_NOT_NEEDED) but those whose log is offline, for which there is no other. For all partitions
it tells of those alone. Source: KIP-183, KIP-460.
"""

from __future__ import annotations

import asyncio

from tagwire import messages
from tagwire.broker.partition import Partition
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error, KafkaError

Request = messages.ElectLeadersRequest
Response = messages.ElectLeadersResponse

NO_OTHER = {0: Error.PREFERRED_LEADER_NOT_AVAILABLE, 1: Error.ELIGIBLE_LEADERS_NOT_AVAILABLE}
"""By the kind of election."""

PARTITIONS_AT_A_TIME = 1000


@handles(Request, versions="0-2")
async def elect_leaders(call: Call[Request]) -> Response:
    if call.request.election_type not in NO_OTHER:
        return Response(error_code=Error.INVALID_REQUEST)
    results: dict[str, list[Response.PartitionResult]] = {}
    for number, (topic, index) in enumerate(_requested(call)):
        if number % PARTITIONS_AT_A_TIME == 0:
            await asyncio.sleep(0)  # other clients come in between
        result = Response.PartitionResult(partition_id=index, error_message=None)
        try:
            _elect(call, topic, index)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
        results.setdefault(topic, []).append(result)
    return Response(
        replica_election_results=[
            Response.ReplicaElectionResult(topic=topic, partition_result=found) for topic, found in results.items()
        ]
    )


def _requested(call: Call[Request]) -> list[tuple[str, int]]:
    if call.request.topic_partitions is None:
        return [(one.topic, one.index) for one in call.broker.topics.partitions() if one.log.is_offline]
    requested = ((topic.topic, index) for topic in call.request.topic_partitions for index in topic.partitions)
    return list(dict.fromkeys(requested))


def _elect(call: Call[Request], topic: str, index: int) -> None:
    partition: Partition | None = call.broker.topics.partition(topic, index)
    if partition is None:
        raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {index} of topic {topic}")
    if partition.log.is_offline:
        problem = f"partition {index} of topic {topic} is offline, and there is no other replica"
        raise KafkaError(NO_OTHER[call.request.election_type], problem)
    raise KafkaError(Error.ELECTION_NOT_NEEDED, f"broker {call.broker.node_id} leads partition {index} of {topic}")
