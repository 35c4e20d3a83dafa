"""What a change of a spec does to those who still have the old one (docs/dialects.md#compatibility).

Two revisions are compatible when, in every version that both know, whatever one side writes the other reads without
error, and every field that both know has the same value. The rules hold for both dialects: what is said of tagged
fields holds for optional fields alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tagwire.spec.api_keys import ApiKey
from tagwire.spec.model import Absent, Field, Message, Struct
from tagwire.spec.versions import Versions

Rule = Literal[
    "identity",
    "lowest version raised",
    "highest version lowered",
    "dialect changed",
    "field added",
    "field removed",
    "field renamed",
    "fields reordered",
    "type changed",
    "nullability changed",
    "default changed",
    "encoding changed",
    "struct versions changed",
    "tag changed",
    "tag reused",
    "moved between positional and tagged",
    "tagged field added",
    "tagged field removed",
    "header version changed",
    "deprecated",
    "deprecated no longer",
    "not to be used",
    "to be used again",
]
COMPATIBLE: Final[frozenset[Rule]] = frozenset(
    {
        "field renamed",
        "tagged field added",
        "tagged field removed",
        "deprecated",
        "deprecated no longer",
        "not to be used",
        "to be used again",
    }
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference between two revisions.

    Attributes:
        rule: which rule it falls under.
        message: the message's name.
        field: path of the field, such as `Topics.Partitions`; "" for the message itself.
        versions: the versions it concerns, in ascending order.
        text: what changed, in words.
    """

    rule: Rule
    message: str
    field: str
    versions: tuple[int, ...]
    text: str

    @property
    def compatible(self) -> bool:
        """Whether old and new still understand each other."""
        return self.rule in COMPATIBLE

    def __str__(self) -> str:
        where = f"{self.message}.{self.field}" if self.field else self.message
        at = f" (versions {_ranges(self.versions)})" if self.versions else ""
        return f"{where}: {self.rule}: {self.text}{at}"


def diff(old: Message, new: Message, history: Sequence[Message] = ()) -> list[Finding]:
    """What changed from `old` to `new`.

    Args:
        history: revisions before `old`, in any order: a tag that any of them gave to another field must not come back.

    Returns:
        findings in the order of the new spec, the message's own first; each once, with all the versions it concerns.
    """
    comparison = _Comparison(new.name)
    comparison.messages(old, new)
    for past in (old, *history):
        comparison.tags_of_the_past(past.root, new.root, "")
    return comparison.findings()


