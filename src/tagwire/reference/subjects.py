"""What the reference has a page for: each API, each record type of Kafka's own topics, each other message; and the
messages of a user's own specs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

from tagwire.errors import ConfigError
from tagwire.records.internal_topics import INTERNAL_TOPICS, record_types
from tagwire.spec import Message, Versions, catalog, load
from tagwire.spec.api_keys import API_NAMES

Kind = Literal["api", "record", "data"]
REMOTE_LOG_METADATA: Final = "__remote_log_metadata"
_REMOTE: Final = ("RemoteLog", "RemotePartition")
_FOLDERS: Final[dict[Kind, str]] = {"api": "apis", "record": "records", "data": "data"}
_ROLES: Final = {
    "request": ("Request", "request"),
    "response": ("Response", "response"),
    "coordinator-key": ("Key", "key"),
    "coordinator-value": ("Value", "value"),
}
"""{type of a message: (what its name ends with, what it is to its subject)}."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What one page is about.

    Attributes:
        name: as people call it, such as Fetch or OffsetCommit.
        api_key: of an API, or the record type or id; -1 where there is none.
        topic: the topic whose records these are; "" for none.
        messages: {role: message}; of an API request and response, of a coordinator's record key and value, else one.
        is_kafkas: whether the messages are the catalog's.
    """

    name: str
    kind: Kind
    api_key: int
    topic: str
    messages: dict[str, Message]
    is_kafkas: bool = True

    @property
    def path(self) -> str:
        """Where its page stands, such as `apis/Fetch`."""
        return f"{_FOLDERS[self.kind] if self.is_kafkas else 'specs'}/{self.name}"

    @property
    def versions(self) -> Versions:
        """All that any of its messages has."""
        valid = [message.valid_versions for message in self.messages.values() if message.valid_versions]
        if not valid:
            return Versions.parse("none")
        return Versions(min(each.lowest for each in valid), max(each.highest for each in valid))


@cache
def kafkas() -> tuple[Subject, ...]:
    """The subjects of the catalog: APIs by key, then records by topic, then the rest by name."""
    topics: dict[str, str] = {}
    for topic in INTERNAL_TOPICS:
        for name in record_types(topic).values():
            topics[name] = topic
    found = list(_subjects(map(catalog.message, catalog.names()), topics, is_kafkas=True))
    order = {"api": 0, "record": 1, "data": 2}
    by_topic = (*INTERNAL_TOPICS, REMOTE_LOG_METADATA, "")
    found.sort(key=lambda one: (order[one.kind], by_topic.index(one.topic), one.api_key, one.name))
    return tuple(found)


def of_specs(path: Path) -> tuple[Subject, ...]:
    """The subjects of a spec file, or of those in a directory.

    Raises:
        ConfigError: there is no such file or directory, or no spec file in it, or two describe one message.
        SpecError: a file breaks the language.
    """
    if not path.exists():
        raise ConfigError(f"{path}: there is no such file or directory")
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise ConfigError(f"{path}: there are no spec files (*.json) in it")
    seen: dict[str, Path] = {}
    messages = []
    for file in files:
        message = load(file)
        if message.name in seen:
            raise ConfigError(f"{file}: the message {message.name} is already described by {seen[message.name]}")
        seen[message.name] = file
        messages.append(message)
    return tuple(sorted(_subjects(messages, {}, is_kafkas=False), key=lambda one: one.name))


def _subjects(messages: Iterable[Message], topics: dict[str, str], *, is_kafkas: bool) -> Iterator[Subject]:
    pairs: dict[tuple[Kind, str], dict[str, Message]] = {}
    for message in messages:
        kind, name, role = _placed(message, is_kafkas)
        pairs.setdefault((kind, name), {})[role] = message
    for (kind, name), found in pairs.items():
        key = next(iter(found.values())).api_key
        topic = ""
        if kind == "record" and is_kafkas:
            topic = topics.get(name, REMOTE_LOG_METADATA if name.startswith(_REMOTE) else "")
        roles = sorted(found, key=["request", "response", "key", "value", "message"].index)
        yield Subject(name, kind, key, topic, {role: found[role] for role in roles}, is_kafkas)


def _placed(message: Message, is_kafkas: bool) -> tuple[Kind, str, str]:
    """The kind and name of a message's subject, and its role there."""
    suffix, role = _ROLES.get(message.type, ("", "message"))
    name = message.name.removesuffix(suffix) or message.name
    if message.type in ("request", "response"):
        return "api", API_NAMES[message.api_key] if is_kafkas else name, role
    return ("record" if role != "message" or message.type == "metadata" else "data"), name, role


_FORMER: Final = {"alterisr": "alterpartition", "listclientmetricsresources": "listconfigresources"}
"""What APIs were called before Kafka 3.2 and 4.1, in lower case."""


def named(name: str, known: Iterable[Subject]) -> Subject | None:
    """The subject called so today or once, or that a message of this name belongs to; upper and lower case are alike.
    None where there is none."""
    subjects = list(known)
    folded = name.lower()
    for wanted in (folded, _FORMER.get(folded, folded)):
        for one in subjects:
            if one.name.lower() == wanted:
                return one
    own = ((one, message.name) for one in subjects for message in one.messages.values())
    return next((one for one, message in own if message.lower() == folded), None)


def names(known: Iterable[Subject]) -> list[str]:
    """Every name that `named` knows, for who has to suggest one."""
    return [name for one in known for name in (one.name, *(message.name for message in one.messages.values()))]
