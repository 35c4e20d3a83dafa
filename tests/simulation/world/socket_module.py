"""What stands for the module `socket` in a simulated process."""

from __future__ import annotations

import errno
import socket as system
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .sockets import Address, PairedSocket, SimulatedSocket, StreamSocket, os_error

if TYPE_CHECKING:
    from .network import Host


class SocketModule:
    """The functions of `socket` that give simulated ones, and everything else of it as it is.

    Args:
        current: whose process asks.
    """

    def __init__(self, current: Callable[[], Host]) -> None:
        self._current = current

    def __getattr__(self, name: str) -> Any:
        return getattr(system, name)

    def socket(self, family: int = system.AF_INET, type: int = system.SOCK_STREAM, proto: int = 0) -> SimulatedSocket:
        if family != system.AF_INET or type != system.SOCK_STREAM:
            raise os_error(errno.EAFNOSUPPORT)
        return StreamSocket(self._current())

    def socketpair(self) -> tuple[SimulatedSocket, SimulatedSocket]:
        host = self._current()
        ours, theirs = PairedSocket(host), PairedSocket(host)
        ours.other, theirs.other = theirs, ours
        return ours, theirs

    def create_server(
        self, address: Address, *, family: int = system.AF_INET, backlog: int | None = None
    ) -> StreamSocket:
        listening = StreamSocket(self._current())
        try:
            listening.bind(address)
            listening.listen(128 if backlog is None else backlog)
        except OSError:
            listening.close()
            raise
        return listening

    def getaddrinfo(
        self, host: str | None, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> list[tuple[Any, ...]]:
        """Of IPv4 alone."""
        name = host or ("0.0.0.0" if flags & system.AI_PASSIVE else "127.0.0.1")
        try:
            system.inet_aton(name)
            address: str | None = name
        except OSError:
            is_number = flags & system.AI_NUMERICHOST
            address = None if is_number else self._current().network.address_of(name)
        if address is None:
            raise system.gaierror(system.EAI_NONAME, "Name or service not known")
        return [(system.AF_INET, system.SOCK_STREAM, system.IPPROTO_TCP, "", (address, int(port or 0)))]
