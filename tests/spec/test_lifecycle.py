"""Versions that are deprecated, and versions that must not be used: what a spec may say, and what the catalog says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire.errors import SpecError
from tagwire.spec import Message, Versions, load


def spec(**more: Any) -> Message:
    document = {
        "apiKey": 9000,
        "type": "request",
        "name": "FooRequest",
        "validVersions": "0-6",
        "flexibleVersions": "3+",
        "fields": [],
    }
    return load(json.dumps(document | more))


def test_a_version_is_deprecated_or_not_to_be_used_for_a_reason_or_both() -> None:
    message = spec(deprecatedVersions="0-1", doNotUseVersions={"5-6": "for brokers alone", "1": " loses offsets "})
    assert message.deprecated_versions == Versions(0, 1)
    assert [str(mark) for mark in message.do_not_use_versions] == ["1 (loses offsets)", "5-6 (for brokers alone)"]
    reasons = [message.reason_not_to_use(version) for version in message.valid_versions]
    assert reasons == [None, "loses offsets", None, None, None, "for brokers alone", "for brokers alone"]


def test_a_spec_that_marks_nothing_has_no_marks() -> None:
    assert spec(deprecatedVersions="none", doNotUseVersions=None).do_not_use_versions == ()
    assert not spec().deprecated_versions


BAD = [
    ({"deprecatedVersions": "5-7"}, "deprecatedVersions 5-7 reach outside validVersions 0-6"),
    ({"deprecatedVersions": "0+"}, "deprecatedVersions 0+ reach outside validVersions 0-6"),
    ({"deprecatedVersions": "x"}, "deprecatedVersions: 'x' is no version range: write none, N, N-M or N+"),
    ({"doNotUseVersions": "1"}, "doNotUseVersions must be a map of 1 to 100 version ranges"),
    ({"doNotUseVersions": {}}, "doNotUseVersions must be a map of 1 to 100 version ranges"),
    ({"doNotUseVersions": ["1"]}, "doNotUseVersions must be a map of 1 to 100 version ranges"),
    ({"doNotUseVersions": {"1": ""}}, "doNotUseVersions: 1 needs its reason, one line of at most 500 characters"),
    ({"doNotUseVersions": {"1": None}}, "doNotUseVersions: 1 needs its reason"),
    ({"doNotUseVersions": {"1": 7}}, "doNotUseVersions: 1 needs its reason"),
    ({"doNotUseVersions": {"1": "a\nb"}}, "doNotUseVersions: 1 needs its reason"),
    ({"doNotUseVersions": {"1": "\x1b[2J"}}, "doNotUseVersions: 1 needs its reason"),
    ({"doNotUseVersions": {"1": "x" * 501}}, "doNotUseVersions: 1 needs its reason"),
    ({"doNotUseVersions": {"one": "bad"}}, "doNotUseVersions: 'one' is no version range"),
    ({"doNotUseVersions": {"none": "bad"}}, "doNotUseVersions: 'none' holds no version"),
    ({"doNotUseVersions": {"7": "bad"}}, "doNotUseVersions: 7 reaches outside validVersions 0-6"),
    ({"doNotUseVersions": {"5+": "bad"}}, "doNotUseVersions: 5+ reaches outside validVersions 0-6"),
    ({"doNotUseVersions": {"1-3": "bad", "3-4": "worse"}}, "doNotUseVersions: 1-3 and 3-4 overlap"),
    (
        {"type": "response", "name": "FooResponse", "doNotUseVersions": {"1": "bad"}},
        "doNotUseVersions belong to requests only",
    ),
    (
        {"type": "data", "name": "Foo", "doNotUseVersions": {"1": "bad"}},
        "doNotUseVersions belong to requests only",
    ),
    ({"apiKey": 18, "deprecatedVersions": "0"}, "deprecatedVersions: versions of ApiVersions are never deprecated"),
    (
        {"apiKey": 18, "type": "response", "name": "FooResponse", "deprecatedVersions": "0"},
        "deprecatedVersions: versions of ApiVersions are never deprecated",
    ),
    ({"apiKey": 18, "doNotUseVersions": {"1": "bad"}}, "doNotUseVersions: ApiVersions has none"),
]


@pytest.mark.parametrize(("stated", "said"), BAD)
def test_a_mark_that_breaks_a_rule_is_one_problem(stated: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec(**stated)
    lines = str(caught.value).splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"<text>: {said}")
    assert len(lines[0]) < 300


def test_a_record_whose_id_is_that_of_api_versions_may_be_deprecated() -> None:
    assert spec(apiKey=18, type="metadata", name="FooRecord", deprecatedVersions="0").deprecated_versions


@st.composite
def marks(draw: st.DrawFn) -> dict[str, str]:
    edges = sorted(draw(st.sets(st.integers(0, 6), min_size=1)))
    reasons = st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), min_size=1, max_size=40)
    return {str(edge): draw(reasons) for edge in edges}


@given(marks())
def test_marks_read_are_the_marks_written(stated: dict[str, str]) -> None:
    message = spec(doNotUseVersions=stated)
    assert {str(mark.versions): mark.reason for mark in message.do_not_use_versions} == stated
    for version in message.valid_versions:
        assert message.reason_not_to_use(version) == stated.get(str(version))
