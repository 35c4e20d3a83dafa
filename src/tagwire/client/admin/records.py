"""Records: delete those before an offset."""

from __future__ import annotations

from collections.abc import Mapping

from tagwire import messages
from tagwire.client import arguments
from tagwire.client.admin.api_driver import AdminApi, ApiResult, ApiResults
from tagwire.client.property_values import wrong
from tagwire.errors import RemoteProtocolError
from tagwire.partitions import TopicPartition


class Records(AdminApi):
    """Records of a cluster."""

    async def delete_records(self, before: Mapping[arguments.PartitionT, int]) -> dict[TopicPartition, int]:
        """As `Admin.delete_records`."""
        kind = messages.DeleteRecordsRequest
        wanted = arguments.by_topic_partition("before", before, "100")
        offsets = {partition: _offset(partition, given) for partition, given in wanted.items()}

        async def delete(
            node: int, topics: dict[str, list[int]], deadline: float
        ) -> list[ApiResult[TopicPartition, int]]:
            request = kind(
                topics=[
                    kind.DeleteRecordsTopic(
                        name=topic,
                        partitions=[
                            kind.DeleteRecordsPartition(
                                partition_index=index, offset=offsets[TopicPartition(topic, index)]
                            )
                            for index in partitions
                        ],
                    )
                    for topic, partitions in topics.items()
                ],
                timeout_ms=self._timeout_ms,
            )
            results: list[ApiResult[TopicPartition, int]] = []
            for told in (await self._request(node, request, deadline)).topics:
                for found in told.partitions:
                    partition = TopicPartition(told.name, found.partition_index)
                    if not found.error_code and found.low_watermark < 0:
                        raise RemoteProtocolError(f"{partition} is said to begin at offset {found.low_watermark}")
                    results.append(ApiResult(partition, found.error_code, value=found.low_watermark))
            return results

        async def send(left: list[TopicPartition], deadline: float) -> ApiResults[TopicPartition, int]:
            leaders = await self._by_leader(left, deadline)
            async for result in self._beside([delete(node, topics, deadline) for node, topics in leaders]):
                yield result

        return await self._drive(list(offsets), send, "delete records of partition")


def _offset(partition: TopicPartition, given: object) -> int:
    offset = arguments.whole(given)
    if offset is None:
        raise wrong(f"before: {partition}", arguments.shown(given), "an offset, or -1 for all records")
    return offset
