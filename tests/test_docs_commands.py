"""What README and docs tell people to type is there: commands with their options, make's targets, benches, variables.

All of it is found in the text itself, so that a command that is written there is tested from then on.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from tagwire.cli import app, main

from .simulation.__main__ import command_line

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BENCHES = ROOT / "bench"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


class Typed(NamedTuple):
    """Something to type, and where it stands. `whole`: a line of a block, which is a command from end to end."""

    text: str
    whole: bool
    where: str


def _lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """Line number, text, and whether it is one of a block. Python is run elsewhere."""
    text = _FENCE.sub(lambda found: "\n" * found[0].count("\n") if found[1] == "python" else found[0], text)
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield number, line.strip(), True
        else:
            yield from ((number, span.replace("\\|", "|"), False) for span in _SPAN.findall(line))


def typed(begins: str) -> list[Typed]:
    """Everything that begins with a word, once."""
    found: dict[tuple[str, bool], str] = {}
    for page in PAGES:
        for number, text, whole in _lines(page.read_text(encoding="utf-8")):
            parts = re.split(r"\s\|\s|\s&&\s", text) if whole else [text]
            for part in parts:
                part = re.split(r"\s#\s", part.strip())[0].strip()
                if part == begins or part.startswith(f"{begins} "):
                    found.setdefault((part, whole), f"{page.name}:{number}")
    return [Typed(text, whole, where) for (text, whole), where in found.items()]


def all_text() -> str:
    return "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


def _id(value: object) -> str:
    return f"{value.where} {value.text}"[:100] if isinstance(value, Typed) else str(value)


# tagwire -------------------------------------------------------------------------------------------------------------


def _path(words: list[str]) -> tuple[list[str], list[Any]]:
    """The names of the command that the words begin with, and the command and its groups."""
    command: Any = typer.main.get_command(app)
    context, names, chain = command.make_context("tagwire", [], resilient_parsing=True), [], [command]
    takes = ("-X", "--properties")
    rest = iter(words)
    for word in rest:
        if word in takes:
            next(rest, None)
        elif not word.startswith("-") and hasattr(command, "get_command"):
            found = command.get_command(context, word)
            if found is None:
                break
            command = found
            names.append(word)
            chain.append(command)
    return names, chain


def _options(chain: list[Any]) -> set[str]:
    return {
        name
        for command in chain
        for parameter in command.params
        for name in [*parameter.opts, *parameter.secondary_opts]
    }


COMMANDS = typed("tagwire")


@pytest.mark.parametrize("command", COMMANDS, ids=_id)
def test_a_command_of_the_docs_is_there_and_has_its_options(command, capsys):
    words = shlex.split(re.sub(r"<\([^)]*\)", "FILE", command.text))[1:]
    names, chain = _path(words)
    if words and not words[0].startswith("-") and not words[0].isupper():
        assert names, f"no such command: {words[0]}"
    assert main([*names, "--help"]) == 0
    assert f"tagwire {' '.join(names)}".strip() in capsys.readouterr().out
    unknown = set(_OPTION.findall(command.text)) - _options(chain) - {"--help"}
    assert not unknown, f"{command.where}: {command.text}"


@pytest.mark.parametrize("command", [each for each in COMMANDS if each.whole], ids=_id)
def test_a_whole_command_of_the_docs_is_understood(command, tmp_path, monkeypatch):
    """Its words are parsed by the command itself, which is not run; files that it names are put where it is."""
    words = shlex.split(re.sub(r"<\([^)]*\)", "FILE", command.text))[1:]
    names, chain = _path(words)
    monkeypatch.chdir(tmp_path)
    own = words[words.index(names[-1]) + 1 :] if names else []
    for word in own:
        name = word.partition("=")[2] or word
        if re.fullmatch(r"[\w.-]+\.\w+", name):
            Path(name).write_text("")
    usage: Any = typer.BadParameter.__base__
    parent = chain[0].make_context("tagwire", [], resilient_parsing=True)
    said = ""
    try:
        chain[-1].make_context(names[-1] if names else "tagwire", own, parent=parent)
    except usage as error:
        said = error.format_message()
    # What the reader has and this machine has not is no fault of the page.
    assert not said or re.search(r"does not exist|no such (file|directory)", said, re.IGNORECASE), said


def test_an_option_that_stands_alone_is_some_commands():
    known = {"--help"}

    def gather(command: Any) -> None:
        known.update(_options([command]))
        if hasattr(command, "list_commands"):
            context = command.make_context("tagwire", [], resilient_parsing=True)
            for name in command.list_commands(context):
                gather(command.get_command(context, name))

    gather(typer.main.get_command(app))
    known.update(_simulator_options())
    alone = {
        option
        for page in PAGES
        for _, span, whole in _lines(page.read_text(encoding="utf-8"))
        if not whole and span.startswith("--")
        for option in _OPTION.findall(span)
    }
    assert alone
    assert alone <= known, alone - known


# The simulator -------------------------------------------------------------------------------------------------------


def _simulator_options() -> set[str]:
    return {option for action in command_line()._actions for option in action.option_strings}


# A page names the command once, and writes `...` for it from then on.
SIMULATIONS = [*typed("python -m tests.simulation"), *(each for each in typed("...") if each.text.startswith("... --"))]


@pytest.mark.parametrize("command", SIMULATIONS, ids=_id)
def test_a_command_of_the_simulator_has_its_options(command):
    unknown = set(_OPTION.findall(command.text)) - _simulator_options()
    assert not unknown, f"{command.where}: {command.text}"


# make and benches ----------------------------------------------------------------------------------------------------

MAKES = typed("make")


@pytest.mark.parametrize("command", MAKES, ids=_id)
def test_a_target_of_make_is_there(command):
    """make says what it would do, and does nothing. What is set up already is taken to be."""
    words = shlex.split(command.text)[1:]
    dry = ["make", "--dry-run", "--silent", *words]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    ran = subprocess.run(dry, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    variables = {word.partition("=")[0] for word in words if "=" in word}
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"\$\({name}\)", makefile) for name in variables)


BENCH = """
import argparse, importlib.abc, importlib.machinery, runpy, sys, unittest.mock as mock

