"""ElectLeaders (key 43): elect leaders of partitions, each with its own outcome.

Versions 0-2; before version 1 the preferred replica, from then on also any that runs. A partition whose log is offline
has no other. For all partitions it tells of those alone that are not led as is asked for. Source: KIP-183, KIP-460.
"""

from __future__ import annotations

import asyncio

from tagwire import messages
from tagwire.broker.leadership import NO_LEADER
from tagwire.broker.partition import Partition
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error, KafkaError, StorageError

Request = messages.ElectLeadersRequest
Response = messages.ElectLeadersResponse

PREFERRED, UNCLEAN = 0, 1
NO_OTHER = {PREFERRED: Error.PREFERRED_LEADER_NOT_AVAILABLE, UNCLEAN: Error.ELIGIBLE_LEADERS_NOT_AVAILABLE}
"""By the kind of election."""

NOT_MEANT = (Error.ELECTION_NOT_NEEDED, Error.UNKNOWN_TOPIC_OR_PARTITION)
"""Of all partitions those that others have changed or deleted by their turn."""

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
            await _elect(call, topic, index)
        except KafkaError as error:
            if call.request.topic_partitions is None and error.error in NOT_MEANT:
                continue
            result.error_code, result.error_message = error.code, error.message
        results.setdefault(topic, []).append(result)
    return Response(
        replica_election_results=[
            Response.ReplicaElectionResult(topic=topic, partition_result=found) for topic, found in results.items()
        ]
    )


def _requested(call: Call[Request]) -> list[tuple[str, int]]:
    if call.request.topic_partitions is None:
        unclean = call.request.election_type == UNCLEAN
        return [(one.topic, one.index) for one in call.broker.topics.partitions() if _needs_election(one, unclean)]
    requested = ((topic.topic, index) for topic in call.request.topic_partitions for index in topic.partitions)
    return list(dict.fromkeys(requested))


def _needs_election(partition: Partition, unclean: bool) -> bool:
    leadership = partition.leadership
    if partition.log.is_offline or leadership.leader == NO_LEADER:
        return True
    return not unclean and leadership.leader != leadership.replicas[0]


async def _elect(call: Call[Request], topic: str, index: int) -> None:
    partition: Partition | None = call.broker.topics.partition(topic, index)
    if partition is None:
        raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {index} of topic {topic}")
    if partition.log.is_offline:
        problem = f"partition {index} of topic {topic} is offline, and there is no other replica"
        raise KafkaError(NO_OTHER[call.request.election_type], problem)
    try:
        await call.broker.controller.elect(partition, unclean=call.request.election_type == UNCLEAN)
    except StorageError as error:
        raise KafkaError(Error.KAFKA_STORAGE_ERROR, str(error)) from error
