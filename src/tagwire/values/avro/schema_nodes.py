"""An Avro schema as it is after its names are resolved: a tree of nodes.

Source: the Avro specification, 1.11, "Schema Declaration".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_DEPTH: Final = 100
"""How deep types may be nested in each other."""

MAX_NODES: Final = 100_000
"""How many types a schema may have, each use of a named one counted."""

PRIMITIVES: Final = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))


class NoDefault:
    """What a field or an enum has instead of a default; unlike None, which a default can be."""

    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT: Final = NoDefault()


@dataclass(frozen=True, slots=True)
class Logical:
    """A logical type that is valid for the type it annotates. Precision and scale are a decimal's."""

    name: str
    precision: int = 0
    scale: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A field of a record. `default` is JSON as it was parsed."""

    name: str
    node: Node
    default: object
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A type of a schema; a named one is the same object wherever it is used.

    Attributes:
        kind: a primitive's name, or record, enum, fixed, array, map or union.
        name: full name of a record, enum or fixed.
        aliases: full names.
        branches: a union's types.
        items: an array's items, or a map's values.
        depth: levels below this one.
        nodes: types at and below this one, each use of a named one counted.
        min_bytes: the least that a value takes.
        cells: columns that a value takes in Arrow, each level counted once.
    """

    kind: str
    logical: Logical | None = None
    name: str = ""
    aliases: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()
    branches: tuple[Node, ...] = ()
    items: Node | None = None
    symbols: tuple[str, ...] = ()
    default: object = NO_DEFAULT
    size: int = 0
    depth: int = 0
    nodes: int = 1
    min_bytes: int = 0
    cells: int = 1

    @property
    def short_name(self) -> str:
        """The name without its namespace."""
        return self.name.rpartition(".")[2]

    @property
    def element(self) -> Node:
        """An array's items or a map's values, which those always have."""
        assert self.items is not None
        return self.items

    def __str__(self) -> str:
        if self.logical is not None:
            of = f"({self.logical.precision}, {self.logical.scale})" if self.logical.name == "decimal" else ""
            return f"{self.logical.name}{of} ({self.kind}{' ' + self.name if self.name else ''})"
        if self.kind == "union":
            return f"union of {', '.join(branch.name or branch.kind for branch in self.branches) or 'nothing'}"
        return f"{self.kind} {self.name}" if self.name else self.kind
