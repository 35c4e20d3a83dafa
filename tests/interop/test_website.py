"""The site, built as `make docs` builds it, in a real browser: what a reader searches, narrows, points at and decodes.

Every page that is opened has to ask for nothing elsewhere and to raise no error. What cannot be fetched is NOT RUN.
"""

from __future__ import annotations

import gzip
import html
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from site_npm import package

from tagwire import messages, records
from tagwire.cli import main
from tagwire.client.aio import AsyncAdmin, AsyncClient, AsyncConsumer, AsyncProducer, AsyncReader
from tagwire.reference.subjects import kafkas
from tagwire.rpc.headers import RequestHeader, encode_request_header, encode_response_header
from tagwire.spec import catalog

from ..reference.test_addresses import GENERAL, IDS, anchors
from .browser import Browser
from .conftest import Count, not_run_without
from .peer import NotRunError

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "docs"
VECTORS = ROOT / "tests" / "vectors"

# One of each kind: what a template or a style sheet does wrong, it does on all of a kind.
KINDS = [
    "index.html",
    "spark.html",
    "decisions.html",
    "wire-format.html",
    "reference/index.html",
    "reference/apis/Fetch/index.html",
    "reference/releases/index.html",
    "reference/diff/index.html",
    "reference/errors/index.html",
    "api/tagwire.client.html",
    "cli/consume.html",
    "decoder.html",
    "search.html",
]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""


