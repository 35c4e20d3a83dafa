"""The files of a simulated broker at the end of its world, as `tagwire log verify` sees them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagwire.records.files.partition import partitions
from tagwire.records.files.transaction_index import read_transaction_index
from tagwire.records.files.verify import verify_partition

from .history import History
from .world.brokers import DATA_DIR
from .world.disk_contents import Directory, File

if TYPE_CHECKING:
    from .world.world import World

MOST = 5
"""Faults that are told of a partition."""


def note_files(world: World, machine: str, history: History) -> None:
    """Notes of each partition on a machine's disk what is wrong with its files, and what its transaction indexes
    hold."""
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
            index = list(_aborted(partition.files("txnindex")))
            at = {"topic": partition.topic, "partition": partition.partition}
            history.note(machine, "files", **at, faults=faults, aborted=index)


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
