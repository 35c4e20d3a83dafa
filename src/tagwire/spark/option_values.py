"""How the text of an option is read, whichever data source it is of."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tagwire.errors import ConfigError

if TYPE_CHECKING:
    from tagwire.records import HeaderRegister

MAX_OFFSET = 2**63 - 1
_PATHS = ("path", "paths")
"""Options that Spark makes of what load(), save() and start() are given."""


def count(option: str, given: Mapping[str, str], *, least: int = 1) -> int | None:
    """A whole number of at least `least`; None where the option is not given. Raises ConfigError."""
    if option not in given:
        return None
    text = given[option].strip()
    if not re.fullmatch(r"[0-9]{1,19}", text) or not least <= int(text) <= MAX_OFFSET:
        raise ConfigError(f"option {option}={given[option]!r}: needs a whole number above {least - 1}")
    return int(text)


def flag(option: str, given: Mapping[str, str], *, default: bool) -> bool:
    """true or false. Raises ConfigError."""
    text = given.get(option, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise ConfigError(f"option {option}={given[option]!r}: needs true or false")
    return text == "true"


def choice(option: str, given: Mapping[str, str], allowed: Sequence[str]) -> str:
    """One of the words `allowed`, in any case; the first of them is the default. Raises ConfigError."""
    text = given.get(option, allowed[0]).strip()
    for word in allowed:
        if text.lower() == word.lower():
            return word
    raise ConfigError(f"option {option}={given[option]!r}: needs {', '.join(allowed[:-1])} or {allowed[-1]}")


def dialect_of(given: Mapping[str, str]) -> tuple[str | None, HeaderRegister | None]:
    """The options `dialect` and `register`: the format of the records, and the names of its header keys.

    Raises:
        ConfigError, HeaderRegisterError: one is wrong, or the file of the register cannot be read.
    """
    dialect, path = given.get("dialect"), given.get("register")
    if dialect not in (None, "int-headers"):
        raise ConfigError(f"option dialect={dialect!r}: needs int-headers, or to be left out for Kafka's own formats")
    if path is None:
        return dialect, None
    if dialect is None:
        raise ConfigError("option register: needs option dialect=int-headers, whose header keys it names")
    paths = [each.strip() for each in path.split(",")]
    if not all(paths):
        raise ConfigError(f"option register={path!r}: needs the path of a register, or several, separated by commas")
    from tagwire.records import HeaderRegister

    try:
        return dialect, HeaderRegister.load(*paths)
    except OSError as error:
        raise ConfigError(f"option register={path!r}: {error.filename}: {error.strerror or error}") from None


def topic_names(given: Mapping[str, str]) -> tuple[str, ...]:
    """The topics that `subscribe` names, separated by commas, each once. Where no name stands, there is none, as
    Spark's KafkaSourceProvider has it. Raises ConfigError where there is none at all."""
    names = dict.fromkeys(filter(None, map(str.strip, given["subscribe"].split(","))))
    if not names:
        raise ConfigError(f"option subscribe={given['subscribe']!r}: needs topic names, separated by commas")
    return tuple(names)


def pattern(option: str, given: Mapping[str, str]) -> str:
    """A regular expression, "" where there is none; spaces around it are no part of it. Raises ConfigError."""
    text = given.get(option, "").strip()
    if option in given and not text:
        raise ConfigError(f"option {option}={given[option]!r}: needs a regular expression")
    try:
        re.compile(text)
    except re.error as error:
        raise ConfigError(f"option {option}={text!r}: not a regular expression: {error}") from None
    return text


_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def seconds(option: str, given: Mapping[str, str], *, default: float) -> float:
    """A time as Spark writes it, `15m` or `500ms`; a number without unit is milliseconds. In seconds.

    Raises ConfigError.
    """
    if option not in given:
        return default
    found = re.fullmatch(r"([0-9]{1,15})\s*(us|ms|s|m|min|h|d|)", given[option].strip().lower())
    if found is None:
        raise ConfigError(f"option {option}={given[option]!r}: needs a time such as 15m, 30s or 500ms")
    return int(found[1]) * _UNITS[found[2] or "ms"]


def json_object(text: str, said: str) -> dict[str, Any]:
    """A JSON object, each key once. Raises ConfigError, whose text begins with `said`."""
    try:
        value = json.loads(text, object_pairs_hook=_each_key_once)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{said}: {error}") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{said}: not a JSON object")
    return value


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = dict(pairs)
    if len(keys) != len(pairs):
        raise ValueError("a key stands there twice")
    return keys


def refuse_path(options: Mapping[str, str], instead: str) -> None:
    """Raises ConfigError where load(), save() or start() was given a path, of a format that has none.

    Args:
        instead: what says it, for the error.
    """
    for name in _PATHS:
        if options.get(name):
            raise ConfigError(f"option {name}={options[name]!r}: the format tagwire has no paths; {instead}")


def known_options(
    options: Mapping[str, str], names: Sequence[str], prefixes: Sequence[str], families: Sequence[str] = ()
) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """The options by the names that they are known by, and those of each prefix without it.

    Spark hands names over in lower case. Raises ConfigError for one that is unknown.

    Args:
        families: what names begin with that somebody else knows; they are known as they are.
    """
    known = {name.lower(): name for name in names}
    given: dict[str, str] = {}
    prefixed: dict[str, dict[str, str]] = {prefix: {} for prefix in prefixes}
    for name, value in options.items():
        lower = name.lower()
        prefix = next((prefix for prefix in prefixes if lower.startswith(prefix) and lower not in known), None)
        if prefix is not None:
            prefixed[prefix][lower.removeprefix(prefix)] = value
        elif lower in known or lower.startswith(tuple(families)):
            given[known.get(lower, lower)] = value
        elif lower == "provider":
            raise ConfigError(
                "option provider: comes from CREATE TABLE ... USING, whose options Spark hands to no data source in "
                "Python; use CREATE TEMPORARY VIEW ... USING ... OPTIONS (...)"
            )
        elif lower not in _PATHS:
            from difflib import get_close_matches

            near = get_close_matches(lower, known, 3, 0)
            raise ConfigError(f"option {name}: unknown; nearest are {', '.join(known[each] for each in near)}")
    return given, prefixed
