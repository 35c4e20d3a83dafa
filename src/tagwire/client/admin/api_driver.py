"""How every call of an administrator is driven: which broker gets the request, how often, and what becomes of refusals.

Kafka's AdminApiDriver is the model. Everything here is a coroutine of the client's core.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Final, Generic, NamedTuple, TypeVar, cast

from tagwire.client import arguments
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.coordinators import coordinators, parts
from tagwire.client.in_flight_request import ResponseMessage
from tagwire.client.network_client import UNKNOWN_TOPIC_PATIENCE, NetworkClient, UnknownBrokerError
from tagwire.client.offsets import by_leader
from tagwire.client.property_values import MAX_INT
from tagwire.client.scheduling import Work, gather, sleep
from tagwire.client.topic_expansion import partitions_of
from tagwire.client.versions import range_of
from tagwire.codec import RequestMessage
from tagwire.errors import (
    UNREACHABLE,
    ConnectError,
    ConnectionLostError,
    Error,
    KafkaError,
    PartlyRefusedError,
    RemoteProtocolError,
    RequestTimeoutError,
    TagwireError,
    UnsupportedVersionError,
)
from tagwire.escaping import told
from tagwire.partitions import TopicPartition
from tagwire.rpc import choose

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
Result = TypeVar("Result")

_NO_ANSWER: Final = (*UNREACHABLE, UnsupportedVersionError)
# Of a cluster whose brokers are of several releases one may lack an API, or a version of it: the others have told.

MOST_TOLD: Final = 100
"""Refusals that one error tells: a request may be about thousands of things."""


class ApiResult(NamedTuple, Generic[K, V]):
    """What a response says of one key. `error` is a code, 0 for none, `message` the broker's text to it; `value` is set
    where there is no error."""

    key: K
    error: int
    message: str | None = None
    value: V | None = None


ApiResults = AsyncGenerator[ApiResult[K, V], None]
"""What the responses to one round of requests say."""


class AdminApi:
    """What the subjects of `AdminCore` build on.

    Args:
        isolation: the end of a partition: see `tagwire.client.config.ISOLATIONS`.
    """

    def __init__(self, network: NetworkClient, isolation: str) -> None:
        self._network = network
        self._isolation = isolation

    async def _drive(
        self,
        keys: Sequence[K],
        send: Callable[[list[K], float], ApiResults[K, V]],
        verb: str,
        *,
        changes: bool = False,
        moves: bool = True,
        has_named_brokers: bool = False,
    ) -> dict[K, V]:
        """Sends requests until there is a result for every key; what may succeed later is sent again until the
        deadline, and what is about an unknown topic or partition for as long as `NetworkClient.topic` waits for one; so
        is what goes to an unknown broker that the caller named.

        Args:
            send: one round of requests, about the keys that are left, with a deadline.
            verb: with a key, how errors call the request: "delete group 'g'".
            changes: whether requests change something: then they are not sent again when a response was lost, or tells
                that a broker did not wait for what becomes of it.
            moves: whether errors that call for fresh metadata are worth another attempt.
            has_named_brokers: whether requests go to brokers that the caller named. One that metadata does not list may
                not exist; a leader or a coordinator that it does not list comes back, or another takes over.

        Raises:
            PartlyRefusedError: with the code of the first refusal; the text tells up to `MOST_TOLD`. The others have
                succeeded. KafkaError alone: the request was about one key. What was about some keys when a broker was
                away, or is for one that is too old, is among what is refused, where anything was told of others.
            ConnectError, ConnectionLostError, RequestTimeoutError, UnsupportedVersionError: nothing was told of any
                key.
            RemoteProtocolError: a response leaves out a key, or tells of another.
            UnknownBrokerError: metadata still lists no broker that the caller named.
        """
        network = self._network
        deadline = network.deadline()
        missing_until = network.now() + UNKNOWN_TOPIC_PATIENCE
        found: dict[K, V] = {}
        refused: dict[K, KafkaError] = {}
        wanted = list(dict.fromkeys(keys))
        left, retry = wanted, network.retry(deadline)
        later: dict[K, KafkaError] = {}
        try:
            while left:
                later = {}
                silent = set(left)
                try:
                    async with aclosing(send(left, deadline)) as results:
                        async for result in results:
                            if result.key not in silent:
                                raise RemoteProtocolError(
                                    f"{_told(verb, result.key, result.message)}: twice in a response, or not requested"
                                )
                            silent.remove(result.key)
                            if not result.error:
                                found[result.key] = cast("V", result.value)
                                continue
                            refusal = KafkaError(result.error, _told(verb, result.key, result.message))
                            again = refusal.retriable and (moves or not refusal.refreshes_metadata)
                            if refusal.error is Error.REQUEST_TIMED_OUT:
                                again = again and not changes  # it may be made by then, or still be
                            if refusal.error is Error.UNKNOWN_TOPIC_OR_PARTITION:
                                again = again and network.now() < missing_until
                            (later if again else refused)[result.key] = refusal
                except (ConnectError, ConnectionLostError) as error:
                    is_sent = isinstance(error, ConnectionLostError)
                    if is_sent and changes:
                        raise
                    if has_named_brokers and isinstance(error, UnknownBrokerError) and network.now() >= missing_until:
                        raise
                    await sleep(retry.pause_until(error))
                    if not is_sent:
                        try:
                            await network.refresh_brokers(deadline)
                        except RequestTimeoutError:  # there was no time left for an answer
                            raise error from None
                    # Other brokers have responded: a change that was made cannot be made again.
                    left = [key for key in left if key in silent or key in later]
                    continue
                if silent:
                    raise RemoteProtocolError(f"{_told(verb, silent.pop())}: missing in the response")
                left = [key for key in left if key in later]
                if left:
                    try:
                        again_at = retry.pause_until(later[left[0]])
                    except KafkaError:  # no time is left: it is told with what was refused before
                        refused |= later
                        break
                    await sleep(again_at)
                    network.forget(key.topic for key in left if isinstance(key, TopicPartition))
                    await network.refresh_brokers(deadline)
        except _NO_ANSWER as error:
            if not found and not refused:
                raise
            # What became of the others is not to be lost with it.
            missing = [key for key in wanted if key not in found and key not in refused]
            refused |= {key: later.get(key) or as_refusal(error, _told(verb, key)) for key in missing}
        if refused:
            if len(wanted) == 1:
                (only,) = refused.values()
                raise KafkaError(only.code, only.message)
            raise partly_refused(refused, found)
        return found

    async def _beside(self, works: Iterable[Work[list[Result]]]) -> AsyncGenerator[Result]:
        """The results of works that run beside each other. Where some fail, the error is raised last: what the others
        have told need not be asked for again."""
        failed: list[Exception] = []
        for ended in await gather(works, self._network.now):
            if isinstance(ended, Exception):
                failed.append(ended)
                continue
            for result in ended:
                yield result
        if failed:
            # Where nothing was sent all may be sent again; that must not hide that another response was lost.
            raise next((each for each in failed if not isinstance(each, ConnectError)), failed[0])

    async def _of_every_broker(
        self, what: str, ask: Callable[[int, float], Work[tuple[int, list[V]]]]
    ) -> dict[int, list[V]]:
        """What each broker of the cluster lists, by node id.

        Args:
            what: is listed, for errors.
            ask: of one broker, with a deadline: an error code, 0 for none, and what it lists.

        Raises:
            PartlyRefusedError: brokers refuse, are away or too old; of both it tells by node id. ConnectError, ...:
                all are away. KafkaError: all refuse. UnsupportedVersionError: all are too old.
        """
        found: dict[int, list[V]] = {}
        failed: dict[int, TagwireError] = {}

        async def send(left: list[str], deadline: float) -> ApiResults[str, None]:
            brokers = list((await self._network.refresh([], deadline)).brokers)
            responses = await gather([ask(node, deadline) for node in brokers], self._network.now)
            found.clear()  # of a round before, since when something may have gone
            failed.clear()
            for node, response in zip(brokers, responses):
                if isinstance(response, _NO_ANSWER):
                    failed[node] = response
                elif isinstance(response, Exception):
                    raise response
                elif response[0]:
                    failed[node] = KafkaError(response[0], f"list {what} of broker {node}")
                else:
                    found[node] = response[1]
            for error in sorted(failed.values(), key=lambda error: not isinstance(error, UNREACHABLE)):  # may be back
                if not isinstance(error, KafkaError):
                    raise error
            for error in failed.values():
                if isinstance(error, KafkaError):
                    yield ApiResult(what, error.code)
                    return
            yield ApiResult(what, 0)

        try:
            await self._drive([what], send, "list")
        except (KafkaError, *_NO_ANSWER):
            if not found or not failed:
                raise
            refused = {node: as_refusal(error, f"list {what} of broker {node}") for node, error in failed.items()}
            raise partly_refused(refused, found) from None
        return found

    async def _request(
        self, node: int | None, message: RequestMessage[ResponseMessage], deadline: float
    ) -> ResponseMessage:
        """The response of a broker, None for any. Raises as `NetworkClient.connection` and `NetworkClient.request`."""
        return await self._network.request(await self._network.connection(node, deadline), message, deadline)

    def _require(self, connection: BrokerConnection, api: int, since: int) -> None:
        """Raises UnsupportedVersionError where the broker does not serve the API from version `since` on."""
        choose(api, {api: (since, range_of(api)[1])}, connection.ranges, broker=connection.broker)

    async def _by_coordinator(self, keys: Iterable[str], kind: int, deadline: float) -> list[tuple[int, list[str]]]:
        """The keys by the node that coordinates them, as many at a time as one request may be about."""
        nodes: dict[int, list[str]] = defaultdict(list)
        for key, node in (await coordinators(self._network, keys, kind, deadline)).items():
            nodes[node].append(key)
        return [(node, some) for node, own in nodes.items() for some in parts(own)]

    async def _by_leader(
        self, partitions: Iterable[TopicPartition], deadline: float
    ) -> list[tuple[int, dict[str, list[int]]]]:
        """{topic: partitions} by the node that leads them."""
        leaders = await by_leader(self._network, partitions, deadline)
        return [(node, by_topic(own)) for node, own in leaders.items()]

    async def _partitions(self, option: str, given: object) -> list[TopicPartition]:
        """The partitions that a caller means, as `arguments.topics_or_partitions` has it."""
        named = arguments.topics_or_partitions(option, given)
        return await partitions_of(self._network, named, self._network.deadline())

    @property
    def _timeout_ms(self) -> int:
        return int(min(self._network.timeout * 1000, MAX_INT))


def as_refusal(error: TagwireError, about: str) -> KafkaError:
    """What a broker that is away, or too old, is told as beside refusals, by the codes that Kafka's clients have."""
    if isinstance(error, KafkaError):
        return error
    if isinstance(error, UnsupportedVersionError):
        code = Error.UNSUPPORTED_VERSION
    else:
        code = Error.REQUEST_TIMED_OUT if isinstance(error, RequestTimeoutError) else Error.NETWORK_EXCEPTION
    return KafkaError(code, f"{about}: {error}")


def partly_refused(refused: Mapping[K, KafkaError], succeeded: Mapping[K, V]) -> PartlyRefusedError:
    """The error about a call of which some was refused: with the code of the first, and the texts of `MOST_TOLD`."""
    first, *others = refused.values()
    said = [first.message, *map(str, others[: MOST_TOLD - 1])]
    if len(refused) > MOST_TOLD:
        said.append(f"and {len(refused) - MOST_TOLD} more")
    return PartlyRefusedError(first.code, "; ".join(said), refused, succeeded)


def by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """{topic: its partitions}."""
    found: dict[str, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        found[topic].append(partition)
    return dict(found)


def in_order(what: str, keys: Sequence[K], results: Sequence[Result]) -> Iterator[tuple[K, Result]]:
    """Each key with its result, of a response that tells them in the order of the request.

    Raises RemoteProtocolError: there are more of them, or fewer.
    """
    if len(keys) != len(results):
        raise RemoteProtocolError(f"{what}: {len(results)} results in the response to {len(keys)}")
    yield from zip(keys, results)


def _told(verb: str, key: Hashable, message: str | None = None) -> str:
    name = repr(key) if isinstance(key, str) else str(key)
    return f"{verb} {name}{f': {told(message)}' if message else ''}"
