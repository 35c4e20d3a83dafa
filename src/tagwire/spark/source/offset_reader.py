"""What the driver asks the brokers while it plans a read: which partitions there are, and which offsets they hold.

Source: Spark's KafkaOffsetReaderAdmin.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from tagwire.errors import UNREACHABLE, ConfigError, Error, KafkaError
from tagwire.partitions import EARLIEST, LATEST, TopicPartition
from tagwire.spark.source.offset_limits import OffsetLimit, Offsets, TimestampLimit
from tagwire.spark.source.offsets import made_anew, named, resolve
from tagwire.spark.source.options import TopicOptions

if TYPE_CHECKING:
    from tagwire.client import Client

log = logging.getLogger(__name__)

Result = TypeVar("Result")
_NO_RECORD = -1
_COMMIT_AGAIN = 30.0
"""Seconds after which the same offsets are committed once more where a group refused them: Spark asks an idle stream
for its latest offset a hundred times a second."""


class OffsetReader:
    """The offsets of one read. Connects with the first request; a pickled copy connects anew.

    Attributes:
        topic_ids: of the selected topics (KIP-516) as they were asked about last; those that brokers tell.
        made_anew: a sentence for each topic that has had another id than when it was asked about before. Who has judged
            them takes them away: whoever asks again after an error finds them still.
    """

    def __init__(self, options: TopicOptions) -> None:
        self._options = options
        self._client: Client | None = None
        self._committed: Offsets = {}
        self._refused: tuple[Offsets, float] = {}, -math.inf
        self._said_unmatched = False
        self._missing: set[str] = set()
        self.topic_ids: dict[str, UUID] = {}
        self.made_anew: list[str] = []

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_client": None}

    def available_offsets(self, *, missing_ok: bool = False) -> tuple[Offsets, Offsets]:
        """Earliest and latest offset of every selected partition.

        With isolation.level=read_committed the latest is the last stable offset.

        Args:
            missing_ok: leaves out topics and partitions that are named and do not exist, with a warning.

        Raises:
            KafkaError: a topic or partition that is named does not exist or may not be read; the text names it.
            ConnectError, ...: brokers were away for as often as the options say.
        """

        def request() -> tuple[Offsets, Offsets]:
            partitions = self._partitions(missing_ok)
            while True:
                try:
                    earliest = self._offsets(dict.fromkeys(partitions, EARLIEST))
                    return earliest, self._offsets(dict.fromkeys(partitions, LATEST))
                except KafkaError as error:
                    if error.error is not Error.UNKNOWN_TOPIC_OR_PARTITION:
                        raise
                    # A topic was deleted since it was listed: it is no longer selected now, or an error that names it.
                    listed, partitions = partitions, self._partitions(missing_ok)
                    if partitions == listed:
                        raise

        return self._with_retries(request)

    def planned(self, plan: Callable[[Offsets, Offsets], Result]) -> Result:
        """What `plan` makes of the available offsets, which it asks more about: planned anew where a topic was deleted
        meanwhile that is not selected any more then. Raises as `available_offsets` and `plan`."""
        while True:
            earliest, latest = self.available_offsets()
            try:
                return plan(earliest, latest)
            except KafkaError as error:
                if (
                    error.error is not Error.UNKNOWN_TOPIC_OR_PARTITION
                    or self.available_offsets()[1].keys() == latest.keys()
                ):
                    raise

    def resolved(self, bound: OffsetLimit, option: str, earliest: Offsets, latest: Offsets) -> Offsets:
        """The offset that `bound` means for each partition: see `resolve`.

        Args:
            latest: is put forward to a record that is found behind it, which came after it was asked for.

        Raises:
            ConfigError: also where a partition has no record at or after a time and that is to be an error.
        """
        if not isinstance(bound, TimestampLimit):
            return resolve(bound, option, earliest, latest)
        times = bound.at if isinstance(bound.at, dict) else dict.fromkeys(latest, bound.at)
        found = self.fetch_timestamp_offsets(resolve(times, bound.option, times, latest))
        missing = sorted(at for at, offset in found.items() if offset == _NO_RECORD)
        if missing and not bound.else_latest:
            raise ConfigError(
                f"option {bound.option}: no record at or after that time in {named(missing)} "
                "(startingOffsetsByTimestampStrategy=latest starts at the end there)"
            )
        latest.update({at: max(offset, latest[at]) for at, offset in found.items()})
        return {at: latest[at] if offset == _NO_RECORD else offset for at, offset in found.items()}

    def fetch_timestamp_offsets(self, times: Mapping[TopicPartition, int]) -> Offsets:
        """The first record at or after a time (milliseconds) in each partition; -1 where there is none."""
        return self._with_retries(lambda: self._offsets(times))

    def commit(self, offsets: Offsets) -> None:
        """Commits `offsets` to the group of the options, if there is one and it does not stand there already.

        A failure is logged, not raised: the query goes on from its checkpoint, the group only shows its progress. The
        same offsets are then left alone for a while.
        """
        group = self._options.group
        if group is None or offsets == self._committed or not offsets:
            return
        refused, at = self._refused
        if offsets == refused and time.monotonic() - at < _COMMIT_AGAIN:
            return
        from tagwire.client import Admin
        from tagwire.errors import TagwireError

        try:
            Admin(self._connected()).alter_group_offsets(group, offsets)
        except TagwireError as error:
            log.warning("offsets could not be committed to group %s: %s", group, error)
            self._refused = dict(offsets), time.monotonic()
        else:
            self._committed = dict(offsets)

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _partitions(self, missing_ok: bool) -> list[TopicPartition]:
        """The partitions the options select, in order."""
        selection = self._options.selection
        names = [*selection.assign, *selection.subscribe]
        client = self._connected()
        topics = client.metadata(names or None).topics
        if not names:
            topics = {
                name: topic for name, topic in topics.items() if not topic.is_internal and selection.matches(name)
            }
            if not topics and not self._said_unmatched:
                self._said_unmatched = True
                log.warning("tagwire: option subscribePattern=%r: no topic has such a name now", selection.pattern)
        found: list[TopicPartition] = []
        for name, topic in topics.items():
            if topic.error:  # a topic that was just created is waited for
                if missing_ok and name in self._missing and topic.error is Error.UNKNOWN_TOPIC_OR_PARTITION:
                    continue
                try:
                    topic = client.topic(name)
                except KafkaError as error:
                    if not missing_ok or error.error is not Error.UNKNOWN_TOPIC_OR_PARTITION:
                        raise
                    log.warning("left out: %s", error)
                    self._missing.add(name)
                    continue
            self._missing.discard(name)
            self._note_id(name, topic.topic_id)
            for index in selection.assign.get(name, ()):
                if index not in topic.partitions and not missing_ok:
                    has = f"topic {name!r} has {len(topic.partitions)} partitions"
                    raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"partition {name}-{index}: {has}")
            chosen = selection.assign.get(name, tuple(topic.partitions))
            found += [TopicPartition(name, index) for index in chosen if index in topic.partitions]
        return sorted(found)

    def _note_id(self, topic: str, topic_id: UUID) -> None:
        known = self.topic_ids.get(topic, topic_id)
        if topic_id.int:
            self.topic_ids[topic] = topic_id
            if known != topic_id:
                self.made_anew.append(made_anew(topic, known, topic_id))

    def _offsets(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        if not wanted:
            return {}
        return self._connected().list_offsets(dict(wanted))

    def _with_retries(self, request: Callable[[], Result]) -> Result:
        for left in range(self._options.retries, 0, -1):
            try:
                return request()
            except UNREACHABLE as error:
                log.warning("%s; trying again, %d more times at most", error, left)
                self.close()
                time.sleep(self._options.retry_seconds)
        return request()

    def _connected(self) -> Client:
        if self._client is None:
            from tagwire.client import Client

            self._client = Client.from_properties(self._options.client)
        return self._client
