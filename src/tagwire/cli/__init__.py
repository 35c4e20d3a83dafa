"""The `tagwire` command, one file for each subcommand.

A command's file is imported when it is called, and what is heavy when it runs, so that each responds at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tagwire.cli import plain_values
from tagwire.cli.connecting import forget
from tagwire.cli.options import PropertiesFile, Property
from tagwire.cli.terminal import printable
from tagwire.closed_pipes import answering
from tagwire.errors import TagwireError
from tagwire.suggestions import did_you_mean

plain_values.install()

FAILED = 2  # 1 is a result: a script must not take a broker that is down for a client that breaks
INTERRUPTED = 130  # what a shell says of a command that Ctrl-C ended
# Typer shows its usage errors itself or raises them; their class has no public name.
_UsageError: Any = typer.BadParameter.__base__


_COMMANDS = {
    "topics": "",
    "produce": "",
    "consume": "",
    "groups": "List groups; describe them, delete them or their offsets.",
    "configs": "List what is set; show and change configs.",
    "acls": "List ACLs: who may do what; add and remove them.",
    "users": "List SCRAM users; add and remove them.",
    "quotas": "List client quotas; change them.",
    "reassign": "Move replicas to other brokers: plan, begin, watch, cancel.",
    "elect-leaders": "Elect preferred leaders, or any that run.",
    "features": "List a cluster's features; take them to other levels.",
    "versions": "",
    "broker": "",
    "doctor": "Look at what tagwire stands on here, and say what to do.",
    "audit": "Say which clients break on another release of Kafka.",
    "capture": "",
    "tap": "Record what passes between clients and a broker.",
    "land": "Land a topic as a Parquet table.",
    "replay": "Write a landed table, or log segments, back into a topic.",
    "lag": "Show how far every group is behind, from a cluster or from files alone.",
    "log": "Print or check log segments, with no broker running.",
    "spec": "List Kafka's messages; show, check and compare specs.",
    "headers": "",
    "schema": "List a schema registry's subjects; show, check and register schemas.",
    "decode": "Print the message that bytes hold, as JSON or byte by byte.",
    "encode": "Print the bytes of a message that is given as JSON.",
    "docs": "Open the reference of Kafka's protocol, or print a page of it.",
}
"""Every command, and what the list of them says of it where that is not how its own help begins.

Each is in the file of its name, or the one that `_FILES` says: a group of commands as `app`, one alone as a function.
"""

_ANSWERING = {"audit", "doctor", "headers", "reassign", "schema", "spec", "versions"}
"""Those whose exit code may be an answer, and which print no more than people read: they go on to it though the reader
of what they print has gone. `log`, which may print gigabytes, does so where it is asked to verify."""

_FILES = {"decode": "codec", "encode": "codec", "elect-leaders": "elect_leaders"}


_CONNECTING = {"properties", "one_property"}
"""The options of `tagwire` itself that every command has too that connects."""

_PEERS = {"bootstrap", "brokers", "registry"}
"""What a command calls those that it connects to."""


def _command(name: str) -> Any:
    module = import_module(f"{__name__}.{_FILES.get(name, name)}")
    if hasattr(module, "app"):
        group = typer.main.get_group(module.app)
        group.name = name
        group.short_help = _COMMANDS[name] or None
        return group
    alone = typer.Typer(rich_markup_mode=None, add_completion=False)
    alone.command(name, short_help=_COMMANDS[name] or None)(getattr(module, name.replace("-", "_")))
    return typer.main.get_command(alone)


def _let_connect(command: Any, options: list[Any]) -> None:
    """Gives a command the options that say how to connect, and those below it, if they do."""
    if _PEERS & {parameter.name for parameter in command.params}:
        command.params.extend(options)
    for below in getattr(command, "commands", {}).values():
        _let_connect(below, options)


class _Commands(TyperGroup):
    """The group of all commands. A reader that has seen enough (`tagwire consume t | head`) is no error."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in _COMMANDS and cmd_name not in self.commands:
            command = _command(cmd_name)
            _let_connect(command, [option for option in self.params if option.name in _CONNECTING])
            self.add_command(command)
        found = super().get_command(ctx, cmd_name)
        if found is None and not cmd_name.startswith("-") and not ctx.resilient_parsing:
            # Typer suggests what it knows of, and has not heard of commands whose files nobody asked for.
            ctx.fail(f"No such command {cmd_name!r}{did_you_mean(cmd_name, _COMMANDS)}")
        return found

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        if name in _ANSWERING and not ctx.resilient_parsing:
            ctx.with_resource(answering())
        return name, command, rest

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # What is still buffered has nowhere to go; without this the interpreter complains about it at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        return result


app = typer.Typer(
    cls=_Commands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        from tagwire import __version__
        from tagwire.kernel import compiled

        kernels = "compiled" if compiled else "not compiled: pure Python, slow"
        print(f"tagwire {__version__} (kernels {kernels})")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def tagwire(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    properties: PropertiesFile = None,
    one_property: Property = None,
) -> None:
    """Kafka topics from the command line: look, read, write, serve, and land them as tables.

    A group of commands alone lists. --json prints one JSON object a line, and of produce is what its lines are. A time
    is 2013-07-04T06:00 (UTC), -5m, -2h, now or @MILLISECONDS. Exit code 0 is done, 1 an answer such as "breaks", 2 an
    error. -X and --properties may stand behind the command as well.

    \b
    Examples:
      tagwire broker --data ./data
      tagwire topics create flights --partitions 4
      seq 10 | tagwire produce flights
      tagwire consume flights
      tagwire topics --bootstrap kafka-1:9093 -X security.protocol=SSL -X ssl.ca.location=ca.pem
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; `arguments` None takes those of the process.

    Returns:
        0; 1 where what a command was asked to look for is there, such as a client that breaks; 2 where it could not do
        what it was asked, told in one line on stderr, and its traceback where `TAGWIRE_TRACEBACK` is set; 130 after
        Ctrl-C.
    """
    command = typer.main.get_command(app)
    forget()
    try:
        if sys.stdout is None:  # started with standard output closed
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        if sys.stdin is None:
            sys.stdin = open(os.devnull)  # noqa: SIM115
        if sys.stderr is None:  # else Python would print on standard output what is meant for it
            sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # a key in a language that the terminal cannot show
        return command.main(args=arguments, prog_name="tagwire", standalone_mode=False) or 0
    except _UsageError as error:
        where = error.ctx.command_path if error.ctx else "tagwire"
        said = error.format_message().replace("Value error, ", "").rstrip(".")
        _say(f"{said} (see {where} --help)")
    except TagwireError as error:
        _say(str(error))
        if os.environ.get("TAGWIRE_TRACEBACK"):
            from traceback import print_exc

            print_exc()
    except OSError as error:
        said = error.strerror or str(error)
        _say(f"{error.filename}: {said}" if error.filename else said)
    except (KeyboardInterrupt, typer.Abort):  # the second: while somebody was asked something
        return INTERRUPTED
    return FAILED


def _say(text: str) -> None:
    with suppress(OSError):  # nobody can be told; the exit code still says it
        print(f"tagwire: {printable(' '.join(text.split()))}", file=sys.stderr)