class Peers(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    # What a bench compares with is installed for `make bench` alone: here its place is taken.
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] in PEERS else None
    def create_module(self, spec):
        module = mock.MagicMock(name=spec.name)
        module.__path__ = []
        return module
    def exec_module(self, module):
        pass

PEERS = {peers!r}
sys.meta_path.append(Peers())
known, whole = argparse.ArgumentParser.parse_known_args, argparse.ArgumentParser.parse_args
def stop(parse):
    def understood(self, *given, **named):
        argparse.ArgumentParser.parse_known_args = known
        print("understood", parse(self, *given, **named))
        raise SystemExit(0)
    return understood
argparse.ArgumentParser.parse_known_args, argparse.ArgumentParser.parse_args = stop(known), stop(whole)
sys.path[:0] = [{benches!r}, {scripts!r}, {root!r}]
{begin}
"""


def _bench(begin: str) -> str:
    required = (BENCHES / "requirements.txt").read_text() + "\\n" + (ROOT / "pyproject.toml").read_text()
    peers = {name.replace("-", "_").lower() for name in re.findall(r"[A-Za-z][A-Za-z0-9_-]+", required)}
    peers |= {"kafka", "snappy", "lz4", "kio"}
    peers -= {"tagwire", "tests", "scripts", "pyarrow", "pyspark", "crc32c", "msgspec", "typer"}
    code = BENCH.format(peers=peers, benches=str(BENCHES), scripts=str(ROOT / "scripts"), root=str(ROOT), begin=begin)
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stdout


WHATS = sorted(set(re.findall(r"WHAT=([a-z_]+)", all_text())))


@pytest.mark.parametrize("name", WHATS)
def test_a_bench_is_started_by_its_name_and_takes_what_it_is_given(name):
    """Through bench/run.py, as make does it, as far as its arguments; one that takes none has to be there."""
    source = BENCHES / f"{name}.py"
    assert source.is_file()
    if "argparse" in source.read_text():
        said = _bench(
            f"sys.argv = ['bench/run.py', {name!r}]; runpy.run_path({str(BENCHES / 'run.py')!r}, run_name='__main__')"
        )
        assert f"== {name}" in said
        assert "understood" in said
    else:
        compile(source.read_text(), str(source), "exec")


FILES = [Typed(f"bench/{text}", True, where) for text, where in re.findall(r"`bench/([a-z_]+\.py[^`]*)`()", all_text())]


@pytest.mark.parametrize("command", FILES, ids=_id)
def test_a_bench_with_arguments_takes_them(command):
    words = shlex.split(command.text)
    path = str(ROOT / words[0])
    if len(words) == 1:
        assert Path(path).is_file()
    else:
        assert "understood" in _bench(
            f"sys.argv = {[path, *words[1:]]!r}; runpy.run_path({path!r}, run_name='__main__')"
        )


# Variables and files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(set(re.findall(r"\bTAGWIRE_[A-Z_]+\b", all_text()))))
def test_a_variable_of_the_environment_is_read_somewhere(name):
    places = [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py"), ROOT / "setup.py", ROOT / "Makefile"]
    reading = re.compile(rf"""['"]{name}['"]|\b{name}=""")
    own = Path(__file__)
    assert any(reading.search(path.read_text(encoding="utf-8")) for path in places if path != own)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_links_to_is_there(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path) if path else page
        assert there.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", there.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}, (
                target
            )
    for path in re.findall(r"`((?:tests|bench|src|scripts|docs)/[\w/.-]+)`", text):
        assert (ROOT / path).exists(), path


def test_there_is_something_to_test():
    assert len(COMMANDS) > 30
    assert len([command for command in COMMANDS if command.whole]) > 10
    assert len(SIMULATIONS) > 5
    assert len(MAKES) > 8
    assert "codec" in WHATS
    assert len(FILES) >= 2
