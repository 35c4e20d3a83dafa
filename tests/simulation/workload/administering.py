"""Who looks after the cluster while others use it: topics come, go, are made anew and grow, records are deleted,
configs and the offsets of groups change."""

from __future__ import annotations

from typing import Any

from tagwire.client import LATEST, NewTopic
from tagwire.client.aio import AsyncAdmin, AsyncClient
from tagwire.errors import TagwireError
from tagwire.partitions import TopicPartition
from tests.simulation.workload.stage import Actor, Spec, Stage, always, is_refusal


class Administering(Actor):
    """Changes something every now and then.

    Its spec: count (of changes), pace, topics (that may grow, and whose records and configs may change), unsteady
    (topics that may be deleted and made anew), groups, transactional_ids, configs (that may be set, each with the
    values that it may have), and `steps`, as of a `Consuming`.
    """

    def __init__(self, stage: Stage, spec: Spec) -> None:
        super().__init__(stage, spec)
        self.done = 0

    async def live(self) -> None:
        async with AsyncClient(self.stage.properties(self.process, 5.0)) as client, AsyncAdmin(client) as admin:
            self.client, self.admin = client, admin
            steps: dict[str, float] = self.spec["steps"]
            while self.is_loading and self.done < self.spec["count"]:
                await self.breathe(self.spec["pace"])
                self.done += 1
                (name,) = self.random.choices(list(steps), list(steps.values()))
                try:
                    await getattr(self, f"_{name}")()
                except TagwireError:
                    continue  # it is noted, and somebody else's turn
        self.is_done = True

    # Topics --------------------------------------------------------------------------------------------------------

    async def _renew(self) -> None:
        """Deletes a topic and makes it anew, with as many partitions or others; sometimes after a while."""
        if not self.spec["unsteady"]:
            return
        name = self.random.choice(self.spec["unsteady"])
        delete = lambda: self.admin.delete_topics(name)  # noqa: E731
        await self.noted("delete_topic", {"topic": name}, delete, has_no_effect=is_refusal)
        await self.sleep(self.random.choice([0.0, 0.0, 0.1, 2.0]))
        topic = self.stage.topics[name]
        topic["partitions"] = partitions = self.random.randint(1, 3)
        asked = {"topic": name, "partitions": partitions, "configs": topic["configs"]}
        new = NewTopic(name, partitions, -1, topic["configs"])
        while True:
            try:
                await self.noted("create_topic", asked, lambda: self.admin.create_topics(new), has_no_effect=is_refusal)
                return
            except TagwireError:
                if not self.is_loading:
                    return
            await self.sleep(0.5)

    async def _grow(self) -> None:
        name = self.random.choice(self.spec["topics"])
        count = self.stage.topics[name]["partitions"] + self.random.randint(1, 2)
        if count <= 6:
            asked = {"topic": name, "count": count}
            grow = lambda: self.admin.create_partitions({name: count})  # noqa: E731
            await self.noted("create_partitions", asked, grow, has_no_effect=is_refusal)
            self.stage.topics[name]["partitions"] = count

    async def _add(self) -> None:
        """Makes a topic that nobody has known, like one that there is."""
        like = self.stage.topics[self.random.choice(self.spec["topics"])]
        name = f"topic-{10 + self.done}"
        asked = {"topic": name, "partitions": self.random.randint(1, 2), "configs": like["configs"]}
        new = NewTopic(name, asked["partitions"], -1, like["configs"])
        await self.noted("create_topic", asked, lambda: self.admin.create_topics(new), has_no_effect=is_refusal)
        self.stage.topics[name] = {**like, "name": name, "partitions": asked["partitions"]}

    async def _delete_records(self) -> None:
        at = self._partition()
        end = await self._end_of(at)
        before = self.random.choice([end, end + 1000, self.random.randint(0, end), self.random.randint(0, end)])
        asked = {"topic": at.topic, "partition": at.partition, "before": before}
        await self.noted(
            "delete_records",
            asked,
            lambda: self.admin.delete_records({at: before}),
            lambda found: {"log_start": found[at]},
            has_no_effect=is_refusal,
        )

    async def _configure(self) -> None:
        if not self.spec["configs"]:
            return
        name = self.random.choice(self.spec["topics"])
        config = self.random.choice(sorted(self.spec["configs"]))
        configs = {config: self.random.choice(self.spec["configs"][config])}
        alter = lambda: self.admin.alter_configs({("topic", name): configs})  # noqa: E731
        await self.noted("alter_config", {"topic": name, "configs": configs}, alter, has_no_effect=is_refusal)

    # Groups and transactions ---------------------------------------------------------------------------------------

    async def _alter_offsets(self) -> None:
        if not self.spec["groups"]:
            return
        group, at = self.random.choice(self.spec["groups"]), self._partition()
        offset = self.random.randint(0, await self._end_of(at))
        alter = lambda: self.admin.alter_group_offsets(group, {at: offset})  # noqa: E731
        asked = {"group": group, "offsets": [[*at, offset]]}
        await self.noted("alter_group_offsets", asked, alter, has_no_effect=is_refusal)

    async def _delete_offsets(self) -> None:
        if not self.spec["groups"]:
            return
        group, at = self.random.choice(self.spec["groups"]), self._partition()
        delete = lambda: self.admin.delete_group_offsets(group, [at])  # noqa: E731
        asked = {"group": group, "partitions": [list(at)]}
        await self.noted("delete_group_offsets", asked, delete, has_no_effect=is_refusal)

    async def _delete_group(self) -> None:
        if not self.spec["groups"]:
            return
        group = self.random.choice(self.spec["groups"])
        delete = lambda: self.admin.delete_groups(group)  # noqa: E731
        await self.noted("delete_group", {"group": group}, delete, has_no_effect=is_refusal)

    async def _fence(self) -> None:
        """Fences whoever has a transactional id, and aborts what is open under it."""
        if self.spec["transactional_ids"]:
            transactional_id = self.random.choice(self.spec["transactional_ids"])
            self.history.note(self.process, "fault", fault="fence_producers", target=transactional_id)
            await self.admin.fence_producers(transactional_id)

    async def _look(self) -> None:
        """Asks for everything that there is to be told, as tools do."""
        await self.admin.list_topics()
        await self.admin.list_groups()
        await self.admin.list_transactions()
        await self.admin.describe_producers(self.spec["topics"])
        await self.admin.group_lags()
        await self.admin.describe_log_dirs()

    # Parts ---------------------------------------------------------------------------------------------------------

    def _partition(self) -> TopicPartition:
        name = self.random.choice(self.spec["topics"])
        return TopicPartition(name, self.random.randrange(self.stage.topics[name]["partitions"]))

    async def _end_of(self, at: TopicPartition) -> int:
        isolation = self.random.choice(["read_uncommitted", "read_committed"])

        async def listed() -> dict[str, Any]:
            found = await self.client.list_offsets({at: LATEST}, isolation=isolation)
            return {"offsets": [[*at, found[at]]]}

        asked = {"isolation": isolation, "spec": "latest", "partitions": [list(at)]}
        found = await self.noted("list_offsets", asked, listed, lambda told: told, has_no_effect=always)
        end: int = found["offsets"][0][2]
        return end
