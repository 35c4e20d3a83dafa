"""The files of a simulated broker at the end of its world, as `tagwire log verify` sees them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagwire.errors import TagwireError
from tagwire.records.files.partition import PartitionFiles, partitions
from tagwire.records.files.time_index import read_time_index
from tagwire.records.files.transaction_index import read_transaction_index
from tagwire.records.files.verify import verify_partition

from .history import History
from .world.brokers import DATA_DIR
from .world.disk_contents import Directory, File

if TYPE_CHECKING:
    from .world.world import World

MOST = 5
"""Faults that are told of a partition."""


def note_files(world: World, machine: str, history: History, *, is_stopped: bool = False) -> None:
    """Notes of each partition on a machine's disk what is wrong with its files, and what its transaction indexes
    hold. Of a broker that runs some of what its indexes say is in memory alone."""
    node: File | Directory | None = world.disk(machine).root
    for name in Path(DATA_DIR).parts[1:]:
        node = node.names.get(name) if isinstance(node, Directory) else None
    if not isinstance(node, Directory):
        return
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        _copy(node, root)
        for partition in partitions(root):
            if partition.state is not None:
                continue
            faults = [str(fault).replace(f"{root}/", "") for fault in verify_partition(partition)][:MOST]
            faults += list(_untimed(partition))[:MOST] if is_stopped else []
            index = list(_aborted(partition.files("txnindex")))
            at = {"topic": partition.topic, "partition": partition.partition}
            history.note(machine, "files", **at, faults=faults, aborted=index, left=_left(partition))


def _untimed(partition: PartitionFiles) -> Iterator[str]:
    """Time indexes of segments that were closed, and say nothing of the newest record: who looks for its time passes
    the segment."""
    for segment in partition.segments[:-1]:
        with segment:
            try:
                newest = max((batch.max_timestamp for _, batch in segment.batches()), default=-1)
                entries = read_time_index(segment.beside(".timeindex").read_bytes(), segment.base_offset).entries
            except (TagwireError, FileNotFoundError):
                continue  # what is wrong is told already; an index that is not there is made anew
            told = max((entry.timestamp for entry in entries), default=-1)
        if told < newest:
            yield f"{segment.path.name} has a record of {newest}, and its time index comes to {told}"


def _left(partition: PartitionFiles) -> list[int]:
    """Offsets of what was noted of producers where segments began that are gone. The newest of all is of use without
    one: a log is read from there on."""
    first = min((segment.base_offset for segment in partition.segments), default=0)
    noted = sorted(int(path.name.partition(".")[0]) for path in partition.path.glob("*.snapshot"))
    return [offset for offset in noted[:-1] if offset < first]


def _aborted(paths: list[Path]) -> Iterator[list[Any]]:
    for path in paths:
        for entry in read_transaction_index(path.read_bytes()).entries:
            yield [entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset]


def _copy(directory: Directory, into: Path) -> None:
    for name, node in directory.names.items():
        if isinstance(node, File):
            (into / name).write_bytes(node.data)
        else:
            (into / name).mkdir()
            _copy(node, into / name)
