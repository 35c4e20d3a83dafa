"""What a registry is asked, and what a process remembers of its answers.

Source: Confluent's REST API.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import quote

from tagwire.errors import ConfigError, SchemaRegistryError, TagwireError, ValueSchemaError
from tagwire.escaping import told
from tagwire.values.registry.settings import RegistrySettings
from tagwire.values.registry.transport import Transport
from tagwire.values.schemas import AVRO, SCHEMA_TYPES, Reference, RegisteredSchema, Schema, is_encodable

T = TypeVar("T")

MAX_REFERENCES: Final = 500
"""Schemas that one may refer to, at every depth together."""

MAX_DEPTH: Final = 50
"""Schemas that refer to one another in a chain."""

MAX_UNFOLDED: Final = 10_000
"""The same, each counted as often as it is referred to: whoever follows references without a memory goes so far."""

_MAX_REFERENCES_BYTES: Final = 10 * 1024 * 1024
_MAX_ID: Final = 2**31 - 1  # as readers of values have it


class MissingReferenceError(ValueSchemaError):
    """A schema is there, and one that it refers to is not. It may come yet."""


class SchemaRegistry:
    """A registry's schemas, subjects and versions. Threads may share it; a process keeps what it was told of ids.

    What each method raises besides: SchemaRegistryError, where the registry cannot be reached, refuses, or answers
    what it should not; its `not_found` says that there is no such thing. ValueSchemaError for references in a circle,
    too many or too deep.

    Raises:
        ConfigError: certificates or keys cannot be read.
        MissingExtraError: urllib3 is not installed.
    """

    def __init__(self, settings: RegistrySettings) -> None:
        self.settings = settings
        self._transport = Transport(settings)
        self._lock = threading.Lock()
        self._known: OrderedDict[Hashable, RegisteredSchema] = OrderedDict()
        self._unknown: OrderedDict[Hashable, tuple[float, Callable[[], TagwireError]]] = OrderedDict()

    def __repr__(self) -> str:
        return f"SchemaRegistry({','.join(self.settings.urls)})"

    def __reduce__(self) -> tuple[object, ...]:
        return shared_registry, (self.settings,)

    def by_id(self, schema_id: int) -> RegisteredSchema:
        """The schema of an id."""
        path = f"/schemas/ids/{schema_id}"
        return self._kept(("id", schema_id), lambda: self._schema(path, {"schema_id": schema_id}))

    def by_guid(self, guid: str) -> RegisteredSchema:
        """The schema of a GUID: 32 hexadecimal digits with hyphens."""
        path = f"/schemas/guids/{_quoted(guid)}"
        return self._kept(("guid", guid), lambda: self._of_guid(path, guid))

    def latest(self, subject: str) -> RegisteredSchema:
        """The newest version of a subject; asked each time."""
        return self._schema(f"/subjects/{_quoted(subject)}/versions/latest", {"subject": subject})

    def version(self, subject: str, version: int) -> RegisteredSchema:
        """One version of a subject."""
        path = f"/subjects/{_quoted(subject)}/versions/{version}"
        found = {"subject": subject, "version": version}
        return self._kept(("version", subject, version), lambda: self._schema(path, found))

    def subjects(self) -> list[str]:
        """The names of all subjects, sorted."""
        return sorted(self._list("/subjects", str))

    def versions(self, subject: str) -> list[int]:
        """The versions of a subject, ascending."""
        return sorted(self._list(f"/subjects/{_quoted(subject)}/versions", int))

    def lookup(
        self, subject: str, schema: Schema, references: Sequence[Reference] = (), normalize: bool = False
    ) -> RegisteredSchema:
        """A schema as it is registered under a subject."""
        path = f"/subjects/{_quoted(subject)}{_normalizing(normalize)}"
        found = self._transport.request("POST", path, _request(schema, references))
        return self._registered(found, schema, subject, references)

    def register(
        self, subject: str, schema: Schema, references: Sequence[Reference] = (), normalize: bool = False
    ) -> RegisteredSchema:
        """Makes a schema the subject's newest version, or finds the version that it is already."""
        path = f"/subjects/{_quoted(subject)}/versions{_normalizing(normalize)}"
        found = self._transport.request("POST", path, _request(schema, references))
        return self._registered(found, schema, subject, references)

    def incompatibilities(
        self, subject: str, schema: Schema, references: Sequence[Reference] = (), version: int | None = None
    ) -> list[str]:
        """Why the registry would not take a schema as the subject's next version, by the subject's own level; none
        where it would.

        Args:
            version: the one to compare with; None is the newest.
        """
        name = "latest" if version is None else version
        path = f"/compatibility/subjects/{_quoted(subject)}/versions/{name}?verbose=true"
        found = self._transport.request("POST", path, _request(schema, references))
        compatible = found.get("is_compatible") if isinstance(found, dict) else None
        if not isinstance(compatible, bool):
            raise self._odd("whether a schema is compatible", found)
        said = found.get("messages")
        reasons = [told(one) for one in said if isinstance(one, str)] if isinstance(said, list) else []
        return [] if compatible else reasons or ["the registry does not say why"]

    def compatibility_level(self, subject: str) -> str:
        """The level of a subject, or the registry's where it has none of its own, such as BACKWARD."""
        try:
            found = self._transport.request("GET", f"/config/{_quoted(subject)}?defaultToGlobal=true")
        except SchemaRegistryError as error:
            if error.status != 404:
                raise
            found = self._transport.request("GET", "/config")
        level = found.get("compatibilityLevel") if isinstance(found, dict) else None
        if not isinstance(level, str):
            raise self._odd("a compatibility level", found)
        return told(level, 100)

    # -----------------------------------------------------------------------------------------------------------------

    def _kept(self, key: Hashable, fetch: Callable[[], RegisteredSchema]) -> RegisteredSchema:
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
                return found
            missing = self._unknown.get(key)
            if missing is not None and time.monotonic() < missing[0]:
                raise missing[1]()
        try:
            found = fetch()
        except SchemaRegistryError as error:
            if error.not_found:
                self._remember_missing(
                    key, partial(SchemaRegistryError, str(error), status=404, error_code=error.error_code)
                )
            raise
        except MissingReferenceError as error:
            self._remember_missing(key, partial(MissingReferenceError, str(error)))
            raise
        self._remember(self._known, key, found)
        return found

    def _remember_missing(self, key: Hashable, error: Callable[[], TagwireError]) -> None:
        """`error` is made each time that it is raised: one that is raised again and again grows."""
        self._remember(self._unknown, key, (time.monotonic() + self.settings.unknown_ttl, error))

    def _remember(self, kept: OrderedDict[Hashable, T], key: Hashable, value: T) -> None:
        with self._lock:
            kept[key] = value
            kept.move_to_end(key)
            while len(kept) > self.settings.cache_entries:
                kept.popitem(last=False)

    def _of_guid(self, path: str, guid: str) -> RegisteredSchema:
        try:
            return self._schema(path, {"guid": guid})
        except SchemaRegistryError as error:
            if error.status != 404 or error.not_found:
                raise
            # A registry from before GUIDs has no such path. That is about the record that names one, like an id which
            # is not there: whoever may write records must not end those who read.
            raise SchemaRegistryError(
                f"{self.settings.urls[0]}: has no schema {guid}, or knows no GUIDs", status=404, error_code=40403
            ) from None

    def _fetched(self, path: str) -> tuple[dict[str, Any], str, str]:
        """What a path has, the text of its schema and its type."""
        found = self._transport.request("GET", path)
        text = found.get("schema") if isinstance(found, dict) else None
        if not isinstance(text, str):
            raise self._odd("a schema", found)
        if not is_encodable(text):
            raise ValueSchemaError(f"{told(path)}: its text is no Unicode: it has half a surrogate pair")
        kind = found.get("schemaType", AVRO)
        if kind not in SCHEMA_TYPES:
            known = ", ".join(SCHEMA_TYPES)
            raise ValueSchemaError(f"{told(path)}: schemaType {told(str(kind), 100)}: known are {known}")
        return found, text, kind

    def _schema(self, path: str, known: dict[str, Any]) -> RegisteredSchema:
        found, text, kind = self._fetched(path)
        references = self._references(found)
        schema = Schema(text, kind, self._resolved(references, _Walk(known.get("subject"), known.get("version"))))
        return self._registered(found, schema, known.get("subject"), references, known)

    def _registered(
        self,
        found: Any,
        schema: Schema,
        subject: str | None,
        references: Sequence[Reference] = (),
        known: dict[str, Any] | None = None,
    ) -> RegisteredSchema:
        if not isinstance(found, dict):
            raise self._odd("a registered schema", found)
        known = known or {}
        schema_id = _whole(found.get("id"), _MAX_ID)
        guid = found.get("guid")
        return RegisteredSchema(
            schema,
            known.get("schema_id", schema_id),
            known.get("guid") or (guid.lower() if isinstance(guid, str) and _is_guid(guid) else None),
            subject,
            known.get("version") or _whole(found.get("version"), 2**31 - 1),
            tuple(references),
            _has_rules(found.get("ruleSet")),
        )

    def _references(self, found: dict[str, Any]) -> tuple[Reference, ...]:
        listed = found.get("references") or []
        if not isinstance(listed, list):
            raise self._odd("references", listed)
        if len(listed) > MAX_REFERENCES:
            raise ValueSchemaError(f"a schema refers to {len(listed)} others; at most {MAX_REFERENCES} are read")
        references = []
        for each in listed:
            name = each.get("name") if isinstance(each, dict) else None
            subject = each.get("subject") if isinstance(each, dict) else None
            version = _whole(each.get("version"), 2**31 - 1) if isinstance(each, dict) else None
            if not isinstance(name, str) or not isinstance(subject, str) or version is None:
                raise self._odd("a reference", each)
            if not is_encodable(name + subject):
                raise self._odd("a reference", each)
            references.append(Reference(name, subject, version))
        return tuple(references)

    def resolved(self, references: Sequence[Reference]) -> tuple[tuple[str, Schema], ...]:
        """The schemas that are referred to, as `Schema.references` has them."""
        return self._resolved(references, _Walk(None, None))

    def _resolved(self, references: Sequence[Reference], walk: _Walk) -> tuple[tuple[str, Schema], ...]:
        return tuple((each.name, self._referred(each, walk)) for each in references)

    def _referred(self, reference: Reference, walk: _Walk) -> Schema:
        place = reference.subject, reference.version
        if place in walk.path:
            raise ValueSchemaError(f"references go in a circle: {told(_trail([*walk.path, place]))}")
        if place in walk.found:
            return walk.found[place]
        if len(walk.path) >= MAX_DEPTH:
            raise ValueSchemaError(f"references are more than {MAX_DEPTH} deep: {told(_trail(walk.path[:3]))} and on")
        if walk.count >= MAX_REFERENCES:
            raise ValueSchemaError(f"a schema refers to more than {MAX_REFERENCES} others")
        walk.count += 1
        # Of a version that was deleted softly an id is still served; what it refers to is, where it is asked for so.
        path = f"/subjects/{_quoted(reference.subject)}/versions/{reference.version}?deleted=true"
        try:
            found, text, kind = self._fetched(path)
        except SchemaRegistryError as error:
            if not error.not_found:
                raise
            # The schema is there; that it lacks a part is another matter than an id that nobody knows.
            said = f"refers to {told(_trail([place]))}, which the registry does not have"
            raise MissingReferenceError(said) from None
        walk.bytes += len(text)
        if walk.bytes > _MAX_REFERENCES_BYTES:
            raise ValueSchemaError(f"the schemas that one refers to are longer than {_MAX_REFERENCES_BYTES} bytes")
        walk.path.append(place)
        references = self._references(found)
        inner = self._resolved(references, walk)
        walk.path.pop()
        walk.found[place] = Schema(text, kind, inner)
        walk.unfolded[place] = 1 + sum(walk.unfolded[each.subject, each.version] for each in references)
        if walk.unfolded[place] > MAX_UNFOLDED:
            raise ValueSchemaError(f"the schemas that one refers to are more than {MAX_UNFOLDED}, counted each time")
        return walk.found[place]

    def _list(self, path: str, kind: type[T]) -> list[T]:
        found = self._transport.request("GET", path)
        if not isinstance(found, list) or not all(isinstance(each, kind) for each in found):
            raise self._odd("a list", found)
        return found

    def _odd(self, what: str, found: object) -> SchemaRegistryError:
        place = self.settings.urls[0]
        return SchemaRegistryError(f"{place}: not {what} of a schema registry: {told(repr(found)[:300], 200)}")


