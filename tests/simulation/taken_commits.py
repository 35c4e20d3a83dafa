"""OffsetCommit requests that a coordinator takes: as whom a member has sent them, also those that it makes by itself.

What a member asked for in one generation may be sent in the next, and only the request tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tagwire.broker.registry import HANDLERS
from tagwire.spec.api_keys import ApiKey

from .history import History


@contextmanager
def taken_commits_noted(history: History) -> Iterator[None]:
    """Notes each in the history, for as long as it is entered."""
    served = HANDLERS[ApiKey.OFFSET_COMMIT]

    async def handler(call: Any) -> Any:
        response = await served.handler(call)
        request = call.request
        taken = {
            (topic.name, each.partition_index)
            for topic in response.topics
            for each in topic.partitions
            if not each.error_code
        }
        offsets = [
            [topic.name, each.partition_index, each.committed_offset]
            for topic in request.topics
            for each in topic.partitions
            if (topic.name, each.partition_index) in taken
        ]
        if request.member_id and offsets:
            history.note(
                "broker",
                "commit_taken",
                node=call.broker.node_id,
                group=request.group_id,
                member=request.member_id,
                generation=request.generation_id_or_member_epoch,
                offsets=offsets,
            )
        return response

    HANDLERS[ApiKey.OFFSET_COMMIT] = replace(served, handler=handler)
    try:
        yield
    finally:
        HANDLERS[ApiKey.OFFSET_COMMIT] = served
