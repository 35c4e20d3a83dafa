"""ListPartitionReassignments (key 46): tell which partitions are moving to other brokers.

Version 0. There is one broker: none ever is. Source: KIP-455.
"""

from __future__ import annotations

from typing import Any

from tagwire import messages
from tagwire.broker.served import Call, handles


@handles(messages.ListPartitionReassignmentsRequest, versions="0-0")
async def list_partition_reassignments(call: Call) -> Any:
    return messages.ListPartitionReassignmentsResponse(error_message=None, topics=[])
