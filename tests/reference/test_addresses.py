"""Addresses of pages and anchors do not change: they follow the scheme of docs/reference.md, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tagwire.errors import Error
from tagwire.reference import Shelf, entries, files, notes
from tagwire.reference.subjects import Subject, kafkas
from tagwire.spec import Field, Versions, releases
from tagwire.spec.api_keys import API_NAMES

PAGE = Path(__file__).parents[2] / "docs" / "reference.md"
IDS = re.compile(r'\sid="([^"]+)"')


def ever_served() -> Iterator[str]:
    """The APIs that brokers of some release serve or served; a few are for controllers alone."""
    for release in releases.names():
        served = {*releases.served(release)}
        if not release.startswith("4."):
            served |= {*releases.served(release, listener="zkBroker")}
        yield from (API_NAMES[api] for api in served)


GENERAL = {
    "": {"apis", "records", "data"},
    "releases": {"removed", *ever_served()},
    "diff": {f"{before}...{after}" for before, after in pairwise(releases.names())},
    "errors": {error.name for error in Error if error is not Error.NONE},
    "kips": set(notes.kips()),
}
"""Page that is about no single message -> its anchors."""


@pytest.fixture(scope="module")
def there() -> dict[str, set[str]]:
    """Page -> its ids."""
    return {entry.path: set(IDS.findall(entry.fragment)) for entry in entries()}


def paths(fields: Iterable[Field], within: Versions, above: str = "") -> Iterator[str]:
    """Of the fields that some version has; a common struct may have others, which stand elsewhere."""
    for field in fields:
        versions = field.versions & within
        if versions:
            yield f"{above}{field.name}"
            if field.struct is not None:
                yield from paths(field.struct.fields, versions, f"{above}{field.name}.")


def anchors(subject: Subject) -> set[str]:
    """What the scheme says of a page about a message, from its specs."""
    found = {"versions", *({"releases", "clients", "errors"} if subject.kind == "api" else ())}
    for role, message in subject.messages.items():
        found |= {f"{role}-fields", *(f"{role}.{path}" for path in paths(message.fields, message.valid_versions))}
        found |= {f"v{version}" for version in message.valid_versions}
        found |= {f"v{version}-{role}-bytes" for version in message.valid_versions}
    return found


def test_pages_stand_where_the_scheme_says() -> None:
    assert Shelf().paths() == ["", *(subject.path for subject in kafkas()), *list(GENERAL)[1:]]
    folders = {"api": "apis", "record": "records", "data": "data"}
    assert all(subject.path == f"{folders[subject.kind]}/{subject.name}" for subject in kafkas())
    assert {subject.name for subject in kafkas() if subject.kind == "api"} == set(API_NAMES.values())


def test_every_page_has_the_anchors_that_the_scheme_says_and_no_others(there: dict[str, set[str]]) -> None:
    said = GENERAL | {subject.path: anchors(subject) for subject in kafkas()}
    assert there.keys() == said.keys()
    for path, ids in there.items():
        assert ids == said[path], path
    assert sum(map(len, there.values())) > 4000


def test_every_address_of_the_page_about_addresses_is_there(there: dict[str, set[str]]) -> None:
    text = PAGE.read_text(encoding="utf-8").partition("## Addresses")[2].partition("## The bytes")[0]
    named = [each for row in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE) for each in re.findall(r"`(.*?)`", row)]
    assert len(named) > 15
    for address in named:
        path, _, anchor = address.partition("#")
        path = path.strip("/")
        if path in files() or path == "specs/Greet":
            continue
        if address.startswith("#"):
            assert anchor in there["apis/Fetch"], address
        else:
            assert path in there, address
            assert not anchor or anchor in there[path], address
    assert {"v0-key-bytes", "v4-value-bytes"} <= there["records/OffsetCommit"]
    assert "v0-message-bytes" in there["records/TopicRecord"]
