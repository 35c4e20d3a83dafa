"""A client of a cluster: what users call, each call to its end."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import TracebackType
from typing import Any, Self, Unpack, overload

from tagwire.at_exit import quiet_at_exit
from tagwire.client import arguments
from tagwire.client.blocking_network_client import BlockingNetworkClient
from tagwire.client.client_core import ClientCore, client_settings
from tagwire.client.config import Bootstrap, FetchSettings, ProduceSettings
from tagwire.client.consume_settings import ConsumeSettings
from tagwire.client.metadata import ClusterMetadata, TopicMetadata
from tagwire.client.metrics import MetricValues
from tagwire.client.network_client import ResponseMessage
from tagwire.client.offset_spec import OffsetSpec
from tagwire.client.security import SecurityOptions
from tagwire.client.unclosed import warn_unclosed
from tagwire.codec import MessageObject, RequestMessage
from tagwire.partitions import TopicPartition
from tagwire.rpc import Api, BrokerFeatures, Features, Range, Usability

_NOTHING: Mapping[str, str] = {}


class Client:
    """A client of one cluster, for one thread.

    Attributes:
        network: the connections, which Producer, Reader and Admin of this client share or start from.
        fetch_settings, produce_settings, consume_settings: what readers, producers and consumers of this client start
            from.

    Connections are opened when they are needed; on each, ApiVersions is requested first and every API is spoken at the
    highest version that both sides have. The first contact is tried once at each bootstrap address; whatever is lost
    later is tried again, with pauses, until `timeout` has passed.

        with Client("kafka-1:9092,kafka-2:9092") as client:
            for name, topic in client.metadata().topics.items(): ...

    Args:
        bootstrap: where to start, "HOST:PORT,HOST:PORT", or a list of addresses; or a dict of Kafka's own properties,
            {"bootstrap.servers": "HOST:PORT", ...}, as clients of Java and librdkafka take them: tagwire.client.config
            says which are read. What is given beside it counts instead of it. Readers and producers of the client
            start from what the properties say of fetching and producing.
        client_id: the client's name for itself, in every request; None is "tagwire".
        timeout: seconds that one operation may take, its retries included; None is 30.
        exclude: versions never to use, by API name: `{"Produce": "5-6", "Fetch": [12]}`.
        versions: what brokers serve, instead of requesting that: a release such as "2.8", or versions or ranges by API
            name, `{"Fetch": 12, "Metadata": "4-9", ...}`, of which none may be missing that is used.
        fallback: a release such as "0.9.0", whose versions are taken for granted of a broker that ends the connection
            on ApiVersions.
        apis: an API, or several, that Kafka does not have, as `tagwire.rpc.api_of` makes them: their requests can be
            sent too.
        header_fields: what request headers say beside Kafka's own fields, by attribute, in the header versions of
            `apis` that have room for it.
        security: the attributes of `tagwire.client.Security`: security_protocol, ssl_cafile, sasl_mechanism, ...

    Raises:
        ConfigError: `bootstrap` is no list of addresses, or another option is wrong.
    """

    def __init__(
        self,
        bootstrap: Bootstrap,
        *,
        client_id: str | None = None,
        timeout: float | None = None,
        exclude: Mapping[str, int | str | Collection[int]] = _NOTHING,
        versions: str | Mapping[str, object] | None = None,
        fallback: str | None = None,
        apis: Api | Collection[Api] = (),
        header_fields: Mapping[str, Any] = _NOTHING,
        **security: Unpack[SecurityOptions],
    ) -> None:
        settings = client_settings(
            bootstrap,
            {
                "client_id": client_id,
                "timeout": timeout,
                "exclude": exclude,
                "versions": versions,
                "fallback": fallback,
                "apis": apis,
                "header_fields": header_fields,
                **security,
            },
        )
        self.fetch_settings: FetchSettings = settings.fetch
        self.produce_settings: ProduceSettings = settings.produce
        self.consume_settings: ConsumeSettings = settings.consume
        self.network = BlockingNetworkClient(settings.addresses, settings.connections, settings.timeout)
        self._core = ClientCore(self.network.core, settings)

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> Self:
        """A client set up by Kafka's own property names alone: `Client(properties)`. Raises ConfigError."""
        return cls(properties)

    def close(self) -> None:
        """Closes every connection. The client may be used again; it connects anew."""
        self.network.close()

    @quiet_at_exit
    def __del__(self) -> None:
        if hasattr(self, "network"):  # there is none where an option was wrong
            warn_unclosed(self, self.network)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Requests ------------------------------------------------------------------------------------------------------

    @overload
    def request(
        self, message: RequestMessage[ResponseMessage], *, node: int | None = None, version: int | None = None
    ) -> ResponseMessage: ...
    @overload
    def request(self, message: MessageObject, *, node: int | None = None, version: int | None = None) -> Any: ...
    def request(self, message: Any, *, node: int | None = None, version: int | None = None) -> Any:
        """Sends one request and waits for its response. It is sent once: what to do about an error is the caller's to
        say.

        Args:
            message: any request object of `tagwire.messages`.
            node: the broker to send it to; None is any.
            version: None speaks the highest version in common.

        Returns:
            The response object; None for Produce with acks=0. Error codes inside it are left as they are.

        Raises:
            UnsupportedVersionError, EncodeError: nothing was sent.
            ConnectError, ConnectionLostError, RequestTimeoutError, ProtocolError, DecodeError: no response that can
            be read.
        """
        return self.network.run(self._core.request(message, node=node, version=version))

    def versions(self, node: int | None = None) -> dict[int, Range]:
        """{API key: (lowest, highest)} as the broker serves them, APIs that tagwire does not know included.

        Args:
            node: the broker's id; None is any.

        Raises:
            ConnectError, ...: the broker cannot be reached.
        """
        return self.network.run(self._core.versions(node))

    def features(self, node: int | None = None) -> BrokerFeatures:
        """What a broker tells of features: those it supports, and those that are finalized in the cluster (KIP-584).

        Args:
            node: the broker's id; None is any.

        Raises:
            ConnectError, ...: the broker cannot be reached.
        """
        return self.network.run(self._core.features(node))

    def finalized_features(self) -> Mapping[str, int]:
        """{feature: level} of the cluster's finalized features, as of the highest epoch that any broker told. Empty
        before the first connection, and where brokers do not tell (before Kafka 2.7)."""
        return self._core.finalized_features()

    def usable(self, features: Features, feature: str) -> Usability:
        """Whether every broker of the cluster and this client can do `feature`; if not, what stands against it.

        Args:
            features: where `feature` is defined.
            feature: one of their names.

        Raises:
            KeyError: no feature has this name. ConnectError, ...: a broker cannot be reached.
        """
        return self.network.run(self._core.usable(features, feature))

    @property
    def timeout(self) -> float:
        """Seconds that one operation may take, its retries included."""
        return self.network.timeout

    def negotiated(self) -> dict[str, int]:
        """{API name: version} of requests sent so far; the lowest where brokers differ."""
        return self._core.negotiated()

    def metrics(self) -> MetricValues:
        """What the client measures, plain values by the names of Kafka's own metrics: {group: {name: value}}, such as
        {"client-metrics": {"request-total": 3.0, ...}, "client-node-metrics.node-1": {...}}; None where nothing is to
        be averaged."""
        return self._core.metrics()

    def metadata(self, topics: arguments.Names | None = None, *, allow_auto_create: bool = False) -> ClusterMetadata:
        """The cluster, and these topics, or this one; None requests all topics. What a topic lacks is in its `error`,
        not raised.

        Args:
            allow_auto_create: whether the broker may create a topic that is missing, if it is set to do so.

        Raises:
            ConnectError, RequestTimeoutError, ...: as `request`; KafkaError where the whole request is refused.
        """
        return self.network.run(self._core.metadata(topics, allow_auto_create=allow_auto_create))

    def topic(self, name: str) -> TopicMetadata:
        """A topic that exists and can be used, cached, or after a refresh of its metadata.

        Raises:
            KafkaError: it does not exist, or may not be used; the text names it. ConnectError, ...: as `request`.
        """
        return self.network.topic(arguments.name("name", name), self.network.deadline())

    def list_offsets(
        self,
        partitions: arguments.ByTopicOrPartition[OffsetSpec],
        *,
        isolation: str | None = None,
    ) -> dict[TopicPartition, int]:
        """An offset of each partition: "earliest" (`EARLIEST`) the first one kept, "latest" (`LATEST`) the next to be
        written, or the first record at or after a time, in milliseconds or as `AtTimestamp` (-1 where there is none).

        Args:
            partitions: {(topic, partition): which}; a topic's name stands for all of its partitions.
            isolation: "read_committed" takes a partition to end where its oldest open transaction begins,
                "read_uncommitted" does not; None as the client is set up.

        Raises:
            KafkaError: naming the partition; UNKNOWN_TOPIC_OR_PARTITION for one that does not exist.
            RemoteProtocolError: the broker tells an offset that none can be, or of what was not requested.
            ConfigError: there is no such isolation, or `partitions` means nothing.
        """
        return self.network.run(self._core.list_offsets(partitions, isolation=isolation))
