"""A client of another make, when everything is over: it speaks the protocol by itself, and sends what tagwire's own
client never would, and others may. Each of its requests has one right answer."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from tagwire import messages
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.client.metadata import TopicMetadata
from tagwire.partitions import LATEST, TopicPartition
from tagwire.records import Record, write
from tagwire.rpc.version_gates import END_TXN_TRANSACTION_V2
from tests.simulation.workload.owning import Owner, batch
from tests.simulation.workload.probing import (
    NOT_NOW,
    PATIENCE,
    REFUSED,
    Probing,
    coordinator_of,
    error_of,
    produce_request,
)
from tests.simulation.workload.stage import always

REQUEST_S: Final = 20.0
KINDS: Final = ("steady", "compacted", "retained")
"""Topics that nobody deletes."""

OTHERWISE: Final = ("MESSAGE_TOO_LARGE", "INVALID_TIMESTAMP", "KAFKA_STORAGE_ERROR", "NOT_ENOUGH_REPLICAS")
"""What a topic that was configured otherwise meanwhile has to say."""

OUT_OF_ORDER: Final = "OUT_OF_ORDER_SEQUENCE_NUMBER"
NOT_OPEN: Final = "INVALID_TXN_STATE"
NOT_ADDED: Final = (NOT_OPEN, "TRANSACTION_ABORTABLE")
"""What Produce says of a transaction that has not its partition: the other from version 11 on (KIP-890)."""

MOST_OFFSETS: Final = 4

COMMIT_BY_NAME: Final = 8
"""A version of OffsetCommit that every release has, and that names topics."""

WINDOW: Final = 5
"""Batches of a producer that a broker recognizes when they come again."""

NUMBERS: Final = 1 << 31
"""Of records, which then begin anew."""


Sent = Callable[..., Awaitable[Any]]
Stays = Callable[[Any, Any], None]


class Enough(Exception):
    """What was answered leaves nothing more to ask."""


class Speaking(Probing):
    """One who asks single requests, of which each answer is noted."""

    client: AsyncClient

    async def said(
        self,
        node: int,
        request: Any,
        about: str,
        *answers: Any,
        of: Callable[[Any], Any] = error_of,
        otherwise: tuple[str, ...] = (),
        version: int | None = None,
    ) -> Any:
        """The response to a request, which is to say one of `answers`.

        Args:
            of: what it says; the first error anywhere, or NONE.
            otherwise: what it may say as well, and then there is no more to ask.

        Raises:
            Enough: it says something else.
        """
        found: list[Any] = []

        async def answered() -> dict[str, Any]:
            found.append(await self.client.request(request, node=node, version=version))
            return {"answer": of(found[0])}

        api = type(request).__name__.removesuffix("Request")
        asked = {"node": node, "api": api, "about": about, "answers": [*answers, *otherwise, *NOT_NOW]}
        if (await self.noted("probe", asked, answered, lambda answer: answer, has_no_effect=always))[
            "answer"
        ] not in answers:
            raise Enough
        return found[0]

    def holds(self, node: int, api: str, about: str, answer: Any, due: Any) -> None:
        """Notes what was found out, and what it is to be."""
        op = self.history.invoke(self.process, "probe", node=node, api=api, about=about, answers=[due])
        self.history.ok(op, answer=answer)


class Foreign(Speaking):
    """A producer that leaves numbers out and begins epochs where it likes, one that takes its transactional id over
    twice, as who had no answer does, one that ends its transactions twice and writes where it may not, offsets of two
    groups in one transaction, and of one beside it, and a reader whose fetch session outlives a leader epoch."""

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        async with AsyncClient(properties) as client, AsyncAdmin(properties) as admin:
            self.client, self.admin = client, admin
            known = await self.topics_of(admin, *KINDS)
            # What is written to others may be deleted or compacted while it is looked at what a broker holds.
            self.topics = [topic for topic in known if self.stage.topics[topic.name]["kind"] == "steady"]
            for topics, acts in (
                (known, (self._session, self._taken_again)),
                (self.topics, (self._numbers, self._window, self._offsets, self._overtaken, self._ends, self._epochs)),
            ):
                for act in acts if topics else ():
                    topic = self.random.choice(topics)
                    with suppress(*REFUSED, Enough):
                        await act(topic, self.random.choice(sorted(topic.partitions)))

    # Numbers -----------------------------------------------------------------------------------------------------

    async def _numbers(self, topic: TopicMetadata, index: int) -> None:
        sent, stays = await self._numbered(topic, index)
        first = await sent(0, 0, "NONE", otherwise=OTHERWISE)
        await sent(0, 3, OUT_OF_ORDER)
        await sent(0, 1, OUT_OF_ORDER)
        await sent(0, 2, "NONE")
        stays(first, await sent(0, 0, "NONE"))
        await sent(0, 6, OUT_OF_ORDER)
        await sent(1, 4, OUT_OF_ORDER)
        await sent(1, 0, "NONE")
        await sent(0, 4, "INVALID_PRODUCER_EPOCH")
        await sent(1, 4, OUT_OF_ORDER)
        await sent(1, 2, "NONE")

    async def _window(self, topic: TopicMetadata, index: int) -> None:
        """Of a producer that begins where numbers nearly end the last five batches are known, and no other."""
        sent, stays = await self._numbered(topic, index)
        begins = NUMBERS - self.random.choice([3, 4])
        numbers = [(begins + 2 * at) % NUMBERS for at in range(WINDOW + 2)]
        first = await sent(0, numbers[0], "NONE", otherwise=OTHERWISE)
        for number in numbers[1:WINDOW]:
            second = await sent(0, number, "NONE")
            await sent(0, (number + 1) % NUMBERS, OUT_OF_ORDER)
        stays(first, await sent(0, numbers[0], "NONE"))
        stays(second, await sent(0, numbers[WINDOW - 1], "NONE"))
        await sent(0, numbers[WINDOW], "NONE")
        await sent(0, numbers[0], OUT_OF_ORDER)
        await sent(0, numbers[WINDOW + 1], "NONE")

    async def _numbered(self, topic: TopicMetadata, index: int) -> tuple[Sent, Stays]:
        """A new producer of two records a batch: what sends them from a number on, in an epoch after its first; what
        notes that a batch that was sent again stands where it stood."""
        leader, where = topic.partitions[index].leader, f"{topic.name}-{index}"
        init = messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        own = await self.said(leader, init, "a producer id", "NONE")
        op = self.history.invoke(self.process, "init_producer", kind="foreign", acks=-1)
        self.history.ok(op, producer_id=own.producer_id, epoch=own.producer_epoch)

        async def sent(epoch: int, number: int, *answers: str, otherwise: tuple[str, ...] = ()) -> Any:
            epoch += own.producer_epoch
            request = produce(topic, index, own.producer_id, epoch, number)
            about = f"{where} two records from number {number} on, in epoch {epoch} of producer {own.producer_id}"
            return await self.said(leader, request, about, *answers, otherwise=otherwise)

        def stays(first: Any, again: Any) -> None:
            about = f"{where} what it has from producer {own.producer_id}"
            self.holds(leader, "Produce", about, _base_of(again), _base_of(first))

        return sent, stays

    # Fetch sessions ----------------------------------------------------------------------------------------------

    async def _session(self, topic: TopicMetadata, index: int) -> None:
        """A session goes on when its reader knows another leader epoch."""
        known = topic.partitions[index]
        (end,) = (await self.client.list_offsets({TopicPartition(topic.name, index): LATEST})).values()
        kind = messages.FetchRequest

        def fetch(session: int, number: int, epoch: int | None) -> Any:
            wanted = [] if epoch is None else [
                kind.FetchPartition(
                    partition=index, current_leader_epoch=epoch, fetch_offset=end, partition_max_bytes=1 << 20
                )
            ]  # fmt: skip
            topics = [kind.FetchTopic(topic=topic.name, topic_id=topic.topic_id, partitions=wanted)] if wanted else []
            return kind(max_wait_ms=0, min_bytes=0, session_id=session, session_epoch=number, topics=topics)

        about = f"{topic.name}-{index} in a fetch session"
        begun = await self.said(known.leader, fetch(0, 0, -1), about, "NONE")
        if not begun.session_id or known.leader_epoch < 0:
            return
        older = "NONE" if known.leader_epoch == 0 else "FENCED_LEADER_EPOCH"
        steps = [(1, "UNKNOWN_LEADER_EPOCH"), (0, "NONE"), (-1, older), (0, "NONE")]
        for number, (more, answer) in enumerate(steps, 1):
            told = f"{about} by who knows leader epoch {known.leader_epoch + more}"
            await self.said(known.leader, fetch(begun.session_id, number, known.leader_epoch + more), told, answer)
        await self.said(known.leader, fetch(begun.session_id, -1, None), about, "NONE")

    # Transactions ------------------------------------------------------------------------------------------------

    async def _taken_again(self, topic: TopicMetadata, index: int) -> None:
        """Who had no answer to InitProducerId asks again, and is answered as before (KIP-360)."""
        name = "foreign"
        node = await coordinator_of(self.client, name, 1)

        async def taken(producer_id: int = -1, epoch: int = -1, answer: str = "NONE") -> Any:
            request = messages.InitProducerIdRequest(
                transactional_id=name, transaction_timeout_ms=60_000, producer_id=producer_id, producer_epoch=epoch
            )
            return await self.said(node, request, f"{name} by who has epoch {epoch} of {producer_id}", answer)

        first = await taken()
        second = await taken(first.producer_id, first.producer_epoch)
        again = await taken(first.producer_id, first.producer_epoch)
        about = f"{name} once more, in the place of epoch {first.producer_epoch}"
        due = [second.producer_id, second.producer_epoch]
        self.holds(node, "InitProducerId", about, [again.producer_id, again.producer_epoch], due)
        await taken(*due)
        await taken(first.producer_id, first.producer_epoch, "PRODUCER_FENCED")

    async def _offsets(self, topic: TopicMetadata, index: int) -> None:
        """Offsets of several partitions of several groups that one transaction commits count all of them, or none."""
        places = [TopicPartition(each.name, one) for each in self.topics for one in sorted(each.partitions)]
        chosen = sorted(self.random.sample(places, min(MOST_OFFSETS, len(places))))
        groups = ["foreign-offsets", "foreign-offsets-2"]
        for number, commit in enumerate((True, False)):
            owner = await Owner.begun(self, self.client, "foreign-offsets", topic, index, int(2000 * PATIENCE))
            for group in groups:
                await owner.commit_offsets(group, {at: 10 * number + n for n, at in enumerate(chosen)})
            if await owner.end(commit=commit) != "NONE":
                return
            for group in groups:
                found = await self.admin.group_offsets(group)
                about = f"{group} after a transaction that committed offsets of {len(chosen)} partitions"
                told = [found[at].offset if at in found else None for at in chosen]
                node = await coordinator_of(self.client, group, 0)
                self.holds(node, "OffsetFetch", about, told, [*range(len(chosen))])

    async def _overtaken(self, topic: TopicMetadata, index: int) -> None:
        """A group commits while a transaction that has its offset is open: what was written last counts."""
        at, group = TopicPartition(topic.name, index), "foreign-overtaken"
        node = await coordinator_of(self.client, group, 0)
        owner = await Owner.begun(self, self.client, group, topic, index, int(2000 * PATIENCE))
        await owner.commit_offset(group, 1)
        await self.said(node, _commit(group, at, 2), f"{group} beside a transaction", "NONE", version=COMMIT_BY_NAME)
        if await owner.end(commit=True) != "NONE":
            return
        found = await self.admin.group_offsets(group)
        about = f"{group} that has committed {at} after a transaction did, and before that ended"
        self.holds(node, "OffsetFetch", about, found[at].offset if at in found else None, 2)

    async def _ends(self, topic: TopicMetadata, index: int) -> None:
        """A transaction that has ended is not ended otherwise, and takes nothing more, as none does where it was not
        added."""
        places = [(each, one) for each in self.topics for one in sorted(each.partitions)]
        others = [(each, one) for each, one in places if (each.name, one) != (topic.name, index)]
        for commit in (False, True):
            owner = await Owner.begun(self, self.client, "foreign-ends", topic, index, int(2000 * PATIENCE))
            at = f"{topic.name}-{index} in a transaction"
            if others:
                elsewhere = owner.elsewhere(*self.random.choice(others))
                self._refuses(owner.coordinator, "Produce", f"{at}, elsewhere", await elsewhere.produce(), *NOT_ADDED)
            for ends, answer in ((commit, "NONE"), (commit, "NONE"), (not commit, NOT_OPEN)):
                about = f"{at}: commit={commit} before, and now commit={ends}"
                answered = await owner.end(commit=ends)
                self._refuses(owner.coordinator, "EndTxn", about, answered, answer)
                if answered in NOT_NOW:
                    return
            self._refuses(owner.coordinator, "Produce", f"{at} that has ended", await owner.produce(), *NOT_ADDED)

    async def _epochs(self, topic: TopicMetadata, index: int) -> None:
        """Of transactions with epochs of their own (version 2) each is begun by what is written to it, what is late is
        of none, and an end that is sent again is answered as before."""
        name, leader = "foreign-epochs", topic.partitions[index].leader
        node = await coordinator_of(self.client, name, 1)
        told = await self.client.request(
            messages.ApiVersionsRequest(client_software_name="foreign", client_software_version="1"),
            node=node,
            version=3,
        )
        highest = {api.api_key: api.max_version for api in told.api_keys}
        if highest.get(messages.EndTxnRequest.api_key, 0) < END_TXN_TRANSACTION_V2:
            return
        init = messages.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=int(2000 * PATIENCE))
        own = await self.said(node, init, name, "NONE")
        at = f"{topic.name}-{index} in a transaction of version 2"

        async def sent(epoch: int, *answers: str, number: int = 0) -> None:
            request = produce_request(topic, index, batch(name, own.producer_id, epoch, number), name)
            about = f"{at}, number {number} in epoch {epoch}"
            await self.said(leader, request, about, *answers, otherwise=OTHERWISE)

        async def ended(epoch: int, *answers: str, commit: bool) -> None:
            request = messages.EndTxnRequest(
                transactional_id=name, producer_id=own.producer_id, producer_epoch=epoch, committed=commit
            )
            about = f"{at}, commit={commit} in epoch {epoch}"
            found = await self.said(node, request, about, *answers)
            if not found.error_code:
                told = [found.producer_id, found.producer_epoch]
                self.holds(node, "EndTxn", f"{about}, what comes after it", told, [own.producer_id, epoch + 1])

        epoch, commit = own.producer_epoch, self.random.random() < 0.5
        await sent(epoch, "NONE")
        await ended(epoch, "NONE", commit=commit)
        await ended(epoch, "NONE", commit=commit)
        await ended(epoch, NOT_OPEN, commit=not commit)
        await sent(epoch, "INVALID_PRODUCER_EPOCH", number=1)
        await sent(epoch + 1, "NONE")
        await ended(epoch, "PRODUCER_FENCED", commit=commit)
        await ended(epoch + 1, "NONE", commit=False)
        await ended(epoch + 2, NOT_OPEN, commit=True)
        await ended(epoch + 2, "NONE", commit=False)

    def _refuses(self, node: int, api: str, about: str, answer: str, *due: str) -> None:
        op = self.history.invoke(
            self.process, "probe", node=node, api=api, about=about, answers=[*due, *OTHERWISE, *NOT_NOW]
        )
        self.history.ok(op, answer=answer)


def produce(topic: TopicMetadata, index: int, producer_id: int, epoch: int, number: int) -> Any:
    """A request for two records, of which the first has this number."""
    data = write(
        [Record(b"foreign", value, timestamp=int(time.time() * 1000)) for value in (b"one", b"two")],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=number,
    )
    return produce_request(topic, index, data)


def _commit(group: str, at: TopicPartition, offset: int) -> Any:
    kind = messages.OffsetCommitRequest
    part = kind.OffsetCommitRequestPartition(partition_index=at.partition, committed_offset=offset)
    return kind(group_id=group, topics=[kind.OffsetCommitRequestTopic(name=at.topic, partitions=[part])])


def _base_of(response: Any) -> int:
    offset: int = response.responses[0].partition_responses[0].base_offset
    return offset
