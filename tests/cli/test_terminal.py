"""Nothing from the wire may steer a terminal; rows are plain where there is none."""

from __future__ import annotations

import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire.cli.terminal import cut, print_json, print_rows, printable, readable, utc


@given(st.text())
def test_printable_text_holds_printable_characters_only(text):
    assert printable(text).isprintable()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain — naïve 航班", "plain — naïve 航班"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("\x9b2J", r"\u009b2J"),
        ("abc\u202edef", r"abc\u202edef"),
        ("\U000e0001", r"\U000e0001"),
    ],
)
def test_characters_a_terminal_would_obey_are_shown_as_escapes(text, shown):
    assert printable(text) == shown
    assert readable(text.encode()) == shown


@pytest.mark.parametrize(
    ("data", "shown"), [(None, "<null>"), (b"", ""), (b"\xff\x00a", r"\xff\x00a"), ("é".encode(), "é")]
)
def test_bytes_read_as_text_and_other_bytes_as_escapes(data, shown):
    assert readable(data) == shown


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_json_is_json_whatever_standard_output_is_encoded_in(encoding, text):
    written = io.BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding, errors="backslashreplace"))
        print_json([text])
        sys.stdout.flush()
        assert json.loads(written.getvalue()) == text


@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "replace")), st.integers(1, 30))
def test_a_long_value_is_cut_to_the_limit_and_says_so(data, limit):
    whole, short = readable(data), readable(data, limit)
    assert short == whole if len(whole) <= limit else short == whole[: limit - 1] + "…"


def test_a_text_that_fits_is_not_cut():
    assert cut("abc", 3) == "abc"
    assert cut("abcd", 3) == "ab…"


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (1_372_917_600_000, "2013-07-04 06:00"),
        (1_372_917_601_000, "2013-07-04 06:00:01"),
        (1_372_917_600_250, "2013-07-04 06:00:00.250"),
        (0, "1970-01-01 00:00"),
        (-1, "no timestamp"),
        (2**63 - 1, "9223372036854775807 ms"),
    ],
)
def test_a_timestamp_is_shown_in_utc(milliseconds, shown):
    assert utc(milliseconds) == shown


def test_rows_are_aligned_plain_text_where_no_terminal_is(capsys):
    print_rows(("name", "count"), [("a\x1b[1m", "5"), ("longer-name", "1,000")], numbers=(1,))
    assert capsys.readouterr().out == "name         count\na\\x1b[1m         5\nlonger-name  1,000\n"


def test_markup_in_a_name_is_text_in_a_table_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    print_rows(("name",), [("[red]x[/red]",)])
    assert "[red]x[/red]" in capsys.readouterr().out
