"""The pages that are about no single message: the front page, all errors, all proposals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tagwire.errors import Error
from tagwire.reference import notes
from tagwire.reference.blocks import Block, Inline, Link, Page, Paragraph, Row, Section, Table
from tagwire.reference.subjects import Subject
from tagwire.spec.api_keys import API_NAMES

GROUP = "Overview"


def front(subjects: Sequence[Subject]) -> Page:
    """What there is: every subject with its versions and what it is for."""
    sections: list[Block] = [
        Paragraph(
            [
                "Across all of them: ",
                Link("which release serves what", "releases"),
                ", ",
                Link("what each release changed", "diff"),
                ", ",
                Link("every error", "errors"),
                ", ",
                Link("the proposals behind the versions", "kips"),
                ".",
            ]
        )
    ]
    own = [one for one in subjects if not one.is_kafkas]
    parts = [
        ("Your specs", "specs", own),
        ("APIs", "apis", [one for one in subjects if one.is_kafkas and one.kind == "api"]),
        ("Records of Kafka's topics", "records", [one for one in subjects if one.is_kafkas and one.kind == "record"]),
        (
            "Headers, control records and files",
            "data",
            [one for one in subjects if one.is_kafkas and one.kind == "data"],
        ),
    ]
    for title, anchor, found in parts:
        if found:
            rows = [
                Row(
                    [
                        [Link(one.name, one.path)],
                        str(one.api_key) if one.api_key >= 0 else "",
                        str(one.versions),
                        _about(one),
                    ]
                )
                for one in found
            ]
            sections.append(
                Section(title, anchor, [Table(title, ("name", "key", "versions", "what for"), rows, can_filter=True)])
            )
    facts = {"pages": [{"name": one.name, "path": one.path, "versions": str(one.versions)} for one in subjects]}
    return Page(
        "",
        "Protocol reference",
        GROUP,
        "Every message of Kafka's wire protocol, made from the specs that tagwire's own codec runs on.",
        sections,
        facts,
    )


def _about(subject: Subject) -> str:
    if not subject.is_kafkas:
        return ", ".join(message.name for message in subject.messages.values())
    return notes.purpose(subject.path) or (f"A record of {subject.topic}." if subject.topic else "")


def errors() -> Page:
    """Every error code, whether it passes by itself, what a client does, and which APIs respond with it."""
    apis: dict[Error, list[str]] = {}
    for name in API_NAMES.values():
        for told in notes.api_errors(name):
            apis.setdefault(told.error, []).append(name)
    found = [error for error in sorted(Error) if error is not Error.NONE]
    rows = [
        Row(
            [
                error.name,
                str(int(error)),
                "yes" if error.retriable else "no",
                "yes" if error.refreshes_metadata else "no",
                notes.advice(error),
                list(_linked(apis.get(error, ()))),
            ],
            anchor=error.name,
        )
        for error in found
    ]
    titles = ("error", "code", "retriable", "refreshes metadata", "what a client does", "known from")
    facts = [
        {
            "error": error.name,
            "code": int(error),
            "retriable": error.retriable,
            "refreshes_metadata": error.refreshes_metadata,
            "advice": notes.advice(error),
            "apis": apis.get(error, []),
        }
        for error in found
    ]
    return Page(
        "errors",
        "Errors",
        GROUP,
        "What a code in a response means for the client that reads it.",
        [Table("Errors of Kafka, by code", titles, rows, can_filter=True)],
        {"errors": facts},
    )


def _linked(names: Sequence[str]) -> Iterator[Inline]:
    for at, name in enumerate(names):
        yield Link(name, f"apis/{name}", "errors")
        if at < len(names) - 1:
            yield ", "


def kips(subjects: Sequence[Subject]) -> Page:
    """The proposals, each with the versions that it made."""
    made: dict[str, list[Inline]] = {}
    facts: dict[str, list[dict[str, object]]] = {}
    for subject in subjects:
        if not subject.is_kafkas:
            continue
        for version in subject.versions:
            for kip in notes.reason(subject.path, version).kips:
                links = made.setdefault(kip, [])
                links += [", "] if links else []
                links.append(Link(f"{subject.name} v{version}", subject.path, f"v{version}"))
                facts.setdefault(kip, []).append({"name": subject.name, "version": version})
    about = notes.kips()
    order = sorted(made, key=lambda kip: int(kip.removeprefix("KIP-")))
    rows = [Row([kip, about.get(kip, ""), made[kip]], anchor=kip) for kip in order]
    table = Table("Proposals and the versions they made", ("KIP", "about", "versions"), rows, can_filter=True)
    return Page(
        "kips",
        "Proposals (KIPs)",
        GROUP,
        "Which proposal made which version, where that is known for certain.",
        [table],
        {"kips": facts},
    )
