"""Spec files that a command names, one by one or as a directory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tagwire.cli.terminal import printable
from tagwire.errors import ConfigError

if TYPE_CHECKING:
    from tagwire.spec import Message


def revision(path: Path) -> dict[str, Message]:
    """The messages of one revision of specs, by name."""
    found = messages_in(path)
    for name, messages in found.items():
        if len(messages) > 1:
            raise ConfigError(f"{path}: {len(messages)} files describe {name}; a revision has one")
    return {name: messages[0] for name, messages in found.items()}


def messages_in(path: Path) -> dict[str, list[Message]]:
    """The messages of a spec file, or of every one below a directory, by name."""
    from tagwire.spec import load

    if not path.exists():
        raise ConfigError(f"{path}: there is no such file or directory")
    found: dict[str, list[Message]] = {}
    for file in spec_files(path, below=True):
        message = load(file)
        found.setdefault(message.name, []).append(message)
    return found


def spec_files(path: Path, *, below: bool = False) -> list[Path]:
    """`path` itself, or the spec files in that directory; with `below`, those of its directories too."""
    if not path.exists():
        raise ConfigError(f"{path}: there is no such file or directory")
    if not path.is_dir():
        return [path]
    found = sorted(path.rglob("*.json") if below else path.glob("*.json"))
    files = [file for file in found if file.is_file()]
    for file in found:
        if file not in files:
            print(printable(f"{file}: not read, no file"), file=sys.stderr)
    if not files:
        raise ConfigError(f"{path}: there are no spec files (*.json) in it")
    return files
