"""Fetches that a broker refuses."""

from __future__ import annotations

from typing import Any

from tagwire import messages
from tagwire.errors import Error


def fetch_error(error: Error) -> Any:
    """An action that refuses every partition that a request names."""

    def refuse(message: Any) -> Any:
        kind = messages.FetchResponse
        return kind(
            responses=[
                kind.FetchableTopicResponse(
                    topic=topic.topic,
                    topic_id=topic.topic_id,
                    partitions=[
                        kind.PartitionData(partition_index=partition.partition, error_code=error, high_watermark=-1)
                        for partition in topic.partitions
                    ],
                )
                for topic in message.topics
            ]
        )

    return refuse
