"""Which broker coordinates a group or a transactional id (FindCoordinator, key 10)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tagwire import messages
from tagwire.client.broker_connection import BrokerConnection
from tagwire.client.network_client import NetworkClient
from tagwire.client.scheduling import gather, sleep
from tagwire.errors import KafkaError, RemoteProtocolError
from tagwire.rpc.version_gates import FIND_COORDINATOR_KEYS

GROUP: Final = 0
TRANSACTION: Final = 1

# Names in one request: brokers bound what a request may have, and a response stays small beside what a client takes,
# whatever groups have committed and however many members they have.
_AT_ONCE: Final = 250

_NAMES: Final = {GROUP: "group", TRANSACTION: "transactional id"}


def parts(names: list[str]) -> Iterator[list[str]]:
    """The names, as many at a time as one request may be about."""
    for start in range(0, len(names), _AT_ONCE):
        yield names[start : start + _AT_ONCE]


async def coordinators(network: NetworkClient, keys: Iterable[str], kind: int, deadline: float) -> dict[str, int]:
    """{key: node id}; waits for coordinators that are not there yet.

    Args:
        kind: `GROUP` or `TRANSACTION`.

    Raises:
        KafkaError: naming the key. RemoteProtocolError: the response is about another key, or of no broker.
        UnsupportedVersionError, ConnectError, ...: no broker can be reached.
    """
    found: dict[str, int] = {}
    left, retry = list(keys), network.retry(deadline)
    while left:
        later, requested = None, set(left)
        for key, node, error in await _find(network, left, kind, deadline):
            if key not in requested or key in found:
                raise RemoteProtocolError(f"coordinator of {_NAMES[kind]} {key!r}: told, and not requested, or twice")
            if not error:
                if node < 0:
                    raise RemoteProtocolError(f"coordinator of {_NAMES[kind]} {key!r}: told to be broker {node}")
                found[key] = node
                continue
            refusal = KafkaError(error, f"coordinator of {_NAMES[kind]} {key!r}")
            if not refusal.retriable:
                raise refusal
            later = refusal
        left = [key for key in left if key not in found]
        if left:
            missing = later or KafkaError(-1, f"no coordinator of {_NAMES[kind]} {left[0]!r} in the response")
            await sleep(retry.pause_until(missing))
    return found


async def _find(network: NetworkClient, keys: list[str], kind: int, deadline: float) -> list[tuple[str, int, int]]:
    """(key, node id, error code) of each."""
    connection = await network.connection(None, deadline)
    found: list[tuple[str, int, int]] = []
    for told in await gather((_told(network, connection, some, kind, deadline) for some in parts(keys)), network.now):
        if isinstance(told, Exception):
            raise told
        found += told
    return found


async def _told(
    network: NetworkClient, connection: BrokerConnection, keys: list[str], kind: int, deadline: float
) -> list[tuple[str, int, int]]:
    request = messages.FindCoordinatorRequest
    if connection.version(request.api_key) >= FIND_COORDINATOR_KEYS:  # one request may be about several keys
        several = request(key_type=kind, coordinator_keys=keys)
        response = await network.request(connection, several, deadline)
        return [(found.key, found.node_id, found.error_code) for found in response.coordinators]
    found = []
    for key in keys:
        response = await network.request(connection, request(key=key, key_type=kind), deadline)
        found.append((key, response.node_id, response.error_code))
    return found
