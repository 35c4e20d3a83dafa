"""Pages of the reference as HTML: whole, with ids that hold, and safe whatever a spec says."""

from __future__ import annotations

import csv
import io
import json
import posixpath
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tagwire.reference import Shelf, entries, files, write
from tagwire.reference.html import HtmlRenderer
from tagwire.reference.markup import breakable, element
from tagwire.reference.subjects import kafkas, of_specs
from tagwire.spec import releases
from tagwire.spec.api_keys import API_NAMES

VOID = {"br", "hr", "input", "link", "meta", "wbr"}


class Reading(HTMLParser):
    """What a page has: ids, links, text; asserts that its tags are balanced."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.headings: list[int] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert len(given) == len(attrs), f"an attribute twice: {attrs}"
        self.tags.append(tag)
        self.ids += [given["id"]] if given.get("id") else []
        self.links += [given["href"]] if tag == "a" and given.get("href") else []
        if len(tag) == 2 and tag[0] == "h" and tag[1].isdigit():
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


def read(text: str) -> Reading:
    reading = Reading()
    reading.feed(text)
    reading.close()
    assert reading.open == []
    return reading


@pytest.fixture(scope="module")
def pages() -> dict[str, Reading]:
    return {entry.path: read(entry.fragment) for entry in entries()}


def test_every_api_and_every_record_type_has_a_page(pages: dict[str, Reading]) -> None:
    assert {f"apis/{name}" for name in API_NAMES.values()} <= pages.keys()
    assert {subject.path for subject in kafkas()} <= pages.keys()
    assert sum(path.startswith("records/") for path in pages) == 56


def test_ids_of_a_page_are_unique_and_its_headings_descend_by_one(pages: dict[str, Reading]) -> None:
    for path, page in pages.items():
        assert len(set(page.ids)) == len(page.ids), path
        assert page.headings[0] == 1
        assert page.headings.count(1) == 1
        assert all(after - before <= 1 for before, after in zip(page.headings, page.headings[1:])), path


def test_every_link_leads_to_a_page_and_to_an_id_in_it(pages: dict[str, Reading]) -> None:
    count, beside = 0, files()
    for path, page in pages.items():
        for link in page.links:
            place, _, anchor = link.partition("#")
            target = posixpath.normpath(posixpath.join("/", path, place)).strip("/")
            if target in beside:
                continue
            assert target in pages, f"{path}: {link}"
            assert not anchor or anchor in pages[target].ids, f"{path}: {link}"
            count += 1
    assert count > 1000


HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)> &amp; \u202e\x1b[31m"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    spec = {
        "apiKey": 4321,
        "type": "request",
        "listeners": ["broker"],
        "name": "GreetRequest",
        "validVersions": "0-1",
        "doNotUseVersions": {"0": '<b>bold</b> & "quoted"'},
        "flexibleVersions": "1+",
        "fields": [
            {"name": "Name", "type": "string", "versions": "0+", "default": HOSTILE, "about": HOSTILE},
            {"name": "Kind", "type": "string", "versions": "1+", "tag": 0, "taggedVersions": "1+", "about": HOSTILE},
        ],
    }
    file = tmp_path / "GreetRequest.json"
    file.write_text(json.dumps(spec))
    return file


def test_what_a_spec_says_is_text_in_a_page_and_never_markup(hostile: Path) -> None:
    (subject,) = of_specs(hostile)
    page = Shelf((subject,)).page(subject.path)
    fragment = HtmlRenderer().fragment(page)
    assert not {"script", "img", "b"} & set(read(fragment).tags)
    assert "&lt;script&gt;alert(1)" in fragment
    assert "\x1b" not in fragment
    assert "\u202e" not in fragment


def test_text_beside_markup_is_escaped_and_markup_is_not_escaped_twice() -> None:
    inner = element("b", "a < b")
    assert element("p", inner, " & ", title='"') == '<p title="&quot;"><b>a &lt; b</b> &amp; </p>'


def test_fragments_are_written_beside_json_and_the_files_that_all_pages_share(tmp_path: Path) -> None:
    written = write(tmp_path, fragments=True)
    assert written[0].path == ""
    for entry in written:
        folder = tmp_path / entry.path
        assert (folder / "fragment.html").read_text(encoding="utf-8").startswith("<div")
        json.loads((folder / "index.json").read_text(encoding="utf-8"))
    assert all((tmp_path / name).read_bytes() == data for name, data in files().items())


def test_pages_that_are_files_link_to_files(tmp_path: Path) -> None:
    write(tmp_path)
    for path in ("apis/Fetch", "releases", ""):
        page = read((tmp_path / path / "index.html").read_text(encoding="utf-8"))
        for link in page.links:
            place = link.partition("#")[0]
            assert not place or (tmp_path / path / place).resolve().is_file(), link


def test_nothing_is_asked_of_another_host() -> None:
    assets = b"".join(data for name, data in files().items() if not name.endswith(".csv"))
    assert b"://" not in assets


def test_the_csv_has_a_row_for_each_api_that_a_release_serves() -> None:
    rows = list(csv.DictReader(io.StringIO(files()["releases.csv"].decode())))
    for release in releases.names():
        served = releases.served(release, unstable=True)
        told = {int(row["api_key"]): row for row in rows if row["release"] == release and row["listener"] == "broker"}
        assert {key: one.lowest for key, one in served.items()} == {
            key: int(row["lowest"]) for key, row in told.items()
        }
        assert {key: str(one.versions) for key, one in served.items()} == {
            k: row["versions"] for k, row in told.items()
        }
    only_zookeeper = {row["api"] for row in rows if row["release"] == "3.9" and row["listener"] == "zkBroker"}
    assert {"LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown"} <= only_zookeeper


def test_names_break_between_their_words_and_stay_what_they_are() -> None:
    found = breakable(element("a", "UNKNOWN_TOPIC_OR_PARTITION, DescribeTopicPartitions", href="../Describe_Topics/"))
    assert found == (
        '<a href="../Describe_Topics/">UNKNOWN_<wbr>TOPIC_<wbr>OR_<wbr>PARTITION, Describe<wbr>Topic<wbr>Partitions</a>'
    )
    assert breakable(element("th", "plain & words")) == element("th", "plain & words")
