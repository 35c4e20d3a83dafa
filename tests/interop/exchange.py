"""Every message, as Kafka's generated classes of one release read and write it."""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import dataclass
from typing import Any, Final

from tagwire.spec import Message, Versions, catalog

from . import differences
from .peer import Peer
from .values import values

CLASS: Final = re.compile(r"(?P<path>org/apache/kafka/(?:\w+/)+(?:message|metadata|generated)/(?P<name>\w+))\.class")


@dataclass(frozen=True)
class Exchange:
    """A value, and what Java made of it. An answer that begins with `!` is Java's error.

    Attributes:
        encoded: the value as we write it.
        written_again: hexadecimal: what Java writes after reading `encoded`.
        json_form: Java's JSON form of it, with the catalog's names; None where Java has none.
        written_from_json: hexadecimal: what Java writes after reading our JSON form; None where it cannot read any.
    """

    message: Message
    version: int
    variant: str
    value: Any
    encoded: bytes
    written_again: str
    json_form: str | None
    written_from_json: str | None

    @property
    def raw_tags(self) -> bool:
        """Whether the value has raw tags, which JSON cannot carry."""
        return self.variant == "tags"

    def __str__(self) -> str:
        return f"{self.message.name} v{self.version} {self.variant}"


def exchange(peer: Peer, *, old: bool) -> list[Exchange]:
    """Each message and version that the catalog and the peer both have, in all variants of value.

    Args:
        old: whether the peer is the release that `differences` speaks of.
    """
    asked: list[tuple[Message, int, str, Any, bytes]] = []
    lines = []
    for name, (java, known) in classes(peer, old=old).items():
        message = catalog.message(name)
        renamed = differences.FIELDS.get(name, {}) if old else {}
        for version in message.valid_versions & known:
            if old and (name, version) in differences.REMADE:
                continue
            theirs = message.api_key if old and is_key(message) else version
            for variant, value in values(message, version, differences.ADDED.get(name, ()) if old else ()):
                encoded = value.encode(version)
                asked.append((message, version, variant, value, encoded))
                doc = json.dumps(rename(value.to_json(version), renamed))
                lines.append(f"{java}\t{theirs}\t{encoded.hex()}\t{doc}")
    answers = [answer.split("\t") for answer in peer.ask("Messages", lines)]
    return [
        Exchange(*question, written, from_java(json_form, question[0], old=old), None if back == "-" else back)
        for question, (written, json_form, back) in zip(asked, answers, strict=True)
    ]


def from_java(text: str, message: Message, *, old: bool) -> str | None:
    """Java's JSON form with the catalog's names."""
    if text == "-" or text.startswith("!"):
        return None if text == "-" else text
    renamed = differences.FIELDS.get(message.name, {}) if old else {}
    return json.dumps(rename(json.loads(text), {theirs: ours for ours, theirs in renamed.items()}))


def rename(doc: Any, names: dict[str, str]) -> Any:
    """A JSON form with other keys."""
    if isinstance(doc, list):
        return [rename(each, names) for each in doc]
    if isinstance(doc, dict):
        return {names.get(key, key): rename(value, names) for key, value in doc.items()}
    return doc


def classes(peer: Peer, *, old: bool) -> dict[str, tuple[str, Versions]]:
    """The catalog's messages that a release has: name -> (Java class, versions it knows).

    In 3.9 a coordinator's key had its record type for its version; since then it has 0, as in the catalog.
    """
    found = {name: java for name, java in generated(peer).items() if catalog.contains(name)}
    answers = [answer.split("\t") for answer in peer.ask("Messages", found.values())]
    known = [Versions(int(lowest), int(highest)) for lowest, highest in answers]
    return {
        name: (java, Versions(0, 0) if old and is_key(catalog.message(name)) else versions)
        for (name, java), versions in zip(found.items(), known, strict=True)
    }


def is_key(message: Message) -> bool:
    return message.type == "coordinator-key"


def generated(peer: Peer) -> dict[str, str]:
    """A release's generated classes: those that the catalog has or that have a JSON form. Message -> Java class."""
    found = {}
    for path in peer.jars:
        with zipfile.ZipFile(path) as jar:
            entries = set(jar.namelist())
        for entry in sorted(entries):
            match = CLASS.fullmatch(entry)
            if match is None or match["name"].endswith("JsonConverter"):
                continue
            name = match["name"] if catalog.contains(match["name"]) else match["name"].removesuffix("Data")
            name = differences.MESSAGES.get(name, name)
            if catalog.contains(name) or f"{match['path']}JsonConverter.class" in entries:
                found[name] = match["path"].replace("/", ".")
    return found
