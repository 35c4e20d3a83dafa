"""Fetch: record batches of partitions that come and go, one request in flight to each broker they are fetched from.

Nothing here waits for a broker: who leads a partition, where to go on in it, whether its log was truncated, and the
connection are found beside (`tagwire.client.scheduling`), and only the partitions that need it are not fetched
meanwhile. A partition whose leader is away or has moved is fetched again, with pauses. What a response tells of a new
leader (KIP-951) is followed at once. What comes goes into a `FetchBuffer`, for whoever gives it out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from tagwire import messages
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.config import FetchSettings
from tagwire.client.fetch_failures import FetchFailures
from tagwire.client.fetch_positions import UNKNOWN, CompletedFetch, FetchBuffer, FetchPosition, LeaderAndEpoch
from tagwire.client.fetch_responses import completed_fetch
from tagwire.client.fetch_sessions import REFUSALS, FetchSession, Wanted
from tagwire.client.in_flight_request import InFlightRequest
from tagwire.client.leader_lookups import EpochOffset
from tagwire.client.metadata import NO_TOPIC_ID, PartitionMetadata, nodes_of
from tagwire.client.metrics import FetchMetrics, Metrics
from tagwire.client.network_client import NetworkClient
from tagwire.client.offset_reset import OffsetReset
from tagwire.client.position_lookups import PositionLookups
from tagwire.client.read_replicas import follow, forget_replica, source_of
from tagwire.client.retry import pause_before
from tagwire.client.scheduling import NEVER, Tasks, Wait
from tagwire.errors import Error, KafkaError, RemoteProtocolError, RequestTimeoutError, TagwireError
from tagwire.partitions import TopicPartition
from tagwire.rpc.dialects import say_dialect
from tagwire.rpc.version_gates import FETCH_TOPIC_IDS
from tagwire.spec.api_keys import ApiKey

# How long whoever runs a Fetcher that has nothing to wait for may sleep (seconds).
LONGEST_SLEEP: Final = 60.0

# How long newer metadata is waited for, as a part of the time that operations have, and as which attempt of any.
AHEAD_PATIENCE: Final = 0.5
AHEAD_ATTEMPT: Final = 2


@dataclass(frozen=True, slots=True, eq=False)
class _FetchInFlight:
    """A Fetch request in flight.

    Attributes:
        positions: of the partitions it is about. wanted: what it wants of each.
        began: whether it was to begin a session, or was to be without one.
    """

    connection: BrokerConnection
    request: InFlightRequest[messages.FetchResponse]
    positions: dict[TopicPartition, FetchPosition]
    wanted: Mapping[TopicPartition, Wanted]
    session: FetchSession
    began: bool


class _Plan:
    """What may be done now for the positions: to be fetched by broker, and to be asked about by leader."""

    __slots__ = ("fetched", "found", "leaderless", "validated")

    def __init__(self) -> None:
        # What is asked for is known with it: whatever is sent meanwhile may find the metadata out of date.
        self.fetched: dict[int, dict[FetchPosition, Wanted]] = defaultdict(dict)
        self.found: dict[int, list[FetchPosition]] = defaultdict(list)
        self.validated: dict[LeaderAndEpoch, list[FetchPosition]] = defaultdict(list)
        self.leaderless: dict[str, list[FetchPosition]] = defaultdict(list)


class Fetcher:
    """Keeps one Fetch request in flight to each broker that partitions are fetched from.

    All methods are for the one thread that runs the network's coroutines. Either it awaits `next` where it wants more,
    or calls `step` whenever `is_due` or when the time of `until` has come.

    Attributes:
        metrics: what it measures.
        is_held_back: whether something is not fetched for want of room in the buffer.

    Args:
        buffer: where what comes is put.
        patience: seconds that a leader may stay away until that is an error; None as long as the client's operations
            may take, `NEVER` for ever.
        max_buffered: bytes that may wait in `buffer` before nothing more is fetched of partitions that wait in it.
        creates_topics: whether brokers may create a topic that is missing, asked when it is.
    """

    def __init__(
        self,
        network: NetworkClient,
        buffer: FetchBuffer,
        settings: FetchSettings,
        dialect: str | None = None,
        *,
        patience: float | None = None,
        max_buffered: float = NEVER,
        creates_topics: Callable[[], bool] = lambda: False,
    ) -> None:
        self.metrics = Metrics(network.now)
        self._measured = FetchMetrics(self.metrics)
        self._network = network
        self._buffer = buffer
        # What is sent behind a Fetch waits for its response: for half of the time that it has.
        self._settings = replace(settings, max_wait_ms=int(min(settings.max_wait_ms, network.timeout * 500)))
        self._dialect = dialect
        self._max_buffered = max_buffered
        self._creates_topics = creates_topics
        self.is_held_back = False
        self._failures = FetchFailures(network, buffer, network.timeout if patience is None else patience)
        self._tasks = Tasks()
        self._lookups = PositionLookups(network, self._tasks, buffer, self._failures, settings)
        self._positions: dict[TopicPartition, FetchPosition] = {}
        self._in_flight: dict[int, _FetchInFlight] = {}
        self._sessions: dict[int, FetchSession] = defaultdict(FetchSession)
        self._responses = 0
        self._resumed_at = 0.0  # what comes while nobody looks is not late

    # Partitions ----------------------------------------------------------------------------------------------------

    @property
    def positions(self) -> Mapping[TopicPartition, FetchPosition]:
        """Those that are fetched, in the order in which it is their turn."""
        return self._positions

    @property
    def finished(self) -> bool:
        """Whether nothing is left to fetch."""
        return all(position.done for position in self._positions.values())

    @property
    def has_more(self) -> bool:
        """Whether the next response is likely to hold records at once."""
        return any(position.has_more for position in self._positions.values())

    def add(self, positions: Iterable[FetchPosition]) -> None:
        """Fetches more partitions. One that has no offset is looked up as its `reset` or `auto.offset.reset` says."""
        for position in positions:
            self._positions[position.partition] = position

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetches them no more; what waits of them is not given out. Those that are not fetched are left alone."""
        for partition in partitions:
            position = self._positions.pop(partition, None)
            if position is not None:
                position.leave()
                self._measured.removed(partition)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Leaves them out of fetches; what was fetched of them waits for `resume`. Raises KeyError."""
        for partition in partitions:
            self._positions[partition].is_paused = True

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetches them again, and gives what waits of them. Raises KeyError."""
        for partition in partitions:
            self._positions[partition].is_paused = False

    def seek(self, partition: TopicPartition, offset: int, leader_epoch: int = UNKNOWN) -> None:
        """Goes on from another offset, after a record of a leader epoch where that is known; what was fetched before is
        not given out. Raises KeyError."""
        self._positions[partition].seek(offset, leader_epoch)

    def rewind(self) -> bool:
        """Fetches anew what was fetched beyond what was given out. Whether that is anything."""
        ahead = [one for one in self._positions.values() if one.offset != one.given.offset]
        for position in ahead:
            position.seek(*position.given)
        return bool(ahead)

    def reset(self, partitions: Iterable[TopicPartition], reset: OffsetReset | None = None) -> None:
        """Goes on where `reset` or else `auto.offset.reset` says, as soon as that is looked up. Raises KeyError."""
        for partition in partitions:
            position = self._positions[partition]
            position.seek(UNKNOWN)
            position.reset = reset

    # What runs it --------------------------------------------------------------------------------------------------

    @property
    def is_due(self) -> bool:
        """Whether something has happened that `step` is to take."""
        for fetch in self._in_flight.values():
            if fetch.request.done:
                return True
        return self._tasks.is_any_over(self._network.now())

    def step(self) -> None:
        """Takes the responses that are there, and sends what can be sent now."""
        now = self._network.now()
        self._tasks.step(now)
        self.take_responses()
        if self._in_flight:
            for node in [node for node, fetch in self._in_flight.items() if now >= self._late_at(fetch)]:
                late = self._in_flight.pop(node)
                self._refused_whole(node, late, late.connection.expire(late.request))
        self._begin()

    def take_responses(self) -> bool:
        """Takes the responses that are there; whether there were any."""
        done = [node for node, fetch in self._in_flight.items() if fetch.request.done] if self._in_flight else ()
        for node in done:
            self._take_response(node, self._in_flight.pop(node))
        return bool(done)

    def until(self) -> float:
        """When the next step is due, should nothing happen before (seconds of the driver's clock)."""
        now = self._network.now()
        until = min(now + LONGEST_SLEEP, self._tasks.until)
        for fetch in self._in_flight.values():
            until = min(until, self._late_at(fetch))
        for position in self._positions.values():
            if now < position.retry_at < until and not position.done:  # paused ones are looked up, too
                until = position.retry_at
        return until

    async def next(self) -> None:
        """Waits for the next response, or for an error, unless something waits in the buffer already."""
        self._resumed_at = self._network.now()
        before = self._responses
        self.step()
        while before == self._responses and not self._buffer.has_any and not self.finished:
            await Wait(lambda: self.is_due, self.until())
            self.step()

    def abandon(self) -> None:
        """Ends the connections on which responses are due, of which nobody knows how far they were read."""
        self._tasks.close()
        for position in self._positions.values():
            position.is_looking_up = False
        for fetch in self._in_flight.values():
            fetch.connection.close()
            fetch.session.lost()
        self._in_flight.clear()

    def close(self) -> None:
        """Ends the sessions that brokers keep, as far as that can be told them at once."""
        self._tasks.close()
        sessions, self._sessions = self._sessions, defaultdict(FetchSession)
        for node, session in sessions.items():
            connection = self._network.ready_connection(node)
            if connection is None or not session.is_open:
                continue
            if connection.has_room and connection.throttled_until <= self._network.now():
                try:
                    self._network.send(connection, session.end())
                except TagwireError:
                    continue  # a broker forgets the session that nobody names

    # What to do next -----------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        plan = self._plan()
        for topic, positions in plan.leaderless.items():
            if ("topic", topic) not in self._tasks:
                self._find_leaders(topic, positions)
        for node, positions in plan.found.items():
            if ("offsets", node) not in self._tasks:
                self._lookups.find(LeaderAndEpoch(node, UNKNOWN), positions)
        for leader, positions in plan.validated.items():
            if ("epochs", leader.leader) not in self._tasks:
                self._lookups.validate(leader, positions)
        for node, fetched in plan.fetched.items():
            if node in self._in_flight or ("connection", node) in self._tasks:
                continue
            connection = self._network.ready_connection(node)
            if connection is not None and connection.node == node and connection.has_room:
                self._send(node, connection, fetched)
            else:
                self._tasks.start(("connection", node), self._connection(node), partial(self._connected, node))

    def _plan(self) -> _Plan:
        plan, now = _Plan(), self._network.now()
        self.is_held_back = True  # who takes something of what is counted next sees it, and has it counted again
        is_held_back = False
        busy: set[FetchPosition] = set()
        for fetch in self._in_flight.values():
            busy.update(fetch.positions.values())
        buffered = 0
        for position in self._positions.values():
            if (waiting := position.fetched_bytes - position.taken_bytes) and not position.is_paused:
                buffered += waiting
        for position in self._positions.values():
            if position.is_looking_up or position.retry_at > now or position in busy or position.done:
                continue
            if position.failure is not None and not position.failure.is_taken:
                continue
            known = self._network.known_partition(position.partition)
            if known is None:
                plan.leaderless[position.partition.topic].append(position)
            elif position.offset == UNKNOWN:
                plan.found[known.leader].append(position)
            elif self._is_ahead(position, known):
                self._await_metadata(position)
            elif not self._is_valid(position, known):
                plan.validated[LeaderAndEpoch(known.leader, known.leader_epoch)].append(position)
            elif not position.is_paused:
                if position.buffered_bytes and buffered >= self._max_buffered:
                    is_held_back = True
                else:
                    wanted = self._wanted(position)
                    plan.fetched[source_of(position, known.leader, self._network)][position] = wanted
        self.is_held_back = is_held_back
        return plan

    def _is_ahead(self, position: FetchPosition, known: PartitionMetadata) -> bool:
        """Whether a position was reached in a later epoch than that of the leader who is known: he leads no more, and
        knows nothing of it (KIP-320). Where that lasts, it may be of another topic of the name."""
        if not UNKNOWN < known.leader_epoch < position.leader_epoch:
            position.ahead_since = None
            return False
        topic = self._network.known_topic(position.partition.topic)
        if topic is not None and position.topic_id not in (NO_TOPIC_ID, topic.topic_id):
            return False
        now = self._network.now()
        position.ahead_since = now if position.ahead_since is None else position.ahead_since
        return now - position.ahead_since < self._network.timeout * AHEAD_PATIENCE

    def _await_metadata(self, position: FetchPosition) -> None:
        network = self._network
        network.forget({position.partition.topic})
        position.retry_at = network.now() + pause_before(AHEAD_ATTEMPT, network.driver.random)

    def _is_valid(self, position: FetchPosition, known: PartitionMetadata) -> bool:
        validated = position.validated_by
        if validated is not None and validated.leader == known.leader and validated.epoch == known.leader_epoch:
            return True
        leader = LeaderAndEpoch(known.leader, known.leader_epoch)
        forget_replica(position)
        if UNKNOWN in (position.leader_epoch, known.leader_epoch):
            position.validated_by = leader
        return position.validated_by == leader

    def _find_leaders(self, topic: str, positions: list[FetchPosition]) -> None:
        indices = [position.partition.partition for position in positions]
        creates = self._creates_topics()
        work = self._network.partitions(topic, indices, self._network.deadline(), allow_auto_create=creates)

        def end(found: Mapping[int, object] | None, error: Exception | None) -> None:
            if error is not None and not isinstance(error, TagwireError):
                raise error
            current = [position for position in positions if self._is_fetched(position)]
            for position in current:
                refusal = error if found is None else found[position.partition.partition]
                if isinstance(refusal, TagwireError):
                    self._failures.leaderless(position, refusal)

        self._tasks.start(("topic", topic), work, end)

    def _is_fetched(self, position: FetchPosition) -> bool:
        return self._positions.get(position.partition) is position

    # Requests ------------------------------------------------------------------------------------------------------

    async def _connection(self, node: int) -> BrokerConnection:
        """The connection to a broker that has room for a request."""
        deadline = self._network.deadline()
        connection = await self._network.connection(node, deadline)
        await Wait(lambda: connection.has_room, deadline)
        if not connection.has_room:
            raise connection.expire(connection.request("Fetch"))
        return connection

    def _connected(self, node: int, connection: BrokerConnection | None, error: Exception | None) -> None:
        if error is not None and not isinstance(error, TagwireError):
            raise error
        positions = self._plan().fetched.get(node, {})
        if not positions:
            return
        if connection is not None:
            self._send(node, connection, positions)
            return
        assert error is not None
        self._sessions[node].lost()
        self._lost(node, positions, error)

    def _send(self, node: int, connection: BrokerConnection, positions: dict[FetchPosition, Wanted]) -> None:
        network, session = self._network, self._sessions[node]
        began = session.is_new
        try:
            now = network.now()
            if connection.throttled_until > now and connection.throttle_delay("Fetch", network.deadline()):
                for position in positions:
                    position.retry_at = connection.throttled_until
                return
            wanted = {position.partition: asked for position, asked in positions.items()}
            version = connection.version(ApiKey.FETCH)
            has_ids, rack = True, self._settings.rack
            for position, asked in positions.items():
                has_ids = has_ids and asked.topic_id is not NO_TOPIC_ID and asked.topic_id != NO_TOPIC_ID
                rack = "" if position.shuns_replicas_until > now else rack
            if version >= FETCH_TOPIC_IDS and not has_ids:
                version = connection.version(ApiKey.FETCH, highest=FETCH_TOPIC_IDS - 1)
            message = session.request(wanted, version, self._settings, rack)
            if self._dialect is not None:
                say_dialect(message, self._dialect, ApiKey.FETCH, version)
            request = network.send(connection, message, version)
        except TagwireError as error:
            session.lost()
            self._lost(node, positions, error)
        else:
            by_partition = {position.partition: position for position in positions}
            self._in_flight[node] = _FetchInFlight(connection, request, by_partition, wanted, session, began)

    def _wanted(self, position: FetchPosition) -> Wanted:
        topic = self._network.known_topic(position.partition.topic)
        leader = position.validated_by
        assert topic is not None
        assert leader is not None
        return Wanted(position.offset, leader.epoch, topic.topic_id, position.leader_epoch)

    def _late_at(self, fetch: _FetchInFlight) -> float:
        began = max(fetch.request.sent_at, self._resumed_at)
        return began + self._network.timeout + self._settings.max_wait_ms / 1000

    def _lost(self, node: int, positions: Collection[FetchPosition], error: TagwireError) -> None:
        """Nothing is known of the broker. From a follower it is back to the leader, without more ado."""
        at_leader = [position for position in positions if position.replica != node or not forget_replica(position)]
        if at_leader:
            self._failures.postpone(at_leader, error)

    # Responses -----------------------------------------------------------------------------------------------------

    def _take_response(self, node: int, fetch: _FetchInFlight) -> None:
        self._responses += 1
        try:
            response = fetch.request.result()
            if response.error_code:
                raise KafkaError(response.error_code, f"fetch from {fetch.connection.broker}")
        except TagwireError as error:
            self._refused_whole(node, fetch, error)
            return
        try:
            told = fetch.session.take(response)
        except RemoteProtocolError as error:
            positions = self._current(fetch)
            if positions:
                self._failures.hand_over(positions[0], RemoteProtocolError(f"{fetch.connection.broker} sent {error}"))
            return
        self._measured.responded(self._network.now() - fetch.request.sent_at, response.throttle_time_ms)
        served: list[CompletedFetch] = []
        failed: list[tuple[FetchPosition, TagwireError]] = []
        for partition, data in told:
            position = fetch.positions[partition]
            if not self._is_fetched(position) or position.offset != fetch.wanted[partition].offset:
                continue  # it was removed, or `seek` called, meanwhile
            try:
                completed, failure = self._take(node, fetch, position, data, response)
                if completed is not None:
                    served.append(completed)
                if failure is not None:
                    failed.append((position, failure))
            except TagwireError as error:
                failed.append((position, error))
        for position, failure in failed:  # after what others got
            self._failures.hand_over(position, failure)
        if served:
            self._measured.consumed([(one.position.partition, len(one.records), one.record_count) for one in served])
        for one in served if len(fetch.positions) > 1 else ():
            # Brokers fill a response in the order of the request (KIP-74): what got records goes to the back.
            self._positions[one.position.partition] = self._positions.pop(one.position.partition)
        if not served and not failed:
            self._check_idle(fetch)

    def _take(
        self,
        node: int,
        fetch: _FetchInFlight,
        position: FetchPosition,
        data: messages.FetchResponse.PartitionData,
        response: messages.FetchResponse,
    ) -> tuple[CompletedFetch | None, TagwireError | None]:
        """The records that are told of a partition, which are in the buffer then, and what is wrong after them. Raises
        what is wrong where there are none."""
        broker = fetch.connection.broker
        if data.error_code:
            self._refused(node, position, data, response)
            return None, None
        if data.preferred_read_replica != UNKNOWN:
            follow(position, data.preferred_read_replica, broker, self._network, self._settings.metadata_max_age)
            self._measured.prefers(position.partition, position.replica)
            return None, None
        position.is_redirected = False
        diverging = data.diverging_epoch
        if (diverging.end_offset, diverging.epoch) != (UNKNOWN, UNKNOWN):
            told = EpochOffset(diverging.end_offset, diverging.epoch)
            self._lookups.diverged(position, told, _leader_of(position, node), broker)
            return None, None
        completed, failure = completed_fetch(position, data, broker, self._settings, self._dialect)
        if completed is not None:
            position.topic_id = fetch.wanted[position.partition].topic_id
            self._buffer.put(completed)
            self._measured.at(position.partition, position.offset, position.readable_end, data.log_start_offset)
        return completed, failure

    def _refused(
        self,
        node: int,
        position: FetchPosition,
        data: messages.FetchResponse.PartitionData,
        response: messages.FetchResponse,
    ) -> None:
        partition = position.partition
        error = KafkaError(data.error_code, f"fetch of {partition} at offset {position.offset}")
        if position.replica == node and forget_replica(position):
            return  # the leader knows better
        if error.error is Error.OFFSET_OUT_OF_RANGE:
            self._lookups.out_of_range(position, _leader_of(position, node))
            return
        if not self._failures.failed(position, error):
            return
        leader = data.current_leader
        if leader.leader_id >= 0 and self._network.update_leader(
            partition, leader.leader_id, leader.leader_epoch, nodes_of(response.node_endpoints)
        ):
            position.retry_at = 0.0  # an epoch is news once, so this does not go on for ever
        else:
            self._network.forget({partition.topic})

    def _refused_whole(self, node: int, fetch: _FetchInFlight, error: TagwireError) -> None:
        """Nothing is said of the partitions. What is said of a session alone costs no pause, once."""
        positions = self._current(fetch)
        if not isinstance(error, KafkaError) or error.error not in REFUSALS:
            fetch.session.lost()
            if positions:
                self._lost(node, positions, error)
            return
        fetch.session.refused(error.error)
        if error.error is Error.FETCH_SESSION_TOPIC_ID_ERROR:
            self._network.forget({partition.topic for partition in fetch.positions})
        if fetch.began and positions:
            self._failures.put_off(positions, error)

    def _current(self, fetch: _FetchInFlight) -> list[FetchPosition]:
        return [position for position in fetch.positions.values() if self._is_fetched(position)]

    def _check_idle(self, fetch: _FetchInFlight) -> None:
        waited = self._network.now() - max(fetch.request.sent_at, self._resumed_at)
        for one in self._current(fetch):
            one.idle += waited
            if one.end_offset is not None and not one.done and one.idle >= self._network.timeout:
                self._failures.hand_over(
                    one,
                    RequestTimeoutError(
                        f"{one.partition}: no data at offset {one.offset} within {one.idle:.1f} s; the read ends at "
                        f"{one.end_offset}, the partition at {one.readable_end}"
                    ),
                )


def _leader_of(position: FetchPosition, node: int) -> LeaderAndEpoch:
    return position.validated_by or LeaderAndEpoch(node, UNKNOWN)
