"""CreatePartitions (key 37): give topics more partitions, each topic with its own outcome.

Versions 0-3. The count is of all partitions, old and new. Where replicas are assigned, each new partition is assigned
to this broker. With validate_only everything is checked and nothing created. Partitions are on the disk before the
response; those of a topic for which the time that the client gives is too short are not created (REQUEST_TIMED_OUT).
Source: KIP-195.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.deadlines import TIMED_OUT, deadline, is_over
from tagwire.broker.handlers.create_topics import check_assigned, check_named_once, named
from tagwire.broker.registry import Call, handles
from tagwire.errors import Error, KafkaError

Request = messages.CreatePartitionsRequest
Response = messages.CreatePartitionsResponse


@handles(Request, versions="0-3")
async def create_partitions(call: Call[Request]) -> Response:
    until = deadline(call.request)
    return Response(results=[await _result(call, wanted, times, until) for wanted, times in named(call.request.topics)])


async def _result(
    call: Call[Request], wanted: Request.CreatePartitionsTopic, times_named: int, until: float
) -> Response.CreatePartitionsTopicResult:
    topics = call.broker.topics
    try:
        if is_over(until):
            raise TIMED_OUT
        check_named_once(wanted, times_named)
        more = wanted.count - len(topics.check_more_partitions(wanted.name, wanted.count).partitions)
        _check_assignments(call, wanted, more)
        with call.broker.room_for(partitions=more):
            if not call.request.validate_only:
                await topics.add_partitions(wanted.name, wanted.count, until)
    except KafkaError as error:
        return Response.CreatePartitionsTopicResult(
            name=wanted.name, error_code=error.code, error_message=error.message
        )
    return Response.CreatePartitionsTopicResult(name=wanted.name)


def _check_assignments(call: Call[Request], wanted: Request.CreatePartitionsTopic, more: int) -> None:
    assigned = wanted.assignments
    if assigned is None:
        return
    if len(assigned) != more:
        problem = f"{len(assigned)} partitions are assigned, and {more} are new"
        raise KafkaError(Error.INVALID_REPLICA_ASSIGNMENT, problem)
    check_assigned(call.broker, assigned)
