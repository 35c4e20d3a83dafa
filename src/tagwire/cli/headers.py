"""`tagwire headers`: check registers of int header keys, and show who may use which keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tagwire.cli.options import Json, check_alone
from tagwire.cli.terminal import print_rows, printable
from tagwire.errors import HeaderRegisterError

app = typer.Typer(rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def headers(context: typer.Context, as_json: Json = False) -> None:
    """List header keys; check registers of them.

    \b
    Examples:
      tagwire headers
      tagwire headers check headers.toml
    """
    check_alone(context, as_json)
    if context.invoked_subcommand is None:
        show(None, None, as_json)


@app.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="REGISTER.toml", show_default=False)], as_json: Json = False
) -> None:
    """Check a register of header keys; all that is wrong in it is told at once.

    Keys and names must be unique, also beside Kafka's own, and keys lie in the register's space and not in a reserved
    range. Exit code 1 where they do not.

    \b
    Examples:
      tagwire headers check headers.toml
      tagwire headers check headers.toml --json | jq .problems
    """
    from tagwire.records.register import KAFKA, HeaderRegister

    problems: tuple[str, ...] = ()
    count = 0
    try:
        count = sum(entry not in KAFKA for entry in HeaderRegister.load(file))
    except HeaderRegisterError as error:
        problems = error.problems
    if as_json:
        print(json.dumps({"file": str(file), "ok": not problems, "problems": problems}))
    else:
        said = "1 header" if count == 1 else f"{count} headers"
        for line in problems or (f"{file}: {said} beside Kafka's own",):
            print(printable(line))
    if problems:
        raise typer.Exit(1)


@app.command("list")
def show(
    files: Annotated[list[Path] | None, typer.Argument(metavar="[REGISTER.toml...]", show_default=False)] = None,
    scheme: Annotated[
        str | None, typer.Option("--scheme", metavar="new|old", help="Which allocation, where no register says.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the ranges of header keys, and the keys that are registered: Kafka's own and those of registers.

    `tagwire headers` alone lists Kafka's own.

    \b
    Examples:
      tagwire headers list
      tagwire headers list headers.toml --json
      tagwire headers list --scheme old
    """
    from tagwire.records.header_keys import RANGES, namespace_of
    from tagwire.records.register import HeaderRegister

    if scheme is not None and scheme not in RANGES:
        raise typer.BadParameter(f"{scheme!r} is not {' or '.join(RANGES)}", param_hint="'--scheme'")
    register = HeaderRegister.load(*files) if files else HeaderRegister(scheme=scheme or "new")
    if scheme not in (None, register.scheme):
        raise typer.BadParameter(f"the registers' scheme is {register.scheme}", param_hint="'--scheme'")
    if as_json:
        for found in RANGES[register.scheme]:
            print(json.dumps({"range": [found.first, found.last], "namespace": found.namespace}))
        for entry in register:
            row = entry._asdict() | {"namespace": namespace_of(entry.key, register.scheme)}
            print(json.dumps(row))
        return
    rows = [(_hexadecimal(found.first), _hexadecimal(found.last), found.namespace) for found in RANGES[register.scheme]]
    print_rows(("from", "to", "namespace"), rows, numbers=(0, 1))
    print()
    entries = [
        (str(entry.key), entry.name, namespace_of(entry.key, register.scheme), entry.by, entry.description)
        for entry in register
    ]
    print_rows(("key", "name", "namespace", "by", "description"), entries, numbers=(0,))


def _hexadecimal(key: int) -> str:
    return f"{key}" if -0x100 < key < 0x100 else f"{'-' if key < 0 else ''}0x{abs(key):08X}"
