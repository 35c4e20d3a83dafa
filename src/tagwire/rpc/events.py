"""Events of a connection: requests to a broker, responses to a client."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from tagwire.codec.classes import MessageObject
from tagwire.escaping import cut
from tagwire.rpc.apis import Apis, request_class
from tagwire.rpc.headers import RequestHeader
from tagwire.rpc.names import api_name

SHOWN_OF_A_NAME: Final = 200
"""Characters of a client's name for itself, which may be 32767 long, that a log or an error shows."""


class Signal(Enum):
    """What `next_event` returns where there is no event."""

    NEED_DATA = "more bytes are needed"
    CLOSED = "the peer has closed the connection, with nothing due"

    def __repr__(self) -> str:
        return self.name


NEED_DATA = Signal.NEED_DATA
"""There is no event yet: more bytes are needed."""
CLOSED = Signal.CLOSED
"""The peer has closed the connection, and nothing was due."""


@dataclass(frozen=True, slots=True, eq=False)
class AnyRequest:
    """What every request to a broker tells, served or not."""

    header: RequestHeader

    @property
    def api_key(self) -> int:
        return self.header.api_key

    @property
    def version(self) -> int:
        return self.header.api_version

    @property
    def correlation_id(self) -> int:
        return self.header.correlation_id

    @property
    def client_id(self) -> str:
        """The client's name for itself, "" where it gave none."""
        return self.header.client_id or ""

    def __str__(self) -> str:
        return f"{api_name(self.api_key)} v{self.version} from client {cut(self.client_id, SHOWN_OF_A_NAME)!r}"


@dataclass(frozen=True, slots=True, eq=False)
class Request(AnyRequest):
    """A request that the broker serves. The body is decoded when it is first read.

    Attributes:
        body: the bytes after the header.
    """

    body: memoryview = field(repr=False)
    lenient: bool = False
    apis: Apis = field(default_factory=dict, repr=False)

    def decode(self) -> MessageObject:
        """The request's message. Raises DecodeError naming the field: the connection is then to be closed."""
        return request_class(self.api_key, self.apis).decode(self.body, self.version, lenient=self.lenient)


@dataclass(frozen=True, slots=True, eq=False)
class UnsupportedApiVersions(AnyRequest):
    """ApiVersions in a version the broker does not know. Its body stays unread; the response, error 35 naming the range
    served, goes out in the layout of version 0 (KIP-511)."""


@dataclass(frozen=True, slots=True, eq=False)
class UnservedRequest(AnyRequest):
    """An API, or a version of one, that the broker does not serve. Kafka closes the connection on it."""


@dataclass(frozen=True, slots=True)
class Response:
    """A response from a broker.

    Attributes:
        version: the layout the message was read in: the request's version, or 0 where ApiVersions was refused.
    """

    api_key: int
    version: int
    correlation_id: int
    message: Any


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A response of a correlation id and nothing else: the broker does not support the request (KIP-35, its
    sub-proposal)."""

    api_key: int
    version: int
    correlation_id: int

    def __str__(self) -> str:
        return self.told_by("the broker")

    def told_by(self, broker: str) -> str:
        """The sentence about it, naming the broker that responded."""
        return (
            f"request not supported by server: {broker} answered {api_name(self.api_key)} v{self.version} with nothing"
        )
