"""The next version of a message with optional fields on, and a field on every message (docs/proposals.md)."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire import message_class
from tagwire.errors import SpecError
from tagwire.spec import Message, Versions, catalog, diff, load
from tagwire.spec.derivation import Dialect, NewField, common_tag, derived
from tagwire.spec.json_text import parse_json
from tagwire.spec.module import header_problems
from tagwire.spec.spec_text import spec_text

from ..codec.generated import class_of, documents, examples, objects

TRACE = NewField("TraceId", "string", 1)
ID = {"name": "Id", "type": "int32", "versions": "0+"}


def document(**more: Any) -> dict[str, Any]:
    stated = {
        "apiKey": 9000,
        "type": "request",
        "name": "FooRequest",
        "validVersions": "0-2",
        "flexibleVersions": "none",
    }
    return stated | {"fields": [ID]} | more


def derive(found: dict[str, Any], dialect: Dialect, *fields: NewField, every: bool = False) -> tuple[Message, Any]:
    what = derived(load(json.dumps(found)), found, dialect, fields, every=every)
    return load(json.dumps(what.document)), what


def test_a_plain_message_gets_a_version_with_optional_fields() -> None:
    message, what = derive(document(), "optional", TRACE)
    assert (what.version, what.dialect, what.reason) == (3, "optional", "")
    assert (message.valid_versions, str(message.optional_versions)) == (Versions(0, 3), "3+")
    trace = message.fields[-1]
    assert (trace.name, trace.tag, trace.optional, trace.default) == ("TraceId", 1, True, None)
    kind = message_class(message)
    assert kind(id=7, trace_id="x").encode(3).hex() == "0600010001" + "78" + "00" + "00000007"
    assert kind(id=7).encode(2) == message_class(json.dumps(document()))(id=7).encode(2)


def test_a_plain_message_gets_a_flexible_version_with_tagged_fields() -> None:
    message, what = derive(document(), "tagged", TRACE)
    assert (what.version, what.dialect) == (3, "tagged")
    assert (message.valid_versions, str(message.flexible_versions)) == (Versions(0, 3), "3+")
    trace = message.fields[-1]
    assert (trace.tag, str(trace.versions), trace.ignorable, trace.default) == (0, "3+", True, None)
    kind = message_class(message)
    assert kind(id=7, trace_id="x").encode(3).hex() == "00000007" + "01" + "00" + "02" + "0278"
    assert kind(id=7, trace_id="x").encode(2).hex() == "00000007"


@pytest.mark.parametrize(("dialect", "key"), [("optional", "versionsWithOptional"), ("tagged", "flexibleVersions")])
def test_a_message_that_has_such_fields_keeps_its_versions_and_its_dialect(dialect: Dialect, key: str) -> None:
    has = document(**({"flexibleVersions": "none"} | {key: "1+"}))
    for wanted in ("optional", "tagged"):
        message, what = derive(has, wanted, TRACE)  # type: ignore[arg-type]
        assert (what.version, what.dialect) == (None, dialect)
        assert message.valid_versions == Versions(0, 2)
        assert message.fields[-1].tagged_versions.lowest == 1
        assert derived(load(json.dumps(has)), has, "optional", []).reason == f"has {dialect} fields since version 1"


@pytest.mark.parametrize(("dialect", "key"), [("optional", "versionsWithOptional"), ("tagged", "flexibleVersions")])
@pytest.mark.parametrize("since", ["3+", "6+"])
def test_a_message_that_has_such_fields_in_no_version_yet_gets_one(dialect: Dialect, key: str, since: str) -> None:
    has = document(**({"flexibleVersions": "none"} | {key: since}))
    for wanted in ("optional", "tagged"):
        message, what = derive(has, wanted, TRACE)  # type: ignore[arg-type]
        assert (what.version, what.dialect, message.valid_versions) == (3, dialect, Versions(0, 3))
        assert message.fields[-1].tagged_versions.lowest == 3
        assert derived(load(json.dumps(has)), has, "optional", []).version == 3


def test_with_every_a_message_gets_a_version_for_the_field_alone() -> None:
    message, what = derive(document(flexibleVersions="1+"), "optional", TRACE, every=True)
    assert (what.version, str(message.fields[-1].tagged_versions)) == (3, "3+")


def test_what_the_newest_version_had_the_new_one_has_too() -> None:
    inner = [{"name": "X", "type": "string", "versions": "0-2", "nullableVersions": "2"}]
    fields = [
        {"name": "Old", "type": "int32", "versions": "0-1"},
        {"name": "New", "type": "int32", "versions": "2"},
        {"name": "Rows", "type": "[]Row", "versions": "1-2", "fields": inner},
        {"name": "Shared", "type": "Shared", "versions": "0+"},
    ]
    shared = [{"name": "Shared", "versions": "0-2", "fields": copy.deepcopy(inner)}]
    before = document(fields=fields, commonStructs=shared)
    kept = copy.deepcopy(before)
    message, _ = derive(before, "optional")
    assert before == kept
    there = {field.name: str(field.versions) for field in message.fields}
    assert there == {"Old": "0-1", "New": "2-3", "Rows": "1-3", "Shared": "0+"}
    row = message.fields[2].struct
    assert row is not None
    assert (str(row.fields[0].versions), str(row.fields[0].nullable_versions)) == ("0-3", "2-3")
    assert [str(struct.versions) for struct in message.structs] == ["1-3", "0-3"]


@pytest.mark.parametrize(
    ("more", "dialect", "reason"),
    [
        ({"validVersions": "none"}, "optional", "its API is gone"),
        ({"type": "header", "name": "Foo"}, "tagged", "a header's versions are named by other messages"),
        (
            {"type": "coordinator-key", "name": "FooKey", "validVersions": "0"},
            "optional",
            "a coordinator's key has version 0 alone",
        ),
        (
            {"type": "response", "name": "ApiVersionsResponse", "apiKey": 18},
            "optional",
            "whatever its version, the error code comes first in ApiVersionsResponse (KIP-35)",
        ),
    ],
)
def test_what_can_have_no_such_version_stays_as_it_is(more: dict[str, Any], dialect: Dialect, reason: str) -> None:
    message, what = derive(document(**more), dialect, TRACE)
    assert (what.reason, what.version) == (reason, None)
    assert message == load(json.dumps(document(**more)))


@pytest.mark.parametrize(
    ("more", "field", "said"),
    [
        ({"validVersions": "0-32766"}, TRACE, "FooRequest: there is no version after 32766"),
        ({"fields": [ID | {"name": "TraceId"}]}, TRACE, "the name is already taken in this struct"),
        ({"fields": [ID | {"name": "traceId"}]}, TRACE, "the attribute trace_id is already taken"),
        ({}, NewField("Batch", "records", 1), None),
    ],
)
def test_what_cannot_be_derived_is_an_error(more: dict[str, Any], field: NewField, said: str | None) -> None:
    if said is None:
        derive(document(**more), "optional", field)
        said = "records cannot be tagged"
    with pytest.raises(SpecError, match=said):
        derive(document(**more), "tagged", field)


def test_stated_header_versions_go_on_to_a_flexible_header() -> None:
    for kind, stated, found in (
        ("Request", {"0+": "1"}, {"0-2": "1", "3+": "2"}),
        ("Response", {"0-1": "0", "2+": "0"}, {"0-2": "0", "3+": "1"}),
        ("Request", {"0-1": "1", "2+": "2"}, {"0-1": "1", "2+": "2"}),
    ):
        more = {"type": kind.lower(), "name": f"Foo{kind}", "headerVersions": stated}
        message, _ = derive(document(**more), "tagged")
        assert message.header_versions is not None
        assert message.header_versions.document() == found
        assert header_problems(message, {}) == []
        assert (
            derive(document(**more), "optional")[0].header_versions
            == load(json.dumps(document(**more))).header_versions
        )


def test_a_field_has_one_tag_in_all_messages() -> None:
    used = [{"name": name, "type": "int8", "tag": tag} for name, tag in (("A", 1), ("B", 2), ("C", 4))]
    message = load(json.dumps(document(versionsWithOptional="2+", optionalFields=used)))
    assert common_tag([message]) == 3
    assert common_tag([message], [3]) == 5


@pytest.mark.parametrize("dialect", ["optional", "tagged"])
@pytest.mark.parametrize("every", [False, True])
def test_every_message_of_the_catalog_takes_a_trace_id_and_nothing_breaks(dialect: Dialect, every: bool) -> None:
    new_versions = 0
    for name in catalog.names():
        old = catalog.message(name)
        if old.type in ("header", "coordinator-key"):
            continue
        text = (catalog.path(name)).read_text(encoding="utf-8")
        what = derived(old, parse_json(text), dialect, [TRACE], every=every)
        new = load(spec_text(what.document))
        assert [finding for finding in diff(old, new) if not finding.compatible] == []
        assert "TraceId" in {field.name for field in new.fields}
        assert header_problems(new, {}) == []
        new_versions += what.version is not None
    assert new_versions > 200 if every else 5 < new_versions < 50


@examples(60)
@given(st.data(), st.sampled_from(["optional", "tagged"]), st.booleans())
def test_who_has_the_old_spec_and_who_has_the_derived_one_understand_each_other(
    data: st.DataObject, dialect: Dialect, every: bool
) -> None:
    before = data.draw(documents())
    old = class_of(before)
    what = derived(old.spec, before, dialect, [NewField("TraceId", "string", 999)], every=every)
    new = message_class(spec_text(what.document))
    assert [finding for finding in diff(old.spec, new.spec) if not finding.compatible] == []
    for version in old.spec.valid_versions:
        written = data.draw(objects(old.spec.root, version, old)).encode(version)
        assert new.decode(written, version).encode(version) == written
    highest = new.spec.valid_versions.highest
    traced = data.draw(objects(new.spec.root, highest, new))
    traced.trace_id = "01J2"
    assert new.decode(traced.encode(highest), highest).trace_id == "01J2"


@examples(200)
@given(documents())
def test_a_spec_written_as_text_is_the_same_document(found: dict[str, Any]) -> None:
    text = spec_text(found)
    assert parse_json(text) == found
    assert load(text) == load(json.dumps(found))


@given(st.text(st.characters(codec=None), max_size=300))
def test_any_text_about_a_field_is_written_so_that_it_is_read_again(about: str) -> None:
    found = document(fields=[ID | {"about": about}])
    text = spec_text(found)
    assert parse_json(text.encode().decode()) == found
    assert len(text.splitlines()) < 20


def test_the_catalog_is_written_as_it_stands() -> None:
    same = sum(
        spec_text(parse_json(text)) == text
        for text in (catalog.path(name).read_text(encoding="utf-8") for name in catalog.names())
    )
    assert same > 240
