"""`sasl.jaas.config`: one login module of Java's with its options, as text of Java's.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="...";

Nothing of the text is ever told but names of options and positions: it holds passwords.
Source: Kafka's JaasConfig.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from tagwire.errors import ConfigError

JAAS: Final = "sasl.jaas.config"

MAX_CHARACTERS: Final = 64 * 1024
"""Of the longest text that is read; a client's has a few hundred."""

_MODULE: Final = re.compile(r"([\w.$-]{1,500})\s+(required|requisite|sufficient|optional)\b", re.IGNORECASE)
_OPTION: Final = re.compile(
    r"""([\w.$-]{1,200})\s*=\s*(?:"((?:[^"\\]|\\.)*+)"|'((?:[^'\\]|\\.)*+)'|([^\s"';]++))""", re.DOTALL
)
_SPACE: Final = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)  # octal up to 377, as Java has it
_ESCAPED: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True)
class LoginModule:
    """A login module.

    Attributes:
        name: of its class, without the package.
        options: by name; they may hold secrets.
    """

    name: str
    options: dict[str, str] = field(repr=False)


def login_module(text: str) -> LoginModule:
    """The module in a text.

    Raises:
        ConfigError: the text is too long, is not one module with its options, or has an option twice. It tells where,
            and nothing of what stands there.
    """
    if len(text) > MAX_CHARACTERS:
        raise ConfigError(f"{JAAS}: has {len(text)} characters; {MAX_CHARACTERS} are the most")
    match = _MODULE.match(text, _after_space(text, 0))
    if match is None:
        raise ConfigError(f"{JAAS}: needs a login module and a flag, such as `...PlainLoginModule required`")
    options: dict[str, str] = {}
    at = _after_space(text, match.end())
    while at < len(text) and text[at] != ";":
        option = _OPTION.match(text, at)
        if option is None:
            raise ConfigError(f'{JAAS}: no option at character {at}; options are name="value", and end with ;')
        name, double, single, bare = option.groups()
        if name in options:
            raise ConfigError(f"{JAAS}: option {name} stands there twice")
        options[name] = bare if bare is not None else _ESCAPE.sub(_unescaped, single if double is None else double)
        at = _after_space(text, option.end())
    if _after_space(text, at + 1) < len(text):
        raise ConfigError(f"{JAAS}: goes on after ; at character {at}: a client has one login module")
    return LoginModule(match[1].rpartition(".")[2], options)


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, min(at, len(text)))
    assert found is not None  # it matches nothing, too
    return found.end()


def _unescaped(found: re.Match[str]) -> str:
    said = found[1]
    return chr(int(said, 8)) if said[0] in "01234567" else _ESCAPED.get(said, said)
