"""Options of commands for keys and values in Avro, Protobuf or JSON Schema; all else about them from properties."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tagwire.cli.connecting import given_properties
from tagwire.cli.registries import DEFAULT_URL, URL

if TYPE_CHECKING:
    from tagwire.values.options import ValueSettings

_Format = Literal["avro", "protobuf", "json-schema"]
_SCHEMA_ID = "use.schema.id"
_SHARED = ("auto.register.schemas", "normalize.schemas", "use.latest.version", _SCHEMA_ID)

ValueFormat = Annotated[
    _Format | None,
    typer.Option("--value-format", help="What values are, by a registry's schemas, or one that is given."),
]
KeyFormat = Annotated[_Format | None, typer.Option("--key-format", help="What keys are, likewise.")]
ValueSchema = Annotated[
    str | None,
    typer.Option("--value-schema", metavar="FILE", help="The schema of values. [default: the subject's newest]"),
]
KeySchema = Annotated[str | None, typer.Option("--key-schema", metavar="FILE", help="The schema of keys, likewise.")]

BadValues = Annotated[
    Literal["raise", "null", "drop"],
    typer.Option("--bad-values", help="What becomes of one that cannot be decoded: the end, null, or left out."),
]


def format_settings(
    value_format: str | None,
    key_format: str | None,
    value_schema: str | None,
    key_schema: str | None,
    registry: str | None,
) -> dict[str, ValueSettings]:
    """Settings of `value` and `key` as far as a format is named; also by the properties `value.format` and
    `key.format`, which all other options of docs/values.md may stand beside.

    Raises:
        ConfigError: an option or a property is wrong; never with a secret.
        typer.BadParameter: a schema is given without a format.
    """
    given = given_properties()
    found = {}
    for which, format_, schema in (("value", value_format, value_schema), ("key", key_format, key_schema)):
        if format_ or given.get(f"{which}.format"):
            found[which] = _settings(which, format_, schema, registry, given)
        elif schema is not None:
            raise typer.BadParameter(f"needs --{which}-format", param_hint=f"'--{which}-schema'")
    return found


def client_options(settings: dict[str, ValueSettings]) -> dict[str, Any]:
    """The settings as options of a Reader, a Consumer or a Producer."""
    return {f"{which}_format": one for which, one in settings.items()}


def registry_options(registry: str | None) -> dict[str, str]:
    """How a job of Spark's reaches the registry that the command line or the properties name; they may hold secrets."""
    from tagwire.values.registry import registry_properties
    from tagwire.values.registry.properties import PREFIX

    found = {PREFIX + name.removeprefix(PREFIX): text for name, text in registry_properties(given_properties()).items()}
    return {**found, URL: registry} if registry else found


def job_options(which: str, format_: str, schema: str | None, registry: str | None) -> dict[str, str]:
    """The options by which a job of Spark's decodes values, or keys, of one of `tagwire.values.formats`.

    Args:
        which: "value" or "key".
    """
    from tagwire.client.property_names import KNOWN

    given = given_properties().items()
    found = {
        name: text
        for name, text in given
        if (name.startswith(f"{which}.") and name not in KNOWN) or name == _SCHEMA_ID  # which the job refuses
    }
    found |= {f"{which}.format": format_, **({} if schema is None else {f"{which}.schema": schema})}
    reached = registry_options(registry)
    if URL not in reached and f"{which}.schema" not in found:
        reached[URL] = DEFAULT_URL
    return {**found, **reached} if URL in reached else found


def _settings(
    which: str, format_: str | None, schema: str | None, registry: str | None, given: dict[str, str]
) -> ValueSettings:
    from tagwire.client.property_names import KNOWN
    from tagwire.values.options import value_settings
    from tagwire.values.registry import registry_properties

    properties = {
        name: value
        for name, value in given.items()
        if (name.startswith(f"{which}.") and name not in KNOWN) or name in _SHARED
    }
    if format_ is not None:
        properties[f"{which}.format"] = format_
    if schema is not None:
        properties[f"{which}.schema"] = schema
    of_registry = registry_properties(given)
    if registry:
        of_registry[URL] = registry
    if URL not in of_registry and f"{which}.schema" not in properties:
        of_registry[URL] = DEFAULT_URL
    if URL in of_registry:
        properties |= of_registry
    return value_settings(which, properties)
