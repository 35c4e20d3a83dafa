"""Produce: batches to the leaders of their partitions, in order, tried again while that is worth it.

One request carries a batch of each of many partitions; several requests may be on their way to one leader. What an
error means to a numbered batch follows Kafka's producer; the rules of numbering itself are in `lanes`.

Nothing here waits for a broker: what is missing before a batch can go (its leader, the connection, a producer id) is
got beside (`tagwire.client.scheduling`), and only the batches that need it stay in their queues meanwhile.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from tagwire import messages
from tagwire.client.cluster import Cluster
from tagwire.client.config import ProduceSettings
from tagwire.client.metadata import NO_TOPIC_ID, nodes_of
from tagwire.client.producing.delivery import NO_OFFSET, NO_SEQUENCE, Batch, Identity
from tagwire.client.producing.gathering import Gathering
from tagwire.client.producing.lanes import Lane
from tagwire.client.producing.numbering import Numbering
from tagwire.client.producing.responses import NOT_APPENDED, OUT_OF_STEP, by_partition, counted, refusal_of
from tagwire.client.producing.thread import Alarm
from tagwire.client.producing.topics import Topics
from tagwire.client.retry import is_retriable, pause_before
from tagwire.client.scheduling import Tasks, Work
from tagwire.client.transport import Link, Pending, wait_any
from tagwire.errors import (
    EncodeError,
    Error,
    KafkaError,
    RemoteProtocolError,
    RequestTimeoutError,
    TagwireError,
    UnsupportedVersionError,
)
from tagwire.partitions import TopicPartition
from tagwire.rpc.dialects import say_dialect
from tagwire.rpc.version_gates import PRODUCE_TOPIC_IDS, PRODUCE_ZSTD
from tagwire.spec.api_keys import ApiKey

# Batches are put together into one request up to here; a larger batch goes alone.
REQUEST_BYTES: Final = 8 * 1024 * 1024


# A thread that has nothing to wait for looks around this often (seconds).
LONGEST_SLEEP: Final = 60.0

MAX_OFFSET: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    """A Produce request under way. `names` are the topics by what the answer calls them."""

    node: int
    link: Link
    pending: Pending
    batches: list[Batch]
    names: Mapping[Any, str]
    deadline: float


class Sender:
    """The work of a producer's thread, which is the only one to call it."""

    def __init__(
        self,
        cluster: Cluster,
        tasks: Tasks,
        settings: ProduceSettings,
        topics: Topics,
        gathering: Gathering,
        numbering: Numbering,
    ) -> None:
        self._cluster = cluster
        self._tasks = tasks
        self._settings = settings
        self._topics = topics
        self._gathering = gathering
        self._numbering = numbering
        self._lanes: dict[TopicPartition, Lane] = {}
        self._under_way: list[_Request] = []
        self._looked_at = 0.0
        self._goes_on = False

    # What the thread calls -----------------------------------------------------------------------------------------

    def step(self) -> None:
        """Takes the answers that are there and sends what can go."""
        self._collect()
        self._tasks.step()
        doom = self._numbering.doom
        for batch in self._gathering.take(time.monotonic(), everything=doom is not None):
            self._lane(batch.at).append(batch)
        if doom is not None:
            self._drop(doom)
        self._drop_expired()
        if self._topics.is_due and "topics" not in self._tasks:
            self._tasks.start("topics", self._topics.renew(), _leave_to_sending)
        self._goes_on = True
        while self._goes_on:
            self._goes_on = False
            self._send_round()
            if self._goes_on:
                self._collect()

    def wait(self, alarm: Alarm) -> None:
        """Until an answer has come, a request's time is up, or a batch may be sent."""
        if self._tasks.is_any_over or any(request.pending.done for request in self._under_way):
            return
        now = time.monotonic()
        times = [self._gathering.due(), self._tasks.until, now + LONGEST_SLEEP]
        times += [request.deadline for request in self._under_way]
        for lane in self._lanes.values():
            if lane.queue:
                head = lane.queue[0]
                times.append(self._expiry(head))
                if head.retry_at > self._looked_at:  # what could be sent then waits for answers to others
                    times.append(head.retry_at)
        wait_any([alarm, *{request.link for request in self._under_way} | self._tasks.links], min(times))

    def failed(self, error: BaseException) -> None:
        """Gives everything up."""
        reason = TagwireError(f"the producer broke down: {type(error).__name__}: {error}")
        self._gathering.refuse(reason)
        self._gathering.note(reason)
        self._gathering.decided([(batch, NO_OFFSET, reason) for batch in self._gathering.rest()])

    def close(self) -> None:
        """What is not sent by now is given up."""
        self._tasks.close()
        self._cluster.close()
        reason = TagwireError("the producer was closed before this was delivered")
        self._gathering.refuse(TagwireError("the producer is closed"))
        self._gathering.decided([(batch, NO_OFFSET, reason) for batch in self._gathering.rest()])

    # What callers ask of the thread --------------------------------------------------------------------------------

    def sequences(self) -> dict[TopicPartition, int]:
        """The next sequence number of each partition that has got any under the current identity."""
        identity = self._numbering.identity
        return {
            at: lane.next_sequence
            for at, lane in self._lanes.items()
            if lane.identity == identity and lane.is_empty and not lane.must_restart
        }

    def resume(self, identity: Identity, sequences: Mapping[TopicPartition, int]) -> None:
        """Goes on numbering where another producer left off."""
        for at, sequence in sequences.items():
            self._lane(at).resume(identity, sequence)

    # Sending -------------------------------------------------------------------------------------------------------

    def _lane(self, at: TopicPartition) -> Lane:
        lane = self._lanes.get(at)
        if lane is None:
            lane = self._lanes[at] = Lane(at)
        return lane

    def _send_round(self) -> None:
        """Sends at most one batch of each partition. Whatever may let others go now (one was sent or given up, or what
        they lacked was there at once) has another round follow."""
        ready = self._ready()
        if not ready:
            return
        if self._numbering.is_missing:
            deadline = self._deadline(ready)
            self._get("identity", lambda: self._numbering.ensure(deadline), lambda: self._ready())
            return
        by_node: dict[int, list[Batch]] = defaultdict(list)
        unled: dict[str, list[Batch]] = defaultdict(list)
        for batch in ready:
            partition = self._cluster.known_partition(batch.at)
            (unled[batch.at.topic] if partition is None else by_node[partition.leader]).append(batch)
        for node, found in by_node.items():
            self._send_to(node, found)
        for (
            topic,
            batches,
        ) in unled.items():  # last: where that fails, all of the topic are put off
            self._look_up(topic, batches)

    def _ready(self) -> list[Batch]:
        self._looked_at = now = time.monotonic()
        numbering = self._numbering
        for lane in self._lanes.values():
            for batch in lane.lost():
                self._give_up(batch, batch.last_error or TagwireError(f"{batch.at}: nobody knows if it is stored"))
        found = (lane.next_batch(now, numbering.window, numbering.identity) for lane in self._lanes.values())
        return [batch for batch in found if batch is not None]

    def _deadline(self, batches: Iterable[Batch]) -> float:
        return min(self._cluster.deadline(), *(self._expiry(batch) for batch in batches))

    def _get(self, key: Hashable, work: Callable[[], Work[None]], waiting: Callable[[], list[Batch]]) -> None:
        """Begins to get what batches lack, unless that is under way. Where it fails, those that are `waiting` by then
        are put off."""
        if key not in self._tasks:
            self._tasks.start(key, work(), lambda found, error: self._put_off_all(waiting(), _expected(error)))
            self._goes_on |= key not in self._tasks

    def _look_up(self, topic: str, batches: list[Batch]) -> None:
        """Begins to ask who leads the partitions of these batches of a topic."""

        def found(partitions: Any, error: Exception | None) -> None:
            failed = {} if partitions is None else partitions
            missing = _expected(error)
            for batch in self._ready():
                if batch.at.topic == topic:
                    refusal = missing or failed.get(batch.at.partition)
                    if isinstance(refusal, KafkaError) and refusal.error is Error.UNKNOWN_TOPIC_OR_PARTITION:
                        self._give_up(batch, refusal)  # which was waited for already
                    elif isinstance(refusal, TagwireError):
                        self._put_off(batch, refusal)

        key = "leaders", topic
        if key not in self._tasks:
            wanted = {batch.at.partition for batch in batches}
            self._tasks.start(key, self._cluster.partitions(topic, wanted, self._deadline(batches)), found)
            self._goes_on |= key not in self._tasks

    def _led_by(self, node: int) -> list[Batch]:
        """The batches that can go to a broker now."""
        led = ((batch, self._cluster.known_partition(batch.at)) for batch in self._ready())
        return [batch for batch, partition in led if partition is not None and partition.leader == node]

    def _send_to(self, node: int, batches: list[Batch]) -> None:
        free = self._settings.in_flight - sum(request.node == node for request in self._under_way)
        if free <= 0:
            return
        link = self._cluster.ready_link(node)
        if link is None:
            deadline = self._deadline(batches)
            self._get(("link", node), lambda: _done(self._cluster.link(node, deadline)), lambda: self._led_by(node))
            return
        link.node = node
        if link.quiet_until > time.monotonic():  # it asked to be left alone; others are not
            for batch in batches:
                batch.retry_at = link.quiet_until
            return
        if not link.has_room:
            return
        batches = self._announced(batches)
        groups = list(_groups(self._prepared(batches, link)))
        for group in groups[:free]:
            if not link.has_room:
                return
            self._send(node, link, group)

    def _announced(self, batches: list[Batch]) -> list[Batch]:
        """The batches whose partitions the transaction knows; it is told of the others."""
        unannounced = self._numbering.unannounced([batch.at for batch in batches])
        if unannounced:
            waiting = [batch for batch in batches if batch.at in unannounced]
            deadline = self._deadline(waiting)
            self._get(
                "partitions",
                lambda: self._numbering.announce(unannounced, deadline),
                lambda: [batch for batch in self._ready() if batch.at in unannounced],
            )
        return [batch for batch in batches if batch.at not in unannounced]

    def _prepared(self, batches: Iterable[Batch], link: Link) -> Iterator[Batch]:
        """The batches as they are to be sent; one that cannot be is given up."""
        for batch in batches:
            try:
                batch.encode()
                speaks = link.version(ApiKey.PRODUCE) if batch.compression == "zstd" else PRODUCE_ZSTD
                if speaks < PRODUCE_ZSTD:
                    raise UnsupportedVersionError(
                        f"{link.broker} serves Produce up to v{speaks}; zstd needs v{PRODUCE_ZSTD}"
                    )
            except (EncodeError, UnsupportedVersionError) as error:
                self._give_up(batch, error)
            else:
                yield batch

    def _send(self, node: int, link: Link, batches: list[Batch]) -> None:
        now = time.monotonic()
        # A batch that expires under way is not waited for any longer; what it stands with is tried again.
        deadline = max(now, self._deadline(batches))
        self._goes_on = True
        try:
            ids = {batch.at.topic: self._topic_id(batch.at.topic) for batch in batches}
            highest = None if NO_TOPIC_ID not in ids.values() else PRODUCE_TOPIC_IDS - 1
            version = self._numbering.produce_version(link, ApiKey.PRODUCE, highest)
            for batch in batches:
                lane = self._lanes[batch.at]
                lane.number(batch, transactional=self._numbering.transactional_id is not None)
                lane.sent(batch)
            message = self._message(batches, ids)
            say_dialect(message, self._settings.dialect, ApiKey.PRODUCE, version)
            pending = self._cluster.send(link, message, version)
        except TagwireError as error:
            self._put_off_all(batches, error)
            return
        names = {topic_id if version >= PRODUCE_TOPIC_IDS else name: name for name, topic_id in ids.items()}
        self._under_way.append(_Request(node, link, pending, batches, names, deadline))

    def _topic_id(self, name: str) -> UUID:
        topic = self._cluster.known_topic(name)
        return NO_TOPIC_ID if topic is None else topic.topic_id

    def _message(self, batches: list[Batch], ids: Mapping[str, Any]) -> Any:
        kind = messages.ProduceRequest
        topics: dict[str, list[Any]] = {}
        for batch in batches:
            partition = kind.PartitionProduceData(index=batch.at.partition, records=batch.data)
            topics.setdefault(batch.at.topic, []).append(partition)
        return kind(
            transactional_id=self._numbering.transactional_id,
            acks=self._settings.acks,
            timeout_ms=int(self._cluster.timeout * 1000),
            topic_data=[
                kind.TopicProduceData(name=name, topic_id=ids[name], partition_data=data)
                for name, data in topics.items()
            ],
        )

    # Answers -------------------------------------------------------------------------------------------------------

    def _collect(self) -> None:
        for link in {request.link for request in self._under_way}:
            link.poll()
        now = time.monotonic()
        for request in [request for request in self._under_way if request.pending.done or request.deadline <= now]:
            self._under_way.remove(request)
            if not request.pending.done:
                request.link.expire(request.pending)
            try:
                answer = request.pending.result()
            except TagwireError as error:
                for batch in request.batches:
                    batch.may_be_stored |= request.pending.is_written
                self._put_off_all(request.batches, error)
            else:
                self._settle(request, answer)

    def _settle(self, request: _Request, response: Any) -> None:
        answers = {} if response is None else by_partition(response, request.names)
        delivered = []
        for batch in request.batches:
            answer = answers.get(batch.at)
            if response is None:
                delivered.append((batch, NO_OFFSET))
            elif answer is None:
                batch.may_be_stored = True
                self._give_up(
                    batch, RemoteProtocolError(f"the answer to Produce does not say once what became of {batch.at}")
                )
            elif answer.error_code == Error.NONE and not 0 <= answer.base_offset <= MAX_OFFSET - batch.count:
                self._give_up(
                    batch, RemoteProtocolError(f"{batch.at} is said to be written at offset {answer.base_offset}")
                )
            elif answer.error_code == Error.NONE:
                delivered.append((batch, answer.base_offset))
            elif answer.error_code == Error.DUPLICATE_SEQUENCE_NUMBER and batch.sequence != NO_SEQUENCE:
                delivered.append((batch, NO_OFFSET))
            else:
                self._refused(batch, answer, response)
        for batch, _ in delivered:
            lane = self._lanes[batch.at]
            lane.acknowledged(batch)
            lane.flying.remove(batch)
        if delivered:
            self._gathering.decided([(batch, offset, None) for batch, offset in delivered])

    def _refused(self, batch: Batch, answer: Any, response: Any) -> None:
        error = refusal_of(batch, answer)
        lane = self._lanes[batch.at]
        if error.error is Error.MESSAGE_TOO_LARGE and self._can_be_split(batch):
            self._split(lane, batch)
            return
        if error.error in OUT_OF_STEP and batch.sequence != NO_SEQUENCE:
            # Behind another that has to be tried again, it is in order as soon as that one is stored.
            behind = error.error is Error.OUT_OF_ORDER_SEQUENCE_NUMBER and not lane.is_first(batch)
            renewed = not behind and self._numbering.renew(lane, error)
            if behind or (renewed and not batch.may_be_stored):
                self._put_off(batch, error, again=True)
            else:
                self._give_up(batch, error)
            return
        batch.may_be_stored |= error.error not in NOT_APPENDED
        leader = answer.current_leader
        if error.refreshes_metadata and self._cluster.moved(
            batch.at, leader.leader_id, leader.leader_epoch, nodes_of(response.node_endpoints)
        ):
            self._put_off(batch, error, stays=True)
        else:
            self._put_off(batch, error)

    def _can_be_split(self, batch: Batch) -> bool:
        is_needed_whole = batch.is_sealed or (batch.may_be_stored and batch.sequence != NO_SEQUENCE)
        return batch.count > 1 and not is_needed_whole

    def _split(self, lane: Lane, batch: Batch) -> None:
        parts = batch.split()
        self._gathering.split(batch, parts)
        lane.flying.remove(batch)
        for part in parts:
            lane.put_back(part)

    def _put_off_all(self, batches: Iterable[Batch], error: TagwireError | None) -> None:
        if error is not None:
            for batch in batches:
                self._put_off(batch, error)

    def _put_off(self, batch: Batch, error: TagwireError, *, again: bool = False, stays: bool = False) -> None:
        """Lets the batch be tried again later, or gives it up.

        Args:
            again: it is worth it whatever the error says. stays: the leader is known, nobody need be asked.
        """
        now = time.monotonic()
        batch.attempts += 1
        batch.last_error = error
        worth_it = again or is_retriable(error) or isinstance(error, RequestTimeoutError)
        in_time = batch.attempts <= self._settings.retries and now < self._expiry(batch)
        if not worth_it or not in_time or self._numbering.doom is not None:
            self._give_up(batch, error)
            return
        lane = self._lanes[batch.at]
        if batch in lane.flying:
            lane.flying.remove(batch)
            lane.put_back(batch)
        batch.retry_at = now if stays else now + pause_before(batch.attempts)
        if not stays and (not isinstance(error, KafkaError) or error.refreshes_metadata):
            self._cluster.forget([batch.at.topic])

    def _give_up(self, batch: Batch, error: TagwireError) -> None:
        lane = self._lanes[batch.at]
        self._goes_on = True
        (lane.flying if batch in lane.flying else lane.queue).remove(batch)
        if batch.sequence != NO_SEQUENCE or self._numbering.transactional_id is not None:
            error = self._numbering.lost(lane, error)
        self._gathering.note(error)
        self._gathering.decided([(batch, NO_OFFSET, error)])

    def _expiry(self, batch: Batch) -> float:
        return batch.created + self._settings.timeout

    def _drop_expired(self) -> None:
        now = time.monotonic()
        for lane in self._lanes.values():
            while lane.queue and self._expiry(lane.queue[0]) <= now:
                batch = lane.queue[0]
                late = f"{counted(batch)} for {batch.at} could not be delivered within {self._settings.timeout:g} s"
                self._give_up(batch, batch.last_error or RequestTimeoutError(late))

    def _drop(self, error: TagwireError) -> None:
        """Gives up all that is not on its way."""
        dropped = [batch for lane in self._lanes.values() for batch in lane.queue]
        for lane in self._lanes.values():
            if any(batch.sequence != NO_SEQUENCE for batch in lane.queue):
                self._numbering.lost(lane, error)
            lane.queue.clear()
        if dropped:
            self._gathering.decided([(batch, NO_OFFSET, error) for batch in dropped])


async def _done(work: Work[Any]) -> None:
    await work


def _leave_to_sending(found: None, error: Exception | None) -> None:
    """What goes wrong with a topic shows when something is sent to it."""
    _expected(error)


def _expected(error: Exception | None) -> TagwireError | None:
    """The error, where it is one that work may end with. Raises any other."""
    if error is None or isinstance(error, TagwireError):
        return error
    raise error


def _groups(batches: Iterable[Batch]) -> Iterator[list[Batch]]:
    """Batches for one leader, as many together as fit into a request."""
    group: list[Batch] = []
    size = 0
    for batch in batches:
        if group and size + len(batch.data) > REQUEST_BYTES:
            yield group
            group, size = [], 0
        group.append(batch)
        size += len(batch.data)
    if group:
        yield group