class _Walk:
    """A way through references: where it is, what it has found, and how much that was."""

    def __init__(self, subject: str | None, version: int | None) -> None:
        self.path: list[tuple[str, int]] = [] if subject is None or version is None else [(subject, version)]
        self.found: dict[tuple[str, int], Schema] = {}
        self.unfolded: dict[tuple[str, int], int] = {}
        self.count = 0
        self.bytes = 0


_shared: dict[RegistrySettings, SchemaRegistry] = {}
_shared_lock = threading.Lock()


def shared_registry(settings: RegistrySettings) -> SchemaRegistry:
    """The process's one registry of these settings."""
    with _shared_lock:
        found = _shared.get(settings)
        if found is None:
            found = _shared[settings] = SchemaRegistry(settings)
            while len(_shared) > _MOST_SHARED:
                del _shared[next(iter(_shared))]
        return found


_MOST_SHARED: Final = 32


def _forked() -> None:
    """Connections and locks are the parent's: a child begins with none."""
    global _shared_lock
    _shared_lock = threading.Lock()
    _shared.clear()


os.register_at_fork(after_in_child=_forked)


def _trail(path: Sequence[tuple[str, int]]) -> str:
    return " → ".join(f"{subject} {version}" for subject, version in path)


def _quoted(name: str) -> str:
    """A name as one step of a path."""
    if not is_encodable(name):
        raise ConfigError(f"subject {told(name)!r}: is no Unicode")
    return name.replace(".", "%2E") if name in (".", "..") else quote(name, safe="")


def _has_rules(found: object) -> bool:
    return isinstance(found, dict) and any(found.get(kind) for kind in found)


def _normalizing(normalize: bool) -> str:
    return "?normalize=true" if normalize else ""


def _request(schema: Schema, references: Sequence[Reference]) -> dict[str, Any]:
    found: dict[str, Any] = {"schema": schema.text}
    if schema.schema_type != AVRO:
        found["schemaType"] = schema.schema_type  # registries before schema types take none
    if references:
        found["references"] = [
            {"name": each.name, "subject": each.subject, "version": each.version} for each in references
        ]
    return found


def _whole(value: object, highest: int) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= highest else None


def _is_guid(text: str) -> bool:
    import re

    return re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text) is not None
