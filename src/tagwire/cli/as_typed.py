"""Errors of jobs in the words of the command line: an option of Spark's, or an argument, is called what was typed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tagwire.errors import ConfigError, StorageError

_PROPERTY = re.compile(r"\boption kafka\.(?=\w)")


@contextmanager
def as_typed(names: Mapping[str, str]) -> Iterator[None]:
    """Raises a ConfigError or StorageError again with the command's own names of options.

    Args:
        names: {option or argument of the job: option of the command}.
    """
    try:
        yield
    except (ConfigError, StorageError) as error:
        said = _PROPERTY.sub("-X ", str(error))
        for name, typed in names.items():
            said = _pattern(name).sub(typed, said)
        if said == str(error):
            raise
        raise type(error)(said) from error


def _pattern(name: str) -> re.Pattern[str]:
    """Where a text speaks of an option, and not of what its name means otherwise."""
    alone = rf"(?<![\w.-]){re.escape(name)}(?![\w.-])"
    if name.islower() and "." not in name:
        return re.compile(rf"(?:\boption |^|(?<=begun with )){alone}(?=[:=]| )|{alone}(?==)")
    return re.compile(rf"(?:\boption )?{alone}")
