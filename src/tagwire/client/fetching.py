"""Fetch: record batches of assigned partitions as they arrive, one request in flight to each leader.

A partition whose leader is away or has moved is fetched again, with pauses, until the client's timeout has passed
without a response. What a response tells of a new leader (KIP-951) is followed at once. Everything here is of the
client's core: what may have to wait is a coroutine.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from tagwire import messages, records
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.config import NO_RESET, READ_COMMITTED, FetchSettings
from tagwire.client.fetch_positions import UNKNOWN, CompletedFetch, FetchPosition, at_offset
from tagwire.client.fetch_sessions import REFUSALS, FetchSession, Wanted
from tagwire.client.in_flight_request import InFlightRequest
from tagwire.client.metadata import NO_TOPIC_ID, nodes_of
from tagwire.client.metrics import FetchMetrics, Metrics
from tagwire.client.network_client import NetworkClient
from tagwire.client.offsets import list_offsets
from tagwire.client.scheduling import Wait
from tagwire.errors import (
    CorruptRecordError,
    DecodeError,
    Error,
    KafkaError,
    RemoteProtocolError,
    RequestTimeoutError,
    TagwireError,
    UnsupportedVersionError,
)
from tagwire.kernel.batch_scan import pass_batches
from tagwire.partitions import EARLIEST, LATEST, TopicPartition
from tagwire.records.batch_bounds import stated_size
from tagwire.records.compression import MAX_DECOMPRESSED
from tagwire.rpc.dialects import say_dialect
from tagwire.rpc.version_gates import FETCH_TOPIC_IDS
from tagwire.spec.api_keys import ApiKey

logger = logging.getLogger("tagwire.client")

MAX_OFFSET: Final = 2**63 - 1


class _FetchInFlight(NamedTuple):
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


class Fetcher:
    """Keeps one Fetch request in flight to each leader of the partitions of `positions`.

    Attributes:
        metrics: what it measures.
    """

    def __init__(
        self,
        network: NetworkClient,
        positions: Iterable[FetchPosition],
        settings: FetchSettings,
        dialect: str | None = None,
    ) -> None:
        self.metrics = Metrics(network.now)
        self._measured = FetchMetrics(self.metrics)
        self._network = network
        self._dialect = dialect
        self._settings = settings
        self._committed = settings.isolation == READ_COMMITTED
        self._positions = list(positions)
        self._in_flight: dict[int, _FetchInFlight] = {}
        self._sessions: dict[int, FetchSession] = defaultdict(FetchSession)
        self._failure: TagwireError | None = None  # found in a response that also brought records, which go first

    @property
    def finished(self) -> bool:
        """Whether nothing is left to fetch."""
        return all(position.done for position in self._positions)

    @property
    def has_more(self) -> bool:
        """Whether the next response is likely to hold records at once."""
        return any(position.has_more for position in self._positions)

    async def send(self) -> None:
        """Sends a Fetch to every leader that has none in flight. Raises what no later attempt would mend."""
        network = self._network
        now = network.now()
        busy = {id(position) for fetch in self._in_flight.values() for position in fetch.positions.values()}
        waiting: dict[int, list[FetchPosition]] = defaultdict(list)
        for position in self._positions:
            if not position.done and id(position) not in busy and position.retry_at <= now:
                try:
                    known = network.known_partition(position.partition) or await network.partition(
                        position.partition, network.deadline()
                    )
                    waiting[known.leader].append(position)
                except TagwireError as error:
                    if isinstance(error, KafkaError) and error.error is Error.UNKNOWN_TOPIC_OR_PARTITION:
                        raise  # it was waited for already
                    position.failed(error, network.timeout, network.driver)
        for node, positions in waiting.items():
            if node not in self._in_flight:
                await self._send_to(node, positions)

    async def next(self) -> list[CompletedFetch]:
        """What the next response brings; empty when it brings nothing.

        Raises:
            KafkaError: naming the partition; for OFFSET_OUT_OF_RANGE also the offsets that it holds.
            CorruptRecordError: a batch header contradicts itself; named by partition and offset.
            RequestTimeoutError: no response, or no records up to an end that the partition should have.
            ConnectError, ConnectionLostError, ...: a leader stayed away.
        """
        if self._failure is not None:
            raise self._failure
        started = self._network.now()
        await self.send()
        node = self._responded()
        while node is None:
            await self._wait(started)
            await self.send()
            node = self._responded()
        fetch = self._in_flight.pop(node)
        try:
            response = fetch.request.result()
            if response.error_code:
                raise KafkaError(response.error_code, f"fetch from {fetch.connection.broker}")
        except TagwireError as error:
            self._failed(fetch, error)
            return []
        self._measured.responded(self._network.now() - fetch.request.sent_at, response.throttle_time_ms)
        completed = await self._take(fetch, response)
        if completed:
            self._measured.consumed((one.position.partition, len(one.records), one.record_count) for one in completed)
        if not completed and self._failure is None:
            self._check_idle(fetch.positions.values(), self._network.now() - started)
        return completed

    def forget_failure(self) -> None:
        """Goes on after an error: what is still wrong is found again, since no position went beyond it."""
        self._failure = None

    def abandon(self) -> None:
        """Ends the connections on which responses are due, of which nobody knows how far they were read."""
        for fetch in self._in_flight.values():
            fetch.connection.close()
            fetch.session.lost()
        self._in_flight.clear()

    def close(self) -> None:
        """Ends the sessions that brokers keep, as far as that can be told them at once."""
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

    async def _send_to(self, node: int, positions: list[FetchPosition]) -> None:
        network = self._network
        deadline = network.deadline()
        session = self._sessions[node]
        began = session.is_new
        try:
            connection = await network.connection(node, deadline)
            if connection.throttle_delay("Fetch", deadline):
                for position in positions:
                    position.retry_at = connection.throttled_until
                return
            wanted = {position.partition: await self._wanted(position, deadline) for position in positions}
            version = connection.version(ApiKey.FETCH)
            if version >= FETCH_TOPIC_IDS and any(one.topic_id == NO_TOPIC_ID for one in wanted.values()):
                version = connection.version(ApiKey.FETCH, highest=FETCH_TOPIC_IDS - 1)
            message = session.request(wanted, version, self._settings)
            say_dialect(message, self._dialect, ApiKey.FETCH, version)
            request = await network.put(connection, message, deadline, version)
        except TagwireError as error:
            session.lost()
            self._postpone(positions, error)
        else:
            by_partition = {position.partition: position for position in positions}
            self._in_flight[node] = _FetchInFlight(connection, request, by_partition, wanted, session, began)

    async def _wanted(self, position: FetchPosition, deadline: float) -> Wanted:
        network, topic_partition = self._network, position.partition
        partition = network.known_partition(topic_partition) or await network.partition(topic_partition, deadline)
        topic = network.known_topic(topic_partition.topic) or await network.topic(topic_partition.topic, deadline)
        return Wanted(position.offset, partition.leader_epoch, topic.topic_id)

    def _responded(self) -> int | None:
        return next((node for node, fetch in self._in_flight.items() if fetch.request.done), None)

    async def _wait(self, started: float) -> None:
        now = self._network.now()
        patience = self._network.timeout + self._settings.max_wait_ms / 1000
        put_off = [one.retry_at for one in self._positions if not one.done and one.retry_at > now]
        until = min([started + patience, *put_off])
        await Wait(lambda: self._responded() is not None, until)
        if self._in_flight and self._responded() is None and until not in put_off:
            late = next(iter(self._in_flight.values()))
            self._in_flight.clear()
            late.connection.close()
            raise RequestTimeoutError(
                f"{late.connection.broker} did not answer {late.request.name} within {patience:.1f} s"
            )

    def _failed(self, fetch: _FetchInFlight, error: TagwireError) -> None:
        """Nothing is said of the partitions. What is said of a session alone costs no pause, once."""
        if not isinstance(error, KafkaError) or error.error not in REFUSALS:
            fetch.session.lost()
            self._postpone(fetch.positions.values(), error)
            return
        fetch.session.refused(error.error)
        if error.error is Error.FETCH_SESSION_TOPIC_ID_ERROR:
            self._network.forget({partition.topic for partition in fetch.positions})
        if fetch.began:
            self._put_off(fetch.positions.values(), error)

    def _postpone(self, positions: Collection[FetchPosition], error: TagwireError) -> None:
        self._network.forget({position.partition.topic for position in positions})
        self._put_off(positions, error)

    def _put_off(self, positions: Collection[FetchPosition], error: TagwireError) -> None:
        for position in positions:
            position.failed(error, self._network.timeout, self._network.driver)
        again = max(position.retry_at for position in positions)
        for position in positions:  # what failed together is fetched together
            position.retry_at = again

    async def _take(self, fetch: _FetchInFlight, response: messages.FetchResponse) -> list[CompletedFetch]:
        try:
            told = fetch.session.take(response)
        except RemoteProtocolError as error:
            self._failure = RemoteProtocolError(f"{fetch.connection.broker} sent {error}")
            return []
        completed: list[CompletedFetch] = []
        for partition, data in told:
            position = fetch.positions[partition]
            if position.offset != fetch.wanted[partition].offset:
                continue  # `seek` was called meanwhile
            try:
                if data.error_code:
                    found = await self._refused(position, data, response)
                else:
                    found = self._completed(position, data, fetch.connection.broker)
            except TagwireError as error:
                self._failure = self._failure or error
            else:
                completed += [found] if found else []
        if len(fetch.positions) > 1 and completed:
            self._give_turns([one.position for one in completed])
        return completed

    def _completed(
        self, position: FetchPosition, data: messages.FetchResponse.PartitionData, broker: str
    ) -> CompletedFetch | None:
        # A high watermark may be unknown, which costs no more than another request; what is committed has to be known.
        name, end, least = "high watermark", data.high_watermark, UNKNOWN
        if self._committed:
            name, end, least = "last stable offset", data.last_stable_offset, 0
        if end < least:
            raise RemoteProtocolError(f"{broker} told {end} as the {name} of {position.partition}")
        position.succeeded()
        position.readable_end = end
        if not data.records:
            return None
        aborted = data.aborted_transactions if self._committed else None
        return self._whole_batches(
            position,
            memoryview(data.records),
            data.log_start_offset,
            [(one.producer_id, one.first_offset) for one in aborted or ()],
        )

    def _whole_batches(
        self, position: FetchPosition, data: memoryview, log_start_offset: int, aborted: list[tuple[int, int]]
    ) -> CompletedFetch | None:
        # Of what lies beyond the last stable offset nobody knows yet what becomes.
        limit = position.readable_end if self._committed else MAX_OFFSET
        start = position.offset
        size, count, after = (0, 0, start) if self._dialect else pass_batches(data, start, limit)
        failure: TagwireError | None = None
        try:
            for header in records.batch_headers(data, self._dialect, start=size, max_decompressed=MAX_DECOMPRESSED):
                if header.next_offset <= after:
                    raise CorruptRecordError(f"a batch ends before it, at {header.last_offset}", offset=header.position)
                if header.base_offset >= limit:
                    if not size:
                        return None
                    break
                count, size, after = count + header.count, header.position + header.size, header.next_offset
        except (DecodeError, UnsupportedVersionError) as error:
            failure = at_offset(position.partition, after, error)
        if not size:
            raise failure or RemoteProtocolError(f"{position.partition}@{start}: {self._partial(data)}")
        self._failure = self._failure or failure
        position.offset, position.idle = after, 0.0
        self._measured.at(position.partition, after, position.readable_end, log_start_offset)
        return CompletedFetch(position, start, data[:size], count, aborted)

    def _partial(self, data: memoryview) -> str:
        """Why a response holds the beginning of a batch and no whole one. A broker gives a partition's first batch
        whole, however large (KIP-74), unless its log ends inside it: then no request makes it more."""
        most = self._settings.max_partition_bytes
        if len(data) >= most:
            return f"{len(data)} bytes hold no whole record batch; fetch more than {most} bytes of a partition at once"
        stated = stated_size(data)
        batch = "a batch's beginning" if stated is None else f"a batch of {stated}"
        return (
            f"the broker has {len(data)} bytes of {batch}: its log is cut off there; "
            "`tagwire log --verify` on its disk tells more, and a read goes on from a later offset"
        )

    async def _refused(
        self, position: FetchPosition, data: messages.FetchResponse.PartitionData, response: messages.FetchResponse
    ) -> CompletedFetch | None:
        partition = position.partition
        error = KafkaError(data.error_code, f"fetch of {partition} at offset {position.offset}")
        if error.error is Error.OFFSET_OUT_OF_RANGE:
            return await self._out_of_range(position)
        leader = data.current_leader
        position.failed(error, self._network.timeout, self._network.driver)
        if leader.leader_id >= 0 and self._network.update_leader(
            partition, leader.leader_id, leader.leader_epoch, nodes_of(response.node_endpoints)
        ):
            position.retry_at = 0.0  # an epoch is news once, so this does not go on for ever
        else:
            self._network.forget({partition.topic})
        return None

    async def _out_of_range(self, position: FetchPosition) -> CompletedFetch:
        """Raises KafkaError, or goes on at the end of the partition that the settings say."""
        isolation, deadline, partition = self._settings.isolation, self._network.deadline(), position.partition
        first = (await list_offsets(self._network, {partition: EARLIEST}, deadline, isolation))[partition]
        last = (await list_offsets(self._network, {partition: LATEST}, deadline, isolation))[partition]
        held = f"offsets {first} to {last - 1}" if first < last else f"no records, its next offset is {last}"
        error = KafkaError(
            Error.OFFSET_OUT_OF_RANGE, f"{partition}: no offset {position.offset}; the partition holds {held}"
        )
        if self._settings.offset_reset == NO_RESET:
            raise error
        offset = {"earliest": first, "latest": last}[self._settings.offset_reset]
        logger.warning("%s; going on at %d", error, offset)
        position.offset = offset
        return CompletedFetch(position, offset, memoryview(b""), 0)

    def _give_turns(self, served: list[FetchPosition]) -> None:
        """Brokers fill a response in the order of the request (KIP-74): what got records goes to the back."""
        last = {id(position) for position in served}
        self._positions.sort(key=lambda position: id(position) in last)

    def _check_idle(self, positions: Iterable[FetchPosition], waited: float) -> None:
        for one in positions:
            one.idle += waited
            if one.end_offset is not None and not one.done and one.idle >= self._network.timeout:
                raise RequestTimeoutError(
                    f"{one.partition}: no data at offset {one.offset} within {one.idle:.1f} s; the read ends at "
                    f"{one.end_offset}, the partition at {one.readable_end}"
                )
