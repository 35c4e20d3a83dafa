"""Brokers that tell an older metadata than there is, as those do that have not heard of the latest change yet.

The nodes of a simulated cluster share what they know, so this is made of their answers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tagwire.errors import Error
from tagwire.rpc.version_gates import METADATA_NULLABLE_TOPIC_NAME


def older(topic: str, partitions: int) -> Callable[[Any], Awaitable[Any]]:
    """Answers to Metadata of who knows only so many partitions of a topic, or with 0 nothing of it."""

    async def act(call: Any) -> Any:
        response = await call.proceed()
        by_id = {asked.topic_id for asked in call.request.topics or () if asked.name is None}
        kept = []
        for told in response.topics:
            if told.name == topic:
                told.partitions = [each for each in told.partitions if each.partition_index < partitions]
                if not partitions and call.request.topics is None:
                    continue
                if not partitions and told.topic_id in by_id:
                    told.name, told.error_code = (
                        (None if call.version >= METADATA_NULLABLE_TOPIC_NAME else ""),
                        Error.UNKNOWN_TOPIC_ID,
                    )
                elif not partitions:
                    told.error_code = Error.UNKNOWN_TOPIC_OR_PARTITION
            kept.append(told)
        response.topics = kept
        return response

    return act
