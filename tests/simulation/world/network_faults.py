"""What can be wrong with the simulated network, and the deeds that begin it.

Each of these takes places: a process, or the address of a listener, for one node of those that a process serves.
"""

from __future__ import annotations

import errno
from typing import Literal

from .network import Connection, Fault, Host, Network, Place
from .sockets import Party, StreamSocket

End = Literal["both", "client", "server", "nobody"]


def _is_at(party: Party, place: Place | None) -> bool:
    return place is None or (party.host is place if isinstance(place, Host) else party.serves == place)


def _told(place: Place | None) -> str:
    if place is None:
        return "all"
    return place.name if isinstance(place, Host) else str(place[1])


class _Between(Fault):
    """Of what is sent between two places, or from the first to the second alone."""

    kind = ""

    def __init__(self, network: Network, first: Place, second: Place | None, *, one_way: bool = False) -> None:
        way = "to" if one_way else "and"
        super().__init__(network, f"{self.kind} {_told(first)} {way} {_told(second)}")
        self._first, self._second, self._one_way = first, second, one_way
        network.faults[self] = None
        network.tell(str(self))

    def _is_of(self, sender: Party, receiver: Party) -> bool:
        if _is_at(sender, self._first) and _is_at(receiver, self._second):
            return True
        return not self._one_way and _is_at(receiver, self._first) and _is_at(sender, self._second)


class Partition(_Between):
    """Nothing passes. What is sent meanwhile is sent again later, as TCP does."""

    kind = "partition between"

    def stops(self, sender: Party, receiver: Party) -> bool:
        return self._is_of(sender, receiver)


class Loss(_Between):
    """Some segments are lost."""

    kind = "loss between"

    def __init__(self, network: Network, first: Place, second: Place | None, chance: float) -> None:
        super().__init__(network, first, second)
        self._chance = chance

    def stops(self, sender: Party, receiver: Party) -> bool:
        return self._is_of(sender, receiver) and self._network.random.random() < self._chance


class Slowness(_Between):
    """Segments take longer, in proportion to their size or not: a narrow line, or one who reads slowly."""

    kind = "slowness between"

    def __init__(
        self,
        network: Network,
        first: Place,
        second: Place | None = None,
        *,
        latency_s: float = 0.0,
        bandwidth: float | None = None,
        one_way: bool = False,
    ) -> None:
        super().__init__(network, first, second, one_way=one_way)
        self._latency_s, self._bandwidth = latency_s, bandwidth

    def delay_s(self, sender: Party, receiver: Party, size: int) -> float:
        if not self._is_of(sender, receiver):
            return 0.0
        return self._latency_s * self._network.random.random() + (size / self._bandwidth if self._bandwidth else 0.0)


class Refusal(Fault):
    """A place lets no connection in; those that there are stay."""

    def __init__(self, network: Network, place: Place) -> None:
        super().__init__(network, f"refusal at {_told(place)}")
        self._place = place
        network.faults[self] = None
        network.tell(str(self))

    def refuses(self, server: Party) -> bool:
        return _is_at(server, self._place)


class HalfOpen(Fault):
    """One direction of a connection is lost, and nobody is told."""

    def __init__(self, network: Network, connection: Connection, to: Literal["client", "server"]) -> None:
        super().__init__(network, f"nothing gets to the {to} of {connection}")
        self._flow = (connection.server if to == "server" else connection.client).receives
        self._flow.is_lost = True
        network.faults[self] = None
        network.tell(str(self))

    def heal(self) -> None:
        self._flow.is_lost = False
        super().heal()


def cut(network: Network, connection: Connection, told: End = "both") -> None:
    """End a connection for those who are told, who see a reset at once; nothing more gets to them.

    What was on its way to an end that is not told arrives, and no word after it: an old connection whose requests are
    still served while its client has a new one.
    """
    network.tell(f"cut, told {told}: {connection}")
    ends = {"client": connection.client, "server": connection.server}
    for name, end in ends.items():
        if told in ("both", name):
            end.is_mute = True
            end.receives.is_lost = True
            end.broken(errno.ECONNRESET)
        elif told == "nobody":
            end.receives.is_lost = True


def told_late(network: Network, host: Host) -> int:
    """`host` hears of each connection whose client has gone without a word that got there, as a system does that asks
    whether its peers are there still (keepalive). Returns how many there were.

    Of an end that has arrived it hears nothing anew: what becomes of that connection is the business of who has it.
    """
    unheard = [
        connection
        for connection in network.connections()
        if connection.client.is_gone
        and (server := connection.server).host is host
        and not (server.is_broken or server.receives.has_ended)
    ]
    for connection in unheard:
        cut(network, connection, "server")
    return len(unheard)


def stray(network: Network, host: Host, place: Place) -> StreamSocket:
    """A connection that somebody makes, and that says nothing: whoever listens has to look after it."""
    sock = StreamSocket(host)
    try:
        sock.connect(place.address if isinstance(place, Host) else place)  # type: ignore[arg-type]
    except BlockingIOError:
        network.tell(f"a stray connection of {host.name} to {_told(place)}")
    return sock
