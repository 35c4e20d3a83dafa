"""Specs of every construct of the language, in both dialects, and values of whatever a spec describes."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tagwire import message_class
from tagwire.codec import MessageObject
from tagwire.errors import DecodeError
from tagwire.spec import Field, Struct, Versions
from tagwire.spec.model import INTEGER_RANGES

PRIMITIVES = (*INTEGER_RANGES, "bool", "float64", "uuid", "string", "bytes", "records")
DEFAULTS = {
    "bool": ("true", "false"),
    "int8": ("-1", "0x7f"),
    "int16": ("-1", "300"),
    "uint16": ("65535", "7"),
    "int32": ("-1", "0x10000"),
    "uint32": ("4294967295", "7"),
    "int64": ("-1", "5000000000"),
    "float64": ("-0.5", "1e300"),
    "uuid": ("AAAAAAAAAAAAAAAAAAAAAQ",),
    "string": ("x", "é", "null"),
    "bytes": ("null",),
    "records": ("null",),
}
ENTITIES = {"string": ("groupId", "topicName", "transactionalId"), "int64": ("producerId",), "int32": ("brokerId",)}
UNKNOWN = 1000
"""Unknown tags begin here: no generated spec, nor a revision of it, declares one so high."""


def examples(count: int) -> settings:
    """The same ones in every run."""
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(max_examples=count, database=None, derandomize=True, suppress_health_check=quiet)


# -- values


def values(field: Field, version: int, kind: type[MessageObject]) -> st.SearchStrategy[Any]:
    """What `field` may hold at `version`."""
    one = elements(field, version, kind)
    value = st.lists(one, max_size=3) if field.type.is_array else one
    return st.none() | value if version in field.nullable_versions else value


def elements(field: Field, version: int, kind: type[MessageObject]) -> st.SearchStrategy[Any]:
    element = field.type.element
    if field.struct is not None:
        return objects(field.struct, version, kind)
    if element in INTEGER_RANGES:
        return st.integers(*INTEGER_RANGES[element])
    return {
        "bool": st.booleans(),
        "float64": st.floats(allow_nan=False),
        "uuid": st.uuids() | st.just(UUID(int=0)),
        "string": st.text(max_size=20),
        "bytes": st.binary(max_size=20),
        "records": st.binary(max_size=20),
    }[element]


def objects(struct: Struct, version: int, kind: type[MessageObject]) -> st.SearchStrategy[Any]:
    """Objects of `struct` with the fields of `version` set, and unknown tags where it can carry them."""
    maker: Any = kind if struct is kind.spec.root else getattr(kind, struct.name)
    given = {field.attribute: values(field, version, kind) for field in struct.fields if version in field.versions}
    if kind.spec.is_flexible(version):
        given["unknown_tags"] = st.dictionaries(st.integers(UNKNOWN, 2**32 - 1), st.binary(max_size=5), max_size=2)
    elif version in kind.spec.optional_versions:
        tags = st.dictionaries(st.integers(UNKNOWN, 65535), st.binary(min_size=1, max_size=5), max_size=2)
        given["unknown_tags"] = tags
    return st.builds(maker, **given)


def without_unknown_tags(value: Any) -> Any:
    """The JSON form has no place for them."""
    if isinstance(value, list):
        return [without_unknown_tags(item) for item in value]
    if hasattr(value, "unknown_tags"):
        return {name: without_unknown_tags(getattr(value, name)) for name in value.__slots__}
    return value


def read_or_refused(kind: type[MessageObject], raw: bytes, version: int, lenient: bool) -> None:
    """Checks that `raw` is a message that can be written again, or a DecodeError that says where it is none."""
    failure = None
    try:
        message = kind.decode(raw, version, lenient=lenient)
    except DecodeError as error:
        failure = error
    if failure is None:
        again = kind.decode(message.encode(version), version)
        assert again.encode(version) == message.encode(version)
    else:
        assert failure.offset is not None
        assert 0 <= failure.offset <= len(raw)
        assert failure.path.startswith(f"{kind.spec.name} v{version}")


# -- specs


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A spec as JSON would hold it. Every struct has an `Id`, so that none is without bytes."""
    return _Drawing(draw).document()


def class_of(document: dict[str, Any]) -> type[MessageObject]:
    return message_class(json.dumps(document))


