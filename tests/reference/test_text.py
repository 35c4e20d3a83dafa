"""Pages of the reference as text: as wide as the terminal, whole, and steering nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tagwire.reference import Shelf, subject_pages
from tagwire.reference.subjects import named, of_specs
from tagwire.reference.text import lines

LONGEST_WORD = 60
"""Of paths and names: one that is wider than the terminal is not cut."""


@pytest.mark.parametrize("width", [80, 120, 250])
def test_no_line_of_a_page_is_wider_than_the_terminal_but_for_a_word_or_the_hex(width: int) -> None:
    shelf = Shelf()
    for path in ("apis/Fetch", "records/OffsetCommit", "data/EndTxnMarker", "errors", "kips", "releases", "diff", ""):
        for line in lines(shelf.page(path), width):
            assert len(line) <= max(width, LONGEST_WORD) or line.startswith("hex: "), line


def test_a_narrow_terminal_is_told_all_that_a_wide_one_is() -> None:
    subject = named("Fetch", Shelf().subjects)
    assert subject is not None
    page = subject_pages.page(subject, 12)
    narrow, wide = ("".join("".join(lines(page, width)).split()) for width in (60, 400))
    for span in ("isolation_level", "uuid", "16bytes", "trace-id"):
        assert (span in narrow) == (span in wide)
    assert narrow.count("big-endian") == wide.count("big-endian")


def test_a_page_without_its_bytes_has_all_else() -> None:
    page = Shelf().page("apis/Heartbeat")
    told = list(lines(page, 100, with_bytes=False))
    assert not any(line.startswith("hex: ") for line in told)
    assert set(told) < set(lines(page, 100))
    assert "Version 4" in told


def test_what_a_spec_says_cannot_steer_the_terminal(tmp_path: Path) -> None:
    spec = {
        "type": "data",
        "name": "Greeting",
        "validVersions": "0",
        "flexibleVersions": "none",
        "fields": [
            {"name": "Name", "type": "string", "versions": "0", "default": "\x1b]0;x\x07", "about": "\x1b[2J\u202e"}
        ],
    }
    (tmp_path / "Greeting.json").write_text(json.dumps(spec))
    (subject,) = of_specs(tmp_path)
    for line in lines(subject_pages.page(subject), 100):
        assert line.isprintable(), line
