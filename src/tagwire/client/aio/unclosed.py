"""The warning about connections on an event loop that nobody closed."""

from __future__ import annotations

import warnings
from contextlib import suppress

from tagwire.client.aio.asyncio_driver import AsyncioDriver
from tagwire.client.network_client import NetworkClient


def unclosed(owner: object, addresses: str) -> str:
    """What is said of a client, or of what has one of its own, that was collected with open connections."""
    kind = type(owner).__name__
    return (
        f"an {kind} of {addresses} was never closed: write `async with {kind}(...) as ...:`, or await its close() when "
        "it is done"
    )


def warn_unclosed(owner: object, network: NetworkClient, driver: AsyncioDriver) -> None:
    """Warns of connections that nobody closed, and closes them. For `__del__`."""
    if not network.is_connected:
        return
    try:
        if network.is_of_this_process:
            warnings.warn(unclosed(owner, network.addresses), ResourceWarning, stacklevel=3, source=owner)
    finally:
        if driver.loop.is_closed():
            network.close()
            driver.close()
        else:
            with suppress(RuntimeError):  # the loop was closed meanwhile, by another thread
                driver.loop.call_soon_threadsafe(network.close)