class _Drawing:
    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.highest = draw(st.integers(0, 3))
        self.dialect = draw(st.sampled_from(("flexible", "optional", "plain")))
        self.extended = draw(st.integers(0, self.highest))
        self.structs = 0
        self.common: list[str] = []

    def document(self) -> dict[str, Any]:
        document = {
            "type": "data",
            "name": "Drawn",
            "validVersions": f"{self.draw(st.integers(0, self.highest))}-{self.highest}",
            "flexibleVersions": f"{self.extended}+" if self.dialect == "flexible" else "none",
        }
        if self.dialect == "optional":
            document["versionsWithOptional"] = f"{self.extended}+"
        if self.draw(st.booleans()):
            shared = {"name": "Shared", "versions": "0+", **self.members(depth=2)}
            document["commonStructs"] = [shared]
            self.common.append("Shared")
        return document | self.members(depth=0)

    def members(self, depth: int) -> dict[str, Any]:
        """The fields of a struct, and its optional ones."""
        count = self.draw(st.integers(1, 4 if depth == 0 else 3))
        fields = [{"name": "Id", "type": "int8", "versions": "0+"}]
        fields += [self.field(f"F{number}", depth) for number in range(count)]
        tags = 0
        if self.dialect == "flexible":
            for field in fields[1:]:
                if self.draw(st.booleans()) and self.tag(field, tags):
                    tags += 1
        members: dict[str, Any] = {"fields": self.draw(st.permutations(fields))}
        if self.dialect == "optional":
            numbers = self.draw(st.lists(st.integers(0, UNKNOWN - 1), max_size=3, unique=True))
            members["optionalFields"] = [self.optional_field(f"O{number}", number, depth) for number in numbers]
        return members

    def field(self, name: str, depth: int) -> dict[str, Any]:
        kind, more = self.type(depth)
        lowest = self.draw(st.integers(0, self.highest))
        versions = self.draw(st.sampled_from(("0+", f"{lowest}+", f"{lowest}-{self.highest}", f"0-{lowest}")))
        field = {"name": name, "type": kind, "versions": versions, **more}
        if is_nullable_kind(kind) and self.draw(st.booleans()):
            field["nullableVersions"] = self.draw(st.sampled_from(("0+", versions, f"{lowest}+")))
        self.give_default(field)
        if self.draw(st.booleans()):
            field["ignorable"] = True
        if depth > 0 and self.draw(st.booleans()):
            field["mapKey"] = True
        if kind.removeprefix("[]") in ENTITIES and self.draw(st.booleans()):
            field["entityType"] = self.draw(st.sampled_from(ENTITIES[kind.removeprefix("[]")]))
        if kind == "bytes" and self.draw(st.booleans()):
            field["zeroCopy"] = True
        if kind in ("string", "bytes") and self.dialect == "flexible" and self.draw(st.integers(0, 3)) == 0:
            field["flexibleVersions"] = self.draw(st.sampled_from(("none", f"{self.highest}+")))
        return field

    def tag(self, field: dict[str, Any], tag: int) -> bool:
        """Gives `field` a tag from some flexible version on, where the language allows it one."""
        versions, nullable = (Versions.parse(field.get(key, "none")) for key in ("versions", "nullableVersions"))
        lowest = self.draw(st.integers(max(self.extended, versions.lowest), self.highest + 1))
        tagged = Versions.parse(f"{lowest}+")
        if not versions.is_open or field["type"] == "records" or "flexibleVersions" in field:
            return False
        if (nullable & tagged) and not nullable.covers(tagged):
            return False
        field.pop("mapKey", None)
        field |= {"tag": tag, "taggedVersions": str(tagged)}
        return True

    def optional_field(self, name: str, tag: int, depth: int) -> dict[str, Any]:
        kind, more = self.type(depth)
        if more or kind == "[]Shared":  # no arrays of structs in an optional field
            kind = kind.removeprefix("[]")
        field = {"name": name, "type": kind, "tag": self.draw(st.sampled_from((tag, f"0x{tag:04x}"))), **more}
        if is_nullable_kind(kind):
            field["nullable"] = self.draw(st.booleans())
        self.give_default(field)
        return field

    def type(self, depth: int) -> tuple[str, dict[str, Any]]:
        """A type, and the keys that go with it: the members of a struct that it declares."""
        array = "[]" if self.draw(st.booleans()) else ""
        choices = [*PRIMITIVES, *self.common, *(["struct"] * 4 if depth < 2 else [])]
        element = self.draw(st.sampled_from(choices))
        if element == "struct":
            self.structs += 1
            return f"{array}S{self.structs}", self.members(depth + 1)
        return element if element == "records" else array + element, {}

    def give_default(self, field: dict[str, Any]) -> None:
        kind = field["type"]
        choices = ("null",) if kind.startswith("[]") or kind not in DEFAULTS else DEFAULTS[kind]
        default = self.draw(st.none() | st.sampled_from(choices))
        whole = Versions.parse(field.get("versions", "0+"))
        nullable = Versions.parse(field.get("nullableVersions", "0+" if field.get("nullable") else "none"))
        if default is None or (default == "null" and kind != "records" and not nullable.covers(whole)):
            return
        field["default"] = default


def is_nullable_kind(kind: str) -> bool:
    """Whether the language lets a field of this type be null."""
    return kind.startswith("[]") or kind not in PRIMITIVES or kind in ("string", "bytes", "records")
