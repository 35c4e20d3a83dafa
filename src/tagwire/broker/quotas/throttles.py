"""Slows clients down that take more than their quotas: a response tells for how long, and the connection is muted.

A response goes at once, and says in `throttle_time_ms` for how long nothing more is served on the connection (KIP-219).
Source: KIP-13, KIP-124, KIP-599, KIP-612; Kafka's ClientQuotaManager, ConnectionQuotas.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from typing import Any, Final, Generic, Protocol, TypeVar

from tagwire.broker import clock
from tagwire.broker.busy_time import BusyTime
from tagwire.broker.quotas.rates import LONGEST_MS, SAMPLE_MS, SAMPLES, Meter, Rate, TokenBucket
from tagwire.broker.quotas.stored import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    ClientQuotas,
    address_text,
)
from tagwire.broker.session import AnyResponse, Session
from tagwire.errors import Error, KafkaError
from tagwire.spec.api_keys import ApiKey

MOST_METERS: Final = 10_000
"""Clients that are measured; beyond it the one that was measured the longest ago is forgotten."""

MOST_CONNECTING_MS: Final = SAMPLE_MS
"""How long a connection is held at most that came too soon; Kafka's."""

MOST_FOR_REQUESTS_MS: Final = SAMPLE_MS
"""For how long a client is throttled at most for the time that its requests take. Source: Kafka's
ClientRequestQuotaManager."""

LONGEST_NAME: Final = 200
"""Of a client's name for itself, as it is kept: one may be 32767 long, and ten thousand of them 300 MB."""

NOT_MEASURED: Final = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})

KindOfMeter = TypeVar("KindOfMeter", bound=Meter)


class ThrottledCall(Protocol):
    """A request, as far as it is throttled; see `Call`."""

    @property
    def client_id(self) -> str: ...
    @property
    def session(self) -> Session: ...
    @property
    def request(self) -> Any: ...
    @property
    def version(self) -> int: ...


class Meters(Generic[KindOfMeter]):
    """The clients that have a quota of one kind, each measured.

    Args:
        quotas: those that there are.
        quota: the kind's name.
        make: makes a client's meter.
    """

    def __init__(self, quotas: ClientQuotas, quota: str, make: Callable[[], KindOfMeter]) -> None:
        self._quotas = quotas
        self._quota = quota
        self._make = make
        self._meters: OrderedDict[tuple[str, str], KindOfMeter] = OrderedDict()

    def of(self, call: ThrottledCall) -> tuple[KindOfMeter, float] | None:
        """A client's meter and its bound; None for one that has no quota."""
        _, _, user = call.session.principal.partition(":")
        found = self._quotas.of_client(self._quota, user, call.client_id)
        if found is None:
            return None
        user, client_id, bound = found
        return self.at((user, _short(client_id))), bound

    def at(self, key: tuple[str, str]) -> KindOfMeter:
        """The meter of whoever counts together."""
        meter = self._meters.get(key)
        if meter is None:
            meter = self._meters[key] = self._make()
            if len(self._meters) > MOST_METERS:
                self._meters.popitem(last=False)
        self._meters.move_to_end(key)
        return meter

    def record(self, call: ThrottledCall, amount: float) -> int:
        """Count what a client has taken; for how many milliseconds it is to wait, 0 where it need not."""
        found = self.of(call)
        return found[0].record(amount, found[1], clock.monotonic_ms()) if found is not None else 0


