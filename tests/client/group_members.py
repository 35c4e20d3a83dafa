"""Members of groups whose users poll when a test says so, beside each other in one driver: that of the network in
memory, or one with sockets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tagwire.client.blocking_driver import BlockingDriver
from tagwire.client.connection_settings import ConnectionSettings
from tagwire.client.consuming.membership import Membership, RebalanceHandler
from tagwire.client.network_client import NetworkClient
from tagwire.client.scheduling import NEVER, Tasks, Wait, Work
from tagwire.errors import TagwireError
from tagwire.partitions import TopicPartition

from .memory_network import MemoryDriver


def partitions(topic: str, *indexes: int) -> set[TopicPartition]:
    return {TopicPartition(topic, index) for index in indexes}


class Handler:
    """A `RebalanceHandler` that writes down what becomes of partitions; with `is_polling` off nothing goes on."""

    def __init__(self) -> None:
        self.owned: set[TopicPartition] = set()
        self.errors: list[TagwireError] = []
        self.events: list[tuple[str, set[TopicPartition]]] = []
        self.is_polling = True

    async def revoke(self, partitions: Any) -> None:
        await self._tell("revoked", set(partitions))
        self.owned = self.owned - partitions

    async def lose(self, partitions: Any) -> None:
        await self._tell("lost", set(partitions))
        self.owned = self.owned - partitions

    async def assign(self, partitions: Any) -> None:
        self.owned = self.owned | partitions
        await self._tell("assigned", set(partitions))

    def report(self, error: TagwireError) -> None:
        self.errors.append(error)

    async def _tell(self, what: str, partitions: set[TopicPartition]) -> None:
        await Wait(lambda: self.is_polling, NEVER)
        self.events.append((what, partitions))


class Members:
    """Members that run beside each other in one driver, each with connections of its own."""

    def __init__(self, driver: MemoryDriver | BlockingDriver, addresses: Sequence[tuple[str, int]]) -> None:
        self.driver = driver
        self.errors: dict[Any, Exception | None] = {}
        self._addresses = addresses
        self._networks: dict[Any, NetworkClient] = {}
        self._handlers: dict[Any, Handler] = {}
        self._tasks = Tasks()

    def start(
        self,
        make: Callable[[NetworkClient, RebalanceHandler], Membership],
        topics: Sequence[str],
        pattern: str | None = None,
    ) -> tuple[Any, Handler]:
        """A member that runs, and what it has."""
        handler = Handler()
        network = NetworkClient(self._addresses, ConnectionSettings("member"), 30.0, self.driver)
        membership = make(network, handler)
        self._networks[membership], self._handlers[membership] = network, handler
        membership.subscribe(frozenset(topics), pattern)
        membership.polled(self.driver.now())
        self.run(membership)
        return membership, handler

    def run(self, membership: Any) -> None:
        self.begin(membership, membership.run())

    def begin(self, key: Any, work: Work[Any]) -> None:
        self.errors.pop(key, None)
        self._tasks.start(key, work, lambda result, error: self.errors.__setitem__(key, error))

    def end(self, membership: Any) -> None:
        """Kills a member: it says nothing, and is not there any more."""
        self._tasks._tasks.pop(membership).work.close()
        self._close(membership)

    def leave(
        self, membership: Any, reason: str = "the consumer is being closed", *, leaves: bool | None = None
    ) -> None:
        """Has a member leave that has released what it had."""
        key = "leave", membership
        self.begin(key, membership.leave(self.driver.now() + 10, reason, leaves=leaves))
        self.until(lambda: key in self.errors and membership in self.errors, 20)
        assert self.errors[membership] is None
        assert self.errors[key] is None

    def close(self) -> None:
        """Kills all."""
        self._tasks.close()
        for membership in list(self._networks):
            self._close(membership)

    def _close(self, membership: Any) -> None:
        membership.coordinator.close()
        self._networks.pop(membership).close()
        del self._handlers[membership]

    def until(self, is_true: Callable[[], bool], seconds: float = 60.0) -> None:
        """Lets time pass until something holds, which has to happen within some seconds of the driver's clock."""
        deadline = self.driver.now() + seconds
        self.driver.run(self._until(is_true, deadline))
        assert is_true(), f"not within {seconds} s; ended: {self.errors}"

    def pass_time(self, seconds: float) -> None:
        self.driver.run(self._until(lambda: False, self.driver.now() + seconds))

    async def _until(self, is_true: Callable[[], bool], deadline: float) -> None:
        while not is_true() and self.driver.now() < deadline:
            for membership, handler in self._handlers.items():
                if handler.is_polling:
                    membership.polled(self.driver.now())
            wake = min(self._tasks.until, deadline, self.driver.now() + 0.5)  # users poll as often
            await Wait(lambda: is_true() or self._tasks.is_any_over(self.driver.now()), wake)
            self._tasks.step(self.driver.now())
