"""What `tagwire spec check` says of spec files."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tagwire.cli.spec_files import spec_files
from tagwire.cli.terminal import printable
from tagwire.errors import SpecError

if TYPE_CHECKING:
    from tagwire.spec import Message


@dataclass
class _Checked:
    """A file that was read, or a directory whose files were checked together."""

    path: Path
    problems: list[str] = field(default_factory=list)
    message: Message | None = None
    said: str = ""


def print_checked(paths: list[Path], as_json: bool) -> bool:
    """Prints what the spec files are, or what is wrong with them; whether anything is."""
    found = [checked for path in paths for checked in (_directory(path) if path.is_dir() else _files(path))]
    _check_headers([checked for checked in found if checked.path in paths])
    for checked in found:
        _print(checked, as_json)
    return any(checked.problems for checked in found)


def reasons(message: Message) -> dict[str, str]:
    """The versions that are not to be used, with their reasons, as its spec has them."""
    return {str(mark.versions): mark.reason for mark in message.do_not_use_versions}


def _files(path: Path) -> list[_Checked]:
    from tagwire.spec import load

    found = []
    for file in spec_files(path):
        checked = _Checked(file)
        try:
            checked.message = load(file)
        except SpecError as error:
            checked.problems = str(error).splitlines()
        found.append(checked)
    return found


def _directory(path: Path) -> list[_Checked]:
    from tagwire.spec.module import contradictions

    found = _files(path)
    messages = {checked.path.name: checked.message for checked in found if checked.message is not None}
    return [*found, _Checked(path, contradictions(messages), said=f"{len(messages)} messages")]


def _check_headers(alone: list[_Checked]) -> None:
    """Checks the header versions of files that were named one by one against the headers among them."""
    from tagwire.spec.module import header_problems

    messages = [checked.message for checked in alone if checked.message is not None]
    headers = {message.name: message for message in messages if message.type == "header"}
    for checked in alone:
        if checked.message is not None:
            checked.problems += [
                f"{checked.path.name}: {problem}" for problem in header_problems(checked.message, headers)
            ]


def _print(checked: _Checked, as_json: bool) -> None:
    message = checked.message
    if as_json:
        row = {"file": str(checked.path), "ok": not checked.problems, "problems": checked.problems}
        if message is not None:
            row |= {"deprecated": str(message.deprecated_versions), "do_not_use": reasons(message)}
        print(json.dumps(row))
        return
    said = checked.said if message is None else f"{message.name}, versions {message.valid_versions}{_marks(message)}"
    for line in checked.problems or [f"{checked.path}: {said}"]:
        print(printable(line))


def _marks(message: Message) -> str:
    deprecated = f", deprecated {message.deprecated_versions}" if message.deprecated_versions else ""
    return deprecated + "".join(f", do not use {mark}" for mark in message.do_not_use_versions)
