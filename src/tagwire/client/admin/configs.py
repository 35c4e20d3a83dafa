"""Configs: what topics, brokers and groups are set to, and setting it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from tagwire import messages
from tagwire.client import arguments
from tagwire.client.admin.api_driver import AdminApi, ApiResult, ApiResults
from tagwire.client.property_values import wrong
from tagwire.errors import ConfigError
from tagwire.rpc.version_gates import LIST_CONFIG_RESOURCES_TYPES

CLIENT_METRICS: Final = "client_metrics"
KINDS: Final = {"topic": 2, "broker": 4, "broker_logger": 8, CLIENT_METRICS: 16, "group": 32}
_NAMES: Final = {number: kind for kind, number in KINDS.items()}

# Who set a value, by the number on the wire (KIP-226).
SOURCES: Final = {
    1: "topic",
    2: "broker",
    3: "cluster",
    4: "broker file",
    5: "default",
    6: "broker logger",
    7: "client metrics",
    8: "group",
}

_SET: Final = 0
_DELETE: Final = 1
_APPEND: Final = 2
_SUBTRACT: Final = 3


@dataclass(frozen=True, slots=True)
class Append:
    """Adds `values`, separated by commas, to a config that is a list."""

    values: str


@dataclass(frozen=True, slots=True)
class Subtract:
    """Takes `values`, separated by commas, out of a config that is a list."""

    values: str


Change = arguments.ConfigValue | Append | Subtract | None
"""What becomes of a config: a new value, more or less of a list, or, None, its default."""


ResourceT = TypeVar("ResourceT", bound=tuple[str, str])

_RESOURCES: Final = '("topic", "orders"), or a list of such pairs'


class ConfigResource(NamedTuple):
    """What can be configured. `kind` is one of `KINDS`; a broker's name is its id, "" all brokers of the cluster."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"

    @property
    def node(self) -> int | None:
        """The broker that must get the request; None where any will do. Raises ConfigError for one without a number."""
        if self.kind not in ("broker", "broker_logger") or not self.name:
            return None
        if not (self.name.isascii() and self.name.isdigit()):
            raise ConfigError(f"{self}: a broker is named by its id")
        return int(self.name)


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One config of a resource.

    Attributes:
        value: None where nothing is set, and for secrets, which brokers do not tell.
        source: who set it, one of `SOURCES`; "unknown" otherwise.
    """

    name: str
    value: str | None
    source: str
    is_read_only: bool = False
    is_sensitive: bool = False

    @property
    def is_default(self) -> bool:
        return self.source == "default"


class Configs(AdminApi):
    """Configs of a cluster."""

    async def describe_configs(
        self, resources: tuple[str, str] | Sequence[tuple[str, str]] | Set[tuple[str, str]]
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """As `Admin.describe_configs`."""
        kind = messages.DescribeConfigsRequest

        async def describe(
            node: int | None, own: list[ConfigResource], deadline: float
        ) -> list[ApiResult[ConfigResource, dict[str, ConfigEntry]]]:
            request = kind(
                resources=[
                    kind.DescribeConfigsResource(
                        resource_type=KINDS[at.kind], resource_name=at.name, configuration_keys=None
                    )
                    for at in own
                ]
            )
            response = await self._request(node, request, deadline)
            return [
                ApiResult(
                    _resource_of(result.resource_type, result.resource_name),
                    result.error_code,
                    result.error_message,
                    _entries(result.configs),
                )
                for result in response.results
            ]

        async def send(
            left: list[ConfigResource], deadline: float
        ) -> ApiResults[ConfigResource, dict[str, ConfigEntry]]:
            works = [describe(node, own, deadline) for node, own in _by_node(left).items()]
            async for result in self._beside(works):
                yield result

        return await self._drive(_checked(resources), send, "describe configs of", has_named_brokers=True)

    async def alter_configs(
        self,
        changes: Mapping[ResourceT, Mapping[str, Change]],
        *,
        validate_only: bool = False,
    ) -> None:
        """As `Admin.alter_configs`."""
        kind = messages.IncrementalAlterConfigsRequest
        wanted = _changes(changes)

        async def alter(
            node: int | None, own: list[ConfigResource], deadline: float
        ) -> list[ApiResult[ConfigResource, None]]:
            request = kind(
                resources=[
                    kind.AlterConfigsResource(
                        resource_type=KINDS[at.kind],
                        resource_name=at.name,
                        configs=[_altered(name, change) for name, change in wanted[at].items()],
                    )
                    for at in own
                ],
                validate_only=validate_only,
            )
            if node is None:
                connection = await self._network.controller(deadline)
            else:
                connection = await self._network.connection(node, deadline)
            response = await self._network.request(connection, request, deadline)
            return [
                ApiResult(
                    _resource_of(result.resource_type, result.resource_name), result.error_code, result.error_message
                )
                for result in response.responses
            ]

        async def send(left: list[ConfigResource], deadline: float) -> ApiResults[ConfigResource, None]:
            works = [alter(node, own, deadline) for node, own in _by_node(left).items()]
            async for result in self._beside(works):
                yield result

        await self._drive(list(wanted), send, "alter configs of", changes=True, has_named_brokers=True)

    async def list_config_resources(self, kinds: arguments.Names = ()) -> list[ConfigResource]:
        """As `Admin.list_config_resources`."""
        wanted = [_kind(name) for name in arguments.names("kinds", kinds)]
        request = messages.ListConfigResourcesRequest(resource_types=[KINDS[kind] for kind in wanted])

        async def send(left: list[str], deadline: float) -> ApiResults[str, list[ConfigResource]]:
            connection = await self._network.connection(None, deadline)
            # Before version 1 client metrics are told of, and nothing else can be asked for.
            if wanted != [CLIENT_METRICS]:
                self._require(connection, request.api_key, LIST_CONFIG_RESOURCES_TYPES)
            elif connection.version(request.api_key) < LIST_CONFIG_RESOURCES_TYPES:
                request.resource_types = []
            response = await self._network.request(connection, request, deadline)
            found = {_resource_of(each.resource_type, each.resource_name) for each in response.config_resources}
            yield ApiResult("config resources", response.error_code, value=sorted(found))

        return (await self._drive(["config resources"], send, "list"))["config resources"]


def _altered(name: str, change: Change) -> messages.IncrementalAlterConfigsRequest.AlterableConfig:
    kind = messages.IncrementalAlterConfigsRequest.AlterableConfig
    match change:
        case None:
            return kind(name=name, config_operation=_DELETE, value=None)
        case Append(values):
            return kind(name=name, config_operation=_APPEND, value=values)
        case Subtract(values):
            return kind(name=name, config_operation=_SUBTRACT, value=values)
        case value:
            return kind(name=name, config_operation=_SET, value=arguments.config_value(name, value))


def _checked(given: object) -> list[ConfigResource]:
    if isinstance(given, tuple) and len(given) == 2 and all(isinstance(part, str) for part in given):
        given = [given]
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise wrong("resources", arguments.shown(given), _RESOURCES)
    return [_resource("resources", resource, _RESOURCES) for resource in given]


def _changes(given: object) -> dict[ConfigResource, Mapping[str, Change]]:
    shape = 'a dict by kind and name, {("topic", "orders"): {"retention.ms": "-1"}}'
    if not isinstance(given, Mapping):
        raise wrong("changes", arguments.shown(given), shape)
    found = {_resource("a key of changes", key, shape): configs for key, configs in given.items()}
    for resource, configs in found.items():
        if not isinstance(configs, Mapping) or not all(isinstance(name, str) for name in configs):
            raise wrong(f"changes of {resource}", arguments.shown(configs), 'a dict by config, {"retention.ms": "-1"}')
        for name, change in configs.items():
            if change is not None and not isinstance(change, (Append, Subtract)):
                arguments.config_value(f"{name} of {resource}", change)
    return found


def _resource(option: str, given: object, shape: str) -> ConfigResource:
    if isinstance(given, (tuple, list)) and len(given) == 2 and isinstance(given[0], str):
        kind, name = _kind(given[0]), given[1]
        if kind in ("broker", "broker_logger") and (number := arguments.whole(name)) is not None:
            name = str(number)
        if isinstance(name, str):
            return ConfigResource(kind, name)
    raise wrong(option, arguments.shown(given), shape)


def _kind(given: str) -> str:
    if given not in KINDS:
        raise ConfigError(f"kind={given!r}: allowed is {', '.join(KINDS)}")
    return given


def _by_node(resources: Iterable[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    found: dict[int | None, list[ConfigResource]] = defaultdict(list)
    for resource in resources:
        found[resource.node].append(resource)
    return dict(found)


def _resource_of(resource_type: int, name: str) -> ConfigResource:
    return ConfigResource(_NAMES.get(resource_type, str(resource_type)), name)


def _entries(
    configs: Iterable[messages.DescribeConfigsResponse.DescribeConfigsResourceResult],
) -> dict[str, ConfigEntry]:
    return {
        config.name: ConfigEntry(
            config.name,
            config.value,
            SOURCES.get(config.config_source, "unknown"),
            config.read_only,
            config.is_sensitive,
        )
        for config in sorted(configs, key=lambda config: config.name)
    }
