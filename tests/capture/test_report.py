"""The report's page: what it says, that all of it can be read, and what a browser makes of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tagwire.capture import Census, Endpoint, Losses, Observation, Place, judge
from tagwire.capture.report import write_report
from tagwire.kernel.packets import LAST_SECOND

from ..pages import CHROMIUM, NO_CHROMIUM, browse, contrast, measure, themes
from .traffic import key

TARGETS = ("4.0.0", "4.0.2", "4.4")
STYLE = Path(write_report.__code__.co_filename).with_name("report.css").read_text()
PHONE = 375


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of two clients with long names, one of which breaks, over an hour."""
    census = Census()
    for minute in range(60):
        for at, (name, api, version) in enumerate(
            (("legacy-billing-exporter-" * 3, "Produce", 2), ("x" * 90, "Fetch", 12), ("x" * 90, "JoinGroup", 1))
        ):
            census.add(
                Observation(
                    time=1_760_000_000_000_000 + minute * 60_000_000,
                    client=Endpoint("2001:db8::ffff:ffff:ffff:9", 5000 + at),
                    broker=Endpoint("10.0.0.1", 9092),
                    client_id=name,
                    software_name="",
                    software_version="",
                    principal="User:evil\u202e\x1b<b>,CN=billing,OU=finance,O=example",
                    listener="",
                    api_key=key(api),
                    api_version=version,
                    place=Place("a/folder/with/a/long/name/" * 4 + "kafka-request.log", minute),
                )
            )
    judged = [(usage, [judge(usage, target) for target in TARGETS]) for usage in census.usages()]
    losses = Losses()
    losses.add("a line that tells of no request", Place("kafka-request.log", 7), 3)
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(path, census, judged, losses, 1)
    return path


def test_no_name_reorders_or_hides_what_stands_beside_it(page: Path) -> None:
    text = page.read_text()
    assert r"evil\u202e\x1b&lt;b&gt;" in text
    assert not set("\u202e\x1b") & set(text)


def test_the_page_says_what_breaks_for_which_targets_and_where_it_was_seen(page: Path) -> None:
    text = re.sub(r"<[^>]*>", "", page.read_text())
    assert "1 of 2 clients breaks on Kafka 4.4" in text
    assert "4.0.0: 3-124.0.2: 3-124.4: 3-13" in text
    assert "4.0.0: 2-9The client was not seen to ask" in text  # JoinGroup 0 and 1 came back with 4.0.1
    assert "kafka-request.log at byte 0 and" in text
    assert "2 clients, 180 requests, 1 file, 2025-10-09 08:53 to 09:52 UTC" in text


def test_what_a_target_does_not_serve_stands_out_in_the_charts_and_comes_first(page: Path) -> None:
    charts = re.findall(r"<figcaption>(\w+)<.*?<div class='keys'>(.*?)</div>", page.read_text())
    assert [name for name, _ in charts] == ["Produce", "Fetch", "JoinGroup"]
    assert ["✗" in keys for _, keys in charts] == [True, False, False]


def test_a_line_that_is_a_target_has_a_column_of_its_own(tmp_path: Path) -> None:
    census = Census()
    ends = Endpoint("10.0.0.9", 5000), Endpoint("10.0.0.1", 9092)
    census.add(Observation(-1, *ends, "c", "", "", "", "", key("JoinGroup"), 1, Place("request.log", 0)))
    (usage,) = census.usages()
    write_report(tmp_path / "report.html", census, [(usage, [judge(usage, "4.0")])], Losses(), 1)
    heads = re.findall(r"<th scope='col' class='release (\w+)'>([^<]*)</th>", (tmp_path / "report.html").read_text())
    assert [name for kind, name in heads if kind == "target"] == ["4.0"]
    assert "4.0.1" not in [name for _, name in heads]


def test_the_last_minute_that_a_capture_may_tell_can_be_shown(tmp_path: Path) -> None:
    """The axis ends with the minute after the last, which no calendar has here."""
    census = Census()
    ends = Endpoint("10.0.0.9", 5000), Endpoint("10.0.0.1", 9092)
    last = LAST_SECOND * 1_000_000
    census.add(Observation(last, *ends, "c", "", "", "", "", key("Fetch"), 12, Place("a.pcapng", 0)))
    (usage,) = census.usages()
    write_report(tmp_path / "report.html", census, [(usage, [judge(usage, "4.0")])], Losses(), 1)
    assert "<span>9999-12-31 23:59</span>" in (tmp_path / "report.html").read_text()


def test_a_page_about_nobody_says_so(tmp_path: Path) -> None:
    write_report(tmp_path / "report.html", Census(), [], Losses(), 1)
    source = (tmp_path / "report.html").read_text()
    assert "<h1>No client was seen</h1>" in source
    assert "<table" not in source


def test_the_page_asks_for_nothing_and_every_heading_of_a_table_says_of_what(page: Path) -> None:
    source = page.read_text()
    assert not re.search(r"<script|\bsrc=|https?:|url\(|@import", source)
    assert re.findall(r"<th(?!ead| scope)", source) == []


@pytest.mark.parametrize("theme", [0, 1, 2], ids=["light", "dark", "print"])
def test_text_stands_out_from_what_is_behind_it(theme: int) -> None:
    colours = themes(STYLE)[theme]
    behind = {"ink": ("page", "card", "code"), "quiet": ("page", "card"), "accent": ("page", "card")}
    behind |= {outcome: ("card", f"{outcome}-bg") for outcome in ("works", "uncertain", "breaks")}
    for text, grounds in behind.items():
        for ground in grounds:
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)


@pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)
def test_a_phone_need_not_scroll_sideways(page: Path) -> None:
    assert 0 < int(measure(page, PHONE, "page.documentElement.scrollWidth")) <= PHONE


@pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)
def test_the_page_prints_in_few_pages(page: Path) -> None:
    printed = page.with_suffix(".pdf")
    (page.parent / "frame.html").write_bytes(page.read_bytes())
    browse("--no-pdf-header-footer", f"--print-to-pdf={printed}", at=page.parent)
    pages = re.findall(rb"/Type\s*/Page\b", printed.read_bytes())
    assert 2 <= len(pages) <= 5
