"""How the connections of a client begin, and how far one has come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from tagwire.client.security import PLAINTEXT, Security
from tagwire.client.versions import VersionPolicy
from tagwire.rpc.apis import Apis


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """How every connection of a client begins."""

    client_id: str
    versions: VersionPolicy = field(default_factory=VersionPolicy)
    security: Security = PLAINTEXT
    apis: Apis = field(default_factory=dict)
    header_fields: Mapping[str, Any] = field(default_factory=dict)


class ConnectionState(Enum):
    """How far a connection has come."""

    RESOLVING = "the host's addresses are looked up"
    CONNECTING = "one of them is connected to"
    TLS = "TLS handshake"
    API_VERSIONS = "ApiVersions"
    AUTHENTICATING = "SASL"
    READY = "requests can be sent"
    CLOSED = "closed, or failed"


class ResolvedAddress(NamedTuple):
    """An address of a host, as the system's resolver gives it: family of sockets, and what to connect one to."""

    family: int
    address: tuple[Any, ...]
