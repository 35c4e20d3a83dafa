"""Spec files that a command names, one by one or as a directory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tagwire.cli.terminal import printable
from tagwire.errors import ConfigError

if TYPE_CHECKING:
    from tagwire.rpc import Api
    from tagwire.spec import Message


def revision(path: Path) -> dict[str, Message]:
    """The messages of one revision of specs, by name."""
    found = messages_in(path)
    for name, messages in found.items():
        if len(messages) > 1:
            raise ConfigError(f"{path}: {len(messages)} files describe {name}; a revision has one")
    return {name: messages[0] for name, messages in found.items()}


def apis_in(path: Path) -> dict[int, Api]:
    """The APIs that spec files describe, by key; with the headers that stand beside them.

    Raises:
        ConfigError: there is no API, or one that is not whole.
        SpecError: a file breaks the language, or two of them do not belong together.
    """
    from tagwire.rpc import api_of

    messages = revision(path)
    found = {}
    responses = {message.api_key: message for message in messages.values() if message.type == "response"}
    headers = {
        key: message
        for key, name in (("request_header", "RequestHeader"), ("response_header", "ResponseHeader"))
        if (message := messages.get(name)) is not None
    }
    for request in messages.values():
        if request.type == "request":
            if request.api_key not in responses:
                raise ConfigError(f"{path}: {request.name} has no response beside it")
            found[request.api_key] = api_of(request, responses[request.api_key], **headers)
    if not found:
        raise ConfigError(f"{path}: there is no request among these specs")
    return found


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
