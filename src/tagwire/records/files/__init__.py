"""The files of a Kafka data directory, read without a broker: segments, their indexes, checkpoints, snapshots.

for files in partitions("/var/lib/kafka/data"):         # or one partition's directory
    for segment in files.segments: ...
    for fault in verify_partition(files): print(fault)      # of tagwire.records.files.verify
"""

from typing import TYPE_CHECKING

from tagwire.names_on_demand import names_on_demand

if TYPE_CHECKING:
    from tagwire.records.files.faults import Fault
    from tagwire.records.files.names import PartitionName, kind_of, offset_name, offset_of, partition_name
    from tagwire.records.files.partition import PartitionFiles, partitions
    from tagwire.records.files.partition_metadata import dialect_in
    from tagwire.records.files.segment import Segment
    from tagwire.records.files.tails import Tail, tail

__all__ = [
    "Fault",
    "PartitionFiles",
    "PartitionName",
    "Segment",
    "Tail",
    "dialect_in",
    "kind_of",
    "offset_name",
    "offset_of",
    "partition_name",
    "partitions",
    "tail",
]

# A broker asks for names alone.
if not TYPE_CHECKING:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "tagwire.records.files.faults": ("Fault",),
            "tagwire.records.files.names": ("PartitionName", "kind_of", "offset_name", "offset_of", "partition_name"),
            "tagwire.records.files.partition": ("PartitionFiles", "partitions"),
            "tagwire.records.files.partition_metadata": ("dialect_in",),
            "tagwire.records.files.segment": ("Segment",),
            "tagwire.records.files.tails": ("Tail", "tail"),
        },
    )
