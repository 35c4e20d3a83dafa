"""Options that several commands share, and the reading of `KEY=VALUE`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from tagwire.cli.connecting import given_bootstrap
from tagwire.errors import ConfigError

BOOTSTRAP = "127.0.0.1:9092"


def addresses(context: typer.Context, parameter: typer.CallbackParam, text: str | None) -> str | None:
    """`text` as it is, which must be HOST:PORT[,HOST:PORT]; where nobody gave it, what the properties name.

    None stays None. Raises typer.BadParameter.
    """
    source = context.get_parameter_source(parameter.name or "")
    if text is not None and source is not None and source.name == "DEFAULT":
        text = given_bootstrap() or text
    if text is not None:
        from tagwire.client.config import addresses_of

        try:
            addresses_of(text)
        except ConfigError:
            raise typer.BadParameter(f"{text!r} is not HOST:PORT[,HOST:PORT]") from None
    return text


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
Topic = Annotated[str, typer.Argument(metavar="TOPIC", show_default=False)]


def pairs(values: Iterable[str], option: str) -> list[tuple[str, str]]:
    """`KEY=VALUE` of a repeated option, in order; the value is all after the first `=`.

    Raises:
        typer.BadParameter: one has no key or no `=`.
    """
    found = []
    for text in values:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"{text!r} is not KEY=VALUE", param_hint=f"'{option}'")
        found.append((key, value))
    return found


def host_and_port(text: str, option: str) -> tuple[str, int]:
    """`HOST:PORT`, an IPv6 address in brackets. Raises typer.BadParameter naming the option."""
    from tagwire.rpc.addresses import address_of

    try:
        return address_of(text, option)
    except ConfigError:
        raise typer.BadParameter(f"{text!r} is not HOST:PORT", param_hint=f"'{option}'") from None
