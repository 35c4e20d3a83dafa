"""Which broker coordinates a group or a transactional id (FindCoordinator, key 10)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tagwire import messages
from tagwire.client.network_client import NetworkClient
from tagwire.client.scheduling import sleep
from tagwire.errors import KafkaError, RemoteProtocolError
from tagwire.rpc.version_gates import FIND_COORDINATOR_KEYS

GROUP: Final = 0
TRANSACTION: Final = 1

_NAMES: Final = {GROUP: "group", TRANSACTION: "transactional id"}


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
    request = messages.FindCoordinatorRequest
    connection = await network.connection(None, deadline)
    if connection.version(request.api_key) >= FIND_COORDINATOR_KEYS:  # one request may be about several keys
        response = await network.request(connection, request(key_type=kind, coordinator_keys=keys), deadline)
        return [(found.key, found.node_id, found.error_code) for found in response.coordinators]
    found = []
    for key in keys:
        response = await network.request(connection, request(key=key, key_type=kind), deadline)
        found.append((key, response.node_id, response.error_code))
    return found
