"""Which APIs one broker serves, in which versions: what has a handler, or of that what an older release would serve."""

from __future__ import annotations

from tagwire.broker import handlers  # noqa: F401  (registers them)
from tagwire.broker.served import SERVED, Served
from tagwire.rpc import Range, intersect, ranges_of
from tagwire.spec.releases import advertised

API_VERSIONS = 18


class Apis:
    """The APIs of one broker.

    Args:
        as_release: a release of Kafka, such as "2.8": nothing is served that its brokers did not. None serves all.

    Raises:
        ConfigError: the table of releases has no such release.

    Attributes:
        served: how each request is answered, by API key.
        versions: the versions that are let through to a handler.
        advertised: the versions that ApiVersions tells. Kafka from 4.0 on tells Produce 0-2 without serving it, for
            the sake of librdkafka, and so does a broker that stands in for it.
    """

    def __init__(self, as_release: str | None = None) -> None:
        able: dict[int, Range] = {key: served.versions for key, served in SERVED.items()}
        self.versions = able
        self.advertised = able
        if as_release is not None:
            told = {key: (api.lowest, api.highest) for key, api in advertised(as_release).items()}
            self.versions = intersect(able, ranges_of(as_release))
            self.advertised = intersect(able, told)
        self.served: dict[int, Served] = {key: SERVED[key] for key in self.versions}
