"""Which changes of a spec old readers and writers survive."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tagwire.spec import Finding, Message, diff, load


def spec(fields: list[dict[str, Any]], versions: str = "0-3", flexible: str | None = "2+", **more: Any) -> Message:
    document = {"apiKey": 9000, "type": "request", "name": "FooRequest", "validVersions": versions, "fields": fields}
    if flexible is not None:
        document["flexibleVersions"] = flexible
    return load(json.dumps(document | more))


def seed_spec(optional: list[dict[str, Any]], fields: list[dict[str, Any]] | None = None) -> Message:
    return spec(fields or [NAME], flexible=None, versionsWithOptional="2+", optionalFields=optional)


def field(name: str, kind: str = "int32", versions: str = "0+", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "versions": versions} | more


def tagged(name: str, tag: int, kind: str = "int32", at: str = "2+", **more: Any) -> dict[str, Any]:
    return field(name, kind, at, tag=tag, taggedVersions=at, **more)


def optional(name: str, tag: int, kind: str = "int32", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "tag": tag} | more


def struct(name: str, fields: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "Struct", "versions": "0+", "fields": fields} | more


NAME = field("Name", "string")
PORT = field("Port")
RATIO = field("Ratio", "float64", "1+", default="NaN")
INNER = {"name": "Rows", "type": "[]Row", "versions": "0+"}

SURVIVED = [
    ("nothing changed", spec([NAME, PORT]), spec([NAME, PORT]), []),
    ("a tagged field is added", spec([NAME]), spec([NAME, tagged("Hint", 0)]), ["tagged field added"]),
    ("a tagged field is removed", spec([NAME, tagged("Hint", 0)]), spec([NAME]), ["tagged field removed"]),
    ("an optional field is added", seed_spec([]), seed_spec([optional("Hint", 1)]), ["tagged field added"]),
    ("an optional field is removed", seed_spec([optional("Hint", 1)]), seed_spec([]), ["tagged field removed"]),
    ("a new version adds a field", spec([NAME]), spec([NAME, field("Port", versions="4+")], "0-4"), []),
    ("a field is renamed in its place", spec([NAME, PORT]), spec([NAME, field("Gate")]), ["field renamed"]),
    ("a default is no number, as it was", spec([RATIO]), spec([RATIO]), []),
    ("an encoding of its own is the message's", spec([NAME]), spec([NAME | {"flexibleVersions": "2+"}]), []),
    ("a version is deprecated", spec([NAME]), spec([NAME], deprecatedVersions="0"), ["deprecated"]),
    ("it no longer is", spec([NAME], deprecatedVersions="0"), spec([NAME]), ["deprecated no longer"]),
    ("a version is not to be used", spec([NAME]), spec([NAME], doNotUseVersions={"1": "bad"}), ["not to be used"]),
    (
        "a version may be used again",
        spec([NAME], doNotUseVersions={"1": "bad"}),
        spec([NAME]),
        ["to be used again"],
    ),
    (
        "a version is not to be used for another reason",
        spec([NAME], doNotUseVersions={"1": "bad"}),
        spec([NAME], doNotUseVersions={"1": "worse"}),
        ["not to be used"],
    ),
    ("header versions are stated as they were", spec([NAME]), spec([NAME], headerVersions={"0-1": "1", "2+": "2"}), []),
    (
        "a new version has a header of its own",
        spec([NAME]),
        spec([NAME], "0-4", headerVersions={"0-1": "1", "2-3": "2", "4+": "3"}),
        [],
    ),
    ("a text about it changed", spec([NAME]), spec([NAME | {"about": "What it is called."}]), []),
]

BROKEN = [
    ("a field is added", spec([NAME]), spec([NAME, PORT]), "field added", "Port"),
    ("a field is removed", spec([NAME, PORT]), spec([NAME]), "field removed", "Port"),
    ("fields are reordered", spec([NAME, PORT]), spec([PORT, NAME]), "fields reordered", ""),
    ("a type changed", spec([NAME, PORT]), spec([NAME, field("Port", "int64")]), "type changed", "Port"),
    (
        "a field becomes nullable",
        spec([NAME]),
        spec([field("Name", "string", nullableVersions="0+")]),
        "nullability changed",
        "Name",
    ),
    ("a field starts later", spec([NAME, PORT]), spec([NAME, field("Port", versions="1+")]), "field removed", "Port"),
    ("the lowest version is raised", spec([NAME]), spec([NAME], "1-3"), "lowest version raised", ""),
    ("the highest version is lowered", spec([NAME]), spec([NAME], "0-2"), "highest version lowered", ""),
    ("versions become flexible", spec([NAME]), spec([NAME], flexible="1+"), "dialect changed", ""),
    (
        "a field keeps its plain encoding",
        spec([NAME]),
        spec([NAME | {"flexibleVersions": "none"}]),
        "encoding changed",
        "Name",
    ),
    (
        "a tag is given to another field",
        spec([NAME, tagged("Hint", 0)]),
        spec([NAME, tagged("Trace", 0)]),
        "tag reused",
        "Trace",
    ),
    (
        "a tagged field's type changed",
        spec([NAME, tagged("Hint", 0)]),
        spec([NAME, tagged("Hint", 0, "string")]),
        "type changed",
        "Hint",
    ),
    (
        "a tagged field's default changed",
        spec([NAME, tagged("Hint", 0)]),
        spec([NAME, tagged("Hint", 0, default="7")]),
        "default changed",
        "Hint",
    ),
    (
        "a tagged field becomes nullable",
        spec([NAME, tagged("Hint", 0, "string")]),
        spec([NAME, tagged("Hint", 0, "string", nullableVersions="2+")]),
        "nullability changed",
        "Hint",
    ),
    (
        "a tagged field's range changed",
        spec([NAME, tagged("Hint", 0, at="3+")]),
        spec([NAME, tagged("Hint", 0, at="2+")]),
        "tag changed",
        "Hint",
    ),
    (
        "a field moves into the tags",
        spec([NAME, field("Port", versions="2+")]),
        spec([NAME, tagged("Port", 0)]),
        "moved between positional and tagged",
        "Port",
    ),
    (
        "the default of a field that a shared version lacks changed",
        spec([NAME, field("Port", versions="1+")]),
        spec([NAME, field("Port", versions="1+", default="7")]),
        "default changed",
        "Port",
    ),
    (
        "an optional field's nullability changed",
        seed_spec([optional("Hint", 1, "string")]),
        seed_spec([optional("Hint", 1, "string", nullable=True, default="")]),
        "nullability changed",
        "Hint",
    ),
    (
        "an optional field's tag is reused",
        seed_spec([optional("Hint", 1)]),
        seed_spec([optional("Trace", 1)]),
        "tag reused",
        "Trace",
    ),
    (
        "a renamed struct reuses a tag",
        spec([struct("Place", [NAME, tagged("Hint", 0)])]),
        spec([struct("Point", [NAME, tagged("Trace", 0, "string")])]),
        "tag reused",
        "Point.Trace",
    ),
    (
        "a tagged field is no longer in some version, and later has no tag",
        spec([NAME, tagged("Hint", 0, at="3+")]),
        spec([NAME, field("Hint", versions="4+")]),
        "tag changed",
        "Hint",
    ),
    (
        "a default inside the default of a tagged struct changed",
        spec([NAME, struct("Place", [PORT], tag=0, taggedVersions="2+", versions="2+")]),
        spec([NAME, struct("Place", [PORT | {"default": "7"}], tag=0, taggedVersions="2+", versions="2+")]),
        "default changed",
        "Place.Port",
    ),
    (
        "a default inside a struct that a shared version lacks changed",
        spec([NAME, struct("Place", [PORT], versions="1+")]),
        spec([NAME, struct("Place", [PORT | {"default": "7"}], versions="1+")]),
        "default changed",
        "Place.Port",
    ),
    (
        "a common struct has other versions",
        spec([NAME, field("Rows", "[]Row")], commonStructs=[{"name": "Row", "versions": "0+", "fields": [PORT]}]),
        spec([NAME, field("Rows", "[]Row")], commonStructs=[{"name": "Row", "versions": "1+", "fields": [PORT]}]),
        "struct versions changed",
        "Rows",
    ),
    (
        "a version has another header",
        spec([NAME]),
        spec([NAME], headerVersions={"0": "1", "1+": "2"}),
        "header version changed",
        "",
    ),
    ("the other dialect is used", seed_spec([]), spec([NAME]), "dialect changed", ""),
    (
        "a field of a struct is added",
        spec([INNER | {"fields": [NAME]}]),
        spec([INNER | {"fields": [NAME, PORT]}]),
        "field added",
        "Rows.Port",
    ),
]


@pytest.mark.parametrize(("old", "new", "rules"), [case[1:] for case in SURVIVED], ids=[case[0] for case in SURVIVED])
def test_old_and_new_understand_each_other_when(old: Message, new: Message, rules: list[str]) -> None:
    findings = diff(old, new)
    assert [finding.rule for finding in findings] == rules
    assert all(finding.compatible for finding in findings)


@pytest.mark.parametrize(
    ("old", "new", "rule", "path"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN]
)
def test_old_and_new_do_not_understand_each_other_when(old: Message, new: Message, rule: str, path: str) -> None:
    broken = [finding for finding in diff(old, new) if not finding.compatible]
    assert (rule, path) in [(finding.rule, finding.field) for finding in broken]
    assert all(finding.message == "FooRequest" for finding in broken)


def test_a_finding_says_message_field_rule_and_versions() -> None:
    (finding,) = diff(spec([NAME]), spec([NAME, field("Port", versions="1+")]))
    assert finding == Finding("field added", "FooRequest", "Port", (1, 2, 3), "needs a new version")
    assert str(finding) == "FooRequest.Port: field added: needs a new version (versions 1-3)"


def test_findings_about_marks_say_the_versions_and_the_reason() -> None:
    new = spec([NAME], deprecatedVersions="0-1", doNotUseVersions={"1": "loses offsets", "3": "for brokers alone"})
    assert [str(finding) for finding in diff(spec([NAME]), new)] == [
        "FooRequest: deprecated: served as before (versions 0-1)",
        "FooRequest: not to be used: loses offsets (versions 1)",
        "FooRequest: not to be used: for brokers alone (versions 3)",
    ]
    assert str(diff(new, spec([NAME]))[1]) == "FooRequest: to be used again: was not: loses offsets (versions 1)"


def test_dropped_versions_are_told_to_have_been_deprecated_where_all_of_them_were() -> None:
    dropped = spec([NAME], "2-3")
    for deprecated, said in (("0-1", "dropped, and deprecated before"), ("0", "dropped"), ("0-3", "deprecated before")):
        findings = diff(spec([NAME], deprecatedVersions=deprecated), dropped)
        assert next(f.text for f in findings if not f.compatible).endswith(said)


def test_a_tag_that_a_past_revision_gave_to_another_field_must_not_come_back() -> None:
    past = spec([NAME, tagged("Hint", 0)])
    old = spec([NAME])
    new = spec([NAME, tagged("Trace", 0)])
    assert all(finding.compatible for finding in diff(old, new))
    assert [(f.rule, f.field) for f in diff(old, new, [past]) if not f.compatible] == [("tag reused", "Trace")]


def test_a_tag_may_come_back_for_the_field_it_always_had() -> None:
    past = spec([NAME, tagged("Hint", 0)])
    assert all(finding.compatible for finding in diff(spec([NAME]), past, [past]))


def test_api_versions_must_keep_version_0() -> None:
    document = {"apiKey": 18, "type": "request", "name": "ApiVersionsRequest", "flexibleVersions": "3+", "fields": []}
    old, new = (load(json.dumps(document | {"validVersions": versions})) for versions in ("0-3", "1-3"))
    (finding,) = diff(old, new)
    assert finding.rule == "lowest version raised"
    assert "ApiVersions must keep version 0" in finding.text
