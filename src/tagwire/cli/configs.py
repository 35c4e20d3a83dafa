"""`tagwire configs`: what topics, brokers and groups are set to, and setting it."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tagwire.cli.options import BOOTSTRAP, Bootstrap, Json, pairs
from tagwire.cli.terminal import print_rows, printable, safe_json

app = typer.Typer(name="configs", rich_markup_mode=None, help="Show and change configs.")

Resource = Annotated[
    str, typer.Argument(metavar="KIND/NAME", show_default=False, help="Such as topic/flights, broker/1, group/g.")
]


@app.command()
def describe(
    resource: Resource,
    every: Annotated[bool, typer.Option("--all", help="Defaults too.")] = False,
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Show what a topic, a broker or a group is set to; without --all only what is not a default.

    \b
    Examples:
      tagwire configs describe topic/flights
      tagwire configs describe broker/1 --all --json | jq .name
    """
    from tagwire.client import Admin

    at = _resource(resource)
    with Admin(bootstrap) as admin:
        found = admin.describe_configs([at]).popitem()[1].values()
    shown = [entry for entry in found if every or not entry.is_default]
    if as_json:
        for entry in shown:
            row = {
                "name": entry.name,
                "value": entry.value,
                "source": entry.source,
                "read_only": entry.is_read_only,
                "sensitive": entry.is_sensitive,
            }
            print(safe_json(json.dumps(row, ensure_ascii=False)))
    elif shown:
        rows = [
            (entry.name, "(secret)" if entry.is_sensitive else "" if entry.value is None else entry.value, entry.source)
            for entry in shown
        ]
        print_rows(("config", "value", "set by"), rows)
    else:
        print(f"{printable(resource)} has only defaults (see --all)")


@app.command()
def alter(
    resource: Resource,
    put: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="May be repeated.")] = None,
    reset: Annotated[
        list[str] | None, typer.Option("--reset", metavar="KEY", help="Back to the default; may be repeated.")
    ] = None,
    validate_only: Annotated[bool, typer.Option("--validate-only", help="Only ask whether it could be done.")] = False,
    bootstrap: Bootstrap = BOOTSTRAP,
) -> None:
    """Change configs of a topic, a broker or a group; the others stay as they are.

    \b
    Example:
      tagwire configs alter topic/flights --set retention.ms=-1 --reset segment.bytes
    """
    from tagwire.client import Admin

    at = _resource(resource)
    changes: dict[str, str | None] = {**dict(pairs(put or [], "--set")), **dict.fromkeys(reset or [])}
    if not changes:
        raise typer.BadParameter("nothing to change: give --set or --reset")
    with Admin(bootstrap) as admin:
        admin.alter_configs({at: changes}, validate_only=validate_only)
    count = "1 config" if len(changes) == 1 else f"{len(changes)} configs"
    print(f"{'could change' if validate_only else 'changed'} {count} of {printable(resource)}")


def _resource(text: str) -> tuple[str, str]:
    from tagwire.client.admin.configs import KINDS

    kind, slash, name = text.partition("/")
    if not slash or kind not in KINDS:
        raise typer.BadParameter(f"{text!r} is not KIND/NAME with a kind of {', '.join(KINDS)}")
    return kind, name
