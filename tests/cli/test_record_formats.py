"""Formats: every letter, every escape, null and bytes that are no text."""

from __future__ import annotations

import pytest
import typer

from tagwire.cli.record_formats import formatted
from tagwire.cli.record_input import formatted as reading
from tagwire.cli.record_lines import ReadRecord

RECORD = ReadRecord("t", 3, 88, 1234, "CreateTime", b"k\xff", b"value", [("a", b"1"), ("a", None), ("é", b"")])
NULLS = ReadRecord("t", 3, 89, -1, "CreateTime", None, None, [])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("%t", b"t"),
        ("%p", b"3"),
        ("%o", b"88"),
        ("%T", b"1234"),
        ("%k", b"k\xff"),
        ("%v", b"value"),
        ("%s", b"value"),
        ("%h", "a=1,a=,é=".encode()),
        ("%K", b"2"),
        ("%V", b"5"),
        ("%S", b"5"),
        ("100%%", b"100%"),
        (r"%t-%p@%o\t%v\n", b"t-3@88\tvalue\n"),
        (r"\r\0\\\x1e", b"\r\0\\\x1e"),
        ("", b""),
        ("é%v", "évalue".encode()),
    ],
)
def test_a_letter_stands_for_a_field_and_an_escape_for_a_byte(text, line):
    assert formatted(text)(RECORD) == line


def test_null_is_told_as_it_is_asked_to():
    assert formatted("%k|%v|%K|%V|%h|%T")(NULLS) == b"||-1|-1||-1"
    assert formatted("%k|%v|%h", "NULL")(RECORD._replace(key=None)) == "NULL|value|a=1,a=NULL,é=".encode()


def test_on_a_terminal_nothing_from_a_record_steers_it():
    evil = RECORD._replace(topic="\x1bt", key=b"\x1b[2J", value=b"\x9b", headers=[("\u202e", b"\r")])
    line = formatted(r"%t %k %v %h\n", for_people=True)(evil).decode()
    assert line[:-1].isprintable()
    assert line.endswith("\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("%x", "'%x' means nothing"),
        ("50%", "'%' means"),
        (r"\q", "means nothing"),
        ("\\", "means nothing"),
        (r"\x1", "means nothing"),
    ],
)
def test_what_means_nothing_is_refused(text, said):
    with pytest.raises(typer.BadParameter, match=said):
        formatted(text)


@pytest.mark.parametrize(
    ("text", "line", "key", "value"),
    [
        ("%v;", b"a;b", None, b"a;b"),
        ("%v;", b"a;b;", None, b"a;b"),
        ("%v;", b"a;;", None, b"a;"),
        ("%v;", b"a", None, b"a"),
        (r"%v;\n", b"a;b", None, b"a;b"),
        (r"%k\t|%v", b"a\tb\t|c", b"a\tb", b"c"),
        ("%k:%v:", b"k:", b"k", b""),
        ("%k:%v:", b"k::", b"k", b""),
        ("%k:%v:", b"k:a:b:", b"k", b"a:b"),
    ],
)
def test_the_last_field_of_a_line_has_all_that_is_left_of_it(text, line, key, value):
    read = reading(text, [], None, b"\n")(line, 1)
    assert (read.key, read.value) == (key, value)


def test_a_format_to_read_by_names_the_value_once_by_either_letter():
    with pytest.raises(typer.BadParameter, match="names a field twice"):
        reading("%v %s", [], None, b"\n")
