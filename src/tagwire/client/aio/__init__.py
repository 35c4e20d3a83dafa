"""Talking to brokers from the tasks of an event loop, asyncio's or uvloop's: AsyncClient, AsyncAdmin.

They are faces of the same core as `tagwire.client.Client` and its like, and do, take and raise what those do.
"""

from tagwire.client.aio.admin import AsyncAdmin
from tagwire.client.aio.client import AsyncClient

__all__ = ["AsyncAdmin", "AsyncClient"]
