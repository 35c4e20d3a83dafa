"""What a message is: the spec language, its model, and the catalog of Kafka's messages."""

from typing import TYPE_CHECKING

from tagwire.names_on_demand import names_on_demand

if TYPE_CHECKING:
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

# Who reads messages has no use for what changes between two specs.
if not TYPE_CHECKING:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "tagwire.spec.evolution": ("Finding", "diff"),
            "tagwire.spec.header_versions": ("HeaderVersions",),
            "tagwire.spec.lifecycle": ("DoNotUse",),
            "tagwire.spec.model": ("Absent", "Field", "FieldType", "Message", "Struct"),
            "tagwire.spec.parse": ("load",),
            "tagwire.spec.versions": ("Versions",),
        },
    )
