"""Talking to brokers from the tasks of an event loop, asyncio's or uvloop's: AsyncClient, AsyncProducer,
AsyncConsumer, AsyncReader, AsyncAdmin.

They are faces of the same core as `tagwire.client.Client` and its like, and do, take and raise what those do.
"""

from tagwire.client.aio.admin import AsyncAdmin
from tagwire.client.aio.client import AsyncClient
from tagwire.client.aio.consumer import AsyncConsumer
from tagwire.client.aio.delivery import AsyncDelivery, AsyncRowsDelivery
from tagwire.client.aio.producer import AsyncProducer
from tagwire.client.aio.reader import AsyncReader, AsyncRecords

__all__ = [
    "AsyncAdmin",
    "AsyncClient",
    "AsyncConsumer",
    "AsyncDelivery",
    "AsyncProducer",
    "AsyncReader",
    "AsyncRecords",
    "AsyncRowsDelivery",
]
