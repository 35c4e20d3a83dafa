"""Values on the command line, read without pydantic.

From 0.29 on typer reads every value by pydantic, a default too, and loading that takes as long as all the rest of a
command's start. Here plain values are read by themselves, to the same result. What is not plain or wrong goes to typer,
which says what is wrong; so does everything where typer has no place to step in, as before 0.29.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import typer.core

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_PLACE: Final = "build_runtime_param"
"""What makes the reader of a parameter, in typer.core; it is not public."""


class _NotPlain(Exception):
    """The value is typer's to read."""


class _Reader:
    """Reads the values of one parameter."""

    def __init__(self, read: Callable[[Any], Any], otherwise: Callable[[], Any]) -> None:
        self._read = read
        self._otherwise = otherwise

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """As typer's own: None is none, or an empty tuple where there may be several."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        try:
            if several != isinstance(value, list | tuple):
                raise _NotPlain
            return [self._read(each) for each in value] if several else self._read(value)
        except _NotPlain:
            return self._otherwise().coerce(value, param, ctx)


def install() -> None:
    """Have typer read plain values here, where it can be had."""
    own = getattr(typer.core, _PLACE, None)
    if own is None:
        return

    def make(descriptor: Any) -> Any:
        read = _reader(descriptor.annotation, descriptor.parameter_info)
        return own(descriptor) if read is None else _Reader(read, lambda: own(descriptor))

    setattr(typer.core, _PLACE, make)


def _reader(kind: Any, told: Any) -> Callable[[Any], Any] | None:
    """What reads one value of that annotation, raising _NotPlain; None for a kind that is typer's to read."""
    if get_origin(kind) is list:
        return _reader(get_args(kind)[0], told)
    if told.parser is not None:
        return None
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        return lambda value: _checked(value, value in choices)
    if kind is str:
        return lambda value: _checked(value, isinstance(value, str))
    if kind is bool:
        return lambda value: _checked(value, isinstance(value, bool))
    if kind is int:
        return lambda value: _integer(value, told.min, told.max)
    if kind is Path:
        return lambda value: _path(value, told)
    return None


def _checked(value: Any, plain: bool) -> Any:
    if not plain:
        raise _NotPlain
    return value


def _integer(value: Any, lowest: float | None, highest: float | None) -> int:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = int(value)
    plain = type(value) is int and (lowest is None or lowest <= value) and (highest is None or value <= highest)
    return int(_checked(value, plain))


def _path(value: Any, told: Any) -> Path:
    if not isinstance(value, str | Path) or told.resolve_path or told.allow_dash or told.path_type is not None:
        raise _NotPlain
    try:
        mode = os.stat(value).st_mode
    except FileNotFoundError:
        return _checked(Path(value), not told.exists)
    except (OSError, ValueError):
        raise _NotPlain from None
    kind = told.dir_okay if stat.S_ISDIR(mode) else told.file_okay
    wanted = (os.R_OK if told.readable else 0) | (os.W_OK if told.writable else 0)
    return _checked(Path(value), bool(kind) and os.access(value, wanted))
