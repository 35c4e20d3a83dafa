"""What a message is: the model that a specification is parsed into.

Source: docs/wire-format.md#the-spec-language. The model is plain immutable data; `tagwire.spec.parse` checks every rule
before it builds one, so whoever holds a `Message` holds a valid one.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from tagwire.spec.header_versions import HeaderVersions
from tagwire.spec.lifecycle import DoNotUse
from tagwire.spec.versions import NONE, Versions

FIXED_WIDTHS: Final = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}
"""Bytes on the wire of the types whose width never varies."""

INTEGER_RANGES: Final = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}

PRIMITIVES: Final = frozenset(FIXED_WIDTHS) | {"string", "bytes", "records"}

RESERVED_ATTRIBUTES: Final = frozenset(
    {
        "self",
        "unknown_tags",
        "encode",
        "encode_many",
        "encode_pieces",
        "decode",
        "decode_prefix",
        "decode_many",
        "to_arrow",
        "to_json",
        "from_json",
    }
)
"""Names that every message class has a meaning for."""


class Absent(Enum):
    """Defaults that are made anew for each object because they are mutable."""

    EMPTY_ARRAY = "[]"
    STRUCT = "{}"

    def __repr__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class FieldType:
    """A field's type: `element` is a primitive's name or a struct's, `is_array` says whether it is `[]element`."""

    element: str
    is_array: bool = False

    @property
    def is_struct(self) -> bool:
        """Whether the element is a struct."""
        return self.element not in PRIMITIVES

    @property
    def is_nullable_kind(self) -> bool:
        """Whether fields of this type may be nullable in some version."""
        return self.is_array or self.is_struct or self.element in ("string", "bytes", "records")

    def __str__(self) -> str:
        return f"[]{self.element}" if self.is_array else self.element


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct.

    Attributes:
        name: as the spec spells it, such as `TopicId`.
        versions: where the field exists.
        nullable_versions: where it may be null.
        tagged_versions: where it travels in the tag section instead of in its position.
        tag: its tag, or None.
        optional: whether it is an optional field of the draft's dialect (KIP-482 as first written): `versions` and
            `tagged_versions` are then the message's optional versions.
        default: a Python value, None for null, or an `Absent` member.
        flexible_versions: overrides the message's flexible versions for this field alone, or None.
        struct: the struct of a struct or struct array, else None.
    """

    name: str
    type: FieldType
    versions: Versions
    nullable_versions: Versions = NONE
    tagged_versions: Versions = NONE
    tag: int | None = None
    default: Any = None
    ignorable: bool = False
    map_key: bool = False
    entity_type: str = "unknown"
    flexible_versions: Versions | None = None
    zero_copy: bool = False
    about: str = ""
    struct: Struct | None = None
    optional: bool = False

    @property
    def json_name(self) -> str:
        """The name in Kafka's JSON form: the first letter in lower case."""
        return json_name(self.name)

    @property
    def attribute(self) -> str:
        """The name of the Python attribute; one that Python or the message classes need is followed by `_`."""
        attribute = snake_case(self.name)
        return f"{attribute}_" if keyword.iskeyword(attribute) or attribute in RESERVED_ATTRIBUTES else attribute

    def is_tagged(self, version: int) -> bool:
        """Whether the field travels in the tag section, or the optional-buffer, at `version`."""
        return self.tag is not None and version in self.tagged_versions


@dataclass(frozen=True, slots=True)
class Struct:
    """Fields under a name, existing in `versions`.

    Attributes:
        places: how many structs there are in it, itself among them, one that is used twice counted twice.
    """

    name: str
    versions: Versions
    fields: tuple[Field, ...]
    places: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", 1 + sum(each.struct.places for each in self.fields if each.struct))


@dataclass(frozen=True, slots=True)
class Message:
    """A message in all its versions.

    Attributes:
        type: request, response, header, metadata, data, coordinator-key or coordinator-value.
        api_key: the API's key, the record's id or type; -1 where there is none.
        deprecated_versions: served, and announced to go.
        flexible_versions: where strings and arrays are compact and structs end in a tag section.
        optional_versions: where structs begin with an optional-buffer (KIP-482's draft); none in Kafka's messages.
        listeners: which listeners serve a request: broker, controller, zkBroker.
        latest_version_unstable: whether the highest version is not served by default.
        root: the message's own fields.
        structs: every struct below the root, each after the structs that it holds.
        header_versions: which header version each version of a request or response travels under, as the spec states or
            derived; None for what has no header, and for the messages of an API that is gone.
        do_not_use_versions: served, and not to be chosen by any client, each with its reason; of requests.
    """

    name: str
    type: str
    api_key: int
    valid_versions: Versions
    deprecated_versions: Versions
    flexible_versions: Versions
    listeners: tuple[str, ...]
    latest_version_unstable: bool
    root: Struct
    structs: tuple[Struct, ...] = ()
    optional_versions: Versions = NONE
    header_versions: HeaderVersions | None = None
    do_not_use_versions: tuple[DoNotUse, ...] = ()

    @property
    def fields(self) -> tuple[Field, ...]:
        """The message's own fields."""
        return self.root.fields

    def is_flexible(self, version: int) -> bool:
        """Whether `version` uses compact encodings and tag sections."""
        return version in self.flexible_versions

    def header_version(self, version: int) -> int:
        """The version of the header before `version` of a request or response. Raises ValueError where the message has
        none."""
        if self.header_versions is None:
            raise ValueError(f"{self.name} travels under no header")
        return self.header_versions.of(version)

    def reason_not_to_use(self, version: int) -> str | None:
        """Why no client is to choose `version`; None where nothing speaks against it."""
        return next((mark.reason for mark in self.do_not_use_versions if version in mark.versions), None)

    @property
    def stable_versions(self) -> Versions:
        """The versions served by default: all valid ones but an unstable highest."""
        if not self.latest_version_unstable:
            return self.valid_versions
        stable = Versions(self.valid_versions.lowest, self.valid_versions.highest - 1)
        return stable if stable else NONE

    def all_structs(self) -> Iterator[Struct]:
        """The root, then every struct below it."""
        yield self.root
        yield from self.structs


def json_name(name: str) -> str:
    """A field's key in Kafka's JSON form: `FooBar` -> `fooBar`."""
    return name[0].lower() + name[1:]


@lru_cache(4096)
def snake_case(name: str) -> str:
    """`fooBarBaz` -> `foo_bar_baz`; consecutive capitals stay together: `FOOBarBaz` -> `foobar_baz`.

    Source: docs/wire-format.md#the-spec-language.
    """
    return re.sub(r"(?<=[^A-Z])(?=[A-Z])", "_", name).lower()
