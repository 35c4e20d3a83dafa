"""The page of one subject: what its messages are in each version, who serves them, what every byte of them means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tagwire import messages
from tagwire.codec.annotate import Span, annotate
from tagwire.errors import ConfigError
from tagwire.reference import notes
from tagwire.reference.blocks import (
    Block,
    Bytes,
    Code,
    FieldMatrix,
    FieldRow,
    Inline,
    Items,
    Link,
    Mark,
    Page,
    Paragraph,
    Row,
    Section,
    Table,
    Text,
)
from tagwire.reference.examples import behind, example
from tagwire.reference.fields import changes, dialect, field_rows
from tagwire.reference.header_versions import header_version
from tagwire.reference.served import Life, eras, lives
from tagwire.reference.speakers import speakers
from tagwire.reference.subjects import Subject
from tagwire.spec import Message

CORRELATION_ID = 7
CLIENT_ID = "console"
_SIZE_BYTES = 4
GROUPS = {"api": "APIs", "record": "Records of Kafka's topics", "data": "Headers, control records and files"}


def page(subject: Subject, version: int | None = None) -> Page:
    """The page of a subject; of one version alone, with nothing else, where `version` says so.

    Raises:
        ConfigError: the subject has no such version.
    """
    if version is not None and version not in subject.versions:
        raise ConfigError(f"{subject.name} has no version {version}: it has {subject.versions}")
    group = GROUPS[subject.kind] if subject.is_kafkas else "Your specs"
    facts = subject_facts(subject, version)
    if version is not None:
        return Page(
            subject.path,
            f"{subject.name} v{version}",
            group,
            _summary(subject),
            list(_version(subject, version)),
            facts,
        )
    return Page(subject.path, subject.name, group, _summary(subject), list(_blocks(subject)), facts)


def _summary(subject: Subject) -> Text:
    if subject.is_kafkas:
        return notes.purpose(subject.name)
    return f"{', '.join(message.name for message in subject.messages.values())}, of a spec of yours."


# -- the page


def _blocks(subject: Subject) -> Iterator[Block]:
    yield _identity(subject)
    for role, message in subject.messages.items():
        yield Section(
            f"{role.capitalize()}: {message.name}" if role != "message" else "Fields",
            f"{role}-fields",
            [
                *_about_versions(message),
                FieldMatrix(f"{message.name}, by version", f"{role}.", message.valid_versions, field_rows(message)),
            ],
        )
    if subject.kind == "api" and subject.is_kafkas:
        yield Section("Releases", "releases", list(_releases(subject)))
        yield Section("Clients", "clients", list(_clients(subject)))
        yield Section("Errors", "errors", list(_errors(subject)))
    yield Section(
        "Versions",
        "versions",
        [
            Section(f"Version {each}", f"v{each}", list(_version(subject, each)))
            for each in reversed(list(subject.versions))
        ],
    )


def _identity(subject: Subject) -> Table:
    rows: list[Row] = []
    if subject.kind == "api":
        rows.append(Row(["API key", str(subject.api_key)]))
        listeners = next(iter(subject.messages.values())).listeners
        request = subject.messages.get("request")
        listeners = request.listeners if request is not None else listeners
        if listeners:
            rows.append(
                Row(["Served on the listeners of", ", ".join(_LISTENERS.get(each, each) for each in listeners)])
            )
    elif subject.kind == "record":
        if subject.topic:
            rows.append(Row(["Topic", [Code(subject.topic)]]))
        if subject.api_key >= 0:
            rows.append(Row(["Record id" if "message" in subject.messages else "Record type", str(subject.api_key)]))
    rows.append(Row(["Versions", str(subject.versions)]))
    for what, versions in (
        ("Flexible versions", lambda each: each.flexible_versions & each.valid_versions),
        ("Versions with optional fields", lambda each: each.optional_versions & each.valid_versions),
        ("Deprecated in the spec", lambda each: each.deprecated_versions & each.valid_versions),
    ):
        told = {str(versions(each)) for each in subject.messages.values() if versions(each)}
        if told:
            rows.append(Row([what, ", ".join(sorted(told))]))
    unstable = [each for each in subject.messages.values() if each.latest_version_unstable]
    if unstable:
        rows.append(
            Row(
                [
                    "Unstable",
                    [
                        Mark(f"{unstable[0].valid_versions.highest}", "warning"),
                        ": brokers serve it only where unstable versions are enabled",
                    ],
                ]
            )
        )
    return Table(f"{subject.name} in short", ("", ""), rows)


_LISTENERS = {
    "broker": "brokers",
    "controller": "controllers",
    "zkBroker": "brokers of ZooKeeper clusters (up to Kafka 3.9)",
}


def _about_versions(message: Message) -> Iterator[Block]:
    if not message.valid_versions:
        yield Paragraph("No version of it is left: its number stays reserved.")


def _releases(subject: Subject) -> Iterator[Block]:
    found = eras(subject.api_key)
    if not found:
        yield Paragraph(
            "No broker's listener serves it in any release of the table: controllers and brokers ask it of controllers."
        )
        return
    rows = []
    for era in found:
        if era.served is None:
            rows.append(Row([era.text, "no longer", "", ""], kind="bad"))
            continue
        unstable = f"{era.served.highest}" if era.served.unstable else ""
        deprecated = str(era.served.deprecated) if era.served.deprecated else ""
        rows.append(Row([era.text, str(era.served.versions), deprecated, unstable]))
    yield Table(
        f"Versions of {subject.name} that brokers serve", ("Kafka", "versions", "of these deprecated", "unstable"), rows
    )
    yield Paragraph(
        [Link("Every API in every release", "releases"), "; what began between 0.10.0 and 2.8 stands under 2.8."]
    )


def _clients(subject: Subject) -> Iterator[Block]:
    rows = [Row([one.name, one.versions, one.note]) for one in speakers(subject.api_key)]
    if rows:
        yield Table(f"Who speaks which versions of {subject.name}", ("client", "versions", ""), rows)
    else:
        yield Paragraph("No client that was tried uses it.")


def _errors(subject: Subject) -> Iterator[Block]:
    found = notes.answers(subject.name)
    if not found:
        yield Paragraph(
            "None is documented besides UNSUPPORTED_VERSION and UNKNOWN_SERVER_ERROR, which any API may answer with."
        )
        return
    rows = [
        Row(
            [
                [Link(each.error.name, "errors", each.error.name)],
                str(int(each.error)),
                "yes" if each.error.retriable else "no",
                each.advice,
            ]
        )
        for each in found
    ]
    yield Table(
        f"Errors that {subject.name} may answer with", ("error", "code", "retriable", "what a client does"), rows
    )


# -- a version


def _version(subject: Subject, version: int) -> Iterator[Block]:
    if subject.kind == "api" and subject.is_kafkas:
        life = next(lives(subject.api_key, type(subject.versions)(version, version)))
        if life.since is not None:
            yield Paragraph(list(_life(life)))
    why = notes.reason(subject.name, version) if subject.is_kafkas else notes.Reason()
    lines: list[Text] = []
    if why.kips:
        lines.append(["Made by ", *_linked(why.kips), "."])
    if why.text:
        lines.append(why.text)
    for role, message in subject.messages.items():
        if version in message.valid_versions:
            lines.extend(_changes(role, message, version))
    yield Items(lines)
    for role, message in subject.messages.items():
        if version in message.valid_versions:
            yield encoded(subject, role, message, version)


def _life(life: Life) -> Iterator[Inline]:
    yield (
        f"Served from Kafka {life.since} on"
        if life.removed is None
        else f"Served from Kafka {life.since} on, until {life.removed} removed it"
    )
    yield ". "
    if life.deprecated is not None:
        yield Mark(f"Deprecated since Kafka {life.deprecated}", "warning")
        yield "."
    if life.removed is not None:
        yield Mark(f"Not served since Kafka {life.removed}", "bad")
        yield "."


def _linked(kips: Sequence[str]) -> Iterator[Inline]:
    for at, kip in enumerate(kips):
        if at:
            yield ", "
        yield Link(kip, "kips", kip)


def _changes(role: str, message: Message, version: int) -> Iterator[Text]:
    who = role.capitalize() if role != "message" else "Message"
    if version == message.valid_versions.lowest:
        yield f"{who}: the first version here, {dialect(message, version)}."
        return
    found = changes(message, version - 1, version)
    if not found:
        yield f"{who}: the same as version {version - 1}."
    for change in found:
        where: list[Inline] = [Code(change.field), ": "] if change.field else []
        yield [f"{who}: ", *where, f"{change.text}."]


def encoded(subject: Subject, role: str, message: Message, version: int) -> Bytes:
    """The bytes of the example of one version: of a request or response the whole frame."""
    made = example(message, version)
    header = header_bytes(subject, role, message, version)
    anchor = f"v{version}-{role}-bytes"
    if header is None:
        how = f"tagwire decode {message.name} --version {version} --annotate --hex …"
        return Bytes(f"{message.name} v{version}, {len(made.data)} bytes", anchor, made.data, made.spans, how)
    head, spans = header
    size = len(head) + len(made.data)
    data = size.to_bytes(_SIZE_BYTES, "big") + head + made.data
    told = [
        Span(0, _SIZE_BYTES, "(size)", "int32", str(size), "bytes that follow"),
        *behind(spans, _SIZE_BYTES, "header."),
        *behind(made.spans, _SIZE_BYTES + len(head), "body."),
    ]
    of = "" if role == "request" else f" {subject.name} --version {version}"
    return Bytes(
        f"{message.name} v{version} as a frame, {len(data)} bytes",
        anchor,
        data,
        told,
        f"tagwire decode{of} --frame --annotate --hex …",
    )


def header_bytes(subject: Subject, role: str, message: Message, version: int) -> tuple[bytes, list[Span]] | None:
    """The header before a body and what its bytes mean; None for what has none."""
    number = header_version(subject, role, version)
    if number is None:
        return None
    if role == "request":
        kind: Any = messages.RequestHeader
        made = kind(
            request_api_key=subject.api_key,
            request_api_version=version,
            correlation_id=CORRELATION_ID,
            client_id=CLIENT_ID,
        )
    else:
        kind = messages.ResponseHeader
        made = kind(correlation_id=CORRELATION_ID)
    data = made.encode(number)
    return data, list(annotate(kind.spec, data, number))


# -- for programs


def subject_facts(subject: Subject, version: int | None = None) -> dict[str, Any]:
    """The page as JSON has it; `version`: with the bytes of this one, and the changes of no other."""
    shown = list(subject.versions) if version is None else [version]
    found: dict[str, Any] = {
        "name": subject.name,
        "kind": subject.kind,
        "api_key": subject.api_key if subject.api_key >= 0 else None,
        "topic": subject.topic or None,
        "purpose": notes.purpose(subject.name) if subject.is_kafkas else None,
        "versions": str(subject.versions),
        "messages": [
            {
                "role": role,
                "name": message.name,
                "versions": str(message.valid_versions),
                "flexible_versions": str(message.flexible_versions & message.valid_versions),
                "optional_versions": str(message.optional_versions & message.valid_versions),
                "deprecated_versions": str(message.deprecated_versions),
                "unstable_version": message.valid_versions.highest if message.latest_version_unstable else None,
                "listeners": list(message.listeners),
                "fields": [_field_facts(row) for row in field_rows(message)],
            }
            for role, message in subject.messages.items()
        ],
    }
    if subject.kind == "api" and subject.is_kafkas:
        found["releases"] = [
            {
                "first": era.first,
                "last": era.last,
                "versions": str(era.served.versions) if era.served else None,
                "deprecated": str(era.served.deprecated) if era.served else None,
            }
            for era in eras(subject.api_key)
        ]
        found["errors"] = [
            {
                "error": one.error.name,
                "code": int(one.error),
                "retriable": one.error.retriable,
                "refreshes_metadata": one.error.refreshes_metadata,
                "advice": one.advice,
            }
            for one in notes.answers(subject.name)
        ]
        found["clients"] = [
            {"client": one.name, "versions": one.versions, "note": one.note} for one in speakers(subject.api_key)
        ]
    found["details"] = [_version_facts(subject, each, with_bytes=version is not None) for each in shown]
    return found


def _field_facts(row: FieldRow) -> dict[str, Any]:
    return {
        "field": row.path,
        "type": row.type,
        "versions": str(row.versions),
        "nullable": str(row.nullable),
        "tagged": str(row.tagged),
        "tag": row.tag,
        "default": row.default,
        "ignorable": row.ignorable,
        "map_key": row.map_key,
        "entity_type": row.entity_type or None,
        "about": row.about,
    }


def _version_facts(subject: Subject, version: int, *, with_bytes: bool) -> dict[str, Any]:
    why = notes.reason(subject.name, version) if subject.is_kafkas else notes.Reason()
    found: dict[str, Any] = {"version": version, "kips": list(why.kips), "note": why.text or None}
    if subject.kind == "api" and subject.is_kafkas:
        life = next(lives(subject.api_key, type(subject.versions)(version, version)))
        found |= {"since": life.since, "deprecated": life.deprecated, "removed": life.removed}
    for role, message in subject.messages.items():
        if version not in message.valid_versions:
            continue
        found[role] = {
            "header_version": header_version(subject, role, version),
            "changes": [
                {"kind": change.kind, "field": change.field, "text": change.text}
                for change in (
                    changes(message, version - 1, version) if version > message.valid_versions.lowest else ()
                )
            ],
        }
        shown = encoded(subject, role, message, version)
        found[role]["hex"] = shown.data.hex()
        if with_bytes:
            found[role]["bytes"] = [
                {
                    "byte": span.start,
                    "bytes": shown.data[span.start : span.end].hex(),
                    "field": span.path,
                    "type": span.type,
                    "value": span.value,
                    "rule": span.rule,
                }
                for span in shown.spans
            ]
    return found
