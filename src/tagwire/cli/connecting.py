"""How commands reach a cluster: the brokers from --bootstrap, all else from properties as Kafka's clients know them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from tagwire.client import Admin, Client

BOOTSTRAP = "127.0.0.1:9092"
BOOTSTRAP_SERVERS = "bootstrap.servers"

_OF_VALUES = (
    "schema.registry.",
    "basic.auth.",
    "bearer.auth.",
    "value.",
    "key.",
    "auto.register.",
    "normalize.schemas",
    "use.latest.version",
    "use.schema.id",
)
"""How properties begin that are about values, their schemas and the registry of these: no client of brokers has any."""

_LINE_END = re.compile(r"\r\n|\r|\n")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.?))", re.DOTALL)
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_KEY = re.compile(r"[^\s:]+")
"""No property's name has more: what follows a colon or a space may be a password."""

_of_file: dict[str, str] = {}
_of_command_line: dict[str, str] = {}


def forget() -> None:
    """Begins anew, for the one command that runs next."""
    _of_file.clear()
    _of_command_line.clear()


def remember_file(properties: Mapping[str, str]) -> None:
    """Keeps what a file of properties says."""
    _of_file.clear()
    _of_file.update(_by_first_name(properties))


def remember(properties: Mapping[str, str]) -> None:
    """Keeps what the command line says, before the command or after it; what comes later holds."""
    _of_command_line.update(_by_first_name(properties))


def _by_first_name(properties: Mapping[str, str]) -> dict[str, str]:
    """librdkafka's other names of properties replaced, so that what goes before the file goes before those too."""
    if not properties:
        return {}
    from tagwire.client.config import ALIASES

    return {ALIASES.get(name, name): value for name, value in properties.items()}


def is_file_remembered() -> bool:
    return bool(_of_file)


def named_brokers() -> str | None:
    """The brokers that the command line names: `--bootstrap` anywhere, or the property."""
    return _of_command_line.get(BOOTSTRAP_SERVERS)


def given_bootstrap() -> str | None:
    """The brokers that the properties name."""
    return named_brokers() or _of_file.get(BOOTSTRAP_SERVERS)


def property_of_command_line(name: str) -> str | None:
    """What the command line itself says of a property."""
    return _of_command_line.get(name)


def given_properties() -> dict[str, str]:
    """All properties, of the command line and, where that does not say them, the file. They may hold secrets."""
    return {**_of_file, **_of_command_line}


def connect(bootstrap: str) -> Client:
    """A client of these brokers, set up as the properties say. Raises ConfigError naming a property, never a secret."""
    from tagwire.client import Client

    return Client.from_properties(client_properties(bootstrap))


def client_properties(bootstrap: str) -> dict[str, str]:
    """The properties of a client of these brokers, for one that is made elsewhere. They may hold secrets."""
    given = {name: value for name, value in given_properties().items() if not name.startswith(_OF_VALUES)}
    return {**given, BOOTSTRAP_SERVERS: bootstrap}


@contextmanager
def administer(bootstrap: str) -> Iterator[Admin]:
    """An admin of the cluster of these brokers, as `connect` reaches it."""
    from tagwire.client import Admin

    with connect(bootstrap) as client:
        yield Admin(client)


def read_properties(path: Path) -> dict[str, str]:
    r"""A file of `key=value` lines; `#` and `!` begin comments, a backslash at its end continues a line. Other
    backslashes escape as Java's do: `\\`, `\t`, `\u00e9`, and before anything else they stand for nothing.

    Raises:
        typer.BadParameter: it is no UTF-8; a line has no key or no value, or parts them by a colon or a space, as Java
            would take it, or has a wrong `\u`; the text names its number alone.
    """
    found: dict[str, str] = {}
    try:
        lines = iter(enumerate(_LINE_END.split(path.read_text(encoding="utf-8")), 1))
    except UnicodeDecodeError as error:
        said = f"{path}: is not UTF-8 at byte {error.start}"
        raise typer.BadParameter(said, param_hint="'--properties'") from None
    for number, line in lines:
        text = line.lstrip()
        if not text or text[0] in "#!":
            continue
        while _is_escaped(text):
            text = text[:-1] + next(lines, (number, ""))[1].lstrip()
        key, equals, value = text.partition("=")
        if not equals or not _KEY.fullmatch(key.strip()):
            raise typer.BadParameter(f"{path}: line {number} is not key=value", param_hint="'--properties'")
        try:
            found[key.strip()] = _unescaped(value.lstrip())
        except ValueError:
            said = f"{path}: line {number} has no four hexadecimal digits of a character behind \\u"
            raise typer.BadParameter(said, param_hint="'--properties'") from None
    return found


def _is_escaped(text: str) -> bool:
    """Whether a text ends in a backslash that escapes what comes next."""
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def _meant(escape: re.Match[str]) -> str:
    if escape[1]:
        return chr(int(escape[1], 16))
    if escape[2] == "u":
        raise ValueError
    return _ESCAPES.get(escape[2], escape[2])


def _unescaped(text: str) -> str:
    """A value without the spaces at its end, unless escaped. Raises ValueError for a wrong character.

    Kafka's tools read their files with java.util.Properties.

    Source: docs/security.md.
    """
    kept = text.rstrip()
    if _is_escaped(kept):
        kept = text[: len(kept) + 1]
    found = _ESCAPE.sub(_meant, kept)
    # Characters past the first 65,536 are escaped as pairs.
    return found.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
