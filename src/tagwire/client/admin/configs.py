"""Configs: what topics, brokers and groups are set to, and setting it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tagwire import messages
from tagwire.client.admin.asking import Asker, Outcome
from tagwire.errors import ConfigError

KINDS: Final = {"topic": 2, "broker": 4, "broker_logger": 8, "client_metrics": 16, "group": 32}
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


Change = str | Append | Subtract | None
"""What becomes of a config: a new value, more or less of a list, or, None, its default."""


class ConfigResource(NamedTuple):
    """What can be configured. `kind` is one of `KINDS`; a broker's name is its id, "" all brokers of the cluster."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"

    @property
    def node(self) -> int | None:
        """The broker that must be asked; None where any will do. Raises ConfigError for a broker without a number."""
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


class Configs(Asker):
    """Configs of a cluster."""

    def describe_configs(self, resources: Iterable[tuple[str, str]]) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """What resources are set to, by config name; defaults included.

        Args:
            resources: (kind, name) pairs, such as ("topic", "flights") or ("broker", "1").

        Raises:
            ConfigError: no such kind. KafkaError: naming the resource.
        """
        kind = messages.DescribeConfigsRequest

        def ask(left: list[ConfigResource], deadline: float) -> Iterator[Outcome]:
            for node, own in _by_node(left).items():
                request = kind(
                    resources=[
                        kind.DescribeConfigsResource(
                            resource_type=KINDS[at.kind], resource_name=at.name, configuration_keys=None
                        )
                        for at in own
                    ]
                )
                for result in self._exchange(self._client.link(node, deadline), request, deadline).results:
                    yield _outcome(result, _entries(result.configs))

        return self._settle(_checked(resources), ask, "describe configs of")

    def alter_configs(
        self, changes: Mapping[tuple[str, str], Mapping[str, Change]], *, validate_only: bool = False
    ) -> None:
        """Sets configs, and leaves the others of a resource as they are.

        Args:
            changes: {(kind, name): {config: value}}; None takes a config back to its default, `Append` and `Subtract`
                change one that is a list.
            validate_only: only ask whether it could be done.

        Raises:
            ConfigError: no such kind. KafkaError: naming the resource. UnsupportedVersionError: a broker before
            Kafka 2.3 cannot change one config alone.
        """
        kind = messages.IncrementalAlterConfigsRequest

        def ask(left: list[ConfigResource], deadline: float) -> Iterator[Outcome]:
            for node, own in _by_node(left).items():
                request = kind(
                    resources=[
                        kind.AlterConfigsResource(
                            resource_type=KINDS[at.kind],
                            resource_name=at.name,
                            configs=[_altered(name, change) for name, change in changes[at].items()],
                        )
                        for at in own
                    ],
                    validate_only=validate_only,
                )
                link = self._client.controller(deadline) if node is None else self._client.link(node, deadline)
                for result in self._exchange(link, request, deadline).responses:
                    yield _outcome(result)

        self._settle(_checked(changes), ask, "alter configs of", changes=True)


def _altered(name: str, change: Change) -> Any:
    kind = messages.IncrementalAlterConfigsRequest.AlterableConfig
    match change:
        case None:
            return kind(name=name, config_operation=_DELETE, value=None)
        case Append(values):
            return kind(name=name, config_operation=_APPEND, value=values)
        case Subtract(values):
            return kind(name=name, config_operation=_SUBTRACT, value=values)
        case value:
            return kind(name=name, config_operation=_SET, value=value)


def _checked(resources: Iterable[tuple[str, str]]) -> list[ConfigResource]:
    found = [ConfigResource(*resource) for resource in resources]
    for resource in found:
        if resource.kind not in KINDS:
            raise ConfigError(f"kind={resource.kind!r}: allowed is {', '.join(KINDS)}")
    return found


def _by_node(resources: Iterable[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    found: dict[int | None, list[ConfigResource]] = defaultdict(list)
    for resource in resources:
        found[resource.node].append(resource)
    return dict(found)


def _outcome(result: Any, value: Any = None) -> Outcome:
    at = ConfigResource(_NAMES.get(result.resource_type, str(result.resource_type)), result.resource_name)
    return Outcome(at, result.error_code, result.error_message, value)


def _entries(configs: Iterable[Any]) -> dict[str, ConfigEntry]:
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
