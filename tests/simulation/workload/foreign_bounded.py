"""Clients under quotas, when everything is over: what each is told, how long it takes then, and that nobody else is
slowed down. Each has a client id of its own, and so do those that have no quota and do the same beside it."""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from tagwire import messages
from tagwire.client import DEFAULT_NAME, ClientQuotaEntity, NewTopic
from tagwire.client.aio import AsyncAdmin, AsyncClient, AsyncProducer, AsyncReader
from tagwire.client.metadata import TopicMetadata
from tagwire.errors import TagwireError
from tagwire.partitions import TopicPartition
from tagwire.records import Record, write
from tests.simulation.workload.foreign import REQUEST_S, Enough, Speaking
from tests.simulation.workload.limiting import altered
from tests.simulation.workload.probing import REFUSED, error_of, produce_request

TOPIC: Final = "foreign-bounded"
PRODUCED, FETCHED = "producer_byte_rate", "consumer_byte_rate"
MUTATED, CONNECTED = "controller_mutation_rate", "connection_creation_rate"
FREE: Final = "foreign-free"
"""A client id that never has a quota."""

VALUE: Final = 1000
RECORDS: Final = 30
SLOW: Final = 500.0
"""Bytes a second: all that is written takes a minute of it."""

AHEAD: Final = 6 * (VALUE + 200)
"""What a producer has on its way at once, each record in a request."""

RATE: Final = 1000.0
LONG_S: Final = 60.0
"""Longer than anybody is to wait here."""

BEFORE_KIP_219: Final = 5
"""A version of Produce whose clients wait for the response, and for nothing after it."""

UNBOUNDED: Final = 1e12
IMPATIENT_S: Final = 4.0
SLACK_S: Final = 5.0
BURST: Final = 11
"""Of controller mutations: what there is of one a second when nobody has taken any (KIP-599)."""

SINCE: Final = 6
"""The version of CreateTopics from which on what is too much is refused."""

ADDRESS: Final = "127.0.0.1"
AT_ONCE: Final = 15
"""Connections, of which ten may come in ten seconds."""

NEAR_S: Final = 0.3
LATE_S: Final = 0.1
LOOK_S: Final = 0.05

GREETING: Final = struct.pack(">ihhih", 10, 18, 0, 7, -1)
"""ApiVersions, in the version that every broker answers."""


