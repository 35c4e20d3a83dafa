"""Messages built in code: `Schema(Field("name", "string"), optional_fields={1: Field("trace", "bytes")})`.

The programmatic form of the first KIP-482 (docs/dialects.md#optional-fields). A schema has one version, 0: in the
optional dialect where `optional_fields` was given, plain otherwise. It becomes the same model as a spec file and
compiles by the same path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any
from uuid import UUID

from tagwire.codec.classes import DynamicMessage, MessageObject, message_class
from tagwire.codec.program import Buffer
from tagwire.errors import SchemaError, SpecError
from tagwire.spec import Field as ModelField
from tagwire.spec import FieldType, Message, Struct, Versions
from tagwire.spec.defaults import implicit_default, parse_default
from tagwire.spec.model import INTEGER_RANGES, PRIMITIVES, Absent
from tagwire.spec.parse import MAX_NESTING, MAX_PLACES
from tagwire.spec.versions import NONE

VERSION_0 = Versions(0, 0)
MAX_TAG = 65535
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)


class _Given(Enum):
    NOTHING = "no default"

    def __repr__(self) -> str:
        return "..."


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a `Schema`.

    Args:
        name: letters, digits and underscores, a letter first.
        type: a primitive's name, `[]` before one for an array, a `Schema` for a struct, or a list of one `Schema` for
            an array of structs.
        nullable: whether it may be null: strings, bytes, records, arrays and structs only.
        default: a value of the type, or None for null. Left out: null if nullable and optional, else the type's zero
            value.
        about: what it means.
    """

    name: str
    type: str | Schema | list[Schema]
    nullable: bool = False
    default: Any = _Given.NOTHING
    about: str = ""


class Schema:
    """A message of one version, 0.

    Args:
        fields: the mandatory fields, in the order of the wire.
        optional_fields: {tag: field}, tags 0 to 65535. None: a plain schema without optional-buffers; an empty
            mapping: a schema whose structs have them.
        name: the message's name, for errors.

    Raises:
        SchemaError: naming the field, and the duplicate where a name or a tag occurs twice.

    Attributes:
        model: the `Message`.
        message_class: the class of its objects.
    """

    def __init__(
        self,
        *fields: Field,
        optional_fields: Mapping[int, Field] | Iterable[tuple[int, Field]] | None = None,
        name: str = "Schema",
    ) -> None:
        self.name = name
        self.fields = fields
        pairs = optional_fields.items() if isinstance(optional_fields, Mapping) else optional_fields
        self.optional_fields = None if pairs is None else tuple(pairs)
        self.model = _Builder(self).message()
        try:
            self.message_class: type[DynamicMessage] = message_class(self.model)
        except SpecError as error:
            raise SchemaError(str(error)) from None

    def __call__(self, **values: Any) -> DynamicMessage:
        """A message object; fields left out get their default."""
        return self.message_class(**values)

    def encode(self, message: MessageObject) -> bytes:
        """The bytes of an object that this schema made. Raises EncodeError."""
        return message.encode(0)

    def decode(self, data: Buffer) -> DynamicMessage:
        """The object that `data` holds, all of it. Raises DecodeError."""
        return self.message_class.decode(data, 0)

    def __repr__(self) -> str:
        said = [*map(repr, self.fields)]
        if self.optional_fields is not None:
            said.append(f"optional_fields={dict(self.optional_fields)!r}")
        return f"Schema({', '.join(said)})"


