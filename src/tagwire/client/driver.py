"""What the client's core needs of whoever runs it."""

from __future__ import annotations

from random import Random
from typing import Protocol

from tagwire.client.broker_connection import BrokerConnection


class Driver(Protocol):
    """What runs the client's core: its clock, its randomness, and the network that its connections use.

    Attributes:
        random: where jitter is drawn from.
    """

    random: Random

    def now(self) -> float:
        """Seconds of a clock that never goes back; what it counts from does not matter."""

    def wall_clock(self) -> float:
        """Seconds since 1970 UTC, as far as the system knows."""

    def register(self, connection: BrokerConnection) -> None:
        """Resolves, connects, writes and reads for `connection` until it is closed: see `BrokerConnection`."""
