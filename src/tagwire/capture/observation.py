"""What one request on a connection tells of its client: the row that every kind of capture becomes."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tagwire.rpc.addresses import address_text
from tagwire.rpc.names import api_name
from tagwire.rpc.ranges import Range


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One end of a TCP connection.

    Attributes:
        address: an IP address as text, "" where the capture does not tell it.
        port: 0 where the capture does not tell it.
    """

    address: str = ""
    port: int = 0

    def __str__(self) -> str:
        return address_text((self.address, self.port))


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where in the evidence something stands.

    Attributes:
        file: the file's path, as `name_of` spells it.
        position: a byte offset in it (in what it unpacks to, where it is packed): of a line, or of a packet.
    """

    file: str
    position: int

    def __str__(self) -> str:
        return f"{self.file} at byte {self.position}"


def name_of(path: Path) -> str:
    """A file's path as evidence names it: bytes that are no UTF-8 are spelled out, as tables and reports are text."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class Observation:
    """Requests of one API in one version on one connection.

    Attributes:
        time: of the first of them, in microseconds since 1970 UTC; -1 where the capture has no time.
        client, broker: the ends of the connection.
        client_id: None where the client sent null.
        software_name, software_version: as the client's ApiVersions request told them, "" where it told none.
        principal: such as "User:alice", "" where it was not seen.
        listener: the broker's name for the listener, "" where it was not seen.
        count: how many requests.
        request_bytes, response_bytes: whole frames with their sizes; None where the capture does not tell.
        error_codes: the codes other than 0 that the responses carried, ascending, each once; None where no response was
            read.
        offered: of an ApiVersions request that got its response, {API key: range} as the broker listed them.
        place: the evidence.
    """

    time: int
    client: Endpoint
    broker: Endpoint
    client_id: str | None
    software_name: str
    software_version: str
    principal: str
    listener: str
    api_key: int
    api_version: int
    place: Place
    count: int = 1
    request_bytes: int | None = None
    response_bytes: int | None = None
    error_codes: tuple[int, ...] | None = None
    offered: dict[int, Range] | None = None

    def __str__(self) -> str:
        return f"{api_name(self.api_key)} v{self.api_version} from {self.client_id!r} at {self.client}"


@dataclass(slots=True)
class Losses:
    """What of a capture was not understood: nothing is dropped without being counted.

    Attributes:
        counts: {reason: how often}.
        first: {reason: where it was met first}.
    """

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, Place] = field(default_factory=dict)

    def add(self, reason: str, place: Place, count: int = 1) -> None:
        self.counts[reason] += count
        self.first.setdefault(reason, place)

    def merge(self, other: Losses) -> None:
        for reason, count in other.counts.items():
            self.add(reason, other.first[reason], count)
