"""The warning about connections that nobody closed."""

from __future__ import annotations

import warnings

from tagwire.client.blocking_network_client import BlockingNetworkClient


def unclosed(owner: object, addresses: str) -> str:
    """What is said of a client, or of what has one of its own, that was collected with open connections."""
    kind = type(owner).__name__
    return (
        f"a {kind} of {addresses} was never closed: write `with {kind}(...) as {kind.lower()}:`, or call its close() "
        "when it is done"
    )


def warn_unclosed(owner: object, network: BlockingNetworkClient) -> None:
    """Warns of connections that nobody closed, and closes them. For `__del__`. A process that was forked off closes its
    copies alone: the one that made them goes on with them."""
    if not network.core.is_connected:
        network.close()
        return
    try:
        if network.core.is_of_this_process:
            warnings.warn(unclosed(owner, network.core.addresses), ResourceWarning, stacklevel=3, source=owner)
    finally:
        network.close()