class Throttles:
    """What one node measures.

    Args:
        quotas: those that there are.
        mutations: the meters of controller mutations, which all nodes share, as they do the controller.
    """

    def __init__(self, quotas: ClientQuotas, mutations: Meters[TokenBucket]) -> None:
        self._quotas = quotas
        self._mutations = mutations
        self._produced = Meters(quotas, PRODUCER_BYTE_RATE, Rate)
        self._fetched = Meters(quotas, CONSUMER_BYTE_RATE, Rate)
        self._requests = Meters(quotas, REQUEST_PERCENTAGE, Rate)
        self._connections = Meters(quotas, "", Rate)

    @property
    def is_on(self) -> bool:
        """Whether there is any quota."""
        return bool(self._quotas.all)

    async def respond(
        self, call: ThrottledCall, *, key: int, size: int, handle: Callable[[Any], Awaitable[AnyResponse]]
    ) -> AnyResponse:
        """What `handle` responds, with the time for which the client is throttled, and the connection to be muted.

        Args:
            key: of the API.
            size: of the request, in bytes.
        """
        if key in NOT_MEASURED:
            return await handle(call)
        busy = BusyTime()
        response = await busy.of(handle(call))
        wait_ms = 0
        if response is not None:  # who asks for no response is not measured by time, as in Kafka
            wait_ms = min(self._requests.record(call, busy.elapsed_s * 100), MOST_FOR_REQUESTS_MS)
        if key == ApiKey.PRODUCE:
            wait_ms = max(wait_ms, self._produced.record(call, size))
        wait_ms = min(max(wait_ms, getattr(response, "throttle_time_ms", 0)), LONGEST_MS)
        if wait_ms > 0:
            call.session.muted_ms = max(call.session.muted_ms, wait_ms)
            if response is not None and hasattr(response, "throttle_time_ms"):
                response.throttle_time_ms = wait_ms
        return response

    def most_fetched(self, call: ThrottledCall) -> int:
        """How many bytes a client can fetch at once without being throttled for that alone."""
        found = self._fetched.of(call) if self.is_on else None
        return LONGEST_MS if found is None else min(int(found[1] * (SAMPLES - 1) * SAMPLE_MS / 1000), LONGEST_MS)

    def fetched(self, call: ThrottledCall, size: int) -> int:
        """Count what a response to a Fetch would hold; for how many milliseconds the client is to wait. It gets nothing
        then, and nothing has been counted."""
        found = self._fetched.of(call) if self.is_on else None
        if found is None:
            return 0
        (meter, bound), now_ms = found, clock.monotonic_ms()
        wait_ms = meter.record(size, bound, now_ms)
        if wait_ms > 0:
            meter.take_back(size, bound, now_ms)
        return wait_ms

    def mutations(self, call: ThrottledCall, strict_since: int | None) -> Mutations:
        """What a request's changes of topics are counted by.

        Args:
            strict_since: the first version of the request whose changes are refused; None for none.
        """
        found = self._mutations.of(call) if self.is_on else None
        return Mutations(found, is_strict=strict_since is not None and call.version >= strict_since)

    def connected(self, host: str) -> int:
        """Count a new connection; for how many milliseconds it is held before it is closed, 0 where it may stay."""
        if not self.is_on:
            return 0
        bound = self._quotas.of_address(host)
        if bound is None:
            return 0
        meter, now_ms = self._connections.at((address_text(host) or host, "")), clock.monotonic_ms()
        wait_ms = meter.record(1, bound, now_ms)
        if wait_ms > 0:
            meter.take_back(1, bound, now_ms)
        return min(wait_ms, MOST_CONNECTING_MS)


class Mutations:
    """How many partitions one request creates and deletes."""

    def __init__(self, meter: tuple[TokenBucket, float] | None, *, is_strict: bool) -> None:
        self._meter = meter
        self._is_strict = is_strict
        self._until_ms: int | None = None

    @property
    def throttle_time_ms(self) -> int:
        """For how long the client is to wait from now on, of all that was counted: what it has waited for the response
        is past."""
        return 0 if self._until_ms is None else max(self._until_ms - clock.monotonic_ms(), 0)

    def count(self, partitions: int) -> None:
        """Count partitions before they are created or deleted.

        Raises:
            KafkaError: THROTTLING_QUOTA_EXCEEDED: the client is over its quota, and is new enough to be told.
        """
        if self._meter is None:
            return
        (bucket, bound), now_ms = self._meter, clock.monotonic_ms()
        record = bucket.record_strictly if self._is_strict else bucket.record
        wait_ms = record(partitions, bound, now_ms)
        self._until_ms = max(self._until_ms or 0, now_ms + wait_ms)
        if wait_ms > 0 and self._is_strict:
            raise KafkaError(Error.THROTTLING_QUOTA_EXCEEDED, "the client changes topics faster than its quota allows")


def _short(name: str) -> str:
    """A name, or what stands for one that is long: its beginning alone would be that of others, too."""
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[:100]}:{blake2b(name.encode(errors='surrogatepass'), digest_size=16).hexdigest()}"


def mutation_meters(quotas: ClientQuotas) -> Meters[TokenBucket]:
    """Those of controller mutations."""
    return Meters(quotas, CONTROLLER_MUTATION_RATE, TokenBucket)
