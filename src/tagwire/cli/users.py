"""`tagwire users`: SCRAM users of a cluster, whose passwords are salted here and never stand on a command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final

import typer

from tagwire.cli import completing
from tagwire.cli.connecting import BOOTSTRAP, administer
from tagwire.cli.options import Bootstrap, DryRun, Json, check_alone
from tagwire.cli.terminal import print_json, print_rows, printable, showing_what_succeeded

app = typer.Typer(name="users", rich_markup_mode=None)

_MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_LONGEST: Final = 4096  # bytes of a password: a whole file that was meant otherwise is none

User = Annotated[
    str, typer.Argument(metavar="USER", show_default=False, autocompletion=completing.scram_users, help="Its name.")
]
Mechanisms = Annotated[
    list[str] | None,
    typer.Option(
        "--mechanism",
        metavar="NAME",
        autocompletion=completing.of(*_MECHANISMS),
        help="SCRAM-SHA-256 or SCRAM-SHA-512.",
    ),
]


@app.callback(invoke_without_command=True)
def users(context: typer.Context, bootstrap: Bootstrap = BOOTSTRAP, as_json: Json = False) -> None:
    """List SCRAM users; add and remove them, or change their passwords.

    \b
    Examples:
      tagwire users
      tagwire users add alice --password-file alice.txt
    """
    check_alone(context, as_json)
    if context.invoked_subcommand is None:
        _list(None, bootstrap, as_json)


@app.command("list")
def list_(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[USER]...", show_default=False, autocompletion=completing.scram_users)
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """List SCRAM users, or those that are named, with their mechanisms.

    \b
    Example:
      tagwire users list --json | jq 'select(.iterations < 8192) | .user'
    """
    _list(names or None, bootstrap, as_json)


@app.command()
def add(
    user: User,
    mechanism: Mechanisms = None,
    iterations: Annotated[
        int, typer.Option("--iterations", metavar="N", help="4096 to 16384; more are dearer to guess from.")
    ] = 4096,
    password_file: Annotated[
        str | None,
        typer.Option("--password-file", metavar="FILE", help="Whose first line is the password; - is standard input."),
    ] = None,
    password_env: Annotated[
        str | None, typer.Option("--password-env", metavar="NAME", help="The variable that the password is in.")
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Give a user a password, in the place of any that it had; without --mechanism, for SCRAM-SHA-512.

    The password is read from a file or a variable, or asked for. It is sent salted; use a connection with TLS.

    \b
    Examples:
      tagwire users add alice
      pass show kafka/alice | tagwire users add alice --mechanism SCRAM-SHA-256 --password-file -
    """
    from tagwire.client import UserScramCredentialUpsertion

    mechanisms = _mechanisms(mechanism) or [_MECHANISMS[-1]]
    password = _password(user, password_file, password_env)

    def show(done: Iterable[tuple[str, str]]) -> None:
        names = [name for _, name in done]
        if as_json:
            print_json({"user": user, "mechanism": name, "iterations": iterations, "set": True} for name in names)
        else:
            print(printable(f"{user} has a password for {' and '.join(names)}"))

    with administer(bootstrap) as admin, showing_what_succeeded(show):
        admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion(user, name, password, iterations) for name in mechanisms]
        )
    show([(user, name) for name in mechanisms])


@app.command()
def remove(
    user: User,
    mechanism: Mechanisms = None,
    dry_run: DryRun = False,
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Take a user's passwords away: those of a mechanism, or without --mechanism all.

    \b
    Example:
      tagwire users remove alice --mechanism SCRAM-SHA-256
    """
    from tagwire.client import UserScramCredentialDeletion
    from tagwire.errors import ConfigError

    def show(done: Iterable[tuple[str, str]]) -> None:
        names = [name for _, name in done]
        if as_json:
            print_json({"user": user, "mechanism": name, "removed": not dry_run} for name in names)
        else:
            did = "could lose its" if dry_run else "has no more"
            print(printable(f"{user} {did} password for {' and '.join(names)}"))

    with administer(bootstrap) as admin, showing_what_succeeded(show):
        there = [info.mechanism for info in admin.describe_user_scram_credentials([user])[user]]
        mechanisms = _mechanisms(mechanism) or there
        absent = [name for name in mechanisms if name not in there]
        if absent:
            raise ConfigError(f"user {user!r} has no password for {absent[0]}, but for {' and '.join(there)}")
        if not dry_run:
            admin.alter_user_scram_credentials([UserScramCredentialDeletion(user, name) for name in mechanisms])
    show([(user, name) for name in mechanisms])


def _list(names: list[str] | None, bootstrap: str, as_json: bool) -> None:
    with administer(bootstrap) as admin:
        found = admin.describe_user_scram_credentials(names)
    rows = [(user, info.mechanism, info.iterations) for user, infos in sorted(found.items()) for info in infos]
    if as_json:
        print_json(dict(zip(("user", "mechanism", "iterations"), row)) for row in rows)
    elif rows:
        table = [(user, mechanism, str(iterations)) for user, mechanism, iterations in rows]
        print_rows(("user", "mechanism", "iterations"), table, numbers=(2,))
    else:
        print(f"no SCRAM users on {printable(bootstrap)}")


def _mechanisms(given: list[str] | None) -> list[str]:
    for name in given or ():
        if name not in _MECHANISMS:
            raise typer.BadParameter(f"{name!r} is not {' or '.join(_MECHANISMS)}", param_hint="'--mechanism'")
    return list(dict.fromkeys(given or ()))


def _password(user: str, file: str | None, variable: str | None) -> str:
    """Raises typer.BadParameter: there is none, or nobody to ask. No text has it in it."""
    if file is not None and variable is not None:
        raise typer.BadParameter("give either --password-file or --password-env")
    if variable is not None:
        found = os.environ.get(variable)
        if not found:
            raise typer.BadParameter(f"the variable {variable} is not set, or empty", param_hint="'--password-env'")
        if not found.isascii() and any("\ud800" <= char <= "\udfff" for char in found):
            raise typer.BadParameter(f"the variable {variable} is not UTF-8", param_hint="'--password-env'")
        return found
    if file is not None:
        return _read(file)
    if not sys.stdin.isatty():
        raise typer.BadParameter("there is no terminal to ask for a password: give --password-file or --password-env")
    asked: str = typer.prompt(f"Password of {printable(user)}", hide_input=True, confirmation_prompt=True, err=True)
    return asked


def _read(file: str) -> str:
    with sys.stdin.buffer if file == "-" else Path(file).open("rb") as source:
        line = source.readline(_LONGEST + 1).rstrip(b"\r\n")
    said = "its first line is empty" if not line else ""
    if len(line) > _LONGEST:
        said = f"its first line has more than {_LONGEST} bytes"
    try:
        text = line.decode()
    except UnicodeDecodeError:
        said = "its first line is not UTF-8"
    if said:
        raise typer.BadParameter(f"{file}: {said}", param_hint="'--password-file'") from None
    return text
