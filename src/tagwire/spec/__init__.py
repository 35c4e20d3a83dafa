"""What a message is: the spec language, its model, and the catalog of Kafka's messages."""

from __future__ import annotations

from tagwire.spec.evolution import Finding, diff
from tagwire.spec.header_versions import HeaderVersions
from tagwire.spec.lifecycle import DoNotUse
from tagwire.spec.model import Absent, Field, FieldType, Message, Struct
from tagwire.spec.parse import load
from tagwire.spec.versions import Versions

__all__ = [
    "Absent",
    "DoNotUse",
    "Field",
    "FieldType",
    "Finding",
    "HeaderVersions",
    "Message",
    "Struct",
    "Versions",
    "diff",
    "load",
]
