"""What a Client does, as coroutines of the client's core, and what it is told: the blocking face and any other one run
these."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, cast

from tagwire.client import arguments
from tagwire.client.config import (
    Bootstrap,
    FetchSettings,
    ProduceSettings,
    Settings,
    addresses_of,
    at_least,
    bootstrap_text,
    parse,
)
from tagwire.client.connection_settings import ConnectionSettings
from tagwire.client.consume_settings import ConsumeSettings
from tagwire.client.metadata import ClusterMetadata, TopicMetadata
from tagwire.client.metrics import MetricValues
from tagwire.client.network_client import Address, NetworkClient
from tagwire.client.offset_spec import OffsetSpec
from tagwire.client.offsets import offsets_of
from tagwire.client.option_types import of_type
from tagwire.client.property_values import wrong
from tagwire.client.security import SecurityOptions, security_of
from tagwire.client.versions import policy, speakable
from tagwire.codec import MessageObject, RequestMessage
from tagwire.errors import ConfigError, EncodeError
from tagwire.partitions import TopicPartition
from tagwire.rpc import Api, BrokerFeatures, Features, Range, Usability, api_name


class OwnOptions(TypedDict, total=False):
    """The keyword options of a client beside those of its security; see `Client`."""

    client_id: str | None
    timeout: float | None
    exclude: Mapping[str, int | str | Collection[int]]
    versions: str | Mapping[str, object] | None
    fallback: str | None
    apis: Api | Collection[Api]
    header_fields: Mapping[str, Any]


class ClientOptions(OwnOptions, SecurityOptions, total=False):
    """The keyword options of a client; see `Client`."""


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """What a client is told, checked. `timeout` in seconds."""

    addresses: list[Address]
    connections: ConnectionSettings
    timeout: float
    fetch: FetchSettings
    produce: ProduceSettings
    consume: ConsumeSettings


def client_settings(bootstrap: Bootstrap, options: Mapping[str, Any]) -> ClientSettings:
    """What `bootstrap` and `options`, as `ClientOptions`, say together. Raises ConfigError."""
    own = {name: options[name] for name in OwnOptions.__annotations__ if name in options}
    security = {name: value for name, value in options.items() if name not in own}
    timeout = at_least("timeout", own.get("timeout"), 0)
    apis = own.get("apis", ())
    apis = (apis,) if isinstance(apis, Api) else apis
    of_type("apis", apis, Iterable, "a list of what tagwire.rpc.api_of makes")
    apis = tuple(apis)
    for api in apis:
        if not isinstance(api, Api):  # nor is one left out
            raise ConfigError(f"one of apis: needs what tagwire.rpc.api_of makes, not {type(api).__name__}")
    header_fields = own.get("header_fields", {})
    of_type("header_fields", header_fields, Mapping, "a dict by attribute of the header")
    settings = parse(bootstrap) if isinstance(bootstrap, Mapping) else Settings(bootstrap_text(bootstrap))
    added = {api.key: api for api in apis}
    client_id = own.get("client_id")
    name = settings.client_id if client_id is None else arguments.name("client_id", client_id)
    secured = security_of({**settings.security, **security}, tuple(OwnOptions.__annotations__))
    versions = policy(own.get("exclude", {}), own.get("versions"), own.get("fallback"), added)
    return ClientSettings(
        addresses_of(settings.bootstrap),
        ConnectionSettings(name, versions, secured, added, dict(header_fields)),
        settings.timeout if timeout is None else timeout,
        settings.fetch,
        settings.produce,
        settings.consume,
    )


def security_apart(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The `SecurityOptions` among the options of a producer, a reader or a consumer, and all others."""
    security = {name: options[name] for name in SecurityOptions.__annotations__ if name in options}
    return security, {name: value for name, value in options.items() if name not in security}


def no_security_beside(client: object, security: Mapping[str, Any]) -> None:
    """Raises ConfigError where options of security stand beside a client, whose connections are protected as it was
    set up."""
    for name in security:
        raise ConfigError(f"{name}: has no effect beside a client; give it to the {type(client).__name__}")


class ClientCore:
    """Every call of `Client`, under the same name, without a socket, a thread or a clock of its own.

    Attributes:
        network: the connections.
        fetch_settings, produce_settings, consume_settings: what readers, producers and consumers of the client start
            from.
    """

    def __init__(self, network: NetworkClient, settings: ClientSettings) -> None:
        self.network = network
        self.fetch_settings = settings.fetch
        self.produce_settings = settings.produce
        self.consume_settings = settings.consume

    @property
    def timeout(self) -> float:
        """As `Client.timeout`."""
        return self.network.timeout

    def negotiated(self) -> dict[str, int]:
        """As `Client.negotiated`."""
        return {api_name(api): version for api, version in sorted(self.network.negotiated.items())}

    def finalized_features(self) -> Mapping[str, int]:
        """As `Client.finalized_features`."""
        return self.network.finalized.finalized

    def metrics(self) -> MetricValues:
        """As `Client.metrics`."""
        return self.network.metrics.values("client")

    async def request(self, message: Any, *, node: int | None = None, version: int | None = None) -> Any:
        """As `Client.request`."""
        if not isinstance(message, MessageObject):
            raise EncodeError(
                f"message is {type(message).__name__}, not a request of tagwire.messages, such as "
                "messages.MetadataRequest(topics=None)"
            )
        node = _node(node)
        deadline = self.network.deadline()
        request = cast("RequestMessage[MessageObject]", message)
        connection = await self.network.connection(node, deadline)
        return await self.network.request(connection, request, deadline, version)

    async def versions(self, node: int | None = None) -> dict[int, Range]:
        """As `Client.versions`."""
        return dict((await self.network.connection(_node(node), self.network.deadline())).ranges)

    async def features(self, node: int | None = None) -> BrokerFeatures:
        """As `Client.features`."""
        return (await self.network.connection(_node(node), self.network.deadline())).features

    async def usable(self, features: Features, feature: str) -> Usability:
        """As `Client.usable`."""
        network = self.network
        deadline = network.deadline()
        brokers = (await network.refresh([], deadline)).brokers
        ranges = {str(node): (await network.connection(node.id, deadline)).ranges for node in brokers.values()}
        return features.usable(feature, ranges, speakable())

    async def metadata(
        self, topics: arguments.Names | None = None, *, allow_auto_create: bool = False
    ) -> ClusterMetadata:
        """As `Client.metadata`."""
        wanted = None if topics is None else arguments.names("topics", topics)
        return await self.network.refresh(wanted, self.network.deadline(), allow_auto_create=allow_auto_create)

    async def topic(self, name: str) -> TopicMetadata:
        """As `Client.topic`."""
        return await self.network.topic(arguments.name("name", name), self.network.deadline())

    async def list_offsets(
        self, partitions: arguments.ByTopicOrPartition[OffsetSpec], *, isolation: str | None = None
    ) -> dict[TopicPartition, int]:
        """As `Client.list_offsets`."""
        network = self.network
        return await offsets_of(network, partitions, isolation or self.fetch_settings.isolation, network.deadline())


def _node(given: object) -> int | None:
    """A broker's id, None for any. Raises ConfigError."""
    node = arguments.whole(given)
    if node is None and given is not None:
        raise wrong("node", arguments.shown(given), "a broker's number, such as 1, or None for any")
    return node
