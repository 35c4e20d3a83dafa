"""What a decoded object takes in memory, so that decoding can stop at a multiple of its input.

The bound: docs/wire-format.md#memory. A test measures that no array of the catalog takes more than is told here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

from tagwire.spec import Absent, Struct

PLACE: Final = 20
"""Bytes: a place in a list that grows, and in the list that it outgrew."""

EMPTY_LIST: Final = 64
NUMBER: Final = 32
UUID: Final = 112
UNCOUNTED: Final = frozenset({"bool", "string", "bytes", "records"})


def object_weight(struct: Struct, version: int, classes: Mapping[str, type]) -> int:
    """Bytes of one object of `struct` at `version`: itself, its numbers, and what stands for absent fields.

    Strings, bytes and the arrays and structs that are read are left out: they are counted where they are read.
    """
    total = sys.getsizeof(object.__new__(classes[struct.name])) + PLACE
    for field in struct.fields:
        if version in field.versions and not field.is_tagged(version):
            if not field.type.is_array and not field.type.is_struct and field.type.element not in UNCOUNTED:
                total += UUID if field.type.element == "uuid" else NUMBER
        elif field.default is Absent.EMPTY_ARRAY:
            total += EMPTY_LIST
        elif field.default is Absent.STRUCT and field.struct is not None:
            total += _default_weight(field.struct, classes)
    return total


def _default_weight(struct: Struct, classes: Mapping[str, type]) -> int:
    """Bytes of a struct all of whose fields are at their defaults; numbers and text are then shared."""
    total = sys.getsizeof(object.__new__(classes[struct.name]))
    for field in struct.fields:
        if field.default is Absent.EMPTY_ARRAY:
            total += EMPTY_LIST
        elif field.default is Absent.STRUCT and field.struct is not None:
            total += _default_weight(field.struct, classes)
    return total