class _Comparison:
    def __init__(self, message: str) -> None:
        self.message = message
        self.flexible = False
        self.found: dict[tuple[Rule, str, str], list[int]] = {}

    def note(self, rule: Rule, field: str, text: str, version: int | None = None) -> None:
        versions = self.found.setdefault((rule, field, text), [])
        if version is not None and version not in versions:
            versions.append(version)

    def findings(self) -> list[Finding]:
        return [
            Finding(rule, self.message, field, tuple(versions), text)
            for (rule, field, text), versions in self.found.items()
        ]

    def messages(self, old: Message, new: Message) -> None:
        for what, before, after in (
            ("name", old.name, new.name),
            ("type", old.type, new.type),
            ("apiKey", old.api_key, new.api_key),
        ):
            if before != after:
                self.note("identity", "", f"{what} was {before}, is {after}")
        self.valid_versions(old, new)
        for version in old.valid_versions & new.valid_versions:
            self.marks(old, new, version)
            before, after = _dialect(old, version), _dialect(new, version)
            if before != after:
                self.note("dialect changed", "", f"was {before}, is {after}", version)
            else:
                self.headers(old, new, version)
                self.flexible = new.is_flexible(version)
                self.structs(old.root, new.root, "", version)

    def valid_versions(self, old: Message, new: Message) -> None:
        before, after = old.valid_versions, new.valid_versions
        if not before:
            return
        if not after or after.lowest > before.lowest:
            dropped = Versions(before.lowest, min(before.highest, after.lowest - 1)) if after else before
            what = "dropped, and deprecated before" if old.deprecated_versions.covers(dropped) else "dropped"
            if new.api_key == ApiKey.API_VERSIONS and before.lowest == 0:
                what = "ApiVersions must keep version 0"
            self.note("lowest version raised", "", f"validVersions were {before}, are {after}: {what}")
        if not after or after.highest < before.highest:
            self.note("highest version lowered", "", f"validVersions were {before}, are {after}")

    def marks(self, old: Message, new: Message, version: int) -> None:
        """Compares what is said of a version, whose bytes stay the same."""
        was, is_now = version in old.deprecated_versions, version in new.deprecated_versions
        if was != is_now:
            self.note("deprecated" if is_now else "deprecated no longer", "", "served as before", version)
        before, after = old.reason_not_to_use(version), new.reason_not_to_use(version)
        if after is not None and before != after:
            self.note("not to be used", "", after, version)
        elif after is None and before is not None:
            self.note("to be used again", "", f"was not: {before}", version)

    def headers(self, old: Message, new: Message, version: int) -> None:
        if old.header_versions is None or new.header_versions is None:
            return
        before, after = old.header_version(version), new.header_version(version)
        if before != after:
            self.note("header version changed", "", f"was {before}, is {after}: needs a new version", version)

    def structs(self, old: Struct, new: Struct, path: str, version: int) -> None:
        """Compares two structs as `version` writes them."""
        self.absent(old, new, path, version)
        old_positional, new_positional = _positional(old, version), _positional(new, version)
        old_tagged, new_tagged = _tagged(old, version), _tagged(new, version)
        moved = _names(old_positional) & _names(new_tagged) | _names(old_tagged) & _names(new_positional)
        for name in sorted(moved):
            self.note("moved between positional and tagged", path + name, "needs a new version", version)
        self.positional(_without(old_positional, moved), _without(new_positional, moved), path, version)
        known = _names(old.fields) & _names(new.fields)
        self.tagged(_without(old_tagged, moved), _without(new_tagged, moved), known, path, version)

    def absent(self, old: Struct, new: Struct, path: str, version: int) -> None:
        """A field that is in neither version's bytes reads back as its default, so both must have the same one."""
        before = {field.name: field for field in old.fields if version not in field.versions}
        for field in new.fields:
            other = before.get(field.name)
            if version not in field.versions and other is not None:
                self.default(other, field, f"{path}{field.name}", version)

    def positional(self, old: list[Field], new: list[Field], path: str, version: int) -> None:
        before = {field.name: field for field in old}
        after = {field.name: field for field in new}
        renamed = {
            b.name: a.name
            for a, b in zip(old, new)
            if a.name not in after and b.name not in before and self.same_form(a, b, version)
        }
        for name, earlier in renamed.items():
            self.note("field renamed", path + name, f"was {earlier}", version)
        kept = [field.name for field in old if field.name in after]
        if kept != [field.name for field in new if field.name in before]:
            self.note("fields reordered", path.rstrip("."), f"the order was {', '.join(kept)}", version)
        for field in old:
            if field.name not in after and field.name not in renamed.values():
                self.note("field removed", path + field.name, "needs a new version", version)
        for field in new:
            if field.name in before:
                self.fields(before[field.name], field, path + field.name, version)
            elif field.name not in renamed:
                self.note("field added", path + field.name, "needs a new version", version)
            else:
                self.inside(before[renamed[field.name]], field, path + field.name, version)
                self.tags_of_the_past_inside(before[renamed[field.name]], field, path + field.name)

    def tagged(self, old: list[Field], new: list[Field], known: set[str], path: str, version: int) -> None:
        """Compares what stands in tags; `known` names the fields that both have, in whichever versions."""
        before = {field.name: field for field in old}
        after = {field.name: field for field in new}
        for name in sorted(known & (before.keys() ^ after.keys())):
            # The side that has no such tag in this version refuses it, or fills in the field's default.
            self.note("tag changed", path + name, "its tagged versions are others", version)
        for field in new:
            here = path + field.name
            if field.name not in before:
                if field.name not in known:
                    self.note("tagged field added", here, f"tag {field.tag}", version)
            elif before[field.name].tag != field.tag:
                self.note("tag changed", here, f"was {before[field.name].tag}, is {field.tag}", version)
            else:
                self.fields(before[field.name], field, here, version)
                self.default(before[field.name], field, here, version)
        for field in old:
            if field.name not in after and field.name not in known:
                self.note("tagged field removed", path + field.name, f"tag {field.tag}", version)

    def fields(self, old: Field, new: Field, path: str, version: int) -> None:
        """Compares a field's form in both, and what it holds."""
        if not _same_type(old, new):
            self.note("type changed", path, f"was {old.type}, is {new.type}", version)
            return
        if (version in old.nullable_versions) != (version in new.nullable_versions):
            was = "nullable" if version in old.nullable_versions else "not nullable"
            self.note("nullability changed", path, f"was {was}", version)
        if self.is_compact(old, version) != self.is_compact(new, version):
            self.note("encoding changed", path, "its own flexibleVersions are others", version)
        self.inside(old, new, path, version)

    def inside(self, old: Field, new: Field, path: str, version: int) -> None:
        if old.struct is None or new.struct is None:
            return
        if (version in old.struct.versions) != (version in new.struct.versions):
            text = f"{old.struct.name} was of versions {old.struct.versions}, is of {new.struct.versions}"
            self.note("struct versions changed", path, text, version)
        self.structs(old.struct, new.struct, f"{path}.", version)

    def default(self, old: Field, new: Field, path: str, version: int) -> None:
        """Compares what both fill in; of a struct of defaults, the fields that both have."""
        if old.default is Absent.STRUCT and new.default is Absent.STRUCT and old.struct and new.struct:
            before = {field.name: field for field in old.struct.fields}
            for field in new.struct.fields:
                if field.name in before:
                    self.default(before[field.name], field, f"{path}.{field.name}", version)
        elif old.default != new.default and not (_is_nan(old.default) and _is_nan(new.default)):
            self.note("default changed", path, f"was {old.default!r}, is {new.default!r}", version)

    def same_form(self, old: Field, new: Field, version: int) -> bool:
        return (
            _same_type(old, new)
            and (version in old.nullable_versions) == (version in new.nullable_versions)
            and self.is_compact(old, version) == self.is_compact(new, version)
        )

    def is_compact(self, field: Field, version: int) -> bool:
        return self.flexible if field.flexible_versions is None else version in field.flexible_versions

    def tags_of_the_past(self, past: Struct, new: Struct, path: str) -> None:
        """Whoever still has `past` reads a tag as what it was there."""
        owners = {field.tag: field for field in past.fields if field.tag is not None}
        before = {field.name: field for field in past.fields}
        for field in new.fields:
            owner = owners.get(field.tag) if field.tag is not None else None
            if owner is not None and (owner.name != field.name or not _same_type(owner, field)):
                self.note("tag reused", path + field.name, f"tag {field.tag} was {owner.name}'s, of type {owner.type}")
            if field.name in before:
                self.tags_of_the_past_inside(before[field.name], field, path + field.name)

    def tags_of_the_past_inside(self, past: Field, new: Field, path: str) -> None:
        if past.struct is not None and new.struct is not None:
            self.tags_of_the_past(past.struct, new.struct, f"{path}.")


def _dialect(message: Message, version: int) -> str:
    if version in message.optional_versions:
        return "optional fields"
    return "flexible" if message.is_flexible(version) else "plain"


def _positional(struct: Struct, version: int) -> list[Field]:
    return [field for field in struct.fields if version in field.versions and not field.is_tagged(version)]


def _tagged(struct: Struct, version: int) -> list[Field]:
    return [field for field in struct.fields if field.is_tagged(version)]


def _names(fields: Sequence[Field]) -> set[str]:
    return {field.name for field in fields}


def _without(fields: list[Field], names: set[str]) -> list[Field]:
    return [field for field in fields if field.name not in names]


def _same_type(old: Field, new: Field) -> bool:
    if old.type.is_struct and new.type.is_struct:
        return old.type.is_array == new.type.is_array
    return old.type == new.type


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _ranges(versions: Sequence[int]) -> str:
    """`0-3, 5` for 0, 1, 2, 3, 5."""
    return ", ".join(str(span) for span in _spans(sorted(versions)))


def _spans(versions: Sequence[int]) -> Iterator[Versions]:
    start = before = versions[0]
    for version in versions[1:]:
        if version != before + 1:
            yield Versions(start, before)
            start = version
        before = version
    yield Versions(start, before)
