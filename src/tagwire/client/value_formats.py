"""Options of readers, consumers and producers for values and keys in Avro, Protobuf or JSON Schema.

`tagwire.values`, and Arrow with it, is imported where such an option is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict

from tagwire.client import arguments
from tagwire.client.property_values import wrong
from tagwire.errors import ConfigError
from tagwire.extras import Needs

if TYPE_CHECKING:
    from tagwire.values.options import ValueSettings

GivenFormat: TypeAlias = "str | Mapping[str, Any] | ValueSettings"
"""A format's name, or a dict of the options of docs/values.md without `value.` or `key.`, or settings made of them."""

RAISE: Final = "raise"
NULL: Final = "null"
DROP: Final = "drop"
BAD_VALUES: Final = (RAISE, NULL, DROP)

_VALUE: Final = "value"
_KEY: Final = "key"
_SHARED: Final = ("auto.register.schemas", "normalize.schemas")
_EXAMPLE: Final = '"avro", or a dict such as {"format": "avro", "schema": "order.avsc"}'


class FormatOptions(TypedDict, total=False):
    """How values and keys are decoded or encoded, as keyword options."""

    value_format: GivenFormat | None
    key_format: GivenFormat | None
    schema_registry: str | Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class ValueFormats:
    """How the values and the keys of records are decoded or encoded; None leaves them bytes.

    Attributes:
        bad: what becomes of one that cannot be decoded: one of `BAD_VALUES`.
    """

    value: ValueSettings | None
    key: ValueSettings | None
    bad: str = RAISE

    def of(self, which: str) -> ValueSettings | None:
        """The settings of "value" or "key"."""
        return self.value if which == _VALUE else self.key

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of "key" and "value" that are no bytes."""
        return tuple(which for which in (_KEY, _VALUE) if self.of(which) is not None)


def value_formats(options: Mapping[str, Any]) -> ValueFormats | None:
    """What the options `FormatOptions` and `bad_values` say; None where keys and values stay bytes.

    Raises:
        ConfigError: naming the option; never a secret. MissingExtraError: a package that it needs is not installed.
    """
    bad = options.get("bad_values")
    if bad is not None and bad not in BAD_VALUES:
        raise wrong("bad_values", arguments.shown(bad), ", ".join(BAD_VALUES))
    registry = options.get("schema_registry")
    if registry is not None and not isinstance(registry, (str, Mapping)):
        raise ConfigError('schema_registry: needs its address, "http://host:8081", or a dict of properties')
    value, key = options.get("value_format"), options.get("key_format")
    if value is None and key is None:
        for name in ("schema_registry", "bad_values"):
            if options.get(name) is not None:
                raise ConfigError(f"{name}: means nothing without value_format or key_format")
        return None
    return ValueFormats(_settings(_VALUE, value, registry), _settings(_KEY, key, registry), bad or RAISE)


def _settings(which: str, given: object, registry: str | Mapping[str, Any] | None) -> ValueSettings | None:
    if given is None:
        return None
    with Needs("arrow"):  # told here, not where the first record is read
        import pyarrow  # noqa: F401
    from tagwire.values.options import ValueSettings, value_settings

    option = f"{which}_format"
    if isinstance(given, ValueSettings):
        if given.which != which:
            raise ConfigError(f"{option}: these settings are of the {given.which}")
        return given
    properties: dict[str, str] = {}
    if isinstance(registry, str):
        properties["schema.registry.url"] = registry
    elif registry is not None:
        properties |= _texts("schema_registry", registry)
    if isinstance(given, str):
        properties[f"{which}.format"] = given
    elif isinstance(given, Mapping):
        for name, text in _texts(option, given).items():
            properties[name if name in _SHARED or name.startswith(f"{which}.") else f"{which}.{name}"] = text
    else:
        raise wrong(option, arguments.shown(given), _EXAMPLE)
    return value_settings(which, properties)


def _texts(option: str, given: Mapping[Any, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in given.items():
        if not isinstance(name, str):
            raise ConfigError(f"{option}: names of options are text")
        if value is None:
            continue
        if not isinstance(value, (str, int, float)):  # the value may be a secret
            raise ConfigError(f"{option}: {name}: needs text, a number, True or False, not {type(value).__name__}")
        found[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return found
