"""Kafka's messages, one file each in the spec language. Files are read when their message is first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tagwire.spec.model import Message
from tagwire.spec.parse import load

_DIRECTORY = Path(__file__).parent


def names() -> Iterator[str]:
    """The name of every message, in alphabetical order."""
    return iter(sorted(path.stem for path in _DIRECTORY.glob("*.json")))


def contains(name: str) -> bool:
    """Whether a message of this name is in the catalog."""
    return name.isidentifier() and (_DIRECTORY / f"{name}.json").is_file()


@cache
def message(name: str) -> Message:
    """The message called `name`. Raises KeyError where the catalog has none."""
    return load(path(name))


def path(name: str) -> Path:
    """The file of the message called `name`. Raises KeyError where the catalog has none."""
    if not contains(name):
        raise KeyError(name)
    return _DIRECTORY / f"{name}.json"