@pytest.fixture(scope="module")
def built(count: Count) -> str:
    """What `make docs` prints."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "website" / "make_site.py")], capture_output=True, text=True, timeout=550
    )
    if "pip could not install" in done.stderr:
        pytest.skip("NOT RUN: Sphinx cannot be fetched")
    assert done.returncode == 0, done.stdout + done.stderr
    count(done.stdout.strip().splitlines()[0])
    return done.stdout


def test_every_address_of_the_reference_is_in_the_site(built: str) -> None:
    said = GENERAL | {subject.path: anchors(subject) for subject in kafkas()}
    for path, ids in said.items():
        page = (SITE / "reference" / path / "index.html").read_text(encoding="utf-8")
        assert ids - set(IDS.findall(page)) == set(), path


def test_every_call_of_tasks_has_a_heading_its_signature_and_what_it_does(built: str) -> None:
    page = (SITE / "api" / "tagwire.client.aio.html").read_text(encoding="utf-8")
    for face in (AsyncAdmin, AsyncClient, AsyncConsumer, AsyncProducer, AsyncReader):
        for name in (name for name in vars(face) if not name.startswith("_")):
            assert f">{face.__name__}.{name}</span>" in page
    text = html.unescape(re.sub(r"<[^>]*>", "", page))
    assert "async list_topics() -> list[TopicMetadata]" in text
    assert "Every topic, internal ones too, by name." in text


def test_what_changed_between_releases_says_whether_of_requests_or_of_responses(browser: Browser, address: str) -> None:
    browser.open(f"{address}/reference/diff/index.html")
    browser.wait("document.querySelector('.compare table')")
    (row,) = browser.tell(
        "[...document.querySelectorAll('.compare tbody tr')].map(row => row.textContent)"
        ".filter(text => text.startsWith('OffsetCommit'))"
    )
    assert "request Topics.TopicId: added (uuid)" in row
    assert "response Topics.TopicId: added (uuid)" in row


@pytest.fixture(scope="module")
def address(built: str) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def _browser(address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with not_run_without(), Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def browser(_browser: Browser, address: str) -> Iterator[Browser]:
    """At 1280 pixels; afterwards, what the pages asked for and complained of is looked at."""
    _browser.resize(1280)
    yield _browser
    elsewhere = [
        url for url in _browser.requested if not url.startswith((address, "about:", "data:", "file:", "blob:"))
    ]
    assert (elsewhere, _browser.complaints) == ([], [])


@pytest.fixture(scope="module")
def axe() -> str:
    found = package(Path(__file__).with_name("axe") / "package.json")
    with not_run_without():
        if isinstance(found, str):
            raise NotRunError(found)
        return (found / "axe.min.js").read_text(encoding="utf-8")


def test_the_site_is_built_without_a_warning_or_a_broken_link(built: str) -> None:
    found = re.match(
        r"(?:docs: .*\n)*docs: (\d+) pages, \d+ files, [\d.]+ MB, no warning, no broken link; \d+ s", built
    )
    assert found is not None, built
    assert int(found[1]) > 200


@pytest.mark.parametrize("base", ["", "file"])
def test_search_finds_what_the_pages_have_with_a_server_and_from_files(
    browser: Browser, address: str, base: str
) -> None:
    where = SITE.as_uri() if base else address
    for words, page in (
        ("OffsetForLeaderEpoch", "reference/apis/OffsetForLeaderEpoch/index.html"),
        ("exactlyOnceId", "exactly-once.html"),
        ("send_arrow", "api/tagwire.client.html"),
        ("TopicAuthorizedOperations", "reference/apis/Metadata/index.html"),
    ):
        browser.open(f"{where}/search.html?q={words}")
        browser.wait("document.querySelectorAll('#search-results .search li a').length")
        found = browser.tell("[...document.querySelectorAll('#search-results .search li a')].map(a => a.href)")
        assert any(page in address for address in found), (words, found)
        # Excerpts under results are fetched, which a page from a file may not: it has to do without them, and in peace.
        excerpts = "document.querySelectorAll('#search-results .search li p.context').length"
        if base:
            browser.wait("document.querySelector('#search-results .search-summary').textContent.includes('found')")
            assert browser.tell(excerpts) == 0
        else:
            browser.wait(excerpts)
        assert browser.complaints == [], words


def test_the_matrix_of_releases_narrows_by_what_is_typed(browser: Browser, address: str) -> None:
    browser.open(f"{address}/reference/releases/index.html")
    browser.wait("document.querySelector('.narrow input')")
    rows = "[...document.querySelector('.scrolled table[data-filter]').tBodies[0].rows].filter(row => !row.hidden)"
    every = browser.tell(f"{rows}.length")
    browser.tell("document.querySelector('.narrow input').focus()")
    browser.ask("Input.insertText", text="OffsetForLeaderEpoch")
    left = browser.tell(f"{rows}.map(row => row.textContent)")
    assert 0 < len(left) < every
    assert all("OffsetForLeaderEpoch" in row for row in left)


def test_annotations_show_by_pointer_and_by_keyboard(browser: Browser, address: str) -> None:
    browser.open(f"{address}/reference/apis/Metadata/index.html")
    browser.wait("document.querySelector('figure.bytes .hex[role=listbox]')")
    said = "document.querySelector('figure.bytes .meaning').textContent"
    browser.point("figure.bytes .hex > :nth-child(2)")
    browser.wait(f"{said}.includes('at byte')")
    pointed = browser.tell(said)
    browser.tell("document.querySelector('figure.bytes .hex').focus()")
    browser.press("ArrowRight")
    assert browser.tell(said) != pointed
    browser.press("ArrowLeft")
    assert browser.tell(said) == pointed


def decoded(browser: Browser, text: str, kind: str, message: str = "", version: int | str = "") -> dict[str, Any]:
    """What the page shows."""
    given = json.dumps({"text": text, "kind": kind, "message": message, "version": str(version)})
    browser.tell(
        f"""(() => {{
            const form = document.getElementById('decoder-form');
            for (const [name, value] of Object.entries({given})) form.elements[name].value = value;
            delete document.getElementById('decoder-output').dataset.done;
            form.requestSubmit();
        }})()"""
    )
    broken = "!document.getElementById('decoder-unavailable').hidden"
    browser.wait(f"document.getElementById('decoder-output').dataset.done || {broken}")
    return dict(
        browser.tell(
            """({
                document: document.querySelector('.decoder-json')?.textContent ?? '',
                error: document.querySelector('#decoder-output [role=alert]')?.textContent ?? '',
                title: document.querySelector('#decoder-output summary')?.textContent ?? '',
                rows: [...document.querySelector('#decoder-output tbody')?.rows ?? []].map(
                    row => [...row.cells].map(cell => cell.textContent)),
            })"""
        )
    )


def framed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def test_the_decoder_decodes_as_the_command_does(
    browser: Browser, address: str, capsys: pytest.CaptureFixture[str], count: Count
) -> None:
    """Messages, frames and batches of Kafka's, by our own kernels, uncompiled, in the browser."""
    if not (SITE / "decoder" / "worker.mjs").exists():
        pytest.skip("NOT RUN: Pyodide cannot be fetched")
    lines = [json.loads(line) for line in gzip.decompress((VECTORS / "messages.jsonl.gz").read_bytes()).splitlines()]
    sample = [line for line in lines if line.get("hex") and catalog.contains(line["message"])][::25]
    browser.open(f"{address}/decoder.html")
    for line in sample:
        found = decoded(browser, line["hex"], "message", line["message"], line["version"])
        capsys.readouterr()
        assert main(["decode", line["message"], "--version", str(line["version"]), "--hex", line["hex"]]) == 0
        assert (found["error"], json.loads(found["document"])) == ("", json.loads(capsys.readouterr().out)), line

    request = framed(encode_request_header(RequestHeader(3, 12, 8, "app")) + messages.MetadataRequest().encode(12))
    response = framed(encode_response_header(3, 12, 8) + messages.MetadataResponse(cluster_id="c").encode(12))
    assert decoded(browser, request.hex(), "guess")["title"] == "Metadata request, version 12"
    assert decoded(browser, response.hex(), "response", "Metadata", 12)["title"] == "Metadata response, version 12"
    assert decoded(browser, response.hex(), "guess")["title"] == "Metadata response, version 12"

    lines = [json.loads(line) for line in gzip.decompress((VECTORS / "records.jsonl.gz").read_bytes()).splitlines()]
    batches = [line for line in lines if "batches" in line and len(line["hex"]) < 2000]
    for line in batches:
        found = decoded(browser, line["hex"], "records")
        assert main(["decode", "--records", "--json", "--hex", line["hex"]]) == 0
        spans = [json.loads(one) for one in capsys.readouterr().out.splitlines()]
        shown = [[span["field"], str(span["byte"]), span["type"], span["value"], span["rule"]] for span in spans]
        assert (found["error"], found["rows"]) == ("", shown), line["name"]
    assert (
        "magic 9"
        in decoded(browser, records.write([records.Record(b"k", b"v")]).hex()[:32] + "09" * 80, "records")["error"]
    )
    count(f"decoder: {len(sample)} messages, 3 frames and {len(batches)} record batches as `tagwire decode`")


