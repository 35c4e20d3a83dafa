"""EndTxn requests that a coordinator takes when their client has given them up already.

Before version 5, which tagwire's broker does not serve, all transactions of a producer have one epoch: such a request
ends whichever is open then, in Kafka, too (KIP-890). Nobody else knows of it, so it is noted where it is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tagwire.broker.registry import HANDLERS
from tagwire.spec.api_keys import ApiKey

from .history import History

if TYPE_CHECKING:
    from .world.network import Network


@contextmanager
def late_ends_noted(network: Network, history: History) -> Iterator[None]:
    """Notes each in the history, for as long as it is entered."""
    served = HANDLERS[ApiKey.END_TXN]

    async def handler(call: Any) -> Any:
        client = call.session.client_host, call.session.client_port
        ends = [connection.client for connection in network.connections() if connection.client.local == client]
        if all(end.is_gone for end in ends):
            request = call.request
            history.note(
                "broker",
                "late_end",
                node=call.broker.node_id,
                transactional_id=request.transactional_id,
                producer_id=request.producer_id,
                epoch=request.producer_epoch,
                commit=request.committed,
                version=call.version,
            )
        return await served.handler(call)

    HANDLERS[ApiKey.END_TXN] = replace(served, handler=handler)
    try:
        yield
    finally:
        HANDLERS[ApiKey.END_TXN] = served
