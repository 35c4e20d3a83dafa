"""How values of a writer's schema become values of a reader's: schema resolution, decided before any value is read.

Source: the Avro specification, 1.11, "Schema Resolution", "Aliases".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from tagwire.errors import ValueSchemaError
from tagwire.values.avro.arrow_types import counted_plainly
from tagwire.values.avro.defaults import default_value
from tagwire.values.avro.schema_nodes import NO_DEFAULT, Field, Node

_MAX_REASONS: Final = 20

_MAX_PAIRS: Final = 1_000_000
"""How many pairs of types are compared. Unions of records that are alike by their short names have a pair for each two
of them, at each level again."""
_TOO_MANY: Final = f"there are more than {_MAX_PAIRS:,} pairs of types to compare"

_PROMOTIONS: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


Reason = tuple[str, str]
"""Where a type stands, and why it cannot be read."""


class Unresolvable(Exception):
    """Why a writer's type cannot be read as a reader's."""

    def __init__(self, reasons: Sequence[Reason]) -> None:
        self.reasons = tuple(reasons[:_MAX_REASONS])
        super().__init__("; ".join(self.lines))

    @property
    def lines(self) -> list[str]:
        return [f"at {path}: {why}" if path else why for path, why in self.reasons]


class TooManyPairs(Exception):
    """Two schemas take too long to compare."""


@dataclass(frozen=True, slots=True)
class Step:
    """A field of the writer's record: read into the reader's field `target`, or skipped where there is none."""

    name: str
    node: Node
    plan: Plan | None = None
    target: int = -1


@dataclass(frozen=True, slots=True)
class Plan:
    """How values of the type `writer` become values of `reader`. Which parts are set follows from their kinds.

    Attributes:
        items: of arrays and maps.
        steps: of records, in the writer's order.
        defaults: of records, the values of the reader's fields that the writer has not, by their places.
        symbols: of enums, what each of the writer's symbols is read as; None where it is none of the reader's.
        branches: where the writer's type is a union, how each of its types is read, or why it cannot be.
        chosen: where only the reader's type is a union, how the value is read, as `chosen.reader`.
    """

    writer: Node
    reader: Node
    items: Plan | None = None
    steps: tuple[Step, ...] = ()
    defaults: tuple[tuple[int, object], ...] = ()
    symbols: tuple[str | None, ...] = ()
    branches: tuple[Plan | str, ...] = ()
    chosen: Plan | None = None

    @property
    def element(self) -> Plan:
        """`items`, where there are some."""
        assert self.items is not None
        return self.items


@dataclass(slots=True)
class _Resolver:
    """Decides for each pair of types once.

    Attributes:
        strict: whether each type of a writer's union has to be readable, and each symbol of its enum. Otherwise
            values are refused, and a schema only where none of its values could be read.
    """

    strict: bool
    done: dict[tuple[Node, Node], Plan] = field(default_factory=dict)
    refused: dict[tuple[Node, Node], tuple[str, tuple[Reason, ...]]] = field(default_factory=dict)
    left: int = _MAX_PAIRS

    def resolve(self, writer: Node, reader: Node, path: str) -> Plan:
        known = self.done.get((writer, reader))
        if known is not None:
            return known
        if (refused := self.refused.get((writer, reader))) is not None:
            before, reasons = refused  # told of this place as of that one
            raise Unresolvable([((path + place[len(before) :]).lstrip("."), why) for place, why in reasons])
        self.left -= 1
        if self.left < 0:
            raise TooManyPairs
        try:
            found = self.done[writer, reader] = self._resolve(writer, reader, path)
        except Unresolvable as error:
            self.refused[writer, reader] = path, error.reasons
            raise
        return found

    def _resolve(self, writer: Node, reader: Node, path: str) -> Plan:
        if writer.kind == "union":
            return self._of_union(writer, reader, path)
        if reader.kind == "union":
            return self._to_union(writer, reader, path)
        if not _match(writer, reader):
            raise Unresolvable([(path, f"{writer} cannot be read as {reader}")])
        if writer.kind == "record":
            return self._record(writer, reader, path)
        if writer.kind in ("array", "map"):
            return Plan(writer, reader, items=self.resolve(writer.element, reader.element, f"{path}[]"))
        if writer.kind == "fixed" and writer.size != reader.size:
            raise Unresolvable([(path, f"{writer} has {writer.size} bytes, {reader} has {reader.size}")])
        if writer.kind == "enum":
            return self._enum(writer, reader, path)
        _check_decimals(writer, reader, path)
        return Plan(writer, reader)

    def _of_union(self, writer: Node, reader: Node, path: str) -> Plan:
        branches: list[Plan | str] = []
        reasons: list[Reason] = []
        for branch in writer.branches:
            try:
                branches.append(self.resolve(branch, reader, path))
            except Unresolvable as error:
                branches.append(str(error))
                reasons += error.reasons
        if reasons and (self.strict or not any(isinstance(branch, Plan) for branch in branches)):
            raise Unresolvable(reasons)
        return Plan(writer, reader, branches=tuple(branches))

    def _to_union(self, writer: Node, reader: Node, path: str) -> Plan:
        reasons: list[Reason] = []
        for branch in _by_likeness(writer, reader):
            try:
                return Plan(writer, reader, chosen=self.resolve(writer, counted_plainly(reader, branch), path))
            except Unresolvable as error:
                reasons += error.reasons
        raise Unresolvable(reasons or [(path, f"{writer} is none of the reader's {reader}")])

    def _record(self, writer: Node, reader: Node, path: str) -> Plan:
        targets = _targets(writer, reader)
        steps: list[Step] = []
        reasons: list[Reason] = []
        for each in writer.fields:
            target = targets.get(each.name, -1)
            plan = None
            if target >= 0:
                try:
                    plan = self.resolve(each.node, reader.fields[target].node, _below(path, each.name))
                except Unresolvable as error:
                    reasons += error.reasons
            steps.append(Step(each.name, each.node, plan, target))
        defaults = []
        for index in sorted(set(range(len(reader.fields))) - set(targets.values())):
            wanted = reader.fields[index]
            try:
                defaults.append((index, _default(wanted, _below(path, wanted.name))))
            except Unresolvable as error:
                reasons += error.reasons
        if reasons:
            raise Unresolvable(reasons)
        return Plan(writer, reader, steps=tuple(steps), defaults=tuple(defaults))

    def _enum(self, writer: Node, reader: Node, path: str) -> Plan:
        other = reader.default if isinstance(reader.default, str) else None
        known = set(reader.symbols)
        symbols = tuple(symbol if symbol in known else other for symbol in writer.symbols)
        missing = [symbol for symbol, read in zip(writer.symbols, symbols) if read is None]
        if missing and (self.strict or len(missing) == len(symbols)):
            names = ", ".join(missing[:5]) + ("…" if len(missing) > 5 else "")
            raise Unresolvable([(path, f"{reader} has no symbol {names}, and no default")])
        return Plan(writer, reader, symbols=symbols)


def resolve(writer: Node, reader: Node) -> Plan:
    """How values of `writer` are read as `reader`.

    Raises:
        ValueSchemaError: no value could be; says where and why.
    """
    try:
        return _Resolver(strict=False).resolve(writer, reader, "")
    except Unresolvable as error:
        raise ValueSchemaError(f"the writer's schema does not resolve to the reader's: {error}") from None
    except TooManyPairs:
        raise ValueSchemaError(f"the writer's schema is not resolved to the reader's: {_TOO_MANY}") from None


def incompatibilities(writer: Node, reader: Node) -> list[str]:
    """Why some value of `writer` could not be read as `reader`, one line each; none where all can."""
    try:
        _Resolver(strict=True).resolve(writer, reader, "")
    except Unresolvable as error:
        return error.lines
    except TooManyPairs:
        return [_TOO_MANY]
    return []


def _match(writer: Node, reader: Node) -> bool:
    if writer.kind != reader.kind:
        return reader.kind in _PROMOTIONS.get(writer.kind, ())
    return not writer.name or _named_alike(writer, reader)


def _named_alike(writer: Node, reader: Node) -> bool:
    """By the name without its namespace, as the specification has it, or by an alias of the reader's."""
    return writer.short_name == reader.short_name or writer.name in reader.aliases


