"""The spec language: JSON text -> `Message`, every rule checked (docs/wire-format.md#the-spec-language).

A spec uses one dialect of extension: tagged fields as Kafka ships them, or optional fields as KIP-482 first had them
(`versionsWithOptional`, `optionalFields`; docs/dialects.md#optional-fields).

A file's problems are collected and raised together, one line each: file, field path, rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tagwire.errors import SpecError
from tagwire.spec import header_versions, lifecycle
from tagwire.spec.defaults import implicit_default, parse_default
from tagwire.spec.json_text import parse_json
from tagwire.spec.keys import Keys, shown
from tagwire.spec.model import PRIMITIVES, Field, FieldType, Message, Struct, json_name, snake_case
from tagwire.spec.versions import HIGHEST, NONE, Versions

MESSAGE_KEYS = frozenset(
    (
        "type",
        "name",
        "validVersions",
        "deprecatedVersions",
        "doNotUseVersions",
        "flexibleVersions",
        "headerVersions",
        "fields",
        "apiKey",
        "listeners",
        "latestVersionUnstable",
        "commonStructs",
        "versionsWithOptional",
        "optionalFields",
    )
)
FIELD_KEYS = frozenset(
    (
        "name",
        "type",
        "versions",
        "fields",
        "nullableVersions",
        "default",
        "ignorable",
        "mapKey",
        "tag",
        "taggedVersions",
        "flexibleVersions",
        "entityType",
        "about",
        "zeroCopy",
        "optionalFields",
    )
)
OPTIONAL_FIELD_KEYS = frozenset({"name", "type", "tag", "nullable", "default", "about", "fields", "optionalFields"})
STRUCT_KEYS = frozenset({"name", "versions", "deprecatedVersions", "fields", "optionalFields"})
MESSAGE_TYPES = ("request", "response", "header", "metadata", "data", "coordinator-key", "coordinator-value")
KEYED_TYPES = ("request", "response", "metadata", "coordinator-key", "coordinator-value")
LISTENERS = ("broker", "controller", "zkBroker")
ENTITY_TYPES = {
    "unknown": None,
    "transactionalId": "string",
    "groupId": "string",
    "topicName": "string",
    "producerId": "int64",
    "brokerId": "int32",
}
MAX_OPTIONAL_TAG = 65535
MAX_NESTING = 60
MAX_PLACES = 10_000
"""How many structs a message may have, one that is used twice counted twice: common structs that each use the next one
twice are as many as grains on a chessboard."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*", re.ASCII)
_HEX_TAG = re.compile(r"0x[0-9a-fA-F]+", re.ASCII)


def load(source: Path | str) -> Message:
    """The message that `source` describes: a path, or JSON text (anything with a brace in it).

    Raises:
        SpecError: naming file, field and rule; all problems of the file at once.
    """
    if isinstance(source, str) and "{" in source:
        return parse(source)
    path = Path(source)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a path with a zero byte
        raise SpecError(f"{path}: cannot be read: {error}") from error
    return parse(text, path.name)


def parse(text: str, file: str = "<text>") -> Message:
    """Like `load`, for text that came from `file`."""
    try:
        document = parse_json(text)
    except ValueError as error:
        raise SpecError(f"{file}: not JSON: {error}") from error
    if not isinstance(document, dict):
        raise SpecError(f"{file}: a spec is one JSON object")
    parser = _Parser(file)
    message = parser.message(document)
    if parser.problems or message is None:
        raise SpecError("\n".join(parser.problems))
    return message


def _holds(raw: dict[str, Any], key: str) -> bool:
    """Whether `key` is there and says something: an empty list says the same as leaving it out."""
    return raw.get(key) is not None and raw[key] != []


