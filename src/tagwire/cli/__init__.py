"""The `tagwire` command, one file for each subcommand.

Importing them is light: what is heavy is imported when a command runs, so that `tagwire --help` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tagwire.cli import broker, codec, configs, consume, groups, headers, land, log, produce, spec, topics, versions
from tagwire.cli.connecting import read_properties, remember
from tagwire.cli.options import pairs
from tagwire.cli.terminal import printable
from tagwire.errors import TagwireError

INTERRUPTED = 130  # what a shell says of a command that Ctrl-C ended
# Typer shows its usage errors itself or raises them; their class has no public name.
_UsageError: Any = typer.BadParameter.__base__


class _Commands(TyperGroup):
    """The group of all commands. A reader that has seen enough (`tagwire consume t | head`) is no error."""

    def list_commands(self, ctx: Any) -> list[str]:
        names = "topics produce consume groups configs versions broker land log spec headers decode encode"
        return names.split()

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
app.add_typer(topics.app, name="topics")
app.add_typer(groups.app, name="groups")
app.add_typer(configs.app, name="configs")
app.command()(produce.produce)
app.command()(consume.consume)
app.command()(versions.versions)
app.command()(broker.broker)
app.command(short_help="Land a topic as a Parquet table.")(land.land)
app.command(short_help="Print or check log segments, with no broker running.")(log.log)
app.add_typer(spec.app, name="spec")
app.add_typer(headers.app, name="headers")
app.command(short_help="Print the message that bytes hold, as JSON or byte by byte.")(codec.decode)
app.command(short_help="Print the bytes of a message that is given as JSON.")(codec.encode)


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
    properties: Annotated[
        Path | None,
        typer.Option(
            "--properties",
            metavar="FILE",
            envvar="TAGWIRE_PROPERTIES",
            exists=True,
            dir_okay=False,
            help="How to connect, in the words of Kafka's clients: security.protocol, sasl.username, ...",
        ),
    ] = None,
    one_property: Annotated[
        list[str] | None,
        typer.Option("-X", metavar="KEY=VALUE", help="One such property; may be repeated, and goes before the file's."),
    ] = None,
) -> None:
    """Kafka topics from the command line: look, read, write, serve, and land them as tables.

    \b
    Examples:
      tagwire broker --data ./data
      tagwire topics create flights --partitions 4
      seq 10 | tagwire produce flights
      tagwire consume flights
      tagwire -X security.protocol=SSL -X ssl.ca.location=ca.pem topics
    """
    remember({**(read_properties(properties) if properties else {}), **dict(pairs(one_property or [], "-X"))})
    if context.invoked_subcommand is None:
        print(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; `arguments` None takes those of the process.

    Returns:
        0; 1 after an error, told in one line on stderr; 2 where the command was misused; 130 after Ctrl-C.
    """
    command = typer.main.get_command(app)
    try:
        if sys.stdout is None:  # started with standard output closed
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # a key in a language that the terminal cannot show
        return command.main(args=arguments, prog_name="tagwire", standalone_mode=False) or 0
    except _UsageError as error:
        where = error.ctx.command_path if error.ctx else "tagwire"
        said = error.format_message().replace("Value error, ", "").rstrip(".")
        _say(f"{said} (see {where} --help)")
        return 2
    except TagwireError as error:
        _say(str(error))
    except OSError as error:
        said = error.strerror or str(error)
        _say(f"{error.filename}: {said}" if error.filename else said)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 1


def _say(text: str) -> None:
    print(f"tagwire: {printable(' '.join(text.split()))}", file=sys.stderr)
