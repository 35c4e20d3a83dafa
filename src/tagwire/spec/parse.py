"""The spec language: JSON text -> `Message`, every rule checked (facts/kafka_protocol.md 1.1 to 1.6).

A file's problems are collected and raised together, one line each: file, field path, rule.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tagwire.errors import SpecError
from tagwire.spec.defaults import implicit_default, parse_default
from tagwire.spec.json_text import parse_json
from tagwire.spec.model import PRIMITIVES, Field, FieldType, Message, Struct
from tagwire.spec.versions import NONE, Versions

MESSAGE_KEYS = frozenset(
    (
        "type",
        "name",
        "validVersions",
        "deprecatedVersions",
        "flexibleVersions",
        "fields",
        "apiKey",
        "listeners",
        "latestVersionUnstable",
        "commonStructs",
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
    )
)
STRUCT_KEYS = frozenset({"name", "versions", "deprecatedVersions", "fields"})
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
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*", re.ASCII)


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
    except (OSError, UnicodeDecodeError) as error:
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


class _Parser:
    """One file being read: what is wrong so far, and the structs named so far."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[str] = []
        self.name = "?"
        self.flexible = NONE
        self.common: dict[str, dict[str, Any]] = {}
        self.structs: dict[str, Struct] = {}
        self.building: list[str] = []

    def problem(self, path: str, rule: str) -> None:
        where = f"{self.file}, {path}" if path else self.file
        line = f"{where}: {rule}"
        if line not in self.problems:
            self.problems.append(line)

    # -- the whole message

    def message(self, doc: dict[str, Any]) -> Message | None:
        self.name = self._text(doc, "name", "") or "?"
        self._unknown_keys(doc, MESSAGE_KEYS, "")
        kind = self._text(doc, "type", "")
        if kind not in MESSAGE_TYPES:
            self.problem("", f"type must be one of {', '.join(MESSAGE_TYPES)}, not {kind!r}")
        if self.name == "?":
            self.problem("", "name is missing")
        valid = self._versions(doc, "validVersions", "", None)
        if valid is None:
            self.problem("", "validVersions is missing")
            valid = NONE
        if valid.is_open:
            self.problem("", f"validVersions {valid} does not specify a maximum version")
        api_key = self._integer(doc, "apiKey", "", -1)
        if kind in KEYED_TYPES and "apiKey" not in doc:
            self.problem("", f"a {kind} needs an apiKey")
        if kind == "request" and not self.name.endswith("Request"):
            self.problem("", "the name of a request must end in Request")
        if kind == "response" and not self.name.endswith("Response"):
            self.problem("", "the name of a response must end in Response")
        listeners = self._listeners(doc, kind or "")
        unstable = self._boolean(doc, "latestVersionUnstable", "", False)
        if unstable and kind != "request":
            self.problem("", "latestVersionUnstable belongs to requests only")
        root = Struct(self.name, valid, ())
        if valid:
            self.flexible = self._message_flexibility(doc)
            if kind == "coordinator-key" and (str(valid) != "0" or self.flexible):
                self.problem("", "a coordinator-key must have validVersions 0 and flexibleVersions none")
            self._common_structs(doc)
            root = Struct(self.name, valid, self._fields(doc, "fields", "", valid, top_level=True))
            self._unused_common_structs()
        return Message(
            name=self.name,
            type=kind or "",
            api_key=api_key,
            valid_versions=valid,
            deprecated_versions=self._versions(doc, "deprecatedVersions", "", NONE) or NONE,
            flexible_versions=self.flexible,
            listeners=listeners,
            latest_version_unstable=unstable,
            root=root,
            structs=tuple(self.structs.values()),
        )

    def _message_flexibility(self, doc: dict[str, Any]) -> Versions:
        flexible = self._versions(doc, "flexibleVersions", "", None)
        if flexible is None:
            self.problem("", "flexibleVersions is missing: write none or N+")
            return NONE
        if flexible and not flexible.is_open:
            self.problem("", f"flexibleVersions {flexible} must be none or open-ended (N+)")
        return flexible

    def _listeners(self, doc: dict[str, Any], kind: str) -> tuple[str, ...]:
        listeners = doc.get("listeners")
        if listeners is None:
            return ()
        if kind != "request":
            self.problem("", "listeners belong to requests only")
        listeners = listeners if isinstance(listeners, list) else [listeners]
        for listener in listeners:
            if listener not in LISTENERS:
                self.problem("", f"listener {listener!r} is none of {', '.join(LISTENERS)}")
        return tuple(str(listener) for listener in listeners)

    def _common_structs(self, doc: dict[str, Any]) -> None:
        for struct in self._objects(doc, "commonStructs", ""):
            name = self._text(struct, "name", "commonStructs") or ""
            self._unknown_keys(struct, STRUCT_KEYS, name)
            if not _NAME.fullmatch(name) or not name[0].isupper():
                self.problem(f"commonStructs {name!r}", "a struct's name is letters and digits, a capital first")
            if name in self.common:
                self.problem(name, "declared twice among the commonStructs")
            self.common[name] = struct

    def _unused_common_structs(self) -> None:
        """Checks the common structs that no field names, without making them part of the message."""
        for name in self.common:
            if name not in self.structs:
                self._common_struct(name, name)
                self.structs.pop(name, None)

    # -- fields

    def _fields(
        self, doc: dict[str, Any], key: str, path: str, parent: Versions, *, top_level: bool = False
    ) -> tuple[Field, ...]:
        fields: list[Field] = []
        names: set[str] = set()
        tags: dict[int, str] = {}
        for raw in self._objects(doc, key, path):
            name = self._text(raw, "name", path) or ""
            here = f"{path}.{name}" if path else name
            if not _NAME.fullmatch(name):
                self.problem(here, f"the name {name!r} must be letters and digits, a letter first")
                continue
            if name in names:
                self.problem(here, "the name is already taken in this struct")
            names.add(name)
            field = self._field(raw, name, here, parent, top_level)
            if field is None:
                continue
            if field.tag is not None:
                if field.tag in tags:
                    self.problem(here, f"tag {field.tag} is already taken by {tags[field.tag]}")
                tags[field.tag] = name
            fields.append(field)
        if tags and sorted(tags) != list(range(len(tags))):
            missing = next(tag for tag in range(len(tags)) if tag not in tags)
            self.problem(path, f"tags must be contiguous from 0: {missing} is missing")
        return tuple(fields)

    def _field(self, raw: dict[str, Any], name: str, path: str, parent: Versions, top_level: bool) -> Field | None:
        self._unknown_keys(raw, FIELD_KEYS, path)
        kind = self._type(raw, path)
        if kind is None:
            return None
        tagged = self._versions(raw, "taggedVersions", path, NONE) or NONE
        versions = self._versions(raw, "versions", path, tagged if tagged else None)
        inline = kind.is_struct and raw.get("fields") is not None
        if versions is None or (inline and raw.get("versions") is None):
            self.problem(path, "versions is missing")
            versions = versions or tagged
        nullable = self._nullability(raw, path, kind)
        tag = self._tag(raw, path, kind, versions, tagged, nullable)
        field_flexible = self._field_flexibility(raw, path, kind)
        flexible = self.flexible if field_flexible is None else field_flexible
        if tagged and not flexible.covers(tagged):
            self.problem(path, f"taggedVersions {tagged} reach outside the flexible versions {flexible}")
        map_key = self._boolean(raw, "mapKey", path, False)
        if map_key and top_level:
            self.problem(path, "mapKey is not allowed on a message's own field")
        if map_key and tag is not None:
            self.problem(path, "mapKey is not allowed on a tagged field")
        zero_copy = self._boolean(raw, "zeroCopy", path, False)
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
            ignorable=self._boolean(raw, "ignorable", path, False),
            map_key=map_key,
            entity_type=self._entity_type(raw, path, kind),
            flexible_versions=field_flexible,
            zero_copy=zero_copy,
            about=self._text(raw, "about", path) or "",
            struct=self._struct(raw, path, kind, versions & parent),
        )

    def _type(self, raw: dict[str, Any], path: str) -> FieldType | None:
        text = (self._text(raw, "type", path) or "").strip()
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
        if raw.get("fields") is not None and element in PRIMITIVES and not is_array:
            self.problem(path, f"a {element} cannot have fields")
        return FieldType(element, is_array)

    def _nullability(self, raw: dict[str, Any], path: str, kind: FieldType) -> Versions:
        nullable = self._versions(raw, "nullableVersions", path, NONE) or NONE
        if nullable and not kind.is_nullable_kind:
            self.problem(path, f"a {kind} cannot be nullable")
            return NONE
        return nullable

    def _tag(
        self, raw: dict[str, Any], path: str, kind: FieldType, versions: Versions, tagged: Versions, nullable: Versions
    ) -> int | None:
        if raw.get("tag") is None:
            if tagged:
                self.problem(path, "taggedVersions without a tag")
            return None
        tag = self._integer(raw, "tag", path, 0)
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
        if raw.get("flexibleVersions") is None:
            return None
        flexible = self._versions(raw, "flexibleVersions", path, NONE) or NONE
        if kind.is_array or kind.element not in ("string", "bytes"):
            self.problem(path, "flexibleVersions can be overridden only on string and bytes")
        if not self.flexible.covers(flexible):
            self.problem(path, f"flexibleVersions {flexible} reach outside the message's {self.flexible}")
        return flexible

    def _default(self, raw: dict[str, Any], path: str, kind: FieldType, versions: Versions, nullable: Versions) -> Any:
        given = raw.get("default")
        if given is None:
            return implicit_default(kind)
        text = str(given).lower() if isinstance(given, bool) else str(given)
        try:
            default = parse_default(text, kind)
        except ValueError as error:
            self.problem(path, str(error))
            return implicit_default(kind)
        if default is None and kind.element != "records" and not nullable.covers(versions):
            self.problem(path, f"the default is null, but only {nullable} of the versions {versions} are nullable")
        return default

    def _entity_type(self, raw: dict[str, Any], path: str, kind: FieldType) -> str:
        entity = self._text(raw, "entityType", path) or "unknown"
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
            if raw.get("fields") is not None:
                self.problem(path, f"{name} is a common struct: the field must not give fields of its own")
            return self._common_struct(name, path)
        if name in self.structs or name in self.building:
            self.problem(path, f"the struct {name} is declared twice: use commonStructs to share it")
            return None
        self.building.append(name)
        struct = Struct(name, versions, self._fields(raw, "fields", path, versions))
        self.building.pop()
        self.structs[name] = struct
        return struct

    def _common_struct(self, name: str, path: str) -> Struct | None:
        if name in self.structs:
            return self.structs[name]
        if name in self.building:
            self.problem(path, f"the struct {name} contains itself")
            return None
        raw = self.common[name]
        versions = self._versions(raw, "versions", name, None)
        if versions is None:
            self.problem(name, "versions is missing")
            versions = NONE
        self.building.append(name)
        struct = Struct(name, versions, self._fields(raw, "fields", name, versions))
        self.building.pop()
        self.structs[name] = struct
        return struct

    # -- values: like Kafka's parser, scalars may be spelled as text or as numbers

    def _unknown_keys(self, doc: dict[str, Any], known: frozenset[str], path: str) -> None:
        for key in doc:
            if key not in known:
                self.problem(path, f"unknown key {key!r}")

    def _objects(self, doc: dict[str, Any], key: str, path: str) -> list[dict[str, Any]]:
        value = doc.get(key)
        items = [] if value is None else value if isinstance(value, list) else [value]
        for item in items:
            if not isinstance(item, dict):
                self.problem(path, f"{key} must hold objects, not {item!r}")
        return [item for item in items if isinstance(item, dict)]

    def _text(self, doc: dict[str, Any], key: str, path: str) -> str | None:
        value = doc.get(key)
        if value is None or isinstance(value, str):
            return value
        self.problem(path, f"{key} must be text, not {value!r}")
        return None

    def _integer(self, doc: dict[str, Any], key: str, path: str, absent: int) -> int:
        value = doc.get(key)
        if value is None:
            return absent
        try:
            if isinstance(value, bool | float):
                raise ValueError
            return int(value)
        except (TypeError, ValueError):
            self.problem(path, f"{key} must be a whole number, not {value!r}")
            return absent

    def _boolean(self, doc: dict[str, Any], key: str, path: str, absent: bool) -> bool:
        value = doc.get(key)
        if value is None:
            return absent
        if isinstance(value, bool):
            return value
        if value in ("true", "false"):
            return bool(value == "true")
        self.problem(path, f"{key} must be true or false, not {value!r}")
        return absent

    def _versions(self, doc: dict[str, Any], key: str, path: str, absent: Versions | None) -> Versions | None:
        value = doc.get(key)
        if value is None or (isinstance(value, str) and not value.strip()):
            return absent
        try:
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise ValueError(f"{value!r} is no version range")
            return Versions.parse(str(value))
        except ValueError as error:
            self.problem(path, f"{key}: {error}")
            return absent
