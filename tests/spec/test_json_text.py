"""The JSON of spec files: comments and trailing commas, and nothing else beyond JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire.spec.json_text import parse_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('// first\n{"a": 1} // last', {"a": 1}),
        ('/* first */ {"a": /* in between */ 1}', {"a": 1}),
        ("/* two\nlines */ [1]", [1]),
        ("/***/[1]/**/", [1]),
        ("[1 /* a // b */, 2]", [1, 2]),
        ("[1, // a /* b\n 2]", [1, 2]),
        ('{"a": 1,}', {"a": 1}),
        ('{"a": [1, 2,\n], }', {"a": [1, 2]}),
        ('{"a": 1, // last\n}', {"a": 1}),
        ('{"a": [{"b": 1,},],}', {"a": [{"b": 1}]}),
        ('{"a": "// no comment"}', {"a": "// no comment"}),
        ('{"a": "/* no comment */"}', {"a": "/* no comment */"}),
        ('["a,]", ",}", "[,]"]', ["a,]", ",}", "[,]"]),
        (r'["\"//\"", "\\"] // end', ['"//"', "\\"]),
        ('{"a": null, "b": true, "c": -1.5e3}', {"a": None, "b": True, "c": -1500.0}),
        ('{"it\'s": "\'"}', {"it's": "'"}),
    ],
)
def test_spec_json_is_read_as(text: str, value: Any) -> None:
    assert parse_json(text) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{'a': 1}", "Expecting property name"),
        ("{a: 1}", "Expecting property name"),
        ("{\"a\": 'b'}", "Expecting value"),
        ('{"a": 1, "a": 2}', "the key 'a' occurs twice"),
        ('{"x": {"a": 1, "b": 2, "a": 1}}', "the key 'a' occurs twice"),
        ("[NaN]", "NaN is not JSON"),
        ("[Infinity]", "Infinity is not JSON"),
        ("[-Infinity]", "-Infinity is not JSON"),
        ("[+1]", "Expecting value"),
        ("[0x10]", "Expecting ',' delimiter"),
        ("[.5]", "Expecting value"),
        ("[,]", "Expecting value"),
        ("{,}", "Expecting property name"),
        ("[1,,]", "Expecting value"),
        ("[ , 1]", "Expecting value"),
        ('{"a": , }', "Expecting value"),
        ("[1] [2]", "Extra data"),
        ("[1],", "Extra data"),
        ("", "Expecting value"),
        ("// nothing else", "Expecting value"),
        ('["a\nb"]', "Invalid control character"),
        ("[1] /* no end", "the comment that begins in line 1 does not end"),
        ("[1,\n/*/ 2]", "the comment that begins in line 2 does not end"),
        ("[1] # no", "Extra data"),
        ('["' + r"\x41" + '"]', "Invalid \\\\escape"),
        ("[" * 100_000, "nested too deeply"),
        ("[" + "9" * 5000 + "]", "Exceeds the limit"),
    ],
)
def test_what_is_not_json_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_json(text)


def test_comments_do_not_shift_the_line_and_column_of_a_problem() -> None:
    text = '/* one\n   two */ {"a": 1, // three\n  "b": /* four */ oops}'
    with pytest.raises(json.JSONDecodeError) as caught:
        parse_json(text)
    assert (caught.value.lineno, caught.value.colno) == (3, 19)
    assert text.splitlines()[2][18:22] == "oops"


documents = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.sampled_from(["//", "/*", "*/", ",]", '"', "\\", "\\\\"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(documents, st.sampled_from([None, 1]), st.booleans())
def test_plain_json_means_what_it_always_means(value: Any, indent: int | None, ascii_only: bool) -> None:
    assert parse_json(json.dumps(value, indent=indent, ensure_ascii=ascii_only)) == value


@given(documents)
def test_a_comment_at_every_break_of_a_line_changes_nothing(value: Any) -> None:
    text = json.dumps(value, indent=1)
    assert parse_json(text.replace("\n", " // {[\"',\n /* }] */ ")) == value
