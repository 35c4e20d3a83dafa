"""The version of a message that turns optional fields on, and fields that are put on every message (KIP-482).

The proposal promises both: a new version of all existing RPCs that has optional fields, and from then on fields that
need no new version, such as a trace id (docs/proposals.md). Specs are handled as documents here, as they are written.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from tagwire.errors import SpecError
from tagwire.spec import catalog
from tagwire.spec.api_keys import ApiKey
from tagwire.spec.model import FieldType, Message
from tagwire.spec.module import HEADERS
from tagwire.spec.parse import MAX_OPTIONAL_TAG
from tagwire.spec.versions import HIGHEST, Versions

Dialect = Literal["optional", "tagged"]
"""How a field may be left out: the optional fields of the proposal's draft, or the tagged fields that Kafka shipped."""

# What of a field or struct names versions that the new one is to have as the newest had.
_RANGES: Final = ("versions", "nullableVersions", "flexibleVersions")


@dataclass(frozen=True, slots=True)
class NewField:
    """A field for every message.

    Attributes:
        name, type: as a spec has them.
        tag: of an optional field; None is the first that no message has. Tagged fields take the next of their message.
    """

    name: str
    type: str
    tag: int | None = None
    about: str = ""


@dataclass(frozen=True, slots=True)
class Derived:
    """What became of one message.

    Attributes:
        document: its new spec; the old one, unchanged, where `reason` is given.
        dialect: how its fields may be left out now; None where it has no such fields.
        version: the version that was made; None where none was.
        reason: why nothing was done, "" where something was.
    """

    document: dict[str, Any]
    dialect: Dialect | None
    version: int | None
    reason: str = ""


def derived(
    message: Message, document: Mapping[str, Any], dialect: Dialect, fields: Sequence[NewField], *, every: bool = False
) -> Derived:
    """The spec of `message`, next version and all.

    A message without optional or tagged fields gets a version that has them. One that has them keeps its versions,
    unless `every`; the new fields stand in all versions that have such fields, or in the new one.

    Args:
        message: what `document` means.
        document: the spec's JSON, which stays as it is.
        dialect: of messages that have neither.
        fields: put on the message itself; optional ones have their tags.

    Raises:
        SpecError: the message has a field of that name, or no version is left.
    """
    reason = _left_alone(message, dialect)
    if reason:
        return Derived(dict(document), None, None, reason)
    has: Dialect | None = "optional" if message.optional_versions else "tagged" if message.flexible_versions else None
    new = copy.deepcopy(dict(document))
    highest = message.valid_versions.highest
    # A spec may name versions that it does not have yet.
    is_on = bool((message.optional_versions or message.flexible_versions) & message.valid_versions)
    version = highest + 1 if not is_on or every else None
    if version is None and not fields:
        return Derived(new, has, None, f"has {has} fields since version {_since(message)}")
    if version is not None:
        if version >= HIGHEST:  # which means that a range has no end
            raise SpecError(f"{message.name}: there is no version after {highest}")
        new["validVersions"] = str(Versions(message.valid_versions.lowest, version))
        for members in ("fields", "optionalFields", "commonStructs"):
            _extend(new.get(members), highest)
    chosen = has or dialect
    if not is_on and version is not None:
        _turn_on(new, message, chosen, version)
    if chosen == "optional":
        new["optionalFields"] = [*_listed(new.get("optionalFields")), *(_optional(field) for field in fields)]
    else:
        since = version if version is not None else message.flexible_versions.lowest
        tags = {field.tag for field in message.fields if field.tag is not None}
        added = [_tagged(field, len(tags) + number, since) for number, field in enumerate(fields)]
        new["fields"] = [*_listed(new.get("fields")), *added]
    if not new.get("optionalFields"):
        new.pop("optionalFields", None)
    return Derived(_ordered(new), chosen, version)


def common_tag(messages: Iterable[Message], taken: Iterable[int] = ()) -> int:
    """The first tag from 1 on that no message has as an optional field's: one field, one tag, wherever it is."""
    used = {field.tag for message in messages for field in message.fields if field.optional} | set(taken)
    return next(tag for tag in range(1, MAX_OPTIONAL_TAG + 1) if tag not in used)


def _left_alone(message: Message, dialect: Dialect) -> str:
    if not message.valid_versions:
        return "its API is gone"
    if message.type == "header":
        return "a header's versions are named by other messages"
    if message.type == "coordinator-key":
        return "a coordinator's key has version 0 alone"
    is_api_versions_response = message.type == "response" and message.api_key == ApiKey.API_VERSIONS
    if is_api_versions_response and dialect == "optional" and not message.flexible_versions:
        return "whatever its version, the error code comes first in ApiVersionsResponse (KIP-35)"
    return ""


def _since(message: Message) -> int:
    on = message.optional_versions or message.flexible_versions
    return max(on.lowest, message.valid_versions.lowest)


def _turn_on(new: dict[str, Any], message: Message, dialect: Dialect, version: int) -> None:
    if dialect == "optional":
        new.pop("flexibleVersions", None)
        new["versionsWithOptional"] = f"{version}+"
        return
    new["flexibleVersions"] = f"{version}+"
    if new.get("headerVersions") is not None and message.header_versions is not None:
        header = catalog.message(HEADERS[message.type]).flexible_versions.lowest
        before = {
            str(versions & Versions(0, version - 1)): str(number)
            for versions, number in message.header_versions.ranges
            if versions & Versions(0, version - 1)
        }
        latest = message.header_version(version)
        is_api_versions_response = message.type == "response" and message.api_key == ApiKey.API_VERSIONS
        new["headerVersions"] = before | {f"{version}+": "0" if is_api_versions_response else str(max(latest, header))}


def _extend(members: Any, highest: int) -> None:
    """What the newest version had, the new one has too, also where a range ends with it."""
    for member in _listed(members):
        for key in _RANGES:
            text = member.get(key)
            if text is None or text == "":
                continue
            versions = Versions.parse(str(text))
            if versions and versions.highest == highest:
                member[key] = str(Versions(versions.lowest, highest + 1))
        for inner in ("fields", "optionalFields"):
            _extend(member.get(inner), highest)


def _listed(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


def _optional(field: NewField) -> dict[str, Any]:
    nullable = {"nullable": True} if _is_nullable(field.type) else {}
    tag = f"0x{0 if field.tag is None else field.tag:04x}"
    return {"name": field.name, "type": field.type, "tag": tag} | nullable | _about(field)


def _tagged(field: NewField, tag: int, since: int) -> dict[str, Any]:
    versions = f"{since}+"
    found: dict[str, Any] = {"name": field.name, "type": field.type, "versions": versions}
    if _is_nullable(field.type):
        found["nullableVersions"] = versions
    found |= {"taggedVersions": versions, "tag": tag}
    if _is_nullable(field.type):
        found["default"] = "null"
    return found | {"ignorable": True} | _about(field)


def _about(field: NewField) -> dict[str, Any]:
    return {"about": field.about} if field.about else {}


def _is_nullable(text: str) -> bool:
    return FieldType(text.removeprefix("[]"), text.startswith("[]")).is_nullable_kind


def _ordered(document: dict[str, Any]) -> dict[str, Any]:
    """What was added among a message's versions stands there, before the fields."""
    last = ("fields", "optionalFields", "commonStructs")
    first = {key: value for key, value in document.items() if key not in last}
    return first | {key: document[key] for key in document if key in last}
