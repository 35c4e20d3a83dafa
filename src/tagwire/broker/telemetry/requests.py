"""The request log: the latest requests one by one, and all of them counted. Memory is bounded, whatever clients send.

broker.requests.count("Fetch", client_id="billing")
{entry.version for entry in broker.requests.select("Produce")}
[total for total in broker.requests.totals() if total.version < 3]
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tagwire.broker.session import Session
from tagwire.rpc import AnyRequest, api_key, api_name
from tagwire.spec.api_keys import API_NAMES

MAX_TOTALS = 10_000
"""Combinations of client, API and version that are counted apart; those beyond share one row for each API."""

OTHERS = "(others)"

LONGEST_NAME = 200
"""Characters kept of a client's name for itself, which may be 32767 long."""


@dataclass(slots=True)
class LoggedRequest:
    """One request.

    Attributes:
        at: when it arrived, seconds since 1970 UTC.
        api: the API's name, such as "Fetch"; `api_key` its number, `version` its version.
        client_id: the client's name for itself, "" for none.
        software, software_version: what its ApiVersions request said (from version 3), "" for nothing.
        address: where it comes from, "host:port".
        user: who it has authenticated as, "" where nobody has to.
        request_bytes, response_bytes: sizes, without the four bytes before each.
        seconds: how long the response took; None as long as there is none.
    """

    at: float
    api_key: int
    version: int
    client_id: str
    software: str
    software_version: str
    address: str
    user: str
    request_bytes: int
    response_bytes: int = 0
    seconds: float | None = None
    _begun: float = field(default_factory=time.perf_counter, repr=False, compare=False)
    _total: RequestTotal | None = field(default=None, repr=False, compare=False)

    @property
    def api(self) -> str:
        return api_name(self.api_key)

    def fields(self) -> dict[str, Any]:
        """It as plain values by name, for a log."""
        told = {name: getattr(self, name) for name in _LOGGED}
        return {"api": self.api, **told}


_LOGGED = (
    "version",
    "client_id",
    "software",
    "software_version",
    "address",
    "user",
    "request_bytes",
    "response_bytes",
    "seconds",
)


@dataclass(slots=True)
class RequestTotal:
    """All the requests of one kind from one kind of client, since the broker was started.

    Attributes:
        api_key, version: of the request; `api` is the API's name.
        client_id, software, software_version: by whom.
        count: how many requests.
        request_bytes, response_bytes: how much they and their responses held.
    """

    api_key: int
    version: int
    client_id: str
    software: str
    software_version: str
    count: int = 0
    request_bytes: int = 0
    response_bytes: int = 0

    @property
    def api(self) -> str:
        return api_name(self.api_key)


class RequestLog:
    """The requests of one broker; iterating gives the latest, oldest first. Any thread may look.

    Args:
        kept: how many of the latest are kept one by one.
    """

    def __init__(self, kept: int) -> None:
        self._latest: deque[LoggedRequest] = deque(maxlen=kept)
        self._totals: dict[tuple[int, int, str, str, str], RequestTotal] = {}

    def __iter__(self) -> Iterator[LoggedRequest]:
        return iter(self._latest.copy())

    def __len__(self) -> int:
        return len(self._latest)

    def select(
        self,
        api: str | int | None = None,
        *,
        version: int | None = None,
        client_id: str | None = None,
        software: str | None = None,
    ) -> list[LoggedRequest]:
        """The latest requests that are all of what is given, oldest first."""
        key = api_key(api) if isinstance(api, str) else api
        return [
            entry
            for entry in self
            if (api is None or entry.api_key == key)
            and (version is None or entry.version == version)
            and (client_id is None or entry.client_id == client_id)
            and (software is None or entry.software == software)
        ]

    def count(
        self,
        api: str | int | None = None,
        *,
        version: int | None = None,
        client_id: str | None = None,
        software: str | None = None,
    ) -> int:
        """How many of the latest requests are all of what is given."""
        return len(self.select(api, version=version, client_id=client_id, software=software))

    def totals(self) -> list[RequestTotal]:
        """Every kind of request since the start, or since `clear`."""
        return sorted(self._totals.copy().values(), key=lambda total: (total.api_key, total.version, total.client_id))

    def clear(self) -> None:
        """Forget all, to look at what comes next."""
        self._latest.clear()
        self._totals = {}

    # The broker's side ---------------------------------------------------------------------------------------------

    def begin(self, request: AnyRequest, session: Session, size: int) -> LoggedRequest:
        """Note a request of `size` bytes that has arrived."""
        entry = LoggedRequest(
            time.time(),
            request.api_key,
            request.version,
            request.client_id[:LONGEST_NAME],
            session.software[:LONGEST_NAME],
            session.software_version[:LONGEST_NAME],
            session.address,
            session.user,
            size,
        )
        self._latest.append(entry)
        total = entry._total = self._total(entry)
        total.count += 1
        total.request_bytes += size
        return entry

    def responded(self, entry: LoggedRequest, response_bytes: int) -> None:
        """Note that its response is sent."""
        entry.seconds = time.perf_counter() - entry._begun
        entry.response_bytes = response_bytes
        if entry._total is not None:
            entry._total.response_bytes += response_bytes

    def _total(self, entry: LoggedRequest) -> RequestTotal:
        kind = (entry.api_key, entry.version, entry.client_id, entry.software, entry.software_version)
        found = self._totals.get(kind)
        if found is None and len(self._totals) >= MAX_TOTALS:
            kind = (entry.api_key if entry.api_key in API_NAMES else -1, -1, OTHERS, "", "")
            found = self._totals.get(kind)
        if found is None:
            found = self._totals[kind] = RequestTotal(*kind)
        return found
