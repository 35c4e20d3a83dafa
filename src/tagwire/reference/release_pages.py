"""The matrix of releases against APIs, and what each release changed from the one before."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tagwire.reference.blocks import (
    Block,
    Code,
    Compare,
    Download,
    Inline,
    Link,
    Mark,
    Page,
    Paragraph,
    Row,
    Section,
    Table,
    Text,
)
from tagwire.reference.fields import changes, field_rows
from tagwire.reference.served import Served, served
from tagwire.spec import Versions, catalog, releases
from tagwire.spec.api_keys import API_NAMES
from tagwire.spec.releases import ApiRange

GROUP = "Releases"


CSV = "releases.csv"


def makers() -> dict[str, Callable[[], Page]]:
    """{path: what makes the page}."""
    return {"releases": matrix, "diff": diffs}


def matrix() -> Page:
    """Releases against APIs."""
    names = releases.names()
    rows = []
    for api, name in API_NAMES.items():
        if not any(api in served(release) for release in names):
            continue
        cells: list[Text] = [[Link(name, f"apis/{name}")]]
        before: Served | None = None
        for release in names:
            here = served(release).get(api)
            cells.append(_cell(before, here))
            before = here
        rows.append(Row(cells, anchor=name))
    legend = Paragraph(
        [
            Mark("Marked", "bad"),
            " is where a release serves something no longer; d: these are deprecated; u: the highest is unstable; z: by"
            " brokers of ZooKeeper clusters alone, which ended with 3.9. As a file: ",
            Download(CSV, CSV),
            ".",
        ]
    )
    table = Table("Versions that brokers serve, by release", ("API", *names), rows, can_filter=True)
    removed = [
        Row([after, _listed(change for change in release_changes(before, after) if change.lost)])
        for before, after in pairwise(names)
    ]
    taken = Table("What each release removed", ("Kafka", "served no longer"), [row for row in removed if row.cells[1]])
    return Page(
        "releases",
        "Releases and APIs",
        GROUP,
        "Which versions of each API the brokers of each release serve.",
        [legend, table, Section("What each release removed", "removed", [taken])],
        {"releases": list(served_rows())},
    )


def _cell(before: Served | None, here: Served | None) -> Text:
    if here is None:
        return [Mark("gone", "bad")] if before is not None else ""
    said = str(here.range.versions)
    lost = bool(_versions(before) - _versions(here))
    marks = f" d {here.range.deprecated}" if here.range.deprecated else ""
    marks += " u" if here.range.unstable else ""
    marks += " z" if here.listener == "zkBroker" else ""
    return [Mark(said, "bad") if lost else said, marks]


# -- what a release changed


@dataclass(frozen=True, slots=True)
class ReleaseChange:
    """What became of one API from one release to another.

    Attributes:
        old, new: what brokers serve; None where they do not serve it.
        gained, lost: versions.
    """

    api: int
    old: Served | None
    new: Served | None
    gained: tuple[int, ...]
    lost: tuple[int, ...]

    @property
    def text(self) -> str:
        """`Fetch: drops 0-3, adds 18`."""
        said = [f"drops {spans(self.lost)}"] if self.lost else []
        said += [f"adds {spans(self.gained)}"] if self.gained else []
        if self.old is None:
            said = [f"comes with {spans(self.gained)}"]
        elif self.new is None:
            said = [f"goes, with {spans(self.lost)}"]
        elif not said:
            said = [_marked(self.old.range, self.new.range)]
        return f"{API_NAMES[self.api]}: {', '.join(said)}"


def release_changes(old: str, new: str) -> list[ReleaseChange]:
    """The APIs of which two releases serve something else, by key.

    Raises:
        ConfigError: the table has no such release.
    """
    found = []
    for api in API_NAMES:
        before, after = served(old).get(api), served(new).get(api)
        if _range(before) != _range(after):
            was, now = _versions(before), _versions(after)
            found.append(ReleaseChange(api, before, after, tuple(sorted(now - was)), tuple(sorted(was - now))))
    return found


def _marked(old: ApiRange, new: ApiRange) -> str:
    """The difference of two ranges of the same versions."""
    said = []
    if old.deprecated != new.deprecated:
        said.append(f"deprecates {new.deprecated}" if new.deprecated else "deprecates none of them any more")
    if old.unstable != new.unstable:
        said.append(f"{new.highest} is {'unstable' if new.unstable else 'stable'}")
    return ", ".join(said)


def _versions(one: Served | None) -> set[int]:
    return set(one.range.versions) if one is not None else set()


def _range(one: Served | None) -> ApiRange | None:
    return one.range if one is not None else None


def spans(versions: Sequence[int]) -> str:
    """`0-3, 9` for 0, 1, 2, 3, 9."""
    found: list[list[int]] = []
    for version in versions:
        if found and version == found[-1][1] + 1:
            found[-1][1] = version
        else:
            found.append([version, version])
    return ", ".join(str(Versions(*span)) for span in found)


def _listed(found: Iterable[ReleaseChange]) -> Text:
    said: list[Inline] = []
    for change in found:
        said += [", "] if said else []
        said += [Link(API_NAMES[change.api], f"apis/{API_NAMES[change.api]}"), f" {spans(change.lost)}"]
    return said


def diffs() -> Page:
    """What each release changed from the one before it; a script compares any two from `diff/index.json`."""
    names = releases.names()
    sections: list[Block] = []
    for before, after in reversed(list(pairwise(names))):
        found = release_changes(before, after)
        rows = [
            Row(
                [
                    [Link(API_NAMES[one.api], f"apis/{API_NAMES[one.api]}")],
                    str(one.old.range.versions) if one.old else "-",
                    str(one.new.range.versions) if one.new else "-",
                    one.text.partition(": ")[2],
                ],
                kind="bad" if one.lost else "",
            )
            for one in found
        ]
        shown: list[Block] = [Paragraph("Brokers serve the same.")]
        if rows:
            shown = [Table(f"From Kafka {before} to {after}", ("API", before, after, "what changed"), rows)]
            fields = list(_fields(found))
            if fields:
                shown.append(
                    Table(
                        f"Fields, from the highest version of {before} to that of {after}",
                        ("message", "versions", "what changed"),
                        fields,
                    )
                )
        sections.append(Section(f"{before} to {after}", f"{before}...{after}", shown))
    facts = {"releases": names, "apis": _api_facts(), "messages": _message_facts()}
    intro = Paragraph(
        [
            "Releases that are not neighbours, and any two versions of an API, are compared by a script, or by ",
            Code("tagwire spec diff 3.9 4.3"),
            ".",
        ]
    )
    return Page(
        "diff",
        "What changed",
        GROUP,
        "What each release of Kafka changed in its protocol, from the one before.",
        [Compare(), intro, *sections],
        facts,
    )


def _fields(found: Iterable[ReleaseChange]) -> Iterator[Row]:
    for one in found:
        if one.old is None or one.new is None or one.old.range.highest == one.new.range.highest:
            continue
        for kind in ("Request", "Response"):
            name = f"{API_NAMES[one.api]}{kind}"
            message = catalog.message(name) if catalog.contains(name) else None
            if (
                message is None
                or one.old.range.highest not in message.valid_versions
                or one.new.range.highest not in message.valid_versions
            ):
                continue
            changed = [str(change) for change in changes(message, one.old.range.highest, one.new.range.highest)]
            if changed:
                yield Row([name, f"{one.old.range.highest} to {one.new.range.highest}", "; ".join(changed)])


def _api_facts() -> dict[str, Any]:
    """{API: {release: "0-11 deprecated 0-2"}}."""
    found: dict[str, Any] = {}
    for row in served_rows():
        text = row["versions"] + (f" deprecated {row['deprecated']}" if row["deprecated"] else "")
        found.setdefault(row["api"], {})[row["release"]] = text
    return found


def _message_facts() -> dict[str, Any]:
    """{message: {versions, fields}}, as much as comparing two versions takes."""
    found = {}
    for name in API_NAMES.values():
        for kind in ("Request", "Response"):
            message = catalog.message(f"{name}{kind}")
            if not message.valid_versions:
                continue
            found[message.name] = {
                "api": name,
                "versions": [message.valid_versions.lowest, message.valid_versions.highest],
                "flexible": _pair(message.flexible_versions & message.valid_versions),
                "fields": [
                    [row.path, row.type, _pair(row.versions), _pair(row.nullable), _pair(row.tagged), row.tag]
                    for row in field_rows(message)
                ],
            }
    return found


def _pair(versions: Versions) -> list[int] | None:
    return [versions.lowest, versions.highest] if versions else None


# -- the table as a file


def served_rows() -> Iterator[dict[str, Any]]:
    """What each release serves of each API, a row for each, oldest release first."""
    for release in releases.names():
        for api, name in API_NAMES.items():
            here = served(release).get(api)
            if here is not None:
                yield {
                    "release": release,
                    "patches": " ".join(releases.patches(release)),
                    "api_key": api,
                    "api": name,
                    "listener": here.listener,
                    "lowest": here.range.lowest,
                    "highest": here.range.highest,
                    "versions": str(here.range.versions),
                    "deprecated": str(here.range.deprecated) if here.range.deprecated else "",
                    "unstable": here.range.highest if here.range.unstable else "",
                }


def releases_csv() -> str:
    """The rows of `served_rows` as CSV (RFC 4180), with a header."""
    rows = list(served_rows())
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
