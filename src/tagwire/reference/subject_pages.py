"""The page of one subject: what its messages are in each version, who serves them, what every byte of them means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tagwire.errors import ConfigError
from tagwire.reference import notes
from tagwire.reference.blocks import (
    Block,
    Code,
    FieldMatrix,
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
from tagwire.reference.fields import changes, dialect, field_rows
from tagwire.reference.frames import encoded, header_version
from tagwire.reference.release_pages import spans
from tagwire.reference.served import AT_THE_LATEST, Life, eras, lives
from tagwire.reference.speakers import brokers_releases, is_of_brokers, speakers
from tagwire.reference.subject_facts import subject_facts
from tagwire.reference.subjects import Subject
from tagwire.spec import Message, Versions

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
        return notes.purpose(subject.path)
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
    rows.append(Row(["Versions", list(_jumps(subject))]))
    for what, versions in (
        ("Flexible versions", lambda each: each.flexible_versions & each.valid_versions),
        ("Versions with optional fields", lambda each: each.optional_versions & each.valid_versions),
        ("Deprecated in the spec", lambda each: each.deprecated_versions & each.valid_versions),
    ):
        told = {str(versions(each)) for each in subject.messages.values() if versions(each)}
        if told:
            rows.append(Row([what, ", ".join(sorted(told))]))
    for role, message in subject.messages.items():
        if message.header_versions is not None:
            rows.append(Row([f"Header of the {role}", str(message.header_versions)]))
        for mark in message.do_not_use_versions:
            rows.append(Row(["Not to be used", [Mark(str(mark.versions), "bad"), f": {mark.reason}"]], kind="bad"))
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


def _jumps(subject: Subject) -> Iterator[Inline]:
    """`0-3`: and a way to each."""
    yield str(subject.versions)
    if subject.versions.lowest < subject.versions.highest:
        yield ":"
        for version in subject.versions:
            yield " "
            yield Link(str(version), subject.path, f"v{version}")


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
        yield Paragraph("No broker serves it in any release of the table: controllers do.")
        return
    if any("controller" in message.listeners for message in subject.messages.values()):
        yield Paragraph("Controllers serve it too; the table tells of brokers.")
    rows = []
    for era in found:
        if era.served is None:
            rows.append(Row([era.text, "not by brokers", "", "", ""], kind="bad"))
            continue
        served = era.served.range
        unstable = str(served.highest) if served.unstable else ""
        deprecated = str(served.deprecated) if served.deprecated else ""
        only = "ZooKeeper" if era.served.listener == "zkBroker" else ""
        rows.append(Row([era.text, str(served.versions), deprecated, unstable, only]))
    titles = ("Kafka", "versions", "of these deprecated", "unstable", "clusters")
    yield Table(f"Versions of {subject.name} that brokers serve", titles, rows)
    yield Items(list(_endings(subject)))
    yield Paragraph(
        [Link("Every API in every release", "releases"), "; what began between 0.10.0 and 2.8 stands under 2.8."]
    )


def _endings(subject: Subject) -> Iterator[Text]:
    """Which versions were announced to go, and which have gone, since when; those of one fate together."""
    fates: dict[tuple[str | None, str | None, str | None], list[int]] = {}
    for life in lives(subject.api_key, subject.versions):
        if life.deprecated is not None or life.removed is not None:
            fates.setdefault((life.deprecated, life.spared, life.removed), []).append(life.version)
    for (deprecated, spared, removed), versions in fates.items():
        yield [
            f"Versions {spans(versions)}: " if len(versions) > 1 else f"Version {versions[0]}: ",
            *_fate(deprecated, spared, removed),
        ]


def _fate(deprecated: str | None, spared: str | None, removed: str | None) -> Iterator[Inline]:
    if spared is not None:
        yield f"deprecated from Kafka {deprecated} on, and not any more from {spared} on"
    elif deprecated is not None:
        yield Mark(f"deprecated since Kafka {deprecated}", "warning")
    if removed is not None:
        yield "; " if deprecated is not None else ""
        yield Mark(f"not served by brokers since Kafka {removed}", "bad")
    yield "."


def _clients(subject: Subject) -> Iterator[Block]:
    if is_of_brokers(subject.api_key):
        yield Paragraph("Brokers and controllers ask it of each other; a client has no use for it.")
        return
    found = speakers(subject.api_key, subject.name)
    if not found:
        yield Paragraph("No client that was tried uses it.")
        return
    brokers = brokers_releases()
    rows = [Row([one.name, *(one.versions.get(release, "-") for release in brokers)]) for one in found]
    titles = ("client", *(f"to Kafka {release}" for release in brokers))
    yield Table(f"Versions of {subject.name} that clients use, by the release of the broker", titles, rows)
    yield Paragraph(
        "Up to: what tagwire and Kafka's own client can. The others are what clients were seen to use on the embedded"
        " broker as it stands in for that release, while they produced, consumed in a group and, most of them,"
        " created a topic."
    )


def _errors(subject: Subject) -> Iterator[Block]:
    found = notes.api_errors(subject.name)
    if not found:
        yield Paragraph(
            "None is known besides UNSUPPORTED_VERSION and UNKNOWN_SERVER_ERROR, which any API may respond with."
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
        f"Errors that {subject.name} may respond with", ("error", "code", "retriable", "what a client does"), rows
    )


# -- a version


def _version(subject: Subject, version: int) -> Iterator[Block]:
    if subject.kind == "api" and subject.is_kafkas:
        life = next(lives(subject.api_key, Versions(version, version)))
        if life.since is not None:
            yield Paragraph(list(_life(life)))
    why = notes.reason(subject.path, version) if subject.is_kafkas else notes.Reason()
    lines: list[Text] = list(_marks(subject, version))
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


def _marks(subject: Subject, version: int) -> Iterator[Text]:
    """What a spec says of a version that is on its way out, or that nobody is to choose."""
    for role, message in subject.messages.items():
        if version in message.deprecated_versions and not subject.is_kafkas:
            yield [Mark("Deprecated", "warning"), f" by the spec of the {role}: served, and announced to go."]
        reason = message.reason_not_to_use(version)
        if reason is not None:
            yield [Mark("Not to be used", "bad"), f": {reason}"]


def _life(life: Life) -> Iterator[Inline]:
    latest = " at the latest" if life.since in AT_THE_LATEST else ""
    yield f"Served from Kafka {life.since} on{latest}"
    yield "; " if life.deprecated is not None or life.removed is not None else ""
    yield from _fate(life.deprecated, life.spared, life.removed)


def _linked(kips: Sequence[str]) -> Iterator[Inline]:
    for at, kip in enumerate(kips):
        if at:
            yield ", "
        yield Link(kip, "kips", kip)


def _changes(role: str, message: Message, version: int) -> Iterator[Text]:
    who = role.capitalize() if role != "message" else "Message"
    header = header_version(message, version)
    if version == message.valid_versions.lowest:
        under = "" if header is None else f", under header version {header}"
        yield f"{who}: the first version here, {dialect(message, version)}{under}."
        return
    found = changes(message, version - 1, version)
    if header is not None and header != header_version(message, version - 1):
        yield f"{who}: under header version {header} instead of {header_version(message, version - 1)}."
    elif not found:
        yield f"{who}: the same as version {version - 1}."
    for change in found:
        where: list[Inline] = [Code(change.field), ": "] if change.field else []
        yield [f"{who}: ", *where, f"{change.text}."]
