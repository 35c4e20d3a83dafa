"""Whether racks say anything about who should have which partition (KIP-881)."""

from __future__ import annotations

from collections.abc import Collection, Iterable


def racks_matter(member_racks: Collection[str], partition_racks: Iterable[frozenset[str]]) -> bool:
    """Whether some member is in a rack that has some of the partitions and lacks others.

    Source: Kafka's AbstractPartitionAssignor.useRackAwareAssignment.
    """
    if not member_racks:
        return False
    each = set(partition_racks)
    every = frozenset[str]().union(*each)
    return not every.isdisjoint(member_racks) and each != {every}
