"""Connection limits: in all, and for each address."""

from __future__ import annotations

import logging
import resource
import sys
from collections import Counter

logger = logging.getLogger("tagwire.broker")


def within_files(most: int) -> int:
    """`most` connections, or as many as half of the files that this process may have open: the other half is for logs,
    which have to be written whoever connects."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if allowed == resource.RLIM_INFINITY else min(most, allowed // 2)


class Together:
    """The connections of all nodes of a cluster: they are of one process, and so are its files."""

    def __init__(self) -> None:
        self.most = within_files(sys.maxsize)
        self.open = 0


class Admission:
    """Counts connections from when they are accepted until they are gone, TLS greetings included.

    Args:
        most, most_per_address: how many there may be.
        together: those of other nodes, too; None where there are none.
    """

    def __init__(self, most: int, most_per_address: int, together: Together | None = None) -> None:
        self._together = together or Together()
        self._most = most
        self._most_per_address = most_per_address
        self._by_address: Counter[str] = Counter()
        self._refusing: set[str] = set()
        self.open = 0

    def enter(self, address: str) -> bool:
        """Whether one more from `address` is let in; if so, `leave` has to follow."""
        reason = ""
        if self.open >= self._most:
            reason, address_told = f"there are {self.open} connections", ""
        elif self._together.open >= self._together.most:
            reason, address_told = f"there are {self._together.open} connections to all nodes", ""
        elif self._by_address[address] >= self._most_per_address:
            reason, address_told = f"{address} has {self._by_address[address]} connections", address
        if reason:
            if address_told not in self._refusing:  # once, however many try
                self._refusing.add(address_told)
                logger.warning("connections are refused: %s", reason)
            return False
        self.open += 1
        self._together.open += 1
        self._by_address[address] += 1
        return True

    def leave(self, address: str) -> None:
        self.open -= 1
        self._together.open -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]
        self._refusing -= {address, ""}
