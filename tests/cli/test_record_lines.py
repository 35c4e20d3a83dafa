"""One record as one line of JSON: exact both ways, and strict about what it takes."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire.cli.record_lines import ReadRecord, format_line, parse_line
from tagwire.errors import DecodeError

contents = st.none() | st.binary(max_size=40) | st.text(max_size=40).map(lambda text: text.encode())
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)


@given(
    key=contents,
    value=contents,
    headers=st.lists(st.tuples(names, contents), max_size=4),
    timestamp=st.integers(-1, 2**63 - 1),
    partition=st.integers(0, 2**31 - 1),
)
def test_a_line_read_back_gives_the_same_bytes(key, value, headers, timestamp, partition):
    text = format_line(ReadRecord("topic", partition, 7, timestamp, "CreateTime", key, value, headers))
    line = parse_line(text.encode(), 1)
    assert line == (key, value, headers, timestamp, partition)


@given(st.text(max_size=60), st.text(max_size=20))
def test_a_line_holds_nothing_that_steers_a_terminal_or_ends_the_line(value, name):
    text = format_line(ReadRecord("t", 0, 0, -1, "CreateTime", None, value.encode("utf-8", "replace"), [(name, b"")]))
    assert not re.search("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", text)
    assert json.loads(text)["value"] == value.encode("utf-8", "replace").decode()


def test_bytes_are_text_where_they_are_utf8_and_base64_where_not():
    record = ReadRecord("t", 0, 5, 1, "CreateTime", "é".encode(), b"\xff\x00", [("h", None), ("h", b"")])
    fields = json.loads(format_line(record))
    assert fields == {
        "topic": "t",
        "partition": 0,
        "offset": 5,
        "timestamp": 1,
        "timestamp_type": "CreateTime",
        "key": "é",
        "value": {"base64": "/wA="},
        "headers": [{"key": "h", "value": None}, {"key": "h", "value": ""}],
    }


def test_what_a_line_leaves_out_is_not_made_up():
    assert parse_line(b'{"value": "x"}', 1) == (None, b"x", [], None, None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"not json", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'["a"]', "not a JSON object"),
        (b"{}", "no value"),
        (b'{"value": "a", "value": "b"}', "twice"),
        (b'{"value": "a", "vlaue": 1}', "unknown field 'vlaue'"),
        (b'{"value": "a", "\\u001b[2J": 1}', "unknown field"),
        (b'{"value": 7}', "value: neither text nor null"),
        (b'{"value": {"base64": "/w=="}, "key": {"hex": "ff"}}', "key: neither text nor null"),
        (b'{"value": {"base64": "*"}}', "value: not base64"),
        (b'{"value": "\\ud800"}', "value: not Unicode"),
        (b'{"value": "a", "timestamp": "2013-07-04"}', "timestamp: not a whole number"),
        (b'{"value": "a", "timestamp": 1.5}', "timestamp: not a whole number"),
        (b'{"value": "a", "timestamp": true}', "timestamp: not a whole number"),
        (b'{"value": "a", "timestamp": 9223372036854775808}', "timestamp: not a whole number"),
        (b'{"value": "a", "partition": -1}', "partition: not a whole number"),
        (b'{"value": "a", "headers": {"a": "b"}}', "headers: not a list"),
        (b'{"value": "a", "headers": [{"key": null, "value": "b"}]}', "headers[0]: not"),
        (b'{"value": "a", "headers": [{"key": "k"}]}', "headers[0]: not"),
        (b'{"value": "a", "headers": [{"key": "\\ud800", "value": null}]}', "headers[0].key: not Unicode"),
    ],
)
def test_a_line_that_is_no_record_is_refused_by_number_and_field(text, said):
    with pytest.raises(DecodeError) as caught:
        parse_line(text, 12)
    assert str(caught.value).startswith("line 12: ")
    assert said in str(caught.value)
    assert "\x1b" not in str(caught.value)
