"""How every question of an administrator is asked: to whom, how often, and what becomes of refusals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from tagwire.client import arguments
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.coordinators import coordinators
from tagwire.client.network_client import UNKNOWN_TOPIC_PATIENCE
from tagwire.client.offsets import by_leader
from tagwire.client.owning import ClientOwner
from tagwire.client.versions import range_of
from tagwire.errors import ConnectError, ConnectionLostError, Error, KafkaError, RemoteProtocolError
from tagwire.escaping import told
from tagwire.partitions import TopicPartition
from tagwire.rpc import choose

K = TypeVar("K", bound=Hashable)


class Outcome(NamedTuple):
    """What an answer says about one thing that was asked for. `error` is a code, 0 for none."""

    key: Any
    error: int
    said: str | None = None
    value: Any = None


class Asker(ClientOwner):
    """What the subjects of `Admin` build on."""

    def _settle(
        self,
        wanted: Sequence[K],
        ask: Callable[[list[K], float], Iterable[Outcome]],
        verb: str,
        *,
        changes: bool = False,
        moves: bool = True,
    ) -> dict[K, Any]:
        """Asks until everything wanted has its answer; what may succeed later is asked again until the deadline,
        and a topic or partition that nobody knows for as long as `Client.topic` waits for one.

        Args:
            ask: one round, about what is left.
            verb: with the thing itself, how errors call the question: "delete group 'g'".
            changes: whether the question changes something: then it is not asked again when its answer was lost.
            moves: whether errors that call for fresh metadata are worth another attempt.

        Raises:
            KafkaError: with the code of the first refusal; the text tells all of them. The others have succeeded.
            RemoteProtocolError: an answer leaves out what was asked, or tells of something else.
        """
        deadline = self._network.deadline()
        missing_until = self._network.now() + UNKNOWN_TOPIC_PATIENCE
        found: dict[K, Any] = {}
        refused: dict[K, KafkaError] = {}
        left, retry = list(dict.fromkeys(wanted)), self._network.retry(deadline)
        while left:
            later: dict[K, KafkaError] = {}
            silent = set(left)
            try:
                for outcome in ask(left, deadline):
                    if outcome.key not in silent:
                        raise RemoteProtocolError(f"{_told(verb, outcome)}: answered, and not asked for, or twice")
                    silent.remove(outcome.key)
                    if not outcome.error:
                        found[outcome.key] = outcome.value
                        continue
                    refusal = KafkaError(outcome.error, _told(verb, outcome))
                    again = refusal.retriable and (moves or not refusal.refreshes_metadata)
                    if refusal.error is Error.UNKNOWN_TOPIC_OR_PARTITION:
                        again = again and self._network.now() < missing_until
                    (later if again else refused)[outcome.key] = refusal
            except (ConnectError, ConnectionLostError) as error:
                is_asked = isinstance(error, ConnectionLostError)
                if is_asked and changes:
                    raise
                self._network.pause(retry, error)
                if not is_asked:
                    self._network.refresh([], deadline)
                # Other brokers have answered: a change that was made cannot be made again.
                left = [key for key in left if key in silent or key in later]
                continue
            if silent:
                raise RemoteProtocolError(f"{_told(verb, Outcome(silent.pop(), 0))}: no word of it in the answer")
            left = [key for key in left if key in later]
            if left:
                self._network.pause(retry, later[left[0]])
                self._network.forget(key.topic for key in left if isinstance(key, TopicPartition))
                self._network.refresh([], deadline)
        if refused:
            first, *others = refused.values()
            raise KafkaError(first.code, "; ".join([first.message, *(str(other) for other in others)]))
        return found

    def _exchange(self, connection: BrokerConnection, message: Any, deadline: float) -> Any:
        """One request and its answer."""
        return self._network.request(connection, message, deadline)

    def _require(self, connection: BrokerConnection, api: int, since: int) -> None:
        """Raises UnsupportedVersionError where the broker does not serve the API from version `since` on."""
        choose(api, {api: (since, range_of(api)[1])}, connection.ranges, broker=connection.broker)

    def _from_controller(self, message: Callable[[BrokerConnection], Any], deadline: float) -> Any:
        connection = self._network.controller(deadline)
        return self._exchange(connection, message(connection), deadline)

    def _by_coordinator(
        self, keys: Iterable[str], kind: int, deadline: float
    ) -> Iterator[tuple[BrokerConnection, list[str]]]:
        """The keys of each coordinator, with the connection to it."""
        for node, own in _grouped(self._network.run(coordinators(self._network.core, keys, kind, deadline))).items():
            yield self._network.connection(node, deadline), own

    def _places(self, option: str, given: object) -> list[TopicPartition]:
        """The partitions that a caller means, as `arguments.topic_partitions` has it."""
        deadline = self._network.deadline()
        return arguments.topic_partitions(option, given, lambda topic: self._network.topic(topic, deadline).partitions)

    def _by_leader(
        self, partitions: Iterable[TopicPartition], deadline: float
    ) -> Iterator[tuple[BrokerConnection, dict[str, list[int]]]]:
        """{topic: partitions} of each leader, with the connection to it."""
        for node, own in self._network.run(by_leader(self._network.core, partitions, deadline)).items():
            yield self._network.connection(node, deadline), by_topic(own)

    def _every_broker(self, deadline: float) -> Iterator[BrokerConnection]:
        for node in self._network.refresh([], deadline).brokers:
            yield self._network.connection(node, deadline)

    @property
    def _timeout_ms(self) -> int:
        return int(self._network.timeout * 1000)


def by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """{topic: its partitions}."""
    found: dict[str, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        found[topic].append(partition)
    return dict(found)


def _grouped(nodes: dict[str, int]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for key, node in nodes.items():
        found[node].append(key)
    return dict(found)


def _told(verb: str, outcome: Outcome) -> str:
    name = repr(outcome.key) if isinstance(outcome.key, str) else str(outcome.key)
    return f"{verb} {name}{f': {told(outcome.said)}' if outcome.said else ''}"