class _Builder:
    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.optional = VERSION_0 if schema.optional_fields is not None else NONE
        self.structs: dict[int, Struct] = {}
        self.names = {schema.name}
        self.depth = 0

    def message(self) -> Message:
        root = Struct(self.schema.name, VERSION_0, self.fields(self.schema, self.schema.name))
        return Message(
            name=self.schema.name,
            type="data",
            api_key=-1,
            valid_versions=VERSION_0,
            deprecated_versions=NONE,
            flexible_versions=NONE,
            listeners=(),
            latest_version_unstable=False,
            root=root,
            structs=tuple(self.structs.values()),
            optional_versions=self.optional,
        )

    def fields(self, schema: Schema, path: str) -> tuple[ModelField, ...]:
        if schema.optional_fields is not None and not self.optional:
            raise SchemaError(
                f"{path}: has optional fields inside a schema that has none: give it optional_fields={{}}"
            )
        for field in (*schema.fields, *(field for _, field in schema.optional_fields or ())):
            if not isinstance(field, Field):
                raise SchemaError(f"{path}: {field!r} is no Field")
        taken: set[str] = set()
        tags: dict[int, str] = {}
        built = [self.field(field, path, taken, None) for field in schema.fields]
        for tag, field in schema.optional_fields or ():
            if isinstance(tag, bool) or not isinstance(tag, int) or not 0 <= tag <= MAX_TAG:
                raise SchemaError(f"{path}.{field.name}: tag {tag!r} is no number from 0 to {MAX_TAG}")
            if tag in tags:
                raise SchemaError(f"{path}.{field.name}: tag {tag} is already taken by {path}.{tags[tag]}")
            tags[tag] = field.name
            built.append(self.field(field, path, taken, tag))
        return tuple(built)

    def field(self, field: Field, path: str, taken: set[str], tag: int | None) -> ModelField:
        here = f"{path}.{field.name}"
        if not isinstance(field.name, str) or not _NAME.fullmatch(field.name):
            raise SchemaError(
                f"{here}: the name {field.name!r} must be letters, digits and underscores, a letter first"
            )
        kind, struct = self.type(field, here)
        if tag is not None and kind.is_array and kind.is_struct:
            raise SchemaError(f"{here}: an array of structs cannot be an optional field")
        if field.nullable and not kind.is_nullable_kind:
            raise SchemaError(f"{here}: type {kind} cannot be nullable")
        made = ModelField(
            name=field.name,
            type=kind,
            versions=VERSION_0,
            nullable_versions=VERSION_0 if field.nullable else NONE,
            tagged_versions=NONE if tag is None else self.optional,
            tag=tag,
            default=_default(field, kind, here, optional=tag is not None),
            about=field.about,
            struct=struct,
            optional=tag is not None,
        )
        names = {f"attribute {made.attribute}", f"JSON key {made.json_name}"}
        if names & taken:
            raise SchemaError(f"{here}: the name {field.name} is already taken in this struct")
        taken |= names
        return made

    def type(self, field: Field, path: str) -> tuple[FieldType, Struct | None]:
        kind = field.type
        if isinstance(kind, str):
            is_array = kind.startswith("[]")
            element = kind.removeprefix("[]")
            if element not in PRIMITIVES or (is_array and element == "records"):
                raise SchemaError(
                    f"{path}: {kind!r} is no type: {', '.join(sorted(PRIMITIVES))}, [] before one, or a Schema"
                )
            return FieldType(element, is_array), None
        is_array = isinstance(kind, list)
        schema = kind[0] if isinstance(kind, list) and len(kind) == 1 else kind
        if not isinstance(schema, Schema):
            raise SchemaError(f"{path}: {kind!r} is no type: a primitive's name, a Schema, or a list of one Schema")
        struct = self.struct(schema, field.name, path)
        return FieldType(struct.name, is_array), struct

    def struct(self, schema: Schema, field_name: str, path: str) -> Struct:
        """The struct of a nested schema; a schema used in several places is one struct."""
        if id(schema) not in self.structs:
            stem = schema.name if schema.name != "Schema" and _NAME.fullmatch(schema.name) else field_name
            stem = stem[0].upper() + stem[1:]  # no primitive, and no attribute of the message's class
            name, number = stem, 2
            while name in self.names:
                name, number = f"{stem}{number}", number + 1
            self.names.add(name)
            if self.depth >= MAX_NESTING:
                raise SchemaError(f"{path}: schemas are nested more than {MAX_NESTING} deep")
            self.depth += 1
            fields = self.fields(schema, path)
            self.depth -= 1
            made = Struct(name, VERSION_0, fields)
            if made.places > MAX_PLACES:
                raise SchemaError(f"{path}: uses others in more than {MAX_PLACES:,} places")
            self.structs[id(schema)] = made
        return self.structs[id(schema)]


def _default(field: Field, kind: FieldType, path: str, *, optional: bool) -> Any:
    given = field.default
    if given is _Given.NOTHING:
        return None if optional and field.nullable else implicit_default(kind)
    if given is None:
        if not field.nullable and kind.element != "records":
            raise SchemaError(f"{path}: the default is None, but the field is not nullable")
        return None
    implicit = implicit_default(kind)
    if isinstance(implicit, Absent):
        if given in ([], ()):
            return implicit
        raise SchemaError(f"{path}: the default of a {kind} can only be empty or None, not {given!r}")
    if kind.element in INTEGER_RANGES:
        lowest, highest = INTEGER_RANGES[kind.element]
        if isinstance(given, bool) or not isinstance(given, int) or not lowest <= given <= highest:
            raise SchemaError(f"{path}: the default {given!r} is no {kind}: {lowest} to {highest}")
        return given
    kinds: dict[str, type] = {"bool": bool, "float64": float, "uuid": UUID, "string": str, "bytes": bytes}
    wanted = kinds.get(kind.element)
    if wanted is None or not isinstance(given, wanted):
        raise SchemaError(f"{path}: the default {given!r} is no {kind}")
    if isinstance(given, str):
        try:
            parse_default(given, kind)
        except ValueError as error:
            raise SchemaError(f"{path}: the default is {error}") from None
    return given
