"""Fetch sessions (KIP-227), without the connection: a broker remembers what is fetched, and is told only changes.

A session begins with a full request (epoch 0). Where the broker keeps one, its response has an id; later requests name
the id and the next epoch, the partitions that are new or wanted from another offset, and those no longer wanted, and
responses hold only the partitions with something to tell. A broker that keeps no sessions, or is too old for them,
responds with id 0: every request is a full one then. For a single partition no session is begun: it would save nothing,
and keep another reader from having one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import UUID

from tagwire import messages
from tagwire.client.config import ISOLATIONS, FetchSettings
from tagwire.client.metadata import NO_TOPIC_ID
from tagwire.errors import Error, RemoteProtocolError
from tagwire.partitions import TopicPartition
from tagwire.rpc.version_gates import FETCH_DIVERGING_EPOCH, FETCH_RACK, FETCH_TOPIC_IDS

NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
LAST_EPOCH: Final = -1
MAX_EPOCH: Final = 2**31 - 1

# What a broker says of a session, not of partitions: the next request begins another one.
REFUSALS: Final = frozenset(
    {Error.FETCH_SESSION_ID_NOT_FOUND, Error.INVALID_FETCH_SESSION_EPOCH, Error.FETCH_SESSION_TOPIC_ID_ERROR}
)


class Wanted(NamedTuple):
    """What is wanted of one partition: from which offset on, by which knowledge of its topic and leader, after a record
    of which leader epoch."""

    offset: int
    leader_epoch: int = -1
    topic_id: UUID = NO_TOPIC_ID
    last_fetched_epoch: int = -1


class FetchSession:
    """The session with one broker: `request`, then `take` its response, in turn; `lost` where there is none.

    Kafka's FetchSessionHandler is the model.
    """

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self._by_id = False
        self._known: dict[TopicPartition, Wanted] = {}

    @property
    def is_open(self) -> bool:
        """Whether the broker keeps a session."""
        return self._id != NO_SESSION

    @property
    def is_new(self) -> bool:
        """Whether the next request is a full one."""
        return self._epoch == FIRST_EPOCH

    def request(
        self, wanted: Mapping[TopicPartition, Wanted], version: int, settings: FetchSettings, rack: str = ""
    ) -> messages.FetchRequest:
        """The request for all of `wanted`, in this order.

        Args:
            version: that it will be sent at.
            rack: that the broker is told of; it may name a replica near it instead of giving records.
        """
        by_id = version >= FETCH_TOPIC_IDS
        if by_id != self._by_id:
            self.lost()
        self._by_id = by_id
        kind = messages.FetchRequest
        changed: Mapping[TopicPartition, Wanted] = wanted
        gone: dict[TopicPartition, Wanted] = {}
        if self._epoch != FIRST_EPOCH:
            known = self._known
            changed = {partition: one for partition, one in wanted.items() if known.get(partition) != one}
            gone = {
                partition: one
                for partition, one in known.items()
                if partition not in wanted or (by_id and wanted[partition].topic_id != one.topic_id)
            }
        self._known = dict(wanted)
        has_last_epoch = version >= FETCH_DIVERGING_EPOCH
        topics: dict[tuple[str, int], messages.FetchRequest.FetchTopic] = {}
        for partition, one in changed.items():
            key = self._topic(partition, one)
            topic = topics.get(key)
            if topic is None:
                topic = topics[key] = kind.FetchTopic(topic=key[0], topic_id=one.topic_id if by_id else NO_TOPIC_ID)
            topic.partitions.append(
                kind.FetchPartition(
                    partition=partition.partition,
                    fetch_offset=one.offset,
                    current_leader_epoch=one.leader_epoch,
                    last_fetched_epoch=one.last_fetched_epoch if has_last_epoch else -1,
                    partition_max_bytes=settings.max_partition_bytes,
                )
            )
        forgotten: dict[tuple[str, int], messages.FetchRequest.ForgottenTopic] = {}
        for partition, one in gone.items():
            key = self._topic(partition, one)
            left = forgotten.get(key)
            if left is None:
                topic_id = one.topic_id if by_id else NO_TOPIC_ID
                left = forgotten[key] = kind.ForgottenTopic(topic=key[0], topic_id=topic_id)
            left.partitions.append(partition.partition)
        return kind(
            max_wait_ms=settings.max_wait_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.max_bytes,
            isolation_level=ISOLATIONS[settings.isolation],
            rack_id=rack if version >= FETCH_RACK else "",
            session_id=self._id,
            session_epoch=self._epoch if self._id != NO_SESSION or len(wanted) > 1 else LAST_EPOCH,
            topics=list(topics.values()),
            forgotten_topics_data=list(forgotten.values()),
        )

    def take(
        self, response: messages.FetchResponse
    ) -> list[tuple[TopicPartition, messages.FetchResponse.PartitionData]]:
        """The partitions of a response without an error code.

        Raises RemoteProtocolError: one was not requested, or is told of twice; the session is lost then.
        """
        by_id = self._by_id
        names = {one.topic_id.int: partition.topic for partition, one in self._known.items()} if by_id else {}
        found: list[tuple[TopicPartition, messages.FetchResponse.PartitionData]] = []
        told: set[TopicPartition] = set()
        for topic in response.responses:
            name = (names.get(topic.topic_id.int) or str(topic.topic_id)) if by_id else topic.topic
            for partition in topic.partitions:
                topic_partition = TopicPartition(name, partition.partition_index)
                if topic_partition not in self._known or topic_partition in told:
                    self.lost()
                    raise RemoteProtocolError(f"{topic_partition} twice, or not requested")
                told.add(topic_partition)
                found.append((topic_partition, partition))
        if self._epoch == FIRST_EPOCH:
            self._id = response.session_id
            whole = len(told) == len(self._known)
            # Of a partition that a full response leaves out, a session would never tell again.
            self._epoch = FIRST_EPOCH + 1 if self.is_open and whole else FIRST_EPOCH
        elif response.session_id != self._id:
            self._id, self._epoch = NO_SESSION, FIRST_EPOCH
        else:
            self._epoch = 1 if self._epoch == MAX_EPOCH else self._epoch + 1
        return found

    def refused(self, error: Error) -> None:
        """The broker has no such session any more, or has lost count: another one begins."""
        self.lost()
        if error is Error.FETCH_SESSION_ID_NOT_FOUND:
            self._id = NO_SESSION

    def lost(self) -> None:
        """Nobody knows what the broker has taken: the next request ends the session and begins another one."""
        self._epoch = FIRST_EPOCH

    def end(self) -> messages.FetchRequest:
        """The request that ends the session without beginning another one."""
        session, self._id, self._epoch = self._id, NO_SESSION, FIRST_EPOCH
        return messages.FetchRequest(session_id=session, session_epoch=LAST_EPOCH)

    def _topic(self, partition: TopicPartition, one: Wanted) -> tuple[str, int]:
        """What names the topic of a partition, its name or the number of its id."""
        return ("", one.topic_id.int) if self._by_id else (partition.topic, 0)
