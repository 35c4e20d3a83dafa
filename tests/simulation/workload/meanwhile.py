"""What groups commit while something else becomes of it, when everything is over and the disk takes its time: their
topic is deleted and created anew, or what they have committed is too old and is committed again."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, suppress
from typing import Any, Final

from tagwire.client import NewTopic
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.client.metadata import TopicMetadata
from tagwire.errors import Error, KafkaError, UnsupportedVersionError
from tagwire.partitions import TopicPartition
from tests.simulation.workload.foreign import COMMIT_BY_NAME, REQUEST_S, Enough
from tests.simulation.workload.foreign_offsets import DAY_MS, KEPT_VERSION, Committing, commit
from tests.simulation.workload.probing import REFUSED, coordinator_of, error_of
from tests.simulation.workload.stage import Spec, Stage

TOPIC: Final = "foreign-gone"
COMMIT_BY_ID: Final = 10
"""The first version of OffsetCommit that names topics by their ids, and so never means the next one of a name."""

GROUPS: Final = 8
REPLACED: Final = 3
"""Groups whose offsets are too old and are committed again."""

ROUNDS_S: Final = 11.0
"""So long that a broker looks for what is too old more than once, as often as plans have it."""

AGAIN_S: Final = 0.02
AFTER_S: Final = 0.5


class Meanwhile(Committing):
    """Each of its groups commits over a connection of its own, behind which nobody else waits."""

    def __init__(self, stage: Stage, spec: Spec) -> None:
        super().__init__(stage, spec)
        self._is_anew = False
        self._doubtful: set[str] = set()

    async def ask(self) -> None:
        properties = self.stage.properties(self.process, REQUEST_S)
        async with AsyncExitStack() as stack:
            self.client = await stack.enter_async_context(AsyncClient(properties))
            self.admin = await stack.enter_async_context(AsyncAdmin(properties))
            beside = [self.stage.properties(f"{self.process}-{number}", REQUEST_S) for number in range(GROUPS)]
            self.beside = [await stack.enter_async_context(AsyncClient(each)) for each in beside]
            for act in (self._deleted, self._replaced):
                with suppress(*REFUSED, Enough):
                    await act()

    # A topic that goes -----------------------------------------------------------------------------------------------

    async def _deleted(self) -> None:
        """What was committed of a topic holds for no other of its name, and what is committed of that one stays."""
        await self.admin.create_topics([NewTopic(TOPIC, 1, -1)])
        topic, at = await self.client.topic(TOPIC), TopicPartition(TOPIC, 0)
        groups = {f"{TOPIC}-{number}": client for number, client in enumerate(self.beside)}
        nodes = {group: await coordinator_of(client, group, 0) for group, client in groups.items()}
        # Others commit for the first time when it is about to go.
        before = [group for group in groups if self.random.random() < 0.6]
        await asyncio.gather(*(self._once(groups[group], nodes[group], group, at, 7) for group in before))
        # Some go on until they are told that there is no such topic.
        many = self.random.choice([0.5, 1.0])
        going_on = [group for group in groups if self.random.random() < many]
        committing = [
            asyncio.create_task(self._goes_on(groups[group], nodes[group], group, topic)) for group in going_on
        ]
        await asyncio.sleep(self.random.uniform(0.0, 0.3))
        deleting = asyncio.create_task(self._gone())
        try:
            if self.random.random() < 0.2:
                await deleting
            await self._anew(deleting)
            many = self.random.choice([0.5, 1.0])
            anew = {group for group in groups if self.random.random() < many}
            took = await asyncio.gather(*(self._once(groups[each], nodes[each], each, at, 1) for each in sorted(anew)))
        finally:
            is_gone, *_ = await asyncio.gather(deleting, *committing, return_exceptions=True)
        if is_gone is True:
            due: dict[str, int | None] = dict.fromkeys(groups)
            due.update((group, 1 if taken else self._doubtful.add(group)) for group, taken in zip(sorted(anew), took))
            for group in groups:
                if group not in self._doubtful:
                    about = f"{group} in {TOPIC}, which was deleted and created anew: what it committed of this one"
                    await self.stands(self.admin, nodes[group], group, at, due[group], about)
        with suppress(*REFUSED):
            await self.admin.delete_topics(TOPIC)

    async def _gone(self) -> bool:
        try:
            await self.admin.delete_topics(TOPIC)
        except REFUSED:
            return False
        return True

    async def _anew(self, deleting: asyncio.Task[bool]) -> None:
        """As soon as the name is free, be it that the deletion is not answered yet."""
        async with AsyncAdmin(self.stage.properties(f"{self.process}-anew", REQUEST_S)) as admin:
            self._is_anew = True
            while True:
                try:
                    await admin.create_topics([NewTopic(TOPIC, 1, -1)])
                except KafkaError as error:
                    if error.error is not Error.TOPIC_ALREADY_EXISTS or (deleting.done() and not deleting.result()):
                        raise
                else:
                    return
                await asyncio.sleep(AGAIN_S)

    async def _once(self, client: AsyncClient, node: int, group: str, at: TopicPartition, offset: int) -> bool:
        answer = error_of(await client.request(commit(group, at, offset), node=node, version=COMMIT_BY_NAME))
        return answer == "NONE"

    async def _goes_on(self, client: AsyncClient, node: int, group: str, topic: TopicMetadata) -> None:
        at = TopicPartition(TOPIC, 0)
        await asyncio.sleep(self.random.uniform(0.0, 0.3))
        for number in range(1000):
            by_id = commit(group, at, 10 + number)
            by_id.topics[0].name, by_id.topics[0].topic_id = "", topic.topic_id
            try:
                answer = error_of(await client.request(by_id, node=node, version=COMMIT_BY_ID))
            except UnsupportedVersionError:
                if self._is_anew:
                    return
                by_name = commit(group, at, 10 + number)
                answer = error_of(await client.request(by_name, node=node, version=COMMIT_BY_NAME))
                if self._is_anew and answer == "NONE":  # of which of them is not told
                    self._doubtful.add(group)
            if answer != "NONE":
                return
            await asyncio.sleep(self.random.choice([0.0, 0.1]))

    # What is too old -------------------------------------------------------------------------------------------------

    async def _replaced(self) -> None:
        """What is committed in the place of what is too old stays."""
        topics = await self.topics_of(self.admin, "steady")
        if topics:
            topic = self.random.choice(topics)
            at = TopicPartition(topic.name, self.random.choice(sorted(topic.partitions)))
            groups = [(f"foreign-replaced-{number}", client) for number, client in enumerate(self.beside[:REPLACED])]
            await asyncio.gather(*(self._again(group, client, at) for group, client in groups))

    async def _again(self, group: str, client: AsyncClient, at: TopicPartition) -> None:
        async def kept(offset: int, for_ms: int) -> bool:
            request = commit(group, at, offset, retention_time_ms=for_ms)
            return error_of(await client.request(request, node=node, version=KEPT_VERSION)) == "NONE"

        with suppress(*REFUSED):
            node: Any = await coordinator_of(client, group, 0)
            until = time.monotonic() + ROUNDS_S
            offset = 0
            while time.monotonic() < until:
                offset += 2
                if not await kept(offset, 0):
                    return
                await asyncio.sleep(self.random.choice([0.0, self.random.uniform(0.0, AFTER_S)]))
                if not await kept(offset + 1, DAY_MS):
                    return
                await asyncio.sleep(self.random.uniform(0.0, AFTER_S))
                about = f"{group}, whose offset was to be kept for a day, and the one before no longer"
                await self.stands(self.admin, node, group, at, offset + 1, about)
