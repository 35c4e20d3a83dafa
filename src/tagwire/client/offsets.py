"""ListOffsets: where partitions begin and end, and where a time lies in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tagwire import messages
from tagwire.client.config import ISOLATIONS, isolation_of
from tagwire.client.metadata import TopicPartition
from tagwire.client.retry import Retry, is_retriable
from tagwire.errors import Error, KafkaError, RemoteProtocolError, RequestTimeoutError, TagwireError
from tagwire.rpc.list_offsets import EARLIEST, LATEST

if TYPE_CHECKING:
    from tagwire.client.client import Client

NONE_THERE: Final = -1


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record at or after a time; the end of the partition where there is none.

    Attributes:
        milliseconds: since 1970 UTC.
    """

    milliseconds: int


def list_offsets(
    client: Client, wanted: Mapping[TopicPartition, int], deadline: float, isolation: str
) -> dict[TopicPartition, int]:
    """See `Client.list_offsets`. Partitions whose leader has moved are asked again until the deadline."""
    left = dict(wanted)
    found: dict[TopicPartition, int] = {}
    retry, level = Retry(deadline), ISOLATIONS[isolation_of(isolation)]
    while True:
        failed = _ask_leaders(client, left, found, deadline, level)
        left = {at: timestamp for at, timestamp in left.items() if at not in found}
        if not left:
            return {at: found[at] for at in wanted}
        client.forget({at.topic for at in left})
        retry.wait(failed or KafkaError(Error.UNKNOWN_SERVER_ERROR, f"no offset of {next(iter(left))} in the answer"))


def _ask_leaders(
    client: Client, wanted: Mapping[TopicPartition, int], found: dict[TopicPartition, int], deadline: float, level: int
) -> TagwireError | None:
    """One question to each leader, all on their way at once. Fills `found`; returns an error that is worth a retry."""
    failed: TagwireError | None = None
    asked = []
    for node, partitions in by_leader(client, wanted, deadline).items():
        try:
            link = client.link(node, deadline)
            questions = {at: wanted[at] for at in partitions}
            asked.append((link, questions, client.send(link, _request(questions, level), deadline)))
        except TagwireError as error:
            failed = _retriable(error)
    for link, questions, pending in asked:
        try:
            failed = _take(link.wait(pending, deadline), questions, found, link.broker) or failed
        except TagwireError as error:
            failed = _retriable(error)
    return failed


def by_leader(client: Client, partitions: Iterable[TopicPartition], deadline: float) -> dict[int, list[TopicPartition]]:
    """Partitions by the node that leads them. Waits for leaders that are missing; raises as `Client.leader`."""
    found: dict[int, list[TopicPartition]] = defaultdict(list)
    retry = Retry(deadline)
    for at in partitions:
        missing: KafkaError | None = None
        while True:
            try:
                found[client.leader(at, deadline)].append(at)
                break
            except KafkaError as error:
                if error.error is not Error.LEADER_NOT_AVAILABLE:
                    raise
                missing = error
                retry.wait(error)
            except RequestTimeoutError as error:
                raise missing or error from None  # the time was up while it was asked about once more
    return found


def _request(wanted: Mapping[TopicPartition, int], level: int) -> Any:
    kind = messages.ListOffsetsRequest
    topics: dict[str, list[Any]] = defaultdict(list)
    for at, timestamp in wanted.items():
        topics[at.topic].append(kind.ListOffsetsPartition(partition_index=at.partition, timestamp=timestamp))
    return kind(
        replica_id=-1,
        isolation_level=level,
        topics=[kind.ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
    )


def _take(
    response: Any, questions: Mapping[TopicPartition, int], found: dict[TopicPartition, int], broker: str
) -> TagwireError | None:
    failed: TagwireError | None = None
    for topic in response.topics:
        for partition in topic.partitions:
            at = TopicPartition(topic.name, partition.partition_index)
            if at not in questions or at in found:
                raise RemoteProtocolError(f"{broker} told an offset of {at}, which was not asked for, or twice")
            # Every partition has a first and a next offset; a record of some age it may have none.
            least = 0 if questions[at] in (EARLIEST, LATEST) else NONE_THERE
            if not partition.error_code and partition.offset < least:
                raise RemoteProtocolError(f"{broker} told offset {partition.offset} of {at}, which none can be")
            if partition.error_code:
                failed = _retriable(KafkaError(partition.error_code, f"offsets of partition {at}"))
            else:
                found[at] = partition.offset
    return failed


def _retriable(error: TagwireError) -> TagwireError:
    if not is_retriable(error):
        raise error
    return error
