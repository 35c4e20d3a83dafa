"""`<offset>.snapshot` files: what was known of a partition's producers before an offset, so that opening a log need not
read all of it. A file that is broken is as good as none, and deleted: an older one is taken, or the log's start.

Source: docs/log-files.md#producer-snapshots; Kafka's ProducerStateManager.loadFromSnapshot.
"""

from __future__ import annotations

import logging
from collections.abc import Container
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tagwire.broker.storage.files import Files, read_file
from tagwire.errors import DecodeError, UnsupportedVersionError
from tagwire.records.files.names import kind_of, offset_name, offset_of
from tagwire.records.files.producer_snapshot import format_producer_snapshot, read_producer_snapshot

if TYPE_CHECKING:
    from tagwire.messages import ProducerSnapshot

logger = logging.getLogger("tagwire.broker")


def snapshot_path(directory: Path, offset: int) -> Path:
    """The file of what is known before `offset`."""
    return directory / f"{offset_name(offset)}.snapshot"


def save_snapshot(files: Files, directory: Path, offset: int, snapshot: ProducerSnapshot) -> None:
    """Write down what is known before `offset`. A file that a crash leaves unfinished fails its checksum; it is on the
    disk after `sync_snapshot`."""
    data = format_producer_snapshot(snapshot)
    fd = files.open(snapshot_path(directory, offset), write=True)
    try:
        files.write(fd, [data], 0)
        files.truncate(fd, len(data))
    finally:
        files.close(fd)


def sync_snapshot(files: Files, directory: Path, offset: int) -> None:
    """Wait until what was written down of `offset` is on the disk; its name is when the directory is synced."""
    fd = files.open(snapshot_path(directory, offset))
    try:
        files.sync(fd)
    finally:
        files.close(fd)


def newest_snapshot(files: Files, directory: Path, most: int) -> tuple[int, ProducerSnapshot] | None:
    """The newest snapshot that can be read and is of no later offset than `most`: its offset and its message. Broken
    ones that are met are deleted."""
    for offset in reversed(_offsets(files, directory)):
        if offset <= most and (found := _read(files, directory, offset)) is not None:
            return offset, found
    return None


def drop_broken_snapshots(files: Files, directory: Path) -> None:
    """Delete those that a crash has left unfinished, wherever they are."""
    for offset in _offsets(files, directory):
        _read(files, directory, offset)


def _read(files: Files, directory: Path, offset: int) -> ProducerSnapshot | None:
    """What stands in a snapshot; None for one that cannot be read, which is deleted if it is broken."""
    path = snapshot_path(directory, offset)
    try:
        return read_producer_snapshot(read_file(files, path))
    except OSError as error:
        logger.warning("%s: snapshot %d is not taken: %s", directory.name, offset, error)
    except (DecodeError, UnsupportedVersionError) as error:
        logger.warning("%s: snapshot %d is deleted: %s", directory.name, offset, error)
        files.remove(path)
    return None


def drop_snapshot(files: Files, directory: Path, offset: int) -> None:
    """Delete the snapshot of an offset, if there is one: it is of no use without the segment that begins there."""
    with suppress(FileNotFoundError):
        files.remove(snapshot_path(directory, offset))


def drop_snapshots(files: Files, directory: Path, *, keep: Container[int], after: int | None = None) -> None:
    """Delete the snapshots of other offsets than those in `keep`; with `after`, those past that offset too."""
    for offset in _offsets(files, directory):
        if offset not in keep or (after is not None and offset > after):
            files.remove(snapshot_path(directory, offset))


def _offsets(files: Files, directory: Path) -> list[int]:
    named = [name for name in files.names(directory) if kind_of(name) == "producers"]
    return [offset for name in named if (offset := offset_of(name)) is not None]
