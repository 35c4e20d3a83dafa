"""What `diff` says holds of the bytes: old and new agree where it finds nothing, and disagree where it does.

A spec is generated, a new revision derived from it by random edits, and both are asked to read what the other wrote.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, find, given, note, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from tagwire.codec import MessageObject, Structure, message_class
from tagwire.errors import SpecError, TagwireError
from tagwire.spec import Finding, Message, Struct, diff

from ..codec.generated import DEFAULTS, PRIMITIVES, UNKNOWN, class_of, documents, examples, is_nullable_kind, objects
from .test_evolution import BROKEN, SURVIVED

Kind = type[MessageObject]
Document = dict[str, Any]

POLICY: Final = frozenset({"identity", "tag reused", "header version changed"})
"""Rules that break by decree: a name is no byte, a tag that is used again under another name for the same type misleads
by meaning alone, and a header's bytes are not the message's. Every other rule that breaks is about bytes, with the two
exceptions of `of_bytes`."""

ABOUT_ALL_VERSIONS: Final = frozenset({"lowest version raised", "highest version lowered"})
"""Rules whose findings name no versions: they are about those that old has and new does not."""

SAME_BYTES: Final = frozenset({"was bytes, is records", "was records, is bytes"})
"""Types that are told apart by decree too: they are read and written alike."""


# -- edits


def structs_of(document: Document) -> Iterator[Document]:
    """Everything in a document that has fields."""
    yield document
    for struct in document.get("commonStructs", ()):
        yield from structs_of(struct)
    for field in (*document["fields"], *document.get("optionalFields", ())):
        if "fields" in field:
            yield from structs_of(field)


class Editor:
    """Edits a document in a random place; what is no spec any more is for the caller to find out."""

    def __init__(self, draw: Callable[..., Any], document: Document) -> None:
        self.draw = draw
        self.document = document
        self.is_flexible = document["flexibleVersions"] != "none"
        self.has_optional = "versionsWithOptional" in document
        self.highest = int(document["validVersions"].split("-")[1])

    def edit(self) -> None:
        self.one_of([edit for name, edit in vars(Editor).items() if name.startswith("edit_")])(self)

    # -- places

    def one_of(self, choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def struct(self) -> Document:
        return self.one_of(list(structs_of(self.document)))  # type: ignore[no-any-return]

    def members(self, struct: Document) -> list[Document]:
        """The fields of a struct but its Id: a struct without any bytes could lose fields that nobody misses."""
        return [field for field in (*struct["fields"], *struct.get("optionalFields", ())) if field["name"] != "Id"]

    def field(self, wanted: Callable[[Document], Any] = lambda field: True) -> Document:
        """A field that is `wanted`, of any struct; one that is nowhere if there is none."""
        found = [field for struct in structs_of(self.document) for field in self.members(struct) if wanted(field)]
        return self.one_of(found or [{"name": "Nowhere", "type": "int8"}])  # type: ignore[no-any-return]

    def remove(self, wanted: Callable[[Document], Any]) -> None:
        """Removes the last wanted field of a struct: the tags before it stay contiguous."""
        struct = self.struct()
        found = [field for field in self.members(struct) if wanted(field)]
        for fields in (struct["fields"], struct.get("optionalFields", [])):
            fields[:] = [field for field in fields if field is not (found or [None])[-1]]

    def versions(self) -> str:
        low, high = (self.draw(st.integers(0, self.highest + 1)) for _ in range(2))
        return self.one_of((f"{low}+", f"{low}-{high}", "0+"))  # type: ignore[no-any-return]

    def new_field(self, struct: Document) -> Document:
        taken = {field["name"] for field in self.members(struct)}
        name = next(name for name in (f"N{number}" for number in range(100)) if name not in taken)
        return {"name": name, "type": self.one_of(("", "[]")) + self.one_of(PRIMITIVES)}

    # -- fields that come and go

    def edit_add_tagged(self) -> None:
        struct = self.struct()
        field = self.new_field(struct)
        if self.has_optional:
            struct.setdefault("optionalFields", []).append(field | {"tag": self.draw(st.integers(0, UNKNOWN - 1))})
        elif self.is_flexible:
            versions = f"{self.draw(st.integers(0, self.highest))}+"
            tag = sum("tag" in other for other in struct["fields"])
            struct["fields"].append(field | {"versions": versions, "taggedVersions": versions, "tag": tag})

    def edit_remove_tagged(self) -> None:
        self.remove(lambda field: "tag" in field)

    def edit_add_mandatory(self) -> None:
        struct = self.struct()
        field = self.new_field(struct) | {"versions": self.versions()}
        struct["fields"].insert(self.draw(st.integers(0, len(struct["fields"]))), field)

    def edit_add_with_a_new_version(self) -> None:
        self.document["validVersions"] = self.document["validVersions"].split("-")[0] + f"-{self.highest + 1}"
        struct = self.struct()
        field = self.new_field(struct) | {"versions": f"{self.highest + 1}+"}
        struct["fields"].insert(self.draw(st.integers(0, len(struct["fields"]))), field)

    def edit_remove_mandatory(self) -> None:
        self.remove(lambda field: "tag" not in field)

    def edit_reorder(self) -> None:
        struct = self.struct()
        struct["fields"] = self.draw(st.permutations(struct["fields"]))

    def edit_name(self) -> None:
        struct = self.struct()
        self.one_of(self.members(struct) or [{}])["name"] = self.new_field(struct)["name"]

    # -- versions

    def edit_valid_versions(self) -> None:
        low, high = self.document["validVersions"].split("-")
        number = self.draw(st.integers(0, self.highest + 1))
        self.document["validVersions"] = self.one_of((f"{low}-{number}", f"{number}-{high}"))

    def edit_field_versions(self) -> None:
        self.field(lambda field: "versions" in field)["versions"] = self.versions()

    def edit_dialect(self) -> None:
        self.document["flexibleVersions"] = self.one_of((f"{self.draw(st.integers(0, self.highest))}+", "none"))

    def edit_optional_versions(self) -> None:
        if self.has_optional:
            self.document["versionsWithOptional"] = f"{self.draw(st.integers(0, self.highest))}+"

    def edit_common_struct_versions(self) -> None:
        for struct in self.document.get("commonStructs", ()):
            struct["versions"] = self.versions()

    # -- tags

    def edit_tagged_versions(self) -> None:
        field = self.field(lambda field: "taggedVersions" in field)
        field["taggedVersions"] = f"{self.draw(st.integers(0, self.highest + 1))}+"

    def edit_move_into_the_tags(self) -> None:
        struct = self.struct()
        candidates = [field for field in self.members(struct) if "tag" not in field and field["versions"].endswith("+")]
        if self.is_flexible and candidates:
            tag = sum("tag" in other for other in struct["fields"])
            self.one_of(candidates).update(tag=tag, taggedVersions=f"{self.draw(st.integers(0, self.highest))}+")

    def edit_move_out_of_the_tags(self) -> None:
        field = self.field(lambda field: "taggedVersions" in field)
        field.pop("tag", None)
        field.pop("taggedVersions", None)

    def edit_swap_tags(self) -> None:
        tagged = [field for field in self.members(self.struct()) if "tag" in field]
        if len(tagged) > 1:
            tagged[0]["tag"], tagged[1]["tag"] = tagged[1]["tag"], tagged[0]["tag"]

    def edit_tag(self) -> None:
        self.field(lambda field: "tag" in field and "versions" not in field)["tag"] = self.draw(st.integers(0, 9))

    # -- what a field is

    def edit_type(self) -> None:
        self.change_type(self.field())

    def edit_name_and_type(self) -> None:
        struct = self.struct()
        field = self.one_of(self.members(struct) or [{}])
        field["name"] = self.new_field(struct)["name"]
        self.change_type(field)

    def change_type(self, field: Document) -> None:
        field["type"] = self.one_of(("", "[]")) + self.one_of(PRIMITIVES)
        for key in ("fields", "optionalFields", "default", "entityType", "zeroCopy", "flexibleVersions"):
            field.pop(key, None)
        if not is_nullable_kind(field["type"]):
            field.pop("nullableVersions", None)
            field.pop("nullable", None)

    def edit_array(self) -> None:
        field = self.field(lambda field: field["type"] != "records")
        is_array = field["type"].startswith("[]")
        field["type"] = field["type"].removeprefix("[]") if is_array else f"[]{field['type']}"
        if not is_nullable_kind(field["type"]):
            field.pop("nullableVersions", None)
            field.pop("nullable", None)
        field.pop("default", None)

    def edit_struct_name(self) -> None:
        field = self.field(lambda field: "fields" in field)
        field["type"] = ("[]" if field["type"].startswith("[]") else "") + "Renamed"

    def edit_nullability(self) -> None:
        # Optional records are left out where they are null, nullable or not: their nullability is no byte.
        field = self.field(lambda field: is_nullable_kind(field["type"]) and field["type"] != "records")
        if "versions" in field:
            field["nullableVersions"] = self.one_of((self.versions(), field["versions"], "none"))
        else:
            field["nullable"] = not field.get("nullable", False)

    def edit_default(self) -> None:
        field = self.field(lambda field: field["type"] in DEFAULTS or "nullable" in str(field))
        field.pop("default", None)
        if self.draw(st.integers(0, 2)):
            field["default"] = self.one_of(DEFAULTS.get(field["type"], ("null",)))

    def edit_encoding(self) -> None:
        field = self.field(lambda field: self.is_flexible and field["type"] in ("string", "bytes"))
        field["flexibleVersions"] = self.one_of((self.versions(), "none", self.document["flexibleVersions"]))

    def edit_what_is_no_byte(self) -> None:
        field = self.field(lambda field: "versions" in field)
        key = self.one_of(("ignorable", "mapKey", "zeroCopy"))
        field[key] = not field.get(key, False)
        field["about"] = "What it is."


@st.composite
def revisions(draw: st.DrawFn) -> tuple[Document, Document]:
    """An old spec and a new one that was made of it by a few edits."""
    old = draw(documents())
    new = old
    for _ in range(draw(st.integers(1, 8))):  # about half of the edits make a spec
        edited = copy.deepcopy(new)
        Editor(draw, edited).edit()
        if is_spec(edited):
            new = edited
    return old, new


def is_spec(document: Document) -> bool:
    try:
        class_of(document)
    except SpecError:
        return False
    return True


# -- agreement


def disagreement(writer: Kind, reader: Kind, message: Any, version: int) -> str | None:
    """How `reader` fails on what `writer` writes; None where it reads what both know as it was."""
    try:
        data = message.encode(version)
    except TagwireError:
        return None  # what is not written misleads nobody
    try:
        read = reader.decode(data, version)
    except TagwireError as error:
        return str(error)
    return difference(message, read, writer.spec.root, reader.spec.root)


def difference(one: Any, other: Any, old: Struct, new: Struct) -> str | None:
    """The first field that both structs have, by name, with another value."""
    fields = {field.name: field for field in new.fields}
    for field in old.fields:
        if field.name not in fields:
            continue
        mine, theirs = getattr(one, field.attribute), getattr(other, fields[field.name].attribute)
        if not same(mine, theirs, field.struct, fields[field.name].struct):
            return f"{field.name}: {mine!r} was read as {theirs!r}"
    return None


def same(one: Any, other: Any, old: Struct | None, new: Struct | None) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(left, right, old, new) for left, right in zip(one, other))
    if isinstance(one, Structure) and isinstance(other, Structure) and old is not None and new is not None:
        return difference(one, other, old, new) is None
    both_nan = isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
    return both_nan or bool(one == other)


def breaking(old: Kind, new: Kind) -> list[Finding]:
    return [finding for finding in diff(old.spec, new.spec) if not finding.compatible]


# -- the laws


@examples(150)
@given(revisions(), st.data())
def test_where_diff_finds_nothing_what_one_side_writes_the_other_reads(
    pair: tuple[Document, Document], data: st.DataObject
) -> None:
    old, new = map(class_of, pair)
    shared = old.spec.valid_versions & new.spec.valid_versions
    if breaking(old, new) or not shared:
        return
    version = data.draw(st.sampled_from(list(shared)), label="version")
    for writer, reader in ((old, new), (new, old)):
        for _ in range(3):
            message = data.draw(objects(writer.spec.root, version, writer), label="message")
            assert disagreement(writer, reader, message, version) is None


@settings(examples(40), suppress_health_check=list(HealthCheck))
@given(revisions())
def test_where_diff_finds_a_break_in_bytes_there_is_a_message_that_breaks(pair: tuple[Document, Document]) -> None:
    old, new = map(class_of, pair)
    findings = of_bytes(breaking(old, new))
    if not findings:
        return
    note("\n".join(map(str, findings)))
    assert next(counterexamples(old, new, findings), None) is not None


@pytest.mark.parametrize(("old", "new"), [case[1:3] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_what_is_known_to_break_in_bytes_breaks(old: Message, new: Message) -> None:
    findings = of_bytes(breaking(message_class(old), message_class(new)))
    misled = next(counterexamples(message_class(old), message_class(new), findings), None)
    assert (misled is not None) == bool(findings)


@pytest.mark.parametrize(("old", "new"), [case[1:3] for case in SURVIVED], ids=[case[0] for case in SURVIVED])
def test_what_is_known_to_be_survived_misleads_nobody(old: Message, new: Message) -> None:
    for version in old.valid_versions & new.valid_versions:
        for pair in ((old, new), (new, old)):
            writer, reader = map(message_class, pair)
            misled = functools.partial(disagreement, writer, reader, version=version)
            assert not list(search(objects(writer.spec.root, version, writer), misled, tries=20))


def of_bytes(findings: list[Finding]) -> list[Finding]:
    """Without the rules of policy, and two cases in which bytes may happen to fit.

    They are types of `SAME_BYTES`, and a struct in which one field is gone and another has come: what takes the old
    one's place may be as long (an int64 for a float64), and no field that both know is touched.
    """
    places = [
        {finding.field.rpartition(".")[0] for finding in findings if finding.rule == rule}
        for rule in ("field added", "field removed")
    ]
    return [
        finding
        for finding in findings
        if finding.rule not in POLICY
        and finding.text not in SAME_BYTES
        and not (
            finding.rule in ("field added", "field removed")
            and all(finding.field.rpartition(".")[0] in place for place in places)
        )
    ]


def counterexamples(old: Kind, new: Kind, findings: list[Finding]) -> Iterator[Any]:
    """Messages of one side that mislead the other, in the versions that the findings concern."""
    versions = {version for finding in findings for version in finding.versions}
    if any(finding.rule in ABOUT_ALL_VERSIONS for finding in findings):
        versions |= set(old.spec.valid_versions) - set(new.spec.valid_versions)
    for version in sorted(versions):
        for writer, reader in ((old, new), (new, old)):
            if version in writer.valid_versions:
                misled = functools.partial(disagreement, writer, reader, version=version)
                yield from search(objects(writer.spec.root, version, writer), misled)


def search(messages: st.SearchStrategy[Any], misled: Callable[[Any], str | None], tries: int = 300) -> Iterator[Any]:
    """The first of many messages that misleads, if one does."""
    once = settings(examples(tries), phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    with contextlib.suppress(NoSuchExample):
        yield find(messages, lambda message: misled(message) is not None, settings=once)
