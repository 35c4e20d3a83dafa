"""What a message is: the spec language, its model, and the catalog of Kafka's messages."""

from __future__ import annotations

from tagwire.spec.evolution import Finding, diff
from tagwire.spec.model import Absent, Field, FieldType, Message, Struct
from tagwire.spec.parse import load
from tagwire.spec.versions import Versions

__all__ = ["Absent", "Field", "FieldType", "Finding", "Message", "Struct", "Versions", "diff", "load"]
