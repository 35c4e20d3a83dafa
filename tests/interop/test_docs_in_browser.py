"""`tagwire docs` in a headless Chromium: bytes by pointer and keyboard, tables that narrow, any two releases."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tagwire.reference import Shelf
from tagwire.reference.serving import ReferenceServer

from .browser import Browser
from .peer import NotRunError


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ReferenceServer(Shelf()) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.url
        server.shutdown()
        thread.join(30)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    try:
        with Browser(tmp_path_factory.mktemp("profile")) as found:
            yield found
    except NotRunError as error:
        pytest.skip(f"NOT RUN: {error}")


def test_a_byte_tells_its_meaning_when_it_is_pointed_at_and_the_next_one_by_a_key(browser: Browser, url: str) -> None:
    browser.open(f"{url}apis/Heartbeat/")
    meaning = "document.querySelector('#v4-request-bytes .meaning').textContent"
    browser.point("#v4-request-bytes .hex span:nth-child(7)")
    browser.wait(f"{meaning}.startsWith('body.group_id at byte 22: string')")
    browser.tell("document.querySelector('#v4-request-bytes .hex').focus()")
    browser.press("ArrowRight")
    browser.wait(f"{meaning}.startsWith('body.generation_id at byte 30: int32')")


def test_any_two_releases_and_any_two_versions_are_compared(browser: Browser, url: str) -> None:
    browser.open(f"{url}diff/")
    browser.wait("!!document.querySelector('.compare tbody')")
    choose = (
        "(() => {{ const one = document.querySelectorAll('.compare select')[{0}]; one.value = '{1}';"
        " one.dispatchEvent(new Event('change')); }})()"
    )
    browser.tell(choose.format(0, "4.0.0"))
    browser.tell(choose.format(1, "4.0.1"))
    rows = (
        "[...document.querySelectorAll('.compare tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))"
    )
    assert browser.tell(rows) == [["JoinGroup", "2-9", "0-9", "adds 0-1"]]
    browser.tell(choose.format(2, "FetchRequest"))
    browser.tell(choose.format(3, "12"))
    browser.tell(choose.format(4, "13"))
    assert browser.tell("[...document.querySelectorAll('.compare li')].map(one => one.textContent)") == [
        "Topics.Topic: removed (string)",
        "Topics.TopicId: added (uuid)",
        "ForgottenTopicsData.Topic: removed (string)",
        "ForgottenTopicsData.TopicId: added (uuid)",
    ]


def test_a_table_shows_the_rows_that_have_every_word_that_is_typed(browser: Browser, url: str) -> None:
    browser.open(f"{url}errors/")
    browser.tell(
        "(() => { const field = document.querySelector('input[type=search]'); field.value = 'coordinator again';"
        " field.dispatchEvent(new Event('input')) })()"
    )
    left = browser.tell(
        "[...document.querySelectorAll('tbody tr')].filter(row => !row.hidden).map(row => row.cells[0].textContent)"
    )
    assert {"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"} <= set(left)
    assert "MESSAGE_TOO_LARGE" not in left


@pytest.mark.parametrize("path", ["", "apis/Fetch/", "records/OffsetCommit/", "releases/", "diff/", "errors/", "kips/"])
def test_a_page_fits_a_phone_asks_for_nothing_elsewhere_and_complains_of_nothing(
    browser: Browser, url: str, path: str
) -> None:
    browser.resize(375)
    browser.open(url + path)
    assert browser.tell("document.documentElement.scrollWidth") <= 375
    assert [one for one in browser.requested if not one.startswith((url, "about:", "data:"))] == []
    assert browser.complaints == []
    browser.resize(1280)


def test_pages_that_were_written_as_files_are_read_without_a_server(browser: Browser, tmp_path: Path) -> None:
    from tagwire.reference import write

    write(tmp_path)
    browser.open((tmp_path / "index.html").as_uri())
    browser.tell("[...document.querySelectorAll('a')].find(one => one.textContent == 'Heartbeat').click()")
    browser.wait("document.title.startsWith('Heartbeat')")
    browser.wait("!!document.querySelector('.hex [role=option]')")