def violations(browser: Browser, axe: str) -> list[str]:
    """What axe has against the page, of WCAG 2.1 A and AA."""
    browser.tell(f"{axe}; true")
    browser.wait("!document.getAnimations().length")  # colours that are on their way are nobody's
    found = browser.tell(
        "axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']}).then(told => told.violations.map("
        "one => `${one.id}: ${one.nodes.length} times, such as ${one.nodes[0].html.slice(0, 200)}: "
        "${one.nodes[0].failureSummary}`))"
    )
    return list(found)


@pytest.mark.parametrize("page", KINDS)
def test_pages_have_no_violation_of_wcag_by_light_and_in_the_dark(
    browser: Browser, address: str, axe: str, page: str
) -> None:
    browser.open(f"{address}/{page}")
    assert violations(browser, axe) == []
    with browser.dark():
        browser.open(f"{address}/{page}")
        browser.wait("document.documentElement.dataset.theme == 'dark'")
        assert violations(browser, axe) == []


def test_pages_are_as_wide_as_a_phone(browser: Browser, address: str) -> None:
    browser.resize(375, 800)
    wide = {}
    for page in KINDS:
        browser.open(f"{address}/{page}")
        width = browser.tell("document.documentElement.scrollWidth")
        if width > 375:
            wide[page] = browser.tell(
                "[...document.querySelectorAll('main *')].filter(one => one.getBoundingClientRect().right > 376 && "
                "!one.closest('.scrolled, pre, .highlight, .pst-scrollable-table-container')).slice(0, 3)"
                ".map(one => one.outerHTML.slice(0, 150))"
            )
    assert wide == {}
