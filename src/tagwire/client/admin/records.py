"""Records: delete those before an offset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tagwire import messages
from tagwire.client import arguments
from tagwire.client.admin.asking import Asker, Outcome
from tagwire.client.config import wrong
from tagwire.errors import RemoteProtocolError
from tagwire.partitions import TopicPartition


class Records(Asker):
    """Records of a cluster."""

    def delete_records(self, before: Mapping[arguments.PartitionT, int]) -> dict[TopicPartition, int]:
        """Deletes the records before an offset; -1 all that there are.

        Args:
            before: {(topic, partition): offset}.

        Returns:
            The first offset that each partition holds now.

        Raises:
            KafkaError: naming the partition; OFFSET_OUT_OF_RANGE for an offset that it has not reached.
            ConfigError: `before` means nothing.
        """
        kind = messages.DeleteRecordsRequest
        offsets = {
            at: _offset(at, given) for at, given in arguments.by_topic_partition("before", before, "100").items()
        }

        def ask(left: list[TopicPartition], deadline: float) -> Iterator[Outcome]:
            for connection, topics in self._by_leader(left, deadline):
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
                for topic in self._exchange(connection, request, deadline).topics:
                    for found in topic.partitions:
                        at = TopicPartition(topic.name, found.partition_index)
                        if not found.error_code and found.low_watermark < 0:
                            raise RemoteProtocolError(f"{at} is said to begin at offset {found.low_watermark}")
                        yield Outcome(at, found.error_code, value=found.low_watermark)

        return self._settle(list(offsets), ask, "delete records of partition")


def _offset(at: TopicPartition, given: object) -> int:
    offset = arguments.whole(given)
    if offset is None:
        raise wrong(f"before: {at}", arguments.shown(given), "an offset, or -1 for all records")
    return offset