class _Parser(Keys):
    """One file being read: the structs named so far."""

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self.name = "?"
        self.flexible = NONE
        self.optional = NONE
        self.common: dict[str, dict[str, Any]] = {}
        self.structs: dict[str, Struct] = {}
        self.building: list[str] = []

    # -- the whole message

    def message(self, doc: dict[str, Any]) -> Message | None:
        self.name = self.text(doc, "name", "") or "?"
        self.unknown_keys(doc, MESSAGE_KEYS, "")
        kind = self.text(doc, "type", "")
        if kind not in MESSAGE_TYPES:
            self.problem("", f"type must be one of {', '.join(MESSAGE_TYPES)}, not {kind!r}")
        if self.name == "?":
            self.problem("", "name is missing")
        elif not _NAME.fullmatch(self.name):
            self.problem("", f"the name {self.name!r} must be letters and digits, a letter first")
        valid = self.versions(doc, "validVersions", "", None)
        if valid is None:
            self.problem("", "validVersions is missing")
            valid = NONE
        if valid.is_open:
            self.problem("", f"validVersions {valid} does not specify a maximum version")
        api_key = self.integer(doc, "apiKey", "", -1)
        if kind in KEYED_TYPES and doc.get("apiKey") is None:
            self.problem("", f"a {kind} needs an apiKey")
        if not -1 <= api_key <= HIGHEST:
            self.problem("", f"apiKey {api_key} is out of range: 0 to {HIGHEST}")
        if kind == "request" and not self.name.endswith("Request"):
            self.problem("", "the name of a request must end in Request")
        if kind == "response" and not self.name.endswith("Response"):
            self.problem("", "the name of a response must end in Response")
        listeners = self._listeners(doc, kind or "")
        unstable = self.boolean(doc, "latestVersionUnstable", "", False)
        if unstable and kind != "request":
            self.problem("", "latestVersionUnstable belongs to requests only")
        root = Struct(self.name, valid, ())
        headers = None
        if valid:
            self._dialect(doc)
            headers = header_versions.read(self, doc, kind or "", api_key, valid, self.flexible)
            if kind == "coordinator-key" and (str(valid) != "0" or self.flexible):
                self.problem("", "a coordinator-key must have validVersions 0 and flexibleVersions none")
            self._common_structs(doc)
            root = Struct(self.name, valid, self._fields(doc, "", valid, top_level=True))
            self._unused_common_structs()
        elif doc.get(header_versions.KEY) is not None:
            self.problem("", f"{header_versions.KEY} belong to messages that have a version")
        return Message(
            name=self.name,
            type=kind or "",
            api_key=api_key,
            valid_versions=valid,
            deprecated_versions=lifecycle.read_deprecated(self, doc, api_key, kind in ("request", "response"), valid),
            flexible_versions=self.flexible,
            listeners=listeners,
            latest_version_unstable=unstable,
            root=root,
            structs=tuple(self.structs.values()),
            optional_versions=self.optional,
            header_versions=headers,
            do_not_use_versions=lifecycle.read_do_not_use(self, doc, kind or "", api_key, valid),
        )

    def _dialect(self, doc: dict[str, Any]) -> None:
        """Notes where the message is flexible, and where it has optional fields: not both in one spec."""
        optional = self.versions(doc, "versionsWithOptional", "", None)
        flexible = self.versions(doc, "flexibleVersions", "", None if optional is None else NONE)
        if flexible is None:
            self.problem("", "flexibleVersions is missing: write none or N+")
        elif flexible and not flexible.is_open:
            self.problem("", f"flexibleVersions {flexible} must be none or open-ended (N+)")
        self.flexible, self.optional = flexible or NONE, optional or NONE
        if self.flexible and self.optional:
            self.problem("", "versionsWithOptional and flexibleVersions exclude each other")

    def _listeners(self, doc: dict[str, Any], kind: str) -> tuple[str, ...]:
        listeners = doc.get("listeners")
        if listeners is None or listeners == []:
            return ()
        if kind != "request":
            self.problem("", "listeners belong to requests only")
        listeners = listeners if isinstance(listeners, list) else [listeners]
        for listener in listeners:
            if listener not in LISTENERS:
                self.problem("", f"listener {listener!r} is none of {', '.join(LISTENERS)}")
        return tuple(str(listener) for listener in listeners)

    def _common_structs(self, doc: dict[str, Any]) -> None:
        for struct in self.objects(doc, "commonStructs", ""):
            name = self.text(struct, "name", "commonStructs") or ""
            self.unknown_keys(struct, STRUCT_KEYS, name)
            if not _NAME.fullmatch(name) or not name[0].isupper():
                self.problem(f"commonStructs {name!r}", "a struct's name is letters and digits, a capital first")
            if name in self.common:
                self.problem(name, "declared twice among the commonStructs")
            self.common[name] = struct

    def _unused_common_structs(self) -> None:
        """Checks the common structs that no field names, without making them part of the message."""
        for name in self.common:
            if name not in self.structs:
                used = dict(self.structs)
                self._common_struct(name, name)
                self.structs = used

    # -- fields

    def _fields(
        self, doc: dict[str, Any], path: str, parent: Versions, *, top_level: bool = False
    ) -> tuple[Field, ...]:
        """The fields of one struct, its optional ones last."""
        names: set[str] = set()
        taken: set[str] = set()
        fields = [
            field
            for raw, name, here in self._named(doc, "fields", path, names, taken)
            if (field := self._field(raw, name, here, parent, top_level))
        ]
        optional = [
            field
            for raw, name, here in self._named(doc, "optionalFields", path, names, taken)
            if (field := self._optional_field(raw, name, here, parent))
        ]
        if doc.get("optionalFields") is not None and not self.optional:
            self.problem(path, "optionalFields need versionsWithOptional")
        tags = self._distinct_tags(fields, path)
        if tags and sorted(tags) != list(range(len(tags))):
            missing = next(tag for tag in range(len(tags)) if tag not in tags)
            self.problem(path, f"tags must be contiguous from 0: {missing} is missing")
        self._distinct_tags(optional, path)
        return (*fields, *optional)

    def _named(
        self, doc: dict[str, Any], key: str, path: str, names: set[str], taken: set[str]
    ) -> Iterator[tuple[dict[str, Any], str, str]]:
        """The objects under `key` with their names and paths; a name that is no name is a problem and left out."""
        for raw in self.objects(doc, key, path):
            name = self.text(raw, "name", path) or ""
            here = f"{path}.{name}" if path else name
            if not _NAME.fullmatch(name):
                self.problem(here, f"the name {name!r} must be letters and digits, a letter first")
                continue
            attribute, json_key = f"attribute {snake_case(name)}", f"JSON key {json_name(name)}"
            if name in names:
                self.problem(here, "the name is already taken in this struct")
            elif attribute in taken:
                self.problem(here, f"the {attribute} is already taken in this struct")
            elif json_key in taken:
                self.problem(here, f"the {json_key} is already taken in this struct")
            names.add(name)
            taken |= {attribute, json_key}
            yield raw, name, here

    def _distinct_tags(self, fields: list[Field], path: str) -> set[int]:
        tags: dict[int, str] = {}
        for field in fields:
            if field.tag is None:
                continue
            if field.tag in tags:
                shown = f"0x{field.tag:04x}" if field.optional else str(field.tag)
                here, other = (f"{path}.{name}" if path else name for name in (field.name, tags[field.tag]))
                self.problem(here, f"tag {shown} is already taken by {other}")
            tags[field.tag] = field.name
        return set(tags)

    def _field(self, raw: dict[str, Any], name: str, path: str, parent: Versions, top_level: bool) -> Field | None:
        self.unknown_keys(raw, FIELD_KEYS, path)
        kind = self._type(raw, path)
        if kind is None:
            return None
        tagged = self.versions(raw, "taggedVersions", path, NONE) or NONE
        versions = self.versions(raw, "versions", path, tagged if tagged else None)
        inline = kind.is_struct and _holds(raw, "fields")
        if versions is None or (inline and raw.get("versions") is None):
            self.problem(path, "versions is missing")
            versions = versions or tagged
        nullable = self._nullability(raw, path, kind)
        tag = self._tag(raw, path, kind, versions, tagged, nullable)
        field_flexible = self._field_flexibility(raw, path, kind)
        flexible = self.flexible if field_flexible is None else field_flexible
        if tagged and not flexible.covers(tagged):
            self.problem(path, f"taggedVersions {tagged} reach outside the flexible versions {flexible}")
        map_key = self.boolean(raw, "mapKey", path, False)
        if map_key and top_level:
            self.problem(path, "mapKey is not allowed on a message's own field")
        if map_key and tag is not None:
            self.problem(path, "mapKey is not allowed on a tagged field")
        zero_copy = self.boolean(raw, "zeroCopy", path, False)
        if zero_copy and (kind.is_array or kind.element != "bytes"):
            self.problem(path, "zeroCopy is for bytes only")
        return Field(
            name=name,
            type=kind,
            versions=versions,
            nullable_versions=nullable,
            tagged_versions=tagged,
            tag=tag,
            default=self._default(raw, path, kind, versions, nullable),
            ignorable=self.boolean(raw, "ignorable", path, False),
            map_key=map_key,
            entity_type=self._entity_type(raw, path, kind),
            flexible_versions=field_flexible,
            zero_copy=zero_copy,
            about=self.text(raw, "about", path) or "",
            struct=self._struct(raw, path, kind, versions & parent),
        )

    def _optional_field(self, raw: dict[str, Any], name: str, path: str, parent: Versions) -> Field | None:
        self.unknown_keys(raw, OPTIONAL_FIELD_KEYS, path)
        kind = self._type(raw, path)
        if kind is None:
            return None
        if kind.is_array and kind.is_struct:
            self.problem(path, "an array of structs cannot be an optional field")
        nullable = self.boolean(raw, "nullable", path, False)
        if nullable and not kind.is_nullable_kind:
            self.problem(path, f"type {kind} cannot be nullable")
        versions = self.optional & parent
        return Field(
            name=name,
            type=kind,
            versions=versions,
            nullable_versions=versions if nullable else NONE,
            tagged_versions=versions,
            tag=self._optional_tag(raw, path),
            default=self._optional_default(raw, path, kind, nullable),
            about=self.text(raw, "about", path) or "",
            struct=self._struct(raw, path, kind, versions),
            optional=True,
        )

    def _optional_tag(self, raw: dict[str, Any], path: str) -> int:
        tag = raw.get("tag")
        if isinstance(tag, str) and _HEX_TAG.fullmatch(tag):
            tag = int(tag, 16)
        if isinstance(tag, bool) or not isinstance(tag, int) or not 0 <= tag <= MAX_OPTIONAL_TAG:
            self.problem(path, f"tag must be a number from 0 to 65535 or its hexadecimal text (0x0001), not {tag!r}")
            return 0
        return tag

    def _optional_default(self, raw: dict[str, Any], path: str, kind: FieldType, nullable: bool) -> Any:
        """In this dialect the default is what is given, null included; else null if nullable; else the type's zero."""
        if "default" not in raw:
            return None if nullable else implicit_default(kind)
        given = "null" if raw["default"] is None else raw["default"]
        default = self._parsed_default(given, path, kind)
        if default is None and kind.element != "records" and not nullable:
            self.problem(path, "the default is null, but the field is not nullable")
        return default

    def _type(self, raw: dict[str, Any], path: str) -> FieldType | None:
        text = (self.text(raw, "type", path) or "").strip()
        if not text:
            self.problem(path, "type is missing")
            return None
        is_array = text.startswith("[]")
        element = text[2:] if is_array else text
        if element.startswith("[]"):
            self.problem(path, f"{text}: arrays of arrays are not supported")
            return None
        if element == "records" and is_array:
            self.problem(path, "[]records is not supported")
            return None
        if element not in PRIMITIVES and (not _NAME.fullmatch(element) or not element[0].isupper()):
            self.problem(path, f"{text!r} is no type: a primitive, a struct's name with a capital, or [] before one")
            return None
        for key in ("fields", "optionalFields"):
            if _holds(raw, key) and element in PRIMITIVES and not is_array:
                self.problem(path, f"type {element} cannot have {key}")
            elif element in PRIMITIVES:
                self.objects(raw, key, path)  # of no meaning, as in Kafka's generator
        return FieldType(element, is_array)

    def _nullability(self, raw: dict[str, Any], path: str, kind: FieldType) -> Versions:
        nullable = self.versions(raw, "nullableVersions", path, NONE) or NONE
        if nullable and not kind.is_nullable_kind:
            self.problem(path, f"type {kind} cannot be nullable")
            return NONE
        return nullable

    def _tag(
        self, raw: dict[str, Any], path: str, kind: FieldType, versions: Versions, tagged: Versions, nullable: Versions
    ) -> int | None:
        if raw.get("tag") is None:
            if tagged:
                self.problem(path, "taggedVersions without a tag")
            return None
        tag = self.integer(raw, "tag", path, 0)
        if tag < 0:
            self.problem(path, f"tag {tag} is negative")
        if not tagged:
            self.problem(path, "a tag needs taggedVersions")
            return tag
        if not tagged.is_open:
            self.problem(path, f"taggedVersions {tagged} must be open-ended (N+)")
        if not versions.covers(tagged):
            self.problem(path, f"taggedVersions {tagged} reach outside versions {versions}")
        if (nullable & tagged) and not nullable.covers(tagged):
            self.problem(path, f"nullableVersions {nullable} cover only some of taggedVersions {tagged}")
        if kind.element == "records":
            self.problem(path, "records cannot be tagged")
        return tag

    def _field_flexibility(self, raw: dict[str, Any], path: str, kind: FieldType) -> Versions | None:
        flexible = self.versions(raw, "flexibleVersions", path, None)
        if flexible is None:
            return None
        if kind.is_array or kind.element not in ("string", "bytes"):
            self.problem(path, "flexibleVersions can be overridden only on string and bytes")
        if not self.flexible.covers(flexible):
            self.problem(path, f"flexibleVersions {flexible} reach outside the message's {self.flexible}")
        return flexible

    def _default(self, raw: dict[str, Any], path: str, kind: FieldType, versions: Versions, nullable: Versions) -> Any:
        given = raw.get("default")
        if given is None:
            return implicit_default(kind)
        default = self._parsed_default(given, path, kind)
        if default is None and kind.element != "records" and not nullable.covers(versions):
            self.problem(path, f"the default is null, but only {nullable} of the versions {versions} are nullable")
        return default

    def _parsed_default(self, given: Any, path: str, kind: FieldType) -> Any:
        if isinstance(given, dict) or (isinstance(given, list) and not kind.is_array):
            self.problem(path, f"default must be text, a number or a bool, not {shown(given)}")
            return implicit_default(kind)
        text = str(given).lower() if isinstance(given, bool) else str(given)
        try:
            return parse_default(text, kind)
        except ValueError as error:
            self.problem(path, str(error))
            return implicit_default(kind)

    def _entity_type(self, raw: dict[str, Any], path: str, kind: FieldType) -> str:
        entity = self.text(raw, "entityType", path) or "unknown"
        if entity not in ENTITY_TYPES:
            self.problem(path, f"entityType {entity!r} is none of {', '.join(ENTITY_TYPES)}")
            return "unknown"
        wanted = ENTITY_TYPES[entity]
        if wanted is not None and kind.element != wanted:
            self.problem(path, f"entityType {entity} is for {wanted}, not {kind.element}")
        return entity

    # -- structs

    def _struct(self, raw: dict[str, Any], path: str, kind: FieldType, versions: Versions) -> Struct | None:
        if not kind.is_struct:
            return None
        name = kind.element
        if name in self.common:
            if _holds(raw, "fields") or _holds(raw, "optionalFields"):
                self.problem(path, f"{name} is a common struct: the field must not give fields of its own")
            return self._common_struct(name, path)
        if name in self.structs or name in self.building:
            self.problem(path, f"the struct {name} is declared twice: use commonStructs to share it")
            return None
        if not self._may_build(name, path):
            return None
        self.building.append(name)
        struct = Struct(name, versions, self._fields(raw, path, versions))
        self.building.pop()
        self.structs[name] = struct
        return struct

    def _may_build(self, name: str, path: str) -> bool:
        if name == self.name:
            self.problem(path, f"the struct {name} has the name of the message")
        elif len(self.building) >= MAX_NESTING:
            self.problem(path, f"structs are nested more than {MAX_NESTING} deep")
        else:
            return True
        return False

    def _common_struct(self, name: str, path: str) -> Struct | None:
        if name in self.structs:
            return self.structs[name]
        if name in self.building:
            self.problem(path, f"the struct {name} contains itself")
            return None
        if not self._may_build(name, path):
            return None
        raw = self.common[name]
        versions = self.versions(raw, "versions", name, None)
        if versions is None:
            self.problem(name, "versions is missing")
            versions = NONE
        self.building.append(name)
        struct = Struct(name, versions, self._fields(raw, name, versions))
        self.building.pop()
        if struct.places > MAX_PLACES:
            self.problem(path, f"the struct {name} uses others in more than {MAX_PLACES:,} places")
            struct = Struct(name, versions, ())  # said of the innermost, and not of each around it
        self.structs[name] = struct
        return struct