def _by_likeness(writer: Node, reader: Node) -> Iterator[Node]:
    """The types of a reader's union that may read a value: those of the same full name and kind first, promotions last,
    in the order of the union.

    As Java has it, that a value stays what it was wherever it can: an int of a union of double and int is an int.
    """
    same = [branch for branch in reader.branches if branch.kind == writer.kind and _match(writer, branch)]
    yield from sorted(same, key=lambda branch: branch.name != writer.name)
    yield from (branch for branch in reader.branches if branch.kind in _PROMOTIONS.get(writer.kind, ()))


def _targets(writer: Node, reader: Node) -> dict[str, int]:
    """Which of the reader's fields reads each of the writer's: by its name, else by one of its aliases."""
    written = {each.name for each in writer.fields}
    targets: dict[str, int] = {}
    for index, wanted in enumerate(reader.fields):
        if wanted.name in written:
            targets[wanted.name] = index
    for index, wanted in enumerate(reader.fields):
        if wanted.name not in written:
            for alias in wanted.aliases:
                if alias in written and alias not in targets:
                    targets[alias] = index
                    break
    return targets


def _default(wanted: Field, path: str) -> object:
    if wanted.default is NO_DEFAULT:
        raise Unresolvable([(path, "the writer does not have this field, and the reader has no default for it")])
    try:
        return default_value(wanted.node, wanted.default)
    except ValueError as error:
        raise Unresolvable([(path, f"the reader's default does not fit: {error}")]) from None


def _check_decimals(writer: Node, reader: Node, path: str) -> None:
    written, read = writer.logical, reader.logical
    if written is None or read is None or "decimal" not in (written.name, read.name):
        return
    if written.name != read.name or written.scale != read.scale or written.precision > read.precision:
        raise Unresolvable([(path, f"{writer} cannot be read as {reader}")])


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
