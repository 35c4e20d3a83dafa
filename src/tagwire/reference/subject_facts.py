"""What the page of a subject says, for programs."""

from __future__ import annotations

from typing import Any

from tagwire.reference import notes
from tagwire.reference.blocks import FieldRow
from tagwire.reference.fields import changes, field_rows
from tagwire.reference.frames import encoded, header_version
from tagwire.reference.served import eras, lives
from tagwire.reference.speakers import speakers
from tagwire.reference.subjects import Subject
from tagwire.spec import Versions


def subject_facts(subject: Subject, version: int | None = None) -> dict[str, Any]:
    """The page as JSON has it; `version`: with the bytes of this one, and the changes of no other."""
    shown = list(subject.versions) if version is None else [version]
    found: dict[str, Any] = {
        "name": subject.name,
        "kind": subject.kind,
        "api_key": subject.api_key if subject.api_key >= 0 else None,
        "topic": subject.topic or None,
        "purpose": notes.purpose(subject.path) if subject.is_kafkas else None,
        "versions": str(subject.versions),
        "messages": [
            {
                "role": role,
                "name": message.name,
                "versions": str(message.valid_versions),
                "flexible_versions": str(message.flexible_versions & message.valid_versions),
                "optional_versions": str(message.optional_versions & message.valid_versions),
                "deprecated_versions": str(message.deprecated_versions),
                "do_not_use_versions": {str(mark.versions): mark.reason for mark in message.do_not_use_versions},
                "header_versions": None if message.header_versions is None else message.header_versions.document(),
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
                "versions": str(era.served.range.versions) if era.served else None,
                "deprecated": str(era.served.range.deprecated) if era.served else None,
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
            for one in notes.api_errors(subject.name)
        ]
        found["clients"] = [
            {"client": one.name, "versions": one.versions, "was_seen": one.was_seen}
            for one in speakers(subject.api_key, subject.name)
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
    why = notes.reason(subject.path, version) if subject.is_kafkas else notes.Reason()
    found: dict[str, Any] = {"version": version, "kips": list(why.kips), "note": why.text or None}
    if subject.kind == "api" and subject.is_kafkas:
        life = next(lives(subject.api_key, Versions(version, version)))
        found |= {
            "since": life.since,
            "deprecated": life.deprecated,
            "spared": life.spared,
            "removed": life.removed,
        }
    for role, message in subject.messages.items():
        if version not in message.valid_versions:
            continue
        found[role] = {
            "header_version": header_version(message, version),
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
