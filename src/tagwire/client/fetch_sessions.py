"""Fetch sessions (KIP-227), without the connection: a broker remembers what is asked of it, and is told only changes.

A session begins with a full request (epoch 0). Where the broker keeps one, its answer has an id; later requests name
the id and the next epoch, the partitions that are new or wanted from another offset, and those no longer wanted, and
answers hold only the partitions with something to tell. A broker that keeps no sessions, or is too old for them,
answers with id 0: every request is a full one then. For a single partition no session is begun: it would save nothing,
and take the place of another reader's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from tagwire import messages
from tagwire.client.metadata import NO_TOPIC_ID
from tagwire.errors import Error, RemoteProtocolError
from tagwire.partitions import TopicPartition
from tagwire.rpc.version_gates import FETCH_TOPIC_IDS

# From this version on requests and answers name topics by their ids alone (KIP-516).

NO_SESSION: Final = 0
FIRST_EPOCH: Final = 0
LAST_EPOCH: Final = -1
MAX_EPOCH: Final = 2**31 - 1

# What a broker says of a session, not of partitions: the next request begins another one.
REFUSALS: Final = frozenset(
    {Error.FETCH_SESSION_ID_NOT_FOUND, Error.INVALID_FETCH_SESSION_EPOCH, Error.FETCH_SESSION_TOPIC_ID_ERROR}
)


class Wanted(NamedTuple):
    """What is asked of one partition: from which offset on, by which knowledge of its topic and leader."""

    offset: int
    leader_epoch: int = -1
    topic_id: UUID = NO_TOPIC_ID


class FetchSession:
    """The session with one broker: `request`, then `take` its answer, in turn; `lost` where there is no answer."""

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
        self, wanted: Mapping[TopicPartition, Wanted], version: int, max_partition_bytes: int, **fields: Any
    ) -> Any:
        """The request for all of `wanted`, in this order.

        Args:
            version: that it will be sent at.
            fields: the other fields of the request.
        """
        by_id = version >= FETCH_TOPIC_IDS
        if by_id != self._by_id:
            self.lost()
        self._by_id = by_id
        kind = messages.FetchRequest
        if self.is_new:
            changed, gone = dict(wanted), {}
        else:
            changed = {at: one for at, one in wanted.items() if self._known.get(at) != one}
            gone = {
                at: one
                for at, one in self._known.items()
                if at not in wanted or (by_id and wanted[at].topic_id != one.topic_id)
            }
        self._known = dict(wanted)
        epoch = self._epoch if self.is_open or len(wanted) > 1 else LAST_EPOCH

        def partition(at: TopicPartition, one: Wanted) -> Any:
            return kind.FetchPartition(
                partition=at.partition,
                fetch_offset=one.offset,
                current_leader_epoch=one.leader_epoch,
                partition_max_bytes=max_partition_bytes,
            )

        return kind(
            session_id=self._id,
            session_epoch=epoch,
            topics=[
                kind.FetchTopic(**name, partitions=partitions)
                for name, partitions in self._by_topic(changed, partition)
            ],
            forgotten_topics_data=[
                kind.ForgottenTopic(**name, partitions=partitions)
                for name, partitions in self._by_topic(gone, lambda at, _: at.partition)
            ],
            **fields,
        )

    def take(self, response: Any) -> list[tuple[TopicPartition, Any]]:
        """The partitions of an answer without an error code.

        Raises RemoteProtocolError: one was not asked for, or is told of twice; the session is lost then.
        """
        names = {one.topic_id: at.topic for at, one in self._known.items()} if self._by_id else {}
        found: list[tuple[TopicPartition, Any]] = []
        told: set[TopicPartition] = set()
        for topic in response.responses:
            name = names.get(topic.topic_id, str(topic.topic_id)) if self._by_id else topic.topic
            for partition in topic.partitions:
                at = TopicPartition(name, partition.partition_index)
                if at not in self._known or at in told:
                    self.lost()
                    raise RemoteProtocolError(f"{at}, which was not asked for, or twice")
                told.add(at)
                found.append((at, partition))
        if self.is_new:
            self._id = response.session_id
            whole = len(told) == len(self._known)
            # Of a partition that a full answer leaves out, a session would never tell again.
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

    def end(self, **fields: Any) -> Any:
        """The request that ends the session without beginning another one."""
        session, self._id, self._epoch = self._id, NO_SESSION, FIRST_EPOCH
        return messages.FetchRequest(session_id=session, session_epoch=LAST_EPOCH, **fields)

    def _by_topic(
        self, partitions: Mapping[TopicPartition, Wanted], entry: Callable[[TopicPartition, Wanted], Any]
    ) -> list[tuple[dict[str, Any], list[Any]]]:
        """(the fields that name a topic, its entries), in the order in which the topics come first."""
        topics: dict[Any, list[Any]] = {}
        for at, one in partitions.items():
            topics.setdefault(one.topic_id if self._by_id else at.topic, []).append(entry(at, one))
        return [({"topic_id" if self._by_id else "topic": name}, entries) for name, entries in topics.items()]
