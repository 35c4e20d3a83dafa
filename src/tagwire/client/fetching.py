"""Fetch: record batches of assigned partitions as they arrive, one request on its way to each leader.

A partition whose leader is away or has moved is asked again, with pauses, until the client's timeout has passed without
an answer. What an answer tells of a new leader (KIP-951) is followed at once.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from tagwire import records
from tagwire.client.blocking_network_client import BlockingNetworkClient
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.config import ISOLATIONS, NO_RESET, READ_COMMITTED, FetchSettings
from tagwire.client.fetch_sessions import REFUSALS, FetchSession, Wanted
from tagwire.client.in_flight_request import InFlightRequest
from tagwire.client.metadata import NO_TOPIC_ID, nodes_of
from tagwire.client.offsets import list_offsets
from tagwire.client.spans import UNKNOWN, Chunk, Span, broken
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

MAX_OFFSET = 2**63 - 1


class _Asked(NamedTuple):
    """A Fetch on its way: what was asked, of whom."""

    connection: BrokerConnection
    pending: InFlightRequest[Any]
    spans: dict[TopicPartition, Span]
    wanted: Mapping[TopicPartition, Wanted]
    session: FetchSession
    began: bool  # whether the request was to begin a session, or was to be without one


class Fetcher:
    """Keeps one Fetch on its way to each leader of `spans`."""

    def __init__(
        self, network: BlockingNetworkClient, spans: Iterable[Span], settings: FetchSettings, dialect: str | None = None
    ) -> None:
        self._network = network
        self._dialect = dialect
        self._settings = settings
        self._committed = settings.isolation == READ_COMMITTED
        self._spans = list(spans)
        self._under_way: dict[int, _Asked] = {}
        self._sessions: dict[int, FetchSession] = defaultdict(FetchSession)
        self._failure: TagwireError | None = None  # found in an answer that also brought data, which goes first

    @property
    def finished(self) -> bool:
        """Whether nothing is left to ask for."""
        return all(span.done for span in self._spans)

    @property
    def more_is_there(self) -> bool:
        """Whether the next answer is likely to hold data at once."""
        return any(span.more_is_there for span in self._spans)

    def start(self) -> None:
        """Sends a Fetch to every leader that has none to answer. Raises what no later attempt would mend."""
        now = self._network.now()
        busy = {id(span) for asked in self._under_way.values() for span in asked.spans.values()}
        waiting: dict[int, list[Span]] = defaultdict(list)
        for span in self._spans:
            if not span.done and id(span) not in busy and span.retry_at <= now:
                try:
                    waiting[self._network.leader(span.at, self._network.deadline())].append(span)
                except TagwireError as error:
                    if isinstance(error, KafkaError) and error.error is Error.UNKNOWN_TOPIC_OR_PARTITION:
                        raise  # it was waited for already
                    span.failed(error, self._network.timeout, self._network.driver)
        for node, spans in waiting.items():
            if node not in self._under_way:
                self._send(node, spans)

    def next(self) -> list[Chunk]:
        """What the next answer brings; empty when it brings nothing.

        Raises:
            KafkaError: naming the partition; for OFFSET_OUT_OF_RANGE also the offsets that it holds.
            CorruptRecordError: a batch header contradicts itself; named by partition and offset.
            RequestTimeoutError: no answer, or no data up to an end that the partition should have.
            ConnectError, ConnectionLostError, ...: a leader stayed away.
        """
        if self._failure is not None:
            raise self._failure
        started = self._network.now()
        self.start()
        answered = self._answered()
        while answered is None:
            self._wait(started)
            self.start()
            answered = self._answered()
        asked = self._under_way.pop(answered)
        try:
            response = asked.pending.result()
            if response.error_code:
                raise KafkaError(response.error_code, f"fetch from {asked.connection.broker}")
        except TagwireError as error:
            self._unanswered(asked, error)
            return []
        chunks = self._take(asked, response)
        if not chunks and self._failure is None:
            self._check_idle(asked.spans.values(), self._network.now() - started)
        return chunks

    def abandon(self) -> None:
        """Ends the connections on which answers are under way, of which nobody knows how far they were read."""
        for asked in self._under_way.values():
            asked.connection.close()
            asked.session.lost()
        self._under_way.clear()

    def close(self) -> None:
        """Ends the sessions that brokers keep, as far as that can be told them at once."""
        sessions, self._sessions = self._sessions, defaultdict(FetchSession)
        for node, session in sessions.items():
            try:
                connection = self._network.ready_connection(node)
                if connection is not None and session.is_open and connection.quiet_until <= self._network.now():
                    self._network.put(connection, session.end(), self._network.deadline())
            except TagwireError:
                continue  # a broker forgets what nobody asks about

    def _send(self, node: int, spans: list[Span]) -> None:
        deadline = self._network.deadline()
        session, settings = self._sessions[node], self._settings
        began = session.is_new
        try:
            connection = self._network.connection(node, deadline)
            if connection.pause("Fetch", deadline):
                for span in spans:
                    span.retry_at = connection.quiet_until
                return
            wanted = {span.at: self._wanted(span, deadline) for span in spans}
            version = connection.version(ApiKey.FETCH)
            if version >= FETCH_TOPIC_IDS and any(one.topic_id == NO_TOPIC_ID for one in wanted.values()):
                version = connection.version(ApiKey.FETCH, highest=FETCH_TOPIC_IDS - 1)
            request = session.request(
                wanted,
                version,
                settings.max_partition_bytes,
                max_wait_ms=settings.max_wait_ms,
                min_bytes=settings.min_bytes,
                max_bytes=settings.max_bytes,
                isolation_level=ISOLATIONS[settings.isolation],
            )
            say_dialect(request, self._dialect, ApiKey.FETCH, version)
            pending = self._network.put(connection, request, deadline, version)
        except TagwireError as error:
            session.lost()
            self._postpone(spans, error)
        else:
            self._under_way[node] = _Asked(
                connection, pending, {span.at: span for span in spans}, wanted, session, began
            )

    def _wanted(self, span: Span, deadline: float) -> Wanted:
        epoch = self._network.partition(span.at, deadline).leader_epoch
        return Wanted(span.next, epoch, self._network.topic(span.at.topic, deadline).topic_id)

    def _answered(self) -> int | None:
        return next((node for node, asked in self._under_way.items() if asked.pending.done), None)

    def _wait(self, started: float) -> None:
        now = self._network.now()
        patience = self._network.timeout + self._settings.max_wait_ms / 1000
        put_off = [span.retry_at for span in self._spans if not span.done and span.retry_at > now]
        until = min([started + patience, *put_off])
        if not self._under_way:
            self._network.sleep(until)
        elif not self._network.wait_until(lambda: self._answered() is not None, until) and until not in put_off:
            late = next(iter(self._under_way.values()))
            self._under_way.clear()
            late.connection.close()
            raise RequestTimeoutError(
                f"{late.connection.broker} did not answer {late.pending.name} within {patience:.1f} s"
            )

    def _unanswered(self, asked: _Asked, error: TagwireError) -> None:
        """There is no answer about the partitions. What is said of a session alone costs no pause, once."""
        if not isinstance(error, KafkaError) or error.error not in REFUSALS:
            asked.session.lost()
            self._postpone(asked.spans.values(), error)
            return
        asked.session.refused(error.error)
        if error.error is Error.FETCH_SESSION_TOPIC_ID_ERROR:
            self._network.forget({at.topic for at in asked.spans})
        if asked.began:
            self._put_off(asked.spans.values(), error)

    def _postpone(self, spans: Collection[Span], error: TagwireError) -> None:
        self._network.forget({span.at.topic for span in spans})
        self._put_off(spans, error)

    def _put_off(self, spans: Collection[Span], error: TagwireError) -> None:
        for span in spans:
            span.failed(error, self._network.timeout, self._network.driver)
        again = max(span.retry_at for span in spans)
        for span in spans:  # what failed together is asked for together
            span.retry_at = again

    def _take(self, asked: _Asked, response: Any) -> list[Chunk]:
        try:
            answers = asked.session.take(response)
        except RemoteProtocolError as error:
            self._failure = RemoteProtocolError(f"{asked.connection.broker} sent {error}")
            return []
        chunks: list[Chunk] = []
        for at, partition in answers:
            span = asked.spans[at]
            if span.next != asked.wanted[at].offset:
                continue  # it was moved by hand meanwhile
            try:
                chunk = self._partition(span, partition, asked, response)
            except TagwireError as error:
                self._failure = self._failure or error
            else:
                chunks += [chunk] if chunk else []
        if len(asked.spans) > 1 and chunks:
            self._give_turns([chunk.span for chunk in chunks])
        return chunks

    def _partition(self, span: Span, partition: Any, asked: _Asked, response: Any) -> Chunk | None:
        if partition.error_code:
            return self._refused(span, partition, response)
        # A high watermark may be unknown, which costs no more than to ask for it; what is committed has to be known.
        name, end, least = "high watermark", partition.high_watermark, UNKNOWN
        if self._committed:
            name, end, least = "last stable offset", partition.last_stable_offset, 0
        if end < least:
            raise RemoteProtocolError(f"{asked.connection.broker} told {end} as the {name} of {span.at}")
        span.succeeded()
        span.log_end = end
        return self._chunk(span, partition) if partition.records else None

    def _chunk(self, span: Span, partition: Any) -> Chunk | None:
        data = partition.records
        # Of what lies beyond the last stable offset nobody knows yet what becomes.
        limit = span.log_end if self._committed else MAX_OFFSET
        size, rows, after = (0, 0, span.next) if self._dialect else pass_batches(data, span.next, limit)
        failure: TagwireError | None = None
        try:
            for header in records.batch_headers(data, self._dialect, start=size, max_decompressed=MAX_DECOMPRESSED):
                if header.next_offset <= after:
                    raise CorruptRecordError(f"a batch ends before it, at {header.last_offset}", offset=header.position)
                if header.base_offset >= limit:
                    if not size:
                        return None
                    break
                rows, size, after = rows + header.count, header.position + header.size, header.next_offset
        except (DecodeError, UnsupportedVersionError) as error:
            failure = broken(span.at, after, error)
        if not size:
            raise failure or RemoteProtocolError(f"{span.at}@{span.next}: {self._partial(data)}")
        self._failure = self._failure or failure
        start, span.next, span.idle = span.next, after, 0.0
        aborted = partition.aborted_transactions if self._committed else None
        return Chunk(span, start, data[:size], rows, [(one.producer_id, one.first_offset) for one in aborted or ()])

    def _partial(self, data: memoryview) -> str:
        """Why an answer holds the beginning of a batch and no whole one. A broker gives a partition's first batch
        whole, however large (KIP-74), unless its log ends inside it: then nothing that a client asks makes it more."""
        most = self._settings.max_partition_bytes
        if len(data) >= most:
            return f"{len(data)} bytes hold no whole record batch; fetch more than {most} bytes of a partition at once"
        stated = stated_size(data)
        batch = "a batch's beginning" if stated is None else f"a batch of {stated}"
        return (
            f"the broker has {len(data)} bytes of {batch}: its log is cut off there; "
            "`tagwire log --verify` on its disk tells more, and a read goes on from a later offset"
        )

    def _refused(self, span: Span, partition: Any, response: Any) -> Chunk | None:
        error = KafkaError(partition.error_code, f"fetch of {span.at} at offset {span.next}")
        if error.error is Error.OFFSET_OUT_OF_RANGE:
            return self._out_of_range(span)
        told = partition.current_leader
        span.failed(error, self._network.timeout, self._network.driver)
        if told.leader_id >= 0 and self._network.moved(
            span.at, told.leader_id, told.leader_epoch, nodes_of(response.node_endpoints)
        ):
            span.retry_at = 0.0  # an epoch is news once, so this does not go on for ever
        else:
            self._network.forget({span.at.topic})
        return None

    def _out_of_range(self, span: Span) -> Chunk:
        """Raises KafkaError, or goes on at the end of the partition that the settings say."""
        isolation, deadline = self._settings.isolation, self._network.deadline()
        first, last = (
            self._network.run(list_offsets(self._network.core, {span.at: bound}, deadline, isolation))[span.at]
            for bound in (EARLIEST, LATEST)
        )
        held = f"offsets {first} to {last - 1}" if first < last else f"no records, its next offset is {last}"
        error = KafkaError(Error.OFFSET_OUT_OF_RANGE, f"{span.at}: no offset {span.next}; the partition holds {held}")
        if self._settings.offset_reset == NO_RESET:
            raise error
        offset = {"earliest": first, "latest": last}[self._settings.offset_reset]
        logger.warning("%s; going on at %d", error, offset)
        span.next = offset
        return Chunk(span, offset, memoryview(b""), 0)

    def _give_turns(self, served: list[Span]) -> None:
        """Brokers fill an answer in the order of the request (KIP-74): who got data goes to the back."""
        last = {id(span) for span in served}
        self._spans.sort(key=lambda span: id(span) in last)

    def _check_idle(self, spans: Iterable[Span], waited: float) -> None:
        for span in spans:
            span.idle += waited
            if span.end is not None and not span.done and span.idle >= self._network.timeout:
                raise RequestTimeoutError(
                    f"{span.at}: no data at offset {span.next} within {span.idle:.1f} s; the read ends at {span.end}, "
                    f"the partition at {span.log_end}"
                )
