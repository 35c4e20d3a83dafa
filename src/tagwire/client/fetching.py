"""Fetch: record batches of assigned partitions as they arrive, one request on its way to each leader.

Fetches are full ones, without a session (session id 0, epoch -1). A partition whose leader is away or has moved is
asked again, with pauses, until the client's timeout has passed without an answer.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from tagwire import messages, records
from tagwire.client.client import Client
from tagwire.client.config import FetchSettings
from tagwire.client.metadata import TopicPartition
from tagwire.client.offsets import EARLIEST, LATEST
from tagwire.client.retry import is_retriable, pause_before
from tagwire.client.transport import Link, Pending, wait_any
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
from tagwire.records.compression import MAX_DECOMPRESSED

UNKNOWN = -1


class Span:
    """One partition being read.

    Attributes:
        start: the first offset wanted.
        end: the offset to stop before; None reads on for ever.
        next: the offset to ask for next.
        high_watermark: where the partition ended when it was last asked, -1 before that.
    """

    __slots__ = ("_attempts", "_failing_since", "at", "end", "high_watermark", "idle", "next", "retry_at", "start")

    def __init__(self, at: TopicPartition, start: int, end: int | None) -> None:
        self.at = at
        self.start = start
        self.end = end
        self.next = start
        self.high_watermark = UNKNOWN
        self.idle = 0.0  # seconds waited in vain since the last data
        self.retry_at = 0.0
        self._attempts = 0
        self._failing_since = 0.0

    @property
    def done(self) -> bool:
        """Whether everything up to `end` has arrived."""
        return self.end is not None and self.next >= self.end

    @property
    def more_is_there(self) -> bool:
        """Whether the broker is known, or has to be supposed, to hold more of what is wanted."""
        return not self.done and (self.high_watermark == UNKNOWN or self.next < self.high_watermark)

    def succeeded(self) -> None:
        """The broker answered."""
        self._attempts = 0

    def failed(self, error: TagwireError, timeout: float) -> None:
        """Puts off the next attempt. Raises `error` when it is not worth one, or has lasted for `timeout` seconds."""
        now = time.monotonic()
        if not self._attempts:
            self._failing_since = now
        if not is_retriable(error) or now - self._failing_since >= timeout:
            raise error
        self._attempts += 1
        self.retry_at = now + pause_before(self._attempts)


class Chunk:
    """Whole batches of one partition, in order.

    Attributes:
        data: their bytes, as they came.
        rows: how many records their headers announce.
    """

    __slots__ = ("data", "rows", "span")

    def __init__(self, span: Span, data: memoryview, rows: int) -> None:
        self.span = span
        self.data = data
        self.rows = rows


def broken(at: TopicPartition, offset: int, error: TagwireError) -> TagwireError:
    """`error` about records, naming the partition and the offset where they stand."""
    if isinstance(error, UnsupportedVersionError):
        return UnsupportedVersionError(f"{at}@{offset}: {error}")
    return CorruptRecordError(str(error), path=f"{at}@{offset}")


class Fetcher:
    """Keeps one Fetch on its way to each leader of `spans`."""

    def __init__(self, client: Client, spans: Iterable[Span], settings: FetchSettings) -> None:
        self._client = client
        self._settings = settings
        self._spans = list(spans)
        self._under_way: dict[int, tuple[Link, Pending, list[Span]]] = {}
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
        now = time.monotonic()
        busy = {id(span) for _, _, spans in self._under_way.values() for span in spans}
        waiting: dict[int, list[Span]] = defaultdict(list)
        for span in self._spans:
            if not span.done and id(span) not in busy and span.retry_at <= now:
                try:
                    waiting[self._client.leader(span.at, self._client.deadline())].append(span)
                except TagwireError as error:
                    if isinstance(error, KafkaError) and error.error is Error.UNKNOWN_TOPIC_OR_PARTITION:
                        raise  # it was waited for already
                    span.failed(error, self._client.timeout)
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
        started = time.monotonic()
        self.start()
        answered = self._answered()
        while answered is None:
            self._wait(started)
            self.start()
            answered = self._answered()
        link, pending, spans = self._under_way.pop(answered)
        try:
            response = pending.result()
            if response.error_code:
                raise KafkaError(response.error_code, f"fetch from {link.broker}")
        except TagwireError as error:
            self._postpone(spans, error)
            return []
        chunks = self._take(link, response, spans)
        if not chunks and self._failure is None:
            self._check_idle(spans, time.monotonic() - started)
        return chunks

    def _send(self, node: int, spans: list[Span]) -> None:
        deadline = self._client.deadline()
        try:
            link = self._client.link(node, deadline)
            pending = self._client.send(link, self._request(spans), deadline)
        except TagwireError as error:
            self._postpone(spans, error)
        else:
            self._under_way[node] = link, pending, spans

    def _request(self, spans: list[Span]) -> Any:
        kind, settings = messages.FetchRequest, self._settings
        topics: dict[str, list[Any]] = {}
        for span in spans:
            topics.setdefault(span.at.topic, []).append(
                kind.FetchPartition(
                    partition=span.at.partition,
                    fetch_offset=span.next,
                    partition_max_bytes=settings.max_partition_bytes,
                )
            )
        return kind(
            max_wait_ms=settings.max_wait_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.max_bytes,
            topics=[kind.FetchTopic(topic=name, partitions=partitions) for name, partitions in topics.items()],
        )

    def _answered(self) -> int | None:
        return next((node for node, (_, pending, _) in self._under_way.items() if pending.done), None)

    def _wait(self, started: float) -> None:
        now = time.monotonic()
        patience = self._client.timeout + self._settings.max_wait_ms / 1000
        put_off = [span.retry_at for span in self._spans if not span.done and span.retry_at > now]
        until = min([started + patience, *put_off])
        if not self._under_way:
            time.sleep(max(0.0, until - now))
        elif not wait_any([link for link, _, _ in self._under_way.values()], until) and until not in put_off:
            link, pending, _ = next(iter(self._under_way.values()))
            self._under_way.clear()
            link.close()
            raise RequestTimeoutError(f"{link.broker} did not answer {pending.name} within {patience:.1f} s")

    def _postpone(self, spans: list[Span], error: TagwireError) -> None:
        self._client.forget({span.at.topic for span in spans})
        for span in spans:
            span.failed(error, self._client.timeout)

    def _take(self, link: Link, response: Any, spans: list[Span]) -> list[Chunk]:
        by_partition = {span.at: span for span in spans}
        chunks: list[Chunk] = []
        for topic in response.responses:
            for partition in topic.partitions:
                at = TopicPartition(topic.topic, partition.partition_index)
                try:
                    if at not in by_partition:
                        raise RemoteProtocolError(f"{link.broker} sent {at}, which was not asked for")
                    chunk = self._partition(by_partition[at], partition)
                except TagwireError as error:
                    self._failure = self._failure or error
                else:
                    chunks += [chunk] if chunk else []
        if len(spans) > 1 and chunks:
            self._give_turns([chunk.span for chunk in chunks])
        return chunks

    def _partition(self, span: Span, partition: Any) -> Chunk | None:
        if partition.error_code:
            self._refused(span, partition.error_code)
            return None
        span.succeeded()
        span.high_watermark = partition.high_watermark
        return self._chunk(span, partition.records) if partition.records else None

    def _chunk(self, span: Span, data: memoryview) -> Chunk | None:
        rows, size, after = 0, 0, span.next
        failure: TagwireError | None = None
        try:
            for header in records.batch_headers(data, max_decompressed=MAX_DECOMPRESSED):
                if header.next_offset <= after:
                    raise CorruptRecordError(f"a batch ends before it, at {header.last_offset}", offset=header.position)
                rows, size, after = rows + header.count, header.position + header.size, header.next_offset
        except (DecodeError, UnsupportedVersionError) as error:
            failure = broken(span.at, after, error)
        if not size:
            raise failure or RemoteProtocolError(
                f"{span.at}@{span.next}: {len(data)} bytes hold no whole record batch; "
                f"fetch more than {self._settings.max_partition_bytes} bytes of a partition at once"
            )
        self._failure = self._failure or failure
        span.next, span.idle = after, 0.0
        return Chunk(span, data[:size], rows)

    def _refused(self, span: Span, code: int) -> None:
        if Error.of(code) is Error.OFFSET_OUT_OF_RANGE:
            raise self._out_of_range(span)
        error = KafkaError(code, f"fetch of {span.at} at offset {span.next}")
        self._client.forget({span.at.topic})
        span.failed(error, self._client.timeout)

    def _out_of_range(self, span: Span) -> KafkaError:
        first, last = (self._client.list_offsets({span.at: bound})[span.at] for bound in (EARLIEST, LATEST))
        held = f"offsets {first} to {last - 1}" if first < last else f"no records, its next offset is {last}"
        return KafkaError(Error.OFFSET_OUT_OF_RANGE, f"{span.at}: no offset {span.next}; the partition holds {held}")

    def _give_turns(self, served: list[Span]) -> None:
        """Brokers fill an answer in the order of the request (facts 3.1): who got data goes to the back."""
        last = {id(span) for span in served}
        self._spans.sort(key=lambda span: id(span) in last)

    def _check_idle(self, spans: list[Span], waited: float) -> None:
        for span in spans:
            span.idle += waited
            if span.end is not None and not span.done and span.idle >= self._client.timeout:
                raise RequestTimeoutError(
                    f"{span.at}: no data at offset {span.next} within {span.idle:.1f} s; the read ends at {span.end}, "
                    f"the partition at {span.high_watermark}"
                )
