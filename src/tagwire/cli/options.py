"""Options that several commands share, and the reading of `KEY=VALUE`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer

from tagwire.cli.completing import topics
from tagwire.cli.connecting import (
    BOOTSTRAP_SERVERS,
    given_bootstrap,
    is_file_remembered,
    named_brokers,
    read_properties,
    remember,
    remember_file,
)
from tagwire.errors import ConfigError

_NAME = re.compile(r"[\w.-]*")


def addresses(context: typer.Context, parameter: typer.CallbackParam, text: str | None) -> str | None:
    """`text` as it is, which must be HOST:PORT[,HOST:PORT].

    The command line goes before the environment, and that before a file of properties; where nobody says anything,
    None stays None. Raises typer.BadParameter.
    """
    source = context.get_parameter_source(parameter.name or "")
    is_default = source is None or source.name == "DEFAULT"
    if text is not None and is_default:
        text = given_bootstrap() or text
    elif text is not None and source is not None and source.name == "ENVIRONMENT":
        text = named_brokers() or text
    elif text is not None and parameter.name == "bootstrap":
        remember({BOOTSTRAP_SERVERS: text})
    if text is not None:
        from tagwire.client.config import addresses_of

        try:
            addresses_of(text)
        except ConfigError:
            raise typer.BadParameter(f"{text!r} is not HOST:PORT[,HOST:PORT]") from None
    return text


def _take_file(context: typer.Context, parameter: typer.CallbackParam, path: Path | None) -> None:
    source = context.get_parameter_source(parameter.name or "")
    is_said = source is not None and source.name == "COMMANDLINE"
    if path is not None and (is_said or not is_file_remembered()):
        remember_file(read_properties(path))


def _take_properties(values: list[str] | None) -> None:
    found = dict(pairs(values or [], "-X"))
    for key in found:
        if not _NAME.fullmatch(key):  # what follows a colon or a space may be a password that has an equals sign
            raise typer.BadParameter(f"{_key_of(key)!r} is not KEY=VALUE", param_hint="'-X'")
    remember(found)


# Both are options of `tagwire` itself and of each command that connects. They are read before --bootstrap.
PropertiesFile = Annotated[
    Path | None,
    typer.Option(
        "--properties",
        metavar="FILE",
        envvar="TAGWIRE_PROPERTIES",
        exists=True,
        dir_okay=False,
        is_eager=True,
        expose_value=False,
        callback=_take_file,
        help="How to connect, in the words of Kafka's clients: security.protocol, sasl.username, ...",
    ),
]
Property = Annotated[
    list[str] | None,
    typer.Option(
        "-X",
        metavar="KEY=VALUE",
        is_eager=True,
        expose_value=False,
        callback=_take_properties,
        help="One such property; may be repeated, and goes before the file's.",
    ),
]
Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        metavar="HOST:PORT[,HOST:PORT]",
        envvar="TAGWIRE_BOOTSTRAP",
        callback=addresses,
        help="Brokers to start from.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a line, for programs.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done.")]
Isolation = Literal["read_committed", "read_uncommitted"]
Topic = Annotated[str, typer.Argument(metavar="TOPIC", show_default=False, autocompletion=topics)]


def pairs(values: Iterable[str], option: str) -> list[tuple[str, str]]:
    """`KEY=VALUE` of a repeated option, in order; the value is all after the first `=`.

    Raises:
        typer.BadParameter: one has no key or no `=`.
    """
    found = []
    for text in values:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"{_key_of(text)!r} is not KEY=VALUE", param_hint=f"'{option}'")
        found.append((key, value))
    return found


def _key_of(text: str) -> str:
    """What an error shows of a property that was written in another way: what follows its name may be a password."""
    name = _NAME.match(text)
    shown = name[0] if name else ""
    return shown if shown == text else f"{shown}..."


def host_and_port(text: str, option: str) -> tuple[str, int]:
    """`HOST:PORT`, an IPv6 address in brackets. Raises typer.BadParameter naming the option."""
    from tagwire.rpc.addresses import address_of

    try:
        return address_of(text, option)
    except ConfigError:
        raise typer.BadParameter(f"{text!r} is not HOST:PORT", param_hint=f"'{option}'") from None


def check_alone(context: typer.Context, as_json: bool) -> None:
    """Raises typer.BadParameter where `--json` stands before a subcommand, which would not hear of it."""
    if as_json and context.invoked_subcommand is not None:
        raise typer.BadParameter(f"it goes behind {context.invoked_subcommand}", param_hint="'--json'")
