"""The reference of the `tagwire` command: a page for each command, from the commands themselves."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any, Final

import typer

from tagwire.cli import app

_HELP: Final = "--help"
_KIND: Final = re.compile(r" <\w+>$")
"""The type behind the name of an argument."""


def pages() -> dict[str, str]:
    """{path of the page: its Markdown}, and their index."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("tagwire", [], resilient_parsing=True)
    found: dict[str, str] = {}
    rows = []
    for name in command.list_commands(context):
        each = command.get_command(context, name)
        if each is None or each.hidden:
            continue
        found[f"cli/{name}.md"] = "\n".join(_page(each, f"tagwire {name}", context, 1))
        rows.append(f"| [tagwire {name}]({name}.md) | {_text(_summary(each))} |")
    listed = "\n".join(path.removeprefix("cli/").removesuffix(".md") for path in found)
    found["cli/index.md"] = "\n".join(
        [
            "# Command line",
            "",
            "Each command as its `--help` has it. What holds for all of them is told in [commands](../commands.md).",
            "",
            "| command | what it does |",
            "|---|---|",
            *rows,
            "",
            "## Before the command",
            "",
            *_options(command, context),
            "```{toctree}\n:hidden:\n",
            listed,
            "```",
            "",
        ]
    )
    return found


def _page(command: Any, name: str, parent: Any, depth: int) -> Iterator[str]:
    context = command.make_context(name.split()[-1], [], parent=parent, resilient_parsing=True)
    yield f"{'#' * depth} {name}\n"
    usage = " ".join(command.collect_usage_pieces(context)).replace("[[", "[").replace("]]", "]")
    yield f"```text\n{name} {usage}\n```\n"
    yield from _help(command)
    yield from _options(command, context)
    if hasattr(command, "list_commands"):
        for below in command.list_commands(context):
            each = command.get_command(context, below)
            if each is not None and not each.hidden:
                yield from _page(each, f"{name} {below}", context, depth + 1)


def _help(command: Any) -> Iterator[str]:
    """Paragraphs; those that begin with the terminal's mark for "as it stands" are code."""
    text = inspect.cleandoc(command.help or "").partition("\f")[0]
    for paragraph in re.split(r"\n\s*\n", text):
        if paragraph.startswith("\b"):
            lines = paragraph.removeprefix("\b").strip("\n").splitlines()
            if lines and re.fullmatch(r"Examples?:", lines[0]):
                yield "**Examples**\n"
                lines = lines[1:]
            yield "```text\n" + textwrap.dedent("\n".join(lines)) + "\n```\n"
        elif paragraph:
            yield _text(paragraph) + "\n"


def _options(command: Any, context: Any) -> Iterator[str]:
    """Arguments and options as help shows them: names, what they do, defaults, variables of the environment."""
    shown: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
    for each in command.params:
        record = None if each.hidden else each.get_help_record(context)
        if record is not None and _HELP not in each.opts:
            shown[each.param_type_name].append((_KIND.sub("", record[0]), record[1]))
    for title, rows in shown.items():
        if any(text for _, text in rows):
            yield f"| {title} | what it says |\n|---|---|"
            yield from (f"| {_code(name)} | {_text(text)} |" for name, text in rows)
            yield ""


def _summary(command: Any) -> str:
    text = " ".join(inspect.cleandoc(command.help or "").partition("\f")[0].split())
    return re.split(r"(?<=[.:]) ", text)[0]


def _text(text: str) -> str:
    """Help as Markdown on one line: only code is markup in it."""
    return "".join(
        part if at % 2 else re.sub(r"([\\*_<>\[\]{}|])", r"\\\1", part)
        for at, part in enumerate(re.split(r"(`[^`]*`)", " ".join(text.split())))
    )


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"
