"""Which APIs one broker serves, in which versions.

Those that have a handler, or of these what an older release would serve; and those that a program adds.
"""

from __future__ import annotations

from collections.abc import Awaitable

from tagwire.broker.registry import HANDLERS, AddedHandler, Call, Registration
from tagwire.broker.served_apis import SERVED
from tagwire.broker.session import AnyResponse
from tagwire.codec.classes import MessageObject
from tagwire.errors import ConfigError
from tagwire.rpc import Api, Range, api_name, intersect, ranges_of
from tagwire.rpc.gate import BEFORE
from tagwire.spec.releases import advertised


class Apis:
    """The APIs of one broker.

    Args:
        as_release: a release of Kafka, such as "2.8": nothing is served that its brokers did not. None serves all.

    Raises:
        ConfigError: the table of releases has no such release.

    Attributes:
        versions: the versions that are let through to a handler.
        added: the messages of those that a program added.
        advertised: the versions that ApiVersions tells. Kafka from 4.0 on tells Produce 0-2 without serving it, for
            the sake of librdkafka, and so does a broker that stands in for it.
    """

    def __init__(self, as_release: str | None = None) -> None:
        able: dict[int, Range] = {int(key): versions for key, versions in SERVED.items()}
        self.versions = able
        self.advertised = able
        if as_release is not None:
            told = {key: (api.lowest, api.highest) for key, api in advertised(as_release, listener="either").items()}
            self.versions = intersect(able, ranges_of(as_release))
            self.advertised = intersect(able, told)
        self.added: dict[int, Api] = {}
        self._of_added: dict[int, Registration] = {}

    def serving(self, key: int) -> Registration:
        """What handles the requests of an API that is in `versions`. The first time it is imported."""
        return self._of_added.get(key) or HANDLERS[key]

    def add(self, api: Api, handler: AddedHandler) -> None:
        """Serve an API that has no handler here, or another one instead of one that has.

        Raises:
            ConfigError: it is one that a connection begins with.
        """
        if api.key in BEFORE:
            raise ConfigError(f"{api.request.spec.name}: apiKey {api.key} is {api_name(api.key)}, which must stay")

        async def handle(call: Call[MessageObject]) -> AnyResponse:
            response = handler(call)
            return await response if isinstance(response, Awaitable) else response

        self.added[api.key] = api
        self._of_added[api.key] = Registration(
            api.versions, overlaps=False, waits=True, most_bytes=None, handler=handle
        )
        self.versions[api.key] = self.advertised[api.key] = api.versions
