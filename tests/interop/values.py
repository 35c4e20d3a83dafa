"""Values of the catalog's messages: every construct of the spec language, at any version, the same on every run."""

from __future__ import annotations

import random
import uuid
from collections.abc import Collection, Iterator
from typing import Any, Final

from tagwire import messages
from tagwire.spec import Field, Message, Struct
from tagwire.spec.model import INTEGER_RANGES

VARIANTS: Final = ("default", "full", "nulls", "tags", "random 1", "random 2", "random 3")
"""How values are chosen: the defaults; something else everywhere; null wherever it may be; raw tags beside everything
else; at random."""

TEXTS: Final = ("", "a", "topic-1", "Grüße", "漢字かな", "😀", "x" * 130)
DOUBLES: Final = (0.0, -0.0, 1.5, -2.25, 1e308, 5e-324)
LENGTHS: Final = (0, 1, 2, 3)
RAW_TAGS: Final = {10_000: b"", 10_001: b"\x01\x02\x03", 3_000_000: bytes(200)}


def values(message: Message, version: int, without: Collection[str] = ()) -> Iterator[tuple[str, Any]]:
    """(variant, message object) for each variant that makes sense at `version`; fields of `without` stay defaults."""
    for variant in VARIANTS:
        if variant != "tags" or message.is_flexible(version):
            yield variant, _Maker(message, version, variant, without).object(message.root)


class _Maker:
    def __init__(self, message: Message, version: int, variant: str, without: Collection[str]) -> None:
        self.cls = getattr(messages, message.name)
        self.root = message.root
        self.version = version
        self.without = without
        self.variant = variant.split()[0]
        self.random = random.Random(f"{message.name} {version} {variant}")

    def object(self, struct: Struct) -> Any:
        cls = self.cls if struct is self.root else getattr(self.cls, struct.name)
        chosen = {
            field.attribute: self.value(field)
            for field in struct.fields
            if self.version in field.versions and self.is_set(field)
        }
        return cls(**chosen, unknown_tags=RAW_TAGS if self.variant == "tags" else None)

    def is_set(self, field: Field) -> bool:
        """Whether the field gets a value other than its default. Records default to null, which not all may be."""
        if field.default is None and self.version not in field.nullable_versions:
            return True
        if field.json_name in self.without:
            return False
        if self.variant == "random":
            return self.random.random() < 0.8
        return self.variant != "default"

    def value(self, field: Field) -> Any:
        if self.version in field.nullable_versions and (
            self.variant == "nulls" or (self.variant == "random" and self.random.random() < 0.3)
        ):
            return None
        if field.type.is_array:
            length = self.random.choice(LENGTHS) if self.variant == "random" else 2
            if self.variant == "random" and field.struct is None and self.random.random() < 0.1:
                length = 130
            return [self.element(field) for _ in range(length)]
        return self.element(field)

    def element(self, field: Field) -> Any:
        if field.struct is not None:
            return self.object(field.struct)
        return self.random_element(field.type.element) if self.variant == "random" else plain(field.type.element)

    def random_element(self, kind: str) -> Any:
        choice = self.random.choice
        if kind in INTEGER_RANGES:
            lowest, highest = INTEGER_RANGES[kind]
            return choice((lowest, highest, 0, 1, self.random.randint(lowest, highest)))
        if kind == "string":
            return choice(TEXTS)
        if kind in ("bytes", "records"):
            return self.random.randbytes(choice((0, 1, 5, 130)))
        if kind == "uuid":
            return uuid.UUID(int=choice((0, self.random.getrandbits(128))))
        return choice(DOUBLES) if kind == "float64" else choice((False, True))


def plain(kind: str) -> Any:
    """A value of a primitive type that is no field's default."""
    if kind in INTEGER_RANGES:
        return 99
    return {
        "bool": True,
        "float64": 12.5,
        "string": "text",
        "bytes": b"bytes",
        "records": b"records",
        "uuid": uuid.UUID(int=2**100 + 7),
    }[kind]
