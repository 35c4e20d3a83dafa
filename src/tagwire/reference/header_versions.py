"""Which header travels before a request or a response."""

from __future__ import annotations

from tagwire.reference.subjects import Subject
from tagwire.rpc import request_header_version, response_header_version


def header_version(subject: Subject, role: str, version: int) -> int | None:
    """The version of the header; None for what travels in no frame of its own."""
    if role not in ("request", "response"):
        return None
    if subject.is_kafkas:
        of = request_header_version if role == "request" else response_header_version
        return of(subject.api_key, version)
    flexible = subject.messages[role].is_flexible(version)
    return (2 if flexible else 1) if role == "request" else int(flexible)