class ForeignBounded(Speaking):
    """Its spec: most_connections, to a node; None where there are more than anybody opens."""

    async def ask(self) -> None:
        far_s = self.stage.round_trip_s + self.stage.spikes_s
        # How long anything takes is mostly the way; or it is chance, where a large answer is many segments.
        if far_s > NEAR_S or self.stage.spikes_s > LATE_S:
            return
        self.slack_s = SLACK_S + 40 * far_s
        async with AsyncClient(self._as(FREE)) as client, AsyncAdmin(client) as admin:
            self.client, self.admin = client, admin
            await admin.create_topics([NewTopic(TOPIC, 1, -1, {})])
            try:
                with suppress(*REFUSED):  # whoever has one of his own is none of these
                    await self._limit(DEFAULT_NAME, PRODUCED, UNBOUNDED)
                topic = await client.topic(TOPIC)
                acts = (
                    self._told,
                    self._impatient,
                    self._muted,
                    self._written,
                    self._lifted,
                    self._read,
                    self._made,
                    self._connected,
                )
                for act in (*acts, self._full):
                    with suppress(*REFUSED, Enough):
                        await act(topic)
            finally:
                with suppress(*REFUSED):
                    await self._limit(DEFAULT_NAME, PRODUCED, None)
                await admin.delete_topics(TOPIC)

    # Single requests -------------------------------------------------------------------------------------------------

    async def _told(self, topic: TopicMetadata) -> None:
        """Who is over its quota is told for how long, and served after that, on the same connection; whoever else there
        is comes at once. All connections of a client id count together."""
        one, other, node = "foreign-bounded-1", "foreign-bounded-2", topic.partitions[0].leader
        await self._limit(one, PRODUCED, RATE)
        await self._limit(other, PRODUCED, RATE)
        async with (
            AsyncClient(self._as(one)) as client,
            AsyncClient(self._as(one)) as again,
            AsyncClient(self._as(other)) as beside,
        ):
            told, sent_at = await self._produced(client, topic, 30 * VALUE)
            due = 10 * (30 * VALUE / 10 - RATE) / RATE
            about = (
                f"for how long {one} is to wait, which may write {RATE:g} bytes a second and has written {30 * VALUE}"
            )
            self.holds(node, "Produce", f"{about}: about {due:g} s", due - 1 <= told <= due + 2, True)
            for name, who, size in ((FREE, self.client, 30 * VALUE), (other, beside, 5 * VALUE)):
                about = f"for how long {name} is to wait, which has written as much as it may, or has no quota"
                self.holds(node, "Produce", about, (await self._produced(who, topic, size))[0], 0)
            about = f"whether {one} is to wait on another connection, too"
            self.holds(node, "Produce", about, (await self._produced(again, topic, 1))[0] > 0, True)
            seconds = await self._asked(client, node, sent_at)
            about = f"after how long {one} is answered, which is to wait for {told:g} s"
            is_due = isinstance(seconds, float) and told <= seconds <= told + 1 + self.slack_s
            self.holds(node, "Metadata", about, True if is_due else seconds, True)
        await self._limit(one, PRODUCED, None)
        async with AsyncClient(self._as(one)) as client:
            about = f"for how long {one} is to wait, whose quota was taken away"
            self.holds(node, "Produce", about, (await self._produced(client, topic, 30 * VALUE))[0], 0)

    async def _impatient(self, topic: TopicMetadata) -> None:
        """Who cannot wait for so long is told so at once: its request is not sent."""
        name, node = "foreign-bounded-3", topic.partitions[0].leader
        patience = max(IMPATIENT_S, self.slack_s)
        await self._limit(name, PRODUCED, RATE / 10)
        async with AsyncClient(self._as(name, patience)) as client:
            told, _ = await self._produced(client, topic, int(RATE / 10 * (20 + 2 * patience)))
            began = time.monotonic()
            answer = await self._asked(client, node, began)
            about = f"whether {name}, which is to wait for {told:g} s, is told at once that its request cannot"
            self.holds(node, "Metadata", about, [answer, time.monotonic() - began < 1], ["RequestTimeoutError", True])

    async def _muted(self, topic: TopicMetadata) -> None:
        """Who does not heed what it is told, as clients before KIP-219, is not served meanwhile."""
        name, node = "foreign-bounded-4", topic.partitions[0].leader
        await self._limit(name, PRODUCED, RATE)
        async with AsyncClient(self._as(name)) as client:
            told, sent_at = await self._produced(client, topic, 20 * VALUE, BEFORE_KIP_219)
            seconds = await self._asked(client, node, sent_at)
            about = f"after how long {name} is answered, which asks at once, and is to wait for {told:g} s"
            is_due = isinstance(seconds, float) and told <= seconds <= told + 1 + self.slack_s
            self.holds(node, "Metadata", about, True if is_due else seconds, True)

    async def _asked(self, client: AsyncClient, node: int, since: float) -> float | str:
        """How long after a moment a request is answered; the error where it is not."""
        try:
            await client.request(messages.MetadataRequest(topics=[]), node=node)
        except TagwireError as error:
            return type(error).__name__
        return time.monotonic() - since

    async def _produced(
        self, client: AsyncClient, topic: TopicMetadata, size: int, version: int | None = None
    ) -> tuple[float, float]:
        """For how many seconds a client is to wait that has written so much, and when it began to. Raises Enough where
        it could not."""
        sent_at = time.monotonic()
        data = write([Record(b"key", bytes(size), timestamp=int(time.time() * 1000))])
        response = await client.request(
            produce_request(topic, 0, data), node=topic.partitions[0].leader, version=version
        )
        if error_of(response) != "NONE":
            raise Enough
        return response.throttle_time_ms / 1000, sent_at

    # Producers and readers ----------------------------------------------------------------------------------------

    async def _written(self, topic: TopicMetadata) -> None:
        """Whose request times out sooner than it is to wait writes all the same as it may."""
        name = "foreign-writer"
        await self._limit(name, PRODUCED, SLOW)
        await asyncio.gather(self._write(name, SLOW), self._write(FREE, None))

    async def _lifted(self, topic: TopicMetadata) -> None:
        name, after = "foreign-lifted", 2.0
        await self._limit(name, PRODUCED, SLOW)

        async def lifts() -> None:
            await asyncio.sleep(after)
            await self._limit(name, PRODUCED, None)

        await asyncio.gather(self._write(name, SLOW, after), lifts())

    async def _write(self, name: str, bound: float | None, lifted: float | None = None) -> None:
        options: dict[str, Any] = {"linger": 0.0, "batch_bytes": VALUE, "compression": "none", "timeout": 3 * LONG_S}

        async def written() -> None:
            async with AsyncProducer(self._as(name, 2.0), max_block=LONG_S, **options) as producer:
                sent = [await producer.send(TOPIC, bytes(VALUE), partition=0) for _ in range(RECORDS)]
                for delivery in sent:
                    await delivery

        await self._took(name, PRODUCED, bound, RECORDS * VALUE, AHEAD, written, lifted)

    async def _read(self, topic: TopicMetadata) -> None:
        """Of a topic that has more in it than may be read at once."""
        name, at = "foreign-reader", TopicPartition(TOPIC, 0)
        (end,) = (await self.client.list_offsets({at: -1})).values()
        bound, total = 5 * VALUE, 0
        await self._limit(name, FETCHED, bound)

        async def read_all(who: str) -> int:
            async with (
                AsyncClient(self._as(who)) as client,
                AsyncReader(client, {at: 0}, end_offsets={at: end}) as reader,
            ):
                return sum([len(record.value or b"") async for record in reader.records()])

        async def read() -> None:
            await read_all(name)

        async def read_freely() -> None:
            await read_all(FREE)

        total = await read_all(FREE)
        # A reader may be given a whole window's at once, once more at the end.
        await self._took(name, FETCHED, float(bound), total, 10 * bound + 30 * VALUE, read)
        await self._took(FREE, FETCHED, None, total, 0, read_freely)

    async def _took(
        self,
        name: str,
        quota: str,
        bound: float | None,
        size: int,
        ahead: int,
        work: Callable[[], Any],
        lifted: float | None = None,
    ) -> None:
        asked = {"client_id": name, "quota": quota, "bound": bound, "bytes": size, "ahead": ahead, "lifted": lifted}
        with suppress(*REFUSED):
            await self.noted("took", asked | {"slack": self.slack_s}, work)

    # Topics and connections ---------------------------------------------------------------------------------------

    async def _made(self, topic: TopicMetadata) -> None:
        """Who makes more partitions than it may is refused until there are tokens again, which tagwire's client waits
        for; nobody else is."""
        name, node = "foreign-maker", (await self.client.metadata()).controller_id
        await self._limit(name, MUTATED, 1.0)
        async with AsyncClient(self._as(name)) as client:
            for who, number, partitions, answer in (
                (client, 1, BURST + 2, "NONE"),  # it is the next request that waits
                (client, 2, 1, "THROTTLING_QUOTA_EXCEEDED"),
                (self.client, 3, BURST, "NONE"),
            ):
                response = await who.request(_create(f"{TOPIC}-{number}", partitions), node=node, version=SINCE)
                about = f"{partitions} partitions by {name if who is client else FREE}, as its request {number}"
                told = [error_of(response), 0 < response.throttle_time_ms <= 3000]
                self.holds(node, "CreateTopics", about, told, [answer, answer != "NONE"])
            await AsyncAdmin(client).create_topics([NewTopic(f"{TOPIC}-4", 2, -1, {})])
            about = f"the topics that {name} and {FREE} were to make"
            there = sorted(one.name for one in await self.admin.list_topics() if one.name.startswith(f"{TOPIC}-"))
            self.holds(node, "CreateTopics", about, there, [f"{TOPIC}-{number}" for number in (1, 3, 4)])
        await self.admin.delete_topics(there)

    async def _connected(self, topic: TopicMetadata) -> None:
        """An address that connects too often is held, and closed; when it may again, it may at once."""
        node = topic.partitions[0].leader
        await self._limit(ADDRESS, CONNECTED, 1.0)
        try:
            found = [await self._greeted(node) for _ in range(AT_ONCE)]
        finally:
            await self._limit(ADDRESS, CONNECTED, None)
        about = f"how many connections of {AT_ONCE} come in, at one a second"
        count = sum(one is not None for one in found)
        self.holds(node, "ApiVersions", about, count if count not in (10, 11) else 10, 10)
        await self._closed(found)
        found = [await self._greeted(node) for _ in range(AT_ONCE)]
        about = f"how many connections of {AT_ONCE} come in, when nothing is said about that"
        self.holds(node, "ApiVersions", about, sum(one is not None for one in found), AT_ONCE)
        await self._closed(found)

    async def _full(self, topic: TopicMetadata) -> None:
        """Connections that are gone make room for as many."""
        most, node = self.spec.get("most_connections"), topic.partitions[0].leader
        if most is None:
            return
        counts = []
        for _ in range(3):
            found = [await self._greeted(node)]
            while found[-1] is not None and len(found) <= most:
                found.append(await self._greeted(node))
            counts.append(len(found) - 1)
            await self._closed(found)
        about = f"how many connections come in at once, of {most}, again and again"
        self.holds(
            node, "ApiVersions", about, [each == counts[0] and most - 10 <= each <= most for each in counts], [True] * 3
        )

    async def _greeted(self, node: int) -> socket.socket | None:
        """A new connection, on which a broker has answered; None where it has closed it, or is silent."""
        broker = (await self.client.metadata()).brokers[node]
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        sock.connect_ex((broker.host, broker.port))
        until, unsent = time.monotonic() + LONG_S, GREETING
        while time.monotonic() < until:
            try:
                while unsent:
                    unsent = unsent[sock.send(unsent) :]
                if sock.recv(1):
                    return sock
                break
            except BlockingIOError:
                pass
            except OSError as error:
                if error.errno != errno.ENOTCONN:
                    break
            await asyncio.sleep(LOOK_S)
        sock.close()
        return None

    async def _closed(self, found: list[socket.socket | None]) -> None:
        for sock in filter(None, found):
            sock.close()
        await asyncio.sleep(1 + self.stage.round_trip_s + self.stage.spikes_s)

    # Parts ----------------------------------------------------------------------------------------------------------

    def _as(self, client_id: str, request_timeout: float = LONG_S) -> dict[str, Any]:
        return self.stage.properties(self.process, max(request_timeout, REQUEST_S if client_id == FREE else 0.0)) | {
            "client.id": client_id
        }

    async def _limit(self, name: str, quota: str, bound: float | None) -> None:
        entity = ClientQuotaEntity(ip=name) if name == ADDRESS else ClientQuotaEntity(client_id=name)
        await altered(self, self.admin, entity, {quota: bound})


def _create(name: str, partitions: int) -> Any:
    kind = messages.CreateTopicsRequest
    wanted = kind.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[])
    return kind(topics=[wanted], timeout_ms=30_000)
