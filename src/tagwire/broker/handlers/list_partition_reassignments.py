"""ListPartitionReassignments (key 46): list the partitions that are moving to other brokers.

Version 0. There is one broker: none ever is. Source: KIP-455.
"""

from __future__ import annotations

from tagwire import messages
from tagwire.broker.registry import Call, handles

Request = messages.ListPartitionReassignmentsRequest
Response = messages.ListPartitionReassignmentsResponse


@handles(Request, versions="0-0")
async def list_partition_reassignments(call: Call[Request]) -> Response:
    return Response(error_message=None, topics=[])
