"""The fields of a message against its versions, and what each version changed: all by comparing what specs say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tagwire.reference.blocks import FieldRow
from tagwire.spec import Field, Message, Struct, Versions
from tagwire.spec.defaults import implicit_default


def field_rows(message: Message) -> list[FieldRow]:
    """Every field of the message, each struct's after the field that holds it."""
    return list(_rows(message.root, "", 0, message.valid_versions))


def _rows(struct: Struct, path: str, depth: int, within: Versions) -> Iterator[FieldRow]:
    for field in struct.fields:
        here = field.versions & within
        if not here:
            continue  # no version that is valid has it
        yield _row(field, path + field.name, depth, here)
        if field.struct is not None:
            yield from _rows(field.struct, f"{path}{field.name}.", depth + 1, here)


def _row(field: Field, path: str, depth: int, here: Versions) -> FieldRow:
    return FieldRow(
        path=path,
        name=field.name,
        depth=depth,
        type=str(field.type),
        versions=here,
        nullable=field.nullable_versions & here,
        tagged=field.tagged_versions & here,
        tag=field.tag,
        optional=field.optional,
        default=default_text(field),
        ignorable=field.ignorable,
        map_key=field.map_key,
        entity_type="" if field.entity_type == "unknown" else field.entity_type,
        compact=None if field.flexible_versions is None else field.flexible_versions & here,
        about=field.about,
    )


def default_text(field: Field) -> str | None:
    """The default where it is not just the type's own; `""` is the empty string."""
    if field.default == implicit_default(field.type):
        return None
    if field.default is None:
        return "null"
    if isinstance(field.default, bool):
        return str(field.default).lower()
    return str(field.default) or '""'


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two versions of a message.

    Attributes:
        kind: added, removed, changed, or encoding for what concerns the whole message.
        field: its path; "" for the message.
        text: what is different, in words.
    """

    kind: str
    field: str
    text: str

    def __str__(self) -> str:
        return f"{self.field}: {self.text}" if self.field else self.text


def changes(message: Message, old: int, new: int) -> list[Change]:
    """What `new` has that `old` has not, or otherwise: none where only the meaning differs, or nothing."""
    found = []
    before, after = dialect(message, old), dialect(message, new)
    if before != after:
        found.append(Change("encoding", "", f"{after} instead of {before}"))
    rows = field_rows(message)
    gone: list[str] = []
    come: list[str] = []
    for row in rows:
        was, now = old in row.versions, new in row.versions
        if was and not now:
            if not _inside(row.path, gone):
                found.append(Change("removed", row.path, f"removed ({row.type})"))
            gone.append(row.path)
        elif now and not was:
            if not _inside(row.path, come):
                found.append(Change("added", row.path, f"added ({', '.join(_added(row, new))})"))
            come.append(row.path)
        elif now and (said := _differences(row, old, new)):
            found.append(Change("changed", row.path, ", ".join(said)))
    return found


def _inside(path: str, structs: list[str]) -> bool:
    return any(path.startswith(f"{struct}.") for struct in structs)


def _added(row: FieldRow, version: int) -> Iterator[str]:
    yield row.type
    if row.tag is not None and version in row.tagged:
        yield f"{'optional, ' if row.optional else ''}tag {row.tag}"
    if version in row.nullable:
        yield "nullable"
    if row.default is not None:
        yield f"default {row.default}"


def _differences(row: FieldRow, old: int, new: int) -> list[str]:
    said = []
    if (old in row.nullable) != (new in row.nullable):
        said.append("may be null" if new in row.nullable else "may not be null any more")
    if (old in row.tagged) != (new in row.tagged):
        said.append(f"moves into tag {row.tag}" if new in row.tagged else f"moves out of tag {row.tag}")
    if row.compact is not None and (old in row.compact) != (new in row.compact):
        said.append("compact" if new in row.compact else "not compact any more")
    return said


def dialect(message: Message, version: int) -> str:
    """How a version encodes strings, arrays and the ends of structs, in words."""
    if version in message.optional_versions:
        return "optional fields (KIP-482 as first written)"
    return "flexible (compact lengths, tagged fields)" if message.is_flexible(version) else "fixed-width lengths"
