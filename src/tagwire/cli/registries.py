"""How commands reach a schema registry: --registry, all else from properties as Confluent's clients know them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tagwire.cli.connecting import given_properties, property_of_command_line, remember
from tagwire.errors import ConfigError

if TYPE_CHECKING:
    from tagwire.values.registry import SchemaRegistry

URL = "schema.registry.url"
DEFAULT_URL = "http://127.0.0.1:8081"


def _url(context: typer.Context, parameter: typer.CallbackParam, text: str | None) -> str | None:
    """The command line goes before the environment, and that before a file of properties."""
    source = context.get_parameter_source(parameter.name or "")
    said = property_of_command_line(URL)
    if source is not None and source.name == "ENVIRONMENT" and said:
        return said
    if text and source is not None and source.name == "COMMANDLINE":
        remember({URL: text})  # for the command behind a group's own option
    return text or None


Registry = Annotated[
    str | None,
    typer.Option(
        "--registry",
        "--schema-registry",
        metavar="URL[,URL]",
        envvar="TAGWIRE_REGISTRY",
        callback=_url,
        help=f"The schema registry.  [default: {DEFAULT_URL}]",
        show_default=False,
    ),
]


def open_registry(url: str | None) -> SchemaRegistry:
    """The registry that the command line, the environment and the properties mean.

    Raises:
        ConfigError: naming a property, never a secret.
    """
    from tagwire.values.registry import SchemaRegistry, registry_properties, registry_settings

    given = given_properties()
    _refuse_misspelt(given)
    properties = registry_properties(given)
    properties[URL] = url or properties.get(URL) or DEFAULT_URL
    return SchemaRegistry(registry_settings(properties))


def _refuse_misspelt(given: dict[str, str]) -> None:
    """Raises ConfigError for what is nearly a property of a registry's client. What Kafka's clients know may stand
    beside those, in one file for both."""
    from difflib import get_close_matches

    from tagwire.client.property_names import KNOWN
    from tagwire.values.registry.properties import NAMES

    for name in given:
        if name in KNOWN or name in NAMES or name.startswith("schema.registry."):
            continue  # with its prefix it is checked where it is read
        near = get_close_matches(name, [*NAMES, URL], 1, 0.85)
        if near:
            raise ConfigError(f"{name}: no property of a schema registry's client; {near[0]} is one")
